//! The live log: the running turn on disk, and entries that changed outside of a turn.
//!
//! Changes are appended; the log is removed once its entries are in the transcript. It records the length of the
//! transcript at its beginning, its base: entries of the transcript after the base were folded from this log and are
//! final. So a log whose removal was undone by a power cut changes nothing.
//!
//! Invariant: after `sync` returns `Ok`, the content and the name of the file survive a power cut.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use wire::ChatEntry;

use super::live;
use conversation::{EntryChange, entry_number};
use durable::lines::{append, append_to, seal};
use durable::ownership;

/// A live log is rewritten when it is larger than `REWRITE_BYTES` and `REWRITE_GROWTH` times its size after the last
/// rewrite: it has every change of an entry, and a rewrite leaves only the current entry.
const REWRITE_BYTES: u64 = 64 * 1024 * 1024;
const REWRITE_GROWTH: u64 = 4;

#[derive(Debug)]
pub(super) struct LiveLog {
    path: PathBuf,
    /// Edition of the transcript that the entry numbers belong to.
    edition: u64,
    file: Option<File>,
    /// Length of the transcript when this log began.
    base: Option<u64>,
    turn: TurnMark,
    bytes: u64,
    bytes_at_rewrite: u64,
    /// Whether the directory entry of the file survives a power cut.
    name_is_durable: bool,
    /// Whether a sync has failed: the content can be read, but may not be on disk.
    doubtful: bool,
}

/// Whether a turn begins in the live log, with the number of its first entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TurnMark {
    None,
    Written(u64),
    Durable(u64),
}

impl LiveLog {
    /// The log beside this transcript. Its file need not exist yet.
    pub(super) fn beside(transcript: &Path, edition: u64) -> Self {
        Self {
            path: live_path(transcript),
            edition,
            file: None,
            base: None,
            turn: TurnMark::None,
            bytes: 0,
            bytes_at_rewrite: 0,
            name_is_durable: false,
            doubtful: false,
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the log has the beginning of a turn.
    pub(super) fn has_turn(&self) -> bool {
        self.turn != TurnMark::None
    }

    /// Appends changes. After that they survive the end of this process, but not a power cut. `transcript_bytes` is the
    /// length of the transcript.
    pub(super) fn write(
        &mut self,
        changes: &[EntryChange],
        begins_turn: bool,
        transcript_bytes: u64,
    ) -> io::Result<()> {
        let is_empty = |change: &EntryChange| matches!(change, EntryChange::Finish { .. });
        if !begins_turn && changes.iter().all(is_empty) {
            return Ok(());
        }
        // A disk access per chunk of text would be too slow.
        match begins_turn || self.file.is_none() {
            true => ownership::check(&self.path)?,
            false => ownership::check_known(&self.path)?,
        }
        // After an error the file is opened again, and a torn last line is terminated.
        let mut file = match self.file.take() {
            Some(file) => file,
            None => {
                let mut file = append_to(&self.path)?;
                if seal(&mut file)? == 0 {
                    let base = *self.base.get_or_insert(transcript_bytes);
                    let head = live::head(self.edition, base)?;
                    append(&mut file, |text| text.write_all(&head))?;
                    self.bytes = head.len() as u64;
                }
                file
            }
        };
        let ((), bytes) = append(&mut file, |text| {
            if begins_turn {
                live::write_turn(text)?;
            }
            changes
                .iter()
                .try_for_each(|change| live::write_change(text, change))
        })?;
        self.file = Some(file);
        self.bytes += bytes;
        if begins_turn {
            let first = changes.iter().find_map(|change| match change {
                EntryChange::Begin(entry) => Some(entry_number(entry.entry_id())),
                _ => None,
            });
            self.turn = TurnMark::Written(first.unwrap_or_default());
        }
        Ok(())
    }

    /// Syncs content and name. After an error it is unknown how much is on disk, so the log has to be rewritten before
    /// it is used again.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let mut synced = file.sync_data();
        if synced.is_ok() && !self.name_is_durable {
            synced = durable::sync_directory_of(&self.path);
        }
        let synced = synced.and_then(|()| ownership::check(&self.path));
        self.doubtful |= synced.is_err();
        synced?;
        self.name_is_durable = true;
        if let TurnMark::Written(first) = self.turn {
            self.turn = TurnMark::Durable(first);
        }
        Ok(())
    }

    pub(super) fn is_doubtful(&self) -> bool {
        self.doubtful
    }

    /// Whether a rewrite would make the log much shorter.
    pub(super) fn is_long(&self) -> bool {
        self.bytes > REWRITE_BYTES.max(self.bytes_at_rewrite * REWRITE_GROWTH)
    }

    /// Replaces the content by these entries, durably. A turn whose beginning could not be synced is dropped.
    pub(super) fn rewrite(
        &mut self,
        entries: &BTreeMap<u64, ChatEntry>,
        transcript_bytes: u64,
    ) -> io::Result<()> {
        if self.doubtful && matches!(self.turn, TurnMark::Written(_)) {
            self.turn = TurnMark::None;
        }
        if entries.is_empty() {
            self.remove()?;
        } else {
            let base = *self.base.get_or_insert(transcript_bytes);
            let mut text = live::head(self.edition, base)?;
            let first = match self.turn {
                TurnMark::None => u64::MAX,
                TurnMark::Written(first) | TurnMark::Durable(first) => first,
            };
            for (_, entry) in entries.range(..first) {
                live::write_change(&mut text, &EntryChange::Begin(entry.clone()))?;
            }
            if self.has_turn() {
                live::write_turn(&mut text)?;
            }
            for (_, entry) in entries.range(first..) {
                live::write_change(&mut text, &EntryChange::Begin(entry.clone()))?;
            }
            self.file = None;
            durable::replace(&self.path, &text)?;
            self.bytes = text.len() as u64;
            self.bytes_at_rewrite = self.bytes;
            self.name_is_durable = true;
        }
        self.doubtful = false;
        Ok(())
    }

    /// Rewrites the log to make it shorter. After an error the next attempt is made when it has twice the length.
    pub(super) fn shorten(
        &mut self,
        entries: &BTreeMap<u64, ChatEntry>,
        transcript_bytes: u64,
    ) -> io::Result<()> {
        let rewritten = self.rewrite(entries, transcript_bytes);
        if rewritten.is_err() {
            self.bytes_at_rewrite = self.bytes / 2;
        }
        rewritten
    }

    /// Atomically replaces the log by one for another edition of the transcript, with the entries of the running turn.
    pub(super) fn restart(
        &mut self,
        edition: u64,
        turn: &BTreeMap<u64, ChatEntry>,
        transcript_bytes: u64,
    ) -> io::Result<()> {
        self.edition = edition;
        self.base = Some(transcript_bytes);
        let first = turn.first_key_value();
        self.turn = first.map_or(TurnMark::None, |(first, _)| TurnMark::Durable(*first));
        self.rewrite(turn, transcript_bytes)
    }

    /// Removes the file. Not synced, because a removal undone by a power cut is harmless.
    pub(super) fn remove(&mut self) -> io::Result<()> {
        ownership::check(&self.path)?;
        let doubtful = self.doubtful;
        *self = Self {
            doubtful,
            path: std::mem::take(&mut self.path),
            ..Self::beside(Path::new(""), self.edition)
        };
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// The path of the live log beside a transcript.
pub fn live_path(transcript: &Path) -> PathBuf {
    transcript.with_extension("live.jsonl")
}
