//! The server is killed without a word: what a window was shown is there afterwards, once.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use testkit::{Conversation, Person, Server, ServerSetup, not_run, times};

use crate::fire_faults::remains::{self, Moment, Remains};
use crate::fire_faults::setup;
use crate::fire_faults::story::Story;
use crate::fire_faults::trap;

/// What nobody should have to wait for longer.
const RECOVERY: Duration = Duration::from_secs(2);
const TRIES: usize = 2;

/// In the long form nothing else runs, so that times mean something.
fn recovered(slowest: Duration) -> Result<()> {
    eprintln!("recovery: at most {} ms", slowest.as_millis());
    ensure!(
        times(0, 1) == 0 || slowest < RECOVERY,
        "recovery took {slowest:?}"
    );
    Ok(())
}

const TURN: &str = "say begin\nrate 50 20 2000\ntool t1 execute Run\nflood 200 20\ntool-done t1 ok\nrate 200 20 2000";
/// All that is said after the tool call begins.
const LAST_BYTES: usize = 2 * 200 * 20;
/// Longer than it takes to move a turn to where it stays.
const END: Duration = Duration::from_millis(12);
/// Rounds in one session.
const ROUNDS: u64 = 25;

/// The same folder elsewhere, and nothing else there.
fn copy(from: &Path, to: &Path) -> Result<()> {
    if to.exists() {
        std::fs::remove_dir_all(to)?;
    }
    let copied = std::process::Command::new("cp")
        .arg("-a")
        .args([from, to])
        .status()?;
    ensure!(copied.success(), "could not copy {from:?}");
    Ok(())
}

/// What the kills of a lane have hit.
#[derive(Debug, Default)]
struct Toll {
    slowest: Duration,
    in_the_turn: usize,
    at_its_end: usize,
    after_it: usize,
    torn: usize,
}

/// One lane of many: the server is killed again and again, at any moment of a turn and beyond its end.
struct Lane {
    setup: ServerSetup,
    folder: String,
    random: u64,
    /// What was shown of each session, last.
    shown: Vec<Conversation>,
    remains: Remains,
    toll: Toll,
}

impl Lane {
    async fn run(kills: u64, seed: u64) -> Result<Toll> {
        let setup = setup()?;
        let mut lane = Self {
            folder: setup.folder("app")?,
            setup,
            random: seed,
            shown: vec![],
            remains: Remains::default(),
            toll: Toll::default(),
        };
        let whole = lane.whole_turn().await?;
        for round in 0..kills {
            let ended = lane.round(round, whole).await;
            ended.with_context(|| format!("seed {seed}, round {round}"))?;
        }
        // The last one, and every session before it.
        let (_server, mut person) = lane.start_again().await?;
        for shown in &lane.shown {
            shown.is_kept_in(&person.open(&shown.session_id).await?)?;
        }
        lane.toll.torn = lane.remains.torn();
        Ok(lane.toll)
    }

    /// How long a turn takes that nobody ends.
    async fn whole_turn(&mut self) -> Result<Duration> {
        let server = self.setup.start().await?;
        let mut person = Person::at(&server, &self.folder).await?;
        let mut talk = person.begin().await?;
        let begun = Instant::now();
        person.turn(&mut talk, TURN).await?;
        let took = begun.elapsed();
        self.shown.push(talk);
        server.signal("KILL").await?;
        Ok(took)
    }

    async fn round(&mut self, round: u64, whole: Duration) -> Result<()> {
        let (server, mut person) = self.start_again().await?;
        if round.is_multiple_of(ROUNDS) {
            self.shown.push(person.begin().await?);
        }
        let talk = self.shown.last_mut().context("a session")?;
        person.send(talk, TURN).await?;
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let part = (self.random >> 33) as f64 / (1_u64 << 31) as f64;
        // Every other one anywhere, the others around the end, which is short.
        let wait = match round % 2 {
            0 => whole.mul_f64(part * 1.25),
            _ => {
                person.until(talk, is_said).await?;
                END.mul_f64(part)
            }
        };
        let until = Instant::now() + wait;
        while let Ok(message) = tokio::time::timeout_at(until.into(), person.socket.next()).await {
            talk.apply(&message?)?;
        }
        let killed = tokio::spawn(server.signal("KILL"));
        person.drain(talk).await?;
        killed.await??;
        let dir = self.setup.data_dir();
        self.remains.can_be_read(&dir)?;
        match remains::moment(&dir)? {
            Moment::InTheTurn => self.toll.in_the_turn += 1,
            Moment::AtItsEnd => self.toll.at_its_end += 1,
            Moment::AfterIt => self.toll.after_it += 1,
        }
        Ok(())
    }

    /// Another server, which shows what was shown before it.
    async fn start_again(&mut self) -> Result<(Server, Person)> {
        let (dir, kept) = (self.setup.data_dir(), self.setup.home().join("kept"));
        copy(&dir, &kept)?;
        let (mut server, mut person, mut now, mut took) = self.recover().await?;
        // A disk may stand still for seconds, once; what we do, we do again with the same files.
        for _ in 0..TRIES {
            if times(0, 1) == 0 || took < RECOVERY {
                break;
            }
            eprintln!("recovery took {took:?}; the same again");
            server.signal("KILL").await?;
            copy(&kept, &dir)?;
            (server, person, now, took) = self.recover().await?;
        }
        self.toll.slowest = self.toll.slowest.max(took);
        let shown = self.shown.last_mut().context("a session")?;
        shown.is_kept_in(&now)?;
        ensure!(!now.is_running(), "a turn survived its server");
        *shown = now;
        self.remains.can_be_read(&self.setup.data_dir())?;
        Ok((server, person))
    }

    /// A server, somebody there, what is shown of the last session, and how long that took.
    async fn recover(&self) -> Result<(Server, Person, Conversation, Duration)> {
        let begun = Instant::now();
        let server = self.setup.start().await?;
        let mut person = Person::at(&server, &self.folder).await?;
        let last = self.shown.last().context("a session")?;
        let now = person.open(&last.session_id).await?;
        Ok((server, person, now, begun.elapsed()))
    }
}

/// Whether all of the turn's last text is there, and not yet its end.
fn is_said(seen: &Conversation) -> bool {
    let last = seen
        .entries
        .last()
        .filter(|last| last["type"] == "assistant");
    let content = last.and_then(|last| last["content"].as_str());
    content.is_some_and(|content| content.len() == LAST_BYTES)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_kills_at_any_moment_lose_nothing_that_was_shown() -> Result<()> {
    let lanes = times(2, 1) as u64;
    let kills = times(100, 1000) as u64 / lanes;
    let lanes: Vec<_> = (1..=lanes)
        .map(|seed| tokio::spawn(Lane::run(kills, seed)))
        .collect();
    let mut all = Toll::default();
    for lane in lanes {
        let toll = lane.await??;
        all.slowest = all.slowest.max(toll.slowest);
        all.in_the_turn += toll.in_the_turn;
        all.at_its_end += toll.at_its_end;
        all.after_it += toll.after_it;
        all.torn += toll.torn;
    }
    eprintln!(
        "killed {} times in a turn, {} while it was put away, {} after it; {} torn lines, 0 unreadable files",
        all.in_the_turn, all.at_its_end, all.after_it, all.torn
    );
    ensure!(
        all.in_the_turn > 0 && all.at_its_end > 0 && all.after_it > 0,
        "the kills all came at the same time: {all:?}"
    );
    recovered(all.slowest)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_before_each_call_that_changes_a_file_it_loses_nothing_that_was_shown() -> Result<()>
{
    if let Some(why) = trap::missing() {
        return not_run(why);
    }
    let calls = Story::rehearsed().await?;
    let step = calls.len().div_ceil(times(10, calls.len()));
    let mut slowest = Duration::ZERO;
    let mut hit = 0;
    for (call, number) in calls.iter().step_by(step) {
        let fault = format!("{call}:signal=KILL:when={number}");
        let mut story = Story::prepare().await?;
        let by = story.trap().by(&fault);
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
