//! Starts a real server in each state that a power cut can leave, and reports the violations.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::power_cut::compare::{Violation, compare};
use crate::power_cut::crash_models::Model;
use crate::power_cut::observed::{Agents, Observed, Wanted, one_more_turn, start};
use crate::power_cut::replay::{Case, Replay};

/// Servers checked in parallel: one more than the processors of a small machine.
const AT_ONCE: usize = 3;
/// A file system in memory, and the free space required to use it.
const MEMORY: &str = "/dev/shm";
const ROOM: u64 = 2 * 1024 * 1024 * 1024;
/// Every eighth state is also used to run another turn.
const TURN_EVERY: usize = 8;

/// The number of states checked, and the violations by kind.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) made: usize,
    pub(crate) states: usize,
    pub(crate) starts: usize,
    pub(crate) models: BTreeMap<Model, usize>,
    pub(crate) violations: BTreeMap<&'static str, Wrong>,
}

/// All violations of one kind.
#[derive(Debug, Default)]
pub(crate) struct Wrong {
    pub(crate) count: usize,
    /// Count by scenario and model.
    places: BTreeMap<String, usize>,
    example: String,
}

impl Report {
    pub(crate) fn add(&mut self, other: Self) {
        self.made += other.made;
        self.states += other.states;
        self.starts += other.starts;
        for (model, count) in other.models {
            *self.models.entry(model).or_default() += count;
        }
        for (kind, wrong) in other.violations {
            let known = self.violations.entry(kind).or_default();
            known.count += wrong.count;
            for (place, count) in wrong.places {
                *known.places.entry(place).or_default() += count;
            }
            if known.example.is_empty() {
                known.example = wrong.example;
            }
        }
    }

    pub(crate) fn summary(&self) -> String {
        let models: Vec<String> = self
            .models
            .iter()
            .map(|(model, count)| format!("{model:?} {count}"))
            .collect();
        let count: usize = self.violations.values().map(|wrong| wrong.count).sum();
        let mut text = format!(
            "{} states of {} made ({}), {} starts, {count} violations",
            self.states,
            self.made,
            models.join(", "),
            self.starts
        );
        for (kind, wrong) in &self.violations {
            let places: Vec<String> = wrong
                .places
                .iter()
                .map(|(place, count)| format!("{place} {count}"))
                .collect();
            text += &format!(
                "\n{} × {kind} ({})\n  {}",
                wrong.count,
                places.join(", "),
                wrong.example.replace('\n', "\n  ")
            );
        }
        text
    }
}

/// Checks up to `count` states of a replay.
pub(crate) async fn check_states(replay: Replay, count: usize, seed: u64) -> Result<Report> {
    let (cases, made) = replay.cases(count, seed);
    let mut report = Report {
        made,
        states: cases.len(),
        ..Report::default()
    };
    let replay = Arc::new(replay);
    let mut running: JoinSet<Result<(Case, Outcome)>> = JoinSet::new();
    let mut cases = cases.into_iter().enumerate();
    loop {
        while running.len() < AT_ONCE
            && let Some((number, case)) = cases.next()
        {
            let replay = replay.clone();
            running.spawn(async move {
                let outcome = check(&replay, &case, number, seed).await;
                let outcome = outcome.with_context(|| replay.describe(&case, seed))?;
                Ok((case, outcome))
            });
        }
        let Some(done) = running.join_next().await else {
            return Ok(report);
        };
        let (case, outcome) = done??;
        report.starts += outcome.starts;
        *report.models.entry(case.model).or_default() += 1;
        for violation in outcome.violations {
            let wrong = report.violations.entry(violation.kind).or_default();
            wrong.count += 1;
            let place = format!("{} {:?}", replay.name, case.model);
            *wrong.places.entry(place).or_default() += 1;
            if wrong.example.is_empty() {
                wrong.example = format!("{}\n{}", violation.detail, replay.describe(&case, seed));
            }
        }
    }
}

#[derive(Default)]
struct Outcome {
    starts: usize,
    /// At most one violation of each kind.
    violations: Vec<Violation>,
}

impl Outcome {
    fn add(&mut self, violation: Violation) {
        if !self
            .violations
            .iter()
            .any(|known| known.kind == violation.kind)
        {
            self.violations.push(violation);
        }
    }

    fn wrong(&mut self, kind: &'static str, detail: String) {
        self.add(Violation { kind, detail });
    }
}

/// An empty folder for a state, in memory if there is enough space.
fn place() -> Result<(TempDir, PathBuf)> {
    let room = rustix::fs::statvfs(MEMORY).map(|memory| memory.f_bavail * memory.f_frsize);
    let folder = match room {
        Ok(ROOM..) => tempfile::tempdir_in(MEMORY)?,
        _ => tempfile::tempdir()?,
    };
    let data_dir = folder.path().join(".liminal-builder");
    Ok((folder, data_dir))
}

async fn check(replay: &Replay, case: &Case, number: usize, seed: u64) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let (_folder, data_dir) = place()?;
    replay.state(case, seed).put(&data_dir)?;
    let mut wanted = Wanted::default();
    for expected in &case.expected {
        let deleted = expected
            .sessions
            .iter()
            .filter(|(_, session)| session.listed.allows(&false));
        wanted.sessions.extend(deleted.map(|(id, _)| id.clone()));
        wanted.pictures.extend(expected.pictures.iter().cloned());
    }
    outcome.starts += 1;
    let server = match start(&replay.setup, &data_dir, Agents::None).await {
        Ok(server) => server,
        Err(why) => {
            outcome.wrong("the server does not start", format!("{why:#}"));
            return Ok(outcome);
        }
    };
    let seen = Observed::of(&server, &data_dir, &wanted).await?;
    for expected in &case.expected {
        for violation in compare(expected, &replay.eventually, &seen) {
            outcome.add(violation);
        }
    }
    server.signal("KILL").await?;
    outcome.starts += 1;
    let turn = number.is_multiple_of(TURN_EVERY);
    let agents = if turn { Agents::Scripted } else { Agents::None };
    let server = match start(&replay.setup, &data_dir, agents).await {
        Ok(server) => server,
        Err(why) => {
            outcome.wrong(
                "the server does not start a second time",
                format!("{why:#}"),
            );
            return Ok(outcome);
        }
    };
    let mut before = Observed::of(&server, &data_dir, &Wanted::default()).await?;
    if let Some(difference) = seen.difference(&before) {
        outcome.wrong("a second start shows different data", difference);
    }
    if turn {
        if let Err(why) = one_more_turn(&server, &before).await {
            outcome.wrong("a session cannot run another turn", format!("{why:#}"));
            return Ok(outcome);
        }
        before = Observed::of(&server, &data_dir, &Wanted::default()).await?;
        server.signal("KILL").await?;
        outcome.starts += 1;
        let server = start(&replay.setup, &data_dir, Agents::None).await?;
        let after = Observed::of(&server, &data_dir, &Wanted::default()).await?;
        if let Some(difference) = before.difference(&after) {
            outcome.wrong("the turn after the restart is lost", difference);
        }
        server.signal("KILL").await?;
    }
    Ok(outcome)
}
