//! The transcript of a session: its conversation on disk.
//!
//! `<key>.jsonl` begins with a header and has one line per finished entry, `{"n":7,"entry":{…}}`, and some lines with
//! notes about the session. A later line with the same number replaces an earlier one. `<key>.live.jsonl` is the live
//! log: the changes of the running turn. It is synced before a client sees the end of the turn; then its entries are
//! folded, that is appended to the transcript; the transcript is synced, and the live log is removed. A crash in
//! between leaves a live log; folding its entries again, any number of times, changes nothing.
//!
//! A transcript is never overwritten: a torn last line is terminated, an unreadable line is skipped.
//!
//! Invariant: entries are numbered from 1 without gaps, and their ids are `e` followed by their number.

mod header;
mod live;
mod live_log;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wire::{ChatEntry, NoticeSeverity, PermissionPolicy, QueuedMessage};

pub use self::header::{Header, SessionIdentity};
use self::live::Live;
use self::live_log::LiveLog;
pub use self::live_log::live_path;
use conversation::{EntryChange, entry_number};
use durable::lines::{Appending, SCAN_BYTES, append, append_to_existing, scan, seal};
use durable::ownership;

const VERSION: u64 = 1;

/// Maximum number of missing entries in a row; lines with higher numbers are ignored.
const GAP_MAX: usize = 1_000_000;

/// Text before an entry's number in its id, and the length of the part of a line in which this text is searched.
const ID_BEGINS: &[u8] = b"\"entryId\":\"e";
const ID_WITHIN: usize = 80;

/// Beginning of every line with an entry.
const ENTRY_BEGINS: &[u8] = b"{\"n\":";

/// A change of a session's properties, as a line of the transcript. Absent fields are unchanged.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Note {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PermissionPolicy>,
    /// The user's choices among the agent's options.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen: Option<Chosen>,
    /// The whole queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<Vec<QueuedMessage>>,
}

impl Note {
    /// Applies a later note: its present fields replace earlier ones.
    pub fn update(&mut self, later: Self) {
        self.title = later.title.or(self.title.take());
        self.archived = later.archived.or(self.archived);
        self.policy = later.policy.or(self.policy);
        self.chosen = later.chosen.or(self.chosen.take());
        self.queue = later.queue.or(self.queue.take());
    }
}

/// The user's config choices, to send again to an agent process that does not know them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Chosen {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Option ids and values in the order of the choices: a choice can change the options that follow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<(String, Value)>,
}

/// A line of a transcript that is not an entry.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum MetadataLine {
    Session(Header),
    Note(Note),
}

#[derive(Debug, Clone, Copy, Default)]
struct Line {
    offset: u64,
    length: u32,
}

/// The content of a transcript and its live log, except the finished entries.
#[derive(Debug, Default)]
pub struct Found {
    pub header: Option<Header>,
    pub note: Note,
    /// Entries that are only in the live log.
    pub in_flight: BTreeMap<u64, ChatEntry>,
    /// Whether the last turn began and did not end.
    pub interrupted: bool,
}

/// An open transcript with its live log.
#[derive(Debug)]
pub struct Transcript {
    path: PathBuf,
    file: File,
    size: u64,
    /// Whether `file` is open for appending and ends with a complete line; false after an error and on a read-only
    /// disk.
    ready: bool,
    /// Edition of the conversation, as in the header.
    edition: u64,
    /// Position of each entry's line; length 0 means that the entry is missing.
    lines: Vec<Line>,
    live: LiveLog,
}

impl Transcript {
    /// Creates an empty transcript, durably.
    pub fn create(path: &Path, header: &Header) -> io::Result<Self> {
        let line = metadata_line(&MetadataLine::Session(header.clone()))?;
        durable::replace(path, &line)?;
        Ok(Self {
            path: path.to_owned(),
            file: append_to_existing(path)?,
            size: line.len() as u64,
            ready: true,
            edition: header.edition,
            lines: vec![],
            live: LiveLog::beside(path, header.edition),
        })
    }

    /// Reads a transcript and its live log. Works on a read-only disk, and creates nothing.
    pub fn open(path: &Path) -> io::Result<(Self, Found)> {
        let mut found = Found::default();
        let mut lines: Vec<Line> = vec![];
        let (mut file, writable) = match append_to_existing(path) {
            Ok(file) => (file, true),
            Err(error) => (File::open(path).map_err(|_| error)?, false),
        };
        scan(&mut file, |offset, line| {
            if let Some(number) = number_of(line) {
                let index = usize::try_from(number - 1).unwrap_or(usize::MAX);
                // This program never writes such a number.
                if index > lines.len() + GAP_MAX {
                    return;
                }
                let length = line.len() as u32;
                let known = lines.get(index).is_some_and(|line| line.length > 0);
                // A power cut can leave a damaged line; it must not replace an earlier, readable one.
                if !known || entry_of(line).is_some() {
                    set_line(&mut lines, index, Line { offset, length });
                }
            } else {
                match serde_json::from_slice(line) {
                    Ok(MetadataLine::Session(header)) => found.header = Some(header),
                    Ok(MetadataLine::Note(note)) => found.note.update(note),
                    Err(_) => {}
                }
            }
        })?;
        let sealed = if writable { seal(&mut file).ok() } else { None };
        let mut transcript = Self {
            path: path.to_owned(),
            file,
            size: sealed.unwrap_or_default(),
            ready: sealed.is_some(),
            edition: 0,
            lines,
            live: LiveLog::beside(path, 0),
        };
        if let Some(header) = &found.header {
            transcript.edition = header.edition;
            transcript.live = LiveLog::beside(path, header.edition);
        }
        transcript.recover(&mut found)?;
        if let Some(header) = &found.header
            && header.version > VERSION
        {
            return Err(io::Error::other(
                "it was written by a newer Liminal Builder and is unchanged; install that version to read it",
            ));
        }
        Ok((transcript, found))
    }

    /// The number of finished entries.
    pub fn total(&self) -> u64 {
        self.lines.len() as u64
    }

    /// Finished entries `from..to`, counted from 0.
    pub fn read(&self, from: u64, to: u64) -> io::Result<Vec<ChatEntry>> {
        let last = to.min(self.total());
        let mut entries = Vec::with_capacity(last.saturating_sub(from) as usize);
        let mut buffer = vec![];
        let mut at = from as usize;
        while at < last as usize {
            // Adjacent lines are read in one call.
            let first = self.lines[at];
            let mut end = at + 1;
            let mut bytes = u64::from(first.length);
            while end < last as usize && bytes < SCAN_BYTES as u64 {
                let next = self.lines[end];
                if next.offset != first.offset + bytes + 1 {
                    break;
                }
                bytes += 1 + u64::from(next.length);
                end += 1;
            }
            buffer.resize(bytes as usize, 0);
            self.file.read_exact_at(&mut buffer, first.offset)?;
            for (index, line) in self.lines[at..end].iter().enumerate() {
                let start = (line.offset - first.offset) as usize;
                let number = (at + index + 1) as u64;
                let text = &buffer[start..start + line.length as usize];
                let entry = entry_of(text).unwrap_or_else(|| unreadable(number));
                entries.push(entry);
            }
            at = end;
        }
        Ok(entries)
    }

    /// Appends a note, durably.
    pub fn note(&mut self, note: Note) -> io::Result<()> {
        let line = metadata_line(&MetadataLine::Note(note))?;
        self.append(|text| text.write_all(&line))?;
        Ok(())
    }

    /// Appends changes to the live log. After that they survive the end of this process, but not a power cut.
    pub fn write_live(&mut self, changes: &[EntryChange], begins_turn: bool) -> io::Result<()> {
        let bytes = self.bytes()?;
        self.live.write(changes, begins_turn, bytes)
    }

    /// Syncs the live log, so that the changes in it can be acknowledged.
    pub fn sync_live(&mut self) -> io::Result<()> {
        self.live.sync()
    }

    /// Whether the live log has a turn that is not in the transcript yet.
    pub fn has_live_turn(&self) -> bool {
        self.live.has_turn()
    }

    /// Whether the live log has to be rewritten before it is used again.
    pub fn live_is_doubtful(&self) -> bool {
        self.live.is_doubtful()
    }

    /// Whether a rewrite would make the live log much shorter.
    pub fn live_is_long(&self) -> bool {
        self.live.is_long()
    }

    /// Replaces the content of the live log by these entries, durably.
    pub fn rewrite_live(&mut self, entries: &BTreeMap<u64, ChatEntry>) -> io::Result<()> {
        let bytes = self.bytes()?;
        self.live.rewrite(entries, bytes)
    }

    /// Like `rewrite_live`, to make the log shorter: after an error the next attempt waits until the log has twice the
    /// length.
    pub fn shorten_live(&mut self, entries: &BTreeMap<u64, ChatEntry>) -> io::Result<()> {
        let bytes = self.bytes()?;
        self.live.shorten(entries, bytes)
    }

    /// Moves finished entries into the transcript, durably, and removes the live log.
    pub fn fold(&mut self, entries: &BTreeMap<u64, ChatEntry>) -> io::Result<()> {
        if !entries.is_empty() {
            let (offset, lines) =
                self.append(|text| write_entries(text, Appending::bytes, entries))?;
            for (number, mut line) in lines {
                line.offset += offset;
                set_line(&mut self.lines, number as usize - 1, line);
            }
        }
        self.live.remove()
    }

    /// Replaces the conversation atomically. The earlier one is kept in the file `kept`.
    ///
    /// Entries from number `running` on belong to the running turn.
    pub fn replace(
        &mut self,
        header: &Header,
        note: Note,
        entries: &BTreeMap<u64, ChatEntry>,
        running: Option<u64>,
        kept: &Path,
    ) -> io::Result<()> {
        let header = Header {
            edition: self.edition + 1,
            ..header.clone()
        };
        let mut text = metadata_line(&MetadataLine::Session(header.clone()))?;
        if note != Note::default() {
            text.extend(metadata_line(&MetadataLine::Note(note))?);
        }
        let lines = write_entries(&mut text, |text| text.len() as u64, entries)?;
        ownership::check(&self.path)?;
        if let Some(folder) = kept.parent() {
            durable::create_private_dir(folder)?;
        }
        match std::fs::hard_link(&self.path, kept) {
            Ok(()) => durable::sync_directory_of(kept)?,
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Err(_) => {}
        }
        let replaced = durable::replace(&self.path, &text);
        let file = replaced
            .and_then(|()| append_to_existing(&self.path))
            .inspect_err(|_| {
                // The new file may be in place although the sync failed, while later lines would be appended to the old
                // one.
                let _ = std::fs::rename(kept, &self.path);
                let _ = std::fs::remove_file(kept);
            })?;
        self.file = file;
        self.size = text.len() as u64;
        self.ready = true;
        self.edition = header.edition;
        self.lines = vec![];
        for (number, line) in lines {
            set_line(&mut self.lines, number as usize - 1, line);
        }
        // A crash before this line leaves a live log of the earlier edition, which is ignored.
        let turn: BTreeMap<u64, ChatEntry> = match running {
            Some(first) => entries
                .range(first..)
                .map(|(at, it)| (*at, it.clone()))
                .collect(),
            None => BTreeMap::new(),
        };
        self.live.restart(self.edition, &turn, self.size)
    }

    /// Appends complete lines, durably, and returns their offset. After an error they have to be appended again.
    fn append<T>(
        &mut self,
        write: impl FnOnce(&mut Appending) -> io::Result<T>,
    ) -> io::Result<(u64, T)> {
        ownership::check(&self.path)?;
        if !self.ready {
            self.file = append_to_existing(&self.path)?;
            self.size = seal(&mut self.file)?;
        }
        self.ready = false;
        let (done, bytes) = append(&mut self.file, write)?;
        self.file.sync_data()?;
        self.ready = true;
        let begin = self.size;
        self.size += bytes;
        Ok((begin, done))
    }

    /// The length of the file on disk, also after a failed append.
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// Reads the live log of an earlier process, without the entries that were already folded.
    fn recover(&mut self, found: &mut Found) -> io::Result<()> {
        let mut file = match File::open(self.live.path()) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        let live = live::read(&mut file)?;
        // Kept for a manual repair, because the live log is removed after the turn. A second hard link means that an
        // earlier start has kept it.
        if live.damaged && file.metadata()?.nlink() == 1 {
            match durable::keep_beside(self.live.path()) {
                Ok(kept) => {
                    tracing::warn!(kept = %kept.display(), "some lines of a live log could not be read; kept a copy of it")
                }
                Err(error) => {
                    tracing::error!(%error, "could not keep a copy of a damaged live log")
                }
            }
        }
        if live.edition != self.edition {
            // The log is from before the conversation was replaced, which included its entries.
            found.interrupted = live.turn.is_some() && !has_end(live.entries.values(), live.turn);
            let _ = self.live.remove();
            return Ok(());
        }
        let folded = self.folded_from(&live)?;
        let all = live.entries.values().chain(folded.values());
        found.interrupted = live.turn.is_some() && !has_end(all, live.turn);
        let last = self.total() + GAP_MAX as u64;
        found.in_flight = live.entries;
        found
            .in_flight
            .retain(|number, _| (1..=last).contains(number) && !folded.contains_key(number));
        // A turn without an entry was never acknowledged to a client.
        if found.in_flight.is_empty() && !found.interrupted {
            let _ = self.live.remove();
        }
        Ok(())
    }

    /// Entries of this live log that were folded and are readable in the transcript.
    fn folded_from(&self, live: &Live) -> io::Result<BTreeMap<u64, ChatEntry>> {
        // Logs of earlier versions have no base: there, a fold began if the transcript has the turn's first entry.
        let first = live.turn.and_then(|first| first.checked_sub(1));
        let first = first.and_then(|first| self.lines.get(first as usize));
        let begun = first.filter(|line| line.length > 0);
        let Some(base) = live.base.or(begun.map(|line| line.offset)) else {
            return Ok(BTreeMap::new());
        };
        let mut folded = BTreeMap::new();
        let mut text = vec![];
        for (line, number) in self.lines.iter().zip(1..) {
            if line.length == 0 || line.offset < base {
                continue;
            }
            text.resize(line.length as usize, 0);
            self.file.read_exact_at(&mut text, line.offset)?;
            if let Some(entry) = entry_of(&text) {
                folded.insert(number, entry);
            }
        }
        Ok(folded)
    }
}

/// Whether the entries contain the end of the turn that begins with entry `first`.
fn has_end<'a>(mut entries: impl Iterator<Item = &'a ChatEntry>, first: Option<u64>) -> bool {
    entries.any(|entry| {
        matches!(entry, ChatEntry::Turn(_)) && Some(entry_number(entry.entry_id())) > first
    })
}

fn metadata_line(line: &MetadataLine) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    Ok(text)
}

/// Writes one line per entry and returns the offset and length of each in `text`.
fn write_entries<W: Write>(
    text: &mut W,
    length: impl Fn(&W) -> u64,
    entries: &BTreeMap<u64, ChatEntry>,
) -> io::Result<Vec<(u64, Line)>> {
    #[derive(Serialize)]
    struct EntryLine<'a> {
        n: u64,
        entry: &'a ChatEntry,
    }
    let mut lines = Vec::with_capacity(entries.len());
    for (number, entry) in entries {
        let offset = length(text);
        serde_json::to_writer(&mut *text, &EntryLine { n: *number, entry })?;
        let line = Line {
            offset,
            length: (length(text) - offset) as u32,
        };
        lines.push((*number, line));
        text.write_all(b"\n")?;
    }
    Ok(lines)
}

fn set_line(lines: &mut Vec<Line>, index: usize, line: Line) {
    if index >= lines.len() {
        lines.resize(index + 1, Line::default());
    }
    lines[index] = line;
}

/// Fuzz target: opens any bytes as a transcript and live log, appends a note, and checks that reopening gives the same.
#[cfg(fuzzing)]
pub fn fuzz(folder: &Path, conversation: &[u8], live: &[u8]) {
    const SHOWN: u64 = 200;
    let path = folder.join("fuzz.jsonl");
    std::fs::write(&path, conversation).expect("a folder to write in");
    std::fs::write(live_path(&path), live).expect("a folder to write in");
    let Ok((mut transcript, found)) = Transcript::open(&path) else {
        return;
    };
    let total = transcript.total();
    let entries = transcript.read(0, SHOWN).expect("what was just found");
    assert!(entries.len() as u64 == total.min(SHOWN));
    let title = Some("again".to_owned());
    let note = Note {
        title,
        ..Note::default()
    };
    transcript.note(note).expect("a note is added");
    drop(transcript);
    let (transcript, again) = Transcript::open(&path).expect("it was open a moment ago");
    assert_eq!(transcript.total(), total);
    assert_eq!(transcript.read(0, SHOWN).expect("as before"), entries);
    assert_eq!(again.note.title.as_deref(), Some("again"));
    assert_eq!(again.in_flight, found.in_flight);
}

/// The entry number of a line, without parsing the entry.
fn number_of(line: &[u8]) -> Option<u64> {
    let digits = line.strip_prefix(ENTRY_BEGINS)?;
    let end = digits.iter().position(|byte| !byte.is_ascii_digit())?;
    // A torn line does not count as an entry.
    let whole = digits[end..].starts_with(b",\"entry\":{") && line.ends_with(b"}}");
    let whole = whole && has_id(&digits[end..], &digits[..end]);
    let number = std::str::from_utf8(&digits[..end]).ok()?.parse().ok()?;
    (whole && number > 0).then_some(number)
}

/// Whether the entry's id has this number: a line with a damaged number must not replace another entry.
fn has_id(line: &[u8], digits: &[u8]) -> bool {
    let beginning = &line[..line.len().min(ID_WITHIN)];
    let id = memchr::memmem::find(beginning, ID_BEGINS).map(|at| &line[at + ID_BEGINS.len()..]);
    let rest = id.and_then(|id| id.strip_prefix(digits));
    rest.is_some_and(|rest| rest.starts_with(b"\""))
}

fn entry_of(line: &[u8]) -> Option<ChatEntry> {
    #[derive(Deserialize)]
    struct EntryLine {
        entry: ChatEntry,
    }
    let line: EntryLine = serde_json::from_slice(line).ok()?;
    Some(line.entry)
}

fn unreadable(number: u64) -> ChatEntry {
    ChatEntry::Notice {
        entry_id: format!("e{number}"),
        severity: NoticeSeverity::Error,
        title: "This message could not be read from disk".to_owned(),
        description: None,
    }
}

#[cfg(test)]
mod tests;
