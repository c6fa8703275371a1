//! `cargo xtask test`: everything that must hold before a change lands.

use std::path::Path;
use std::process::Command;

use crate::agents::{self, Agents};
use crate::steps::{Steps, command, run as run_command};
use crate::{guards, root, target, tools};

#[derive(Clone, Copy)]
pub(crate) enum Part {
    Rust,
    Web,
    E2e,
    Agents,
    /// What the Rust tests end with, alone.
    Guards,
    /// Faults, floods and attacks, as long as they should last.
    Fire,
}

impl Part {
    /// The short form of the fire is among the Rust and the browser tests.
    pub(crate) const ALL: [Self; 4] = [Self::Rust, Self::Web, Self::E2e, Self::Agents];

    pub(crate) fn parse(word: &str) -> Option<Self> {
        match word {
            "rust" => Some(Self::Rust),
            "web" => Some(Self::Web),
            "e2e" => Some(Self::E2e),
            "agents" => Some(Self::Agents),
            "guards" => Some(Self::Guards),
            "fire" => Some(Self::Fire),
            _ => None,
        }
    }
}

pub(crate) fn run(parts: &[Part]) -> anyhow::Result<()> {
    let mut steps = Steps::default();
    let result = parts.iter().try_for_each(|part| match part {
        Part::Rust => rust(&mut steps),
        Part::Web => web(&mut steps),
        Part::E2e => e2e(&mut steps),
        Part::Agents => agents(&mut steps),
        Part::Guards => {
            build(&mut steps)?;
            steps.time("instructions (callgrind)", guards::check)
        }
        Part::Fire => fire(&mut steps),
    });
    steps.print();
    result
}

fn rust(steps: &mut Steps) -> anyhow::Result<()> {
    steps.run(
        "formatting (rustfmt)",
        &mut command(&["cargo", "fmt", "--all", "--check"]),
    )?;
    let clippy = [
        "cargo",
        "clippy",
        "--quiet",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ];
    steps.run("lints (clippy)", &mut command(&clippy))?;
    steps.time("strace, valgrind, libfaketime", tools::for_faults)?;
    build(steps)?;
    let mut tests = match tools::answers("cargo-nextest") {
        true => command(&["cargo", "nextest", "run", "--workspace", "--no-fail-fast"]),
        false => command(&["cargo", "test", "--workspace", "--no-fail-fast"]),
    };
    // A snapshot that differs is a failure, never a file to be looked at later.
    steps.run(
        "Rust tests, generated types",
        tests.env("INSTA_UPDATE", "no").env(EMBED.0, EMBED.1),
    )?;
    let mut model = command(&["cargo", "test", "--quiet", "--locked", "--manifest-path"]);
    model.arg("crates/hub/model/Cargo.toml");
    model.arg("--target-dir").arg(target().join("model"));
    steps.run("the hand-over in every order (loom)", &mut model)?;
    steps.time("instructions (callgrind)", guards::check)
}

fn web(steps: &mut Steps) -> anyhow::Result<()> {
    steps.time("npm packages", tools::npm_packages)?;
    steps.run(
        "JavaScript and CSS style (Biome)",
        tools::npm_tool("biome").args(["check", "--error-on-warnings"]),
    )?;
    steps.run("JavaScript types (tsc)", &mut tools::npm_tool("tsc"))?;
    let mut files = vec![];
    collect_tests(&root().join("web"), &mut files)?;
    steps.run(
        "JavaScript tests (node)",
        command(&["node", "--test"]).args(files),
    )
}

fn e2e(steps: &mut Steps) -> anyhow::Result<()> {
    build(steps)?;
    let mut playwright = playwright(steps, "e2e/playwright.config.js", "debug")?;
    steps.run("browser tests (Playwright)", &mut playwright)
}

/// The same product with the agents people use, where they can be had.
fn agents(steps: &mut Steps) -> anyhow::Result<()> {
    let folder = match steps.time("real agents (npm)", agents::install)? {
        Agents::Installed(folder) => folder,
        Agents::Unavailable(why) => {
            println!("agents: skipped, because {why}.");
            return Ok(());
        }
    };
    build(steps)?;
    let mut playwright = playwright(steps, "e2e/agents/playwright.config.js", "debug")?;
    playwright
        .env("AGENTS", folder)
        .env("MODEL", target().join("debug/stand-in-model"));
    steps.run("real agents (Playwright)", &mut playwright)
}

/// What `crates/liminal/build.rs` packs into a release build, packed into this one as well: it is what users get.
const EMBED: (&str, &str) = ("LIMINAL_EMBED_WEB", "1");
/// What `LIMINAL_FIRE` asks of the tests that have a long form.
const LONG: (&str, &str) = ("LIMINAL_FIRE", "long");

/// With a release build: what floods a server, and what it takes, is what users have.
fn fire(steps: &mut Steps) -> anyhow::Result<()> {
    const TESTS: &[&str] = &[
        "--release",
        "--package=liminal",
        "--package=testkit",
        "--test=fire_faults",
        "--test=fire_attacks",
        "--test=turn_stress",
    ];
    steps.time("strace, valgrind, libfaketime", tools::for_faults)?;
    let mut build = command(&["cargo", "build", "--quiet", "--bins"]);
    steps.run("release build", build.args(TESTS))?;
    let mut tests = command(&["cargo", "test", "--no-fail-fast"]);
    // One after the other: each wants the machine for itself. They say what they measured.
    tests
        .args(TESTS)
        .args(["--", "--test-threads=1", "--nocapture"]);
    steps.run("faults and attacks, long form", tests.env(LONG.0, LONG.1))?;
    let mut playwright = playwright(steps, "e2e/playwright.config.js", "release")?;
    playwright.arg("fire").env(LONG.0, LONG.1);
    steps.run(
        "faults and attacks in the browser, long form",
        &mut playwright,
    )
}

/// Playwright with everything that its tests need beside it, and the programs of this build.
fn playwright(steps: &mut Steps, config: &str, build: &str) -> anyhow::Result<Command> {
    steps.time("npm packages", tools::npm_packages)?;
    let chromium = steps.time("Chromium", tools::chromium)?;
    let programs = target().join(build);
    let mut playwright = tools::npm_tool("playwright");
    playwright
        .args(["test", "--config", config])
        .env("CHROMIUM", chromium)
        .env("LIMINAL", programs.join("liminal"))
        .env("AGENT", programs.join("scripted-agent"));
    Ok(playwright)
}

/// Everything that the tests run, in one go: what crates share would be built anew for each of them alone. A debug
/// build, which takes a third of the time and checks more.
fn build(steps: &mut Steps) -> anyhow::Result<()> {
    let mut build = command(&["cargo", "build", "--quiet", "--workspace"]);
    build.args(["--bins", "--tests"]).env(EMBED.0, EMBED.1);
    steps.run("build", &mut build)
}

/// What is made from the code and kept beside it.
pub(crate) fn write_types() -> anyhow::Result<()> {
    let mut types = command(&[
        "cargo",
        "test",
        "--quiet",
        "-p",
        "wire",
        "--test",
        "typescript",
    ]);
    run_command(types.env("UPDATE_TYPES", "1"))?;
    let mut reference = command(&[
        "cargo", "test", "--quiet", "-p", "liminal", "--test", "gateway",
    ]);
    run_command(reference.arg("reference").env("UPDATE_DOCS", "1"))
}

fn collect_tests(folder: &Path, files: &mut Vec<String>) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect_tests(&path, files)?;
        } else if let Some(name) = path.to_str().filter(|name| name.ends_with(".test.js")) {
            files.push(name.to_owned());
        }
    }
    Ok(())
}
