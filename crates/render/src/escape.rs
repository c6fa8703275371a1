//! Writes text as HTML: escapes markup characters and shows invisible characters as code points.

use std::fmt::Write;

/// Kind of text, which decides which invisible characters are shown as code points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextKind {
    /// Natural language: some scripts need joiners, direction marks and isolates.
    Prose,
    /// Code, paths and commands: every invisible character is shown.
    Exact,
}

/// Writes text into a quoted attribute. Invisible characters stay as they are.
pub(crate) fn attribute(out: &mut String, text: &str) {
    for part in text.split_inclusive(['&', '<', '>', '"', '\'', '\0']) {
        let (plain, last) = split_last(part);
        out.push_str(plain);
        match last {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\0' => out.push('\u{fffd}'),
            other => out.push(other),
        }
    }
}

fn split_last(text: &str) -> (&str, char) {
    let last = text.chars().next_back().unwrap_or(' ');
    (&text[..text.len() - last.len_utf8().min(text.len())], last)
}

/// Writes visible text.
pub(crate) fn text(out: &mut String, text: &str, kind: TextKind) {
    let mut from = 0;
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let entity = match byte {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'"' => "&quot;",
            b'\t' | b'\n' | b' '..=0x7e => {
                at += 1;
                continue;
            }
            _ => {
                let length = char_length(byte);
                let character = text[at..].chars().next().unwrap_or('\u{fffd}');
                if is_invisible(character, kind)
                    && !joins_emoji(character, &text[..at], &text[at..])
                {
                    out.push_str(&text[from..at]);
                    let _ = write!(
                        out,
                        "<span class=\"unseen\">U+{:04X}</span>",
                        u32::from(character)
                    );
                    from = at + length;
                }
                at += length;
                continue;
            }
        };
        out.push_str(&text[from..at]);
        out.push_str(entity);
        at += 1;
        from = at;
    }
    out.push_str(&text[from..]);
}

fn char_length(first: u8) -> usize {
    match first {
        0..0x80 => 1,
        0x80..0xe0 => 2,
        0xe0..0xf0 => 3,
        _ => 4,
    }
}

fn is_invisible(character: char, kind: TextKind) -> bool {
    match character {
        // Control characters and tag characters: they do not occur in ordinary prose.
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{e0000}'..='\u{e0fff}' => true,
        // Direction overrides make text look like different text.
        '\u{202d}' | '\u{202e}' => true,
        '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202c}'
        | '\u{2060}'..='\u{206f}'
        | '\u{3164}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' => kind == TextKind::Exact,
        _ => false,
    }
}

/// Whether the invisible character is part of an emoji: U+200D joins emoji such as families, and some
/// flags are a black flag followed by tag characters.
fn joins_emoji(character: char, before: &str, from: &str) -> bool {
    let pictures =
        |c: char| matches!(c, '\u{2190}'..='\u{2bff}' | '\u{fe0f}' | '\u{1f000}'..='\u{1faff}');
    match character {
        '\u{200d}' => {
            before.chars().next_back().is_some_and(pictures)
                && from.chars().nth(1).is_some_and(pictures)
        }
        '\u{e0061}'..='\u{e007f}' => {
            let tag = |c: &char| matches!(c, '\u{e0061}'..='\u{e007f}');
            let head = before.chars().rev().take(8).find(|c| !tag(c));
            head == Some('\u{1f3f4}')
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(input: &str) -> String {
        let mut out = String::new();
        text(&mut out, input, TextKind::Exact);
        out
    }

    fn prose(input: &str) -> String {
        let mut out = String::new();
        text(&mut out, input, TextKind::Prose);
        out
    }

    #[test]
    fn direction_override_is_shown_as_code_point() {
        assert_eq!(
            exact("a\u{202e}b"),
            "a<span class=\"unseen\">U+202E</span>b"
        );
        assert_eq!(prose("\u{202e}"), exact("\u{202e}"));
    }

    #[test]
    fn joiners_are_kept_in_prose_and_shown_in_code() {
        assert_eq!(
            prose("\u{645}\u{6cc}\u{200c}\u{62e}"),
            "\u{645}\u{6cc}\u{200c}\u{62e}"
        );
        assert!(exact("a\u{200c}b").contains("U+200C"));
    }

    #[test]
    fn joined_emoji_and_flags_are_kept() {
        for emoji in [
            "👩\u{200d}👧",
            "🏴\u{e0067}\u{e0062}\u{e007f}",
            "❤\u{fe0f}\u{200d}🔥",
        ] {
            assert_eq!(exact(emoji), emoji);
        }
        assert!(exact("x\u{e0067}").contains("U+E0067"));
        assert!(exact("a\u{200d}b").contains("U+200D"));
    }

    #[test]
    fn markup_characters_are_escaped() {
        assert_eq!(exact("<a b=\"c\">&"), "&lt;a b=&quot;c&quot;&gt;&amp;");
        let mut out = String::new();
        attribute(&mut out, "'\"<>&\0x");
        assert_eq!(out, "&#39;&quot;&lt;&gt;&amp;\u{fffd}x");
    }
}
