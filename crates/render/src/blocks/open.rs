//! Opens, closes and writes blocks.

use super::{Blocks, Container, DEPTH_MAX, Leaf, PARAGRAPH_BYTES_MAX, skip_quote_mark};
use crate::code::Figure;
use crate::cursor::Cursor;
use crate::escape::{self, TextKind};
use crate::inline::{self, Shape};
use crate::starts;

impl Blocks {
    pub(super) fn open_quote(&mut self, cursor: &mut Cursor<'_>) {
        skip_quote_mark(cursor);
        self.mark_non_empty();
        self.containers.push(Container::Quote);
        self.sink.open("<blockquote>", "</blockquote>");
    }

    pub(super) fn open_item(
        &mut self,
        cursor: &mut Cursor<'_>,
        mark: u8,
        number: Option<u32>,
        width: usize,
    ) {
        if self.containers.last() != Some(&Container::List { mark }) {
            self.close_list();
            self.mark_non_empty();
            self.containers.push(Container::List { mark });
            match number {
                None => self.sink.open("<ul>", "</ul>"),
                Some(1) => self.sink.open("<ol>", "</ol>"),
                Some(number) => self.sink.open(&format!("<ol start=\"{number}\">"), "</ol>"),
            }
        }
        let before = cursor.indent();
        cursor.skip_indent();
        cursor.skip_marker(width);
        let gap = match cursor.indent() {
            _ if cursor.is_blank() => 1,
            gap @ 1..=4 => gap,
            _ => 1,
        };
        cursor.skip_columns(gap);
        self.containers.push(Container::Item {
            indent: before + width + gap,
            is_empty: true,
        });
        match starts::task(cursor) {
            None => self.sink.open("<li>", "</li>"),
            Some(is_done) => {
                cursor.skip_marker(3);
                self.sink.open(
                    match is_done {
                        true => "<li class=\"task done\"><span class=\"box\" role=\"img\" aria-label=\"done\"></span>",
                        false => "<li class=\"task\"><span class=\"box\" role=\"img\" aria-label=\"open\"></span>",
                    },
                    "</li>",
                );
            }
        }
    }

    pub(super) fn open_note(&mut self, cursor: &mut Cursor<'_>, label: &str) {
        cursor.skip_indent();
        cursor.skip_marker("[^]:".len() + label.len());
        cursor.skip_indent();
        self.mark_non_empty();
        self.known.add_note(label);
        self.containers.push(Container::Note { is_empty: true });
        let mut html = "<div class=\"note\" data-note=\"".to_owned();
        escape::attribute(&mut html, label);
        html.push_str("\"><sup>");
        escape::text(&mut html, label, TextKind::Exact);
        html.push_str("</sup> ");
        self.sink.open(&html, "</div>");
    }

    pub(super) fn open_fence(&mut self, mark: u8, length: usize, indent: usize, info: &str) {
        self.mark_non_empty();
        let figure = Figure::open(&mut self.sink, info);
        self.leaf = Leaf::Fence {
            mark,
            length,
            indent,
            figure,
        };
    }

    pub(super) fn open_indented(&mut self, text: &str, ends: bool) {
        self.mark_non_empty();
        let mut figure = Figure::open(&mut self.sink, "");
        figure.add(&mut self.sink, text, ends);
        self.leaf = Leaf::Indented {
            blank_lines: String::new(),
            figure,
        };
    }

    pub(super) fn begin_paragraph(&mut self, text: &str, ends: bool) {
        let is_too_deep = self.containers.len() >= DEPTH_MAX;
        let leads = self.mark_non_empty();
        let shape = match () {
            () if is_too_deep => Shape::Verbatim,
            () if leads => Shape::Bare,
            () => Shape::Whole,
        };
        self.leaf = Leaf::Paragraph {
            text: String::new(),
            last_line: 0,
            shape,
        };
        self.add_to_paragraph(text, ends);
    }

    pub(super) fn add_to_paragraph(&mut self, added: &str, ends: bool) {
        let Leaf::Paragraph {
            text,
            last_line,
            shape,
        } = &mut self.leaf
        else {
            return;
        };
        if !text.is_empty() && text.len() + added.len() > PARAGRAPH_BYTES_MAX {
            inline::write(self.sink.here(), text, *shape, &mut self.known);
            text.clear();
            if *shape != Shape::Verbatim {
                *shape = Shape::More;
            }
        }
        if text.is_empty() || text.ends_with('\n') {
            *last_line = text.len();
        }
        text.push_str(added);
        if ends {
            text.push('\n');
        }
    }

    /// Starts a table if `under` is the delimiter row of the paragraph's last line. Earlier lines stay a
    /// paragraph. Returns whether a table was started.
    pub(super) fn begin_table(&mut self, under: &str) -> bool {
        let Leaf::Paragraph {
            text,
            last_line,
            shape,
        } = &mut self.leaf
        else {
            return false;
        };
        if *shape == Shape::Verbatim || !starts::may_be_delimiter_row(under) {
            return false;
        }
        let Some((columns, head)) = inline::head(&text[*last_line..], under, &self.known) else {
            return false;
        };
        text.truncate(*last_line);
        self.close_leaf();
        self.sink
            .open("<div class=\"table\" tabindex=\"0\">", "</div>");
        self.sink.open("<table>", "</table>");
        self.sink.here().push_str(&head);
        self.sink.open("<tbody>", "</tbody>");
        self.leaf = Leaf::Table { columns };
        true
    }

    /// Marks the innermost container as non-empty. Returns true if it is an item or footnote that was
    /// empty.
    pub(super) fn mark_non_empty(&mut self) -> bool {
        match self.containers.last_mut() {
            Some(Container::Item { is_empty, .. } | Container::Note { is_empty }) => {
                std::mem::replace(is_empty, false)
            }
            _ => false,
        }
    }

    pub(super) fn close_leaf(&mut self) {
        match std::mem::replace(&mut self.leaf, Leaf::None) {
            Leaf::None => {}
            Leaf::Paragraph { text, shape, .. } => {
                inline::write(self.sink.here(), &text, shape, &mut self.known);
            }
            Leaf::Fence { figure, .. } | Leaf::Indented { figure, .. } => {
                figure.close(&mut self.sink);
            }
            Leaf::Table { .. } => {
                for _ in ["tbody", "table", "div"] {
                    self.sink.close();
                }
            }
        }
    }

    /// Closes the innermost list: only items may follow directly in a list.
    pub(super) fn close_list(&mut self) {
        if matches!(self.containers.last(), Some(Container::List { .. })) {
            self.close_to(self.containers.len() - 1);
        }
    }

    pub(super) fn close_to(&mut self, length: usize) {
        self.close_leaf();
        while self.containers.len() > length {
            self.containers.pop();
            self.sink.close();
        }
    }
}
