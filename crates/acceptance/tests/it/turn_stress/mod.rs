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
mod lane;
mod random;
mod world;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use testkit::times;

use self::checks::Faults;
use self::lane::Lane;
use self::world::World;

pub(crate) const SESSIONS: u64 = 20;
pub(crate) const TURNS: usize = 30;
/// Timeout of a run, far longer than it takes on a busy machine.
const HANG_GUARD: Duration = Duration::from_secs(240);

/// One run: all lanes to their end, then a last kill and a comparison with the data on disk.
async fn run(seed: u64) -> Result<Faults> {
    let world = Arc::new(World::start(seed).await?);
    let lanes = (1..=SESSIONS).map(|number| tokio::spawn(Lane::run(world.clone(), number)));
    let lanes: Vec<_> = lanes.collect();
    let chaos = tokio::spawn({
        let world = world.clone();
        async move { world.kill_repeatedly().await }
    });
    let mut faults = Faults::default();
    let mut ended = vec![];
    for lane in lanes {
        let (lane, found) = lane.await??;
        faults.add(found);
        ended.push(lane);
    }
    world.over.store(true, Ordering::Relaxed);
    chaos.await??;
    world.kill_server().await?;
    let mut late = 0;
    for lane in ended {
        let mut found = Faults::default();
        lane.compare_with_disk(&world, &mut found).await?;
        late += lane.late();
        faults.add(found);
    }
    eprintln!("seed {seed}: {}, {late} late updates kept", world.summary());
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
