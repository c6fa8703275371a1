//! Any lines from an agent: each is read or not, and what is read makes entries without gaps.

#![no_main]

use conversation::{EntryChange, Entries, entry_number};
use agents::{elicitation, from_acp};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use serde_json::value::RawValue;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let mut entries = Entries::after(0);
    let mut last = 0;
    for line in text.lines() {
        // As they come on the wire, and as they stand in one.
        let params = serde_json::from_str::<std::collections::HashMap<String, &RawValue>>(line);
        let params = params.ok().and_then(|line| line.get("params").map(|params| params.get()));
        let params = params.unwrap_or(line);
        if let Ok((_, update)) = from_acp::read(params) {
            for change in entries.apply(update, "2026-01-01T00:00:00.000Z") {
                if let EntryChange::Begin(entry) = &change {
                    let number = entry_number(entry.entry_id());
                    assert_eq!(number, last + 1, "an entry was left out");
                    last = number;
                }
            }
        }
        if let Ok(value) = serde_json::from_str::<Value>(params) {
            let _ = from_acp::permission(&value);
            let _ = elicitation::read(&value);
        }
    }
    entries.end_turn();
});
