//! `cargo xtask audit`: what we depend on, judged by `deny.toml`.

use std::process::Command;

use crate::root;
use crate::steps::{command, run as run_command};
use crate::tools;

pub(crate) fn run() -> anyhow::Result<()> {
    if tools::answers("cargo-deny") {
        return check_with("cargo-deny");
    }
    let tools = root().join("target/tools");
    let program = tools.join("bin/cargo-deny");
    if !program.exists() {
        run_command(
            command(&["cargo", "install", "--locked", "cargo-deny", "--root"]).arg(&tools),
        )?;
    }
    check_with(&program.to_string_lossy())
}

fn check_with(program: &str) -> anyhow::Result<()> {
    let check = |what: &[&str]| {
        run_command(
            Command::new(program)
                .args(["--all-features", "check"])
                .args(what),
        )
    };
    check(&["bans", "licenses", "sources"])?;
    // The advisories come from a database that not every machine can reach.
    if Command::new(program)
        .args(["fetch", "db"])
        .current_dir(root())
        .status()?
        .success()
    {
        return check(&["advisories"]);
    }
    println!(
        "audit: the advisory database could not be fetched here; bans, licences and sources are clean."
    );
    Ok(())
}
