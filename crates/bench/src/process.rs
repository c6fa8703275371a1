//! What the system knows of a process, and the programs that stand beside this one.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::signal::{Signal, kill};
use nix::time::clock_getcpuclockid;
use nix::unistd::Pid;
use testkit::ServerSetup;
use tokio::process::{Child, Command};

/// A program of the same build.
pub(crate) fn beside(name: &str) -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    Ok(own.parent().context("a folder")?.join(name))
}

/// A server with a fresh home, whose Claude Code is the scripted agent.
pub(crate) fn setup() -> Result<ServerSetup> {
    let program = beside("liminal")?;
    let setup = ServerSetup::new(program.to_str().context("a path")?)?;
    Ok(setup
        .env("CLAUDE_ACP_CMD", beside("scripted-agent")?)
        .env("LIMINAL_WARM_START", "false"))
}

/// Seconds of processor time.
pub(crate) fn cpu(pid: u32) -> Result<f64> {
    let clock = clock_getcpuclockid(Pid::from_raw(pid.try_into()?))?;
    Ok(Duration::from(clock.now()?).as_secs_f64())
}

/// Every system call of a process, counted by `perf`.
pub(crate) struct Calls {
    perf: Child,
}

impl Calls {
    /// None where `perf` is not there or may not count.
    pub(crate) async fn begin(pid: u32) -> Result<Option<Self>> {
        let mut perf = Command::new("perf");
        perf.args(["stat", "-x,", "-e", "raw_syscalls:sys_enter", "-p"]);
        perf.arg(pid.to_string());
        perf.stderr(Stdio::piped()).kill_on_drop(true);
        let Ok(mut perf) = perf.spawn() else {
            return Ok(None);
        };
        // It counts once it holds a counter.
        while perf.try_wait()?.is_none() {
            if perf.id().is_some_and(counts) {
                return Ok(Some(Self { perf }));
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(None)
    }

    pub(crate) async fn end(self) -> Result<f64> {
        let id = self.perf.id().context("it has ended")?;
        kill(Pid::from_raw(id.try_into()?), Signal::SIGINT)?;
        let said = self.perf.wait_with_output().await?.stderr;
        let said = String::from_utf8_lossy(&said);
        let count = said
            .lines()
            .find_map(|line| line.split(',').next()?.parse().ok());
        count.with_context(|| format!("no count: {said}"))
    }
}

fn counts(perf: u32) -> bool {
    let files = std::fs::read_dir(format!("/proc/{perf}/fd"));
    let mut files = files.into_iter().flatten().flatten();
    files.any(|file| {
        std::fs::read_link(file.path()).is_ok_and(|to| to.as_os_str() == "anon_inode:[perf_event]")
    })
}

pub(crate) fn memory_mib(pid: u32) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    Ok(number(&status, "VmRSS:")? / 1024.0)
}

fn number(text: &str, name: &str) -> Result<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let word = line.and_then(|line| line.split_whitespace().next());
    Ok(word.with_context(|| format!("no {name}"))?.parse()?)
}
