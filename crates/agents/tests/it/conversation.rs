//! Conversion of recorded agent updates to entries of a conversation.

use agents::from_acp::read;
use conversation::{Entries, EntryChange, extend};
use conversation::{SessionChange, ToolCallPatch, Update};
use proptest::prelude::*;
use wire::{
    Author, ChatEntry, ContextUsage, PlanItem, PlanPriority, PlanStatus, ToolCallEntry,
    ToolContent, ToolStatus,
};

const NOW: &str = "2026-01-01T00:00:00.000Z";

/// The entries of a client, maintained from changes as the wire protocol requires.
#[derive(Default)]
struct Shown {
    entries: Vec<ChatEntry>,
    open: Option<String>,
}

impl Shown {
    fn take(&mut self, change: EntryChange) {
        match change {
            EntryChange::Begin(entry) => {
                assert!(
                    self.find(entry.entry_id()).is_none(),
                    "{} began twice",
                    entry.entry_id()
                );
                assert_eq!(self.open, None, "an entry began while text was open");
                let streams = matches!(
                    entry,
                    ChatEntry::User { .. }
                        | ChatEntry::Assistant { .. }
                        | ChatEntry::Thinking { .. }
                );
                self.open = streams.then(|| entry.entry_id().to_owned());
                self.entries.push(entry);
            }
            EntryChange::Append { entry_id, text } => {
                assert_eq!(
                    self.open.as_deref(),
                    Some(entry_id.as_str()),
                    "text for an entry that is not open"
                );
                match self.find(&entry_id) {
                    Some(
                        ChatEntry::User { content, .. }
                        | ChatEntry::Assistant { content, .. }
                        | ChatEntry::Thinking { content, .. },
                    ) => content.push_str(&text),
                    other => panic!("text for {other:?}"),
                }
            }
            change @ EntryChange::AppendTerminal { .. } => {
                let EntryChange::AppendTerminal { entry_id, .. } = &change else {
                    unreachable!()
                };
                let entry = self
                    .find(entry_id)
                    .expect("output for an entry that is there");
                extend(entry, &change);
            }
            EntryChange::Replace(entry) => match self.find(entry.entry_id()) {
                Some(known) => *known = entry,
                None => panic!("{} was replaced before it began", entry.entry_id()),
            },
            EntryChange::Finish { entry_id } => assert_eq!(self.open.take(), Some(entry_id)),
        }
    }

    fn find(&mut self, id: &str) -> Option<&mut ChatEntry> {
        self.entries.iter_mut().find(|entry| entry.entry_id() == id)
    }

    fn tool_call(&self, id: &str) -> &ToolCallEntry {
        let found = self.entries.iter().find_map(|entry| match entry {
            ChatEntry::ToolCall(call) if call.tool_call_id == id => Some(call),
            _ => None,
        });
        found.expect("a tool call of that id")
    }
}

fn fold(updates: impl IntoIterator<Item = Update>) -> Shown {
    let (mut entries, mut shown) = (Entries::after(0), Shown::default());
    for update in updates {
        for change in entries.apply(update, NOW) {
            shown.take(change);
        }
    }
    for change in entries.end_turn() {
        shown.take(change);
    }
    assert_eq!(shown.open, None);
    shown
}

fn text(author: Author, text: &str) -> Update {
    Update::Text {
        author,
        text: text.to_owned(),
        message_id: None,
    }
}

fn tool(id: &str, patch: ToolCallPatch) -> Update {
    Update::ToolCall(Box::new(ToolCallPatch {
        tool_call_id: id.to_owned(),
        ..patch
    }))
}

fn status(status: ToolStatus) -> ToolCallPatch {
    ToolCallPatch {
        status: Some(status),
        ..ToolCallPatch::default()
    }
}

#[test]
fn turn_with_every_kind_of_update_becomes_entries() {
    let lines = include_str!("../fixtures/turn.jsonl").lines();
    let updates = lines.map(|line| {
        let (session, update) = read(line).unwrap();
        assert_eq!(session, "s1");
        update
    });
    let entries = fold(updates).entries;
    insta::assert_snapshot!(serde_json::to_string_pretty(&entries).unwrap());
}

#[test]
fn text_thought_call_and_text_become_four_entries_in_order() {
    let shown = fold([
        text(Author::Assistant, "a"),
        text(Author::Thinking, "b"),
        tool("t", status(ToolStatus::Complete)),
        text(Author::Assistant, "c"),
    ]);
    let kinds: Vec<_> = shown
        .entries
        .iter()
        .map(|entry| serde_json::to_value(entry).unwrap()["type"].clone())
        .collect();
    assert_eq!(kinds, ["assistant", "thinking", "tool-call", "assistant"]);
}

#[test]
fn tool_call_statuses_map_to_the_wire_statuses() {
    let line = |status: &str| {
        format!(
            r#"{{"sessionId":"s","update":{{"sessionUpdate":"tool_call","toolCallId":"t","title":"x","status":"{status}"}}}}"#
        )
    };
    for (theirs, ours) in [
        ("pending", ToolStatus::Running),
        ("in_progress", ToolStatus::Running),
        ("completed", ToolStatus::Complete),
        ("failed", ToolStatus::Error),
    ] {
        let Update::ToolCall(patch) = read(&line(theirs)).unwrap().1 else {
            panic!("not a tool call")
        };
        assert_eq!(patch.status, Some(ours), "{theirs}");
    }
}

#[test]
fn unannounced_tool_call_begins_with_its_first_update() {
    let shown = fold([tool(
        "t",
        ToolCallPatch {
            title: Some("Read".into()),
            ..status(ToolStatus::Complete)
        },
    )]);
    assert_eq!(
        (
            shown.tool_call("t").name.as_str(),
            shown.tool_call("t").status
        ),
        ("Read", ToolStatus::Complete)
    );
}

#[test]
fn tool_call_that_ends_with_empty_content_keeps_its_content() {
    let content = vec![ToolContent::Text {
        text: "output".into(),
    }];
    let shown = fold([
        tool(
            "t",
            ToolCallPatch {
                content: Some(content.clone()),
                ..ToolCallPatch::default()
            },
        ),
        tool(
            "t",
            ToolCallPatch {
                content: Some(vec![]),
                ..status(ToolStatus::Complete)
            },
        ),
    ]);
    assert_eq!(
        (
            &shown.tool_call("t").content,
            shown.tool_call("t").result.as_deref()
        ),
        (&content, Some("output"))
    );
}

#[test]
fn update_of_an_earlier_call_does_not_split_the_open_text() {
    let shown = fold([
        tool("t", status(ToolStatus::Running)),
        text(Author::Assistant, "one "),
        tool("t", status(ToolStatus::Complete)),
        text(Author::Assistant, "two"),
    ]);
    assert_eq!(shown.entries.len(), 2);
}

#[test]
fn running_call_fails_at_the_end_of_the_turn_and_can_be_updated_later() {
    let (mut entries, mut shown) = (Entries::after(0), Shown::default());
    let mut changes = entries.apply(tool("t", status(ToolStatus::Running)), NOW);
    changes.extend(entries.end_turn());
    changes.into_iter().for_each(|change| shown.take(change));
    assert_eq!(
        shown.tool_call("t").error.as_deref(),
        Some("Stopped before it ended")
    );
    for change in entries.apply(tool("t", status(ToolStatus::Complete)), NOW) {
        shown.take(change);
    }
    assert_eq!(
        (
            shown.tool_call("t").status,
            shown.tool_call("t").error.clone()
        ),
        (ToolStatus::Complete, None)
    );
    assert_eq!(shown.entries.len(), 1);
}

#[test]
fn replayed_interruption_is_no_user_message_and_separates_messages() {
    let shown = fold([
        text(Author::User, "one"),
        Update::Interruption,
        text(Author::User, "two"),
    ]);
    assert_eq!(shown.entries.len(), 2);
    let line = r#"{"sessionId":"s","update":{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"[Request interrupted by user for tool use]\n"}}}"#;
    assert_eq!(read(line).unwrap().1, Update::Interruption);
}

#[test]
fn empty_text_neither_begins_nor_ends_an_entry() {
    let shown = fold([
        text(Author::Assistant, ""),
        text(Author::Assistant, "a"),
        text(Author::Thinking, ""),
        text(Author::Assistant, "b"),
    ]);
    assert_eq!(shown.entries.len(), 1);
}

#[test]
fn new_entries_are_numbered_after_existing_ones() {
    let changes = Entries::after(41).apply(text(Author::User, "hi"), NOW);
    assert!(matches!(&changes[0], EntryChange::Begin(entry) if entry.entry_id() == "e42"));
}

#[test]
fn terminal_output_is_limited_to_its_last_mebibyte() {
    let chunk = "é".repeat(100_000);
    let output = ToolCallPatch {
        terminal_output: Some(chunk),
        ..ToolCallPatch::default()
    };
    let mut updates = vec![tool("t", output); 12];
    updates.push(tool(
        "t",
        ToolCallPatch {
            terminal_output: Some("end".into()),
            ..ToolCallPatch::default()
        },
    ));
    let shown = fold(updates);
    let [ToolContent::Terminal { output, .. }] = shown.tool_call("t").content.as_slice() else {
        panic!("a terminal")
    };
    assert!(output.len() <= 1024 * 1024 && output.ends_with("éend"));
}

#[test]
fn unknown_update_keeps_its_kind_and_malformed_update_is_an_error() {
    let unknown = r#"{"sessionId":"s","update":{"sessionUpdate":"sparkle","n":1}}"#;
    assert_eq!(
        read(unknown),
        Ok((
            "s".to_owned(),
            Update::Unknown {
                kind: "sparkle".to_owned()
            }
        ))
    );
    for nonsense in [
        "",
        "{}",
        "[]",
        "null",
        r#"{"sessionId":7}"#,
        r#"{"sessionId":"s","update":{}}"#,
    ] {
        assert!(read(nonsense).is_err(), "{nonsense}");
    }
}

#[test]
fn session_updates_do_not_change_the_conversation() {
    let usage = r#"{"sessionId":"s","update":{"sessionUpdate":"usage_update","used":5,"size":10}}"#;
    let (_, update) = read(usage).unwrap();
    assert_eq!(
        update,
        Update::Session(SessionChange::Usage(ContextUsage {
            used: 5,
            size: 10,
            cost: None
        }))
    );
    assert!(Entries::after(0).apply(update, NOW).is_empty());
}

/// Any update an agent may send.
fn any_update() -> impl Strategy<Value = Update> {
    let author = prop_oneof![
        Just(Author::User),
        Just(Author::Assistant),
        Just(Author::Thinking)
    ];
    let message_id = prop::option::of(prop_oneof![Just("m1".to_owned()), Just("m2".to_owned())]);
    let words =
        (author, "[a-z]{1,4}", message_id).prop_map(|(author, text, message_id)| Update::Text {
            author,
            text,
            message_id,
        });
    let a_status = prop::option::of(prop_oneof![
        Just(ToolStatus::Running),
        Just(ToolStatus::Complete),
        Just(ToolStatus::Error)
    ]);
    let call = ("t[1-4]", a_status, prop::option::of("[a-z]{0,3}")).prop_map(
        |(id, status, terminal_output)| {
            tool(
                &id,
                ToolCallPatch {
                    status,
                    terminal_output,
                    ..ToolCallPatch::default()
                },
            )
        },
    );
    let item = |content| PlanItem {
        content,
        priority: PlanPriority::Low,
        status: PlanStatus::Pending,
    };
    let plan = "[a-z]{1,3}".prop_map(move |content| Update::Plan(vec![item(content)]));
    let other = prop_oneof![
        Just(Update::Session(SessionChange::Mode("m".into()))),
        Just(Update::Unknown { kind: "x".into() }),
    ];
    prop_oneof![5 => words, 3 => call, 1 => plan, 1 => other]
}

proptest! {
    #[test]
    fn any_order_of_updates_gives_ordered_and_complete_entries(updates in prop::collection::vec(any_update(), 0..60)) {
        // `Shown` panics on text without an open entry, duplicate entries, and replacements of unknown entries.
        let shown = fold(updates.clone());
        let said = |wanted: Author| -> String {
            updates.iter().filter_map(|update| match update {
                Update::Text { author, text, .. } if *author == wanted => Some(text.as_str()),
                _ => None,
            }).collect()
        };
        let shown_text = |wanted: Author| -> String {
            shown.entries.iter().filter_map(|entry| match (entry, wanted) {
                (ChatEntry::User { content, .. }, Author::User)
                | (ChatEntry::Assistant { content, .. }, Author::Assistant)
                | (ChatEntry::Thinking { content, .. }, Author::Thinking) => Some(content.as_str()),
                _ => None,
            }).collect()
        };
        for author in [Author::User, Author::Assistant, Author::Thinking] {
            prop_assert_eq!(said(author), shown_text(author));
        }
        let mut calls: Vec<&str> = vec![];
        for update in &updates {
            if let Update::ToolCall(patch) = update && !calls.contains(&patch.tool_call_id.as_str()) {
                calls.push(&patch.tool_call_id);
            }
        }
        let shown_calls: Vec<&str> = shown.entries.iter().filter_map(|entry| match entry {
            ChatEntry::ToolCall(call) => Some(call.tool_call_id.as_str()),
            _ => None,
        }).collect();
        prop_assert_eq!(calls, shown_calls);
        let running = |entry: &ChatEntry| matches!(entry, ChatEntry::ToolCall(call) if call.status == ToolStatus::Running);
        prop_assert!(!shown.entries.iter().any(running));
        let ids: Vec<String> = shown.entries.iter().map(|entry| entry.entry_id().to_owned()).collect();
        let numbered: Vec<String> = (1..=ids.len()).map(|number| format!("e{number}")).collect();
        prop_assert_eq!(ids, numbered);
    }
}
