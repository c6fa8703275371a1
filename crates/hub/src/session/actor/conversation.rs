//! Changes of a conversation on their way to the subscribers: written, numbered, published, in that order.
//!
//! Invariant: a subscriber sees only what is written, and the beginning and the end of a turn only once they are synced.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use wire::{ChatEntry, Position, QuestionOutcome, SessionInfo, ToolStatus, TurnEntry, TurnOutcome};

use super::audience::{Audience, texts_before};
use super::command::{Page, Shown};
use super::record::Record;
use crate::error::HubError;
use crate::events::Origin;
use crate::session::feed::{Feed, SessionEvent};
use crate::session::state::stamp;
use conversation::Update;
use conversation::amend;
use conversation::json_bytes;
use conversation::{EntryChange, entry_number};
use store::transcript::{Header, Note};

/// Entries that everybody gets when all is different.
const TAIL: u64 = 200;
/// Changes that are written in one go.
const WRITTEN_AT_ONCE: usize = 128;

pub(super) struct Conversation {
    pub(super) record: Record,
    pub(super) audience: Audience,
    pending: Vec<EntryChange>,
    /// Whether a turn begins with what is pending.
    turn_begins: bool,
    /// The next user's entry answers this request.
    answers: Option<Origin>,
}

impl Conversation {
    pub(super) fn new(record: Record, audience: Audience) -> Self {
        Self {
            record,
            audience,
            pending: vec![],
            turn_begins: false,
            answers: None,
        }
    }

    /// Merges with what is waiting to be shown, if it is more of the same text, or the same entry as it is by now.
    pub(super) fn pend(&mut self, change: EntryChange) {
        match (self.pending.last_mut(), change) {
            (
                Some(EntryChange::Append { entry_id, text }),
                EntryChange::Append {
                    entry_id: next,
                    text: more,
                },
            ) if *entry_id == next => text.push_str(&more),
            // Of a question it is told that it was asked, and that it was answered.
            (
                Some(EntryChange::Begin(entry) | EntryChange::Replace(entry)),
                EntryChange::Replace(next @ (ChatEntry::ToolCall(_) | ChatEntry::Plan { .. })),
            ) if entry.entry_id() == next.entry_id() => *entry = next,
            (_, change) => self.pending.push(change),
        }
    }

    /// Whether the end of a turn is waiting to be written.
    pub(super) fn ends_turn(&self) -> bool {
        let ends = |change: &EntryChange| matches!(change, EntryChange::Begin(ChatEntry::Turn(_)));
        self.pending.iter().any(ends)
    }

    /// Changes an entry of a turn that has ended. Returns about how many bytes are held for it until it is written.
    pub(super) async fn amend(&mut self, entry_id: &str, update: Update) -> usize {
        let number = entry_number(entry_id);
        let known = self.record.in_flight().contains_key(&number);
        let entry = self.entries(number.saturating_sub(1), number).await;
        let mut entry = match entry.map(|mut entries| entries.pop()) {
            Ok(Some(entry)) => entry,
            Ok(None) => return 0,
            Err(error) => {
                tracing::error!(%error, entry_id, "could not read an entry that the agent changes late");
                return 0;
            }
        };
        if !amend(&mut entry, update) {
            return 0;
        }
        let held = if known { 0 } else { json_bytes(&entry) };
        self.pend(EntryChange::Replace(entry));
        held
    }

    pub(super) fn turn_begins(&mut self) {
        self.turn_begins = true;
    }

    pub(super) fn answers(&mut self, origin: Origin) {
        self.answers = Some(origin);
    }

    /// Writes what is pending, then shows it; if it is much, in pieces, and others have their turn in between. After an error
    /// the rest is still pending.
    pub(super) async fn commit(&mut self) -> io::Result<()> {
        while !self.pending.is_empty() {
            let count = self.pending.len().min(WRITTEN_AT_ONCE);
            self.record
                .write(&self.pending[..count], self.turn_begins)
                .await?;
            self.turn_begins = false;
            let rest = self.pending.split_off(count);
            for change in std::mem::replace(&mut self.pending, rest) {
                self.record.keep(&change);
                self.show_change(change);
            }
            if !self.pending.is_empty() {
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }

    /// What is pending was refused.
    pub(super) fn drop_pending(&mut self) {
        self.pending.clear();
        self.turn_begins = false;
        self.answers = None;
        self.record.unwrite();
    }

    fn show_change(&mut self, change: EntryChange) {
        let begins = matches!(change, EntryChange::Begin(_));
        let event = match change {
            EntryChange::Begin(entry) | EntryChange::Replace(entry) => {
                let is_users = matches!(entry, ChatEntry::User { .. });
                let origin = self.answers.take_if(|_| is_users).unwrap_or_default();
                SessionEvent::Update {
                    seq: self.audience.next_seq(),
                    entry: Box::new(entry),
                    begins,
                    origin,
                }
            }
            EntryChange::Append { entry_id, text } => SessionEvent::Chunk {
                seq: self.audience.next_seq(),
                entry_id,
                content: text,
                terminal_id: None,
            },
            EntryChange::AppendTerminal {
                entry_id,
                terminal_id,
                text,
            } => SessionEvent::Chunk {
                seq: self.audience.next_seq(),
                entry_id,
                content: text,
                terminal_id: Some(terminal_id),
            },
            EntryChange::Finish { .. } => return,
        };
        self.show(event);
    }

    pub(super) fn show(&mut self, event: SessionEvent) {
        self.audience.show(event);
    }

    pub(super) fn complete(&mut self, entry_id: String) {
        let seq = self.audience.next_seq();
        self.show(SessionEvent::Complete { seq, entry_id });
    }

    pub(super) fn cancelled(&mut self, entry_id: String) {
        let seq = self.audience.next_seq();
        self.show(SessionEvent::Cancelled { seq, entry_id });
    }

    /// To one who comes: what is new since then if we still have it, otherwise everything.
    pub(super) async fn open(
        &mut self,
        feed: &Feed,
        after: Option<Position>,
        tail: Option<u32>,
        info: SessionInfo,
        origin: Origin,
    ) -> Result<Shown, HubError> {
        let info = Box::new(info);
        if let Some(after) = after
            && let Some(missed) = self.audience.since(&after)
        {
            let resumed = SessionEvent::Resumed {
                seq: after.seq,
                texts: texts_before(&missed, self.record.in_flight()),
                info,
                origin,
            };
            self.audience.show_to(feed, Arc::new(resumed));
            for event in missed {
                self.audience.show_to(feed, event);
            }
            return Ok(Shown {
                resumed: true,
                seq: after.seq,
            });
        }
        let total = self.record.total();
        let first = tail.map_or(0, |tail| total.saturating_sub(u64::from(tail)));
        let history = SessionEvent::History {
            entries: self.entries(first, total).await?,
            first,
            total,
            seq: self.audience.seq(),
            info,
            origin,
        };
        self.audience.show_to(feed, Arc::new(history));
        Ok(Shown {
            resumed: false,
            seq: self.audience.seq(),
        })
    }

    pub(super) async fn page(&mut self, before: u64, limit: u32) -> Result<Page, HubError> {
        let total = self.record.total();
        let before = before.min(total);
        let first = before.saturating_sub(u64::from(limit));
        let entries = self.entries(first, before).await?;
        Ok(Page {
            entries,
            first,
            total,
            seq: self.audience.seq(),
        })
    }

    pub(super) async fn entries(&mut self, from: u64, to: u64) -> Result<Vec<ChatEntry>, HubError> {
        let read = self.record.entries(from, to).await;
        read.map_err(|error| HubError::SessionUnreadable(error.to_string()))
    }

    pub(super) async fn fold(&mut self) {
        if let Err(error) = self.record.fold().await {
            tracing::error!(%error, "could not finish a turn on disk");
        }
    }

    pub(super) async fn save(&mut self, note: Note) {
        if let Err(error) = self.record.save(note.clone()).await {
            tracing::error!(%error, "could not write");
            self.record.owe(note);
            self.show(SessionEvent::StoreTrouble(format!(
                "A change could not be saved yet: {error}"
            )));
        }
    }

    /// Ends a turn that an earlier process left running. Returns the new total.
    pub(super) fn interrupt(&mut self) -> u64 {
        let number = self.record.total() + 1;
        let entry = ChatEntry::Turn(TurnEntry {
            entry_id: format!("e{number}"),
            outcome: TurnOutcome::Interrupted,
            message: Some("Liminal Builder ended before the turn did".to_owned()),
            duration_ms: None,
            tokens: None,
            timestamp: stamp(Timestamp::now()),
        });
        let in_flight = self.record.in_flight_mut();
        for entry in in_flight.values_mut() {
            if let ChatEntry::ToolCall(call) = entry
                && call.status == ToolStatus::Running
            {
                let call = Arc::make_mut(call);
                call.status = ToolStatus::Error;
                call.error = Some("Stopped before it ended".to_owned());
            }
        }
        in_flight.insert(number, entry);
        number
    }

    /// Nobody is left to take an answer to what was asked before this start.
    pub(super) fn close_questions(&mut self) {
        for entry in self.record.in_flight_mut().values_mut() {
            if let ChatEntry::Question(question) = entry {
                question.outcome.get_or_insert(QuestionOutcome::Interrupted);
            }
        }
    }

    /// Another conversation takes the place of this one; whoever watches starts over.
    pub(super) async fn replace(
        &mut self,
        header: Header,
        entries: BTreeMap<u64, ChatEntry>,
        running: Option<u64>,
        kept: PathBuf,
        info: impl FnOnce() -> SessionInfo,
    ) {
        let replaced = self.record.replace(header, entries, running, kept).await;
        if let Err(error) = replaced {
            tracing::error!(%error, "could not take over what the agent knows");
            return;
        }
        let seq = self.audience.start_over();
        let total = self.record.total();
        let first = total.saturating_sub(TAIL);
        let Ok(entries) = self.entries(first, total).await else {
            return;
        };
        self.show(SessionEvent::History {
            entries,
            first,
            total,
            seq,
            info: Box::new(info()),
            origin: Origin::default(),
        });
    }
}
