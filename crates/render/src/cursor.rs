//! Position in a line, in markdown columns: a tab extends to the next multiple of four columns, and a
//! container may consume only part of a tab.

use std::borrow::Cow;

const TAB: usize = 4;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'a> {
    text: &'a str,
    at: usize,
    column: usize,
    /// Columns of the tab before `at` that are not consumed yet.
    spare: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            column: 0,
            spare: 0,
        }
    }

    /// Width of the whitespace ahead, in columns.
    pub(crate) fn indent(&self) -> usize {
        let mut column = self.column + self.spare;
        for byte in self.text.as_bytes()[self.at..].iter() {
            match byte {
                b' ' => column += 1,
                b'\t' => column += TAB - column % TAB,
                _ => break,
            }
        }
        column - self.column
    }

    pub(crate) fn is_blank(&self) -> bool {
        self.text.as_bytes()[self.at..]
            .iter()
            .all(|byte| matches!(byte, b' ' | b'\t'))
    }

    /// Consumes up to `count` columns of whitespace.
    pub(crate) fn skip_columns(&mut self, mut count: usize) {
        while count > 0 {
            if self.spare > 0 {
                let taken = self.spare.min(count);
                self.spare -= taken;
                self.column += taken;
                count -= taken;
                continue;
            }
            match self.text.as_bytes().get(self.at) {
                Some(b' ') => {
                    self.at += 1;
                    self.column += 1;
                    count -= 1;
                }
                Some(b'\t') => {
                    self.at += 1;
                    self.spare = TAB - self.column % TAB;
                }
                _ => return,
            }
        }
    }

    pub(crate) fn skip_indent(&mut self) {
        self.skip_columns(self.indent());
    }

    /// Consumes a block marker of `bytes` ASCII characters without tabs.
    pub(crate) fn skip_marker(&mut self, bytes: usize) {
        debug_assert_eq!(self.spare, 0);
        self.at += bytes;
        self.column += bytes;
    }

    /// The rest of the line without leading whitespace.
    pub(crate) fn trimmed(&self) -> &'a str {
        self.text[self.at..].trim_start_matches([' ', '\t'])
    }

    /// The rest of the line, with the remaining columns of a tab as spaces.
    pub(crate) fn rest(&self) -> Cow<'a, str> {
        match self.spare {
            0 => Cow::Borrowed(&self.text[self.at..]),
            spare => Cow::Owned(format!("{}{}", " ".repeat(spare), &self.text[self.at..])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tab_can_be_consumed_in_parts() {
        let mut cursor = Cursor::new("\tx");
        cursor.skip_columns(1);
        assert_eq!(cursor.rest(), "   x");
        assert_eq!(cursor.indent(), 3);
        cursor.skip_columns(9);
        assert_eq!(cursor.rest(), "x");
    }

    #[test]
    fn tab_extends_to_the_next_tab_stop() {
        let mut cursor = Cursor::new(">\tx");
        cursor.skip_marker(1);
        assert_eq!(cursor.indent(), 3);
        cursor.skip_columns(1);
        assert_eq!(cursor.rest(), "  x");
    }
}
