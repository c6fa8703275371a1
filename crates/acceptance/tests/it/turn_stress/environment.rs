//! The server and its agent, and the kills of both.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use testkit::{Person, Server, ServerSetup};
use tokio::process::Command;
use tokio::sync::{Mutex, RwLock};

use crate::turn_stress::random::Random;
use crate::turn_stress::{SESSIONS, TURNS};

/// Average number of turns between two kills of the agent.
const TURNS_PER_KILL: u64 = 50;
/// Every fifth kill hits the server instead of the agent.
const KILLS_PER_SERVER_KILL: u64 = 5;

pub(crate) struct Environment {
    setup: ServerSetup,
    folder: String,
    pub(crate) seed: u64,
    /// Write-locked while there is no server.
    server: RwLock<Option<Server>>,
    /// Number of ended turns in all sessions.
    pub(crate) ended: AtomicUsize,
    killed: Mutex<Killed>,
    pub(crate) retries: AtomicUsize,
    pub(crate) cancels: AtomicUsize,
    /// Set when no more kills are needed.
    pub(crate) over: AtomicBool,
}

#[derive(Default)]
struct Killed {
    agents: usize,
    servers: usize,
}

impl Environment {
    pub(crate) async fn start(seed: u64) -> Result<Self> {
        let script = match seed % 3 {
            0 => "no-resume slow-load:10",
            1 => "no-resume load-answer-first:0",
            _ => "no-resume slow-load:5 load-answer-first:5",
        };
        let setup = ServerSetup::scripted(script)?;
        let server = setup.start().await?;
        Ok(Self {
            folder: setup.folder("app")?,
            setup,
            seed,
            server: RwLock::new(Some(server)),
            ended: AtomicUsize::new(0),
            killed: Mutex::default(),
            retries: AtomicUsize::new(0),
            cancels: AtomicUsize::new(0),
            over: AtomicBool::new(false),
        })
    }

    /// Connects to the running server, or to the next one as soon as it is started.
    pub(crate) async fn connect(&self) -> Result<Person> {
        let server = self.server.read().await;
        Person::at(server.as_ref().context("expected a server")?, &self.folder).await
    }

    pub(crate) async fn kill_server(&self) -> Result<()> {
        let mut server = self.server.write().await;
        server
            .take()
            .context("expected a server")?
            .signal("KILL")
            .await?;
        *server = Some(self.setup.start().await?);
        self.killed.lock().await.servers += 1;
        Ok(())
    }

    async fn kill_agent(&self) -> Result<()> {
        let pid = std::fs::read_to_string(self.setup.home().join("agent.pid"))?;
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        // The agent may have ended with its server.
        if name.trim_end() == "scripted-agent" {
            let killed = Command::new("kill").args(["-KILL", &pid]).output().await?;
            self.killed.lock().await.agents += usize::from(killed.status.success());
        }
        Ok(())
    }

    /// Kills at certain numbers of ended turns, so that a slow machine kills as often as a fast one.
    pub(crate) async fn kill_repeatedly(&self) -> Result<()> {
        let mut random = Random::new(self.seed);
        let mut next = TURNS_PER_KILL;
        let all = SESSIONS * TURNS as u64;
        let mut kills = 0;
        while next < all {
            while (self.ended.load(Ordering::Relaxed) as u64) < next {
                if self.over.load(Ordering::Relaxed) {
                    return Ok(());
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            kills += 1;
            if kills % KILLS_PER_SERVER_KILL == 0 {
                self.kill_server().await?;
            } else {
                self.kill_agent().await?;
            }
            // Half of the time, also kill the restarted agent in the middle of its loads.
            if random.one_in(2) {
                tokio::time::sleep(Duration::from_millis(40 + random.below(200))).await;
                self.kill_agent().await?;
            }
            next += TURNS_PER_KILL / 2 + random.below(TURNS_PER_KILL);
        }
        Ok(())
    }

    pub(crate) fn summary(&self) -> String {
        let killed = self.killed.try_lock();
        let (agents, servers) = killed.map_or((0, 0), |it| (it.agents, it.servers));
        let count = |number: &AtomicUsize| number.load(Ordering::Relaxed);
        format!(
            "{} turns, {} cancels, {} retries, {agents} kills of the agent, {servers} of the server",
            count(&self.ended),
            count(&self.cancels),
            count(&self.retries)
        )
    }
}
