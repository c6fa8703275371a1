//! The first start, without a data directory: whatever goes wrong in it, the next start succeeds.

use anyhow::{Context, Result, ensure};
use testkit::{Person, ServerSetup, not_run, times};

use crate::fire_faults::data_check::DataCheck;
use crate::fire_faults::strace::{self, Strace};

/// The file-changing calls of a first start without faults.
async fn rehearsed() -> Result<Vec<(String, usize)>> {
    let mut calls = vec![];
    for writes in [true, false] {
        let setup = ServerSetup::scripted("")?;
        let strace = Strace::on(&setup, vec![]);
        let server = setup.start_by(&strace.watching(writes)).await?;
        server.signal("KILL").await?;
        calls.extend(strace.seen(writes)?);
    }
    ensure!(calls.len() > 5, "too few calls were recorded: {calls:?}");
    Ok(calls)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn first_start_killed_or_failing_at_any_call_spoils_nothing() -> Result<()> {
    if let Some(why) = strace::missing() {
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
        let setup = ServerSetup::scripted("")?;
        let strace = Strace::on(&setup, vec![]);
        match setup.start_by(&strace.by(fault)).await {
            Ok(server) => drop(server.signal("KILL").await?),
            Err(why) => {
                failed += 1;
                // A server that was not killed must report why it failed.
                let reported = format!("{why:#}");
                let killed = fault.contains("KILL");
                ensure!(killed || reported.len() > 60, "{fault}: {reported}");
            }
        }
        let log = strace.log()?.concat();
        hit += usize::from(log.contains("(INJECTED)") || log.contains("killed by SIGKILL"));
        assert_next_start_works(&setup)
            .await
            .with_context(|| fault.clone())?;
    }
    let all = faults.iter().step_by(step).count();
    eprintln!("{all} first starts, {hit} with an injected fault, {failed} failed");
    ensure!(hit * 2 > all, "only {hit} of {all} faults were injected");
    Ok(())
}

async fn assert_next_start_works(setup: &ServerSetup) -> Result<()> {
    let folder = setup.folder("app")?;
    let server = setup.start().await?;
    let mut person = Person::at(&server, &folder).await?;
    let mut talk = person.begin().await?;
    person.turn(&mut talk, "say hello").await?;
    server.signal("TERM").await?;
    DataCheck::default().can_be_read(&setup.data_dir())?;
    let server = setup.start().await?;
    let mut person = Person::at(&server, &folder).await?;
    let now = person.open(&talk.session_id).await?;
    ensure!(now.entries == talk.entries, "{:?}", now.said());
    Ok(())
}
