//! Entries of earlier turns by the agent's ids, so that late updates find the entry they belong to. Pure.
//!
//! Invariant: at most `IDS_MAX` ids of at most `ID_BYTES_MAX` bytes are remembered; the oldest are forgotten first.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use wire::{Author, ChatEntry, ToolStatus};

use super::entries::apply_patch;
use super::update::Update;

/// Maximum remembered ids, enough for several turns of a busy agent.
const IDS_MAX: usize = 512;
/// Maximum length of a remembered id, far above the 36 bytes of a UUID.
const ID_BYTES_MAX: usize = 256;

/// The agent's own id of a tool call or message that became an entry.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum AgentId {
    Call(String),
    /// With its author, because some agents use one id for a thought and its answer.
    Message(Author, String),
}

impl AgentId {
    /// `None` if there is no id or if it is longer than `ID_BYTES_MAX`.
    pub(super) fn message(author: Author, message_id: Option<&String>) -> Option<Self> {
        let id = message_id.filter(|id| id.len() <= ID_BYTES_MAX)?;
        Some(Self::Message(author, id.clone()))
    }

    /// `None` if the id is longer than `ID_BYTES_MAX`.
    pub(super) fn call(id: &str) -> Option<Self> {
        (id.len() <= ID_BYTES_MAX).then(|| Self::Call(id.to_owned()))
    }
}

/// The ids of earlier turns, each with the entry it last belonged to.
#[derive(Debug, Clone, Default)]
pub(super) struct Earlier {
    entries: HashMap<AgentId, String>,
    order: VecDeque<(AgentId, String)>,
}

impl Earlier {
    pub(super) fn remember(&mut self, id: AgentId, entry_id: String) {
        self.entries.insert(id.clone(), entry_id.clone());
        self.order.push_back((id, entry_id));
        if self.order.len() > IDS_MAX
            && let Some((id, entry_id)) = self.order.pop_front()
            && self.entries.get(&id) == Some(&entry_id)
        {
            self.entries.remove(&id);
        }
    }

    pub(super) fn entry(&self, id: &AgentId) -> Option<&String> {
        self.entries.get(id)
    }
}

/// Applies an update to an entry of a turn that has ended. False if the update does not fit the entry.
pub fn amend(entry: &mut ChatEntry, update: Update) -> bool {
    match (entry, update) {
        (
            ChatEntry::Assistant { content, .. } | ChatEntry::Thinking { content, .. },
            Update::Text { text, .. },
        ) => content.push_str(&text),
        (ChatEntry::ToolCall(shared), Update::ToolCall(mut patch)) => {
            // The turn has ended, so a call set to running again would never end.
            patch
                .status
                .take_if(|status| *status == ToolStatus::Running);
            let call = Arc::make_mut(shared);
            let error = call.error.take().filter(|_| patch.status.is_none());
            apply_patch(call, *patch);
            call.error = error.or(call.error.take());
        }
        _ => return false,
    }
    true
}

#[cfg(test)]
mod tests {
    use wire::{QueuedMessage, ToolCallEntry, ToolKind};

    use super::*;
    use crate::entries::Entries;
    use crate::update::ToolCallPatch;

    fn call(id: &str) -> AgentId {
        AgentId::call(id).unwrap()
    }

    fn text(author: Author, text: &str, id: Option<&str>) -> Update {
        Update::Text {
            author,
            text: text.to_owned(),
            message_id: id.map(str::to_owned),
        }
    }

    fn tool(announces: bool, status: Option<ToolStatus>) -> Update {
        Update::ToolCall(Box::new(ToolCallPatch {
            announces,
            status,
            ..ToolCallPatch::new("t1")
        }))
    }

    fn begin(entries: &mut Entries) {
        let message = QueuedMessage {
            queue_id: String::new(),
            content: "go on".to_owned(),
            images: vec![],
            request_id: None,
        };
        entries.begin_turn(&message, "now");
    }

    /// Entries after a turn with a thought, an answer of the same id and a tool call, and the begin of a second turn.
    fn next_turn() -> Entries {
        let mut entries = Entries::after(0);
        begin(&mut entries);
        entries.apply(text(Author::Thinking, "hm", Some("m1")), "now");
        entries.apply(text(Author::Assistant, "so", Some("m1")), "now");
        entries.apply(tool(true, Some(ToolStatus::Running)), "now");
        assert_eq!(
            entries.earlier(&text(Author::Assistant, "!", Some("m1"))),
            None
        );
        entries.end_turn();
        begin(&mut entries);
        entries
    }

    #[test]
    fn late_update_with_a_known_id_finds_the_entry_of_its_turn() {
        let mut entries = next_turn();
        let late = |author, id| entries.earlier(&text(author, "!", id));
        assert_eq!(late(Author::Thinking, Some("m1")).unwrap(), "e2");
        assert_eq!(late(Author::Assistant, Some("m1")).unwrap(), "e3");
        assert_eq!(late(Author::Assistant, Some("m2")), None);
        assert_eq!(late(Author::Assistant, None), None);
        let done = tool(false, Some(ToolStatus::Complete));
        assert_eq!(entries.earlier(&done).unwrap(), "e4");
        // The agent reuses the id for another call.
        let again = tool(true, Some(ToolStatus::Running));
        assert_eq!(entries.earlier(&again), None);
        entries.apply(again, "now");
        assert_eq!(entries.earlier(&done), None);
    }

    #[test]
    fn late_update_adds_a_result_to_an_ended_call_without_reopening_it() {
        let call = ToolCallEntry {
            entry_id: "e4".to_owned(),
            tool_call_id: "t1".to_owned(),
            name: "Read".to_owned(),
            kind: ToolKind::Read,
            status: ToolStatus::Error,
            result: None,
            error: Some("Stopped before it ended".to_owned()),
            content: vec![],
            locations: vec![],
            raw_input: None,
            raw_output: None,
            answer: None,
        };
        let mut entry = ChatEntry::ToolCall(Arc::new(call));
        let before = entry.clone();
        assert!(amend(&mut entry, tool(false, Some(ToolStatus::Running))));
        assert_eq!(entry, before);
        assert!(amend(&mut entry, tool(false, Some(ToolStatus::Complete))));
        let ChatEntry::ToolCall(call) = &entry else {
            panic!("{entry:?}");
        };
        assert_eq!((call.status, &call.error), (ToolStatus::Complete, &None));
        assert!(!amend(&mut entry, text(Author::Assistant, "no text", None)));
    }

    #[test]
    fn ids_beyond_the_limit_are_forgotten_oldest_first() {
        let mut earlier = Earlier::default();
        earlier.remember(call("again"), "e1".to_owned());
        for number in 0..IDS_MAX - 1 {
            earlier.remember(call(&number.to_string()), "e2".to_owned());
        }
        // An id that comes again moves to the end of the order.
        earlier.remember(call("again"), "e3".to_owned());
        assert_eq!(earlier.entry(&call("again")).unwrap(), "e3");
        assert!(earlier.entry(&call("0")).is_some());
        earlier.remember(call("one more"), "e4".to_owned());
        assert_eq!(earlier.entry(&call("0")), None);
        assert_eq!(earlier.entries.len(), IDS_MAX);
        assert_eq!(earlier.order.len(), IDS_MAX);
        assert_eq!(AgentId::call(&"x".repeat(ID_BYTES_MAX + 1)), None);
    }
}
