//! What the gateway's methods answer.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::{AgentMemory, AgentReadiness};

#[derive(Debug, Serialize, JsonSchema)]
pub struct Done {
    pub ok: bool,
}

impl Done {
    pub const YES: Self = Self { ok: true };
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct Health {
    pub status: &'static str,
    pub version: &'static str,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct AgentList {
    pub agents: Vec<Agent>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Agent {
    /// For `sessions.create`.
    pub id: String,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether it can be started here.
    pub found: bool,
    pub state: AgentReadiness,
    /// Why it is broken, or that this machine's Node is too old for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// How to install it, while it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub install: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct MemoryList {
    /// Of the agents that run.
    pub agents: Vec<AgentMemory>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewSession {
    pub session_key: String,
    pub session: Session,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct SessionList {
    pub sessions: Vec<Session>,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    pub key: String,
    pub agent_id: String,
    /// Milliseconds since 1970.
    pub created_at: i64,
    pub updated_at: i64,
    /// Its title, once it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// `{cliType}:{the agent's own id}`, as the browser names it.
    pub id: String,
    pub project_id: String,
    /// `idle`, `running`, `waiting` for an answer, or `failed`.
    pub state: &'static str,
    pub archived: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionWithMessages {
    pub session: Session,
    pub messages: Vec<Message>,
    /// For `chat.history`: what is older. Missing when nothing is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<u64>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Messages {
    pub messages: Vec<Message>,
    /// What is older: `before` of the next request. Missing when nothing is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    User,
    Assistant,
    ToolResult,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    pub role: Role,
    pub content: String,
    /// Milliseconds since 1970.
    pub timestamp: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// Its place in the conversation, for `chat.message`.
    pub number: u64,
    /// Whether `content` was too long and was cut; `chat.message` has all of it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct MessageBody {
    pub message: Message,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    pub run_id: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Subscribed {
    /// A later connection passes it in `after`, with the `seq` of the last event it has heard.
    pub boot_id: String,
    /// Events with higher numbers follow.
    pub seq: u64,
    /// Whether they go on right after `after`. If not, something was missed, and `chat.history` has it.
    pub resumed: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Queue {
    pub waiting: Vec<QueuedRun>,
    /// True when the queue is paused: after a stopped or failed turn, or a restart of the server.
    pub held: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueuedRun {
    pub queue_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    pub message: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct PermissionList {
    pub permissions: Vec<Permission>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Permission {
    pub session_key: String,
    pub permission_id: String,
    pub title: String,
    /// As the agent offers them: `optionId`, `name`, `kind`.
    pub options: Vec<Value>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct QuestionList {
    pub questions: Vec<Question>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    pub session_key: String,
    pub question_id: String,
    pub message: String,
    /// `{"type": "form", "fields": […]}` or `{"type": "link", "url": …}`.
    pub ask: Value,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct ProjectList {
    pub projects: Vec<Value>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct ProjectAdded {
    pub project: Value,
}
