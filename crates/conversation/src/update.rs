//! What an agent reports about a session: changes of its conversation and of its properties.

use serde_json::Value;
use wire::{
    Author, ContextUsage, JsonText, Location, MediaBlock, NoticeSeverity, PlanItem, SlashCommand,
    TerminalExit, ToolContent, ToolKind, ToolStatus,
};

/// One thing an agent said about a session.
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
    /// Told in the person's name, who did not say it: what comes after it is another message.
    Interruption,
    /// About the session rather than in the conversation.
    Session(SessionChange),
    /// One we know and have no use for.
    Ignored,
    /// A kind of update we do not know.
    Unknown {
        kind: String,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub enum SessionChange {
    Commands(Vec<SlashCommand>),
    Mode(String),
    /// As the protocol writes them.
    ConfigOptions(Vec<Value>),
    Usage(ContextUsage),
    Title(String),
    /// The turn fails, whatever its answer will say.
    Failing,
}

impl Update {
    /// Takes in what comes next if it is more of the same text; gives it back otherwise.
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

/// What an announcement or an update says of a tool call. Missing means unchanged.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolCallPatch {
    pub tool_call_id: String,
    /// A call begins with it, if none of this turn has the id.
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
    /// Nothing but whose it is.
    pub fn new(tool_call_id: &str) -> Self {
        Self {
            tool_call_id: tool_call_id.to_owned(),
            ..Self::default()
        }
    }
}
