//! A session's conversation on disk, with the entries that are not in the transcript yet.
//!
//! Invariant: entries in `in_flight` are in the live log, so none is lost with the process.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use wire::ChatEntry;

use conversation::{EntryChange, entry_number, extend};
use store::transcript::{Found, Header, Note, Transcript};

pub(super) struct Record {
    /// `None` only while a blocking task has it.
    transcript: Option<Transcript>,
    /// Entries that are not in the transcript yet, or only in an earlier state.
    in_flight: BTreeMap<u64, ChatEntry>,
    /// All notes about the session, merged.
    note: Note,
    /// Whether a part of the merged note could not be written yet.
    note_is_unsaved: bool,
}

impl Record {
    pub(super) fn new(transcript: Transcript, found: Found) -> Self {
        Self {
            transcript: Some(transcript),
            in_flight: found.in_flight,
            note: found.note,
            note_is_unsaved: false,
        }
    }

    pub(super) fn in_flight(&self) -> &BTreeMap<u64, ChatEntry> {
        &self.in_flight
    }

    pub(super) fn in_flight_mut(&mut self) -> &mut BTreeMap<u64, ChatEntry> {
        &mut self.in_flight
    }

    pub(super) fn note(&self) -> &Note {
        &self.note
    }

    pub(super) fn total(&self) -> u64 {
        let last = self.in_flight.last_key_value();
        self.written().max(last.map_or(0, |(number, _)| *number))
    }

    fn written(&self) -> u64 {
        self.transcript.as_ref().map_or(0, Transcript::total)
    }

    /// The current entries `from..to`, counted from 0.
    pub(super) async fn entries(&mut self, from: u64, to: u64) -> io::Result<Vec<ChatEntry>> {
        let mut entries = match from < self.written() {
            true => {
                self.on_disk(move |transcript| transcript.read(from, to))
                    .await?
            }
            false => vec![],
        };
        for (number, entry) in self.in_flight.range(from + 1..=to) {
            let index = (number - 1 - from) as usize;
            match entries.get_mut(index) {
                Some(known) => *known = entry.clone(),
                None => entries.push(entry.clone()),
            }
        }
        Ok(entries)
    }

    /// Writes changes to the live log. Syncs if they are final or begin a turn: a client must not see the end of a turn
    /// that a power cut undoes. Without a sync, the write goes to the page cache and needs no blocking thread.
    pub(super) async fn write(&mut self, changes: &[EntryChange], begins: bool) -> io::Result<()> {
        let Some(transcript) = &mut self.transcript else {
            return Ok(());
        };
        if transcript.live_is_doubtful() {
            transcript.rewrite_live(&self.in_flight)?;
        }
        transcript.write_live(changes, begins)?;
        let ends = |change: &EntryChange| matches!(change, EntryChange::Begin(ChatEntry::Turn(_)));
        // Outside of a turn every entry is final.
        let is_final = changes.iter().any(ends) || !transcript.has_live_turn();
        match begins || is_final {
            true => self.on_disk(Transcript::sync_live).await,
            false => Ok(()),
        }
    }

    /// Removes the changes written last from the live log, as far as the disk allows.
    pub(super) fn revert_last_write(&mut self) {
        let Some(transcript) = &mut self.transcript else {
            return;
        };
        if transcript.live_is_doubtful()
            && let Err(error) = transcript.rewrite_live(&self.in_flight)
        {
            tracing::error!(%error, "could not remove the changes of a refused request from the live log");
        }
    }

    /// Applies a change that was written.
    pub(super) fn apply(&mut self, change: &EntryChange) {
        apply(&mut self.in_flight, change);
    }

    /// Rewrites the live log if that makes it much shorter. Retried later after an error.
    pub(super) async fn shorten(&mut self) {
        let long = |transcript: &Transcript| transcript.live_is_long();
        if !self.transcript.as_ref().is_some_and(long) {
            return;
        }
        let entries = std::mem::take(&mut self.in_flight);
        let (shortened, entries) = self
            .on_disk(move |transcript| (transcript.shorten_live(&entries), entries))
            .await;
        self.in_flight = entries;
        if let Err(error) = shortened {
            tracing::warn!(%error, "could not shorten the live log");
        }
    }

    /// Moves finished entries into the transcript. After an error they stay in the live log, and are moved later.
    pub(super) async fn fold(&mut self) -> io::Result<()> {
        let mut entries = std::mem::take(&mut self.in_flight);
        let (folded, unfolded) = self
            .on_disk(move |transcript| {
                let folded = transcript.fold(&entries);
                if folded.is_ok() {
                    entries.clear();
                }
                (folded, entries)
            })
            .await;
        self.in_flight = unfolded;
        if self.note_is_unsaved && folded.is_ok() {
            let note = self.note.clone();
            let noted = self.on_disk(|transcript| transcript.note(note)).await;
            self.note_is_unsaved = noted.is_err();
        }
        folded
    }

    /// Saves a note. After an error nothing has changed.
    pub(super) async fn save(&mut self, note: Note) -> io::Result<()> {
        let mut whole = self.note.clone();
        whole.update(note.clone());
        let written = if self.note_is_unsaved {
            whole.clone()
        } else {
            note
        };
        self.on_disk(|transcript| transcript.note(written)).await?;
        self.note = whole;
        self.note_is_unsaved = false;
        Ok(())
    }

    /// Keeps a note that could not be saved, to write it with the next one.
    pub(super) fn save_later(&mut self, note: Note) {
        self.note.update(note);
        self.note_is_unsaved = true;
    }

    /// Replaces the conversation; the earlier one is kept in the file `kept`. Entries from number `running` on belong
    /// to the running turn.
    pub(super) async fn replace(
        &mut self,
        header: Header,
        entries: BTreeMap<u64, ChatEntry>,
        running: Option<u64>,
        kept: PathBuf,
    ) -> io::Result<()> {
        let note = self.note.clone();
        let (replaced, mut entries) = self
            .on_disk(move |transcript| {
                let replaced = transcript.replace(&header, note, &entries, running, &kept);
                (replaced, entries)
            })
            .await;
        replaced?;
        self.in_flight = running.map_or_else(BTreeMap::new, |first| entries.split_off(&first));
        Ok(())
    }

    /// Runs slow disk work on a blocking thread.
    async fn on_disk<R: Send + 'static>(
        &mut self,
        act: impl FnOnce(&mut Transcript) -> R + Send + 'static,
    ) -> R {
        let Some(mut transcript) = self.transcript.take() else {
            unreachable!("one blocking task at a time has the transcript and always returns it");
        };
        let acted = tokio::task::spawn_blocking(move || {
            let result = act(&mut transcript);
            (transcript, result)
        });
        match acted.await {
            Ok((transcript, result)) => {
                self.transcript = Some(transcript);
                result
            }
            Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
        }
    }
}

/// Applies a change to the entries.
pub(super) fn apply(entries: &mut BTreeMap<u64, ChatEntry>, change: &EntryChange) {
    match change {
        EntryChange::Begin(entry) | EntryChange::Replace(entry) => {
            entries.insert(entry_number(entry.entry_id()), entry.clone());
        }
        EntryChange::Append { entry_id, .. } | EntryChange::AppendTerminal { entry_id, .. } => {
            if let Some(entry) = entries.get_mut(&entry_number(entry_id)) {
                extend(entry, change);
            }
        }
        EntryChange::Finish { .. } => {}
    }
}
