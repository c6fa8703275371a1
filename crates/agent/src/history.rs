//! The history of a session and its replay. Pure.
//!
//! The history is the conversation as the client saw it: ACP updates in order, and the end of each turn.
//! Both the replay and the model's context are built from it, so they cannot diverge.

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

/// What a line of the history records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Entry {
    Update(Box<acp::SessionUpdate>),
    TurnEnd(TurnEnd),
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnEnd {
    Done,
    Cancelled,
    Failed,
    /// The process ended during the turn.
    Interrupted,
}

impl Record {
    /// Records an ACP update, with the current time.
    pub fn update(update: acp::SessionUpdate) -> Self {
        Self {
            at: Timestamp::now(),
            entry: Entry::Update(Box::new(update)),
        }
    }

    /// Records the end of a turn, with the current time.
    pub fn turn_end(end: TurnEnd) -> Self {
        Self {
            at: Timestamp::now(),
            entry: Entry::TurnEnd(end),
        }
    }
}

/// A history as read from the store.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History {
    pub records: Vec<Record>,
    /// Number of lines that could not be parsed.
    pub unreadable: usize,
}

impl History {
    /// Whether the last turn has no recorded end.
    pub fn is_interrupted(&self) -> bool {
        let last = self.records.last();
        last.is_some_and(|record| !matches!(record.entry, Entry::TurnEnd(_)))
    }

    /// Number of ended turns.
    pub fn turns(&self) -> usize {
        let ends = |record: &&Record| matches!(record.entry, Entry::TurnEnd(_));
        self.records.iter().filter(ends).count()
    }

    /// Returns the conversation in as few updates as possible: each text in one chunk, each tool call
    /// once in its final state.
    pub fn replay(&self) -> Vec<acp::SessionUpdate> {
        let mut updates: Vec<acp::SessionUpdate> = Vec::new();
        let mut calls: HashMap<acp::ToolCallId, usize> = HashMap::new();
        for record in &self.records {
            let Entry::Update(update) = &record.entry else {
                continue;
            };
            match update.as_ref() {
                acp::SessionUpdate::ToolCall(call) => {
                    calls.insert(call.tool_call_id.clone(), updates.len());
                    updates.push(acp::SessionUpdate::ToolCall(call.clone()));
                }
                acp::SessionUpdate::ToolCallUpdate(change) => {
                    let begun = calls.get(&change.tool_call_id);
                    if let Some(acp::SessionUpdate::ToolCall(call)) =
                        begun.and_then(|place| updates.get_mut(*place))
                    {
                        call.update(change.fields.clone());
                    }
                }
                other => {
                    if !updates
                        .last_mut()
                        .is_some_and(|last| append_text(last, other))
                    {
                        updates.push(other.clone());
                    }
                }
            }
        }
        for update in &mut updates {
            if let acp::SessionUpdate::ToolCall(call) = update {
                fail_if_unfinished(call);
            }
        }
        updates
    }
}

/// Appends the text of `next` to `last` if both belong to the same agent message.
fn append_text(last: &mut acp::SessionUpdate, next: &acp::SessionUpdate) -> bool {
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

/// Marks an unfinished tool call as failed.
fn fail_if_unfinished(call: &mut acp::ToolCall) {
    if matches!(
        call.status,
        acp::ToolCallStatus::Pending | acp::ToolCallStatus::InProgress
    ) {
        call.status = acp::ToolCallStatus::Failed;
        call.raw_output
            .get_or_insert_with(|| serde_json::Value::from("interrupted"));
    }
    // The client's terminal no longer exists.
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
    fn replay_joins_agent_text_and_keeps_user_messages_apart() {
        use acp::SessionUpdate::{AgentMessageChunk, AgentThoughtChunk, UserMessageChunk};
        let updates = history(vec![
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
            updates,
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
    fn replay_has_each_tool_call_once_in_its_final_state() {
        let begun = acp::ToolCall::new("1", "Read a").status(acp::ToolCallStatus::InProgress);
        let fields = acp::ToolCallUpdateFields::new()
            .status(acp::ToolCallStatus::Completed)
            .raw_output(serde_json::json!("text"));
        let updates = history(vec![
            acp::SessionUpdate::ToolCall(begun),
            acp::SessionUpdate::AgentMessageChunk(chunk("then", "1.1")),
            acp::SessionUpdate::ToolCallUpdate(acp::ToolCallUpdate::new("1", fields)),
        ])
        .replay();
        assert_eq!(updates.len(), 2);
        let acp::SessionUpdate::ToolCall(call) = &updates[0] else {
            panic!("{updates:?}")
        };
        assert_eq!(call.status, acp::ToolCallStatus::Completed);
        assert_eq!(call.raw_output, Some(serde_json::json!("text")));
    }

    #[test]
    fn replay_shows_an_unfinished_tool_call_as_failed() {
        let begun = acp::ToolCall::new("1", "Run").status(acp::ToolCallStatus::InProgress);
        let updates = history(vec![acp::SessionUpdate::ToolCall(begun)]).replay();
        let acp::SessionUpdate::ToolCall(call) = &updates[0] else {
            panic!("{updates:?}")
        };
        assert_eq!(call.status, acp::ToolCallStatus::Failed);
    }

    #[test]
    fn record_round_trips_as_one_json_line() {
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
