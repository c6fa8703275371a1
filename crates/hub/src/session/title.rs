//! What a session is called before anybody gives it a name.

pub const UNTITLED: &str = "New Session";
const TITLE_CHARS_MAX: usize = 50;
/// A cut at a word may not shorten the title below this.
const WORD_CHARS_MIN: usize = 20;

/// The beginning of the first message, on one line, cut at a word.
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
    fn a_short_message_is_the_title() {
        assert_eq!(derive("  Fix auth bug \n"), "Fix auth bug");
        assert_eq!(derive(&"x".repeat(50)), "x".repeat(50));
    }

    #[test]
    fn a_long_one_is_cut_at_a_word_near_fifty_characters() {
        assert_eq!(
            derive("Please look at the login page and tell me why it is so slow today"),
            "Please look at the login page and tell me why it..."
        );
    }

    #[test]
    fn a_long_word_is_cut_where_it_must() {
        assert_eq!(derive(&"é".repeat(60)), format!("{}...", "é".repeat(50)));
        let early_space = format!("short {}", "x".repeat(60));
        assert_eq!(derive(&early_space), format!("short {}...", "x".repeat(44)));
    }

    #[test]
    fn lines_become_one() {
        assert_eq!(derive("first\nsecond\tthird"), "first second third");
    }
}
