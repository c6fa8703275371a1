//! Highlights markup languages such as HTML and XML.

use super::lexer::Open;
use super::scan::{Class, Scan};

pub(crate) fn line(scan: &mut Scan<'_, '_>, open: &mut Open) {
    while scan.peek().is_some() {
        match *open {
            Open::Comment { .. } => {
                let end = scan.rest().find("-->");
                match end {
                    Some(end) => {
                        scan.token(end + 3, Class::Comment);
                        *open = Open::Nothing;
                    }
                    None => scan.token_to_end(Class::Comment),
                }
            }
            Open::Tag { quote: Some(quote) } => match scan.rest().find(char::from(quote)) {
                Some(end) => {
                    scan.token(end + 1, Class::String);
                    *open = Open::Tag { quote: None };
                }
                None => scan.token_to_end(Class::String),
            },
            Open::Tag { quote: None } => inside_tag(scan, open),
            _ => outside_tag(scan, open),
        }
    }
}

fn outside_tag(scan: &mut Scan<'_, '_>, open: &mut Open) {
    let rest = scan.rest();
    match rest.as_bytes()[0] {
        b'<' if rest.starts_with("<!--") => {
            scan.token(4, Class::Comment);
            *open = Open::Comment { which: 0, depth: 1 };
        }
        b'<' => {
            let begins = rest.len() - rest[1..].trim_start_matches(['/', '!', '?']).len();
            let name = rest[begins..].find(|c: char| !is_name(c));
            match name.unwrap_or(rest.len() - begins) {
                0 => scan.skip(),
                name => {
                    scan.token(begins + name, Class::Tag);
                    *open = Open::Tag { quote: None };
                }
            }
        }
        b'&' => match rest[..rest.floor_char_boundary(12)].find(';') {
            Some(end) => scan.token(end + 1, Class::Number),
            None => scan.skip(),
        },
        _ => {
            let plain = scan.run(|c| c != '<' && c != '&');
            scan.skip_bytes(plain);
        }
    }
}

fn inside_tag(scan: &mut Scan<'_, '_>, open: &mut Open) {
    let rest = scan.rest();
    match rest.as_bytes()[0] {
        b'>' => {
            scan.token(1, Class::Tag);
            *open = Open::Nothing;
        }
        b'/' | b'?' if rest[1..].starts_with('>') => {
            scan.token(2, Class::Tag);
            *open = Open::Nothing;
        }
        quote @ (b'"' | b'\'') => {
            let length = rest[1..].find(char::from(quote)).map(|end| end + 2);
            match length {
                Some(length) => scan.token(length, Class::String),
                None => {
                    scan.token_to_end(Class::String);
                    *open = Open::Tag { quote: Some(quote) };
                }
            }
        }
        _ => match scan.run(|c| is_name(c) || matches!(c, '@' | '#' | '*')) {
            0 => scan.skip(),
            length => scan.token(length, Class::Property),
        },
    }
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_' | ':' | '.')
}
