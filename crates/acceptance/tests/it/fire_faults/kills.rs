//! The server is killed with SIGKILL: everything a window was shown is there afterwards, exactly once.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use testkit::{Conversation, Person, Server, ServerSetup, not_run, times};

use crate::fire_faults::data_check::{self, DataCheck, Moment};
use crate::fire_faults::strace;
use crate::fire_faults::workday::Workday;

/// Maximum time to restart and show a session again.
const RECOVERY: Duration = Duration::from_secs(2);
const TRIES: usize = 2;

/// Checked only in the long form, in which nothing else runs and durations are meaningful.
fn recovered(slowest: Duration) -> Result<()> {
    eprintln!("recovery: at most {} ms", slowest.as_millis());
    ensure!(
        times(0, 1) == 0 || slowest < RECOVERY,
        "recovery took {slowest:?}"
    );
    Ok(())
}

const TURN: &str = "say begin\nrate 50 20 2000\ntool t1 execute Run\nflood 200 20\ntool-done t1 ok\nrate 200 20 2000";
/// Length of the text after the beginning of the tool call.
const LAST_BYTES: usize = 2 * 200 * 20;
/// Longer than it takes to move a finished turn from the live log to the transcript.
const END: Duration = Duration::from_millis(12);
/// Rounds per session.
const ROUNDS: u64 = 25;

/// Copies a folder to another place and removes what was there.
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

/// Counts of the kills of a run, by the moment they hit.
#[derive(Debug, Default)]
struct KillCounts {
    slowest: Duration,
    during_turn: usize,
    at_turn_end: usize,
    after_turn: usize,
    torn: usize,
}

/// One of several parallel runs: kills the server repeatedly, at any moment of a turn and after its end.
struct KilledSession {
    setup: ServerSetup,
    folder: String,
    random: u64,
    /// The last state of each session that a window was shown.
    shown: Vec<Conversation>,
    data_check: DataCheck,
    counts: KillCounts,
}

impl KilledSession {
    async fn run(kills: u64, seed: u64) -> Result<KillCounts> {
        let setup = ServerSetup::scripted("")?;
        let mut run = Self {
            folder: setup.folder("app")?,
            setup,
            random: seed,
            shown: vec![],
            data_check: DataCheck::default(),
            counts: KillCounts::default(),
        };
        let whole = run.whole_turn().await?;
        for round in 0..kills {
            let ended = run.round(round, whole).await;
            ended.with_context(|| format!("seed {seed}, round {round}"))?;
        }
        // Check the last session and every session before it.
        let (_server, mut person) = run.start_again().await?;
        for shown in &run.shown {
            shown.is_kept_in(&person.open(&shown.session_id).await?)?;
        }
        run.counts.torn = run.data_check.torn();
        Ok(run.counts)
    }

    /// Duration of an undisturbed turn.
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
        let talk = self.shown.last_mut().context("expected a session")?;
        person.send(talk, TURN).await?;
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let part = (self.random >> 33) as f64 / (1_u64 << 31) as f64;
        // Every other kill comes at any time, the others around the end of the turn, which is short.
        let wait = match round % 2 {
            0 => whole.mul_f64(part * 1.25),
            _ => {
                person.until(talk, is_text_complete).await?;
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
        self.data_check.can_be_read(&dir)?;
        match data_check::moment(&dir)? {
            Moment::DuringTurn => self.counts.during_turn += 1,
            Moment::AtTurnEnd => self.counts.at_turn_end += 1,
            Moment::AfterTurn => self.counts.after_turn += 1,
        }
        Ok(())
    }

    /// Starts another server and checks that it shows what was shown before.
    async fn start_again(&mut self) -> Result<(Server, Person)> {
        let (dir, kept) = (self.setup.data_dir(), self.setup.home().join("kept"));
        copy(&dir, &kept)?;
        let (mut server, mut person, mut now, mut took) = self.recover().await?;
        // A disk may stall for seconds once; a real defect repeats with the same files.
        for _ in 0..TRIES {
            if times(0, 1) == 0 || took < RECOVERY {
                break;
            }
            eprintln!("recovery took {took:?}; trying again with the same files");
            server.signal("KILL").await?;
            copy(&kept, &dir)?;
            (server, person, now, took) = self.recover().await?;
        }
        self.counts.slowest = self.counts.slowest.max(took);
        let shown = self.shown.last_mut().context("expected a session")?;
        shown.is_kept_in(&now)?;
        ensure!(
            !now.is_running(),
            "a turn is still running after the server was killed"
        );
        *shown = now;
        self.data_check.can_be_read(&self.setup.data_dir())?;
        Ok((server, person))
    }

    /// A started server, a client, the last session as shown now, and how long that took.
    async fn recover(&self) -> Result<(Server, Person, Conversation, Duration)> {
        let begun = Instant::now();
        let server = self.setup.start().await?;
        let mut person = Person::at(&server, &self.folder).await?;
        let last = self.shown.last().context("expected a session")?;
        let now = person.open(&last.session_id).await?;
        Ok((server, person, now, begun.elapsed()))
    }
}

/// Whether the turn's last text is complete and the end of the turn not yet shown.
fn is_text_complete(seen: &Conversation) -> bool {
    let last = seen
        .entries
        .last()
        .filter(|last| last["type"] == "assistant");
    let content = last.and_then(|last| last["content"].as_str());
    content.is_some_and(|content| content.len() == LAST_BYTES)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousand_kills_at_any_moment_lose_nothing_that_was_shown() -> Result<()> {
    let runs = times(2, 1) as u64;
    let kills = times(100, 1000) as u64 / runs;
    let runs: Vec<_> = (1..=runs)
        .map(|seed| tokio::spawn(KilledSession::run(kills, seed)))
        .collect();
    let mut all = KillCounts::default();
    for run in runs {
        let counts = run.await??;
        all.slowest = all.slowest.max(counts.slowest);
        all.during_turn += counts.during_turn;
        all.at_turn_end += counts.at_turn_end;
        all.after_turn += counts.after_turn;
        all.torn += counts.torn;
    }
    eprintln!(
        "killed {} times in a turn, {} while it was moved to the transcript, {} after it; {} torn lines",
        all.during_turn, all.at_turn_end, all.after_turn, all.torn
    );
    ensure!(
        all.during_turn > 0 && all.at_turn_end > 0 && all.after_turn > 0,
        "some moments were never hit: {all:?}"
    );
    recovered(all.slowest)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_before_each_file_changing_call_loses_nothing_that_was_shown() -> Result<()> {
    if let Some(why) = strace::missing() {
        return not_run(why);
    }
    let calls = Workday::rehearsed().await?;
    let step = calls.len().div_ceil(times(10, calls.len()));
    let mut slowest = Duration::ZERO;
    let mut hit = 0;
    for (call, number) in calls.iter().step_by(step) {
        let fault = format!("{call}:signal=KILL:when={number}");
        let mut workday = Workday::prepare().await?;
        let by = workday.strace().by(&fault);
        // The server may be killed before it is ready.
        if let Ok(server) = workday.setup.start_by(&by).await {
            let done = workday.happens(&server).await;
            match done {
                Err(_) => drop(server.ended().await?),
                Ok(()) => drop(server.signal("KILL").await?),
            }
            hit += usize::from(done.is_err());
        } else {
            hit += 1;
        }
        let took = workday.is_restored().await.with_context(|| fault.clone())?;
        slowest = slowest.max(took);
    }
    eprintln!("{} calls, {hit} of them with a kill", calls.len());
    ensure!(
        hit * 2 > calls.len() / step,
        "only {hit} kills were injected"
    );
    recovered(slowest)
}
