//! Sessions as shown to the user: in a list, and while open.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::{ErrorCode, OpenQuestion, PermissionPolicy};

/// One session in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct SessionListItem {
    /// `{cliType}:{the agent's own session id}`.
    pub id: String,
    pub project_id: String,
    pub title: String,
    pub last_active_at: String,
    pub created_at: String,
    pub cli_type: String,
    pub archived: bool,
    pub state: SessionState,
}

/// State of a session, shown as a mark in lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "lowercase")]
pub enum SessionState {
    Idle,
    Running,
    /// The agent waits for an answer of the user.
    Waiting,
    /// The last turn failed or was interrupted.
    Failed,
}

/// State of an open session, without its transcript. Sent completely on each change.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct SessionInfo {
    pub state: SessionState,
    /// The running turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub turn: Option<RunningTurn>,
    /// Whether the agent has the session open.
    pub attachment: Attachment,
    /// Why the agent could not open the session when the user last opened it without sending a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub problem: Option<AttachProblem>,
    pub policy: PermissionPolicy,
    /// Messages that wait for the running turn to end.
    pub queue: Vec<QueuedMessage>,
    /// Whether the queue is paused: after a stopped or failed turn, or a restart of the server.
    pub queue_held: bool,
    pub permissions: Vec<PermissionQuestion>,
    /// Open elicitations of the agent. The transcript entries contain the forms.
    pub questions: Vec<OpenQuestion>,
    #[ts(type = "Array<{ name: string, description: string, hint?: string }>")]
    pub commands: Vec<SlashCommand>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub modes: Option<Modes>,
    /// Config options of the agent, in their ACP form.
    #[ts(type = "Array<Record<string, unknown>>")]
    pub options: Vec<serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub usage: Option<ContextUsage>,
    /// Whether the agent accepts images in prompts.
    pub takes_images: bool,
}

/// The turn that is running.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct RunningTurn {
    pub started_at: String,
    /// Id of the request that sent the message of this turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub request_id: Option<String>,
    pub phase: TurnPhase,
    /// Time of the agent's last update, set once it has been silent for long.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub quiet_since: Option<String>,
}

/// Progress of the running turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "lowercase")]
pub enum TurnPhase {
    /// The agent is being started, or is opening the session.
    Starting,
    Working,
    Cancelling,
}

/// Whether the agent has the session open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "lowercase")]
pub enum Attachment {
    Detached,
    Attaching,
    Attached,
}

/// Why an agent could not open a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
pub struct AttachProblem {
    pub code: ErrorCode,
    pub message: String,
}

/// A message that waits for the running turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct QueuedMessage {
    pub queue_id: String,
    pub content: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(as = "Option<Vec<String>>", optional)]
    pub images: Vec<String>,
    /// Id of the request that sent the message, so that it runs at most once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub request_id: Option<String>,
}

/// An open permission request of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct PermissionQuestion {
    pub permission_id: String,
    /// The tool call that needs permission; a transcript entry shows it.
    pub tool_call_id: String,
    pub title: String,
    pub options: Vec<PermissionOption>,
    pub asked_at: String,
    /// Whether the call writes to a sensitive path, which needs approval under any policy.
    pub guarded: bool,
}

/// An answer that the agent offers in a permission request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct PermissionOption {
    pub option_id: String,
    pub name: String,
    /// `allow_once`, `allow_always`, `reject_once`, `reject_always`, or a value unknown to the server.
    pub kind: String,
}

/// A command that the agent offers in the input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct SlashCommand {
    pub name: String,
    pub description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub hint: Option<String>,
}

/// The modes that the agent offers, and the current one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Modes {
    pub current: String,
    pub available: Vec<Mode>,
}

/// A mode that the agent offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Mode {
    pub id: String,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub description: Option<String>,
}

/// Context use of the agent in tokens, and the cost of the session so far.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct ContextUsage {
    #[ts(type = "number")]
    pub used: u64,
    #[ts(type = "number")]
    pub size: u64,
    /// Amount with currency, such as `0.42 USD`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub cost: Option<String>,
}

/// Position of a client in the event stream of a session.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, TS, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Position {
    pub boot_id: String,
    #[ts(type = "number")]
    pub seq: u64,
}
