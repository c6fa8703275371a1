//! Agents that misbehave: the others do not notice, memory stays bounded, and nothing survives them.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;
use testkit::{Conversation, HANG_GUARD, Person, Server, ServerSetup, times};

/// A server with two kinds of agent: one that will misbehave, and one that another person works with.
pub(crate) struct Street {
    pub(crate) setup: ServerSetup,
    pub(crate) server: Server,
    good: (Person, Conversation),
}

impl Street {
    /// With a session of the bad one, and what agents are allowed: `allow` or `ask`.
    pub(crate) async fn with_a_bad_one(policy: &str) -> Result<(Self, Person, Conversation)> {
        let good = format!("{} good", testkit::scripted_agent()?.display());
        let setup = crate::fire_faults::setup()?
            .env("CODEX_ACP_CMD", good)
            .env("LIMINAL_PERMISSIONS", policy);
        let folder = setup.folder("app")?;
        let server = setup.start().await?;
        let mut bad = Person::at(&server, &folder).await?;
        let talk = bad.begin().await?;
        let good = neighbour(&server, &folder).await?;
        let street = Self {
            setup,
            server,
            good,
        };
        Ok((street, bad, talk))
    }

    /// How long a turn of the good neighbour takes, usually.
    pub(crate) async fn turns(&mut self, count: usize) -> Result<Duration> {
        let (person, talk) = &mut self.good;
        let mut took = vec![];
        for _ in 0..count {
            let begun = Instant::now();
            person.turn(talk, "say hello").await?;
            took.push(begun.elapsed());
        }
        took.sort();
        Ok(took[took.len() / 2])
    }

    /// In KiB, from the kernel's own account: `VmRSS` now, `VmHWM` at most.
    pub(crate) fn memory(&self, which: &str) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.server.id()))?;
        let line = status.lines().find(|line| line.starts_with(which));
        let line = line.context("no such line")?;
        let number = line.split_whitespace().nth(1).context("a number")?;
        Ok(number.parse()?)
    }

    /// Everything that was started for this server, itself left out.
    fn processes(&self) -> Vec<u32> {
        let home = self.setup.home().to_string_lossy().into_owned();
        below(&home, self.server.id())
    }
}

async fn neighbour(server: &Server, folder: &str) -> Result<(Person, Conversation)> {
    let mut person = Person::at(server, folder).await?;
    let created = person.ask_to_create("codex").await?;
    let id = created["sessionId"].as_str().context("an id")?.to_owned();
    let talk = person.open(&id).await?;
    Ok((person, talk))
}

/// The processes with this word in their environment.
fn below(word: &str, but: u32) -> Vec<u32> {
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

/// The bad agent's own process, not its keeper's and not the neighbour's.
fn bad_agent(street: &Street) -> Result<u32> {
    let is_it = |id: &u32| {
        let program = std::fs::read_link(format!("/proc/{id}/exe"));
        let words = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        program.is_ok_and(|path| path.ends_with("scripted-agent")) && !words.ends_with(b"good\0")
    };
    let processes = street.processes();
    processes.into_iter().find(is_it).context("the agent")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_with_hundreds_of_children_takes_them_along() -> Result<()> {
    let (mut street, mut bad, mut talk) = Street::with_a_bad_one("allow").await?;
    street.turns(1).await?;
    let count = times(50, 500);
    bad.turn(&mut talk, &format!("children {count} 1000\nsay there"))
        .await?;
    let processes = street.processes();
    ensure!(
        processes.len() > count,
        "only {} processes",
        processes.len()
    );
    bad.turn(&mut talk, "crash 1").await?;
    // Two agents at most, each with its keeper: the bad one is brought back.
    let few = async {
        while street.processes().len() > 4 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(HANG_GUARD, few)
        .await
        .context("children survive")?;
    bad.turn(&mut talk, &format!("children {count} 1000"))
        .await?;
    street.turns(1).await?;
    let word = street.setup.home().to_string_lossy().into_owned();
    street.server.signal("KILL").await?;
    let gone = async {
        while !below(&word, 0).is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(HANG_GUARD, gone)
        .await
        .context("something survives the server")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_is_stopped_holds_nobody_up_and_does_not_survive() -> Result<()> {
    let (mut street, mut bad, mut talk) = Street::with_a_bad_one("allow").await?;
    bad.send(&talk, "say here\nhang").await?;
    bad.until_said(&mut talk, "assistant: here").await?;
    let before = street.turns(20).await?;
    signal(bad_agent(&street)?, "STOP")?;
    let during = street.turns(20).await?;
    eprintln!("a turn beside it {before:?} -> {during:?}");
    let (mut elsewhere, ..) = Street::with_a_bad_one("allow").await?;
    let share = before.max(elsewhere.turns(20).await?);
    ensure!(during < share * 5, "{share:?} -> {during:?}");
    // Whoever waits for it can still open and read.
    let id = talk.session_id.clone();
    let now = bad.open(&id).await?;
    talk.is_kept_in(&now)?;
    let word = street.setup.home().to_string_lossy().into_owned();
    street.server.signal("TERM").await?;
    ensure!(below(&word, 0).is_empty(), "{:?} survive", below(&word, 0));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_killed_again_and_again_comes_back_each_time_and_each_turn_ends_once() -> Result<()>
{
    let (mut street, mut bad, mut talk) = Street::with_a_bad_one("allow").await?;
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
        signal(bad_agent(&street)?, "KILL")?;
        bad.until_turns(&mut talk, kill).await?;
        let said = talk.said();
        ensure!(
            said.last().is_some_and(|last| last == "turn interrupted"),
            "{said:?}"
        );
    }
    bad.turn(&mut talk, "say alive").await?;
    ensure!(testkit::count_turns(&talk) == kills + 1);
    street.turns(1).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_come_late_twice_or_unasked_end_nothing_that_they_should_not() -> Result<()> {
    let (_street, mut bad, mut talk) = Street::with_a_bad_one("allow").await?;
    for _ in 0..times(3, 50) {
        // Twice, and in between answers to what nobody asked.
        let unasked = r#"raw {"jsonrpc":"2.0","id":424242,"result":{"stopReason":"end_turn"}}"#;
        bad.turn(
            &mut talk,
            &format!("{unasked}\nsay one\n{unasked}\nanswer-twice"),
        )
        .await?;
        // Late, long after it was cancelled, and with more to say.
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
async fn an_agent_that_exits_during_each_start_is_said_and_leaves_nothing() -> Result<()> {
    let setup = crate::fire_faults::setup()?
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
    // The good one and its keeper.
    let few = async {
        while below(&home, server.id()).len() > 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(HANG_GUARD, few)
        .await
        .context("something survives")
}
