//! Highlights configuration languages, whose lines are a key, `=` or `:`, and a value.

use super::languages::{Language, flags};
use super::lexer::Open;
use super::scan::{Class, Scan};
use super::words;

pub(crate) fn line(scan: &mut Scan<'_, '_>, language: &'static Language, open: &mut Open) {
    if *open == Open::Nothing {
        scan.skip_spaces();
        while scan.rest().starts_with("- ") {
            scan.token(1, Class::Keyword);
            scan.skip_spaces();
        }
        let rest = scan.rest();
        let has_sections = language.flags & flags::SECTIONS != 0;
        let is_comment = language
            .line_comments
            .iter()
            .any(|begin| rest.starts_with(begin));
        if rest.starts_with('[') && has_sections && rest.trim_end().ends_with(']') {
            return scan.token_to_end(Class::Heading);
        }
        if !is_comment && let Some(length) = key(rest) {
            scan.token(length, Class::Property);
        }
    }
    words::line(scan, language, open);
}

/// Length of the key at the start of the text, quotes included.
fn key(text: &str) -> Option<usize> {
    let length = match text.as_bytes().first()? {
        quote @ (b'"' | b'\'') => text[1..].find(char::from(*quote))? + 2,
        _ => text.find(|c: char| {
            !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '$' | '*' | '<'))
        })?,
    };
    let after = text[length..].trim_start();
    let is_sign = after.starts_with('=')
        || after
            .strip_prefix(':')
            .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']));
    (length > 0 && is_sign).then_some(length)
}
