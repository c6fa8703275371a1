//! The live log: the running turn on disk, and entries that changed outside of a turn.
//!
//! It is written change by change and removed once its entries are in the transcript. It says how long the
//! transcript was when it began: entries that stand behind that point were put there from this log, so they
//! are final, and a log that outlives its removal (a power cut can undo it) changes nothing.
//!
//! Invariant: after `sync` has returned `Ok`, content and name survive a power cut.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use wire::ChatEntry;

use super::live;
use conversation::{EntryChange, entry_number};
use durable::lines::{append, append_to, seal};
use durable::ownership;

/// Size above which a live log is rewritten, and the growth since the last rewrite that it takes: entries that
/// change often are in it once per change.
const REWRITE_BYTES: u64 = 64 * 1024 * 1024;
const REWRITE_GROWTH: u64 = 4;

#[derive(Debug)]
pub(super) struct LiveLog {
    path: PathBuf,
    /// The edition of the transcript that its entry numbers belong to.
    edition: u64,
    file: Option<File>,
    /// Length of the transcript when this log began.
    base: Option<u64>,
    turn: TurnMark,
    bytes: u64,
    bytes_at_rewrite: u64,
    /// The directory entry of the file survives a power cut.
    name_is_durable: bool,
    /// A sync failed: what the file holds may not be on disk, though it can be read.
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
    /// The log beside this transcript, which need not exist yet.
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

    /// Whether a turn began in it.
    pub(super) fn has_turn(&self) -> bool {
        self.turn != TurnMark::None
    }

    /// Appends changes. They survive the end of this process when this returns. `transcript_bytes` is the length
    /// of the transcript.
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
        // A look at the disk per chunk would cost too much.
        match begins_turn || self.file.is_none() {
            true => ownership::check(&self.path)?,
            false => ownership::check_known(&self.path)?,
        }
        // After an error the file is opened again, and a torn last line ended.
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

    /// Waits until content and name are on disk. After an error it is unknown what is, and the log has to be
    /// rewritten before it is used again.
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

    /// Whether a rewrite would make it much shorter.
    pub(super) fn is_long(&self) -> bool {
        self.bytes > REWRITE_BYTES.max(self.bytes_at_rewrite * REWRITE_GROWTH)
    }

    /// Replaces the content by these entries, durably. A turn whose beginning could not be synced has not begun.
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

    /// Rewrites it to make it shorter. After an error the next attempt comes at twice the length.
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

    /// Begins a log for another edition of the transcript, in which the turn with these entries runs. It takes the
    /// place of the one before at once.
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

    /// Removes the file. A removal that a power cut undoes does no harm, so it is not synced.
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
