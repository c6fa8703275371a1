//! The subscribers of a session, and the recent events for subscribers that reconnect.
//!
//! Invariant: numbered events are sent in the order of their numbers, without gaps.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use wire::{ChatEntry, Position};

use super::feed::{Feed, SessionEvent};

/// Maximum size of the events kept for reconnecting subscribers.
const RECENT_BYTES_MAX: usize = 128 * 1024;

pub(crate) struct Subscribers {
    session_id: Arc<str>,
    boot_id: Arc<str>,
    seq: u64,
    recent: VecDeque<Arc<SessionEvent>>,
    recent_bytes: usize,
    feeds: Vec<Feed>,
}

impl Subscribers {
    pub(crate) fn new(session_id: Arc<str>, boot_id: Arc<str>) -> Self {
        Self {
            session_id,
            boot_id,
            seq: 0,
            recent: VecDeque::new(),
            recent_bytes: 0,
            feeds: vec![],
        }
    }

    /// The number of the last event.
    pub(crate) fn seq(&self) -> u64 {
        self.seq
    }

    pub(crate) fn next_seq(&mut self) -> u64 {
        self.seq += 1;
        self.seq
    }

    /// Sends an event to all subscribers.
    pub(crate) fn publish(&mut self, event: SessionEvent) {
        let event = Arc::new(event);
        if event.seq().is_some() {
            self.recent_bytes += event.bytes();
            self.recent.push_back(event.clone());
            while self.recent_bytes > RECENT_BYTES_MAX {
                match self.recent.pop_front() {
                    Some(old) => self.recent_bytes -= old.bytes(),
                    None => break,
                }
            }
        }
        let id = &self.session_id;
        self.feeds.retain(|feed| feed.push(id, &event));
    }

    /// Sends an event to one subscriber.
    pub(crate) fn send_to(&self, feed: &Feed, event: Arc<SessionEvent>) {
        feed.push(&self.session_id, &event);
    }

    /// Adds a subscriber. It replaces an earlier feed of the same connection.
    pub(crate) fn add(&mut self, feed: Feed) {
        self.remove(feed.connection());
        self.feeds.push(feed);
    }

    pub(crate) fn remove(&mut self, connection: u64) {
        self.feeds.retain(|feed| feed.connection() != connection);
    }

    pub(crate) fn has(&self, connection: u64) -> bool {
        self.feeds
            .iter()
            .any(|feed| feed.connection() == connection)
    }

    /// The events after `after`; `None` if some of them are no longer kept or the position is of another epoch.
    pub(crate) fn since(&self, after: &Position) -> Option<Vec<Arc<SessionEvent>>> {
        if after.boot_id != *self.boot_id || after.seq > self.seq {
            return None;
        }
        let missed: Vec<_> = self
            .recent
            .iter()
            .filter(|event| event.seq().is_some_and(|seq| seq > after.seq))
            .cloned()
            .collect();
        (missed.len() as u64 == self.seq - after.seq).then_some(missed)
    }

    /// Discards the recent events after the conversation was replaced. The numbering continues, so that a client cannot
    /// mistake the new conversation for the one it has.
    pub(crate) fn start_over(&mut self) -> u64 {
        self.recent.clear();
        self.recent_bytes = 0;
        self.next_seq()
    }
}

/// The unfinished text entries as they were before the `missed` events.
pub(crate) fn texts_before(
    missed: &[Arc<SessionEvent>],
    in_flight: &BTreeMap<u64, ChatEntry>,
) -> Vec<ChatEntry> {
    let mut texts = vec![];
    for entry in in_flight.values() {
        let mut before = entry.clone();
        let (ChatEntry::Assistant { content, .. } | ChatEntry::Thinking { content, .. }) =
            &mut before
        else {
            continue;
        };
        let mut later = 0;
        let mut begun = false;
        for event in missed {
            match &**event {
                SessionEvent::Update { entry: began, .. } => {
                    begun |= began.entry_id() == entry.entry_id();
                }
                SessionEvent::Chunk {
                    entry_id, content, ..
                } if entry_id == entry.entry_id() => later += content.len(),
                _ => {}
            }
        }
        if !begun {
            content.truncate(content.len() - later);
            texts.push(before);
        }
    }
    texts
}
