//! Power-cut tests: everything a client was shown survives a power cut, whatever the disk keeps of unsynced writes.
//!
//! strace records a real server: its file changes, and the messages to its clients in between. The recording is cut
//! after every call, under each model of `crash_models`; a real server starts in the resulting state, and its data is
//! compared with what was shown before the cut. `cargo xtask test fire` checks 20,000 states.

#![expect(
    clippy::print_stderr,
    reason = "measurements and skipped tests are reported"
)]

mod calls;
mod check;
mod compare;
mod crash_models;
mod crash_models_tests;
mod disk;
mod expected;
mod messages;
mod observed;
mod parsing_tests;
mod random;
mod recording;
mod replay;
mod scenario;
mod state;

use anyhow::{Result, ensure};
use testkit::{not_run, times};

use crate::power_cut::check::{Report, check_states};
use crate::power_cut::replay::Replay;

/// Seed of the random choices. Recordings still differ in their timestamps and ids.
const SEED: u64 = 24;
/// Number of states checked for the long turn; each may have up to 130 MiB.
const LONG_STATES: usize = 40;

/// The recordings, each with an equal share of the states.
async fn replays() -> Result<Vec<Replay>> {
    Ok(vec![
        scenario::turns().await?,
        scenario::sessions().await?,
        scenario::gateway().await?,
        scenario::built_in_agent().await?,
        scenario::audit().await?,
        scenario::queue().await?,
        scenario::recovery().await?,
    ])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn power_cut_at_any_moment_loses_nothing_that_was_shown() -> Result<()> {
    if let Some(why) = recording::missing() {
        return not_run(why);
    }
    let mut report = Report::default();
    let states = times(210, 20_000);
    let replays = replays().await?;
    // A second power cut, during the recovery from the first one.
    let cases = scenario::to_recover(&replays[0], times(1, 20), SEED);
    for case in &cases {
        let second = scenario::second_cut(&replays[0], case, SEED).await?;
        let count = states / (replays.len() + 1) / cases.len();
        report.add(check_states(second, count, SEED).await?);
    }
    let mut left = replays.len();
    for replay in replays {
        // A replay with few distinct states leaves the rest of its share to the others.
        let count = (states - report.states).div_ceil(left);
        left -= 1;
        report.add(check_states(replay, count, SEED).await?);
    }
    eprintln!("{}", report.summary());
    ensure!(report.violations.is_empty(), "data that was shown is lost");
    Ok(())
}

/// Long form only, because the live log has to grow to 64 MiB first.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn power_cut_while_a_live_log_is_compacted_loses_nothing() -> Result<()> {
    if times(0, 1) == 0 {
        return Ok(());
    }
    if let Some(why) = recording::missing() {
        return not_run(why);
    }
    let report = check_states(scenario::long_turn().await?, LONG_STATES, SEED).await?;
    eprintln!("compaction of a live log: {}", report.summary());
    ensure!(report.violations.is_empty(), "data that was shown is lost");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn power_cut_test_detects_losses_on_a_disk_that_ignores_syncs() -> Result<()> {
    if let Some(why) = recording::missing() {
        return not_run(why);
    }
    let replay = scenario::sessions().await?.ignoring_syncs();
    let report = check_states(replay, times(12, 200), SEED).await?;
    eprintln!("without syncs: {}", report.summary());
    for kind in ["a session is lost", "a project is lost"] {
        ensure!(report.violations.contains_key(kind), "not detected: {kind}");
    }
    Ok(())
}
