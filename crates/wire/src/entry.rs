//! What a conversation is made of.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::{JsonText, QuestionEntry};

/// One element of a conversation, in the order in which it was said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(
    tag = "type",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
pub enum ChatEntry {
    User {
        entry_id: String,
        content: String,
        timestamp: String,
        /// The request that sent it, so that whoever shows it already can tell.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        request_id: Option<String>,
        /// Ids of the pictures that go with it.
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
    /// Shared: it is long, and in several places while a turn runs.
    ToolCall(Arc<ToolCallEntry>),
    /// What the agent means to do. Replaced as it gets on with it.
    Plan {
        entry_id: String,
        items: Vec<PlanItem>,
    },
    /// A picture, a sound or a document in between the words.
    Media {
        entry_id: String,
        author: Author,
        block: MediaBlock,
        timestamp: String,
    },
    /// Something the agent wants known that is not part of what it says.
    Notice {
        entry_id: String,
        severity: NoticeSeverity,
        title: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        description: Option<String>,
    },
    /// The agent asks the person something.
    Question(QuestionEntry),
    /// The end of a turn.
    Turn(TurnEntry),
}

impl ChatEntry {
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
    /// What the agent, or we, have to say about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "number")]
    pub duration_ms: Option<u64>,
    /// Tokens in and out, where the agent says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "number")]
    pub tokens: Option<u64>,
    pub timestamp: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "kebab-case")]
pub enum TurnOutcome {
    Ended,
    Cancelled,
    /// The agent declined to go on.
    Refused,
    MaxTokens,
    MaxTurnRequests,
    /// The agent answered with an error.
    Failed,
    /// The agent, or this server, died in the middle of it.
    Interrupted,
    /// It ended for a reason we do not know; the message has it.
    Other,
}

impl TurnOutcome {
    /// Whether the person should know that it did not end by itself.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::Interrupted)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, TS)]
#[serde(rename_all = "kebab-case")]
pub enum Author {
    User,
    Assistant,
    Thinking,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct ToolCallEntry {
    pub entry_id: String,
    pub tool_call_id: String,
    /// What to call it in one line: the agent's title for it.
    pub name: String,
    pub kind: ToolKind,
    pub status: ToolStatus,
    /// Its text output, once it is complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub result: Option<String>,
    /// Why it failed.
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
    /// What the person answered when the agent asked whether it may: the name of that option.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub answer: Option<String>,
}

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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "lowercase")]
pub enum ToolStatus {
    Running,
    Complete,
    Error,
}

/// A part of what a tool call shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(
    tag = "type",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
pub enum ToolContent {
    Text {
        text: String,
    },
    Media {
        block: MediaBlock,
    },
    Diff {
        path: String,
        /// Missing for a file that was not there before.
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

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Location {
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub line: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct PlanItem {
    pub content: String,
    pub priority: PlanPriority,
    pub status: PlanStatus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "lowercase")]
pub enum PlanPriority {
    High,
    Medium,
    Low,
}

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
    /// A document the agent put in whole.
    Resource {
        uri: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        mime_type: Option<String>,
        /// Missing for a binary one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        text: Option<String>,
    },
    /// A document the agent points at.
    Link {
        uri: String,
        name: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        description: Option<String>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "lowercase")]
pub enum NoticeSeverity {
    Info,
    Warning,
    Error,
}
