//! Limits for hostile texts: HTML size, element depth and delta size.

use render::{Live, html};

/// Maximum bytes of HTML per byte of text. Consecutive empty fences come closest.
const GROWTH_MAX: usize = 64;

fn hostile() -> Vec<(&'static str, String)> {
    vec![
        ("quotes", ">".repeat(10_000)),
        (
            "quotes by line",
            (1..300).map(|n| format!("{} x\n", ">".repeat(n))).collect(),
        ),
        ("items", "- ".repeat(10_000)),
        (
            "items by line",
            (0..300)
                .map(|n| format!("{}- x\n", "  ".repeat(n)))
                .collect(),
        ),
        ("numbers", "1. ".repeat(10_000)),
        ("brackets", "[".repeat(50_000)),
        ("links", "[a](".repeat(20_000)),
        ("images", "![".repeat(20_000)),
        ("emphasis", "*a **b ".repeat(10_000)),
        ("open emphasis", "*a_ ".repeat(10_000)),
        ("strong", "**".repeat(20_000)),
        (
            "ticks",
            (1..400).map(|n| format!("{} ", "`".repeat(n))).collect(),
        ),
        ("html", "<a ".repeat(20_000)),
        ("comments", "<!-- ".repeat(20_000)),
        ("cdata", "<![CDATA[".repeat(10_000)),
        ("entities", "&#0;&".repeat(10_000)),
        ("tables", "|a|b\n|-|-\n".repeat(3000)),
        (
            "wide table",
            format!(
                "{}\n{}\n{}",
                "|a".repeat(1000),
                "|-".repeat(1000),
                "x\n".repeat(3000)
            ),
        ),
        (
            "short rows",
            format!(
                "{}\n{}\n{}",
                "|a".repeat(60),
                "|-".repeat(60),
                "x\n".repeat(5000)
            ),
        ),
        ("fences", "```\n```\n".repeat(3000)),
        ("lists", "-\n+\n".repeat(5000)),
        ("rules", "***\n".repeat(5000)),
        (
            "definitions",
            format!(
                "[a]: https://x/{}\n\n{}",
                "y".repeat(1900),
                "[a] ".repeat(20_000)
            ),
        ),
        (
            "many definitions",
            (0..5000).map(|n| format!("[a{n}]: x\n\n")).collect(),
        ),
        ("notes", "[^1]: ".repeat(5000)),
        ("note marks", "[^1]".repeat(10_000)),
        ("math", "$a$".repeat(20_000)),
        ("dollars", "$".repeat(50_000)),
        ("addresses", "http://a ".repeat(10_000)),
        ("nested addresses", "http://".repeat(10_000)),
        ("paths", "a/b.c ".repeat(10_000)),
        ("controls", "\u{1}".repeat(20_000)),
        ("tags", "\u{e0041}".repeat(5000)),
        (
            "numbers in code",
            format!("```rust\n{}", "1 1 1 1 1\n".repeat(5000)),
        ),
        (
            "slashes in code",
            format!("```js\n{}", "=/[".repeat(600).repeat(20)),
        ),
        (
            "strings in code",
            format!("```js\n{}", "'\\".repeat(20_000)),
        ),
        (
            "comments in code",
            format!("```rust\n{}", "/*".repeat(20_000)),
        ),
        ("dollars in code", format!("```sh\n{}", "${".repeat(20_000))),
        ("tabs", "\t".repeat(20_000)),
        (
            "blank code lines",
            format!("    a\n{}    b", "     \n".repeat(5000)),
        ),
        ("backslashes", "\\".repeat(50_000)),
        ("underline", format!("{}\n===", "a\n".repeat(20_000))),
    ]
}

#[test]
fn hostile_text_html_size_is_bounded() {
    for (name, text) in hostile() {
        let length = html(&text).len();
        assert!(
            length <= GROWTH_MAX * text.len() + 1000,
            "{name}: {} bytes became {length}",
            text.len()
        );
    }
}

#[test]
fn hostile_text_element_depth_is_bounded() {
    for (name, text) in hostile() {
        let (mut depth, mut deepest) = (0_i32, 0);
        for piece in crate::tokens::pieces(&html(&text)) {
            match piece {
                crate::tokens::Piece::Start(tag, _) if !["br", "hr"].contains(&tag.as_str()) => {
                    depth += 1;
                    deepest = deepest.max(depth);
                }
                crate::tokens::Piece::End(_) => depth -= 1,
                _ => {}
            }
        }
        assert_eq!(depth, 0, "{name}");
        assert!(deepest <= 80, "{name}: {deepest} deep");
    }
}

/// While a text grows, each flush sends only the new parts and a small tail.
#[test]
fn delta_size_does_not_grow_with_the_text() {
    let endless: [(&str, &str, &str); 9] = [
        ("paragraph", "", "some words and *more* of `them` "),
        ("lines", "", "a line of words, long enough to matter\n"),
        ("table", "|a|b|\n|-|-|\n", "|one|two|\n"),
        ("fence", "```rust\n", "let a = \"b\"; // c\n"),
        ("one line of code", "```\n", "xxxxxxxxxxxxxxxxxxxxxxxx"),
        ("list", "", "- an item\n"),
        ("loose list", "", "- an item\n\n  and more of it\n\n"),
        ("quote", "", "> some words, long enough to matter\n"),
        ("code in an item", "- a\n  ```\n", "  code\n"),
    ];
    for (name, before, piece) in endless {
        let mut live = Live::new();
        live.push(before);
        let size = |live: &mut Live| {
            live.push(piece);
            let delta = live.flush();
            let parts = delta.finished.iter().chain(&delta.tail);
            parts.map(|part| part.html.len()).sum::<usize>()
        };
        let early = (0..400).map(|_| size(&mut live)).max().unwrap_or(0);
        live.push(&piece.repeat(8000));
        live.flush();
        let late = (0..400).map(|_| size(&mut live)).max().unwrap_or(0);
        assert!(
            late <= early + 64,
            "{name}: {early} bytes at first, {late} later"
        );
        assert!(late <= 64 * 1024, "{name}: {late} bytes");
    }
}
