//! `cargo xtask test`: every check that a change must pass.
//!
//! The order of a full run: lints and build, in parallel with all downloads; the Rust tests; the browser tests, in
//! parallel with the JavaScript checks, the loom model and the instruction guards; the browser tests that measure,
//! alone; the real agents.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use crate::agents::{self, Agents};
use crate::steps::{Steps, command, run as run_command};
use crate::{guards, root, slowest, target, tools, words};

/// Time budget of a full run from scratch on two idle cores. A longer run prints a warning.
const BUDGET: Duration = Duration::from_secs(13 * 60);

/// Browser tests that run in parallel. Each has its own server, agent and browser.
const BROWSERS: &str = "--workers=2";

#[derive(Clone, Copy)]
pub(crate) enum Part {
    All,
    Rust,
    Web,
    E2e,
    Agents,
    /// The instruction guards, which a full run includes.
    Guards,
    /// The long form of the fault, flood and attack tests. The short form is among the Rust and browser tests.
    Fire,
}

impl Part {
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

pub(crate) fn run(part: Part) -> anyhow::Result<()> {
    let steps = Steps::new();
    let result = match part {
        Part::All => all(&steps),
        Part::Rust => {
            steps.time_in_parallel(
                "strace, valgrind, libfaketime",
                without_output(tools::fault_test_tools),
            )?;
            lints_and_build(&steps)?;
            rust_tests(&steps)?;
            model(&steps)?;
            guards(&steps)
        }
        Part::Web => {
            steps.time_in_parallel("npm packages", without_output(tools::npm_packages))?;
            web(&steps)
        }
        Part::E2e => {
            let chromium = for_browser_tests(&steps)?;
            build(&steps)?;
            browser_tests(&steps, &chromium)
        }
        Part::Agents => {
            let chromium = for_browser_tests(&steps)?;
            let agents =
                steps.time_in_parallel("real agents (npm)", without_output(agents::install))?;
            build(&steps)?;
            real_agents(&steps, &chromium, agents)
        }
        Part::Guards => {
            build(&steps)?;
            guards(&steps)
        }
        Part::Fire => fire(&steps),
    };
    steps.print();
    slowest::print(
        &junit(),
        &[&report("browser"), &report("measuring"), &report("agents")],
    );
    let (total, budget) = (steps.total().as_secs(), BUDGET.as_secs());
    if matches!(part, Part::All) && total > budget {
        println!(
            "\nwarning: the run took {total} s, and its budget is {budget} s (xtask/src/test.rs)."
        );
    }
    result
}

fn all(steps: &Steps) -> anyhow::Result<()> {
    thread::scope(|scope| {
        // In sequence, because npm and apt lock their installations.
        let installed = scope.spawn(|| {
            steps.time_in_parallel(
                "strace, valgrind, libfaketime",
                without_output(tools::fault_test_tools),
            )?;
            let chromium = for_browser_tests(steps)?;
            let agents =
                steps.time_in_parallel("real agents (npm)", without_output(agents::install))?;
            anyhow::Ok((chromium, agents))
        });
        lints_and_build(steps)?;
        let (chromium, agents) = joined(installed)?;
        rust_tests(steps)?;
        let background = scope.spawn(|| {
            web(steps)?;
            model(steps)?;
            guards(steps)
        });
        let browser = browser_tests_in_parallel(steps, &chromium);
        joined(background)?;
        browser?;
        browser_tests_alone(steps, &chromium)?;
        real_agents(steps, &chromium, agents)
    })
}

fn joined<T>(thread: ScopedJoinHandle<anyhow::Result<T>>) -> anyhow::Result<T> {
    match thread.join() {
        Ok(result) => result,
        Err(panicked) => std::panic::resume_unwind(panicked),
    }
}

/// Wraps work without output for `Steps::time_in_parallel`.
fn without_output<T>(
    work: impl FnOnce() -> anyhow::Result<T>,
) -> impl FnOnce() -> anyhow::Result<(String, T)> {
    || work().map(|result| (String::new(), result))
}

fn for_browser_tests(steps: &Steps) -> anyhow::Result<PathBuf> {
    steps.time_in_parallel("npm packages", without_output(tools::npm_packages))?;
    steps.time_in_parallel("Chromium", without_output(tools::chromium))
}

fn lints_and_build(steps: &Steps) -> anyhow::Result<()> {
    steps.run(
        "formatting (rustfmt)",
        &mut command(&["cargo", "fmt", "--all", "--check"]),
    )?;
    let clippy = "cargo clippy --quiet --workspace --all-targets -- -D warnings";
    let words: Vec<&str> = clippy.split(' ').collect();
    steps.run("lints (clippy)", &mut command(&words))?;
    build(steps)
}

fn rust_tests(steps: &Steps) -> anyhow::Result<()> {
    let mut tests = match tools::is_installed("cargo-nextest") {
        true => command(&["cargo", "nextest", "run", "--workspace", "--no-fail-fast"]),
        false => command(&["cargo", "test", "--workspace", "--no-fail-fast"]),
    };
    // A changed snapshot is a failure; no file is written for a later review.
    steps.run(
        "Rust tests, generated types",
        tests.env("INSTA_UPDATE", "no").env(EMBED.0, EMBED.1),
    )
}

fn model(steps: &Steps) -> anyhow::Result<()> {
    let mut model = command(&["cargo", "test", "--quiet", "--locked", "--manifest-path"]);
    model.arg("crates/hub/model/Cargo.toml");
    model.arg("--target-dir").arg(target().join("model"));
    steps.run_in_parallel("subscriptions in every order (loom)", &mut model)
}

fn guards(steps: &Steps) -> anyhow::Result<()> {
    steps.time_in_parallel("instructions (callgrind)", || {
        guards::check().map(|table| (table, ()))
    })
}

fn web(steps: &Steps) -> anyhow::Result<()> {
    steps.time_in_parallel("words", || words::check().map(|looked_at| (looked_at, ())))?;
    steps.run_in_parallel(
        "JavaScript and CSS style (Biome)",
        tools::npm_tool("biome").args(["check", "--error-on-warnings"]),
    )?;
    steps.run_in_parallel("JavaScript types (tsc)", &mut tools::npm_tool("tsc"))?;
    let mut files = vec![];
    collect_tests(&root().join("web"), &mut files)?;
    steps.run_in_parallel(
        "JavaScript tests (node)",
        command(&["node", "--test"]).args(files),
    )
}

fn browser_tests(steps: &Steps, chromium: &Path) -> anyhow::Result<()> {
    browser_tests_in_parallel(steps, chromium)?;
    browser_tests_alone(steps, chromium)
}

/// Runs the browser tests that mostly wait, several in parallel.
fn browser_tests_in_parallel(steps: &Steps, chromium: &Path) -> anyhow::Result<()> {
    let mut tests = playwright("e2e/playwright.config.js", "browser", "debug", chromium);
    tests.args(["--project=together", BROWSERS]);
    steps.run("browser tests (Playwright)", &mut tests)
}

/// Runs the browser tests that count frames or flood the server. They need the whole machine, so no other test runs
/// meanwhile.
fn browser_tests_alone(steps: &Steps, chromium: &Path) -> anyhow::Result<()> {
    let mut tests = playwright("e2e/playwright.config.js", "measuring", "debug", chromium);
    tests.args(["--project=alone", "--workers=1"]);
    steps.run("browser tests that measure (Playwright)", &mut tests)
}

/// Runs the tests with the real agents, if these could be installed.
fn real_agents(steps: &Steps, chromium: &Path, agents: Agents) -> anyhow::Result<()> {
    let folder = match agents {
        Agents::Installed(folder) => folder,
        Agents::Unavailable(why) => {
            println!("agents: skipped, because {why}.");
            return Ok(());
        }
    };
    let mut tests = playwright(
        "e2e/agents/playwright.config.js",
        "agents",
        "debug",
        chromium,
    );
    tests
        .env("AGENTS", folder)
        .env("MODEL", target().join("debug/stand-in-model"));
    steps.run("real agents (Playwright)", &mut tests)
}

/// Makes `crates/liminal/build.rs` pack the pages into a debug build as into a release build.
const EMBED: (&str, &str) = ("LIMINAL_EMBED_WEB", "1");
/// Selects the long form of tests that have one.
const LONG: (&str, &str) = ("LIMINAL_FIRE", "long");

/// Runs on a release build, so that floods and their cost are those of users.
fn fire(steps: &Steps) -> anyhow::Result<()> {
    const TESTS: &[&str] = &[
        "fire_",
        "power_cut",
        "turn_stress",
        "damage",
        "kill_at_any_moment",
        "random_failures",
    ];
    let chromium = for_browser_tests(steps)?;
    steps.time_in_parallel(
        "strace, valgrind, libfaketime",
        without_output(tools::fault_test_tools),
    )?;
    let mut build = command(&["cargo", "build", "--quiet", "--release", "--bins"]);
    build.args(["--package=liminal", "--package=testkit"]);
    steps.run("release build", &mut build)?;
    let mut tests = command(&["cargo", "test", "--release", "--no-fail-fast"]);
    tests.args(["--package=acceptance", "--package=agents", "--package=hub"]);
    tests.args(["--test=it", "--"]);
    // In sequence, because each test needs the machine to itself. The tests print their measurements.
    tests.args(TESTS).args(["--test-threads=1", "--nocapture"]);
    steps.run("faults and attacks, long form", tests.env(LONG.0, LONG.1))?;
    let mut tests = playwright("e2e/playwright.config.js", "browser", "release", &chromium);
    tests.args(["fire", "--workers=1"]).env(LONG.0, LONG.1);
    steps.run("faults and attacks in the browser, long form", &mut tests)
}

/// Playwright with the programs of this build, writing a report of this name.
fn playwright(config: &str, report_name: &str, build: &str, chromium: &Path) -> Command {
    let programs = target().join(build);
    let mut playwright = tools::npm_tool("playwright");
    playwright
        .args(["test", "--config", config])
        .env("REPORT", report(report_name))
        .env("CHROMIUM", chromium)
        .env("LIMINAL", programs.join("liminal"))
        .env("AGENT", programs.join("scripted-agent"));
    playwright
}

fn report(name: &str) -> PathBuf {
    target().join("reports").join(format!("{name}.json"))
}

/// Path of nextest's report (`.config/nextest.toml`).
fn junit() -> PathBuf {
    target().join("nextest/default/junit.xml")
}

/// Builds all programs and tests with one cargo command; separate commands would build shared crates more than once. A
/// debug build takes a third of the time of a release build and includes more checks.
fn build(steps: &Steps) -> anyhow::Result<()> {
    let mut build = command(&["cargo", "build", "--quiet", "--workspace"]);
    build.args(["--bins", "--tests"]).env(EMBED.0, EMBED.1);
    steps.run("build", &mut build)
}

/// Writes the generated files that are committed.
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
    for tests in ["gateway::admission::", "configuration::"] {
        let mut documents = command(&[
            "cargo",
            "test",
            "--quiet",
            "-p",
            "acceptance",
            "--test",
            "it",
        ]);
        run_command(documents.arg(tests).env("UPDATE_DOCS", "1"))?;
    }
    Ok(())
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
