//! Renders any text in any pieces: no panics, only allowed elements, and the same HTML as `html`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use render::{Live, code_lines, html, visible};

#[path = "../../tests/it/tree.rs"]
mod tree;

const ELEMENTS: &[&str] = &[
    "a",
    "blockquote",
    "br",
    "button",
    "code",
    "del",
    "div",
    "em",
    "figcaption",
    "figure",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "li",
    "ol",
    "p",
    "pre",
    "span",
    "strong",
    "sup",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "tr",
    "ul",
];

fn assert_only_allowed(html: &str) {
    for tag in html.split('<').skip(1) {
        let name = tag
            .trim_start_matches('/')
            .split([' ', '>'])
            .next()
            .unwrap_or("");
        assert!(ELEMENTS.contains(&name), "<{name}>");
        assert!(
            !tag.split('>').next().unwrap_or("").contains(" on"),
            "{tag}"
        );
    }
    for link in html.split("href=\"").skip(1) {
        let fits = ["http://", "https://", "mailto:"]
            .iter()
            .any(|scheme| link.starts_with(scheme));
        assert!(fits, "{link}");
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&step, data)) = data.split_first() else {
        return;
    };
    let text = String::from_utf8_lossy(data);
    let whole = html(&text);
    assert_only_allowed(&whole);
    assert!(
        whole.len() <= 64 * text.len() + 1000,
        "{} became {}",
        text.len(),
        whole.len()
    );

    let (mut live, mut page, mut rest) = (Live::new(), tree::Tree::default(), &*text);
    while !rest.is_empty() {
        let size = usize::from(step).max(1).min(rest.len());
        let (piece, after) = rest.split_at(rest.ceil_char_boundary(size));
        live.push(piece);
        page.apply(&live.flush().finished);
        rest = after;
    }
    page.apply(&live.finish());
    assert_eq!(page.html(), whole);

    assert_only_allowed(&visible(&text));
    for language in [
        "rust", "js", "html", "yaml", "md", "scss", "sh", "py", "latex",
    ] {
        assert_only_allowed(&code_lines(language, &text).concat());
    }
});
