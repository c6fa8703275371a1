//! `cargo xtask bench`: compares the release build with the baseline programs, in one run.
//!
//! The runs of both alternate, so that other load on the machine affects both. Compare the ratios; the absolute numbers
//! depend on the machine. The result is stored in `target/bench` and compared with the previous one.

mod curves;
mod report;
mod rows;
mod spread;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, bail};

use self::report::{Figures, Report};
use self::rows::{SERVER, TABLES};
use crate::steps::{command, run as run_command};
use crate::{root, target, tools};

#[derive(Default)]
pub(crate) struct Options {
    /// The fewest meaningful runs: less than three minutes.
    quick: bool,
    /// Measure only the server, or only the browser.
    only: Option<Only>,
    /// The earlier result to compare with, instead of the last one.
    against: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Only {
    Server,
    Web,
}

impl Options {
    pub(crate) fn parse(words: &[&str]) -> Option<Self> {
        let mut options = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--quick" => options.quick = true,
                "server" => options.only = Some(Only::Server),
                "web" => options.only = Some(Only::Web),
                "--against" => options.against = Some(PathBuf::from(words.next()?)),
                _ => return None,
            }
        }
        Some(options)
    }
}

pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    for package in ["liminal", "testkit", "bench"] {
        let build = ["cargo", "build", "--quiet", "--release", "--bins"];
        run_command(command(&build).args(["--package", package]))?;
    }
    let mut render = command(&["cargo", "build", "--quiet", "--release"]);
    run_command(render.args(["--package", "render", "--example", "bench"]))?;
    tools::npm_packages()?;
    let chromium = tools::chromium()?;
    let load = load();
    println!("machine load before: {load}");

    let mut report = Report::new(options.quick, load);
    if options.only != Some(Only::Web) {
        // Filling its store takes half a minute.
        let parts = SERVER
            .iter()
            .filter(|part| !(options.quick && **part == "agent-store"));
        for part in parts {
            report.add(part, server(part, options.quick)?);
        }
    }
    if options.only != Some(Only::Server) {
        for script in ["first-load", "markdown", "web"] {
            let runs = match (script, options.quick) {
                ("web", true) => 1,
                ("web", false) => 5,
                (_, true) => 3,
                (_, false) => 15,
            };
            let quick = options.quick.then_some("quick");
            report.add(script, browser(script, runs, quick, &chromium)?);
        }
    }
    println!();
    for table in TABLES {
        report.print(table);
    }
    report.print_curves();
    println!(
        "\nmedian (lowest–highest); machine load after: {}",
        self::load()
    );
    println!(
        "a longest task of 0 means that no task took 50 ms, the browser's limit for a long task"
    );
    report.save(options.against.as_deref())?;
    report.judge()
}

/// Identifies the machine: results of different machines are not comparable.
fn machine() -> String {
    let processors = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let mut models = processors
        .lines()
        .filter_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map(|(_, model)| model);
    let model = models.next().unwrap_or(std::env::consts::ARCH);
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!("{cores} cores, {model}")
}

fn load() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let words: Vec<&str> = load.split_whitespace().take(3).collect();
    words.join(" ")
}

/// Runs a part of `crates/bench`.
fn server(part: &str, quick: bool) -> anyhow::Result<Figures> {
    let mut bench = Command::new(target().join("release/bench"));
    bench.arg(part).args(quick.then_some("quick"));
    bench.env("NODE_BRIDGE", root().join("e2e/bench/bridge.js"));
    figures(part, bench)
}

/// Runs a script of `e2e/bench`.
fn browser(
    script: &str,
    runs: usize,
    quick: Option<&str>,
    chromium: &Path,
) -> anyhow::Result<Figures> {
    let release = target().join("release");
    let path: OsString = format!("e2e/bench/{script}.js").into();
    let mut node = Command::new("node");
    node.arg(path)
        .arg(runs.to_string())
        .args(quick)
        .env("CHROMIUM", chromium)
        .env("LIMINAL", release.join("liminal"))
        .env("AGENT", release.join("scripted-agent"))
        .env("BENCH", release.join("bench"))
        .env("RENDER", release.join("examples/bench"))
        .current_dir(root());
    figures(script, node)
}

/// Runs a program that prints lists of numbers by name as JSON.
fn figures(part: &str, mut program: Command) -> anyhow::Result<Figures> {
    let begin = Instant::now();
    print!("  {part}… ");
    std::io::stdout().flush()?;
    let output = program
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("could not run {program:?}"))?;
    if !output.status.success() {
        bail!("measuring {part} failed");
    }
    println!("{} s", begin.elapsed().as_secs());
    serde_json::from_slice(&output.stdout).context("the program printed no valid figures")
}
