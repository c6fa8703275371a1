//! Entries of a transcript.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::{JsonText, QuestionEntry};

/// One entry of a transcript.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(
    tag = "type",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
/// An entry of a conversation.
pub enum ChatEntry {
    User {
        entry_id: String,
        content: String,
        timestamp: String,
        /// Id of the request that sent the message, so that the sending page recognizes its own message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        request_id: Option<String>,
        /// Ids of the uploaded images of the message.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[ts(as = "Option<Vec<String>>", optional)]
        images: Vec<String>,
    },
    Assistant {
        entry_id: String,
        content: String,
        timestamp: String,
    },
    Thinking {
        entry_id: String,
        content: String,
    },
    /// Shared, because tool calls are large and referenced several times while a turn runs.
    ToolCall(Arc<ToolCallEntry>),
    /// The agent's plan. Each update replaces it.
    Plan {
        entry_id: String,
        items: Vec<PlanItem>,
    },
    /// An image, audio clip or document between the texts.
    Media {
        entry_id: String,
        author: Author,
        block: MediaBlock,
        timestamp: String,
    },
    /// A notice of the agent that is not part of its answer.
    Notice {
        entry_id: String,
        severity: NoticeSeverity,
        title: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        description: Option<String>,
    },
    /// An elicitation: the agent asks the user for input.
    Question(QuestionEntry),
    /// The end of a turn.
    Turn(TurnEntry),
}

impl ChatEntry {
    /// Id of the entry: `e` followed by its number in the transcript.
    pub fn entry_id(&self) -> &str {
        match self {
            Self::User { entry_id, .. }
            | Self::Assistant { entry_id, .. }
            | Self::Thinking { entry_id, .. }
            | Self::Plan { entry_id, .. }
            | Self::Media { entry_id, .. }
            | Self::Notice { entry_id, .. } => entry_id,
            Self::ToolCall(call) => &call.entry_id,
            Self::Question(question) => &question.entry_id,
            Self::Turn(turn) => &turn.entry_id,
        }
    }

    /// Gives the entry another id.
    pub fn set_entry_id(&mut self, id: String) {
        match self {
            Self::User { entry_id, .. }
            | Self::Assistant { entry_id, .. }
            | Self::Thinking { entry_id, .. }
            | Self::Plan { entry_id, .. }
            | Self::Media { entry_id, .. }
            | Self::Notice { entry_id, .. } => *entry_id = id,
            Self::ToolCall(call) => Arc::make_mut(call).entry_id = id,
            Self::Question(question) => question.entry_id = id,
            Self::Turn(turn) => turn.entry_id = id,
        }
    }
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct TurnEntry {
    pub entry_id: String,
    pub outcome: TurnOutcome,
    /// Message of the agent or the server about the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "number")]
    pub duration_ms: Option<u64>,
    /// Input and output tokens, if the agent reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "number")]
    pub tokens: Option<u64>,
    pub timestamp: String,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "kebab-case")]
pub enum TurnOutcome {
    Ended,
    Cancelled,
    /// The agent refused to continue.
    Refused,
    MaxTokens,
    MaxTurnRequests,
    /// The agent returned an error.
    Failed,
    /// The agent or the server stopped during the turn.
    Interrupted,
    /// The agent reported a stop reason unknown to the server; the message contains it.
    Other,
}

impl TurnOutcome {
    /// Whether the turn failed or was interrupted.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::Interrupted)
    }
}

/// Whose words a text or medium is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, TS)]
#[serde(rename_all = "kebab-case")]
pub enum Author {
    User,
    Assistant,
    Thinking,
}

/// A tool call of the agent, in its latest state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct ToolCallEntry {
    pub entry_id: String,
    pub tool_call_id: String,
    /// The agent's title of the call.
    pub name: String,
    pub kind: ToolKind,
    pub status: ToolStatus,
    /// Text output of the completed call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub result: Option<String>,
    /// Why the call failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub error: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<ToolContent>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locations: Vec<Location>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "unknown")]
    pub raw_input: Option<JsonText>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "unknown")]
    pub raw_output: Option<JsonText>,
    /// Name of the option that the user chose in the permission request for this call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub answer: Option<String>,
}

/// What a tool call does, as ACP classifies it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "kebab-case")]
pub enum ToolKind {
    Read,
    Edit,
    Delete,
    Move,
    Search,
    Execute,
    Think,
    Fetch,
    SwitchMode,
    Other,
}

/// State of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "lowercase")]
pub enum ToolStatus {
    Running,
    Complete,
    Error,
}

/// One content block of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(
    tag = "type",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
/// A part of the content of a tool call.
pub enum ToolContent {
    Text {
        text: String,
    },
    Media {
        block: MediaBlock,
    },
    Diff {
        path: String,
        /// Missing for a new file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        old_text: Option<String>,
        new_text: String,
    },
    Terminal {
        terminal_id: String,
        output: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        exit: Option<TerminalExit>,
    },
}

/// How a command in a terminal ended: with a code or by a signal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct TerminalExit {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub code: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub signal: Option<String>,
}

/// A file that a tool call reads or changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Location {
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub line: Option<u32>,
}

/// A step of the agent's plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct PlanItem {
    pub content: String,
    pub priority: PlanPriority,
    pub status: PlanStatus,
}

/// Importance of a step of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "lowercase")]
pub enum PlanPriority {
    High,
    Medium,
    Low,
}

/// Progress of a step of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "kebab-case")]
pub enum PlanStatus {
    Pending,
    InProgress,
    Completed,
}

/// Content that is not text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(
    tag = "type",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
/// Content of an agent other than text.
pub enum MediaBlock {
    Image {
        mime_type: String,
        /// Base64.
        data: String,
    },
    Audio {
        mime_type: String,
        /// Base64.
        data: String,
    },
    /// A document embedded by the agent.
    Resource {
        uri: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        mime_type: Option<String>,
        /// Missing for a binary document.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        text: Option<String>,
    },
    /// A link to a document.
    Link {
        uri: String,
        name: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        description: Option<String>,
    },
}

/// Importance of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "lowercase")]
pub enum NoticeSeverity {
    Info,
    Warning,
    Error,
}
