//! Detects URLs and file paths in plain text.
//!
//! One pass over the words, with few false positives: `1/2` must not become a path, even if some
//! paths are missed.

use std::fmt::Write;

use crate::escape::{self, TextKind};
use crate::link::{self, Target};

const PATH_BYTES_MAX: usize = 300;
const ADDRESS_BYTES_MAX: usize = 2048;

/// A file path with an optional line and column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Path {
    pub(crate) name: String,
    line: Option<u32>,
    column: Option<u32>,
}

/// Writes text with URLs as links and file paths marked.
pub(crate) fn write(out: &mut String, text: &str) {
    let may_hold_any =
        memchr::memchr2(b'/', b':', text.as_bytes()).is_some() || text.contains("www.");
    if !may_hold_any {
        return escape::text(out, text, TextKind::Prose);
    }
    let mut from = 0;
    for (begin, word) in words(text) {
        if begin < from || !word.contains(['/', ':', '.']) {
            continue;
        }
        let Some((skipped, length, found)) = find(word) else {
            continue;
        };
        let (begin, end) = (begin + skipped, begin + skipped + length);
        escape::text(out, &text[from..begin], TextKind::Prose);
        match found {
            Found::Address(target) => {
                link::open(out, &target);
                escape::text(out, &text[begin..end], TextKind::Exact);
                out.push_str("</a>");
                link::write_destination(out, &target, &text[begin..end]);
            }
            Found::Path(path) => {
                open_path(out, &path);
                escape::text(out, &text[begin..end], TextKind::Exact);
                out.push_str("</span>");
            }
        }
        from = end;
    }
    escape::text(out, &text[from..], TextKind::Prose);
}

/// Writes the start tag around a file path.
pub(crate) fn open_path(out: &mut String, path: &Path) {
    out.push_str("<span class=\"path\" data-path=\"");
    escape::attribute(out, &path.name);
    for (name, number) in [("line", path.line), ("column", path.column)] {
        if let Some(number) = number {
            let _ = write!(out, "\" data-{name}=\"{number}");
        }
    }
    out.push_str("\">");
}

fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let start = text.as_ptr() as usize;
    text.split_ascii_whitespace()
        .map(move |word| (word.as_ptr() as usize - start, word))
}

enum Found {
    Address(Target),
    Path(Path),
}

/// Finds the first URL in a word, or the path that the word is. Returns its offset, length and kind.
fn find(word: &str) -> Option<(usize, usize, Found)> {
    if let Some((skipped, length, target)) = find_address(word) {
        return Some((skipped, length, Found::Address(target)));
    }
    let bare = word.trim_start_matches(['(', '[', '{', '"', '\'', '*', '\u{201c}', '\u{2018}']);
    let skipped = word.len() - bare.len();
    let bare = bare.trim_end_matches([
        '.', ',', ';', ':', '!', '?', ')', ']', '}', '"', '\'', '*', '\u{201d}', '\u{2019}',
    ]);
    let path = path(bare, Context::Words)?;
    Some((skipped, bare.len(), Found::Path(path)))
}

fn find_address(word: &str) -> Option<(usize, usize, Target)> {
    for (colon, _) in word.match_indices("://").take(4) {
        for scheme in ["https", "http"] {
            let Some(begin) = colon.checked_sub(scheme.len()) else {
                continue;
            };
            let Some((before, found)) = word[..colon].split_at_checked(begin) else {
                continue;
            };
            let stands_alone = !before.ends_with(char::is_alphanumeric);
            if !found.eq_ignore_ascii_case(scheme) || !stands_alone {
                continue;
            }
            let address = trimmed(&word[begin..]);
            let target = link::target(address);
            if address.len() <= ADDRESS_BYTES_MAX && matches!(target, Target::Web { .. }) {
                return Some((begin, address.len(), target));
            }
        }
    }
    let bare = word.trim_start_matches(['(', '[', '"', '\'', '*']);
    let address = trimmed(bare);
    let named = address.strip_prefix("www.")?;
    if !named.contains('.') || address.len() > ADDRESS_BYTES_MAX {
        return None;
    }
    match link::target(&format!("http://{address}")) {
        target @ Target::Web { .. } => Some((word.len() - bare.len(), address.len(), target)),
        _ => None,
    }
}

/// Strips punctuation of the surrounding sentence from the end of a URL.
fn trimmed(text: &str) -> &str {
    let end = text
        .find(|c| matches!(c, '<' | '>' | '"' | '`' | '\u{3001}' | '\u{3002}' | '\u{300a}'..='\u{3011}' | '\u{ff01}'..='\u{ff1f}'))
        .unwrap_or(text.len());
    let mut text = &text[..end];
    loop {
        let shorter = text.trim_end_matches(['.', ',', ';', ':', '!', '?', '\'', '*', '_', '~']);
        let closes_more = shorter.ends_with(')')
            && shorter.matches(')').count() > shorter.matches('(').count()
            || shorter.ends_with(']') && !shorter.contains('[');
        let shorter = match closes_more {
            true => &shorter[..shorter.len() - 1],
            false => shorter,
        };
        if shorter.len() == text.len() {
            return text;
        }
        text = shorter;
    }
}

pub(crate) fn path_in_code(text: &str) -> Option<Path> {
    path(text, Context::Code)
}

pub(crate) fn path_in_link(address: &str) -> Option<Path> {
    path(address, Context::Link)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Context {
    Words,
    Code,
    Link,
}

fn path(text: &str, place: Context) -> Option<Path> {
    if text.len() > PATH_BYTES_MAX || text.len() < 3 {
        return None;
    }
    let (name, line, column) = split_place(text);
    let is_plain = |c: char| {
        c.is_alphanumeric()
            || matches!(c, '/' | '.' | '_' | '-' | '+' | '@' | '~' | '$' | '[' | ']')
    };
    let last = name.rsplit('/').next()?;
    if !name.chars().all(is_plain) || name.contains("//") || !name.contains(char::is_alphanumeric) {
        return None;
    }
    let begins_like_one = ["/", "./", "../", "~/"]
        .iter()
        .any(|begin| name.starts_with(begin));
    let first = name.split('/').next()?;
    // `example.com/x.html` is a URL, `.github/x.yml` is a path.
    let is_host =
        !begins_like_one && name.contains('/') && first.trim_start_matches('.').contains('.');
    let fits = match place {
        _ if is_host => false,
        Context::Link => has_ending(last) || begins_like_one || name.contains('/'),
        _ if begins_like_one => {
            has_ending(last) || line.is_some() || name.trim_start_matches('/').contains('/')
        }
        _ if name.contains('/') => has_ending(last),
        _ => has_ending(last) && line.is_some() && !is_domain(last),
    };
    fits.then(|| Path {
        name: name.to_owned(),
        line,
        column,
    })
}

/// Splits a path from its position: `a.rs:3`, `a.rs:3:4`, `a.rs:3-9` or `a.rs#L3`.
fn split_place(text: &str) -> (&str, Option<u32>, Option<u32>) {
    if let Some((name, line)) = text.split_once("#L") {
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        return match line[..digits].parse() {
            Ok(line) => (name, Some(line), None),
            Err(_) => (text, None, None),
        };
    }
    let Some((name, place)) = text.split_once(':') else {
        return (text, None, None);
    };
    let (line, column) = match place.split_once([':', '-']) {
        Some((line, other)) => (line, Some(other)),
        None => (place, None),
    };
    let is_span = place.contains('-');
    match (line.parse(), column.map(str::parse::<u32>)) {
        (Ok(line), None) => (name, Some(line), None),
        (Ok(line), Some(Ok(_))) if is_span => (name, Some(line), None),
        (Ok(line), Some(Ok(column))) => (name, Some(line), Some(column)),
        _ => (text, None, None),
    }
}

fn has_ending(name: &str) -> bool {
    match name.rsplit_once('.') {
        Some((_, ending)) => {
            (1..=10).contains(&ending.len())
                && ending.bytes().all(|b| b.is_ascii_alphanumeric())
                && ending.as_bytes()[0].is_ascii_alphabetic()
        }
        None => matches!(name, "Makefile" | "Dockerfile" | "LICENSE" | "Justfile"),
    }
}

/// Whether the name ends in a common top-level domain: `example.com:8080` is a host and port.
fn is_domain(name: &str) -> bool {
    let ending = name.rsplit('.').next().unwrap_or(name);
    [
        "com",
        "org",
        "net",
        "io",
        "dev",
        "app",
        "local",
        "localhost",
        "internal",
    ]
    .contains(&ending)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        let mut out = String::new();
        write(&mut out, text);
        out
    }

    fn linked(text: &str) -> Vec<String> {
        let html = written(text);
        html.split("href=\"")
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap_or("").to_owned())
            .collect()
    }

    #[test]
    fn file_paths_with_lines_are_found_in_text() {
        for (text, name, line) in [
            ("see src/main.rs:12.", "src/main.rs", Some(12)),
            ("(./a/b.ts:3:4)", "./a/b.ts", Some(3)),
            ("/usr/lib/x", "/usr/lib/x", None),
            ("main.rs:7,", "main.rs", Some(7)),
            ("crates/render/src/lib.rs", "crates/render/src/lib.rs", None),
            (".github/workflows/ci.yml", ".github/workflows/ci.yml", None),
            ("a/b.rs#L10-L20", "a/b.rs", Some(10)),
            ("a/b.rs:10-20", "a/b.rs", Some(10)),
        ] {
            let html = written(text);
            assert!(html.contains(&format!("data-path=\"{name}\"")), "{html}");
            let wanted = line.map(|line: u32| format!("data-line=\"{line}\""));
            assert!(wanted.is_none_or(|wanted| html.contains(&wanted)), "{html}");
        }
    }

    #[test]
    fn text_resembling_a_path_is_not_marked() {
        for text in [
            "and/or",
            "TCP/IP",
            "1/2",
            "12:30",
            "e.g. this",
            "localhost:3000",
            "example.com:80",
            "example.com/a.html",
            "foo.bar()",
            "/help",
            "https://",
            "a::b",
            "http:",
            "//",
            "...:1",
            "v1.2/3.4",
        ] {
            assert!(!written(text).contains("<"), "{}", written(text));
        }
    }

    #[test]
    fn url_in_text_excludes_sentence_punctuation() {
        for (text, address) in [
            ("see https://a.b/c.", "https://a.b/c"),
            ("(https://a.b/c_(d))", "https://a.b/c_(d)"),
            ("(https://a.b)", "https://a.b"),
            ("**https://a.b/x**,", "https://a.b/x"),
            ("www.example.com/x?y=1!", "http://www.example.com/x?y=1"),
            ("https://a.b\u{3002}next", "https://a.b"),
            ("\u{ff08}https://a.b\u{ff09}", "https://a.b"),
            ("HTTPS://A.b", "https://a.b"),
        ] {
            assert_eq!(linked(text), [address], "{text}");
        }
        assert!(linked("xhttp://a.b javascript://a.b ftp://a.b www.").is_empty());
    }
}
