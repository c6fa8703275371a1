//! What the system knows of a process, and the programs that stand beside this one.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::time::clock_getcpuclockid;
use nix::unistd::Pid;
use testkit::ServerSetup;

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

/// How often it has read and written.
pub(crate) fn calls(pid: u32) -> Result<f64> {
    let io = std::fs::read_to_string(format!("/proc/{pid}/io"))?;
    Ok(number(&io, "syscr:")? + number(&io, "syscw:")?)
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
