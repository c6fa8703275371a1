//! Highlights code line by line, keeping the state that a line leaves open for the next.

use super::languages::{Grammar, Language};
use super::scan::{Class, Scan};
use super::{keyed, markup, words};
use crate::escape::{self, TextKind};

/// Construct that is still open at the end of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Open {
    Nothing,
    /// `which` indexes the language's block comments; `depth` counts nested comments.
    Comment {
        which: u8,
        depth: u16,
    },
    /// `which` indexes the language's strings.
    Text {
        which: u8,
    },
    /// A raw string that ends with a quote and this many `#`.
    Raw {
        hashes: u8,
    },
    Tag {
        quote: Option<u8>,
    },
}

#[derive(Debug, Clone)]
pub(crate) struct Lexer {
    language: Option<&'static Language>,
    open: Open,
}

impl Lexer {
    pub(crate) fn new(language: Option<&'static Language>) -> Self {
        Self {
            language,
            open: Open::Nothing,
        }
    }

    pub(crate) fn line(&mut self, line: &str, out: &mut String) {
        let Some(language) = self.language else {
            return escape::text(out, line, TextKind::Exact);
        };
        let mut scan = Scan::new(line, out);
        match language.grammar {
            Grammar::Words => words::line(&mut scan, language, &mut self.open),
            Grammar::Markup => markup::line(&mut scan, &mut self.open),
            Grammar::Keyed => keyed::line(&mut scan, language, &mut self.open),
            Grammar::Markdown => markdown(&mut scan, &mut self.open),
            Grammar::Diff => diff(&mut scan, line),
        }
        scan.finish();
    }
}

fn diff(scan: &mut Scan<'_, '_>, line: &str) {
    let class = match line.as_bytes() {
        [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => Class::Heading,
        [b'+' | b'>', ..] => Class::Inserted,
        [b'-' | b'<', ..] => Class::Deleted,
        [b'@', b'@', ..] => Class::Meta,
        [b'd', b'i', b'f', b'f', b' ', ..] | [b'i', b'n', b'd', b'e', b'x', b' ', ..] => {
            Class::Heading
        }
        _ => return,
    };
    scan.token_to_end(class);
}

fn markdown(scan: &mut Scan<'_, '_>, open: &mut Open) {
    let text = scan.rest().trim_start();
    let is_fence = text.starts_with("```") || text.starts_with("~~~");
    match open {
        Open::Raw { .. } => {
            if is_fence {
                *open = Open::Nothing;
            }
            return scan.token_to_end(Class::String);
        }
        _ if is_fence => {
            *open = Open::Raw { hashes: 0 };
            return scan.token_to_end(Class::String);
        }
        _ if text.starts_with('#') => return scan.token_to_end(Class::Heading),
        _ if text.starts_with('>') => return scan.token_to_end(Class::Comment),
        _ => {}
    }
    scan.skip_spaces();
    let digits = scan.run(|c| c.is_ascii_digit());
    match (digits, scan.peek_at(digits), scan.peek_at(digits + 1)) {
        (0, Some(b'-' | b'*' | b'+'), Some(b' ')) => scan.token(1, Class::Keyword),
        (1..=9, Some(b'.' | b')'), Some(b' ')) => scan.token(digits + 1, Class::Keyword),
        _ => {}
    }
    while let Some(byte) = scan.peek() {
        let rest = scan.rest();
        match byte {
            b'`' => match rest[1..].find('`') {
                Some(end) => scan.token(end + 2, Class::String),
                None => scan.skip(),
            },
            b'*' if rest.starts_with("**") => match rest[2..].find("**") {
                Some(end) => scan.token(end + 4, Class::Type),
                None => scan.skip_bytes(2),
            },
            b'[' => match (rest.find("]("), rest.find(')')) {
                (Some(middle), Some(end)) if middle < end => {
                    scan.skip_bytes(middle + 1);
                    scan.token(end - middle, Class::Property);
                }
                _ => scan.skip(),
            },
            _ => scan.skip(),
        }
    }
}
