//! Named, timed commands: in the foreground with their output passed through, or in the background with it held back.

use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::root;

/// The finished steps of a run of `cargo xtask test`, shared by its threads.
pub(crate) struct Steps {
    started: Instant,
    done: Mutex<Vec<Done>>,
}

struct Done {
    name: String,
    /// Whether the step ran in parallel with others, so that its time is not part of the sum.
    parallel: bool,
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

    /// Runs a command in the foreground, passing its output through; fails if the command fails.
    pub(crate) fn run(&self, name: &str, command: &mut Command) -> anyhow::Result<()> {
        self.time(name, || run(command))
    }

    /// Runs a function in the foreground and measures its duration.
    pub(crate) fn time<T>(
        &self,
        name: &str,
        work: impl FnOnce() -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        println!("\n=== {name}");
        self.timed(name, false, work)
    }

    /// Runs a command in the background; its output is printed in one piece at its end.
    pub(crate) fn run_in_parallel(&self, name: &str, command: &mut Command) -> anyhow::Result<()> {
        self.time_in_parallel(name, || run_quietly(command).map(|output| (output, ())))
    }

    /// Runs a function in the background, measures its duration, and prints the text that it returns.
    pub(crate) fn time_in_parallel<T>(
        &self,
        name: &str,
        work: impl FnOnce() -> anyhow::Result<(String, T)>,
    ) -> anyhow::Result<T> {
        let (output, result) = self.timed(name, true, work)?;
        println!("\n=== {name} (in parallel)\n{}", output.trim_end());
        Ok(result)
    }

    fn timed<T>(
        &self,
        name: &str,
        parallel: bool,
        work: impl FnOnce() -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let from = self.started.elapsed();
        let result = work().with_context(|| format!("`{name}` failed"))?;
        let took = self.started.elapsed() - from;
        self.done().push(Done {
            name: name.to_owned(),
            parallel,
            from,
            took,
        });
        Ok(result)
    }

    pub(crate) fn total(&self) -> Duration {
        self.started.elapsed()
    }

    /// Prints each step with its start and its duration.
    pub(crate) fn print(&self) {
        println!("\n=== Steps: seconds from the start, duration");
        let mut done = self.done();
        done.sort_by_key(|step| step.from);
        for step in done.iter() {
            let parallel = if step.parallel { " (in parallel)" } else { "" };
            let (from, took) = (step.from.as_secs_f64(), step.took.as_secs_f64());
            println!("{from:>7.1} {took:>7.1} s  {}{parallel}", step.name);
        }
        println!("{:>17.1} s  total", self.total().as_secs_f64());
    }

    fn done(&self) -> MutexGuard<'_, Vec<Done>> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs a command in the repository's root; fails if the command fails.
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

/// Like `run`, but returns the output instead of passing it through. An error includes the output.
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

/// A command from its words.
pub(crate) fn command(words: &[&str]) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    // Removes the variables that cargo sets for this crate: build scripts of other crates watch them and would run
    // again after each build from a shell.
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
