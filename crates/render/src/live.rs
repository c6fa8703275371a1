//! Incremental rendering of a streamed text: finished blocks are written once, and the unfinished tail
//! is rendered as if the text ended there.
//!
//! Invariant: applying the parts of all flushes in order builds the same tree as `html` of the whole
//! text, however the text was split.

use crate::blocks::{Blocks, Line};
use crate::sink::Part;

/// Maximum part of a line that is parsed at once, so that an endless line is shown before it ends.
pub(crate) const LINE_BYTES_MAX: usize = 4 * 1024;

/// Changes since the last flush.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Delta {
    /// Final parts, to append after removing the previous tail.
    pub finished: Vec<Part>,
    /// Parts of unfinished blocks, to append after `finished` and to remove at the next delta.
    pub tail: Vec<Part>,
}

/// Incremental renderer of one text.
///
/// ```
/// let mut live = render::Live::new();
/// live.push("|a|\n|-|\n|one|\n");
/// live.flush();
/// live.push("|two|\n|thr");
/// let delta = live.flush();
/// assert_eq!(delta.finished[0].html, "<tr><td>two</td></tr>");
/// assert_eq!(delta.tail[0].html, "<tr><td>thr</td></tr>");
/// assert_eq!(delta.tail[0].depth, 3); // scroll container, table, table body
/// ```
///
/// A page keeps one element per text. For each delta it removes the nodes of the previous tail. Then,
/// for each part, it starts at that element, descends to the last child element `depth` times and
/// appends the markup. A page that joins later uses its own `Live`, pushes the whole text so far and
/// flushes once: the finished parts and their depths depend only on the text.
#[derive(Debug)]
pub struct Live {
    blocks: Blocks,
    /// Received text that is not in a block yet.
    text: String,
    begins: bool,
}

impl Default for Live {
    fn default() -> Self {
        Self::new()
    }
}

impl Live {
    /// A renderer without text.
    pub fn new() -> Self {
        Self {
            blocks: Blocks::new(),
            text: String::new(),
            begins: true,
        }
    }

    /// Appends text to the buffer. Rendering happens in `flush`.
    pub fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Returns the HTML that changed since the last call.
    pub fn flush(&mut self) -> Delta {
        self.read_lines(false);
        let finished = self.blocks.sink.take();
        let mut ahead = self.blocks.branch();
        if !self.text.is_empty() {
            ahead.line(Line {
                text: self.text.strip_suffix('\r').unwrap_or(&self.text),
                begins: self.begins,
                ends: true,
            });
        }
        ahead.end();
        Delta {
            finished,
            tail: ahead.sink.take(),
        }
    }

    /// Ends the text and returns the remaining parts. Text pushed afterwards starts a new one.
    pub fn finish(&mut self) -> Vec<Part> {
        self.read_lines(true);
        self.blocks.end();
        let parts = self.blocks.sink.take();
        *self = Self::new();
        parts
    }

    /// Parses all complete lines, and those parts of an overlong line that can no longer change.
    fn read_lines(&mut self, is_last: bool) {
        let mut read = 0;
        while let Some((line, ends, length)) = next_line(&self.text[read..], is_last) {
            self.blocks.line(Line {
                text: line,
                begins: self.begins,
                ends,
            });
            self.begins = ends;
            read += length;
        }
        self.text.drain(..read);
    }
}

/// Returns the next line or part of a line, whether the line ends there, and the bytes consumed.
fn next_line(text: &str, is_last: bool) -> Option<(&str, bool, usize)> {
    let window = &text.as_bytes()[..text.len().min(LINE_BYTES_MAX)];
    match memchr::memchr2(b'\n', b'\r', window) {
        Some(end) if window[end] == b'\n' => Some((&text[..end], true, end + 1)),
        Some(end) => match text.as_bytes().get(end + 1) {
            Some(b'\n') => Some((&text[..end], true, end + 2)),
            Some(_) => Some((&text[..end], true, end + 1)),
            // A line feed may still follow the carriage return.
            None => is_last.then_some((&text[..end], true, end + 1)),
        },
        None if text.len() > LINE_BYTES_MAX => {
            let half = text.floor_char_boundary(LINE_BYTES_MAX / 2);
            let full = text.floor_char_boundary(LINE_BYTES_MAX);
            let space = text[half..full].rfind(' ');
            let end = space.map_or(full, |at| half + at + 1);
            Some((&text[..end], false, end))
        }
        None => (is_last && !text.is_empty()).then_some((text, true, text.len())),
    }
}

pub(crate) fn html(markdown: &str) -> String {
    let mut live = Live::new();
    live.push(markdown);
    live.finish().into_iter().map(|part| part.html).collect()
}
