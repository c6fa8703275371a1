//! Text as HTML: on the server, and in the page beside the packages that would do it there.

use std::path::Path;

use super::{RUNS, Spread, in_browser, numbers};
use crate::target;

pub(super) fn run(chromium: &Path) -> anyhow::Result<()> {
    let example = target().join("release/examples/bench");
    let measured = in_browser(
        chromium,
        "e2e/bench/markdown.js",
        &[&example.to_string_lossy(), &RUNS.to_string()],
    )?;
    let spread = |what: &str| Spread::of(&numbers(&measured[what]));
    let (render, insert, script) = (spread("render"), spread("insert"), spread("script"));
    println!(
        "\n{:<44}{:>24}{:>24}{:>8}",
        "markdown, 1,000 mixed entries", "liminal", "JavaScript", "ratio"
    );
    let ratio = insert.median / script.median;
    let (insert, script) = (insert.to_string(), script.to_string());
    println!(
        "{:<44}{insert:>24}{script:>24}{ratio:>8.2}",
        "the page's thread, ms"
    );
    println!(
        "{:<44}{:>24}{:>24}",
        "the server, ms",
        render.to_string(),
        "none"
    );
    println!("  JavaScript: marked, DOMPurify and highlight.js, all of it in the page");
    println!(
        "\n{:<44}{:>12}{:>12}{:>8}",
        "one more piece of a growing text, us", "first tenth", "last tenth", "ratio"
    );
    let growing = measured["growing"].as_array().into_iter().flatten();
    let line = |name: &str, text: &serde_json::Value| {
        let micros = |what: &str| text[what].as_f64().unwrap_or(f64::NAN);
        let (first, last) = (micros("first"), micros("last"));
        let ratio = last / first;
        print!("{name:<44}{first:>12.1}{last:>12.1}{ratio:>8.2}");
        ratio
    };
    for text in growing {
        let ratio = line(text["name"].as_str().unwrap_or_default(), text);
        println!(" {}", if ratio <= 2.0 { "kept" } else { "BROKEN" });
    }
    line(
        "  the answer, rendered anew in the page",
        &measured["again"],
    );
    println!();
    Ok(())
}
