//! A session as people see it: in a list, and while it is open.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::{ErrorCode, OpenQuestion, PermissionPolicy};

/// One line of a session list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct SessionListItem {
    /// Canonical: `{cliType}:{the agent's own id}`.
    pub id: String,
    pub project_id: String,
    pub title: String,
    pub last_active_at: String,
    pub created_at: String,
    pub cli_type: String,
    pub archived: bool,
    pub state: SessionState,
}

/// What a session is doing, for a mark in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "lowercase")]
pub enum SessionState {
    Idle,
    Running,
    /// It asked the person something.
    Waiting,
    /// Its last turn failed or was interrupted.
    Failed,
}

/// Everything about an open session that is not part of the conversation. Sent whole on each change.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct SessionInfo {
    pub state: SessionState,
    /// The turn that runs now.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub turn: Option<RunningTurn>,
    /// Whether the agent has this session open.
    pub attachment: Attachment,
    /// Why it has not, when it was last asked to without a message to send.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub problem: Option<AttachProblem>,
    pub policy: PermissionPolicy,
    /// Messages that wait for the turn to end.
    pub queue: Vec<QueuedMessage>,
    /// True when the queue is paused: after a stopped or failed turn, or a restart of the server.
    pub queue_held: bool,
    pub permissions: Vec<PermissionQuestion>,
    /// What the agent asks that is not about permission; the entries have the forms.
    pub questions: Vec<OpenQuestion>,
    #[ts(type = "Array<{ name: string, description: string, hint?: string }>")]
    pub commands: Vec<SlashCommand>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub modes: Option<Modes>,
    /// What the agent lets one choose, as the protocol writes it.
    #[ts(type = "Array<Record<string, unknown>>")]
    pub options: Vec<serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub usage: Option<ContextUsage>,
    /// Whether the agent takes pictures.
    pub takes_images: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct RunningTurn {
    pub started_at: String,
    /// The request that sent the message it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub request_id: Option<String>,
    pub phase: TurnPhase,
    /// Since when the agent has said nothing, once that is long.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub quiet_since: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "lowercase")]
pub enum TurnPhase {
    /// The agent is being started or given the session.
    Starting,
    Working,
    Cancelling,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "lowercase")]
pub enum Attachment {
    Detached,
    Attaching,
    Attached,
}

/// Why an agent would not open a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
pub struct AttachProblem {
    pub code: ErrorCode,
    pub message: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct QueuedMessage {
    pub queue_id: String,
    pub content: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(as = "Option<Vec<String>>", optional)]
    pub images: Vec<String>,
    /// The request that brought it, so that it runs at most once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub request_id: Option<String>,
}

/// Something an agent may do only if the person agrees.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct PermissionQuestion {
    pub permission_id: String,
    /// The tool call it is about; an entry of the conversation shows it.
    pub tool_call_id: String,
    pub title: String,
    pub options: Vec<PermissionOption>,
    pub asked_at: String,
    /// Asked whatever the policy: other programs run what would be written.
    pub guarded: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct PermissionOption {
    pub option_id: String,
    pub name: String,
    /// `allow_once`, `allow_always`, `reject_once`, `reject_always`, or one we do not know.
    pub kind: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct SlashCommand {
    pub name: String,
    pub description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub hint: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Modes {
    pub current: String,
    pub available: Vec<Mode>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Mode {
    pub id: String,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub description: Option<String>,
}

/// How full the agent's context is, and what it has cost so far.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct ContextUsage {
    #[ts(type = "number")]
    pub used: u64,
    #[ts(type = "number")]
    pub size: u64,
    /// Such as `0.42 USD`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub cost: Option<String>,
}

/// How far a browser has come with a session.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, TS, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Position {
    pub boot_id: String,
    #[ts(type = "number")]
    pub seq: u64,
}
