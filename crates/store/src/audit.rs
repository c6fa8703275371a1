//! The audit file: permissions, refusals, writes and commands of agents, one JSON line each, readable by its owner
//! only.
//!
//! One thread owns the file. It writes all queued lines and syncs them together. A file at its size limit is renamed to
//! `audit.1.jsonl`, replacing the previous one, and a new file begins. Recording never blocks: if the disk is slower
//! than the agents, lines are dropped and their number is recorded. Contents of files are never recorded.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;
use tokio::sync::{mpsc, oneshot};

use durable::{make_private, ownership};

use crate::names;

const FILE_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Maximum queued lines, and maximum lines between two syncs.
const WAITING_MAX: usize = 1024;

/// A handle of the audit file. Its thread ends when the last clone is dropped.
#[derive(Clone)]
pub struct Audit {
    lines: mpsc::Sender<Message>,
    lost: Arc<AtomicU64>,
    /// Lines passed to the thread, and lines the thread has written or dropped.
    recorded: Arc<AtomicU64>,
    settled: Arc<AtomicU64>,
}

enum Message {
    Line(String),
    Flush(oneshot::Sender<()>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Record<'a, E> {
    at: String,
    session_id: &'a str,
    #[serde(flatten)]
    event: &'a E,
}

impl Audit {
    /// Opens the file for appending and restricts its permissions to its owner.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::open_with_limit(path, FILE_BYTES_MAX)
    }

    fn open_with_limit(path: &Path, limit: u64) -> io::Result<Self> {
        let mut writer = Writer::open(path, limit)?;
        let (lines, mut waiting) = mpsc::channel(WAITING_MAX);
        let lost = Arc::new(AtomicU64::new(0));
        let missing = lost.clone();
        let settled = Arc::new(AtomicU64::new(0));
        let done_with = settled.clone();
        std::thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || {
                let mut batch = vec![];
                while waiting.blocking_recv_many(&mut batch, WAITING_MAX) > 0 {
                    let mut flushed = vec![];
                    let messages = batch.len() as u64;
                    for message in batch.drain(..) {
                        match message {
                            Message::Line(line) if !writer.append(&line) => {
                                missing.fetch_add(1, Ordering::Relaxed);
                            }
                            Message::Line(_) => {}
                            Message::Flush(done) => flushed.push(done),
                        }
                    }
                    let lines = missing.swap(0, Ordering::Relaxed);
                    if lines > 0 {
                        let at = now();
                        let line = serde_json::json!({"at": at, "what": "lost", "lines": lines});
                        if !writer.append(&line.to_string()) {
                            missing.fetch_add(lines, Ordering::Relaxed);
                        }
                    }
                    writer.sync();
                    done_with.fetch_add(messages - flushed.len() as u64, Ordering::Release);
                    for done in flushed {
                        let _ = done.send(());
                    }
                }
            })?;
        Ok(Self {
            lines,
            lost,
            recorded: Arc::default(),
            settled,
        })
    }

    /// Queues an event for the audit file, without waiting for the disk. With a full queue the event is dropped.
    pub fn record(&self, session_id: &str, event: &impl Serialize) {
        let at = now();
        let record = Record {
            at,
            session_id,
            event,
        };
        let sent = serde_json::to_string(&record)
            .is_ok_and(|line| self.lines.try_send(Message::Line(line)).is_ok());
        match sent {
            true => self.recorded.fetch_add(1, Ordering::Relaxed),
            false => self.lost.fetch_add(1, Ordering::Relaxed),
        };
    }

    /// Waits until every earlier line is durable or was dropped.
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

fn now() -> String {
    jiff::Timestamp::now()
        .strftime("%Y-%m-%dT%H:%M:%S.%3fZ")
        .to_string()
}

struct Writer {
    path: PathBuf,
    limit: u64,
    file: File,
    size: u64,
    /// Whether the last line is incomplete.
    torn: bool,
    /// Whether the last write failed; only the first failure in a row is logged.
    failing: bool,
    /// Whether the directory entry of the file is durable.
    name_is_durable: bool,
}

impl Writer {
    fn open(path: &Path, limit: u64) -> io::Result<Self> {
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .open(path)?;
        make_private(path)?;
        let size = file.metadata()?.len();
        let mut torn = false;
        if size > 0 {
            let mut last = [0];
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
            torn = last != *b"\n";
        }
        Ok(Self {
            path: path.to_owned(),
            limit,
            file,
            size,
            torn,
            failing: false,
            name_is_durable: false,
        })
    }

    /// Syncs the file and logs an error.
    fn sync(&mut self) {
        if let Err(error) = self.try_sync() {
            tracing::error!(file = %self.path.display(), %error, "could not sync the audit");
        }
    }

    fn try_sync(&mut self) -> io::Result<()> {
        match self.file.sync_data() {
            // The file cannot be synced, for example a pipe.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Ok(()),
            synced => synced?,
        }
        if !self.name_is_durable {
            durable::sync_directory_of(&self.path)?;
            self.name_is_durable = true;
        }
        Ok(())
    }

    /// Appends a line and returns whether it is in the file.
    fn append(&mut self, line: &str) -> bool {
        let written = self.try_append(line);
        match &written {
            Err(error) if !self.failing => {
                tracing::error!(file = %self.path.display(), %error, "could not write the audit");
            }
            _ => {}
        }
        self.failing = written.is_err();
        !self.failing
    }

    fn try_append(&mut self, line: &str) -> io::Result<()> {
        if self.size > 0 && self.size + line.len() as u64 >= self.limit {
            ownership::check(&self.path)?;
            self.try_sync()?;
            std::fs::rename(&self.path, self.path.with_file_name(names::AUDIT_BEFORE))?;
            *self = Self::open(&self.path, self.limit)?;
        }
        let seal = if self.torn { "\n" } else { "" };
        let text = format!("{seal}{line}\n");
        let written = self.file.write_all(text.as_bytes());
        match written {
            Ok(()) => {
                self.torn = false;
                self.size += text.len() as u64;
            }
            // If the file has grown, it ends with an incomplete line.
            Err(_) => {
                let size = self.file.metadata().map(|file| file.len()).ok();
                self.torn |= size != Some(self.size);
                self.size = size.unwrap_or(self.size);
            }
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::BufRead;
    use std::os::unix::fs::PermissionsExt;

    use rustix::fs::{CWD, FileType, Mode};

    use super::*;

    fn refused_read(path: &str) -> serde_json::Value {
        serde_json::json!({"what": "read", "path": path, "refused": "no"})
    }

    #[tokio::test]
    async fn audit_file_is_private_and_continues_after_a_torn_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.jsonl");
        fs::write(&path, "{\"whole\":1}\n{\"torn").unwrap();
        let audit = Audit::open(&path).unwrap();
        audit.record("s", &refused_read("/x"));
        audit.flush().await;
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[..2], ["{\"whole\":1}", "{\"torn"]);
        let last: serde_json::Value = serde_json::from_str(lines[2]).unwrap();
        assert_eq!(
            (&last["what"], &last["path"]),
            (&"read".into(), &"/x".into())
        );
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[tokio::test]
    async fn full_audit_file_is_rotated_and_both_files_stay_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.jsonl");
        let audit = Audit::open_with_limit(&path, 2000).unwrap();
        for number in 0..100 {
            audit.record("s", &refused_read(&format!("/{number}")));
            audit.flush().await;
        }
        let old = fs::read_to_string(dir.path().join("audit.1.jsonl")).unwrap();
        let new = fs::read_to_string(&path).unwrap();
        assert!(old.len() <= 2000 && new.len() <= 2000);
        let both = old + &new;
        let numbers: Vec<_> = both
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["path"].clone())
            .collect();
        let first = 100 - numbers.len();
        let expected: Vec<_> = (first..100).map(|number| format!("/{number}")).collect();
        assert_eq!(numbers, expected);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    /// A pipe without a reader stands for a disk that hangs.
    #[tokio::test]
    async fn hanging_disk_does_not_block_recording_and_lost_lines_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.jsonl");
        rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).unwrap();
        let audit = Audit::open(&path).unwrap();
        let sent = 5 * WAITING_MAX as u64;
        for _ in 0..sent {
            audit.record("s", &refused_read(&"x".repeat(200)));
        }
        // Opened while the writer is open, so that the reader sees its end.
        let reader = fs::File::open(&path).unwrap();
        drop(audit);
        let (mut written, mut missing) = (0, 0);
        for line in io::BufReader::new(reader).lines() {
            let line: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
            match line["what"].as_str() {
                Some("lost") => missing += line["lines"].as_u64().unwrap(),
                _ => written += 1,
            }
        }
        assert!(missing > 0);
        assert_eq!(written + missing, sent);
    }
}
