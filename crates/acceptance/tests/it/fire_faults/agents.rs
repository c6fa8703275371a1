//! Agents that misbehave: other agents are not affected, memory stays bounded, and no process is left behind.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;
use testkit::{Conversation, HANG_GUARD, Person, Server, ServerSetup, times};

/// A server with two agents: a bad one that the test controls, and a good one with a session of its own.
pub(crate) struct TwoAgents {
    pub(crate) setup: ServerSetup,
    pub(crate) server: Server,
    good: (Person, Conversation),
}

fn median(mut took: Vec<Duration>) -> Duration {
    took.sort();
    took[took.len() / 2]
}

impl TwoAgents {
    /// Starts the server under an approval policy (`allow` or `ask`), with a session of the bad agent.
    pub(crate) async fn with_bad_agent(policy: &str) -> Result<(Self, Person, Conversation)> {
        let good = format!("{} good", testkit::scripted_agent()?.display());
        let setup = ServerSetup::scripted("")?
            .env("CODEX_ACP_CMD", good)
            .env("LIMINAL_PERMISSIONS", policy);
        let folder = setup.folder("app")?;
        let server = setup.start().await?;
        let mut bad = Person::at(&server, &folder).await?;
        let talk = bad.begin().await?;
        let good = good_session(&server, &folder).await?;
        let pair = Self {
            setup,
            server,
            good,
        };
        Ok((pair, bad, talk))
    }

    /// Median duration of `count` turns of the good agent.
    pub(crate) async fn turns(&mut self, count: usize) -> Result<Duration> {
        let mut took = vec![];
        for _ in 0..count {
            took.push(self.turn().await?);
        }
        Ok(median(took))
    }

    /// Median durations here and at another server. Their turns alternate, so that other load on the machine delays both.
    async fn turns_beside(&mut self, other: &mut Self, count: usize) -> Result<[Duration; 2]> {
        let mut took = [vec![], vec![]];
        for _ in 0..count {
            took[0].push(self.turn().await?);
            took[1].push(other.turn().await?);
        }
        Ok(took.map(median))
    }

    async fn turn(&mut self) -> Result<Duration> {
        let (person, talk) = &mut self.good;
        let begun = Instant::now();
        person.turn(talk, "say hello").await?;
        Ok(begun.elapsed())
    }

    /// Memory of the server in KiB as reported by the kernel: `VmRSS` is the current value, `VmHWM` the peak.
    pub(crate) fn memory(&self, which: &str) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.server.id()))?;
        let line = status.lines().find(|line| line.starts_with(which));
        let line = line.context("no such line in the process status")?;
        let number = line
            .split_whitespace()
            .nth(1)
            .context("expected a number")?;
        Ok(number.parse()?)
    }

    /// All processes started for this server, except the server itself.
    fn processes(&self) -> Vec<u32> {
        let home = self.setup.home().to_string_lossy().into_owned();
        processes_with(&home, self.server.id())
    }
}

async fn good_session(server: &Server, folder: &str) -> Result<(Person, Conversation)> {
    let mut person = Person::at(server, folder).await?;
    let created = person.ask_to_create("codex").await?;
    let id = created["sessionId"]
        .as_str()
        .context("expected an id")?
        .to_owned();
    let talk = person.open(&id).await?;
    Ok((person, talk))
}

/// The processes whose environment contains `word`, except the process `but`.
fn processes_with(word: &str, but: u32) -> Vec<u32> {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let with_word = |path: std::path::PathBuf| {
        let environment = std::fs::read(path.join("environ")).unwrap_or_default();
        let mut windows = environment.windows(word.len());
        windows.any(|window| window == word.as_bytes())
    };
    all.filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
        .filter(|(id, path)| *id != but && with_word(path.clone()))
        .map(|(id, _)| id)
        .collect()
}

fn signal(id: u32, name: &str) -> Result<()> {
    let mut kill = std::process::Command::new("kill");
    let sent = kill.args([&format!("-{name}"), &id.to_string()]).status()?;
    ensure!(sent.success(), "could not send {name} to {id}");
    Ok(())
}

/// The process of the bad agent, not its keeper and not the good agent.
fn bad_agent(pair: &TwoAgents) -> Result<u32> {
    let is_it = |id: &u32| {
        let program = std::fs::read_link(format!("/proc/{id}/exe"));
        let words = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        program.is_ok_and(|path| path.ends_with("scripted-agent")) && !words.ends_with(b"good\0")
    };
    let processes = pair.processes();
    processes
        .into_iter()
        .find(is_it)
        .context("the process of the bad agent was not found")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hundreds_of_children_of_an_agent_end_with_it() -> Result<()> {
    let (mut pair, mut bad, mut talk) = TwoAgents::with_bad_agent("allow").await?;
    pair.turns(1).await?;
    let count = times(50, 500);
    bad.turn(&mut talk, &format!("children {count} 1000\nsay there"))
        .await?;
    let processes = pair.processes();
    ensure!(
        processes.len() > count,
        "only {} processes",
        processes.len()
    );
    bad.turn(&mut talk, "crash 1").await?;
    // At most two agents, each with its keeper: the bad agent is restarted.
    let few = async {
        while pair.processes().len() > 4 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(HANG_GUARD, few)
        .await
        .context("children of the agent survive")?;
    bad.turn(&mut talk, &format!("children {count} 1000"))
        .await?;
    pair.turns(1).await?;
    let word = pair.setup.home().to_string_lossy().into_owned();
    pair.server.signal("KILL").await?;
    let gone = async {
        while !processes_with(&word, 0).is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(HANG_GUARD, gone)
        .await
        .context("expected a process survives the server")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn suspended_agent_does_not_delay_others_and_ends_with_the_server() -> Result<()> {
    let (mut pair, mut bad, mut talk) = TwoAgents::with_bad_agent("allow").await?;
    bad.send(&talk, "say here\nhang").await?;
    bad.until_said(&mut talk, "assistant: here").await?;
    let (mut elsewhere, ..) = TwoAgents::with_bad_agent("allow").await?;
    signal(bad_agent(&pair)?, "STOP")?;
    let [here, there] = pair.turns_beside(&mut elsewhere, 20).await?;
    eprintln!("a turn beside the suspended agent {here:?}, at another server {there:?}");
    ensure!(here < there * 5, "{here:?}, elsewhere {there:?}");
    // Its session can still be opened and read.
    let id = talk.session_id.clone();
    let now = bad.open(&id).await?;
    talk.is_kept_in(&now)?;
    let word = pair.setup.home().to_string_lossy().into_owned();
    pair.server.signal("TERM").await?;
    ensure!(
        processes_with(&word, 0).is_empty(),
        "{:?} survive",
        processes_with(&word, 0)
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agent_killed_repeatedly_restarts_and_each_turn_ends_once() -> Result<()> {
    let (mut pair, mut bad, mut talk) = TwoAgents::with_bad_agent("allow").await?;
    let kills = times(10, 500);
    let mut random: u64 = 7;
    for kill in 1..=kills {
        bad.send(&talk, "rate 2000 20 2000").await?;
        bad.until(&mut talk, |seen| {
            testkit::count_turns(seen) == kill - 1
                && seen
                    .said()
                    .last()
                    .is_some_and(|last| last.starts_with("assistant"))
        })
        .await?;
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        tokio::time::sleep(Duration::from_micros(random >> 50)).await;
        signal(bad_agent(&pair)?, "KILL")?;
        bad.until_turns(&mut talk, kill).await?;
        let said = talk.said();
        ensure!(
            said.last().is_some_and(|last| last == "turn interrupted"),
            "{said:?}"
        );
    }
    bad.turn(&mut talk, "say alive").await?;
    ensure!(testkit::count_turns(&talk) == kills + 1);
    pair.turns(1).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn late_duplicate_and_unrequested_responses_end_no_other_turn() -> Result<()> {
    let (_pair, mut bad, mut talk) = TwoAgents::with_bad_agent("allow").await?;
    for _ in 0..times(3, 50) {
        // A duplicate response, and responses to requests that were never sent.
        let unasked = r#"raw {"jsonrpc":"2.0","id":424242,"result":{"stopReason":"end_turn"}}"#;
        bad.turn(
            &mut talk,
            &format!("{unasked}\nsay one\n{unasked}\nanswer-twice"),
        )
        .await?;
        // A late response, long after the cancel, preceded by more text.
        bad.send(&talk, "say two\nstubborn 200\nsay three").await?;
        bad.until(&mut talk, |seen| {
            seen.said().ends_with(&["assistant: two".to_owned()])
        })
        .await?;
        bad.ask(&mut talk, json!({"type": "session:cancel"}))
            .await?;
        let turns = testkit::count_turns(&talk) + 1;
        bad.until_turns(&mut talk, turns).await?;
    }
    bad.turn(&mut talk, "say end").await?;
    let rounds = times(3, 50);
    let ends: Vec<String> = talk
        .said()
        .into_iter()
        .filter(|said| said.starts_with("turn"))
        .collect();
    let count = |end: &str| ends.iter().filter(|said| *said == end).count();
    assert_eq!(
        (count("turn ended"), count("turn cancelled")),
        (rounds + 1, rounds),
        "{ends:?}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agent_that_exits_during_start_is_reported_and_leaves_no_process() -> Result<()> {
    let setup = ServerSetup::scripted("")?
        .env("CODEX_ACP_CMD", testkit::scripted_agent()?)
        .env("CLAUDE_ACP_CMD", "sh -c 'sleep 1000 & exit 3'");
    let server = setup.start().await?;
    let mut person = Person::at(&server, &setup.folder("app")?).await?;
    for _ in 0..times(5, 100) {
        let refused = person.ask_to_create("claude-code").await?;
        ensure!(refused["type"] == "error", "{refused}");
    }
    ensure!(person.list(false).await?.is_empty());
    let created = person.ask_to_create("codex").await?;
    ensure!(created["type"] == "session:created", "{created}");
    let home = setup.home().to_string_lossy().into_owned();
    // The good agent and its keeper remain.
    let few = async {
        while processes_with(&home, server.id()).len() > 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(HANG_GUARD, few)
        .await
        .context("expected a process of the failed agent survives")
}
