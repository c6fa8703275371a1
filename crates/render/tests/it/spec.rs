//! Examples of the CommonMark and GFM specifications, read from the parser's own package.
//!
//! Compares structure and text after removing our additions (link hosts, code headers, highlighting).
//! Each intended difference is listed with its reason, and a listed difference that no longer occurs
//! fails the test.

use std::path::PathBuf;
use std::process::Command;

use render::html;

use crate::tokens::{Piece, pieces};

/// Path of the parser's test suite, which contains the examples.
fn suite() -> PathBuf {
    let cargo = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO"));
        command.args(arguments);
        let output = command.current_dir(env!("CARGO_MANIFEST_DIR")).output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    // Offline, cargo is only certain to have the packages of the host platform.
    let version = cargo(&["-vV"]);
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let platform = ["--filter-platform", host.unwrap()];
    let metadata = ["metadata", "--format-version", "1", "--offline"];
    let metadata: serde_json::Value =
        serde_json::from_str(&cargo(&[&metadata[..], &platform].concat())).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let parser = packages.iter().find(|p| p["name"] == "pulldown-cmark");
    let manifest = PathBuf::from(parser.unwrap()["manifest_path"].as_str().unwrap());
    manifest.parent().unwrap().join("tests/suite")
}

/// Markdown and expected HTML of each example in a file.
pub(crate) fn examples(file: &str) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(suite().join(file)).unwrap();
    let between = |text: &str, name: &str| {
        let (_, rest) = text.split_once(&format!("let {name} = r##\"")).unwrap();
        rest.split_once("\"##;").unwrap().0.to_owned()
    };
    text.split("#[test]")
        .skip(1)
        .map(|test| (between(test, "original"), between(test, "expected")))
        .collect()
}

/// Structure and text of the HTML, without elements that we add or omit everywhere.
fn normalized(html: &str) -> Vec<String> {
    let mut normalized: Vec<String> = vec![];
    let mut hidden = 0_usize;
    let mut stack: Vec<(String, bool)> = vec![];
    for piece in pieces(html) {
        match &piece {
            Piece::Start(name, attributes) => {
                // The header of a code block, the host after a link, the checkbox of a task.
                let hides = name == "figcaption"
                    || ["host", "box"].iter().any(|class| piece.has_class(class));
                let is_void = ["br", "hr", "img", "input"].contains(&name.as_str());
                if name == "img"
                    && let Some((_, alt)) = attributes.iter().find(|(name, _)| name == "alt")
                {
                    push_words(&mut normalized, alt);
                }
                if !is_void {
                    stack.push((name.clone(), hides));
                    hidden += usize::from(hides);
                }
                if hidden == 0 && is_compared(name, &stack) {
                    normalized.push(format!("<{name}>"));
                } else if name == "p" {
                    push_words(&mut normalized, " ");
                }
            }
            Piece::End(name) => {
                if hidden == 0 && is_compared(name, &stack) {
                    normalized.push(format!("</{name}>"));
                }
                if let Some((_, hid)) = stack.pop() {
                    hidden -= usize::from(hid);
                }
            }
            Piece::Text(text) if hidden == 0 => push_words(&mut normalized, text),
            _ => {}
        }
    }
    for item in &mut normalized {
        if !item.starts_with('<') {
            *item = item.split_whitespace().collect::<Vec<_>>().join(" ");
        }
    }
    normalized.retain(|item| !item.is_empty());
    // Drop the empty body of a table without rows and the empty cells of short rows.
    let mut filled: Vec<String> = vec![];
    for item in normalized {
        let empty = match item.as_str() {
            "</tbody>" => "<tbody>",
            "</td>" => "<td>",
            _ => "",
        };
        if !empty.is_empty() && filled.last().is_some_and(|last| last == empty) {
            filled.pop();
        } else {
            filled.push(item);
        }
    }
    filled
}

fn is_compared(name: &str, stack: &[(String, bool)]) -> bool {
    // Paragraphs directly in an item depend on whether the list is loose, which we do not track.
    let outer = stack.iter().rev().nth(1).map(|(name, _)| name.as_str());
    match name {
        "p" => outer != Some("li"),
        "a" | "img" | "input" | "span" | "figure" | "div" | "sup" => false,
        _ => true,
    }
}

fn push_words(normalized: &mut Vec<String>, text: &str) {
    match normalized.last_mut() {
        Some(last) if !last.starts_with('<') => last.push_str(text),
        _ if text.trim().is_empty() => normalized.push(" ".to_owned()),
        _ => normalized.push(text.replace('<', "\u{2039}")),
    }
}

/// Reason for an intended difference from an example.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    RawHtml,
    /// A definition applies only to later text, so the second copy of the example renders as expected.
    LateDefinition,
    Other,
}

fn reason(markdown: &str, expected: &[String], is_known: bool) -> Option<Reason> {
    let twice = normalized(&html(&format!("{markdown}\n\n{markdown}")));
    match () {
        () if is_known => Some(Reason::Other),
        () if has_raw_html(markdown) => Some(Reason::RawHtml),
        () if twice.ends_with(expected) => Some(Reason::LateDefinition),
        () => None,
    }
}

fn has_raw_html(markdown: &str) -> bool {
    pulldown_cmark::Parser::new(markdown).any(|event| {
        matches!(
            event,
            pulldown_cmark::Event::Html(_) | pulldown_cmark::Event::InlineHtml(_)
        )
    })
}

/// Returns the number of examples and the reasons for those that differ.
fn compare(file: &str, known: &[(usize, &'static str)]) -> (usize, Vec<Reason>) {
    let examples = examples(file);
    let (mut reasons, mut unexplained) = (vec![], vec![]);
    for (index, (markdown, expected)) in examples.iter().enumerate() {
        let number = index + 1;
        let exception = known.iter().find(|(found, _)| *found == number);
        let (ours, theirs) = (normalized(&html(markdown)), normalized(expected));
        if ours == theirs {
            assert_eq!(
                exception, None,
                "{file} {number} now matches: remove its known difference"
            );
            continue;
        }
        match reason(markdown, &theirs, exception.is_some()) {
            Some(reason) => reasons.push(reason),
            None => unexplained.push(format!(
                "{number}: {markdown:?}\n  ours   {ours:?}\n  theirs {theirs:?}"
            )),
        }
    }
    let count = unexplained.len();
    assert!(
        count == 0,
        "{count} unexplained differences in {file}:\n{}",
        unexplained.join("\n")
    );
    (examples.len(), reasons)
}

/// Suite files whose examples are also used in `chunking`.
pub(crate) const FILES: [&str; 5] = [
    "spec.rs",
    "gfm_table.rs",
    "gfm_strikethrough.rs",
    "gfm_tasklist.rs",
    "table.rs",
];

#[test]
fn commonmark_examples_match_except_known_differences() {
    let known = [
        (
            216,
            "a setext underline below only a definition ends the paragraph",
        ),
        (
            540,
            "labels are compared in lower case, not by full case folding",
        ),
        (581, "an image without alt text is shown as `image`"),
    ];
    let (count, reasons) = compare("spec.rs", &known);
    let count_of = |reason| reasons.iter().filter(|found| **found == reason).count();
    assert_eq!(count, 652);
    assert_eq!(count_of(Reason::RawHtml), 72);
    assert_eq!(count_of(Reason::LateDefinition), 48);
}

#[test]
fn gfm_examples_match_except_known_differences() {
    let wider = "a table may follow paragraph text without a leading bar";
    for (file, count, known) in [
        ("gfm_table.rs", 9, &[][..]),
        ("gfm_strikethrough.rs", 3, &[]),
        ("gfm_tasklist.rs", 2, &[]),
        ("table.rs", 28, &[(13, wider)]),
    ] {
        assert_eq!(compare(file, known).0, count, "{file}");
    }
}
