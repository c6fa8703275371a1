//! `cargo xtask bench`: the release build beside the barest server there could be, in one run.
//!
//! Runs alternate between the two, so that whatever else the machine does hits both. Trust the
//! ratios; the absolute numbers are this machine's.

mod markdown;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::spread::Spread;
use crate::steps::{command, run as run_command};
use crate::{root, target, tools};

const RUNS: usize = 15;
/// Long enough for whatever a start leaves behind to be done.
const SETTLE: Duration = Duration::from_millis(500);

pub(crate) fn run() -> anyhow::Result<()> {
    run_command(&mut command(&[
        "cargo",
        "build",
        "--quiet",
        "--release",
        "--bins",
        "--examples",
    ]))?;
    run_command(&mut command(&[
        "cargo",
        "build",
        "--quiet",
        "--release",
        "--package",
        "testkit",
        "--bins",
    ]))?;
    tools::npm_packages()?;
    let chromium = tools::chromium()?;
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("machine load before: {}", load.trim());

    let (mut ours, mut bare) = (Samples::default(), Samples::default());
    for _ in 0..RUNS {
        ours.add(&start(Which::Liminal)?)?;
        bare.add(&start(Which::Bare)?)?;
    }
    let liminal = start(Which::Liminal)?;
    let bare_server = start(Which::Bare)?;
    let page = page_load(&chromium, &liminal.url, &bare_server.url)?;

    println!(
        "\n{:<34}{:>16}{:>16}{:>8}{:>10}",
        "", "liminal", "bare server", "ratio", "promise"
    );
    row(
        "ready after start, ms",
        &ours.ready_ms,
        &bare.ready_ms,
        30.0,
    );
    row(
        "resident memory idle, MiB",
        &ours.memory_mib,
        &bare.memory_mib,
        12.0,
    );
    row(
        "first load, KB on the wire",
        &page.ours_kb,
        &page.bare_kb,
        100.0,
    );
    row(
        "first paint, ms",
        &page.ours_paint_ms,
        &page.bare_paint_ms,
        150.0,
    );
    println!("\nmedian of {RUNS} (lowest to highest beside it); the runs of both alternate");
    agent_updates()?;
    sessions()?;
    gateway()?;
    agent_store()?;
    markdown::run(&chromium)
}

/// What an example of the binary's crate measured: lists of numbers by name.
fn measured(example: &str) -> anyhow::Result<impl Fn(&str) -> Spread> {
    let output = Command::new(target().join("release/examples").join(example)).output()?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        bail!("{example} failed: {why}");
    }
    let measured: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    Ok(move |what: &str| {
        let list = measured[what].as_array().into_iter().flatten();
        let numbers: Vec<f64> = list.filter_map(serde_json::Value::as_f64).collect();
        Spread::of(&numbers)
    })
}

/// From an agent's pipe to a client's socket, with everything kept on the way, beside the bare relay.
fn sessions() -> anyhow::Result<()> {
    let spread = measured("session_bench")?;
    let kept = |is: bool| if is { "kept" } else { "BROKEN" };
    println!(
        "\n{:<44}{:>24}{:>24}{:>8}",
        "sessions", "liminal", "bare relay", "ratio"
    );
    let beside = |name: &str, ours: &str, theirs: &str, keeps: &dyn Fn(f64) -> bool| {
        let (ours, theirs) = (spread(ours), spread(theirs));
        let ratio = ours.median / theirs.median;
        let (ours, theirs) = (ours.to_string(), theirs.to_string());
        let kept = kept(keeps(ratio));
        println!("{name:<44}{ours:>24}{theirs:>24}{ratio:>8.2} {kept}");
    };
    let faster: &dyn Fn(f64) -> bool = &|ratio| ratio >= 0.5;
    let at_most_twice: &dyn Fn(f64) -> bool = &|ratio| ratio <= 2.0;
    beside("flood, thousand chunks/s", "flood", "relay_flood", faster);
    beside(
        "processor s per 100,000 chunks",
        "cpu",
        "relay_cpu",
        at_most_twice,
    );
    for percentile in ["p50", "p99"] {
        let (ours, theirs) = (
            format!("latency_{percentile}"),
            format!("relay_latency_{percentile}"),
        );
        let name = format!("delay at 500 chunks/s, {percentile}, us");
        beside(&name, &ours, &theirs, at_most_twice);
    }
    let alone = |name: &str, what: &str, promise: f64| {
        let spread = spread(what);
        let kept = kept(spread.median <= promise);
        println!(
            "{name:<44}{:>24}   promise {promise} {kept}",
            spread.to_string()
        );
    };
    alone(
        "resident memory, 100 sessions open, MiB",
        "memory_100_open",
        50.0,
    );
    alone(
        "ready after start with 10,000 sessions, ms",
        "ready_10000",
        150.0,
    );
    let few = spread("message_alone");
    for (name, what) in [
        ("a message among 10,000 sessions, ms", "message_among_10000"),
        ("a message after 20,000 entries, ms", "message_after_20000"),
    ] {
        let many = spread(what);
        let ratio = many.median / few.median;
        let (many, few) = (many.to_string(), few.to_string());
        println!("{name:<44}{many:>24}{few:>24}{ratio:>8.2} beside an ordinary one");
    }
    Ok(())
}

/// A program inside, while 1,000 strangers stand at the door and 1,000 knock wrongly, beside one at another server that
/// has the same machine to share with the crowd.
fn gateway() -> anyhow::Result<()> {
    let spread = measured("gateway_crowd")?;
    println!(
        "\n{:<44}{:>24}{:>24}{:>8}",
        "the gateway, us until an answer", "at this door", "at another", "ratio"
    );
    for (name, crowd) in [
        ("nobody there", "quiet"),
        ("a crowd arrives", "arriving"),
        ("a crowd stands there", "standing"),
    ] {
        for percentile in ["p50", "p99"] {
            let here = spread(&format!("{crowd}_{percentile}"));
            let elsewhere = spread(&format!("elsewhere_{crowd}_{percentile}"));
            let ratio = here.median / elsewhere.median;
            let (here, elsewhere) = (here.to_string(), elsewhere.to_string());
            let name = format!("{name}, {percentile}");
            println!("{name:<44}{here:>24}{elsewhere:>24}{ratio:>8.2}");
        }
    }
    Ok(())
}

/// The built-in agent's store, small and large.
fn agent_store() -> anyhow::Result<()> {
    let spread = measured("many_sessions")?;
    println!(
        "\n{:<44}{:>24}{:>24}{:>8}",
        "the built-in agent, us", "10,000 sessions", "100 sessions", "ratio"
    );
    for (name, what) in [
        ("a new session", "new"),
        ("the newest, listed", "list"),
        ("those of a folder, listed", "list_of_folder"),
        ("one loaded", "load"),
    ] {
        let many = spread(&format!("{what}_10000"));
        let few = spread(&format!("{what}_100"));
        let ratio = many.median / few.median;
        let kept = if ratio <= 2.0 { "flat" } else { "BROKEN" };
        let (many, few) = (many.to_string(), few.to_string());
        println!("{name:<44}{many:>24}{few:>24}{ratio:>8.2} {kept}");
    }
    Ok(())
}

/// From an agent's pipe to our queue, beside the protocol crate alone and a reader of typed lines.
fn agent_updates() -> anyhow::Result<()> {
    let spread = measured("agent_updates")?;
    let (ours, sdk, typed) = (spread("ours"), spread("sdk"), spread("typed"));
    let share = ours.median / typed.median;
    let kept = if share >= 0.5 { "kept" } else { "BROKEN" };
    println!("\nagent updates, thousands per second, 20 bytes each");
    println!("  liminal       {ours}  {share:.2} of the typed reader, promise 0.50 {kept}");
    println!("  protocol crate {sdk}");
    println!("  typed reader  {typed}");
    Ok(())
}

#[derive(Default)]
struct Samples {
    ready_ms: Vec<f64>,
    memory_mib: Vec<f64>,
}

impl Samples {
    fn add(&mut self, running: &Running) -> anyhow::Result<()> {
        self.ready_ms.push(running.ready.as_secs_f64() * 1000.0);
        std::thread::sleep(SETTLE);
        self.memory_mib.push(resident_mib(running.child.id())?);
        Ok(())
    }
}

enum Which {
    Liminal,
    Bare,
}

struct Running {
    child: Child,
    url: String,
    ready: Duration,
    data_dir: Option<std::path::PathBuf>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(dir) = &self.data_dir {
            let _ = std::fs::remove_dir_all(dir);
        }
    }
}

/// Starts one with an empty store and waits for its ready line.
fn start(which: Which) -> anyhow::Result<Running> {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let release = target().join("release");
    let (mut program, data_dir) = match which {
        Which::Bare => (Command::new(release.join("examples/bare_server")), None),
        Which::Liminal => {
            let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let dir =
                std::env::temp_dir().join(format!("liminal-bench-{}-{number}", std::process::id()));
            let mut program = Command::new(release.join("liminal"));
            program
                .args(["--port", "0", "--gateway-port", "off", "--no-open"])
                .arg("--data-dir")
                .arg(&dir);
            (program, Some(dir))
        }
    };
    program
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let started = Instant::now();
    let mut child = program
        .spawn()
        .with_context(|| format!("could not run {program:?}"))?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().context("a pipe")?).read_line(&mut line)?;
    let ready = started.elapsed();
    let Some((_, url)) = line.trim_end().split_once("ready: ") else {
        bail!("{program:?} did not become ready: {line}")
    };
    Ok(Running {
        url: url.to_owned(),
        child,
        ready,
        data_dir,
    })
}

fn resident_mib(pid: u32) -> anyhow::Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .context("no VmRSS")?;
    let kib: f64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib / 1024.0)
}

struct PageLoads {
    ours_kb: Vec<f64>,
    ours_paint_ms: Vec<f64>,
    bare_kb: Vec<f64>,
    bare_paint_ms: Vec<f64>,
}

fn page_load(chromium: &Path, ours: &str, bare: &str) -> anyhow::Result<PageLoads> {
    let measured = in_browser(
        chromium,
        "e2e/bench/first-load.js",
        &[ours, bare, &RUNS.to_string()],
    )?;
    Ok(PageLoads {
        ours_kb: numbers(&measured[0]["kb"]),
        ours_paint_ms: numbers(&measured[0]["paintMs"]),
        bare_kb: numbers(&measured[1]["kb"]),
        bare_paint_ms: numbers(&measured[1]["paintMs"]),
    })
}

/// What a script of `e2e/bench` printed.
fn in_browser(
    chromium: &Path,
    script: &str,
    arguments: &[&str],
) -> anyhow::Result<serde_json::Value> {
    let output = command(&["node", script])
        .args(arguments)
        .env("CHROMIUM", chromium)
        .current_dir(root())
        .stderr(Stdio::inherit())
        .output()
        .context("could not run node")?;
    if !output.status.success() {
        bail!("{script} failed");
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn numbers(list: &serde_json::Value) -> Vec<f64> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(serde_json::Value::as_f64).collect()
}

fn row(name: &str, ours: &[f64], bare: &[f64], promise: f64) {
    let (mine, theirs) = (Spread::of(ours), Spread::of(bare));
    let kept = if mine.median <= promise {
        "kept"
    } else {
        "BROKEN"
    };
    println!(
        "{name:<34}{:>16}{:>16}{:>8.1}{:>6} {kept}",
        mine.to_string(),
        theirs.to_string(),
        mine.median / theirs.median,
        promise
    );
}
