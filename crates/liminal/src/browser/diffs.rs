//! Syntax highlighting of diffs in tool calls. Only the lines that a diff can show are sent, so that one changed line
//! in a long file costs one line and its context.

use std::ops::Range;

use wire::{ChatEntry, ColouredDiff, ToolContent};

/// Unchanged lines that a page shows on either side of a change.
const CONTEXT: usize = 3;
/// Maximum size of a highlighted text; a larger one is shown plain.
const TEXT_BYTES_MAX: usize = 256 * 1024;
/// Maximum lines of a highlighted change; a larger one is shown plain.
const LINES_MAX: usize = 4000;

/// The highlighted diffs of a tool call, in order; empty if none is highlighted.
pub(super) fn of_entry(entry: &ChatEntry) -> Vec<ColouredDiff> {
    let ChatEntry::ToolCall(call) = entry else {
        return vec![];
    };
    let diffs: Vec<_> = call
        .content
        .iter()
        .filter_map(|part| match part {
            ToolContent::Diff {
                path,
                old_text,
                new_text,
            } => Some(coloured(path, old_text.as_deref().unwrap_or(""), new_text)),
            _ => None,
        })
        .collect();
    match diffs.iter().all(|diff| *diff == ColouredDiff::default()) {
        true => vec![],
        false => diffs,
    }
}

fn coloured(path: &str, old: &str, new: &str) -> ColouredDiff {
    if old.len().max(new.len()) > TEXT_BYTES_MAX {
        return ColouredDiff::default();
    }
    let (old_lines, new_lines): (Vec<_>, Vec<_>) = (old.lines().collect(), new.lines().collect());
    let same = |(a, b): &(&&str, &&str)| a == b;
    let before = old_lines.iter().zip(&new_lines).take_while(same).count();
    let rest = old_lines.len().min(new_lines.len()) - before;
    let backwards = old_lines.iter().rev().zip(new_lines.iter().rev());
    let after = backwards.take_while(same).count().min(rest);
    let first = before.saturating_sub(CONTEXT);
    let shown = |lines: usize| first..lines - after.saturating_sub(CONTEXT);
    let (old_shown, new_shown) = (shown(old_lines.len()), shown(new_lines.len()));
    if old_shown.len() + new_shown.len() > LINES_MAX {
        return ColouredDiff::default();
    }
    ColouredDiff {
        first: first as u32,
        old: lines(path, old, old_shown),
        new: lines(path, new, new_shown),
    }
}

/// The highlighted lines of a range. Highlighting starts at the first line, as a line may depend on any line above it.
fn lines(path: &str, text: &str, shown: Range<usize>) -> Vec<String> {
    let mut all = render::code_lines(path, text);
    all.truncate(shown.end);
    all.split_off(shown.start.min(all.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changed_lines_and_their_context_are_sent() {
        let old: String = (0..100)
            .map(|number| format!("let a = {number};\n"))
            .collect();
        let new = old.replace("= 50;", "= \"fifty\";");
        let diff = coloured("src/main.rs", &old, &new);
        assert_eq!((diff.first, diff.old.len(), diff.new.len()), (47, 7, 7));
        assert!(diff.new[3].contains("fifty") && diff.new[3].contains("class=\"s\""));
        assert!(diff.old[3].contains("50"), "{:?}", diff.old);
    }

    #[test]
    fn line_is_highlighted_in_the_context_of_the_whole_text() {
        let old = "/*\n\n\n\n\nlet a = 1;\n*/\n";
        let diff = coloured("a.rs", old, &old.replace('1', "2"));
        assert_eq!(diff.first, 2);
        assert!(diff.new[3].contains("class=\"c\""), "{:?}", diff.new);
    }

    #[test]
    fn line_equal_to_start_and_end_of_a_change_is_counted_once() {
        let diff = coloured("a.rs", "a;\na;\n", "a;\na;\na;\n");
        assert_eq!((diff.first, diff.old.len(), diff.new.len()), (0, 2, 3));
        assert_eq!(coloured("a.rs", "", "").new.len(), 0);
        assert_eq!(coloured("a.rs", "x", "").old.len(), 1);
    }

    #[test]
    fn long_texts_are_not_highlighted() {
        let long = "x\n".repeat(TEXT_BYTES_MAX);
        assert_eq!(coloured("a.rs", "", &long), ColouredDiff::default());
        assert_eq!(
            coloured("a.rs", "", &"x\n".repeat(LINES_MAX + 1)),
            ColouredDiff::default()
        );
    }
}
