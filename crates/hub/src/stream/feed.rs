//! Streams of session events to connections.
//!
//! A feed belongs to one connection and carries the events of all sessions that the connection has open,
//! each session in order. Sending never blocks: a reader whose backlog grows too large or too old is cut
//! off; it can reconnect and resume after the last event it received.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use wire::{ChatEntry, SessionInfo};

use crate::events::Origin;
use conversation::json_bytes;

/// Maximum size of the backlog of one reader; a larger one cuts the reader off.
const WAITING_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Maximum age of an event in the backlog.
const WAITING_AGE_MAX: Duration = Duration::from_secs(30);
/// Fixed size that is added to the text of each event in the backlog.
const EVENT_BYTES: usize = 200;

/// An event in the stream of a session.
#[derive(Debug)]
pub enum SessionEvent {
    /// Snapshot: the conversation from the entry with index `first` (counted from 0) on.
    History {
        entries: Vec<ChatEntry>,
        first: u64,
        total: u64,
        seq: u64,
        info: Box<SessionInfo>,
        origin: Origin,
    },
    /// The stream continues after event `seq`; the missed events follow.
    Resumed {
        seq: u64,
        /// Unfinished text entries as they were at `seq`.
        texts: Vec<ChatEntry>,
        info: Box<SessionInfo>,
        origin: Origin,
    },
    Update {
        seq: u64,
        entry: Box<ChatEntry>,
        /// Whether the entry is new.
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
    /// Message for the user: events could not be saved, so they are not shown yet.
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
        // Rare enough that measuring the JSON is cheap.
        other => json_bytes(other),
    }
}

/// An event in the backlog of a reader.
#[derive(Debug)]
pub struct QueuedEvent {
    pub session_id: Arc<str>,
    pub event: Arc<SessionEvent>,
    bytes: usize,
    queued_at: Instant,
}

/// The backlog of the reader became too large or too old; the feed has ended.
#[derive(Debug)]
pub struct TooSlow;

#[derive(Debug, Default)]
struct Load {
    bytes: AtomicUsize,
    overflowed: AtomicBool,
}

/// The sending side of a connection's stream, cloned into each session that the connection opens.
#[derive(Debug, Clone)]
pub struct Feed {
    connection: u64,
    sender: mpsc::UnboundedSender<QueuedEvent>,
    load: Arc<Load>,
}

/// The receiving side of a connection's stream.
#[derive(Debug)]
pub struct FeedReader {
    receiver: mpsc::UnboundedReceiver<QueuedEvent>,
    load: Arc<Load>,
}

/// Creates the stream of a connection.
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

    /// Adds an event to the backlog. False if the reader is gone or was cut off.
    pub(crate) fn push(&self, session_id: &Arc<str>, event: &Arc<SessionEvent>) -> bool {
        if self.load.overflowed.load(Ordering::Relaxed) {
            return false;
        }
        let bytes = event.bytes();
        if self.load.bytes.fetch_add(bytes, Ordering::Relaxed) > WAITING_BYTES_MAX {
            self.load.overflowed.store(true, Ordering::Relaxed);
        }
        let fed = QueuedEvent {
            session_id: session_id.clone(),
            event: event.clone(),
            bytes,
            queued_at: Instant::now(),
        };
        self.sender.send(fed).is_ok()
    }
}

impl FeedReader {
    /// Waits for the next event.
    pub async fn next(&mut self) -> Result<QueuedEvent, TooSlow> {
        match self.receiver.recv().await {
            Some(fed) => self.received(fed),
            None => std::future::pending().await,
        }
    }

    /// The next event of the backlog, without waiting.
    pub fn waiting(&mut self) -> Option<Result<QueuedEvent, TooSlow>> {
        let fed = self.receiver.try_recv().ok()?;
        Some(self.received(fed))
    }

    fn received(&self, fed: QueuedEvent) -> Result<QueuedEvent, TooSlow> {
        self.load.bytes.fetch_sub(fed.bytes, Ordering::Relaxed);
        let late = fed.queued_at.elapsed() > WAITING_AGE_MAX;
        match late || self.load.overflowed.load(Ordering::Relaxed) {
            true => Err(TooSlow),
            false => Ok(fed),
        }
    }
}
