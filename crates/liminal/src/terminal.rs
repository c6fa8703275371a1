//! Output for a terminal, without control characters.
//!
//! Agent output and session titles are untrusted, and escape sequences in them could clear the screen, change its title
//! or hide text. So control characters are replaced before text is written to a terminal. Files and pipes get the
//! unchanged text.

use std::borrow::Cow;
use std::io::{IsTerminal, Write};

use store::FolderSize;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Prints a command's result on standard output. A closed pipe (`liminal doctor | head`) is not an error.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    let text = match stdout.is_terminal() {
        true => Cow::Owned(without_control_characters(text)),
        false => Cow::Borrowed(text),
    };
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(anyhow::anyhow!(
            "Could not write to standard output: {error}."
        )),
        _ => Ok(()),
    }
}

/// Prints an error on standard error; a failure to write is ignored.
pub(crate) fn print_error(error: &anyhow::Error) {
    let error = without_control_characters(&error.to_string());
    let _ = writeln!(std::io::stderr(), "error: {error}");
}

/// Prints a note about a command's progress on standard error.
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

/// The text on one line, for a table cell.
pub(crate) fn one_line(text: &str) -> String {
    without_control_characters(text).replace(['\n', '\t'], " ")
}

/// Number and size of a folder's entries, such as `2 entries, 1.5 MiB`.
pub(crate) fn folder_size(size: FolderSize) -> String {
    const UNITS: [&str; 4] = ["B", "KiB", "MiB", "GiB"];
    let entries = if size.entries == 1 {
        "entry"
    } else {
        "entries"
    };
    let (mut amount, mut unit) = (size.bytes as f64, 0);
    while amount >= 1024.0 && unit + 1 < UNITS.len() {
        amount /= 1024.0;
        unit += 1;
    }
    let decimals = usize::from(unit > 0);
    format!(
        "{} {entries}, {amount:.decimals$} {}",
        size.entries, UNITS[unit]
    )
}

/// Columns of the terminal on standard output; `None` for a file or a pipe.
pub(crate) fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    (size.ws_col > 0).then(|| usize::from(size.ws_col))
}

/// Shortens a line to the given columns, ending with `…`.
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

fn without_control_characters(text: &str) -> String {
    let is_control = |character: char| match character {
        '\n' | '\t' => false,
        other => other.is_control() || is_bidi_control(other),
    };
    text.replace(is_control, "\u{fffd}")
}

/// Whether the character changes the display direction of the text after it (Unicode bidirectional control).
pub(crate) fn is_bidi_control(character: char) -> bool {
    matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_is_cut_to_the_columns_of_the_terminal() {
        assert_eq!(cut("short", Some(5)), "short");
        assert_eq!(cut("longer", Some(5)), "long…");
        assert_eq!(cut("日本語のタイトル", Some(7)), "日本語…");
        assert_eq!(cut("日本語のタイトル", Some(8)), "日本語…");
        assert_eq!(cut("anything", None), "anything");
        assert_eq!(cut("anything", Some(1)), "…");
    }

    #[test]
    fn control_characters_are_replaced() {
        let odd = "a\x1b]0;title\x07\r\u{9b}2J\u{202e}b\tc\nü";
        assert_eq!(
            without_control_characters(odd),
            "a\u{fffd}]0;title\u{fffd}\u{fffd}\u{fffd}2J\u{fffd}b\tc\nü"
        );
        assert_eq!(one_line("a\nb\tc"), "a b c");
    }
}
