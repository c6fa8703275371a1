//! What a session remembers, and how it is told again. Pure.
//!
//! The history is the conversation as the client saw it: the protocol's own updates, in order, and
//! where each turn ended. A replay and the model's context are both made from it, so they cannot drift
//! apart.

use std::collections::HashMap;

use agent_client_protocol_schema::v1 as acp;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// One line of the history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub at: Timestamp,
    #[serde(flatten)]
    pub entry: Entry,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Entry {
    Update(Box<acp::SessionUpdate>),
    TurnEnd(TurnEnd),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnEnd {
    Done,
    Cancelled,
    Failed,
    /// The process ended before the turn did.
    Interrupted,
}

impl Record {
    pub fn update(update: acp::SessionUpdate) -> Self {
        Self {
            at: Timestamp::now(),
            entry: Entry::Update(Box::new(update)),
        }
    }

    pub fn turn_end(end: TurnEnd) -> Self {
        Self {
            at: Timestamp::now(),
            entry: Entry::TurnEnd(end),
        }
    }
}

/// A history as it was read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History {
    pub records: Vec<Record>,
    /// Lines that could not be understood.
    pub unreadable: usize,
}

impl History {
    /// Whether the last turn never came to its end.
    pub fn is_interrupted(&self) -> bool {
        let last = self.records.last();
        last.is_some_and(|record| !matches!(record.entry, Entry::TurnEnd(_)))
    }

    /// How many turns there were.
    pub fn turns(&self) -> usize {
        let ends = |record: &&Record| matches!(record.entry, Entry::TurnEnd(_));
        self.records.iter().filter(ends).count()
    }

    /// The conversation, told as briefly as it can be: text in one piece, each tool call once and as
    /// it ended.
    pub fn replay(&self) -> Vec<acp::SessionUpdate> {
        let mut told: Vec<acp::SessionUpdate> = Vec::new();
        let mut calls: HashMap<acp::ToolCallId, usize> = HashMap::new();
        for record in &self.records {
            let Entry::Update(update) = &record.entry else {
                continue;
            };
            match update.as_ref() {
                acp::SessionUpdate::ToolCall(call) => {
                    calls.insert(call.tool_call_id.clone(), told.len());
                    told.push(acp::SessionUpdate::ToolCall(call.clone()));
                }
                acp::SessionUpdate::ToolCallUpdate(change) => {
                    let begun = calls.get(&change.tool_call_id);
                    if let Some(acp::SessionUpdate::ToolCall(call)) =
                        begun.and_then(|place| told.get_mut(*place))
                    {
                        call.update(change.fields.clone());
                    }
                }
                other => {
                    if !told.last_mut().is_some_and(|last| joined(last, other)) {
                        told.push(other.clone());
                    }
                }
            }
        }
        for update in &mut told {
            if let acp::SessionUpdate::ToolCall(call) = update {
                settle(call);
            }
        }
        told
    }
}

/// Adds the text of `next` to `last`, if both are one message of the agent.
fn joined(last: &mut acp::SessionUpdate, next: &acp::SessionUpdate) -> bool {
    use acp::SessionUpdate::{AgentMessageChunk, AgentThoughtChunk};
    match (last, next) {
        (AgentMessageChunk(last), AgentMessageChunk(next))
        | (AgentThoughtChunk(last), AgentThoughtChunk(next))
            if last.message_id == next.message_id =>
        {
            match (&mut last.content, &next.content) {
                (acp::ContentBlock::Text(last), acp::ContentBlock::Text(next)) => {
                    last.text.push_str(&next.text);
                    true
                }
                _ => false,
            }
        }
        _ => false,
    }
}

/// A call that never ended has ended now.
fn settle(call: &mut acp::ToolCall) {
    if matches!(
        call.status,
        acp::ToolCallStatus::Pending | acp::ToolCallStatus::InProgress
    ) {
        call.status = acp::ToolCallStatus::Failed;
        call.raw_output
            .get_or_insert_with(|| serde_json::Value::from("interrupted"));
    }
    // A terminal lives only as long as its command.
    call.content
        .retain(|content| !matches!(content, acp::ToolCallContent::Terminal(_)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(text: &str, message: &str) -> acp::ContentChunk {
        acp::ContentChunk::new(text.into()).message_id(acp::MessageId::new(message))
    }

    fn history(updates: Vec<acp::SessionUpdate>) -> History {
        History {
            records: updates.into_iter().map(Record::update).collect(),
            unreadable: 0,
        }
    }

    #[test]
    fn text_comes_back_in_one_piece_and_user_messages_stay_apart() {
        use acp::SessionUpdate::{AgentMessageChunk, AgentThoughtChunk, UserMessageChunk};
        let told = history(vec![
            UserMessageChunk(chunk("one", "1.0")),
            UserMessageChunk(chunk("two", "2.0")),
            AgentThoughtChunk(chunk("hm", "2.1")),
            AgentThoughtChunk(chunk("m", "2.1")),
            AgentMessageChunk(chunk("Hel", "2.2")),
            AgentMessageChunk(chunk("lo", "2.2")),
            AgentMessageChunk(chunk("again", "3.1")),
        ])
        .replay();
        assert_eq!(
            told,
            [
                UserMessageChunk(chunk("one", "1.0")),
                UserMessageChunk(chunk("two", "2.0")),
                AgentThoughtChunk(chunk("hmm", "2.1")),
                AgentMessageChunk(chunk("Hello", "2.2")),
                AgentMessageChunk(chunk("again", "3.1")),
            ]
        );
    }

    #[test]
    fn a_tool_call_comes_back_once_and_as_it_ended() {
        let begun = acp::ToolCall::new("1", "Read a").status(acp::ToolCallStatus::InProgress);
        let fields = acp::ToolCallUpdateFields::new()
            .status(acp::ToolCallStatus::Completed)
            .raw_output(serde_json::json!("text"));
        let told = history(vec![
            acp::SessionUpdate::ToolCall(begun),
            acp::SessionUpdate::AgentMessageChunk(chunk("then", "1.1")),
            acp::SessionUpdate::ToolCallUpdate(acp::ToolCallUpdate::new("1", fields)),
        ])
        .replay();
        assert_eq!(told.len(), 2);
        let acp::SessionUpdate::ToolCall(call) = &told[0] else {
            panic!("{told:?}")
        };
        assert_eq!(call.status, acp::ToolCallStatus::Completed);
        assert_eq!(call.raw_output, Some(serde_json::json!("text")));
    }

    #[test]
    fn a_call_that_was_cut_off_is_told_as_failed() {
        let begun = acp::ToolCall::new("1", "Run").status(acp::ToolCallStatus::InProgress);
        let told = history(vec![acp::SessionUpdate::ToolCall(begun)]).replay();
        let acp::SessionUpdate::ToolCall(call) = &told[0] else {
            panic!("{told:?}")
        };
        assert_eq!(call.status, acp::ToolCallStatus::Failed);
    }

    #[test]
    fn a_line_reads_back_as_it_was_written() {
        for record in [
            Record::update(acp::SessionUpdate::AgentMessageChunk(chunk("x\ny", "1.1"))),
            Record::turn_end(TurnEnd::Cancelled),
        ] {
            let line = serde_json::to_string(&record).unwrap();
            assert!(!line.contains('\n'));
            assert_eq!(serde_json::from_str::<Record>(&line).unwrap(), record);
        }
    }
}
