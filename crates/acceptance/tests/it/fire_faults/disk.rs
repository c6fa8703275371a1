//! A disk that fails, is full or may not be written: reading works, what cannot be kept is refused aloud, and all is
//! well again as soon as the disk is.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use testkit::{not_run, times};

use crate::fire_faults::story::Story;
use crate::fire_faults::trap;

/// Far longer than the story takes, with the pauses in which a held back text is written again.
const STORY: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_at_any_call_that_changes_a_file_is_survived_and_said() -> Result<()> {
    if let Some(why) = trap::missing() {
        return not_run(why);
    }
    let calls = Story::rehearsed().await?;
    let faults: Vec<String> = calls
        .iter()
        .flat_map(|(call, number)| {
            let fault = |error: &str| format!("{call}:error={error}:when={number}");
            // Only what needs room can run out of it; where that is found later than at the write, a sync says so.
            let needs_room = !["unlink", "unlinkat", "ftruncate"].contains(&call.as_str());
            [Some(fault("EIO")), needs_room.then(|| fault("ENOSPC"))]
        })
        .flatten()
        .collect();
    let step = faults.len().div_ceil(times(12, faults.len()));
    let (mut hit, mut refused) = (0, 0);
    for fault in faults.iter().step_by(step) {
        let mut story = Story::prepare().await?;
        let trap = story.trap();
        // It may be that it cannot start, and then it says why.
        if let Ok(server) = story.setup.start_by(&trap.by(fault)).await {
            let told = tokio::time::timeout(STORY, story.happens(&server)).await;
            told.context("it hangs")
                .flatten()
                .with_context(|| fault.clone())?;
            story.is_audited().await.with_context(|| fault.clone())?;
            server.signal("KILL").await?;
        }
        let log = trap.log()?;
        hit += usize::from(log.iter().any(|line| line.contains("(INJECTED)")));
        refused += usize::from(!story.shown.refused.is_empty());
        nothing_is_trusted_after_a_failed_sync(&log)
            .with_context(|| format!("{fault}\n{}", log.join("\n")))?;
        story.is_told_again().await.with_context(|| fault.clone())?;
    }
    let all = faults.iter().step_by(step).count();
    eprintln!("{hit} of {all} faults happened, {refused} were said");
    ensure!(hit * 2 > all, "only {hit} of {all} faults happened");
    Ok(())
}

/// The kernel drops what it could not write, and says so once: a sync that works afterwards proves nothing about it.
/// So what a failed sync was about is written again before its other copy goes away, and a live file with a doubt is
/// replaced before anything is added to it.
fn nothing_is_trusted_after_a_failed_sync(log: &[String]) -> Result<()> {
    let mut written: HashMap<&str, u64> = HashMap::new();
    let mut owed: HashMap<&str, u64> = HashMap::new();
    // Live files that hold something.
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
                ensure!(!doubtful, "added to {open}, which could not be synced");
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
                // A change that is refused while nothing is in flight, such as a new name, is no copy of anything.
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
                ensure!(!owes, "{name} went away before its copy was on disk");
                owed.remove(name);
                living.remove(name);
            }
            "ftruncate" if worked => drop(owed.remove(open)),
            _ => {}
        }
    }
    Ok(())
}
