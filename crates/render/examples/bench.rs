//! Benchmarks rendering: whole entries, code, streamed texts and hostile texts.
//!
//! `cargo run --release -p render --example bench` prints a report. For `e2e/bench/markdown.js`, which
//! renders the same entries with other libraries, `… bench -- entries` prints the entries as JSON,
//! `html` their HTML, `pass` the milliseconds for one pass over them, and `growing` the microseconds
//! per piece of streamed texts.

#![expect(clippy::print_stdout, reason = "prints a report")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use render::{Live, code_lines, html};

fn main() -> std::io::Result<()> {
    if let Some(measurement) = std::env::args().nth(1) {
        return print_json(&measurement);
    }
    let before = resident_kib();
    let first = Instant::now();
    black_box(html("# first\n\n```rust\nfn main() {}\n```\n"));
    println!("first text with code: {:?}", first.elapsed());
    whole();
    code();
    println!(
        "memory: {before} KiB before, {} KiB after all languages\n",
        resident_kib()
    );
    growing();
    hostile();
    Ok(())
}

/// Prints one measurement as JSON for another program.
fn print_json(measurement: &str) -> std::io::Result<()> {
    let entries: Vec<String> = (0..1000).map(entry).collect();
    let rendered = || -> Vec<String> { entries.iter().map(|entry| html(entry)).collect() };
    let json = match measurement {
        "entries" => serde_json::to_string(&entries)?,
        "html" => serde_json::to_string(&rendered())?,
        "pass" => {
            black_box(rendered());
            let time = timed(5, || drop(black_box(rendered())));
            serde_json::to_string(&(time.as_secs_f64() * 1000.0))?
        }
        "growing" => {
            let of = |(name, text): &(&str, String)| {
                let (first, last) = tenths(&times(text, PIECE_BYTES));
                let micros = |time: Duration| time.as_secs_f64() * 1e6;
                serde_json::json!({"name": name, "first": micros(first), "last": micros(last)})
            };
            serde_json::to_string(&growing_texts().iter().map(of).collect::<Vec<_>>())?
        }
        other => {
            return Err(std::io::Error::other(format!(
                "unknown measurement `{other}`: use entries, html, pass or growing"
            )));
        }
    };
    println!("{json}");
    Ok(())
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok())
        .unwrap_or(0)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn timed(runs: usize, mut work: impl FnMut()) -> Duration {
    median(
        (0..runs)
            .map(|_| {
                let start = Instant::now();
                work();
                start.elapsed()
            })
            .collect(),
    )
}

/// A typical agent answer: text, a list, sometimes code or a table.
fn entry(number: usize) -> String {
    let mut text = format!(
        "## Step {number}\n\nI looked at `src/part_{number}.rs:{number}` and **found** the cause: the *cache* is read before it is filled. See https://example.com/docs/{number}.\n\n- first, move the call\n- then add a test\n  - and run it\n\n"
    );
    if number.is_multiple_of(2) {
        text.push_str("```rust\npub fn load(path: &Path) -> io::Result<Vec<u8>> {\n    // Read once, keep for ever.\n    let bytes = std::fs::read(path)?;\n    let total: usize = bytes.iter().map(|b| *b as usize).sum();\n    println!(\"{} bytes, {total}\", bytes.len());\n    Ok(bytes)\n}\n```\n\n");
    }
    if number.is_multiple_of(5) {
        text.push_str("| file | lines | state |\n|---|--:|---|\n| a.rs | 120 | done |\n| b.rs | 98 | open |\n\n");
    }
    text.push_str("That should do. Run `cargo test` and tell me what you see.\n");
    text
}

fn whole() {
    let entries: Vec<String> = (0..1000).map(entry).collect();
    let bytes: usize = entries.iter().map(String::len).sum();
    let time = timed(15, || {
        for entry in &entries {
            black_box(html(entry));
        }
    });
    let out: usize = entries.iter().map(|entry| html(entry).len()).sum();
    println!("1,000 mixed entries: {time:?} for {bytes} bytes, {out} bytes of HTML");
}

fn code() {
    let rust = include_str!("../src/writer.rs").repeat(10);
    let time = timed(9, || drop(black_box(code_lines("rust", &rust))));
    let rate = rust.len() as f64 / time.as_secs_f64() / 1e6;
    println!("{} bytes of Rust: {time:?}, {rate:.0} MB/s", rust.len());
    for language in ["python", "js", "go", "java", "sql", "html", "yaml", "sh"] {
        black_box(code_lines(language, &rust[..10_000]));
    }
}

/// Typical size of a piece that a model streams.
const PIECE_BYTES: usize = 20;

/// Streams each text and prints the median time per piece of the first tenth and of the last.
fn growing() {
    println!(
        "{:<26}{:>10}{:>14}{:>14}{:>8}{:>12}{:>12}",
        "a growing text", "pieces", "first tenth", "last tenth", "ratio", "slowest", "total"
    );
    for (name, text) in growing_texts() {
        stream(name, &text);
    }
    println!();
}

fn growing_texts() -> Vec<(&'static str, String)> {
    let answer: String = (0..60).map(entry).collect();
    let words = "some words with *emphasis* and `code`, ".repeat(6000);
    let table = format!(
        "|a|b|c|\n|-|-|-|\n{}",
        "|one|two **b**|three|\n".repeat(10_000)
    );
    let fence = format!("```rust\n{}", "let a = call(\"b\", 1); // c\n".repeat(8000));
    let list = "- an item with *words*\n".repeat(8000);
    let nested: String = (0..8000)
        .map(|n| format!("{}- x\n", "  ".repeat(n % 40)))
        .collect();
    let quotes = ">".repeat(10_000) + &"\n> > > words".repeat(8000);
    let one_line = format!("```\n{}", "x".repeat(200_000));
    let in_item = format!("- a\n  ```js\n{}", "  const a = 1;\n".repeat(8000));
    vec![
        ("answer of 50 KB", answer),
        ("one endless paragraph", words),
        ("table of 10,000 rows", table),
        ("fence that never closes", fence),
        ("list of 8,000 items", list),
        ("deep lists", nested),
        ("10,000 quotes", quotes),
        ("one endless line of code", one_line),
        ("fence in an item", in_item),
    ]
}

/// Time to push and flush each piece.
fn times(text: &str, size: usize) -> Vec<Duration> {
    let mut live = Live::new();
    let mut times = vec![];
    for piece in text.as_bytes().chunks(size) {
        let piece = String::from_utf8_lossy(piece);
        let start = Instant::now();
        live.push(&piece);
        black_box(live.flush());
        times.push(start.elapsed());
    }
    black_box(live.finish());
    times
}

fn tenths(times: &[Duration]) -> (Duration, Duration) {
    let tenth = times.len() / 10;
    (
        median(times[..tenth].to_vec()),
        median(times[times.len() - tenth..].to_vec()),
    )
}

fn stream(name: &str, text: &str) {
    let times = times(text, PIECE_BYTES);
    let (first, last) = tenths(&times);
    println!(
        "{name:<26}{:>10}{:>14}{:>14}{:>8.2}{:>12}{:>12}",
        times.len(),
        format!("{first:?}"),
        format!("{last:?}"),
        last.as_secs_f64() / first.as_secs_f64(),
        format!("{:?}", times.iter().max().copied().unwrap_or_default()),
        format!("{:?}", times.iter().sum::<Duration>()),
    );
}

/// Prints the time per byte of hostile texts next to an ordinary one.
fn hostile() {
    println!(
        "{:<26}{:>10}{:>12}{:>14}",
        "a hostile text", "bytes", "time", "ns per byte"
    );
    for (name, piece, before) in [
        ("ordinary", "words and **more** of `them`\n\n", ""),
        ("brackets", "[", ""),
        ("open links", "[a](", ""),
        ("pictures", "![", ""),
        ("emphasis", "*a **b ", ""),
        ("underscores", "_a__b ", ""),
        ("ticks", "` `` ``` ", ""),
        ("html", "<a ", ""),
        ("comments", "<!-- ", ""),
        ("entities", "&#", ""),
        ("quotes", ">", ""),
        ("items", "- ", ""),
        ("dollars", "$a ", ""),
        ("addresses", "http://", ""),
        ("definitions", "[a]: b\n\n", ""),
        ("uses of one", "[a] ", "[a]: https://example.com\n\n"),
        ("braces in JavaScript", "=/[", "```js\n"),
        ("quotes in Rust", "'\"", "```rust\n"),
        ("tags in HTML", "<a b='", "```html\n"),
        ("short rows", "x\n", "|a|b|c|d|\n|-|-|-|-|\n"),
    ] {
        let text = format!("{before}{}", piece.repeat(500_000 / piece.len()));
        let time = timed(3, || drop(black_box(html(&text))));
        let each = time.as_nanos() as f64 / text.len() as f64;
        println!(
            "{name:<26}{:>10}{:>12}{each:>14.0}",
            text.len(),
            format!("{time:.1?}")
        );
    }
}
