//! Link reference definitions and footnotes of earlier blocks.
//!
//! Each block of a streamed text is written only once, so a definition applies only to the text after
//! it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Maximum definitions per text. Further ones are ignored, and their uses are shown as typed.
const DEFINITIONS_MAX: usize = 1000;
const ADDRESS_BYTES_MAX: usize = 2048;

/// Cheap to clone, because every flush clones it to render the unfinished tail.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    addresses: Arc<HashMap<String, String>>,
    notes: Arc<HashSet<String>>,
}

impl Known {
    pub(crate) fn address(&self, label: &str) -> Option<&str> {
        if self.addresses.is_empty() {
            return None;
        }
        self.addresses.get(&folded(label)).map(String::as_str)
    }

    /// Adds a definition. The first definition of a label wins.
    pub(crate) fn add_address(&mut self, label: &str, address: String) {
        if self.addresses.len() < DEFINITIONS_MAX && address.len() <= ADDRESS_BYTES_MAX {
            Arc::make_mut(&mut self.addresses)
                .entry(folded(label))
                .or_insert(address);
        }
    }

    /// Whether the label is a footnote. Numbers always are, since footnotes are usually defined after
    /// their first use.
    pub(crate) fn has_note(&self, label: &str) -> bool {
        let is_number = (1..=3).contains(&label.len()) && label.bytes().all(|b| b.is_ascii_digit());
        is_number || self.notes.contains(label)
    }

    pub(crate) fn add_note(&mut self, label: &str) {
        if self.notes.len() < DEFINITIONS_MAX && !self.notes.contains(label) {
            Arc::make_mut(&mut self.notes).insert(label.to_owned());
        }
    }
}

fn folded(label: &str) -> String {
    let words = label.split_whitespace().collect::<Vec<_>>();
    words.join(" ").to_lowercase()
}
