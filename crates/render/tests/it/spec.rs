//! The examples of the CommonMark and GFM specifications, read from the parser's own package.
//!
//! Compared by structure and words: our decorations (links' hosts, code's header and colours) are
//! taken off on both sides. What differs on purpose is named with its reason, and each reason must
//! still be needed.

use std::path::PathBuf;
use std::process::Command;

use render::html;

use crate::tokens::{Piece, pieces};

/// Where the parser's package is; its tests carry the examples.
fn suite() -> PathBuf {
    let cargo = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO"));
        command.args(arguments);
        let output = command.current_dir(env!("CARGO_MANIFEST_DIR")).output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    // Only the packages for this machine are sure to be here.
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

/// Markdown and HTML of each example of a file.
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

/// Structure and words, without what we add or leave out everywhere.
fn essence(html: &str) -> Vec<String> {
    let mut essence: Vec<String> = vec![];
    let mut hidden = 0_usize;
    let mut stack: Vec<(String, bool)> = vec![];
    for piece in pieces(html) {
        match &piece {
            Piece::Start(name, attributes) => {
                // Our header of a code block, the host behind a link, the box of a task.
                let hides = name == "figcaption"
                    || ["host", "box"].iter().any(|class| piece.has_class(class));
                let is_void = ["br", "hr", "img", "input"].contains(&name.as_str());
                if name == "img"
                    && let Some((_, alt)) = attributes.iter().find(|(name, _)| name == "alt")
                {
                    push_words(&mut essence, alt);
                }
                if !is_void {
                    stack.push((name.clone(), hides));
                    hidden += usize::from(hides);
                }
                if hidden == 0 && is_kept(name, &stack) {
                    essence.push(format!("<{name}>"));
                } else if name == "p" {
                    push_words(&mut essence, " ");
                }
            }
            Piece::End(name) => {
                if hidden == 0 && is_kept(name, &stack) {
                    essence.push(format!("</{name}>"));
                }
                if let Some((_, hid)) = stack.pop() {
                    hidden -= usize::from(hid);
                }
            }
            Piece::Text(text) if hidden == 0 => push_words(&mut essence, text),
            _ => {}
        }
    }
    for item in &mut essence {
        if !item.starts_with('<') {
            *item = item.split_whitespace().collect::<Vec<_>>().join(" ");
        }
    }
    essence.retain(|item| !item.is_empty());
    // A table without rows, and the cells that fill up a short row.
    let mut tidy: Vec<String> = vec![];
    for item in essence {
        let empty = match item.as_str() {
            "</tbody>" => "<tbody>",
            "</td>" => "<td>",
            _ => "",
        };
        if !empty.is_empty() && tidy.last().is_some_and(|last| last == empty) {
            tidy.pop();
        } else {
            tidy.push(item);
        }
    }
    tidy
}

fn is_kept(name: &str, stack: &[(String, bool)]) -> bool {
    // Paragraphs directly in an item come and go with how loose a list is.
    let outer = stack.iter().rev().nth(1).map(|(name, _)| name.as_str());
    match name {
        "p" => outer != Some("li"),
        "a" | "img" | "input" | "span" | "figure" | "div" | "sup" => false,
        _ => true,
    }
}

fn push_words(essence: &mut Vec<String>, text: &str) {
    match essence.last_mut() {
        Some(last) if !last.starts_with('<') => last.push_str(text),
        _ if text.trim().is_empty() => essence.push(" ".to_owned()),
        _ => essence.push(text.replace('<', "\u{2039}")),
    }
}

/// Why an example comes out differently on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    RawHtml,
    /// A definition works from where it stands: said twice, the second time comes out as expected.
    LateDefinition,
    Other,
}

fn reason(markdown: &str, expected: &[String], is_known: bool) -> Option<Reason> {
    let twice = essence(&html(&format!("{markdown}\n\n{markdown}")));
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

/// The number of examples, and why some of them differ.
fn compare(file: &str, known: &[(usize, &'static str)]) -> (usize, Vec<Reason>) {
    let examples = examples(file);
    let (mut reasons, mut unexplained) = (vec![], vec![]);
    for (index, (markdown, expected)) in examples.iter().enumerate() {
        let number = index + 1;
        let excuse = known.iter().find(|(found, _)| *found == number);
        let (ours, theirs) = (essence(&html(markdown)), essence(expected));
        if ours == theirs {
            assert_eq!(excuse, None, "{file} {number} needs no excuse any more");
            continue;
        }
        match reason(markdown, &theirs, excuse.is_some()) {
            Some(reason) => reasons.push(reason),
            None => unexplained.push(format!(
                "{number}: {markdown:?}\n  ours   {ours:?}\n  theirs {theirs:?}"
            )),
        }
    }
    let count = unexplained.len();
    assert!(count == 0, "{count} of {file}:\n{}", unexplained.join("\n"));
    (examples.len(), reasons)
}

/// All of them, to be cut into pieces.
pub(crate) const FILES: [&str; 5] = [
    "spec.rs",
    "gfm_table.rs",
    "gfm_strikethrough.rs",
    "gfm_tasklist.rs",
    "table.rs",
];

#[test]
fn commonmark() {
    let known = [
        (
            216,
            "an underline below nothing but a definition ends its paragraph",
        ),
        (
            540,
            "labels are compared in lower case, not by full case folding",
        ),
        (581, "a picture without words is called one"),
    ];
    let (count, reasons) = compare("spec.rs", &known);
    let count_of = |reason| reasons.iter().filter(|found| **found == reason).count();
    assert_eq!(count, 652);
    assert_eq!(count_of(Reason::RawHtml), 72);
    assert_eq!(count_of(Reason::LateDefinition), 48);
}

#[test]
fn gfm() {
    let wider = "a table may follow words without a bar in front";
    for (file, count, known) in [
        ("gfm_table.rs", 9, &[][..]),
        ("gfm_strikethrough.rs", 3, &[]),
        ("gfm_tasklist.rs", 2, &[]),
        ("table.rs", 28, &[(13, wider)]),
    ] {
        assert_eq!(compare(file, known).0, count, "{file}");
    }
}
