//! One audit file: chained lines, rotation, and the repair of a torn end.
//!
//! A file at its size limit is renamed, replacing the file before. Its last line says what was in the one that is dropped.
//! Bytes that a power cut or a failed write left are kept and recorded, so that the chain goes on after them.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use durable::{make_private, ownership};
use serde::Deserialize;
use serde_json::json;

use super::chain::{self, FIRST, Scan, TORN};
use super::now;

/// Bytes at the end of a file in which a torn place is looked for; far more than are written between two syncs.
const TAIL_BYTES: u64 = 2 * 1024 * 1024;
/// Kept free for the line before a rotation.
const ROTATION_LINE_BYTES: u64 = 512;

pub(super) struct Writer {
    path: PathBuf,
    /// The file before the last rotation.
    before: PathBuf,
    limit: u64,
    file: File,
    size: u64,
    /// `None` after a failed write, until the end of the file was read again.
    tail: Option<Tail>,
    /// Bytes since the last sync.
    unsynced: u64,
    /// Whether the last write failed; only the first failure in a row is logged.
    failing: bool,
    /// Whether the directory entry of the file is durable.
    name_is_durable: bool,
    /// Whether the line before a rotation is written.
    announced: bool,
}

/// The end of a file.
struct Tail {
    /// The hash of the last readable line.
    last: String,
    /// Whether the last line has no newline.
    is_open: bool,
    /// The length and hash of torn bytes, with the newline that will end them.
    torn: Option<(u64, String)>,
}

impl Writer {
    pub(super) fn open(path: &Path, before: &Path, limit: u64) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .open(path)?;
        make_private(path)?;
        let size = file.metadata()?.len();
        Ok(Self {
            tail: Some(Tail::of(&file, size, before)?),
            path: path.to_owned(),
            before: before.to_owned(),
            limit,
            file,
            size,
            unsynced: 0,
            failing: false,
            name_is_durable: false,
            announced: false,
        })
    }

    pub(super) fn unsynced(&self) -> u64 {
        self.unsynced
    }

    /// Syncs the file and logs an error.
    pub(super) fn sync(&mut self) {
        if self.unsynced > 0
            && let Err(error) = self.try_sync()
        {
            tracing::error!(file = %self.path.display(), %error, "could not sync the audit");
        }
    }

    fn try_sync(&mut self) -> io::Result<()> {
        self.unsynced = 0;
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

    /// Appends a JSON object as a line, and returns whether it is in the file.
    pub(super) fn append(&mut self, object: &str) -> bool {
        let written = self.try_append(object);
        match &written {
            Err(error) if !self.failing => {
                tracing::error!(file = %self.path.display(), %error, "could not write the audit");
            }
            _ => {}
        }
        self.failing = written.is_err();
        !self.failing
    }

    fn try_append(&mut self, object: &str) -> io::Result<()> {
        let needed = (object.len() + chain::link("", FIRST).len()) as u64 + ROTATION_LINE_BYTES;
        if self.size > 0 && self.size + needed >= self.limit {
            self.rotate()?;
        }
        self.write(object)
    }

    fn rotate(&mut self) -> io::Result<()> {
        ownership::check(&self.path)?;
        if !self.announced {
            let dropped = contents(&self.before);
            let line = json!({"at": now(), "what": "rotated", "dropped": dropped});
            self.write(&line.to_string())?;
            self.announced = true;
        }
        self.try_sync()?;
        std::fs::rename(&self.path, &self.before)?;
        *self = Self::open(&self.path, &self.before, self.limit)?;
        // Both names, so that the next line is never durable without the one before it.
        durable::sync_directory_of(&self.path)?;
        self.name_is_durable = true;
        Ok(())
    }

    fn write(&mut self, object: &str) -> io::Result<()> {
        let tail = match self.tail.take() {
            Some(tail) => tail,
            None => {
                self.size = self.file.metadata()?.len();
                Tail::of(&self.file, self.size, &self.before)?
            }
        };
        let mut text = String::new();
        if tail.is_open {
            text.push('\n');
        }
        let mut last = tail.last;
        let mut add = |object: &str| {
            let line = chain::link(object, &last);
            last = chain::hash(line.as_bytes());
            text.push_str(&line);
            text.push('\n');
        };
        if let Some((bytes, sha256)) = tail.torn {
            tracing::warn!(file = %self.path.display(), bytes, "repaired a torn end of the audit");
            let line = json!({"at": now(), "what": TORN, "bytes": bytes, "sha256": sha256});
            add(&line.to_string());
        }
        add(object);
        self.unsynced += text.len() as u64;
        self.file.write_all(text.as_bytes())?;
        self.size += text.len() as u64;
        self.tail = Some(Tail {
            last,
            is_open: false,
            torn: None,
        });
        Ok(())
    }
}

impl Tail {
    fn of(file: &File, size: u64, before: &Path) -> io::Result<Self> {
        let from = size.saturating_sub(TAIL_BYTES);
        let mut text = vec![0; (size - from) as usize];
        file.read_exact_at(&mut text, from)?;
        let mut scan = Scan::default();
        // The first line may be cut.
        let begin = match from {
            0 => 0,
            _ => memchr::memchr(b'\n', &text).map_or(0, |end| end + 1),
        };
        scan.follow(&text[begin..]);
        let is_open = text.last().is_some_and(|last| *last != b'\n');
        let torn = scan.torn.map(|at| {
            let mut torn = text[begin + at..].to_vec();
            if is_open {
                torn.push(b'\n');
            }
            (torn.len() as u64, chain::hash(&torn))
        });
        let last = match scan.last {
            Some(last) => last,
            None if from == 0 => last_of(before)?,
            None => FIRST.to_owned(),
        };
        Ok(Self {
            last,
            is_open,
            torn,
        })
    }
}

/// The hash of the last line of the file before the rotation.
fn last_of(before: &Path) -> io::Result<String> {
    let text = match std::fs::read(before) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => vec![],
        read => read?,
    };
    let mut scan = Scan::default();
    scan.follow(&text);
    Ok(scan.last.unwrap_or_else(|| FIRST.to_owned()))
}

/// How many events of each kind a file contains, and from which time.
fn contents(path: &Path) -> serde_json::Value {
    #[derive(Deserialize)]
    struct Line {
        at: Option<String>,
        what: Option<String>,
        times: Option<u64>,
    }
    let text = std::fs::read(path).unwrap_or_default();
    let mut events: BTreeMap<String, u64> = BTreeMap::new();
    let (mut from, mut to) = (None, None);
    for line in text.split(|byte| *byte == b'\n') {
        let Ok(Line { at, what, times }) = serde_json::from_slice(line) else {
            continue;
        };
        // A bound on the line, whatever is in the file.
        let what =
            what.filter(|what| what.len() < 20 && (events.len() < 8 || events.contains_key(what)));
        *events
            .entry(what.unwrap_or_else(|| "other".to_owned()))
            .or_default() += times.unwrap_or(1);
        if from.is_none() {
            from.clone_from(&at);
        }
        to = at.or(to);
    }
    json!({"from": from, "to": to, "events": events})
}
