//! The lines of a live log: changes of a running turn, or complete entries after a rewrite.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};
use wire::ChatEntry;

use conversation::{EntryChange, entry_number, extend};
use durable::lines::scan;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum LiveLine<'a> {
    /// Edition of the transcript that the entry numbers belong to; 0 if the line is absent.
    Edition(u64),
    /// Length of the transcript when the log began.
    Base(u64),
    /// A turn begins here.
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

/// The content of a live log.
#[derive(Debug, Default)]
pub(super) struct Live {
    pub(super) edition: u64,
    /// `None` in logs of earlier versions.
    pub(super) base: Option<u64>,
    pub(super) entries: BTreeMap<u64, ChatEntry>,
    /// Number of the first entry of the last turn; `None` if the log has the turn's first line only.
    pub(super) turn: Option<u64>,
    /// Whether some lines were unreadable.
    pub(super) damaged: bool,
}

/// The first lines of a live log.
pub(super) fn head(edition: u64, base: u64) -> io::Result<Vec<u8>> {
    let mut text = vec![];
    if edition > 0 {
        write(&mut text, &LiveLine::Edition(edition))?;
    }
    write(&mut text, &LiveLine::Base(base))?;
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

/// Reads a live log. Unreadable lines are skipped.
pub(super) fn read(file: &mut impl Read) -> io::Result<Live> {
    let mut live = Live::default();
    let mut turn_begins = false;
    scan(file, |_, line| {
        let Ok(line) = serde_json::from_slice::<LiveLine>(line) else {
            live.damaged = true;
            return;
        };
        match line {
            LiveLine::Edition(number) => live.edition = number,
            LiveLine::Base(bytes) => live.base = live.base.or(Some(bytes)),
            LiveLine::Turn(_) => (turn_begins, live.turn) = (true, None),
            LiveLine::Begin(entry) | LiveLine::Replace(entry) => {
                let entry = entry.into_owned();
                let number = entry_number(entry.entry_id());
                let known = live.entries.get(&number).map(std::mem::discriminant);
                // An entry never changes its kind, so the number in this line is damaged.
                if known.is_some_and(|known| known != std::mem::discriminant(&entry)) {
                    live.damaged = true;
                    return;
                }
                if std::mem::take(&mut turn_begins) {
                    live.turn = Some(number);
                }
                live.entries.insert(number, entry);
            }
            LiveLine::Append { id, text } => {
                let change = EntryChange::Append {
                    entry_id: id.into_owned(),
                    text: text.into_owned(),
                };
                extend_known(&mut live.entries, &change);
            }
            LiveLine::Terminal { id, terminal, text } => {
                let change = EntryChange::AppendTerminal {
                    entry_id: id.into_owned(),
                    terminal_id: terminal.into_owned(),
                    text: text.into_owned(),
                };
                extend_known(&mut live.entries, &change);
            }
        }
    })?;
    Ok(live)
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
