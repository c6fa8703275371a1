//! `cargo xtask bench web`: the workspace in Chromium beside the plain way to show the same
//! conversations, everything in the page at once.
//!
//! Both speak to the same server and get the same HTML, in turn, so that whatever else the machine
//! does hits both. Trust the ratios; the absolute numbers are this machine's.

use std::io::Read;
use std::process::Stdio;

use anyhow::{Context, bail};
use serde_json::Value;

use crate::spread::Spread;
use crate::steps::{command, run as run_command};
use crate::{root, target, tools};

const RUNS: usize = 5;

pub(crate) fn run() -> anyhow::Result<()> {
    for package in ["liminal", "testkit"] {
        let build = ["cargo", "build", "--quiet", "--release", "--bins"];
        run_command(command(&build).args(["--package", package]))?;
    }
    tools::npm_packages()?;
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("machine load before: {}", load.trim());
    let measured = measure()?;
    println!(
        "\n{:<44}{:>24}{:>24}{:>8}  promise",
        "", "liminal", "everything at once", "ratio"
    );
    let table = Table(measured);
    for (name, what, promise) in [
        ("2,000 entries, open to visible, ms", "2000", 100.0),
        ("20,000 entries, open to visible, ms", "20000", 200.0),
    ] {
        table.row(name, &format!("open_{what}_visible"), Some(promise));
        table.row(
            "  longest task, ms",
            &format!("open_{what}_longest"),
            Some(50.0),
        );
        table.row("  processor, ms", &format!("open_{what}_processor"), None);
        table.row("  scripts' memory, MB", &format!("open_{what}_heap"), None);
    }
    for (name, what) in [
        ("50 KB in 2,500 chunks, processor, ms", "stream"),
        ("ten sessions streaming, processor, ms", "ten"),
    ] {
        table.row(name, &format!("{what}_processor"), None);
        table.row("  longest task, ms", &format!("{what}_longest"), Some(50.0));
        table.row(
            "  last third over first third",
            &format!("{what}_growth"),
            Some(1.5),
        );
        table.row("  scripts' memory, MB", &format!("{what}_heap"), None);
    }
    table.row("30 tabs, load to visible, ms", "tabs_visible", None);
    table.row("  longest task, ms", "tabs_longest", None);
    table.row("  processor, ms", "tabs_processor", None);
    table.row("  scripts' memory, MB", "tabs_heap", None);
    table.row("  scripts' memory, each seen, MB", "tabs_seen_heap", None);
    table.row("  switch, ms", "switch", Some(16.0));
    table.row(
        "50,000 sessions, load to visible, ms",
        "sidebar_visible",
        None,
    );
    table.row("  first paint, ms", "sidebar_paint", Some(200.0));
    table.row("  longest task, ms", "sidebar_longest", None);
    table.row("  a frame of scrolling, ms", "sidebar_frame", Some(17.5));
    table.row(
        "server restarted, port to resync, ms",
        "reconnect",
        Some(300.0),
    );
    println!("\nmedian of {RUNS} (lowest to highest beside it); the runs of both alternate");
    println!("a longest task of 0 is one that took less than 50 ms");
    Ok(())
}

struct Table(Value);

impl Table {
    fn row(&self, name: &str, what: &str, promise: Option<f64>) {
        let (ours, naive) = (self.spread(what), self.spread(&format!("naive_{what}")));
        let ratio = ours.median / naive.median;
        let kept = match promise {
            None => String::new(),
            Some(promise) if ours.median <= promise => format!("{promise} kept"),
            Some(promise) => format!("{promise} BROKEN"),
        };
        let (ours, naive) = (ours.to_string(), naive.to_string());
        println!("{name:<44}{ours:>24}{naive:>24}{ratio:>8.2}  {kept}");
    }

    fn spread(&self, what: &str) -> Spread {
        let list = self.0[what].as_array().into_iter().flatten();
        let numbers: Vec<f64> = list.filter_map(Value::as_f64).collect();
        Spread::of(&numbers)
    }
}

fn measure() -> anyhow::Result<Value> {
    let release = target().join("release");
    let mut node = command(&["node", "e2e/bench/web.js", &RUNS.to_string()]);
    let mut child = node
        .env("CHROMIUM", tools::chromium()?)
        .env("LIMINAL", release.join("liminal"))
        .env("AGENT", release.join("scripted-agent"))
        .current_dir(root())
        .stdout(Stdio::piped())
        .spawn()
        .context("could not run node")?;
    let mut text = String::new();
    let mut stdout = child.stdout.take().context("a pipe")?;
    stdout.read_to_string(&mut text)?;
    if !child.wait()?.success() {
        bail!("the browser measurement failed");
    }
    Ok(serde_json::from_str(&text)?)
}
