//! Results of the gateway's methods.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::{AgentMemory, AgentReadiness};

/// Success without further data.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Done {
    pub ok: bool,
}

impl Done {
    /// The only value.
    pub const YES: Self = Self { ok: true };
}

/// Result of `health.check`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Health {
    pub status: &'static str,
    pub version: &'static str,
}

/// Result of `agents.list`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AgentList {
    pub agents: Vec<Agent>,
}

/// A persona of the built-in agent, or another agent of the catalog.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Agent {
    /// `agentId` for `sessions.create`.
    pub id: String,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether the agent can be started on this machine.
    pub found: bool,
    pub state: AgentReadiness,
    /// Why the agent is `broken`, cannot be installed, or needs a newer Node.js.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// How to install the agent, if it is not installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub install: Option<String>,
}

/// Memory use of the running agents.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MemoryList {
    /// Memory use of the running agents.
    pub agents: Vec<AgentMemory>,
}

/// Result of `sessions.create`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CleanedList {
    pub folders: Vec<CleanedFolder>,
}

/// What was removed from a folder.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CleanedFolder {
    /// Path in the data directory.
    pub folder: &'static str,
    /// Number of removed entries.
    pub entries: u64,
    pub bytes: u64,
}

/// Result of `browsers.list`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BrowserList {
    pub browsers: Vec<Browser>,
}

/// A browser that is signed in.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Browser {
    pub browser_id: String,
    /// The browser and its operating system.
    pub name: String,
    /// Host and port at which the browser signed in.
    pub address: String,
    /// In milliseconds since 1970.
    pub signed_in_at: i64,
    /// In milliseconds since 1970.
    pub used_at: i64,
}

/// Result of `sessions.create`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewSession {
    pub session_key: String,
    pub session: Session,
}

/// Result of `sessions.list`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SessionList {
    pub sessions: Vec<Session>,
}

/// A session as programs see it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    pub key: String,
    pub agent_id: String,
    /// Unix time in milliseconds.
    pub created_at: i64,
    pub updated_at: i64,
    /// Title of the session, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// `{cliType}:{the agent's own session id}`, the id in the browser API.
    pub id: String,
    pub project_id: String,
    /// `idle`, `running`, `waiting` (for the user's answer) or `failed`.
    pub state: &'static str,
    pub archived: bool,
}

/// A session with its latest messages.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionWithMessages {
    pub session: Session,
    pub messages: Vec<Message>,
    /// `before` for `chat.history`, to get older messages. Missing if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<u64>,
}

/// A page of messages, oldest first.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Messages {
    pub messages: Vec<Message>,
    /// `before` of the next request, to get older messages. Missing if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<u64>,
}

/// Who wrote a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    User,
    Assistant,
    ToolResult,
}

/// An entry of the transcript as programs see it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    pub role: Role,
    pub content: String,
    /// Unix time in milliseconds.
    pub timestamp: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// Number of the message in the transcript, for `chat.message`.
    pub number: u64,
    /// Whether `content` was too long and was cut; `chat.message` returns the whole message.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

/// A whole message.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MessageBody {
    pub message: Message,
}

/// The run that a message started, or will start when its turn comes.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    pub run_id: String,
}

/// Where the events of a subscription begin.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Subscribed {
    /// For `after` on a later connection, together with the `seq` of the last received event.
    pub boot_id: String,
    /// Events with higher numbers follow.
    pub seq: u64,
    /// Whether the events continue at `after`. If not, `chat.history` has the missed messages.
    pub resumed: bool,
}

/// The messages that wait for the running turn.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Queue {
    pub waiting: Vec<QueuedRun>,
    /// True when the queue is paused: after a stopped or failed turn, or a restart of the server.
    pub held: bool,
}

/// A message in the queue.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueuedRun {
    pub queue_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    pub message: String,
}

/// The open permission requests.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PermissionList {
    pub permissions: Vec<Permission>,
}

/// An open permission request of an agent.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Permission {
    pub session_key: String,
    pub permission_id: String,
    pub title: String,
    /// Options offered by the agent, each with `optionId`, `name` and `kind`.
    pub options: Vec<Value>,
}

/// The open elicitations.
#[derive(Debug, Serialize, JsonSchema)]
pub struct QuestionList {
    pub questions: Vec<Question>,
}

/// An open elicitation of an agent.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    pub session_key: String,
    pub question_id: String,
    pub message: String,
    /// `{"type": "form", "fields": […]}` or `{"type": "link", "url": …}`.
    pub ask: Value,
}

/// The projects, in the order in which they were added.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ProjectList {
    pub projects: Vec<Value>,
}

/// The project that was added.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ProjectAdded {
    pub project: Value,
}
