//! The audit: permissions, refusals, writes and commands of agents, one JSON line each, readable by its owner only.
//!
//! What was allowed is in `audit.jsonl`, what was refused in `audit.refused.jsonl`, so that refusals, which an agent can
//! cause without limit, never push out what it has done. One thread owns both files: `writer` appends and rotates, `chain`
//! connects the lines, `repetition` counts events that happen again, `check` reports on the files. Recording never blocks:
//! if the disk is slower than the agents, lines are dropped and their number is recorded. Contents of files are never
//! recorded.
//!
//! Invariant: after `flush` every earlier event is durable, as a line of its own or in the count of one, or was dropped.

mod chain;
mod check;
mod repetition;
mod writer;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

use crate::names;
pub use check::check_audit;
use repetition::{Counted, Event, Repetition};
use writer::Writer;

const FILE_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Maximum queued lines. Refusals may use half of it only, so that they do not displace what was allowed.
const WAITING_MAX: usize = 1024;
/// Maximum bytes between two syncs.
const UNSYNCED_BYTES_MAX: u64 = 256 * 1024;
/// Number of different refusals that are remembered to count their repetition.
const REFUSALS_REMEMBERED: usize = 256;

/// A handle of the audit. Its thread ends when the last clone is dropped.
#[derive(Clone)]
pub struct Audit {
    lines: mpsc::Sender<Message>,
    lost: Arc<Lost>,
    /// Events passed to the thread, and events whose line is durable or dropped.
    recorded: Arc<AtomicU64>,
    settled: Arc<AtomicU64>,
}

/// Events that were dropped and not yet recorded as lost.
#[derive(Default)]
struct Lost {
    allowed: AtomicU64,
    refused: AtomicU64,
}

impl Lost {
    fn of(&self, refused: bool) -> &AtomicU64 {
        match refused {
            true => &self.refused,
            false => &self.allowed,
        }
    }
}

enum Message {
    Event { event: Event, refused: bool },
    Flush(oneshot::Sender<()>),
}

impl Audit {
    /// Opens the file at this path for appending, and restricts its permissions to its owner. Refusals are written
    /// beside it.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::open_with_limit(path, FILE_BYTES_MAX)
    }

    fn open_with_limit(path: &Path, limit: u64) -> io::Result<Self> {
        let file = |name| path.with_file_name(name);
        let before = file(names::AUDIT_BEFORE);
        let mut allowed = Stream {
            writer: Some(Writer::open(path, &before, limit)?),
            path: path.to_owned(),
            before,
            limit,
            repetition: Repetition::of(1),
        };
        let mut refused = Stream {
            // Created with the first refusal.
            writer: None,
            path: file(names::AUDIT_REFUSED),
            before: file(names::AUDIT_REFUSED_BEFORE),
            limit,
            repetition: Repetition::of(REFUSALS_REMEMBERED),
        };
        let (lines, mut waiting) = mpsc::channel(WAITING_MAX);
        let (lost, settled) = (Arc::<Lost>::default(), Arc::<AtomicU64>::default());
        let (missing, done_with) = (lost.clone(), settled.clone());
        std::thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || {
                let (mut batch, mut handled) = (vec![], 0);
                while waiting.blocking_recv_many(&mut batch, WAITING_MAX) > 0 {
                    let mut flushed = vec![];
                    for message in batch.drain(..) {
                        match message {
                            Message::Event {
                                event,
                                refused: false,
                            } => {
                                handled += 1;
                                allowed.take(event, &missing.allowed);
                            }
                            Message::Event { event, .. } => {
                                handled += 1;
                                refused.take(event, &missing.refused);
                            }
                            Message::Flush(done) => flushed.push(done),
                        }
                    }
                    for (stream, lost) in [
                        (&mut allowed, &missing.allowed),
                        (&mut refused, &missing.refused),
                    ] {
                        stream.settle(!flushed.is_empty(), lost);
                    }
                    let pending = allowed.repetition.pending() + refused.repetition.pending();
                    done_with.store(handled - pending, Ordering::Release);
                    for done in flushed {
                        let _ = done.send(());
                    }
                }
                allowed.settle(true, &missing.allowed);
                refused.settle(true, &missing.refused);
            })?;
        Ok(Self {
            lines,
            lost,
            recorded: Arc::default(),
            settled,
        })
    }

    /// Records an event: an object, which is a refusal if it has a field `refused`.
    pub fn record(&self, session_id: &str, event: &impl Serialize) {
        let Some((event, refused)) = line_of(session_id, event) else {
            self.lost.allowed.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let is_displaced = refused && self.lines.capacity() <= WAITING_MAX / 2;
        let message = Message::Event { event, refused };
        match !is_displaced && self.lines.try_send(message).is_ok() {
            true => self.recorded.fetch_add(1, Ordering::Relaxed),
            false => self.lost.of(refused).fetch_add(1, Ordering::Relaxed),
        };
    }

    /// Waits until every earlier event is durable or was dropped.
    pub async fn flush(&self) {
        if self.recorded.load(Ordering::Relaxed) <= self.settled.load(Ordering::Acquire) {
            return;
        }
        let (done, written) = oneshot::channel();
        if self.lines.send(Message::Flush(done)).await.is_ok() {
            let _ = written.await;
        }
    }
}

/// An event as the fields of its line, and whether it is a refusal.
fn line_of(session_id: &str, event: &impl Serialize) -> Option<(Event, bool)> {
    #[derive(Deserialize)]
    struct Refusal {
        refused: Option<IgnoredAny>,
    }
    let session_id = serde_json::to_string(session_id).ok()?;
    let object = serde_json::to_string(event).ok()?;
    let refused = serde_json::from_str::<Refusal>(&object)
        .ok()?
        .refused
        .is_some();
    let fields = object.strip_prefix('{')?.strip_suffix('}')?;
    let event = Event {
        at: now(),
        fields: format!("\"sessionId\":{session_id},{fields}"),
    };
    Some((event, refused))
}

fn now() -> String {
    jiff::Timestamp::now()
        .strftime("%Y-%m-%dT%H:%M:%S.%3fZ")
        .to_string()
}

/// One of the two files, with the repetition of its events.
struct Stream {
    /// `None` until the first line.
    writer: Option<Writer>,
    path: PathBuf,
    before: PathBuf,
    limit: u64,
    repetition: Repetition,
}

impl Stream {
    fn take(&mut self, event: Event, lost: &AtomicU64) {
        let lines = self.repetition.take(event);
        self.append(lines, lost);
    }

    /// Records how many events were lost, and syncs the file. With `counts` it writes those of repeated events.
    fn settle(&mut self, counts: bool, lost: &AtomicU64) {
        if counts {
            let lines = self.repetition.drain();
            self.append(lines, lost);
        }
        let missing = lost.swap(0, Ordering::Relaxed);
        if missing > 0 {
            let line = serde_json::json!({"at": now(), "what": "lost", "lines": missing});
            self.append(vec![(line.to_string(), missing)], lost);
        }
        if let Some(writer) = &mut self.writer {
            writer.sync();
        }
    }

    /// Appends lines, and adds the events of those that cannot be written to `lost`.
    fn append(&mut self, lines: Vec<Counted>, lost: &AtomicU64) {
        for (line, events) in lines {
            if !self.append_line(&line) {
                lost.fetch_add(events, Ordering::Relaxed);
            }
        }
    }

    fn append_line(&mut self, line: &str) -> bool {
        if self.writer.is_none() {
            match Writer::open(&self.path, &self.before, self.limit) {
                Ok(writer) => self.writer = Some(writer),
                Err(error) => {
                    tracing::error!(file = %self.path.display(), %error, "could not open the audit");
                }
            }
        }
        let Some(writer) = &mut self.writer else {
            return false;
        };
        let appended = writer.append(line);
        if writer.unsynced() > UNSYNCED_BYTES_MAX {
            writer.sync();
        }
        appended
    }
}

#[cfg(test)]
mod tests;
