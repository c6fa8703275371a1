//! A list of named commands, each timed, with a table at the end.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::root;

#[derive(Default)]
pub(crate) struct Steps {
    done: Vec<(String, Duration)>,
}

impl Steps {
    /// Runs a command to success, its output passed through.
    pub(crate) fn run(&mut self, name: &str, command: &mut Command) -> anyhow::Result<()> {
        self.time(name, || run(command))
    }

    /// Times anything else.
    pub(crate) fn time<T>(
        &mut self,
        name: &str,
        work: impl FnOnce() -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        println!("\n=== {name}");
        let started = Instant::now();
        let result = work().with_context(|| format!("`{name}` failed"))?;
        self.done.push((name.to_owned(), started.elapsed()));
        Ok(result)
    }

    /// What was run and how long each took.
    pub(crate) fn print(&self) {
        println!("\n=== What ran");
        for (name, took) in &self.done {
            println!("{:>7.1} s  {name}", took.as_secs_f64());
        }
        let total: Duration = self.done.iter().map(|(_, took)| took).sum();
        println!("{:>7.1} s  in all", total.as_secs_f64());
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

/// A command from words, for the common case.
pub(crate) fn command(words: &[&str]) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    // What cargo tells us about this crate, and build scripts of others watch: it would be built anew whenever it was
    // last built from a shell.
    for (name, _) in std::env::vars_os() {
        let told = name.to_str().is_some_and(|name| {
            name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
        });
        if told {
            command.env_remove(name);
        }
    }
    command
}
