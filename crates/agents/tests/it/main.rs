//! Agents as real processes: the scripted agent under a real keeper, real files and real terminals.

mod connection;
mod conversation;
#[cfg(target_os = "linux")]
mod host;
mod host_files;
mod lifecycle;

use std::path::Path;

use agents::Auditor;
use serde_json::Value;
use store::Audit;

/// Records into an audit file, as the hub does.
fn auditor(audit: Audit) -> Auditor {
    Auditor::new(move |session_id, event| audit.record(session_id, event))
}

/// The lines of the audit in this folder: what was allowed, then what was refused.
fn audit_lines(folder: &Path) -> Vec<Value> {
    let files = ["audit.jsonl", "audit.refused.jsonl"].map(|name| folder.join(name));
    let texts = files.map(|file| std::fs::read_to_string(file).unwrap_or_default());
    let lines = texts.iter().flat_map(|text| text.lines());
    lines
        .map(|line| serde_json::from_str(line).expect("a JSON line"))
        .collect()
}
