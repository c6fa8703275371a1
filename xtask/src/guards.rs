//! Counts the instructions of frequently run code, and fails if an operation needs a fifth more than expected.
//!
//! Each count is relative to a plain operation of the same build, so it is comparable between machines.

use std::fmt::Write as _;
use std::process::Command;

use anyhow::{Context, bail};

use crate::{target, tools};

/// The guard's name in `crates/bench/src/guards.rs`, its description, and its expected cost. The unit is one line of an
/// agent parsed and serialized by serde_json.
const GUARDS: [(&str, &str, f64); 4] = [
    ("update", "an update of an agent, read and folded", 0.627),
    ("frame", "a frame for the browser, written", 0.235),
    ("markdown", "a text, rendered", 0.0885),
    ("growing", "a text, rendered as it grows", 0.191),
];

/// A message from the window to the agent and its answer back, through the server, in the same unit.
const MESSAGE: (&str, f64) = ("a message and its answer, through the server", 0.0316);
const MESSAGES: [usize; 2] = [10, 50];

const MORE: f64 = 1.2;

/// Returns the table of counts, or fails if one has grown.
pub(crate) fn check() -> anyhow::Result<String> {
    if !tools::is_installed("valgrind") {
        let missing = "skipped: valgrind was not found (Debian: `apt-get install valgrind`).";
        return Ok(missing.to_owned());
    }
    let nothing = count("nothing")?;
    let unit = count("unit")? - nothing;
    let mut counted = vec![];
    for (what, means, expected) in GUARDS {
        counted.push((means, expected, (count(what)? - nothing) / unit));
    }
    let [few, many] = MESSAGES;
    let each = (count_messages(many)? - count_messages(few)?) / (many - few) as f64;
    counted.push((MESSAGE.0, MESSAGE.1, each / unit));
    let mut over = vec![];
    let mut table = String::new();
    for (means, expected, needs) in counted {
        let change = (needs / expected - 1.0) * 100.0;
        writeln!(
            table,
            "{needs:>8.4}  {expected:>8.4}  {change:>+6.1} %  {means}"
        )?;
        if needs > expected * MORE {
            over.push(means);
        }
    }
    if !over.is_empty() {
        bail!(
            "more than a fifth more instructions than expected: {}. Find the cause; if the increase is intended, change the \
             expected value in xtask/src/guards.rs.\n{table}",
            over.join(", ")
        );
    }
    Ok(table)
}

/// Instructions of the server with this number of messages, counted by the program that sends them.
fn count_messages(count: usize) -> anyhow::Result<f64> {
    let output = Command::new(target().join("debug/bench"))
        .args(["guard", "messages", &count.to_string()])
        .output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    let counted = said.trim().parse();
    counted.with_context(|| {
        format!(
            "counting the server's instructions failed: {}",
            String::from_utf8_lossy(&output.stderr)
        )
    })
}

fn count(what: &str) -> anyhow::Result<f64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(target().join("debug/bench"))
        .args(["guard", what])
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let counted = said
        .lines()
        .find_map(|line| line.split("Collected : ").nth(1));
    let counted = counted.with_context(|| format!("valgrind printed no count: {said}"))?;
    Ok(counted.trim().parse()?)
}
