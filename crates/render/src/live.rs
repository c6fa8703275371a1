//! A text that grows: what is finished is written once, what is open is shown as if it ended here.
//!
//! Invariant: the parts of all flushes, applied in order, build what `html` of the whole text builds,
//! whatever the pieces the text came in.

use crate::blocks::{Blocks, Line};
use crate::sink::Part;

/// A line is read in parts of about this size: nobody can wait for the end of an endless one.
pub(crate) const LINE_BYTES_MAX: usize = 4 * 1024;

/// What has changed since the last flush.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Delta {
    /// To append for good, after the last tail has been removed.
    pub finished: Vec<Part>,
    /// To append after that, until the next delta.
    pub tail: Vec<Part>,
}

/// ```
/// let mut live = render::Live::new();
/// live.push("|a|\n|-|\n|one|\n");
/// live.flush();
/// live.push("|two|\n|thr");
/// let delta = live.flush();
/// assert_eq!(delta.finished[0].html, "<tr><td>two</td></tr>");
/// assert_eq!(delta.tail[0].html, "<tr><td>thr</td></tr>");
/// assert_eq!(delta.tail[0].depth, 3); // a frame that scrolls, the table, its body
/// ```
///
/// A page keeps one element per text. For each delta it removes the nodes of the last tail, then, for
/// each part, goes from that element to its last child element `depth` times and appends the markup.
/// Whoever comes later starts with a `Live` of their own, the whole text so far and one flush: what
/// is finished, and how deep, depends on the text alone.
#[derive(Debug)]
pub struct Live {
    blocks: Blocks,
    /// What has come and is in no block yet.
    text: String,
    begins: bool,
}

impl Default for Live {
    fn default() -> Self {
        Self::new()
    }
}

impl Live {
    pub fn new() -> Self {
        Self {
            blocks: Blocks::new(),
            text: String::new(),
            begins: true,
        }
    }

    /// Takes more text. Costs no more than keeping it: nothing is rendered until somebody asks.
    pub fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

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

    /// Ends the text: what was still open, for good. Whatever is pushed later begins a new text.
    pub fn finish(&mut self) -> Vec<Part> {
        self.read_lines(true);
        self.blocks.end();
        let parts = self.blocks.sink.take();
        *self = Self::new();
        parts
    }

    /// Reads all lines that are whole, and of a longer one the parts that cannot change.
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

/// The next line or part of one, whether it ends there, and how much text that was.
fn next_line(text: &str, is_last: bool) -> Option<(&str, bool, usize)> {
    let window = &text.as_bytes()[..text.len().min(LINE_BYTES_MAX)];
    match memchr::memchr2(b'\n', b'\r', window) {
        Some(end) if window[end] == b'\n' => Some((&text[..end], true, end + 1)),
        Some(end) => match text.as_bytes().get(end + 1) {
            Some(b'\n') => Some((&text[..end], true, end + 2)),
            Some(_) => Some((&text[..end], true, end + 1)),
            // A line feed may follow.
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
