//! A disk with I/O errors: reading works, what cannot be kept is refused with an error, and everything works again as
//! soon as the disk does.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use testkit::{not_run, times};

use crate::fire_faults::strace;
use crate::fire_faults::workday::Workday;

/// Maximum duration of the workday, far longer than it takes even with retries of delayed writes.
const WORKDAY: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn error_at_any_file_changing_call_is_survived_and_reported() -> Result<()> {
    if let Some(why) = strace::missing() {
        return not_run(why);
    }
    let calls = Workday::rehearsed().await?;
    let faults: Vec<String> = calls
        .iter()
        .flat_map(|(call, number)| {
            let fault = |error: &str| format!("{call}:error={error}:when={number}");
            // Only calls that allocate space can fail with ENOSPC; with delayed allocation that includes fsync.
            let needs_room = !["unlink", "unlinkat", "ftruncate"].contains(&call.as_str());
            [Some(fault("EIO")), needs_room.then(|| fault("ENOSPC"))]
        })
        .flatten()
        .collect();
    let step = faults.len().div_ceil(times(12, faults.len()));
    let (mut hit, mut refused) = (0, 0);
    for fault in faults.iter().step_by(step) {
        let mut workday = Workday::prepare().await?;
        let strace = workday.strace();
        // The server may fail to start; then it has reported why.
        if let Ok(server) = workday.setup.start_by(&strace.by(fault)).await {
            let done = tokio::time::timeout(WORKDAY, workday.happens(&server)).await;
            done.context("the workday did not finish in time")
                .flatten()
                .with_context(|| fault.clone())?;
            workday.is_audited().await.with_context(|| fault.clone())?;
            server.signal("KILL").await?;
        }
        let log = strace.log()?;
        hit += usize::from(log.iter().any(|line| line.contains("(INJECTED)")));
        refused += usize::from(!workday.shown.refused.is_empty());
        assert_no_data_is_trusted_after_a_failed_sync(&log)
            .with_context(|| format!("{fault}\n{}", log.join("\n")))?;
        workday.is_restored().await.with_context(|| fault.clone())?;
    }
    let all = faults.iter().step_by(step).count();
    eprintln!("{hit} of {all} faults were injected, {refused} were reported");
    ensure!(hit * 2 > all, "only {hit} of {all} faults were injected");
    Ok(())
}

/// Checks the log for data that was trusted after a failed sync. The kernel drops the pages that it could not write and
/// reports this once; a later successful sync proves nothing. So the data of a failed sync must be written again before
/// its other copy is deleted, and a live log with a failed sync must be replaced before anything is appended to it.
fn assert_no_data_is_trusted_after_a_failed_sync(log: &[String]) -> Result<()> {
    let mut written: HashMap<&str, u64> = HashMap::new();
    let mut owed: HashMap<&str, u64> = HashMap::new();
    // Live logs with content.
    let mut living: HashSet<&str> = HashSet::new();
    for line in log {
        let call = line
            .split_once(' ')
            .map_or("", |(_, call)| call.trim_start());
        let open = call
            .split_once('<')
            .and_then(|(_, rest)| rest.split_once('>'));
        let open = open.map_or("", |(path, _)| path);
        let named: Vec<&str> = call.split('"').skip(1).step_by(2).collect();
        let worked = !call.contains(" = -1 ") && !call.ends_with(" = ?");
        match call.split('(').next().unwrap_or_default() {
            "write" if worked => {
                let doubtful = open.ends_with(".live.jsonl") && owed.contains_key(open);
                ensure!(!doubtful, "appended to {open} after a failed sync");
                let count = call
                    .rsplit(" = ")
                    .next()
                    .and_then(|count| count.parse().ok());
                *written.entry(open).or_default() += count.unwrap_or(0u64);
                if open.ends_with(".live.jsonl") {
                    living.insert(open);
                }
            }
            "fsync" | "fdatasync" => {
                let about = written.remove(open).unwrap_or(0);
                let debt = owed.remove(open).unwrap_or(0);
                // A refused change without a running turn, such as a new title, is not a copy of other data.
                let live = open.replace(".jsonl", ".live.jsonl");
                let is_copy = !open.contains("/sessions/")
                    || open.contains(".live.jsonl")
                    || living.contains(live.as_str());
                let debt = match worked {
                    true => debt.saturating_sub(about),
                    false if is_copy => debt + about,
                    false => debt,
                };
                if debt > 0 {
                    owed.insert(open, debt);
                }
            }
            "rename" | "renameat" | "renameat2" if worked && named.len() == 2 => {
                ensure!(!owed.contains_key(named[0]), "{} was not synced", named[0]);
                owed.remove(named[1]);
                if named[1].ends_with(".live.jsonl") {
                    living.insert(named[1]);
                }
            }
            "unlink" | "unlinkat" if worked => {
                let name = named.first().copied().unwrap_or_default();
                let other = name.replace(".live.jsonl", ".jsonl");
                let owes = other != name && owed.contains_key(other.as_str());
                ensure!(!owes, "{name} was deleted before its copy was synced");
                owed.remove(name);
                living.remove(name);
            }
            "ftruncate" if worked => drop(owed.remove(open)),
            _ => {}
        }
    }
    Ok(())
}
