//! Processor time, system calls and memory of a process, and the programs in this program's folder.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::signal::{Signal, kill};
use nix::time::clock_getcpuclockid;
use nix::unistd::Pid;
use testkit::ServerSetup;
use tokio::process::{Child, Command};

/// Path of another program of the same build.
pub(crate) fn sibling_program(name: &str) -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    Ok(own
        .parent()
        .context("this program has no folder")?
        .join(name))
}

/// A server with a new home, whose Claude Code is the scripted agent.
pub(crate) fn setup() -> Result<ServerSetup> {
    let program = sibling_program("liminal")?;
    let setup = ServerSetup::of(program.to_str().context("a path")?)?;
    Ok(setup
        .env("CLAUDE_ACP_CMD", sibling_program("scripted-agent")?)
        .env("LIMINAL_WARM_START", "false"))
}

/// Processor time in seconds.
pub(crate) fn cpu(pid: u32) -> Result<f64> {
    let clock = clock_getcpuclockid(Pid::from_raw(pid.try_into()?))?;
    Ok(Duration::from(clock.now()?).as_secs_f64())
}

/// Counts all system calls of a process with `perf`.
pub(crate) struct Calls {
    perf: Child,
}

impl Calls {
    /// Returns `None` if `perf` is missing or not permitted.
    pub(crate) async fn begin(pid: u32) -> Result<Option<Self>> {
        let mut perf = Command::new("perf");
        perf.args(["stat", "-x,", "-e", "raw_syscalls:sys_enter", "-p"]);
        perf.arg(pid.to_string());
        perf.stderr(Stdio::piped()).kill_on_drop(true);
        let Ok(mut perf) = perf.spawn() else {
            return Ok(None);
        };
        // perf counts from the moment it holds a counter.
        while perf.try_wait()?.is_none() {
            if perf.id().is_some_and(counts) {
                return Ok(Some(Self { perf }));
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(None)
    }

    pub(crate) async fn end(self) -> Result<f64> {
        let id = self.perf.id().context("perf has ended")?;
        kill(Pid::from_raw(id.try_into()?), Signal::SIGINT)?;
        let said = self.perf.wait_with_output().await?.stderr;
        let said = String::from_utf8_lossy(&said);
        let count = said
            .lines()
            .find_map(|line| line.split(',').next()?.parse().ok());
        count.with_context(|| format!("perf printed no count: {said}"))
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
