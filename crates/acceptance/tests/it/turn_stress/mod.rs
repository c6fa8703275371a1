//! Stress test of turns: many sessions of one agent at once, while turns are cancelled, the agent and the server are
//! killed, users retry during loads, replays follow the response to their load, and updates follow the end of their
//! turn.
//!
//! Every text of an agent contains the number of its session and turn, so that misplaced and duplicate texts are
//! detected. The violations are printed for each seed.

#![expect(
    clippy::print_stderr,
    reason = "the seeds and their results are reported"
)]

mod checks;
mod environment;
mod random;
mod session_run;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use testkit::times;

use self::checks::Faults;
use self::environment::Environment;
use self::session_run::SessionRun;

pub(crate) const SESSIONS: u64 = 20;
pub(crate) const TURNS: usize = 30;
/// Timeout of a run, far longer than it takes on a busy machine.
const HANG_GUARD: Duration = Duration::from_secs(240);

/// Runs all sessions to their end, then a last kill and a comparison with the data on disk.
async fn run(seed: u64) -> Result<Faults> {
    let environment = Arc::new(Environment::start(seed).await?);
    let runs =
        (1..=SESSIONS).map(|number| tokio::spawn(SessionRun::run(environment.clone(), number)));
    let runs: Vec<_> = runs.collect();
    let chaos = tokio::spawn({
        let environment = environment.clone();
        async move { environment.kill_repeatedly().await }
    });
    let mut faults = Faults::default();
    let mut ended = vec![];
    for run in runs {
        let (run, found) = run.await??;
        faults.add(found);
        ended.push(run);
    }
    environment.over.store(true, Ordering::Relaxed);
    chaos.await??;
    environment.kill_server().await?;
    let mut late = 0;
    for run in ended {
        let mut found = Faults::default();
        run.compare_with_disk(&environment, &mut found).await?;
        late += run.late();
        faults.add(found);
    }
    eprintln!(
        "seed {seed}: {}, {late} late updates kept",
        environment.summary()
    );
    ensure!(late > 0, "no late update was kept");
    Ok(faults)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn turns_stay_apart_under_kills_retries_and_late_output() -> Result<()> {
    let mut all = Faults::default();
    for seed in 1..=times(3, 500) as u64 {
        let begun = Instant::now();
        let faults = tokio::time::timeout(HANG_GUARD, run(seed)).await??;
        eprintln!("seed {seed}: {:.1?}, {faults}", begun.elapsed());
        all.add(faults);
    }
    ensure!(all.is_empty(), "{}", all.details());
    Ok(())
}
