//! What is shown to a person at a terminal.
//!
//! What agents say and sessions are called comes from anywhere, and a terminal obeys what it is shown: it would clear
//! itself, retitle itself or hide text. So nothing that commands it gets there. Files and pipes get everything as it is.

use std::borrow::Cow;
use std::io::{IsTerminal, Write};

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Prints what was asked for. A closed pipe (`liminal doctor | head`) is the reader's choice, not an error.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    let text = match stdout.is_terminal() {
        true => Cow::Owned(harmless(text)),
        false => Cow::Borrowed(text),
    };
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(anyhow::anyhow!(
            "could not write to standard output: {error}"
        )),
        _ => Ok(()),
    }
}

/// One sentence about what went wrong; nobody reading means nobody to tell.
pub(crate) fn complain(error: &anyhow::Error) {
    let error = harmless(&error.to_string());
    let _ = writeln!(std::io::stderr(), "error: {error}");
}

/// Beside what was asked for, not part of it.
pub(crate) fn note(text: &str) {
    let text = one_line(text);
    let mut stderr = std::io::stderr().lock();
    let coloured =
        stderr.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|no| no.is_empty());
    let _ = match coloured {
        true => writeln!(stderr, "\x1b[2m· {text}\x1b[0m"),
        false => writeln!(stderr, "· {text}"),
    };
}

/// For a cell of a table.
pub(crate) fn one_line(text: &str) -> String {
    harmless(text).replace(['\n', '\t'], " ")
}

/// How wide the terminal is that standard output goes to; none for a file or a pipe.
pub(crate) fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    (size.ws_col > 0).then(|| usize::from(size.ws_col))
}

/// As much of a line as there is room for.
pub(crate) fn cut(line: &str, columns: Option<usize>) -> String {
    let Some(columns) = columns.filter(|columns| line.width() > *columns) else {
        return line.to_owned();
    };
    let mut room = columns.saturating_sub(1);
    let fits = |character: &char| {
        let width = character.width().unwrap_or(0);
        let fits = width <= room;
        room = room.saturating_sub(width);
        fits
    };
    let mut text: String = line.chars().take_while(fits).collect();
    text.push('…');
    text
}

fn harmless(text: &str) -> String {
    let commands = |character: char| match character {
        '\n' | '\t' => false,
        other => other.is_control() || turns_around(other),
    };
    text.replace(commands, "\u{fffd}")
}

/// Whether the text that follows it is shown the other way round.
pub(crate) fn turns_around(character: char) -> bool {
    matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_to_the_columns_there_are() {
        assert_eq!(cut("short", Some(5)), "short");
        assert_eq!(cut("longer", Some(5)), "long…");
        assert_eq!(cut("日本語のタイトル", Some(7)), "日本語…");
        assert_eq!(cut("日本語のタイトル", Some(8)), "日本語…");
        assert_eq!(cut("anything", None), "anything");
        assert_eq!(cut("anything", Some(1)), "…");
    }

    #[test]
    fn nothing_that_commands_a_terminal_is_left() {
        let odd = "a\x1b]0;title\x07\r\u{9b}2J\u{202e}b\tc\nü";
        assert_eq!(
            harmless(odd),
            "a\u{fffd}]0;title\u{fffd}\u{fffd}\u{fffd}2J\u{fffd}b\tc\nü"
        );
        assert_eq!(one_line("a\nb\tc"), "a b c");
    }
}
