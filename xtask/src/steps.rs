//! Named commands, timed: in the foreground with their output passed through, or beside it with their output kept back.

use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::root;

/// What a run of `cargo xtask test` has done so far. Shared by the threads of the run.
pub(crate) struct Steps {
    started: Instant,
    done: Mutex<Vec<Done>>,
}

struct Done {
    name: String,
    /// It ran beside other steps, so its time is not part of the sum.
    beside: bool,
    from: Duration,
    took: Duration,
}

impl Steps {
    pub(crate) fn new() -> Self {
        Self {
            started: Instant::now(),
            done: Mutex::default(),
        }
    }

    /// Runs a command to success, its output passed through.
    pub(crate) fn run(&self, name: &str, command: &mut Command) -> anyhow::Result<()> {
        self.time(name, || run(command))
    }

    /// Times any other work in the foreground.
    pub(crate) fn time<T>(
        &self,
        name: &str,
        work: impl FnOnce() -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        println!("\n=== {name}");
        self.timed(name, false, work)
    }

    /// Runs a command beside the foreground; its output is printed in one piece when it has ended.
    pub(crate) fn run_beside(&self, name: &str, command: &mut Command) -> anyhow::Result<()> {
        self.time_beside(name, || run_quietly(command).map(|output| (output, ())))
    }

    /// Times work beside the foreground, and prints the text it returns.
    pub(crate) fn time_beside<T>(
        &self,
        name: &str,
        work: impl FnOnce() -> anyhow::Result<(String, T)>,
    ) -> anyhow::Result<T> {
        let (output, result) = self.timed(name, true, work)?;
        println!("\n=== {name} (beside)\n{}", output.trim_end());
        Ok(result)
    }

    fn timed<T>(
        &self,
        name: &str,
        beside: bool,
        work: impl FnOnce() -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let from = self.started.elapsed();
        let result = work().with_context(|| format!("`{name}` failed"))?;
        let took = self.started.elapsed() - from;
        self.done().push(Done {
            name: name.to_owned(),
            beside,
            from,
            took,
        });
        Ok(result)
    }

    pub(crate) fn total(&self) -> Duration {
        self.started.elapsed()
    }

    /// Prints each step with its beginning and its duration.
    pub(crate) fn print(&self) {
        println!("\n=== Steps: seconds from the start, duration");
        let mut done = self.done();
        done.sort_by_key(|step| step.from);
        for step in done.iter() {
            let beside = if step.beside { " (beside)" } else { "" };
            let (from, took) = (step.from.as_secs_f64(), step.took.as_secs_f64());
            println!("{from:>7.1} {took:>7.1} s  {}{beside}", step.name);
        }
        println!("{:>17.1} s  in all", self.total().as_secs_f64());
    }

    fn done(&self) -> MutexGuard<'_, Vec<Done>> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs a command at the top of the repository and fails if it fails.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    let status = command
        .current_dir(root())
        .status()
        .with_context(|| format!("could not run {command:?}"))?;
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    Ok(())
}

/// The same with the output returned, or part of the error.
pub(crate) fn run_quietly(command: &mut Command) -> anyhow::Result<String> {
    let output = command
        .current_dir(root())
        .output()
        .with_context(|| format!("could not run {command:?}"))?;
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    if !output.status.success() {
        bail!("{command:?} ended with {}:\n{text}", output.status);
    }
    Ok(text)
}

/// A command from words, for the common case.
pub(crate) fn command(words: &[&str]) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    // Variables that cargo sets for this crate, and that build scripts of others watch: those would be built again
    // whenever they were last built from a shell.
    for (name, _) in std::env::vars_os() {
        let from_cargo = name.to_str().is_some_and(|name| {
            name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
        });
        if from_cargo {
            command.env_remove(name);
        }
    }
    command
}
