//! Invariants of a session, whatever happened during its turns.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;
use testkit::Conversation;

/// Maximum number of examples printed per kind.
const EXAMPLES: usize = 3;

/// Violations found, by kind.
#[derive(Default)]
pub(crate) struct Faults(BTreeMap<&'static str, Vec<String>>);

impl Faults {
    pub(crate) fn found(&mut self, kind: &'static str, what: String) {
        self.0.entry(kind).or_default().push(what);
    }

    pub(crate) fn add(&mut self, other: Self) {
        for (kind, mut found) in other.0 {
            self.0.entry(kind).or_default().append(&mut found);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn details(&self) -> String {
        let lines = self.0.iter().map(|(kind, found)| {
            let examples = found.iter().take(EXAMPLES);
            let examples: Vec<String> = examples.map(|what| format!("\n    {what}")).collect();
            format!("{kind}: {}{}\n", found.len(), examples.concat())
        });
        lines.collect()
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("no violations");
        }
        let kinds = self
            .0
            .iter()
            .map(|(kind, found)| format!("{kind}: {}", found.len()));
        f.write_str(&kinds.collect::<Vec<_>>().join(", "))
    }
}

/// A text that identifies its turn: `|s3t7a|` is the text `a` of turn 7 of session 3.
pub(crate) fn mark(session: u64, turn: usize, letter: char) -> String {
    format!("|s{session}t{turn}{letter}|")
}

/// The marks in the text that the agent wrote into an entry.
fn marks(entry: &Value) -> Vec<&str> {
    let mut texts = vec![];
    match entry["type"].as_str() {
        Some("assistant" | "thinking") => texts.extend(entry["content"].as_str()),
        Some("tool-call") => {
            texts.extend(entry["name"].as_str());
            let parts = entry["content"].as_array().into_iter().flatten();
            texts.extend(parts.filter_map(|part| part["text"].as_str()));
        }
        _ => {}
    }
    let pieces = texts.into_iter().flat_map(|text| text.split('|'));
    pieces.filter(|piece| piece.starts_with('s')).collect()
}

/// Splits a mark into its session and turn, and its letter.
fn parts(mark: &str) -> (&str, char) {
    let letter = mark.chars().next_back().unwrap_or_default();
    (&mark[..mark.len() - letter.len_utf8()], letter)
}

/// Number of updates that were kept although they arrived after the end of their turn: the letters `x` and `y`.
pub(crate) fn late(talk: &Conversation) -> usize {
    let marks = talk.entries.iter().flat_map(marks);
    marks
        .filter(|mark| matches!(parts(mark).1, 'x' | 'y'))
        .count()
}

/// Checks that each turn ends once and contains its own texts, each once and in the right entry.
pub(crate) fn check(talk: &Conversation, faults: &mut Faults) {
    // The session and turn that is running, identified by its message; `None` between turns.
    let mut turn: Option<String> = None;
    let mut ids: BTreeMap<&str, usize> = BTreeMap::new();
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for entry in &talk.entries {
        let at = || format!("{}: {entry}", talk.session_id);
        match entry["type"].as_str() {
            Some("user") => {
                if turn.is_some() {
                    faults.found("turn without an end", at());
                }
                let id = entry["requestId"].as_str().unwrap_or_default();
                *ids.entry(id).or_default() += 1;
                turn = Some(id.to_owned());
            }
            Some("turn") if turn.is_none() => faults.found("turn that ends twice", at()),
            Some("turn") => turn = None,
            _ if turn.is_none() => faults.found("entry outside of a turn", at()),
            _ => {}
        }
        let own = marks(entry);
        for mark in &own {
            let (of, letter) = parts(mark);
            *seen.entry(mark).or_default() += 1;
            if turn.as_deref().is_some_and(|turn| turn != of) {
                faults.found("text of another turn", at());
            }
            // The late text `x` continues the text `a`; the late result `y` belongs to the tool call `c`.
            let beside = match letter {
                'x' => 'a',
                'y' => 'c',
                _ => continue,
            };
            if !own.contains(&format!("{of}{beside}").as_str()) {
                faults.found("late update in another entry", at());
            }
        }
    }
    if turn.is_some() {
        faults.found("turn without an end", talk.session_id.clone());
    }
    for (mark, count) in seen.iter().filter(|(_, count)| **count > 1) {
        faults.found("duplicate text", format!("{mark} {count} times"));
    }
    for (id, count) in ids.iter().filter(|(_, count)| **count > 1) {
        faults.found("duplicate message", format!("{id} {count} times"));
    }
}
