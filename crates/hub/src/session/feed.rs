//! From a session to whoever watches it.
//!
//! A feed belongs to one connection and carries all the sessions it has open, each in order. Pushing
//! never waits: a reader that falls too far behind, by bytes or by age, is cut off, and can come
//! back to exactly where it was.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use wire::{ChatEntry, SessionInfo};

use crate::events::Origin;
use conversation::json_bytes;

/// What may wait for one reader.
const WAITING_BYTES_MAX: usize = 8 * 1024 * 1024;
const WAITING_AGE_MAX: Duration = Duration::from_secs(30);
/// What an event costs beside its text.
const EVENT_BYTES: usize = 200;

/// Something that happened in a session.
#[derive(Debug)]
pub enum SessionEvent {
    /// The conversation from the entry numbered `first` (from 0) on.
    History {
        entries: Vec<ChatEntry>,
        first: u64,
        total: u64,
        seq: u64,
        info: Box<SessionInfo>,
        origin: Origin,
    },
    Resumed {
        seq: u64,
        /// The texts that may still grow, as they were then.
        texts: Vec<ChatEntry>,
        info: Box<SessionInfo>,
        origin: Origin,
    },
    Update {
        seq: u64,
        entry: Box<ChatEntry>,
        /// It was not there before.
        begins: bool,
        origin: Origin,
    },
    Chunk {
        seq: u64,
        entry_id: String,
        content: String,
        terminal_id: Option<String>,
    },
    Complete {
        seq: u64,
        entry_id: String,
    },
    Cancelled {
        seq: u64,
        entry_id: String,
    },
    Info(Box<SessionInfo>),
    /// What was said could not be written down and is held back.
    StoreTrouble(String),
}

impl SessionEvent {
    pub(crate) fn seq(&self) -> Option<u64> {
        match self {
            Self::Update { seq, .. }
            | Self::Chunk { seq, .. }
            | Self::Complete { seq, .. }
            | Self::Cancelled { seq, .. } => Some(*seq),
            _ => None,
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        let text = match self {
            Self::Chunk { content, .. } => content.len(),
            Self::Update { entry, .. } => entry_bytes(entry),
            _ => 0,
        };
        EVENT_BYTES + text
    }
}

fn entry_bytes(entry: &ChatEntry) -> usize {
    match entry {
        ChatEntry::User { content, .. }
        | ChatEntry::Assistant { content, .. }
        | ChatEntry::Thinking { content, .. } => content.len(),
        // Rare enough to be measured.
        other => json_bytes(other),
    }
}

/// An event on its way to a reader.
#[derive(Debug)]
pub struct Fed {
    pub session_id: Arc<str>,
    pub event: Arc<SessionEvent>,
    bytes: usize,
    since: Instant,
}

/// The reader fell too far behind.
#[derive(Debug)]
pub struct TooSlow;

#[derive(Debug, Default)]
struct Load {
    bytes: AtomicUsize,
    too_much: AtomicBool,
}

/// The writing end, given to each session the connection opens.
#[derive(Debug, Clone)]
pub struct Feed {
    connection: u64,
    sender: mpsc::UnboundedSender<Fed>,
    load: Arc<Load>,
}

#[derive(Debug)]
pub struct FeedReader {
    receiver: mpsc::UnboundedReceiver<Fed>,
    load: Arc<Load>,
}

pub fn feed(connection: u64) -> (Feed, FeedReader) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let load = Arc::<Load>::default();
    let feed = Feed {
        connection,
        sender,
        load: load.clone(),
    };
    (feed, FeedReader { receiver, load })
}

impl Feed {
    pub(crate) fn connection(&self) -> u64 {
        self.connection
    }

    /// False when nobody reads, or not fast enough.
    pub(crate) fn push(&self, session_id: &Arc<str>, event: &Arc<SessionEvent>) -> bool {
        if self.load.too_much.load(Ordering::Relaxed) {
            return false;
        }
        let bytes = event.bytes();
        if self.load.bytes.fetch_add(bytes, Ordering::Relaxed) > WAITING_BYTES_MAX {
            self.load.too_much.store(true, Ordering::Relaxed);
        }
        let fed = Fed {
            session_id: session_id.clone(),
            event: event.clone(),
            bytes,
            since: Instant::now(),
        };
        self.sender.send(fed).is_ok()
    }
}

impl FeedReader {
    pub async fn next(&mut self) -> Result<Fed, TooSlow> {
        match self.receiver.recv().await {
            Some(fed) => self.taken(fed),
            None => std::future::pending().await,
        }
    }

    /// One more, if one is waiting.
    pub fn waiting(&mut self) -> Option<Result<Fed, TooSlow>> {
        let fed = self.receiver.try_recv().ok()?;
        Some(self.taken(fed))
    }

    fn taken(&self, fed: Fed) -> Result<Fed, TooSlow> {
        self.load.bytes.fetch_sub(fed.bytes, Ordering::Relaxed);
        let late = fed.since.elapsed() > WAITING_AGE_MAX;
        match late || self.load.too_much.load(Ordering::Relaxed) {
            true => Err(TooSlow),
            false => Ok(fed),
        }
    }
}
