//! The conversation of a session: each change is written, numbered and published, in that order.
//!
//! A disk that cannot be written stalls the log: changes stay pending until a retry succeeds, and reading works.
//!
//! Invariants: a subscriber sees only what is written, and the beginning and the end of a turn only once they are
//! synced. A refused change is neither on disk nor published.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;
use wire::{ChatEntry, Position, QuestionOutcome, SessionInfo, ToolStatus, TurnEntry, TurnOutcome};

use super::command::{Page, Shown, Subscribe};
use super::record::Record;
use crate::error::HubError;
use crate::events::Origin;
use crate::session::state::stamp;
use crate::stream::{Feed, SessionEvent, Subscribers, texts_before};
use conversation::Update;
use conversation::amend;
use conversation::json_bytes;
use conversation::{EntryChange, entry_number};
use store::Audit;
use store::transcript::{Header, Note};

/// Number of entries in the snapshot that subscribers get after the conversation was replaced.
const TAIL: u64 = 200;
/// Maximum changes per write.
const WRITTEN_AT_ONCE: usize = 128;
/// Delay between attempts to write to a failing disk.
const WRITE_RETRY_DELAY: Duration = Duration::from_secs(1);
/// How long the end of a turn waits for the audit log to be synced.
const AUDIT_DEADLINE: Duration = Duration::from_secs(2);

pub(super) struct Log {
    record: Record,
    subscribers: Subscribers,
    audit: Audit,
    pending: Vec<EntryChange>,
    /// Whether the pending changes begin a turn.
    turn_begins: bool,
    /// The request that the next entry of the user responds to.
    answers: Option<Origin>,
    stalled: Option<Stalled>,
}

/// The disk refused the pending changes.
struct Stalled {
    error: Arc<io::Error>,
    retry_at: Instant,
}

impl Log {
    pub(super) fn new(record: Record, subscribers: Subscribers, audit: Audit) -> Self {
        Self {
            record,
            subscribers,
            audit,
            pending: vec![],
            turn_begins: false,
            answers: None,
            stalled: None,
        }
    }

    /// The number of entries.
    pub(super) fn total(&self) -> u64 {
        self.record.total()
    }

    /// Whether an event was published since the server started.
    pub(super) fn has_published(&self) -> bool {
        self.subscribers.seq() > 0
    }

    pub(super) fn is_stalled(&self) -> bool {
        self.stalled.is_some()
    }

    /// The disk's error, if the log is stalled.
    pub(super) fn stalled(&self) -> Option<Arc<io::Error>> {
        self.stalled.as_ref().map(|stalled| stalled.error.clone())
    }

    /// The time of the next attempt to write, if the log is stalled.
    pub(super) fn retry_at(&self) -> Option<Instant> {
        self.stalled.as_ref().map(|stalled| stalled.retry_at)
    }

    /// Begins a turn: syncs and publishes its first entries. After an error nothing has changed.
    pub(super) async fn begin_turn(
        &mut self,
        changes: Vec<EntryChange>,
        origin: Origin,
    ) -> io::Result<()> {
        self.turn_follows(changes);
        self.answers = Some(origin);
        let written = self.write_pending().await;
        if written.is_err() {
            self.drop_pending();
        }
        written
    }

    /// Queues the first entries of a turn for the next commit.
    pub(super) fn turn_follows(&mut self, changes: Vec<EntryChange>) {
        self.turn_begins = true;
        self.answers = Some(Origin::default());
        for change in changes {
            self.change(change);
        }
    }

    /// Queues a change for the next commit, merged with the last pending one if both append to one text or the new one
    /// replaces the same tool call or plan.
    pub(super) fn change(&mut self, change: EntryChange) {
        match (self.pending.last_mut(), change) {
            (
                Some(EntryChange::Append { entry_id, text }),
                EntryChange::Append {
                    entry_id: next,
                    text: more,
                },
            ) if *entry_id == next => text.push_str(&more),
            // Only these two: of an elicitation, subscribers must see both that it was opened and that it was closed.
            (
                Some(EntryChange::Begin(entry) | EntryChange::Replace(entry)),
                EntryChange::Replace(next @ (ChatEntry::ToolCall(_) | ChatEntry::Plan { .. })),
            ) if entry.entry_id() == next.entry_id() => *entry = next,
            (_, change) => self.pending.push(change),
        }
    }

    /// Whether a pending change ends the turn.
    fn ends_turn(&self) -> bool {
        let ends = |change: &EntryChange| matches!(change, EntryChange::Begin(ChatEntry::Turn(_)));
        self.pending.iter().any(ends)
    }

    /// Changes an entry of a turn that has ended. Returns the approximate number of bytes held in memory until it is
    /// written.
    pub(super) async fn amend(&mut self, entry_id: &str, update: Update) -> usize {
        let number = entry_number(entry_id);
        let known = self.record.in_flight().contains_key(&number);
        let entry = self.entries(number.saturating_sub(1), number).await;
        let mut entry = match entry.map(|mut entries| entries.pop()) {
            Ok(Some(entry)) => entry,
            Ok(None) => return 0,
            Err(error) => {
                tracing::error!(%error, entry_id, "could not read an entry of an earlier turn to apply the agent's update");
                return 0;
            }
        };
        if !amend(&mut entry, update) {
            return 0;
        }
        let held = if known { 0 } else { json_bytes(&entry) };
        self.change(EntryChange::Replace(entry));
        held
    }

    /// Writes and publishes pending changes. False if the disk refuses them: the log is stalled until a later attempt
    /// succeeds.
    pub(super) async fn commit(&mut self) -> bool {
        if self.stalled.is_none() && self.ends_turn() {
            // The audit log has everything that was allowed in a turn before a client sees its end. A disk that hangs
            // delays the write below anyway.
            let _ = tokio::time::timeout(AUDIT_DEADLINE, self.audit.flush()).await;
        }
        match self.write_pending().await {
            Ok(()) => self.stalled = None,
            Err(error) => self.stall(error),
        }
        self.stalled.is_none()
    }

    fn stall(&mut self, error: io::Error) {
        tracing::error!(%error, "could not write changes of the conversation; retrying");
        if self.stalled.is_none() {
            self.publish(write_failed(&error));
        }
        self.stalled = Some(Stalled {
            error: Arc::new(error),
            retry_at: Instant::now() + WRITE_RETRY_DELAY,
        });
    }

    /// Writes pending changes, then publishes them; in batches, so that other tasks run in between. After an error the
    /// remaining changes are still pending.
    async fn write_pending(&mut self) -> io::Result<()> {
        while !self.pending.is_empty() {
            let count = self.pending.len().min(WRITTEN_AT_ONCE);
            self.record
                .write(&self.pending[..count], self.turn_begins)
                .await?;
            self.turn_begins = false;
            let rest = self.pending.split_off(count);
            for change in std::mem::replace(&mut self.pending, rest) {
                self.record.apply(&change);
                self.publish_change(change);
            }
            if !self.pending.is_empty() {
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }

    /// Discards pending changes that could not be written.
    fn drop_pending(&mut self) {
        self.pending.clear();
        self.turn_begins = false;
        self.answers = None;
        self.record.revert_last_write();
    }

    fn publish_change(&mut self, change: EntryChange) {
        let begins = matches!(change, EntryChange::Begin(_));
        let event = match change {
            EntryChange::Begin(entry) | EntryChange::Replace(entry) => {
                let is_users = matches!(entry, ChatEntry::User { .. });
                let origin = self.answers.take_if(|_| is_users).unwrap_or_default();
                SessionEvent::Update {
                    seq: self.subscribers.next_seq(),
                    entry: Box::new(entry),
                    begins,
                    origin,
                }
            }
            EntryChange::Append { entry_id, text } => SessionEvent::Chunk {
                seq: self.subscribers.next_seq(),
                entry_id,
                content: text,
                terminal_id: None,
            },
            EntryChange::AppendTerminal {
                entry_id,
                terminal_id,
                text,
            } => SessionEvent::Chunk {
                seq: self.subscribers.next_seq(),
                entry_id,
                content: text,
                terminal_id: Some(terminal_id),
            },
            EntryChange::Finish { .. } => return,
        };
        self.publish(event);
    }

    pub(super) fn publish(&mut self, event: SessionEvent) {
        self.subscribers.publish(event);
    }

    pub(super) fn complete(&mut self, entry_id: String) {
        let seq = self.subscribers.next_seq();
        self.publish(SessionEvent::Complete { seq, entry_id });
    }

    pub(super) fn cancelled(&mut self, entry_id: String) {
        let seq = self.subscribers.next_seq();
        self.publish(SessionEvent::Cancelled { seq, entry_id });
    }

    /// Sends a subscriber the snapshot or the missed events that it requested, then adds it.
    pub(super) async fn subscribe(
        &mut self,
        feed: Feed,
        how: Subscribe,
        info: SessionInfo,
    ) -> Result<Shown, HubError> {
        let mut shown = Shown {
            resumed: false,
            seq: self.subscribers.seq(),
        };
        match how {
            Subscribe::Open {
                after,
                tail,
                origin,
            } => {
                shown = self.open(&feed, after, tail, info, origin).await?;
                if let Some(stalled) = &self.stalled {
                    let failed = Arc::new(write_failed(&stalled.error));
                    self.subscribers.send_to(&feed, failed);
                }
                self.subscribers.add(feed);
            }
            Subscribe::Follow if self.subscribers.has(feed.connection()) => {}
            Subscribe::Follow => self.subscribers.add(feed),
        }
        Ok(shown)
    }

    pub(super) fn unsubscribe(&mut self, connection: u64) {
        self.subscribers.remove(connection);
    }

    /// Sends a new subscriber the events after `after` if they are still kept, otherwise a snapshot.
    async fn open(
        &mut self,
        feed: &Feed,
        after: Option<Position>,
        tail: Option<u32>,
        info: SessionInfo,
        origin: Origin,
    ) -> Result<Shown, HubError> {
        let info = Box::new(info);
        if let Some(after) = after
            && let Some(missed) = self.subscribers.since(&after)
        {
            let resumed = SessionEvent::Resumed {
                seq: after.seq,
                texts: texts_before(&missed, self.record.in_flight()),
                info,
                origin,
            };
            self.subscribers.send_to(feed, Arc::new(resumed));
            for event in missed {
                self.subscribers.send_to(feed, event);
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
            seq: self.subscribers.seq(),
            info,
            origin,
        };
        self.subscribers.send_to(feed, Arc::new(history));
        Ok(Shown {
            resumed: false,
            seq: self.subscribers.seq(),
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
            seq: self.subscribers.seq(),
        })
    }

    pub(super) async fn entries(&mut self, from: u64, to: u64) -> Result<Vec<ChatEntry>, HubError> {
        let read = self.record.entries(from, to).await;
        read.map_err(|error| HubError::SessionUnreadable(error.to_string()))
    }

    /// Moves finished entries from the live log to the transcript.
    pub(super) async fn fold(&mut self) {
        if let Err(error) = self.record.fold().await {
            tracing::error!(%error, "could not move finished entries from the live log to the transcript");
        }
    }

    /// Rewrites the live log if that makes it much shorter.
    pub(super) async fn shorten(&mut self) {
        self.record.shorten().await;
    }

    /// Saves a note. After an error nothing has changed.
    pub(super) async fn save_now(&mut self, note: Note) -> io::Result<()> {
        self.record.save(note).await
    }

    /// Saves a note; after an error it is saved later.
    pub(super) async fn save(&mut self, note: Note) {
        if let Err(error) = self.record.save(note.clone()).await {
            tracing::error!(%error, "could not write a note to the transcript");
            self.record.save_later(note);
            self.publish(SessionEvent::StoreTrouble(format!(
                "A change of this session could not be saved yet: {error}. It is saved with the next change."
            )));
        }
    }

    /// Moves the entries in flight to the transcript, at the end of the session's task.
    pub(super) async fn fold_rest(&mut self) {
        if !self.record.in_flight().is_empty() {
            self.fold().await;
        }
    }

    /// Ends the turn that was running when an earlier server process ended. Returns the new number of entries.
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

    /// Closes elicitations from before this start: the agent process that would receive an answer has ended.
    pub(super) fn close_elicitations(&mut self) {
        for entry in self.record.in_flight_mut().values_mut() {
            if let ChatEntry::Question(question) = entry {
                question.outcome.get_or_insert(QuestionOutcome::Interrupted);
            }
        }
    }

    /// Replaces the conversation; subscribers get a snapshot of the new one.
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
            tracing::error!(%error, "could not replace the transcript with the agent's replay");
            return;
        }
        let seq = self.subscribers.start_over();
        let total = self.record.total();
        let first = total.saturating_sub(TAIL);
        let Ok(entries) = self.entries(first, total).await else {
            return;
        };
        self.publish(SessionEvent::History {
            entries,
            first,
            total,
            seq,
            info: Box::new(info()),
            origin: Origin::default(),
        });
    }
}

fn write_failed(error: &io::Error) -> SessionEvent {
    SessionEvent::StoreTrouble(format!(
        "New messages cannot be saved: {error}. They are shown as soon as the disk can be written."
    ))
}
