//! The server is killed without a word: what a window was shown is there afterwards, once.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use testkit::{Conversation, Person, times};

use crate::setup;
use crate::story::Story;
use crate::trap;

/// What nobody should have to wait for longer.
const RECOVERY: Duration = Duration::from_secs(2);

/// In the long form nothing else runs, so that times mean something.
fn recovered(slowest: Duration) -> Result<()> {
    eprintln!("recovery: at most {} ms", slowest.as_millis());
    ensure!(
        times(0, 1) == 0 || slowest < RECOVERY,
        "recovery took {slowest:?}"
    );
    Ok(())
}

/// One lane of many: the server is killed in mid-stream, again and again. Returns the slowest recovery.
async fn lane(kills: u64, seed: u64) -> Result<Duration> {
    let setup = setup()?;
    let folder = setup.folder("app")?;
    let mut shown: Option<Conversation> = None;
    let mut slowest = Duration::ZERO;
    let mut random = seed;
    for round in 0..kills {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let begun = Instant::now();
        let server = setup.start().await?;
        let mut person = Person::at(&server, &folder).await?;
        let mut talk = match &shown {
            Some(shown) if round % 25 != 0 => {
                let now = person.open(&shown.session_id).await?;
                slowest = slowest.max(begun.elapsed());
                shown
                    .is_kept_in(&now)
                    .with_context(|| format!("seed {seed}, round {round}"))?;
                now
            }
            _ => person.begin().await?,
        };
        ensure!(!talk.is_running(), "a turn survived its server");
        person
            .send(&talk, "say begin\nrate 50 20 2000\ntool t1 execute Run\nflood 200 20\ntool-done t1 ok\nrate 200 20 2000")
            .await?;
        let until = Instant::now() + Duration::from_micros(random >> 49);
        while let Ok(message) = tokio::time::timeout_at(until.into(), person.socket.next()).await {
            talk.apply(&message?)?;
        }
        let killed = tokio::spawn(server.signal("KILL"));
        person.drain(&mut talk).await?;
        killed.await??;
        shown = Some(talk);
    }
    Ok(slowest)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_kills_in_mid_stream_lose_nothing_that_was_shown() -> Result<()> {
    let lanes = times(2, 1) as u64;
    let kills = times(100, 1000) as u64 / lanes;
    let lanes: Vec<_> = (1..=lanes)
        .map(|seed| tokio::spawn(lane(kills, seed)))
        .collect();
    let mut slowest = Duration::ZERO;
    for lane in lanes {
        slowest = slowest.max(lane.await??);
    }
    recovered(slowest)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_before_each_call_that_changes_a_file_it_loses_nothing_that_was_shown() -> Result<()>
{
    if let Some(why) = trap::missing() {
        eprintln!("not run: {why}");
        return Ok(());
    }
    let calls = Story::rehearsed().await?;
    let step = calls.len().div_ceil(times(8, calls.len()));
    let mut slowest = Duration::ZERO;
    let mut hit = 0;
    for (call, number) in calls.iter().step_by(step) {
        let fault = format!("{call}:signal=KILL:when={number}");
        let mut story = Story::prepare().await?;
        let by = story.trap().by(Some(&fault));
        // It may be killed before it is ready.
        if let Ok(server) = story.setup.start_by(&by).await {
            let told = story.happens(&server).await;
            match told {
                Err(_) => drop(server.ended().await?),
                Ok(()) => drop(server.signal("KILL").await?),
            }
            hit += usize::from(told.is_err());
        } else {
            hit += 1;
        }
        let took = story.is_told_again().await.with_context(|| fault.clone())?;
        slowest = slowest.max(took);
    }
    eprintln!("{} calls, {hit} of them fatal", calls.len());
    ensure!(hit * 2 > calls.len() / step, "only {hit} were hit");
    recovered(slowest)
}
