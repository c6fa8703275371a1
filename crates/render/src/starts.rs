//! Detects which block a line starts, from its first characters.

use crate::cursor::Cursor;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start<'a> {
    Quote,
    Item {
        /// Bullet, or the delimiter after the number. A different mark starts a new list.
        mark: u8,
        number: Option<u32>,
        width: usize,
    },
    Note {
        label: &'a str,
    },
    Fence {
        mark: u8,
        length: usize,
        info: &'a str,
    },
    Heading,
    Rule,
    /// Setext underline: turns the paragraph above into a heading.
    Underline,
    Indented,
}

/// Returns the block that the line starts, if any.
///
/// `in_paragraph`: the line would otherwise continue an open paragraph. `may_be_lazy`: the line may
/// also continue it from outside the paragraph's container (a lazy continuation line).
pub(crate) fn find<'a>(
    cursor: &Cursor<'a>,
    in_paragraph: bool,
    may_be_lazy: bool,
) -> Option<Start<'a>> {
    if cursor.indent() >= 4 {
        return (!may_be_lazy).then_some(Start::Indented);
    }
    let text = cursor.trimmed();
    match text.as_bytes().first()? {
        b'>' => Some(Start::Quote),
        b'#' => heading(text),
        b'`' | b'~' => fence(text),
        b'=' => (in_paragraph && is_run_of(text, b'=')).then_some(Start::Underline),
        b'-' if in_paragraph && is_run_of(text, b'-') => Some(Start::Underline),
        b'-' | b'*' | b'_' | b'+' if is_rule(text) => Some(Start::Rule),
        b'-' | b'*' | b'+' | b'0'..=b'9' => item(text, in_paragraph),
        b'[' => note(text),
        _ => None,
    }
}

fn is_run_of(text: &str, byte: u8) -> bool {
    text.trim_end_matches([' ', '\t'])
        .bytes()
        .all(|found| found == byte)
}

fn is_rule(text: &str) -> bool {
    let mut marks = text.bytes().filter(|byte| !matches!(byte, b' ' | b'\t'));
    let Some(first @ (b'-' | b'*' | b'_')) = marks.next() else {
        return false;
    };
    let mut count = 1;
    for mark in marks {
        if mark != first {
            return false;
        }
        count += 1;
    }
    count >= 3
}

fn heading(text: &str) -> Option<Start<'_>> {
    let rest = text.trim_start_matches('#');
    let is_short = text.len() - rest.len() <= 6;
    (is_short && (rest.is_empty() || rest.starts_with([' ', '\t']))).then_some(Start::Heading)
}

fn fence(text: &str) -> Option<Start<'_>> {
    let mark = text.as_bytes()[0];
    let info = text.trim_start_matches(char::from(mark));
    let length = text.len() - info.len();
    let is_inline_code = mark == b'`' && info.contains('`');
    (length >= 3 && !is_inline_code).then_some(Start::Fence {
        mark,
        length,
        info: info.trim_matches([' ', '\t']),
    })
}

pub(crate) fn closes_fence(cursor: &Cursor<'_>, mark: u8, length: usize) -> bool {
    let text = cursor.trimmed().trim_end_matches([' ', '\t']);
    cursor.indent() < 4 && text.len() >= length && is_run_of(text, mark)
}

fn item(text: &str, in_paragraph: bool) -> Option<Start<'_>> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let mark = *text.as_bytes().get(digits)?;
    let number = match digits {
        0 => None,
        1..=9 if matches!(mark, b'.' | b')') => Some(text[..digits].parse().ok()?),
        _ => return None,
    };
    let rest = &text[digits + 1..];
    let is_blank = rest.trim_matches([' ', '\t']).is_empty();
    if !is_blank && !rest.starts_with([' ', '\t']) {
        return None;
    }
    // Text that happens to look like an item does not interrupt a paragraph.
    if in_paragraph && (is_blank || number.is_some_and(|number| number != 1)) {
        return None;
    }
    Some(Start::Item {
        mark,
        number,
        width: digits + 1,
    })
}

fn note(text: &str) -> Option<Start<'_>> {
    let (label, _) = text.strip_prefix("[^")?.split_once("]:")?;
    is_note_label(label).then_some(Start::Note { label })
}

/// Whether a footnote label is short and plain enough for an attribute and a visible reference.
pub(crate) fn is_note_label(label: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    (1..=32).contains(&label.len()) && label.bytes().all(is_plain)
}

/// Returns whether the task checkbox here is checked, or `None` if there is no checkbox.
pub(crate) fn task(cursor: &Cursor<'_>) -> Option<bool> {
    let rest = cursor.rest();
    let (mark, words) = (rest.get(..3)?, &rest[3..]);
    let has_words = words.starts_with([' ', '\t']) && !words.trim_matches([' ', '\t']).is_empty();
    match mark {
        "[ ]" if has_words => Some(false),
        "[x]" | "[X]" if has_words => Some(true),
        _ => None,
    }
}

/// Whether the line may be a table's delimiter row: dashes and colons between bars. A cheap check
/// before the parser is called.
pub(crate) fn may_be_delimiter_row(text: &str) -> bool {
    let is_row = text
        .bytes()
        .all(|byte| matches!(byte, b'|' | b'-' | b':' | b' ' | b'\t'));
    is_row && text.contains('-') && text.contains(['|', ':'])
}
