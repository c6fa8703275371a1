//! What earlier blocks have defined: addresses by label, and footnotes.
//!
//! A growing text is written once, so a definition works from where it stands on; what came before
//! it stays as it was shown.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Definitions kept. More are ignored; their uses are shown as typed.
const DEFINITIONS_MAX: usize = 1000;
const ADDRESS_BYTES_MAX: usize = 2048;

/// Cheap to copy: a look ahead must not cost what the whole text has defined.
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

    /// The first definition of a label counts.
    pub(crate) fn add_address(&mut self, label: &str, address: String) {
        if self.addresses.len() < DEFINITIONS_MAX && address.len() <= ADDRESS_BYTES_MAX {
            Arc::make_mut(&mut self.addresses)
                .entry(folded(label))
                .or_insert(address);
        }
    }

    /// Numbers are footnotes even before theirs has come: that is where they are usually used.
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
