//! Highlights languages made of words, strings, numbers and comments, which most are.

use super::languages::{Language, Quote, flags};
use super::lexer::Open;
use super::scan::{Class, Scan};

pub(crate) fn line(scan: &mut Scan<'_, '_>, language: &'static Language, open: &mut Open) {
    continue_open(scan, language, open);
    let has = |flag| language.flags & flag != 0;
    if has(flags::HASH_LINES) && *open == Open::Nothing && scan.rest().trim_start().starts_with('#')
    {
        scan.skip_spaces();
        let length = 1 + scan.rest()[1..]
            .find(|c: char| !c.is_whitespace())
            .unwrap_or(0);
        let word = scan.rest()[length..]
            .find(|c: char| !c.is_alphanumeric())
            .map_or(scan.rest().len(), |end| length + end);
        scan.token(word, Class::Meta);
        if scan.rest().trim_start().starts_with('<') {
            scan.skip_spaces();
            let end = scan.rest().find('>').map_or(0, |end| end + 1);
            scan.token(end, Class::String);
        }
    }
    while let Some(byte) = scan.peek() {
        match byte {
            b' ' | b'\t' => scan.skip(),
            b'0'..=b'9' => number(scan),
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => word(scan, language, open),
            0x80.. => match scan.rest().chars().next().is_some_and(char::is_alphabetic) {
                true => word(scan, language, open),
                false => scan.skip(),
            },
            _ => punctuation(scan, language, open, byte),
        }
        continue_open(scan, language, open);
    }
}

/// Consumes the construct left open by an earlier line, up to its end or the end of this line.
fn continue_open(scan: &mut Scan<'_, '_>, language: &'static Language, open: &mut Open) {
    match *open {
        Open::Nothing | Open::Tag { .. } => {}
        Open::Comment { which, depth } => {
            let (begin, end) = language.block_comments[usize::from(which)];
            let (length, depth) = comment(scan.rest(), begin, end, depth, language.nests());
            scan.token(length, Class::Comment);
            *open = match depth {
                0 => Open::Nothing,
                depth => Open::Comment { which, depth },
            };
        }
        Open::Text { which } => {
            let quote = &language.strings[usize::from(which)];
            match end_of(scan.rest(), quote) {
                Some(length) => {
                    scan.token(length, Class::String);
                    *open = Open::Nothing;
                }
                None => scan.token_to_end(Class::String),
            }
        }
        Open::Raw { hashes } => match end_of_raw(scan.rest(), hashes) {
            Some(length) => {
                scan.token(length, Class::String);
                *open = Open::Nothing;
            }
            None => scan.token_to_end(Class::String),
        },
    }
}

/// Returns the length of the comment and the nesting depth that is still open after it.
fn comment(text: &str, begin: &str, end: &str, mut depth: u16, nests: bool) -> (usize, u16) {
    let mut at = 0;
    while let Some(found) = text[at..].find(end) {
        if nests {
            let opened = text[at..at + found].matches(begin).count();
            depth = depth.saturating_add(u16::try_from(opened).unwrap_or(u16::MAX));
        }
        depth -= 1;
        at += found + end.len();
        if depth == 0 {
            return (at, 0);
        }
    }
    if nests {
        let opened = text[at..].matches(begin).count();
        depth = depth.saturating_add(u16::try_from(opened).unwrap_or(u16::MAX));
    }
    (text.len(), depth)
}

fn end_of(text: &str, quote: &Quote) -> Option<usize> {
    let mut at = 0;
    loop {
        let end = text[at..].find(quote.close)? + at;
        let escapes = match quote.escapes {
            true => text[at..end]
                .bytes()
                .rev()
                .take_while(|b| *b == b'\\')
                .count(),
            false => 0,
        };
        at = end + quote.close.len();
        if escapes % 2 == 0 {
            return Some(at);
        }
        // An escaped quote may be followed directly by the closing delimiter, as in `\""""`.
        at = end + 1;
    }
}

fn end_of_raw(text: &str, hashes: u8) -> Option<usize> {
    let hashes = usize::from(hashes);
    text.match_indices('"')
        .find(|(at, _)| {
            let after = &text.as_bytes()[at + 1..];
            after.len() >= hashes && after[..hashes].iter().all(|b| *b == b'#')
        })
        .map(|(at, _)| at + 1 + hashes)
}

fn number(scan: &mut Scan<'_, '_>) {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut length = scan.run(is_part);
    let after = scan.rest().as_bytes();
    if after.get(length) == Some(&b'.') && after.get(length + 1).is_some_and(u8::is_ascii_digit) {
        let more = scan.rest()[length + 1..].find(|c| !is_part(c));
        length = more.map_or(after.len(), |more| length + 1 + more);
    }
    if matches!(after.get(length - 1), Some(b'e' | b'E'))
        && matches!(after.get(length), Some(b'-' | b'+'))
    {
        let more = scan.rest()[length + 1..].find(|c: char| !c.is_ascii_digit());
        length = more.map_or(after.len(), |more| length + 1 + more);
    }
    scan.token(length, Class::Number);
}

fn word(scan: &mut Scan<'_, '_>, language: &'static Language, open: &mut Open) {
    let has = |flag| language.flags & flag != 0;
    let length = scan.run(|c| {
        c.is_alphanumeric()
            || c == '_'
            || c == '$' && has(flags::DOLLAR_IN_WORDS)
            || matches!(c, '-' | '?' | '!' | '*') && has(flags::DASH_IN_WORDS)
            || c == '\'' && has(flags::APOSTROPHE_IN_WORDS)
    });
    let text = &scan.rest()[..length];
    let next = scan.peek_at(length);
    if has(flags::PREFIXED_STRINGS) && length <= 3 && text.is_ascii() {
        if has(flags::RUST) && text.ends_with('r') {
            let hashes = scan.rest()[length..]
                .bytes()
                .take_while(|b| *b == b'#')
                .count();
            if hashes < 200 && scan.peek_at(length + hashes) == Some(b'"') {
                scan.token(length + hashes + 1, Class::String);
                *open = Open::Raw {
                    hashes: u8::try_from(hashes).unwrap_or(0),
                };
                return;
            }
        }
        if matches!(next, Some(b'"' | b'\''))
            && "rbfuc".contains(text.to_ascii_lowercase().chars().next().unwrap_or(' '))
        {
            return scan.skip_bytes(length);
        }
    }
    let class = match language.word(text) {
        Some(class) => class,
        None if next == Some(b'!')
            && has(flags::RUST)
            && scan.peek_at(length + 1) != Some(b'=') =>
        {
            return scan.token(length + 1, Class::Function);
        }
        None if has(flags::KEYS) && is_key(&scan.rest()[length..]) => Class::Property,
        None if next == Some(b'(') => Class::Function,
        None if has(flags::CAPITAL_TYPES) && text.starts_with(char::is_uppercase) => {
            let is_constant = length > 1 && !text.contains(char::is_lowercase);
            if is_constant {
                Class::Number
            } else {
                Class::Type
            }
        }
        None => return scan.skip_bytes(length),
    };
    scan.token(length, class);
}

fn is_key(after: &str) -> bool {
    let after = after.trim_start();
    after.starts_with(':') && !after.starts_with("::")
}

fn punctuation(scan: &mut Scan<'_, '_>, language: &'static Language, open: &mut Open, byte: u8) {
    let has = |flag| language.flags & flag != 0;
    let rest = scan.rest();
    for (which, (begin, end)) in (0..).zip(language.block_comments) {
        if let Some(inside) = rest.strip_prefix(begin) {
            let (length, depth) = comment(inside, begin, end, 1, language.nests());
            scan.token(begin.len() + length, Class::Comment);
            *open = match depth {
                0 => Open::Nothing,
                depth => Open::Comment { which, depth },
            };
            return;
        }
    }
    for begin in language.line_comments {
        if rest.starts_with(begin) && (*begin != "#" || starts_comment(scan)) {
            return scan.token_to_end(Class::Comment);
        }
    }
    if byte == b'\'' && has(flags::APOSTROPHE_IS_CHAR) {
        return char_or_lifetime(scan);
    }
    for (which, quote) in (0..).zip(language.strings) {
        if rest.starts_with(quote.open) {
            return string(scan, which, quote, has(flags::KEYS), open);
        }
    }
    match byte {
        b'$' if has(flags::DOLLAR) => variable(scan),
        b'@' if has(flags::AT_META) => {
            let length =
                scan.rest()[1..].find(|c: char| !(c.is_alphanumeric() || "_.-".contains(c)));
            let length = length.unwrap_or(rest.len() - 1);
            scan.token(1 + length, Class::Meta);
        }
        b'\\' if has(flags::BACKSLASH_WORDS) => {
            let letters = rest[1..].find(|c: char| !c.is_ascii_alphabetic());
            let letters = letters.unwrap_or(rest.len() - 1);
            // A single non-letter is a command as well: `\%` does not start a comment.
            scan.token(1 + letters.max(1), Class::Keyword);
        }
        b'#' if has(flags::RUST) && (rest.starts_with("#[") || rest.starts_with("#![")) => {
            let end = rest.find(']').map_or(rest.len(), |end| end + 1);
            scan.token(end, Class::Meta);
        }
        b':' if has(flags::COLON_ATOMS)
            && !scan
                .before()
                .ends_with(|c: char| c == ':' || c.is_alphanumeric())
            && rest[1..].starts_with(char::is_alphabetic) =>
        {
            let length = rest[1..].find(|c: char| !(c.is_alphanumeric() || "_-?!".contains(c)));
            scan.token(1 + length.unwrap_or(rest.len() - 1), Class::Number);
        }
        b'/' if has(flags::REGEX) && may_be_operand(scan.before()) => match end_of_regex(rest) {
            Some(length) => scan.token(length, Class::String),
            None => scan.skip(),
        },
        b'-' | b'.' if has(flags::DASH_IN_WORDS) && has(flags::KEYS) && rest.len() > 1 => {
            // CSS custom properties (`--name`) and classes (`.name`).
            scan.skip();
            let length = scan.run(|c| c.is_alphanumeric() || matches!(c, '-' | '_'));
            match length {
                0 => {}
                _ if byte == b'.' => scan.token(length, Class::Type),
                _ => scan.skip_bytes(length),
            }
        }
        _ => scan.skip(),
    }
}

/// Whether a `#` here starts a comment: in a shell, `$#` and `a#b` do not.
fn starts_comment(scan: &Scan<'_, '_>) -> bool {
    let before = scan.before();
    before.is_empty()
        || before.ends_with([' ', '\t', ';', '(', ')', '{', '}', '[', ']', ',', '"', '\''])
}

/// A character literal, or a name after an apostrophe such as a lifetime or type variable.
fn char_or_lifetime(scan: &mut Scan<'_, '_>) {
    let rest = &scan.rest()[1..];
    let length = match rest.chars().next() {
        Some('\\') => rest[1..].find('\'').map(|end| end + 3),
        Some(c) if rest[c.len_utf8()..].starts_with('\'') => Some(c.len_utf8() + 2),
        _ => None,
    };
    match length {
        Some(length) if length <= 14 => scan.token(length, Class::String),
        _ => {
            let name = rest.find(|c: char| !(c.is_alphanumeric() || c == '_'));
            scan.token(1 + name.unwrap_or(rest.len()), Class::Variable);
        }
    }
}

fn string(scan: &mut Scan<'_, '_>, which: u8, quote: &Quote, may_be_key: bool, open: &mut Open) {
    let from = quote.open.len();
    match end_of(&scan.rest()[from..], quote) {
        Some(length) => {
            let length = from + length;
            let is_key = may_be_key && is_key(&scan.rest()[length..]);
            scan.token(
                length,
                if is_key {
                    Class::Property
                } else {
                    Class::String
                },
            );
        }
        None => {
            scan.token_to_end(Class::String);
            if quote.spans_lines {
                *open = Open::Text { which };
            }
        }
    }
}

fn variable(scan: &mut Scan<'_, '_>) {
    let rest = &scan.rest()[1..];
    let length = match rest.as_bytes().first() {
        Some(b'{') => rest.find('}').map_or(1, |end| end + 1),
        Some(b'?' | b'!' | b'#' | b'@' | b'*' | b'$') => 1,
        _ => {
            let end = rest.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | ':')));
            // A colon belongs to the name only between letters, not at its end.
            let name = &rest[..end.unwrap_or(rest.len())];
            name.trim_end_matches(':').len()
        }
    };
    match length {
        0 => scan.skip(),
        length => scan.token(1 + length, Class::Variable),
    }
}

/// Whether a `/` after this text starts a regex rather than a division.
fn may_be_operand(before: &str) -> bool {
    let before = before.trim_end();
    before.is_empty()
        || before.ends_with([
            '(', ',', '=', ':', '[', '!', '&', '|', '?', '{', '}', ';', '>', '+',
        ])
        || before.ends_with("return")
}

fn end_of_regex(text: &str) -> Option<usize> {
    let (mut is_escaped, mut in_class) = (false, false);
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'[' => in_class = true,
            b']' => in_class = false,
            b'/' if !in_class => {
                let flags = text[at + 1..]
                    .bytes()
                    .take_while(u8::is_ascii_lowercase)
                    .count();
                return (at > 1).then_some(at + 1 + flags);
            }
            _ => {}
        }
    }
    None
}
