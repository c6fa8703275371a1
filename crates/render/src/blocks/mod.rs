//! From lines to blocks: which containers are open, which leaf, and what a line does to them.
//!
//! The block structure of CommonMark, one line at a time, writing every block as soon as nothing can
//! change it any more. Paragraphs, headings and table rows go through the markdown parser in
//! `inline`; what that makes of them is final too.
//!
//! Invariant: what is written depends on the lines alone, never on when somebody looked.

mod open;

use crate::code::Figure;
use crate::cursor::Cursor;
use crate::inline::{self, Alignment, Shape};
use crate::known::Known;
use crate::sink::Sink;
use crate::starts::{self, Start};

/// Quotes and lists inside each other. Deeper ones are shown as they were typed.
pub(crate) const DEPTH_MAX: usize = 24;
/// A paragraph is cut here: it is read again on every flush while it is open.
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
        /// Where the last line begins.
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

/// A line, or a part of one that is too long to wait for its end.
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

    /// The same state, for looking ahead without touching what is written.
    pub(crate) fn branch(&self) -> Self {
        Self {
            containers: self.containers.clone(),
            leaf: self.leaf.clone(),
            known: self.known.clone(),
            sink: self.sink.branch(),
        }
    }

    /// Ends everything that is open.
    pub(crate) fn end(&mut self) {
        self.close_to(0);
    }

    pub(crate) fn line(&mut self, line: Line<'_>) {
        if !line.begins {
            return self.go_on(line);
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
            // Before lists: the line under a header may begin like an item.
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
                    self.fill();
                    return inline::write(
                        self.sink.here(),
                        cursor.trimmed(),
                        Shape::Whole,
                        &mut self.known,
                    );
                }
                Start::Rule => {
                    self.fill();
                    return self.sink.here().push_str("<hr>");
                }
                Start::Underline => {}
            }
            opened = true;
            matched = self.containers.len();
        }
        self.add_text(&cursor, matched, line.ends);
    }

    /// What begins no block: a blank line, or text for the leaf that is open or a new paragraph.
    fn add_text(&mut self, cursor: &Cursor<'_>, matched: usize, ends: bool) {
        if cursor.is_blank() {
            return self.close_to(matched);
        }
        let text = cursor.trimmed();
        let is_lazy = matched < self.containers.len();
        match &self.leaf {
            Leaf::Paragraph { .. } => {
                // Far in, or outside of its container, a line is words only. Spaces tell the parser.
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

    /// A later part of a line that was too long to wait for.
    fn go_on(&mut self, line: Line<'_>) {
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

    /// True when the line belongs to the code that is open.
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
                    // Only those followed by more code count, so they have to be kept; but not for ever.
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
