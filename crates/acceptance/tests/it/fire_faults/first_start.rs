//! The very first start, in a home without a data directory: whatever goes wrong in it, the next one is as good.

use anyhow::{Context, Result, ensure};
use testkit::{Person, ServerSetup, not_run, times};

use crate::fire_faults::remains::Remains;
use crate::fire_faults::setup;
use crate::fire_faults::trap::{self, Trap};

/// Every call that changes a file, while all goes well.
async fn rehearsed() -> Result<Vec<(String, usize)>> {
    let mut calls = vec![];
    for writes in [true, false] {
        let setup = setup()?;
        let trap = Trap::on(&setup, vec![]);
        let server = setup.start_by(&trap.watching(writes)).await?;
        server.signal("KILL").await?;
        calls.extend(trap.seen(writes)?);
    }
    ensure!(calls.len() > 5, "hardly anything is made: {calls:?}");
    Ok(calls)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_start_that_is_killed_or_fails_at_any_call_spoils_nothing() -> Result<()> {
    if let Some(why) = trap::missing() {
        return not_run(why);
    }
    let calls = rehearsed().await?;
    let faults: Vec<String> = calls
        .iter()
        .flat_map(|(call, number)| {
            let fault = |what: &str| format!("{call}:{what}:when={number}");
            ["signal=KILL", "error=EIO", "error=ENOSPC"].map(fault)
        })
        .collect();
    let step = faults.len().div_ceil(times(9, faults.len()));
    let (mut hit, mut failed) = (0, 0);
    for fault in faults.iter().step_by(step) {
        let setup = setup()?;
        let trap = Trap::on(&setup, vec![]);
        match setup.start_by(&trap.by(fault)).await {
            Ok(server) => drop(server.signal("KILL").await?),
            Err(why) => {
                failed += 1;
                // Whoever lives says why.
                let said = format!("{why:#}");
                let killed = fault.contains("KILL");
                ensure!(killed || said.len() > 60, "{fault}: {said}");
            }
        }
        let log = trap.log()?.concat();
        hit += usize::from(log.contains("(INJECTED)") || log.contains("killed by SIGKILL"));
        is_as_good(&setup).await.with_context(|| fault.clone())?;
    }
    let all = faults.iter().step_by(step).count();
    eprintln!("{all} first starts, {hit} with a fault, {failed} came to nothing");
    ensure!(hit * 2 > all, "only {hit} of {all} faults happened");
    Ok(())
}

async fn is_as_good(setup: &ServerSetup) -> Result<()> {
    let folder = setup.folder("app")?;
    let server = setup.start().await?;
    let mut person = Person::at(&server, &folder).await?;
    let mut talk = person.begin().await?;
    person.turn(&mut talk, "say hello").await?;
    server.signal("TERM").await?;
    Remains::default().can_be_read(&setup.data_dir())?;
    let server = setup.start().await?;
    let mut person = Person::at(&server, &folder).await?;
    let now = person.open(&talk.session_id).await?;
    ensure!(now.entries == talk.entries, "{:?}", now.said());
    Ok(())
}
