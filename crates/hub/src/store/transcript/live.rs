//! The live file: what a turn in flight has said so far, change by change, or entry by entry where it was written anew.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};
use wire::ChatEntry;

use super::lines::scan;
use crate::agents::entries::{EntryChange, entry_number, extend};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum LiveLine<'a> {
    /// Which edition of the conversation the numbers are of; without this line, the first.
    Edition(u64),
    /// From here on a turn is running.
    Turn(bool),
    Begin(Cow<'a, ChatEntry>),
    Replace(Cow<'a, ChatEntry>),
    Append {
        id: Cow<'a, str>,
        text: Cow<'a, str>,
    },
    Terminal {
        id: Cow<'a, str>,
        terminal: Cow<'a, str>,
        text: Cow<'a, str>,
    },
}

/// What a live file says.
pub(super) struct Live {
    pub(super) edition: u64,
    pub(super) entries: BTreeMap<u64, ChatEntry>,
    /// Whether the turn never ended.
    pub(super) running: bool,
    /// Whether there are lines that cannot be read.
    pub(super) damaged: bool,
}

/// How a new live file begins.
pub(super) fn first_line(edition: u64) -> io::Result<Vec<u8>> {
    let mut text = vec![];
    if edition > 0 {
        write(&mut text, &LiveLine::Edition(edition))?;
    }
    Ok(text)
}

pub(super) fn write_turn(text: &mut impl Write) -> io::Result<()> {
    write(text, &LiveLine::Turn(true))
}

pub(super) fn write_change(text: &mut impl Write, change: &EntryChange) -> io::Result<()> {
    use Cow::Borrowed;
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
        EntryChange::Finish { .. } => return Ok(()),
    };
    write(text, &line)
}

fn write(text: &mut impl Write, line: &LiveLine) -> io::Result<()> {
    serde_json::to_writer(&mut *text, line)?;
    text.write_all(b"\n")
}

/// A line that cannot be read is passed over.
pub(super) fn read(file: &mut impl Read) -> io::Result<Live> {
    let mut edition = 0;
    let mut turn = false;
    let mut last = 0;
    let mut damaged = false;
    let mut entries: BTreeMap<u64, ChatEntry> = BTreeMap::new();
    scan(file, |_, line| {
        let Ok(line) = serde_json::from_slice::<LiveLine>(line) else {
            damaged = true;
            return;
        };
        match line {
            LiveLine::Edition(number) => edition = number,
            LiveLine::Turn(running) => turn = running,
            LiveLine::Begin(entry) | LiveLine::Replace(entry) => {
                let entry = entry.into_owned();
                let number = entry_number(entry.entry_id());
                let known = entries.get(&number).map(std::mem::discriminant);
                // One of another kind has the number by a wrong byte.
                if known.is_some_and(|known| known != std::mem::discriminant(&entry)) {
                    damaged = true;
                    return;
                }
                last = last.max(number);
                entries.insert(number, entry);
            }
            LiveLine::Append { id, text } => {
                let change = EntryChange::Append {
                    entry_id: id.into_owned(),
                    text: text.into_owned(),
                };
                extend_known(&mut entries, &change);
            }
            LiveLine::Terminal { id, terminal, text } => {
                let change = EntryChange::AppendTerminal {
                    entry_id: id.into_owned(),
                    terminal_id: terminal.into_owned(),
                    text: text.into_owned(),
                };
                extend_known(&mut entries, &change);
            }
        }
    })?;
    let ended = |entry: &ChatEntry| matches!(entry, ChatEntry::Turn(_));
    Ok(Live {
        edition,
        running: turn && !entries.get(&last).is_some_and(ended),
        entries,
        damaged,
    })
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
