//! Where HTML is written: knows which elements are open, and cuts what was written into parts that
//! are each whole markup.
//!
//! Invariant: every part is balanced, and applying the parts in order builds the same tree as
//! parsing all of it at once.

/// Markup to append to an element that may have content already.
///
/// The element is found by going from the root of the text to its last child element, `depth` times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    pub depth: usize,
    pub html: String,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Sink {
    closers: Vec<&'static str>,
    part: String,
    part_depth: usize,
    parts: Vec<Part>,
}

impl Sink {
    /// One that goes on where this one is, with nothing written yet.
    pub(crate) fn branch(&self) -> Self {
        Self {
            closers: self.closers.clone(),
            part: String::new(),
            part_depth: self.closers.len(),
            parts: vec![],
        }
    }

    /// Writes start tags (and whatever stands before the content); `closer` ends the innermost.
    pub(crate) fn open(&mut self, html: &str, closer: &'static str) {
        self.part.push_str(html);
        self.closers.push(closer);
    }

    /// The place to write whole markup to, at the current depth.
    pub(crate) fn here(&mut self) -> &mut String {
        &mut self.part
    }

    pub(crate) fn close(&mut self) {
        let Some(closer) = self.closers.pop() else {
            return;
        };
        if self.closers.len() < self.part_depth {
            self.seal();
        } else {
            self.part.push_str(closer);
        }
    }

    /// What was written since the last call.
    pub(crate) fn take(&mut self) -> Vec<Part> {
        for closer in self.closers[self.part_depth..].iter().rev() {
            self.part.push_str(closer);
        }
        self.seal();
        std::mem::take(&mut self.parts)
    }

    fn seal(&mut self) {
        let html = std::mem::take(&mut self.part);
        if !html.is_empty() {
            let depth = self.part_depth;
            self.parts.push(Part { depth, html });
        }
        self.part_depth = self.closers.len();
    }
}
