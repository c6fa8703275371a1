//! Agents as real processes: the scripted agent under a real keeper, real files and real terminals.

mod connection;
mod conversation;
#[cfg(target_os = "linux")]
mod host;
mod host_files;
mod lifecycle;

use agents::Auditor;
use store::Audit;

/// Records into an audit file, as the hub does.
fn auditor(audit: Audit) -> Auditor {
    Auditor::new(move |session_id, event| audit.record(session_id, event))
}
