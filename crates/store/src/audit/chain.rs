//! The chain of audit lines: each line contains the SHA-256 of the line before, over rotation and restarts.
//!
//! `scan` follows a chain. It tells bytes that a power cut or a failed write left from lines that were changed: the former
//! are at the end, or are followed by a line that records their length and hash. The chain shows a change only to lines
//! that have lines after them, and only of a writer that does not compute it again. Pure.

use serde::Deserialize;
use sha2::{Digest, Sha256};

/// Stands for the line before the first one.
pub(super) const FIRST: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// What a line that records torn bytes is called.
pub(super) const TORN: &str = "torn";

pub(super) fn hash(line: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(line) {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// Adds the hash of the line before to a JSON object that is not empty.
pub(super) fn link(object: &str, before: &str) -> String {
    let open = object.strip_suffix('}').unwrap_or(object);
    format!("{open},\"prev\":\"{before}\"}}")
}

#[derive(Deserialize)]
struct Line {
    prev: Option<String>,
    what: Option<String>,
    bytes: Option<u64>,
    sha256: Option<String>,
}

/// What following a chain has shown.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Scan {
    /// The hash of the last readable line.
    pub(super) last: Option<String>,
    /// Whether a line with a hash was found.
    pub(super) chained: bool,
    pub(super) lines: u64,
    /// Lines of earlier versions, before the first one with a hash.
    pub(super) unchained: u64,
    /// Torn places that were recorded.
    pub(super) repaired: u64,
    /// The offset of unrecorded torn bytes at the end of the last text.
    pub(super) torn: Option<usize>,
    /// The number of the first line of the last text that does not fit to the line before.
    pub(super) broken: Option<u64>,
}

impl Scan {
    /// Begins where the hash of the line before is known.
    pub(super) fn after(last: &str) -> Self {
        Self {
            last: Some(last.to_owned()),
            ..Self::default()
        }
    }

    /// Follows the chain through the text of a file.
    pub(super) fn follow(&mut self, text: &[u8]) {
        let (mut at, mut number) = (0, 0);
        while at < text.len() {
            number += 1;
            let rest = &text[at..];
            let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            let line = &rest[..end];
            let next = at + end + 1;
            match serde_json::from_slice::<Line>(line) {
                Ok(read) => self.add(line, read.prev.as_deref(), number),
                Err(_) => match self.torn_until(text, at) {
                    Torn::Recorded(record, lines) => {
                        self.repaired += 1;
                        number += lines - 1;
                        at = record;
                        continue;
                    }
                    Torn::AtEnd => {
                        self.torn = Some(at);
                        return;
                    }
                    Torn::Not if self.chained => self.breaks(number),
                    // Versions before the chain left torn lines without a record.
                    Torn::Not => {}
                },
            }
            at = next;
        }
    }

    fn add(&mut self, line: &[u8], prev: Option<&str>, number: u64) {
        self.lines += 1;
        match (prev, &self.last) {
            (Some(prev), Some(last)) if prev != last => self.breaks(number),
            (None, _) if self.chained => self.breaks(number),
            (None, _) => self.unchained += 1,
            _ => {}
        }
        self.chained |= prev.is_some();
        self.last = Some(hash(line));
    }

    fn breaks(&mut self, number: u64) {
        self.broken.get_or_insert(number);
    }

    /// What an unreadable line at this offset is.
    fn torn_until(&self, text: &[u8], at: usize) -> Torn {
        let region = &text[at..];
        let (mut offset, mut lines, mut unreadable) = (0, 0, true);
        for line in region.split_inclusive(|byte| *byte == b'\n') {
            if let Ok(read) = serde_json::from_slice::<Line>(line) {
                let is_record = read.what.as_deref() == Some(TORN)
                    && read.prev == self.last
                    && read.bytes == Some(offset as u64)
                    && read.sha256 == Some(hash(&region[..offset]));
                if is_record {
                    return Torn::Recorded(at + offset, lines);
                }
                unreadable = false;
            }
            offset += line.len();
            lines += 1;
        }
        // A page that was not written reads as zeros, which no line contains; the lines after it may be whole.
        match unreadable || memchr::memchr(0, region).is_some() {
            true => Torn::AtEnd,
            false => Torn::Not,
        }
    }
}

enum Torn {
    /// The offset of the record, and the number of lines before it.
    Recorded(usize, u64),
    AtEnd,
    Not,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chain of these objects after `before`.
    fn chain(before: &str, objects: &[&str]) -> Vec<String> {
        let mut last = before.to_owned();
        let link = |object: &&str| {
            let line = link(object, &last);
            last = hash(line.as_bytes());
            line
        };
        objects.iter().map(link).collect()
    }

    fn followed(text: &[u8]) -> Scan {
        let mut scan = Scan::default();
        scan.follow(text);
        scan
    }

    const OBJECTS: [&str; 4] = [r#"{"a":1}"#, r#"{"a":2}"#, r#"{"a":3}"#, r#"{"a":4}"#];

    #[test]
    fn changed_removed_or_inserted_line_breaks_the_chain_at_its_place() {
        let lines = chain(FIRST, &OBJECTS);
        let whole = lines.join("\n") + "\n";
        assert_eq!(followed(whole.as_bytes()).broken, None);
        let changed = whole.replace(":2,", ":7,");
        assert_eq!(followed(changed.as_bytes()).broken, Some(3));
        let removed = [&lines[0], &lines[2], &lines[3]]
            .map(String::as_str)
            .join("\n");
        assert_eq!(followed(removed.as_bytes()).broken, Some(2));
        for inserted in [r#"{"a":9}"#, "words", &lines[0]] {
            let inserted = whole.replace(&lines[2], &format!("{inserted}\n{}", lines[2]));
            assert_eq!(followed(inserted.as_bytes()).broken, Some(3));
        }
    }

    #[test]
    fn torn_end_of_any_length_is_no_break() {
        let whole = chain(FIRST, &OBJECTS).join("\n") + "\n";
        for length in 0..whole.len() {
            for zeros in [0, whole.len() - length] {
                let mut torn = whole.as_bytes()[..length].to_vec();
                torn.extend(std::iter::repeat_n(0, zeros));
                assert_eq!(followed(&torn).broken, None, "{length} and {zeros} zeros");
            }
            // A page that was lost in the middle of unsynced lines.
            let mut hole = whole.clone().into_bytes();
            let end = hole.len().min(length + 40);
            hole[length..end].fill(0);
            assert_eq!(followed(&hole).broken, None, "hole at {length}");
        }
    }

    #[test]
    fn lines_of_earlier_versions_are_read_as_before() {
        let old = "{\"old\":1}\n{\"torn\n{\"old\":2}\n";
        let lines = chain(&hash(b"{\"old\":2}"), &OBJECTS);
        let scan = followed(format!("{old}{}\n", lines.join("\n")).as_bytes());
        let counts = (scan.broken, scan.unchained, scan.lines);
        assert_eq!(counts, (None, 2, 6));
        let changed = old.replace(":2", ":3");
        let scan = followed(format!("{changed}{}\n", lines.join("\n")).as_bytes());
        assert_eq!(scan.broken, Some(4));
    }
}
