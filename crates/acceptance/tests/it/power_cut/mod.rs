//! Power cuts: everything a client was shown survives them, whatever the disk keeps of unsynced changes.
//!
//! strace records a real server: the changes of its files, and the messages to its clients in between. The recording is cut
//! after every call, under each model of `crash_models`; a real server starts in the state that is left, and what it shows
//! is compared with what was shown before the cut. `cargo xtask test fire` checks 20,000 states.

#![expect(
    clippy::print_stderr,
    reason = "the figures, and why a test was not run, are printed"
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

/// Seed of the choice of states. Recordings differ by their times and ids all the same.
const SEED: u64 = 24;
/// States of the long turn, of up to 130 MiB each.
const LONG_STATES: usize = 40;

/// Recordings from which states are taken in equal shares.
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
    // Cut once more while the next server recovers.
    let cases = scenario::to_recover(&replays[0], times(1, 20), SEED);
    for case in &cases {
        let second = scenario::second_cut(&replays[0], case, SEED).await?;
        let count = states / (replays.len() + 1) / cases.len();
        report.add(check_states(second, count, SEED).await?);
    }
    let mut left = replays.len();
    for replay in replays {
        // A replay with few distinct states leaves its share to the others.
        let count = (states - report.states).div_ceil(left);
        left -= 1;
        report.add(check_states(replay, count, SEED).await?);
    }
    eprintln!("{}", report.say());
    ensure!(report.violations.is_empty(), "what was shown is not there");
    Ok(())
}

/// Only in the long form: the live log has to be 64 MiB long first.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn power_cut_while_a_live_log_is_shortened_loses_nothing() -> Result<()> {
    if times(0, 1) == 0 {
        return Ok(());
    }
    if let Some(why) = recording::missing() {
        return not_run(why);
    }
    let report = check_states(scenario::long_turn().await?, LONG_STATES, SEED).await?;
    eprintln!("a live log is shortened: {}", report.say());
    ensure!(report.violations.is_empty(), "what was shown is not there");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn power_cut_of_a_disk_that_ignores_syncs_is_seen_to_lose_what_was_shown() -> Result<()> {
    if let Some(why) = recording::missing() {
        return not_run(why);
    }
    let replay = scenario::sessions().await?.ignoring_syncs();
    let report = check_states(replay, times(12, 200), SEED).await?;
    eprintln!("without syncs: {}", report.say());
    for kind in ["a session is lost", "a project is lost"] {
        ensure!(report.violations.contains_key(kind), "not seen: {kind}");
    }
    Ok(())
}
