//! Updates: an agent's reports about a session, which change its conversation or its properties.

use serde_json::Value;
use wire::{
    Author, ContextUsage, JsonText, Location, MediaBlock, NoticeSeverity, PlanItem, SlashCommand,
    TerminalExit, ToolContent, ToolKind, ToolStatus,
};

/// One update of a session.
#[derive(Debug, Clone, PartialEq)]
pub enum Update {
    Text {
        author: Author,
        text: String,
        message_id: Option<String>,
    },
    Media {
        author: Author,
        block: MediaBlock,
    },
    ToolCall(Box<ToolCallPatch>),
    Plan(Vec<PlanItem>),
    Notice {
        severity: NoticeSeverity,
        title: String,
        description: Option<String>,
    },
    /// A marker of an interrupted turn that the agent replays as a user message. Text after it is a new message.
    Interruption,
    /// A change of the session's properties.
    Session(SessionChange),
    /// A known kind of update that is not used.
    Ignored,
    /// An update of an unknown kind.
    Unknown {
        kind: String,
    },
}

/// A change of a session's properties.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionChange {
    Commands(Vec<SlashCommand>),
    Mode(String),
    /// The options in ACP's format.
    ConfigOptions(Vec<Value>),
    Usage(ContextUsage),
    Title(String),
    /// The turn will fail, even if its response reports success.
    Failing,
}

impl Update {
    /// Appends the next update if it continues the same text; returns it otherwise.
    pub fn merge(&mut self, next: Self) -> Option<Self> {
        match (self, next) {
            (
                Self::Text {
                    author,
                    text,
                    message_id,
                },
                Self::Text {
                    author: next_author,
                    text: more,
                    message_id: next_id,
                },
            ) if *author == next_author && *message_id == next_id => {
                text.push_str(&more);
                None
            }
            (_, next) => Some(next),
        }
    }
}

/// The fields of a `tool_call` or `tool_call_update`. `None` means unchanged.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolCallPatch {
    pub tool_call_id: String,
    /// Whether it is a `tool_call`, which begins a new call unless a call of this turn has the id.
    pub announces: bool,
    pub title: Option<String>,
    pub kind: Option<ToolKind>,
    pub status: Option<ToolStatus>,
    pub content: Option<Vec<ToolContent>>,
    pub locations: Option<Vec<Location>>,
    pub raw_input: Option<JsonText>,
    pub raw_output: Option<JsonText>,
    pub terminal_output: Option<String>,
    pub terminal_exit: Option<TerminalExit>,
}

impl ToolCallPatch {
    /// A patch that changes nothing.
    pub fn new(tool_call_id: &str) -> Self {
        Self {
            tool_call_id: tool_call_id.to_owned(),
            ..Self::default()
        }
    }
}
