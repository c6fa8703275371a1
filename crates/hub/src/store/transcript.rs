//! One conversation on disk.
//!
//! `<key>.jsonl` begins with a header and holds one line per finished entry, `{"n":7,"entry":{…}}`,
//! and now and then a note about the session. A line with a number that was there before replaces
//! it. `<key>.live.jsonl` is the turn in flight, change by change as it is shown; when the turn ends
//! its entries are appended to the transcript and it goes away. A crash between the two leaves both,
//! and folding the same entries in again changes nothing.
//!
//! Nothing is ever overwritten: a torn last line is sealed, a line that cannot be read is passed over.
//!
//! Invariant: entries are numbered from 1 without gaps, and their ids are `e` and their number.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use wire::{ChatEntry, NoticeSeverity, PermissionPolicy, QueuedMessage};

use super::durable;
use crate::agents::entries::{EntryChange, entry_number, extend};

const VERSION: u64 = 1;
const SCAN_BYTES: usize = 256 * 1024;
/// How every entry's line begins.
const ENTRY_BEGINS: &[u8] = b"{\"n\":";

/// The first line: enough to list the session if the index is lost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Header {
    pub(crate) version: u64,
    pub(crate) key: String,
    /// Canonical.
    pub(crate) session: String,
    pub(crate) cli_type: String,
    pub(crate) project_id: String,
    pub(crate) project_path: String,
    pub(crate) created_at: String,
}

/// What can change about a session besides its conversation. Each line says only what it changes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Note {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) archived: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) policy: Option<PermissionPolicy>,
    /// All that is waiting to be sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) queue: Option<Vec<QueuedMessage>>,
}

impl Note {
    pub(crate) fn update(&mut self, later: Self) {
        self.title = later.title.or(self.title.take());
        self.archived = later.archived.or(self.archived);
        self.policy = later.policy.or(self.policy);
        self.queue = later.queue.or(self.queue.take());
    }
}

/// A line of the transcript that is no entry.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Aside {
    Session(Header),
    Note(Note),
}

/// A line of the live file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum LiveLine<'a> {
    /// From here on a turn is running.
    Turn(bool),
    Begin(std::borrow::Cow<'a, ChatEntry>),
    Replace(std::borrow::Cow<'a, ChatEntry>),
    Append {
        id: std::borrow::Cow<'a, str>,
        text: std::borrow::Cow<'a, str>,
    },
    Terminal {
        id: std::borrow::Cow<'a, str>,
        terminal: std::borrow::Cow<'a, str>,
        text: std::borrow::Cow<'a, str>,
    },
}

#[derive(Debug, Clone, Copy, Default)]
struct Line {
    offset: u64,
    length: u32,
}

/// What was found beside the finished entries.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) header: Option<Header>,
    pub(crate) note: Note,
    /// The entries of a turn that never ended, as far as they were shown.
    pub(crate) in_flight: BTreeMap<u64, ChatEntry>,
    /// Whether that turn was still running.
    pub(crate) interrupted: bool,
}

#[derive(Debug)]
pub(crate) struct Transcript {
    path: PathBuf,
    file: File,
    size: u64,
    /// Where each entry stands; a zero length means nowhere.
    lines: Vec<Line>,
    live: Option<File>,
}

impl Transcript {
    /// A new conversation, on disk when this returns.
    pub(crate) fn create(path: &Path, header: &Header) -> io::Result<Self> {
        let mut line = serde_json::to_vec(&Aside::Session(header.clone()))?;
        line.push(b'\n');
        durable::replace(path, &line)?;
        Ok(Self {
            path: path.to_owned(),
            file: append_to(path)?,
            size: line.len() as u64,
            lines: vec![],
            live: None,
        })
    }

    /// Reads what there is of it; a missing file is an empty conversation.
    pub(crate) fn open(path: &Path) -> io::Result<(Self, Found)> {
        let mut found = Found::default();
        let mut lines: Vec<Line> = vec![];
        let mut file = append_to(path)?;
        scan(&mut file, |offset, line| {
            if let Some(number) = number_of(line) {
                let index = usize::try_from(number - 1).unwrap_or(usize::MAX);
                // A number far beyond what is there was not written by us.
                if index > lines.len() + 1_000_000 {
                    return;
                }
                let length = line.len() as u32;
                place(&mut lines, index, Line { offset, length });
            } else {
                match serde_json::from_slice(line) {
                    Ok(Aside::Session(header)) => found.header = Some(header),
                    Ok(Aside::Note(note)) => found.note.update(note),
                    Err(_) => {}
                }
            }
        })?;
        let size = seal(&mut file)?;
        let mut transcript = Self {
            path: path.to_owned(),
            file,
            size,
            lines,
            live: None,
        };
        transcript.read_live(&mut found)?;
        if let Some(header) = &found.header
            && header.version > VERSION
        {
            return Err(io::Error::other(
                "it was written by a newer Liminal Builder and was left as it is",
            ));
        }
        Ok((transcript, found))
    }

    /// How many finished entries there are.
    pub(crate) fn total(&self) -> u64 {
        self.lines.len() as u64
    }

    /// Entries `from..to`, counted from 0, one after the other.
    pub(crate) fn read(&self, from: u64, to: u64) -> io::Result<Vec<ChatEntry>> {
        let last = to.min(self.total());
        let mut entries = Vec::with_capacity(last.saturating_sub(from) as usize);
        let mut buffer = vec![];
        let mut at = from as usize;
        while at < last as usize {
            // Neighbours on disk are read together.
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
                entries.push(entry_of(text).unwrap_or_else(|| unreadable(number)));
            }
            at = end;
        }
        Ok(entries)
    }

    /// Adds what was said about the session.
    pub(crate) fn note(&mut self, note: Note) -> io::Result<()> {
        let mut line = serde_json::to_vec(&Aside::Note(note))?;
        line.push(b'\n');
        self.append(&line)?;
        self.file.sync_data()
    }

    /// Writes changes to the live file. They survive the end of this process when this returns.
    pub(crate) fn write_live(
        &mut self,
        changes: &[EntryChange],
        turn: Option<bool>,
    ) -> io::Result<()> {
        use std::borrow::Cow::Borrowed;
        let mut text = vec![];
        if let Some(turn) = turn {
            serde_json::to_writer(&mut text, &LiveLine::Turn(turn))?;
            text.push(b'\n');
        }
        for change in changes {
            let line = match change {
                EntryChange::Begin(entry) => LiveLine::Begin(Borrowed(entry)),
                EntryChange::Replace(entry) => LiveLine::Replace(Borrowed(entry)),
                EntryChange::Append { entry_id, text } => LiveLine::Append {
                    id: Borrowed(entry_id),
                    text: Borrowed(text),
                },
                EntryChange::AppendTerminal {
                    entry_id,
                    terminal_id,
                    text,
                } => LiveLine::Terminal {
                    id: Borrowed(entry_id),
                    terminal: Borrowed(terminal_id),
                    text: Borrowed(text),
                },
                EntryChange::Finish { .. } => continue,
            };
            serde_json::to_writer(&mut text, &line)?;
            text.push(b'\n');
        }
        if text.is_empty() {
            return Ok(());
        }
        let live = match &mut self.live {
            Some(live) => live,
            none => none.insert(append_to(&live_path(&self.path))?),
        };
        append_whole(live, &text)
    }

    /// Waits until what is in the live file is on disk.
    pub(crate) fn sync_live(&self) -> io::Result<()> {
        match &self.live {
            Some(live) => live.sync_data(),
            None => Ok(()),
        }
    }

    /// Moves finished entries into the transcript, durably, and ends the live file.
    pub(crate) fn fold(&mut self, entries: &BTreeMap<u64, ChatEntry>) -> io::Result<()> {
        #[derive(Serialize)]
        struct EntryLine<'a> {
            n: u64,
            entry: &'a ChatEntry,
        }
        let mut text = vec![];
        let mut lines = vec![];
        for (number, entry) in entries {
            let start = text.len();
            let line = EntryLine { n: *number, entry };
            serde_json::to_writer(&mut text, &line)?;
            lines.push((*number, start, text.len() - start));
            text.push(b'\n');
        }
        let offset = self.size;
        if !text.is_empty() {
            self.append(&text)?;
            self.file.sync_data()?;
        }
        for (number, start, length) in lines {
            let line = Line {
                offset: offset + start as u64,
                length: length as u32,
            };
            place(&mut self.lines, number as usize - 1, line);
        }
        self.end_live()
    }

    /// Replaces the whole conversation. The old file is kept beside it.
    pub(crate) fn replace(
        &mut self,
        header: &Header,
        note: Note,
        entries: &BTreeMap<u64, ChatEntry>,
    ) -> io::Result<()> {
        let stamp = jiff::Timestamp::now().as_millisecond();
        let kept = self.path.with_extension(format!("before-{stamp}"));
        std::fs::hard_link(&self.path, &kept)?;
        let mut new = Self::create(&self.path, header)?;
        new.live = self.live.take();
        if note != Note::default() {
            new.note(note)?;
        }
        new.fold(entries)?;
        *self = new;
        Ok(())
    }

    fn append(&mut self, text: &[u8]) -> io::Result<()> {
        match append_whole(&mut self.file, text) {
            Ok(()) => {
                self.size += text.len() as u64;
                Ok(())
            }
            Err(error) => {
                self.size = self.file.metadata()?.len();
                Err(error)
            }
        }
    }

    fn end_live(&mut self) -> io::Result<()> {
        self.live = None;
        match std::fs::remove_file(live_path(&self.path)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn read_live(&mut self, found: &mut Found) -> io::Result<()> {
        let path = live_path(&self.path);
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        let mut turn = false;
        let mut last = 0;
        let mut earlier: BTreeMap<u64, ChatEntry> = BTreeMap::new();
        scan(&mut file, |_, line| {
            let Ok(line) = serde_json::from_slice::<LiveLine>(line) else {
                return;
            };
            match line {
                LiveLine::Turn(running) => turn = running,
                LiveLine::Begin(entry) | LiveLine::Replace(entry) => {
                    let entry = entry.into_owned();
                    last = last.max(entry_number(entry.entry_id()));
                    earlier.insert(entry_number(entry.entry_id()), entry);
                }
                LiveLine::Append { id, text } => {
                    let change = EntryChange::Append {
                        entry_id: id.into_owned(),
                        text: text.into_owned(),
                    };
                    extend_known(&mut earlier, &change);
                }
                LiveLine::Terminal { id, terminal, text } => {
                    let change = EntryChange::AppendTerminal {
                        entry_id: id.into_owned(),
                        terminal_id: terminal.into_owned(),
                        text: text.into_owned(),
                    };
                    extend_known(&mut earlier, &change);
                }
            }
        })?;
        let ended = |entry: &ChatEntry| matches!(entry, ChatEntry::Turn(_));
        found.interrupted = turn && !earlier.get(&last).is_some_and(ended);
        found.in_flight = earlier;
        let mut live = append_to(&path)?;
        seal(&mut live)?;
        self.live = Some(live);
        Ok(())
    }
}

fn place(lines: &mut Vec<Line>, index: usize, line: Line) {
    if index >= lines.len() {
        lines.resize(index + 1, Line::default());
    }
    lines[index] = line;
}

fn extend_known(entries: &mut BTreeMap<u64, ChatEntry>, change: &EntryChange) {
    let id = match change {
        EntryChange::Append { entry_id, .. } | EntryChange::AppendTerminal { entry_id, .. } => {
            entry_id
        }
        _ => return,
    };
    if let Some(entry) = entries.get_mut(&entry_number(id)) {
        extend(entry, change);
    }
}

/// The live file beside a transcript.
pub(crate) fn live_path(path: &Path) -> PathBuf {
    path.with_extension("live.jsonl")
}

fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
}

/// All of it or, after an error, nothing that could be taken for the beginning of the next line.
fn append_whole(file: &mut File, text: &[u8]) -> io::Result<()> {
    let before = file.metadata()?.len();
    file.write_all(text).inspect_err(|_| {
        let _ = file.set_len(before);
    })
}

/// Ends a torn last line, so that the next one does not become part of it. Returns the size.
fn seal(file: &mut File) -> io::Result<u64> {
    let size = file.metadata()?.len();
    if size == 0 {
        return Ok(0);
    }
    let mut last = [0];
    file.read_exact_at(&mut last, size - 1)?;
    if last == *b"\n" {
        return Ok(size);
    }
    file.write_all(b"\n")?;
    Ok(size + 1)
}

/// Calls `line` for each line with its offset. Streams; a line is held whole.
fn scan(file: &mut impl Read, mut line: impl FnMut(u64, &[u8])) -> io::Result<()> {
    let mut buffer: Vec<u8> = Vec::with_capacity(SCAN_BYTES);
    let mut base = 0;
    loop {
        let searched = buffer.len();
        buffer.resize(searched + SCAN_BYTES, 0);
        let count = file.read(&mut buffer[searched..])?;
        buffer.truncate(searched + count);
        let mut begin = 0;
        let mut from = searched;
        while let Some(length) = memchr::memchr(b'\n', &buffer[from..]) {
            let end = from + length;
            line(base + begin as u64, &buffer[begin..end]);
            begin = end + 1;
            from = begin;
        }
        if count == 0 {
            if !buffer.is_empty() {
                line(base, &buffer);
            }
            return Ok(());
        }
        buffer.drain(..begin);
        base += begin as u64;
    }
}

/// The number of an entry's line, without reading the rest of it.
fn number_of(line: &[u8]) -> Option<u64> {
    let digits = line.strip_prefix(ENTRY_BEGINS)?;
    let end = digits.iter().position(|byte| !byte.is_ascii_digit())?;
    // A torn line is no entry.
    let whole = digits[end..].starts_with(b",\"entry\":{") && line.ends_with(b"}}");
    let number = std::str::from_utf8(&digits[..end]).ok()?.parse().ok()?;
    (whole && number > 0).then_some(number)
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
        title: "This part of the conversation could not be read from disk".to_owned(),
        description: None,
    }
}
