//! However a text comes in pieces, a page shows the same at every moment and in the end.

use proptest::prelude::*;
use render::{Live, html};

use crate::spec;
use crate::texts::{self, LONG};
use crate::tree::Tree;

/// Pushes the pieces, looking after each, and compares with the text so far at one go.
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
    assert_eq!(page.html(), html(&so_far), "in the end of {so_far:?}");
}

fn check_without_looking(pieces: &[&str]) {
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
fn a_text_cut_after_every_character_is_the_same_as_at_one_go() {
    for text in texts::all() {
        check(&characters(&text));
        check_without_looking(&characters(&text));
    }
}

#[test]
fn a_text_cut_once_is_the_same_wherever_that_is() {
    for text in texts::all().iter().chain([&LONG.to_owned()]) {
        for at in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
            check(&[&text[..at], &text[at..]]);
        }
    }
}

#[test]
fn every_example_of_the_specifications_is_the_same_however_it_is_cut() {
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
            assert_eq!(page.html(), whole, "{text:?} cut at {at}");
        }
    }
}

#[test]
fn what_is_longer_than_we_wait_for_is_the_same_too() {
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
fn what_is_finished_is_sent_once() {
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
fn an_open_fence_is_shown_as_code() {
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
fn rows_and_items_are_finished_while_their_table_and_list_are_open() {
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
    fn any_text_in_any_pieces(parts in prop::collection::vec(texts::fragment(), 0..40), sizes in prop::collection::vec(1_usize..40, 1..20)) {
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
        check_without_looking(&pieces);
    }
}
