//! Default titles of sessions, used until the user chooses one.

/// Title of a session until its first message.
pub const UNTITLED: &str = "New Session";
const TITLE_CHARS_MAX: usize = 50;
/// Minimum title length when cutting at a word boundary; a shorter result is cut inside the word instead.
const WORD_CHARS_MIN: usize = 20;

/// Derives a title from the first message: its beginning, on one line, cut at a word boundary.
pub(crate) fn derive(message: &str) -> String {
    let line = message
        .split(char::is_whitespace)
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    let Some((end, _)) = line.char_indices().nth(TITLE_CHARS_MAX) else {
        return line;
    };
    let cut = &line[..end];
    match cut.rfind(' ') {
        Some(space) if cut[..space].chars().count() > WORD_CHARS_MIN => {
            format!("{}...", &cut[..space])
        }
        _ => format!("{cut}..."),
    }
}

#[cfg(test)]
mod tests {
    use super::derive;

    #[test]
    fn short_message_is_used_whole_as_the_title() {
        assert_eq!(derive("  Fix auth bug \n"), "Fix auth bug");
        assert_eq!(derive(&"x".repeat(50)), "x".repeat(50));
    }

    #[test]
    fn long_message_is_cut_at_the_last_word_within_50_characters() {
        assert_eq!(
            derive("Please look at the login page and tell me why it is so slow today"),
            "Please look at the login page and tell me why it..."
        );
    }

    #[test]
    fn long_word_is_cut_at_50_characters() {
        assert_eq!(derive(&"é".repeat(60)), format!("{}...", "é".repeat(50)));
        let early_space = format!("short {}", "x".repeat(60));
        assert_eq!(derive(&early_space), format!("short {}...", "x".repeat(44)));
    }

    #[test]
    fn line_breaks_and_tabs_become_spaces() {
        assert_eq!(derive("first\nsecond\tthird"), "first second third");
    }
}
