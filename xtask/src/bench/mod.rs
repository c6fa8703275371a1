//! `cargo xtask bench`: the release build beside the plain programs that people would write instead, in one run.
//!
//! The runs of both are in turn, so that whatever else the machine does hits both. Trust the ratios; the absolute
//! numbers are this machine's. What was measured is kept in `target/bench`, and held against the last time.

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
    /// As few runs as still say something: under three minutes.
    quick: bool,
    /// Only what stands in the browser, or only what does not.
    only: Option<Only>,
    /// An earlier result to be held against, instead of the last one.
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
        // Half a minute goes by before its store is full.
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
    println!("a longest task of 0 took less than 50 ms, which is what a browser calls long");
    report.save(options.against.as_deref())?;
    report.judge()
}

/// What a result is only to be compared with if it is the same.
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

/// What `crates/bench` measured.
fn server(part: &str, quick: bool) -> anyhow::Result<Figures> {
    let mut bench = Command::new(target().join("release/bench"));
    bench.arg(part).args(quick.then_some("quick"));
    bench.env("NODE_BRIDGE", root().join("e2e/bench/bridge.js"));
    figures(part, bench)
}

/// What a script of `e2e/bench` measured.
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

/// Lists of numbers by name, as a program printed them.
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
    serde_json::from_slice(&output.stdout).context("figures")
}
