//! Tests that a page shows the same HTML as `html` of the text so far, however the text is split.

use proptest::prelude::*;
use render::{Live, html};

use crate::spec;
use crate::texts::{self, LONG};
use crate::tree::Tree;

/// Pushes the pieces, flushes after each, and compares with `html` of the text so far.
fn check(pieces: &[&str]) {
    let (mut live, mut page, mut so_far) = (Live::new(), Tree::default(), String::new());
    for piece in pieces {
        so_far.push_str(piece);
        live.push(piece);
        let delta = live.flush();
        page.apply(&delta.finished);
        let mut shown = page.clone();
        shown.apply(&delta.tail);
        assert_eq!(shown.html(), html(&so_far), "after {so_far:?}");
    }
    page.apply(&live.finish());
    assert_eq!(page.html(), html(&so_far), "at the end of {so_far:?}");
}

fn check_without_flush(pieces: &[&str]) {
    let (mut live, mut page) = (Live::new(), Tree::default());
    pieces.iter().for_each(|piece| live.push(piece));
    page.apply(&live.finish());
    assert_eq!(page.html(), html(&pieces.concat()));
}

fn characters(text: &str) -> Vec<&str> {
    let ends = text.char_indices().map(|(at, c)| (at, at + c.len_utf8()));
    ends.map(|(from, to)| &text[from..to]).collect()
}

#[test]
fn text_streamed_by_character_renders_like_whole_text() {
    for text in texts::all() {
        check(&characters(&text));
        check_without_flush(&characters(&text));
    }
}

#[test]
fn text_split_anywhere_renders_like_whole_text() {
    for text in texts::all().iter().chain([&LONG.to_owned()]) {
        for at in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
            check(&[&text[..at], &text[at..]]);
        }
    }
}

#[test]
fn spec_examples_split_anywhere_render_like_whole_text() {
    let examples = spec::FILES.into_iter().flat_map(spec::examples);
    let texts: Vec<String> = examples.map(|(markdown, _)| markdown).collect();
    assert!(texts.len() > 690, "{}", texts.len());
    for text in texts {
        check(&characters(&text));
        let whole = html(&text);
        for at in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
            let (mut live, mut page) = (Live::new(), Tree::default());
            for piece in [&text[..at], &text[at..]] {
                live.push(piece);
                page.apply(&live.flush().finished);
            }
            page.apply(&live.finish());
            assert_eq!(page.html(), whole, "{text:?} split at {at}");
        }
    }
}

#[test]
fn overlong_lines_in_pieces_render_like_whole_text() {
    let endless = [
        "word ".repeat(5000),
        "w".repeat(20_000),
        "é".repeat(9000),
        format!("```\n{}\n{}", "x".repeat(9000), "let a = 1;\n".repeat(900)),
        format!("> - {}", "deep *and* long ".repeat(900)),
        format!("|a|b|\n|-|-|\n|{}|x|\n|1|2|\n", "c".repeat(9000)),
        format!("# {}\n\ntext", "heading ".repeat(1500)),
        "line of a paragraph\n".repeat(1200),
        format!("    {}\n\n\n    x", "code ".repeat(2500)),
        format!("{}\n", ">".repeat(9000)),
    ];
    for text in &endless {
        for size in [1000, 4095, 4096, 4097] {
            let mut pieces = vec![];
            let mut rest = text.as_str();
            while !rest.is_empty() {
                let (piece, after) = rest.split_at(rest.floor_char_boundary(size));
                pieces.push(piece);
                rest = after;
            }
            check(&pieces);
        }
    }
}

#[test]
fn finished_blocks_are_sent_once() {
    let mut live = Live::new();
    live.push("# One\n\ntwo\n\n```rust\nfn a() {}\n");
    let first = live.flush();
    assert!(first.finished.iter().any(|part| part.html.contains("fn")));
    live.push("fn b() {}\n");
    let second = live.flush();
    let sent: String = second
        .finished
        .iter()
        .map(|part| part.html.as_str())
        .collect();
    assert!(sent.contains("</span>() {}"), "{sent}");
    assert!(!sent.contains("One") && !sent.contains(">a<"), "{sent}");
    assert_eq!(live.flush().finished, []);
}

#[test]
fn unclosed_fence_is_shown_as_code() {
    let mut live = Live::new();
    live.push("```py\ndef f");
    let delta = live.flush();
    assert!(
        delta.finished[0]
            .html
            .starts_with("<figure class=\"code\" data-language=\"python\">")
    );
    assert_eq!(delta.tail[0].depth, 3);
    assert_eq!(delta.tail[0].html, "<span class=\"k\">def</span> f\n");
}

#[test]
fn rows_and_items_are_finished_before_their_table_and_list() {
    let mut live = Live::new();
    live.push("|a|\n|-|\n|1|\n|2|\n");
    let delta = live.flush();
    assert!(delta.finished[0].html.contains("<tr><td>2</td></tr>"));
    live.push("|3|\n");
    let delta = live.flush();
    assert_eq!(delta.finished[0].html, "<tr><td>3</td></tr>");
    assert_eq!(delta.finished[0].depth, 3);

    let mut live = Live::new();
    live.push("- one\n- two\n");
    live.flush();
    live.push("- three\n- ");
    let delta = live.flush();
    let sent: String = delta
        .finished
        .iter()
        .map(|part| part.html.as_str())
        .collect();
    assert!(sent.contains("two") && !sent.contains("one"), "{sent}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_text_in_random_pieces_renders_like_whole_text(parts in prop::collection::vec(texts::fragment(), 0..40), sizes in prop::collection::vec(1_usize..40, 1..20)) {
        let text = parts.concat();
        let (mut pieces, mut rest) = (vec![], text.as_str());
        for size in sizes.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, after) = rest.split_at(rest.ceil_char_boundary((*size).min(rest.len())));
            pieces.push(piece);
            rest = after;
        }
        check(&pieces);
        check_without_flush(&pieces);
    }
}
