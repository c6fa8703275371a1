//! Parses lines into blocks: tracks the open containers and the open leaf, and applies each line to
//! them.
//!
//! Implements the block structure of CommonMark one line at a time and writes each block as soon as
//! later lines cannot change it. Paragraphs, headings and table rows go through the markdown parser
//! in `inline`; their HTML is final, too.
//!
//! Invariant: the output depends only on the lines, never on when `flush` was called.

mod open;

use crate::code::Figure;
use crate::cursor::Cursor;
use crate::inline::{self, Alignment, Shape};
use crate::known::Known;
use crate::sink::Sink;
use crate::starts::{self, Start};

/// Maximum nesting depth of containers. Deeper text is shown as typed.
pub(crate) const DEPTH_MAX: usize = 24;
/// Size at which a paragraph is split, because an open paragraph is parsed again on every flush.
pub(crate) const PARAGRAPH_BYTES_MAX: usize = 8 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Container {
    Quote,
    List { mark: u8 },
    Item { indent: usize, is_empty: bool },
    Note { is_empty: bool },
}

#[derive(Debug, Clone)]
enum Leaf {
    None,
    Paragraph {
        text: String,
        /// Byte offset of the last line in `text`.
        last_line: usize,
        shape: Shape,
    },
    Fence {
        mark: u8,
        length: usize,
        indent: usize,
        figure: Figure,
    },
    Indented {
        blank_lines: String,
        figure: Figure,
    },
    Table {
        columns: Vec<Alignment>,
    },
}

/// A line, or part of a line longer than `LINE_BYTES_MAX`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line<'a> {
    pub(crate) text: &'a str,
    pub(crate) begins: bool,
    pub(crate) ends: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Blocks {
    containers: Vec<Container>,
    leaf: Leaf,
    known: Known,
    pub(crate) sink: Sink,
}

impl Blocks {
    pub(crate) fn new() -> Self {
        Self {
            containers: vec![],
            leaf: Leaf::None,
            known: Known::default(),
            sink: Sink::default(),
        }
    }

    /// Returns a copy with an empty sink, used to render the unfinished tail.
    pub(crate) fn branch(&self) -> Self {
        Self {
            containers: self.containers.clone(),
            leaf: self.leaf.clone(),
            known: self.known.clone(),
            sink: self.sink.branch(),
        }
    }

    /// Closes all open blocks.
    pub(crate) fn end(&mut self) {
        self.close_to(0);
    }

    pub(crate) fn line(&mut self, line: Line<'_>) {
        if !line.begins {
            return self.continue_line(line);
        }
        let mut cursor = Cursor::new(line.text);
        let mut matched = self.match_containers(&mut cursor);
        if matched == self.containers.len() && self.feed_code(&mut cursor, line) {
            return;
        }
        let mut opened = false;
        while !cursor.is_blank() {
            let is_tip = matched == self.containers.len();
            let in_paragraph = is_tip && matches!(self.leaf, Leaf::Paragraph { .. });
            // Before lists: a table's delimiter row may look like a list item.
            if in_paragraph && cursor.indent() < 4 && self.begin_table(cursor.trimmed()) {
                return;
            }
            let may_be_lazy = !opened && matches!(self.leaf, Leaf::Paragraph { .. });
            let Some(start) = starts::find(&cursor, in_paragraph, may_be_lazy) else {
                break;
            };
            if start == Start::Underline {
                self.add_to_paragraph(cursor.trimmed(), true);
                return self.close_leaf();
            }
            let nests = matches!(
                start,
                Start::Quote | Start::Item { .. } | Start::Note { .. }
            );
            if nests && self.containers.len() >= DEPTH_MAX {
                break;
            }
            self.close_to(matched);
            if !matches!(start, Start::Item { .. }) {
                self.close_list();
            }
            match start {
                Start::Quote => self.open_quote(&mut cursor),
                Start::Item {
                    mark,
                    number,
                    width,
                } => self.open_item(&mut cursor, mark, number, width),
                Start::Note { label } => self.open_note(&mut cursor, label),
                Start::Fence { mark, length, info } => {
                    return self.open_fence(mark, length, cursor.indent(), info);
                }
                Start::Indented => {
                    cursor.skip_columns(4);
                    return self.open_indented(&cursor.rest(), line.ends);
                }
                Start::Heading => {
                    self.mark_non_empty();
                    return inline::write(
                        self.sink.here(),
                        cursor.trimmed(),
                        Shape::Whole,
                        &mut self.known,
                    );
                }
                Start::Rule => {
                    self.mark_non_empty();
                    return self.sink.here().push_str("<hr>");
                }
                Start::Underline => {}
            }
            opened = true;
            matched = self.containers.len();
        }
        self.add_text(&cursor, matched, line.ends);
    }

    /// Handles a line that starts no block: a blank line, or text for the open leaf or a new paragraph.
    fn add_text(&mut self, cursor: &Cursor<'_>, matched: usize, ends: bool) {
        if cursor.is_blank() {
            return self.close_to(matched);
        }
        let text = cursor.trimmed();
        let is_lazy = matched < self.containers.len();
        match &self.leaf {
            Leaf::Paragraph { .. } => {
                // A deeply indented or lazy continuation line is text only. Four spaces make the parser
                // treat it as such.
                if cursor.indent() >= 4 || is_lazy && text.starts_with('=') {
                    self.add_to_paragraph("    ", false);
                }
                self.add_to_paragraph(text, ends);
            }
            Leaf::Table { columns } if !is_lazy => match inline::row(columns, text, &self.known) {
                Some(row) => self.sink.here().push_str(&row),
                None => {
                    self.close_leaf();
                    self.begin_paragraph(text, ends);
                }
            },
            _ => {
                self.close_to(matched);
                self.close_list();
                self.begin_paragraph(text, ends);
            }
        }
    }

    /// Adds a later part of an overlong line to the open leaf.
    fn continue_line(&mut self, line: Line<'_>) {
        match &mut self.leaf {
            Leaf::Paragraph { .. } => self.add_to_paragraph(line.text, line.ends),
            Leaf::Fence { figure, .. } | Leaf::Indented { figure, .. } => {
                figure.add(&mut self.sink, line.text, line.ends);
            }
            Leaf::None | Leaf::Table { .. } => {
                self.close_leaf();
                self.begin_paragraph(line.text, line.ends);
            }
        }
    }

    fn match_containers(&self, cursor: &mut Cursor<'_>) -> usize {
        for (index, container) in self.containers.iter().enumerate() {
            let is_blank = cursor.is_blank();
            let holds = match container {
                Container::List { .. } => true,
                Container::Quote => {
                    let holds = cursor.indent() < 4 && cursor.trimmed().starts_with('>');
                    if holds {
                        skip_quote_mark(cursor);
                    }
                    holds
                }
                Container::Item { is_empty, .. } | Container::Note { is_empty } if is_blank => {
                    !is_empty
                }
                Container::Item { indent, .. } => skip_whole(cursor, *indent),
                Container::Note { .. } => skip_whole(cursor, 4),
            };
            if !holds {
                return index;
            }
        }
        self.containers.len()
    }

    /// Adds the line to the open code block. Returns false if the line does not belong to one.
    fn feed_code(&mut self, cursor: &mut Cursor<'_>, line: Line<'_>) -> bool {
        match &mut self.leaf {
            Leaf::Fence {
                mark,
                length,
                indent,
                figure,
            } => {
                if line.ends && starts::closes_fence(cursor, *mark, *length) {
                    self.close_leaf();
                } else {
                    cursor.skip_columns(cursor.indent().min(*indent));
                    figure.add(&mut self.sink, &cursor.rest(), line.ends);
                }
                true
            }
            Leaf::Indented {
                blank_lines,
                figure,
            } => {
                if cursor.is_blank() {
                    cursor.skip_columns(4);
                    blank_lines.push_str(&cursor.rest());
                    blank_lines.push('\n');
                    // Blank lines are shown only if more code follows, so they are kept, up to 1 KiB.
                    blank_lines.truncate(1024);
                    return true;
                }
                if cursor.indent() < 4 {
                    return false;
                }
                for blank in std::mem::take(blank_lines).lines() {
                    figure.add(&mut self.sink, blank, true);
                }
                cursor.skip_columns(4);
                figure.add(&mut self.sink, &cursor.rest(), line.ends);
                true
            }
            Leaf::None | Leaf::Paragraph { .. } | Leaf::Table { .. } => false,
        }
    }
}

fn skip_quote_mark(cursor: &mut Cursor<'_>) {
    cursor.skip_indent();
    cursor.skip_marker(1);
    cursor.skip_columns(1);
}

fn skip_whole(cursor: &mut Cursor<'_>, columns: usize) -> bool {
    let holds = cursor.indent() >= columns;
    if holds {
        cursor.skip_columns(columns);
    }
    holds
}
