//! One conversation on disk.
//!
//! `<key>.jsonl` begins with a header and holds one line per finished entry, `{"n":7,"entry":{…}}`,
//! and now and then a note about the session. A line with a number that was there before replaces
//! it. `<key>.live.jsonl` is the turn in flight, change by change as it is shown, and written anew as it
//! stands when that has become long; when the turn ends its entries are appended to the transcript and it
//! goes away. A crash between the two leaves both, and folding the same entries in again changes nothing.
//!
//! Nothing of a transcript is ever overwritten: a torn last line is sealed, a line that cannot be read is passed over.
//!
//! Invariant: entries are numbered from 1 without gaps, and their ids are `e` and their number.

mod lines;
mod live;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wire::{ChatEntry, NoticeSeverity, PermissionPolicy, QueuedMessage};

use self::lines::{Appending, SCAN_BYTES, append, append_to, scan, seal};
use super::{durable, ownership};
use crate::agents::entries::EntryChange;

const VERSION: u64 = 1;

/// Entries that may be missing before one that is there.
const GAP_MAX: usize = 1_000_000;

/// How an entry's id begins, and where at the latest.
const ID_BEGINS: &[u8] = b"\"entryId\":\"e";
const ID_WITHIN: usize = 80;

/// What a live file may grow to, and by what factor, before it is written anew as it stands: what changes again and
/// again is in it each time.
const LIVE_BYTES: u64 = 64 * 1024 * 1024;
const LIVE_GROWTH: u64 = 4;

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
    /// What whoever made it calls its agent, if that says more than the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) agent_id: Option<String>,
    pub(crate) project_id: String,
    pub(crate) project_path: String,
    pub(crate) created_at: String,
    /// How often the conversation was replaced by what its agent knew; numbers of an earlier one mean nothing.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) edition: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
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
    /// What the person chose of what the agent offers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) chosen: Option<Chosen>,
    /// All that is waiting to be sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) queue: Option<Vec<QueuedMessage>>,
}

impl Note {
    pub(crate) fn update(&mut self, later: Self) {
        self.title = later.title.or(self.title.take());
        self.archived = later.archived.or(self.archived);
        self.policy = later.policy.or(self.policy);
        self.chosen = later.chosen.or(self.chosen.take());
        self.queue = later.queue.or(self.queue.take());
    }
}

/// What a person chose of what the agent offers. One that is started anew may have forgotten.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Chosen {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mode: Option<String>,
    /// In the order in which they were chosen: one may change what the next one means.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) options: Vec<(String, Value)>,
}

/// A line of the transcript that is no entry.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Aside {
    Session(Header),
    Note(Note),
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
    /// Whether `file` is open for appending and ends with a whole line. Not so after an error, or while the disk may not
    /// be written.
    ready: bool,
    /// How often the conversation was replaced.
    edition: u64,
    /// Where each entry stands; a zero length means nowhere.
    lines: Vec<Line>,
    live: LiveFile,
}

/// The turn in flight, as far as it is on disk.
#[derive(Debug, Default)]
struct LiveFile {
    file: Option<File>,
    /// A turn began in it.
    turn: bool,
    bytes: u64,
    /// How long it was when it was last written anew.
    bytes_then: u64,
    /// It could not be synced: what it holds may not be on disk, though it can be read.
    doubtful: bool,
}

impl Transcript {
    /// A new conversation, on disk when this returns.
    pub(crate) fn create(path: &Path, header: &Header) -> io::Result<Self> {
        let line = aside(&Aside::Session(header.clone()))?;
        durable::replace(path, &line)?;
        Ok(Self {
            path: path.to_owned(),
            file: append_to(path)?,
            size: line.len() as u64,
            ready: true,
            edition: header.edition,
            lines: vec![],
            live: LiveFile::default(),
        })
    }

    /// Reads what there is of it; a missing file is an empty conversation. A disk that may not be written can be read.
    pub(crate) fn open(path: &Path) -> io::Result<(Self, Found)> {
        let mut found = Found::default();
        let mut lines: Vec<Line> = vec![];
        let (mut file, writable) = match append_to(path) {
            Ok(file) => (file, true),
            Err(error) => (File::open(path).map_err(|_| error)?, false),
        };
        scan(&mut file, |offset, line| {
            if let Some(number) = number_of(line) {
                let index = usize::try_from(number - 1).unwrap_or(usize::MAX);
                // A number far beyond what is there was not written by us.
                if index > lines.len() + GAP_MAX {
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
        let sealed = if writable { seal(&mut file).ok() } else { None };
        let mut transcript = Self {
            path: path.to_owned(),
            file,
            size: sealed.unwrap_or_default(),
            ready: sealed.is_some(),
            edition: found.header.as_ref().map_or(0, |header| header.edition),
            lines,
            live: LiveFile::default(),
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
                let entry = entry_of(text).unwrap_or_else(|| unreadable(number));
                entries.push(entry);
            }
            at = end;
        }
        Ok(entries)
    }

    /// Adds what was said about the session.
    pub(crate) fn note(&mut self, note: Note) -> io::Result<()> {
        let line = aside(&Aside::Note(note))?;
        self.append(|text| text.write_all(&line))?;
        Ok(())
    }

    /// Writes changes to the live file. They survive the end of this process when this returns.
    pub(crate) fn write_live(&mut self, changes: &[EntryChange], begins: bool) -> io::Result<()> {
        let says_nothing = |change: &EntryChange| matches!(change, EntryChange::Finish { .. });
        if !begins && changes.iter().all(says_nothing) {
            return Ok(());
        }
        match begins || self.live.file.is_none() {
            true => ownership::check(&self.path)?,
            false => ownership::check_known(&self.path)?,
        }
        // After an error it is opened anew, and sealed.
        let mut live = match self.live.file.take() {
            Some(live) => live,
            None => {
                let mut live = append_to(&live_path(&self.path))?;
                seal(&mut live)?;
                let first = live::first_line(self.edition)?;
                append(&mut live, |text| text.write_all(&first))?;
                live
            }
        };
        let ((), bytes) = append(&mut live, |text| {
            if begins {
                live::write_turn(text)?;
            }
            changes
                .iter()
                .try_for_each(|change| live::write_change(text, change))
        })?;
        self.live.file = Some(live);
        self.live.bytes += bytes;
        self.live.turn |= begins;
        Ok(())
    }

    /// Whether the live file says the same again and again.
    pub(crate) fn live_is_long(&self) -> bool {
        self.live.bytes > LIVE_BYTES.max(self.live.bytes_then * LIVE_GROWTH)
    }

    /// Waits until what is in the live file is on disk. After an error it is not known what is: it has to be rewritten.
    pub(crate) fn sync_live(&mut self) -> io::Result<()> {
        let synced = match &self.live.file {
            Some(live) => live.sync_data(),
            None => Ok(()),
        };
        let synced = synced.and_then(|()| ownership::check(&self.path));
        self.live.doubtful |= synced.is_err();
        synced
    }

    /// Whether the live file has to be rewritten before it is used again.
    pub(crate) fn live_is_doubtful(&self) -> bool {
        self.live.doubtful
    }

    /// Makes the live file say these entries and nothing else, durably. A turn that could not be written has not begun.
    pub(crate) fn rewrite_live(&mut self, entries: &BTreeMap<u64, ChatEntry>) -> io::Result<()> {
        self.live.turn &= !self.live.doubtful;
        if entries.is_empty() {
            self.end_live()?;
        } else {
            let mut text = live::first_line(self.edition)?;
            if self.live.turn {
                live::write_turn(&mut text)?;
            }
            for entry in entries.values() {
                live::write_change(&mut text, &EntryChange::Begin(entry.clone()))?;
            }
            self.live.file = None;
            durable::replace(&live_path(&self.path), &text)?;
            self.live.bytes = text.len() as u64;
            self.live.bytes_then = self.live.bytes;
        }
        self.live.doubtful = false;
        Ok(())
    }

    /// The same, shorter. After an error it is tried again when it is twice as long.
    pub(crate) fn shorten_live(&mut self, entries: &BTreeMap<u64, ChatEntry>) -> io::Result<()> {
        let rewritten = self.rewrite_live(entries);
        if rewritten.is_err() {
            self.live.bytes_then = self.live.bytes / 2;
        }
        rewritten
    }

    /// Moves finished entries into the transcript, durably, and ends the live file.
    pub(crate) fn fold(&mut self, entries: &BTreeMap<u64, ChatEntry>) -> io::Result<()> {
        if !entries.is_empty() {
            let (offset, lines) =
                self.append(|text| write_entries(text, Appending::bytes, entries))?;
            for (number, mut line) in lines {
                line.offset += offset;
                place(&mut self.lines, number as usize - 1, line);
            }
        }
        self.end_live()
    }

    /// Replaces the whole conversation, at once or not at all. What it takes the place of is kept in `kept`.
    ///
    /// A turn that is `running` has its entries among the new ones.
    pub(crate) fn replace(
        &mut self,
        header: &Header,
        note: Note,
        entries: &BTreeMap<u64, ChatEntry>,
        running: bool,
        kept: &Path,
    ) -> io::Result<()> {
        let header = Header {
            edition: self.edition + 1,
            ..header.clone()
        };
        let mut text = aside(&Aside::Session(header.clone()))?;
        if note != Note::default() {
            text.extend(aside(&Aside::Note(note))?);
        }
        let lines = write_entries(&mut text, |text| text.len() as u64, entries)?;
        ownership::check(&self.path)?;
        if let Some(folder) = kept.parent() {
            durable::create_private_dir(folder)?;
        }
        match std::fs::hard_link(&self.path, kept) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let replaced = durable::replace(&self.path, &text).and_then(|()| append_to(&self.path));
        let file = replaced.inspect_err(|_| {
            // It may have taken the place all the same, and what is said next would go to the one that nobody finds.
            let _ = std::fs::rename(kept, &self.path);
            let _ = std::fs::remove_file(kept);
        })?;
        *self = Self {
            file,
            path: std::mem::take(&mut self.path),
            size: text.len() as u64,
            ready: true,
            edition: header.edition,
            lines: vec![],
            live: LiveFile::default(),
        };
        for (number, line) in lines {
            place(&mut self.lines, number as usize - 1, line);
        }
        // Until here the live file says the same of a running turn, and is known to be of an earlier edition.
        self.end_live()?;
        if running {
            self.write_live(&[], true)?;
        }
        Ok(())
    }

    /// Adds whole lines, durably, and says where they begin. After an error they have to be added again.
    fn append<T>(
        &mut self,
        write: impl FnOnce(&mut Appending) -> io::Result<T>,
    ) -> io::Result<(u64, T)> {
        ownership::check(&self.path)?;
        if !self.ready {
            self.file = append_to(&self.path)?;
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

    fn end_live(&mut self) -> io::Result<()> {
        ownership::check(&self.path)?;
        self.live = LiveFile {
            doubtful: self.live.doubtful,
            ..LiveFile::default()
        };
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
        let live = live::read(&mut file)?;
        found.interrupted = live.running;
        // It goes away with the turn, and what was in it might still be wanted. Once is enough.
        if live.damaged && file.metadata()?.nlink() == 1 {
            match durable::keep_beside(&path) {
                Ok(kept) => {
                    tracing::warn!(kept = %kept.display(), "part of a turn could not be read")
                }
                Err(error) => {
                    tracing::error!(%error, "could not keep a turn that could not be read")
                }
            }
        }
        if live.edition != self.edition {
            // All it has became part of the conversation when that was replaced.
            let _ = self.end_live();
            return Ok(());
        }
        found.in_flight = live.entries;
        let last = self.total() + GAP_MAX as u64;
        found
            .in_flight
            .retain(|number, _| (1..=last).contains(number));
        Ok(())
    }
}

fn aside(aside: &Aside) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(aside)?;
    line.push(b'\n');
    Ok(line)
}

/// Adds a line for each entry, and says where in the text it stands.
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

fn place(lines: &mut Vec<Line>, index: usize, line: Line) {
    if index >= lines.len() {
        lines.resize(index + 1, Line::default());
    }
    lines[index] = line;
}

/// Any bytes as a conversation and its live file: they are opened, read and appended to, and say the same again.
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

/// The live file beside a transcript.
pub(crate) fn live_path(path: &Path) -> PathBuf {
    path.with_extension("live.jsonl")
}

/// The number of an entry's line, without reading the rest of it.
fn number_of(line: &[u8]) -> Option<u64> {
    let digits = line.strip_prefix(ENTRY_BEGINS)?;
    let end = digits.iter().position(|byte| !byte.is_ascii_digit())?;
    // A torn line is no entry.
    let whole = digits[end..].starts_with(b",\"entry\":{") && line.ends_with(b"}}");
    let whole = whole && has_id(&digits[end..], &digits[..end]);
    let number = std::str::from_utf8(&digits[..end]).ok()?.parse().ok()?;
    (whole && number > 0).then_some(number)
}

/// Whether an entry's id is of this number: one with a wrong byte must not take the place of another.
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
        title: "This part of the conversation could not be read from disk".to_owned(),
        description: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(number: u64, content: &str) -> ChatEntry {
        ChatEntry::Assistant {
            entry_id: format!("e{number}"),
            content: content.to_owned(),
            timestamp: String::new(),
        }
    }

    fn numbered(texts: &[&str]) -> BTreeMap<u64, ChatEntry> {
        let entries = (1..).zip(texts);
        entries.map(|(at, text)| (at, said(at, text))).collect()
    }

    fn header() -> Header {
        Header {
            version: VERSION,
            key: "key".to_owned(),
            session: "codex:1".to_owned(),
            cli_type: "codex".to_owned(),
            agent_id: None,
            project_id: "p".to_owned(),
            project_path: "/p".to_owned(),
            created_at: String::new(),
            edition: 0,
        }
    }

    /// A conversation of two entries with a third in flight, replaced by one of four.
    fn replaced(folder: &Path) -> (PathBuf, Transcript, Vec<u8>) {
        let path = folder.join("key.jsonl");
        let mut transcript = Transcript::create(&path, &header()).unwrap();
        transcript.fold(&numbered(&["one", "two"])).unwrap();
        let third = EntryChange::Begin(said(3, "sending"));
        transcript.write_live(&[third], true).unwrap();
        let live = std::fs::read(live_path(&path)).unwrap();
        let theirs = numbered(&["one", "two", "in the terminal", "sending"]);
        let kept = folder.join("trash/key.before.jsonl");
        transcript
            .replace(&header(), Note::default(), &theirs, true, &kept)
            .unwrap();
        (path, transcript, live)
    }

    /// Longer than what is gathered before it is written, and of characters that take more as JSON.
    #[test]
    fn long_entries_are_where_they_were_put() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key.jsonl");
        let mut transcript = Transcript::create(&path, &header()).unwrap();
        let long = [
            "\u{1}".repeat(300_000),
            "short".to_owned(),
            "\n".repeat(400_000),
        ];
        let entries = numbered(&long.each_ref().map(String::as_str));
        transcript.fold(&entries).unwrap();
        let all: Vec<ChatEntry> = entries.into_values().collect();
        assert_eq!(transcript.read(0, 3).unwrap(), all);
        let fourth = said(4, &long[0]);
        let change = EntryChange::Begin(fourth.clone());
        transcript.write_live(&[change], true).unwrap();
        let size = std::fs::metadata(live_path(&path)).unwrap().len();
        assert_eq!(transcript.live.bytes, size);
        let (read, found) = Transcript::open(&path).unwrap();
        assert_eq!(read.read(0, 3).unwrap(), all);
        assert_eq!(found.in_flight, BTreeMap::from([(4, fourth)]));
    }

    #[test]
    fn a_replaced_conversation_goes_on_and_its_turn_is_known_to_run() {
        let folder = tempfile::tempdir().unwrap();
        let (path, mut transcript, _) = replaced(folder.path());
        let fifth = EntryChange::Begin(said(5, "answer"));
        transcript.write_live(&[fifth], false).unwrap();
        let (read, found) = Transcript::open(&path).unwrap();
        assert_eq!(read.read(3, 9).unwrap(), [said(4, "sending")]);
        assert_eq!(found.in_flight, BTreeMap::from([(5, said(5, "answer"))]));
        assert!(found.interrupted);
        let before = std::fs::read_to_string(folder.path().join("trash/key.before.jsonl")).unwrap();
        assert!(before.contains("two") && !before.contains("terminal"));
    }

    #[test]
    fn a_live_file_from_before_the_replacement_overwrites_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (path, transcript, live) = replaced(folder.path());
        drop(transcript);
        // As a crash right after the replacement would leave it.
        std::fs::write(live_path(&path), live).unwrap();
        let (read, found) = Transcript::open(&path).unwrap();
        assert_eq!(read.read(2, 3).unwrap(), [said(3, "in the terminal")]);
        assert_eq!(found.in_flight, BTreeMap::new());
        assert!(found.interrupted);
        assert!(!live_path(&path).exists());
    }
}
