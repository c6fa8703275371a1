//! Output buffer for HTML that tracks the open elements and splits the output into balanced parts.
//!
//! Invariant: every part is balanced, and applying the parts in order builds the same tree as parsing
//! the whole HTML at once.

/// Balanced markup to append to an element that may already have content.
///
/// To find the element, start at the root and descend to the last child element `depth` times.
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
    /// Returns an empty sink with the same elements open.
    pub(crate) fn branch(&self) -> Self {
        Self {
            closers: self.closers.clone(),
            part: String::new(),
            part_depth: self.closers.len(),
            parts: vec![],
        }
    }

    /// Writes `html`: start tags, and any text before the content. `closer` is the end tag of the innermost element.
    pub(crate) fn open(&mut self, html: &str, closer: &'static str) {
        self.part.push_str(html);
        self.closers.push(closer);
    }

    /// Returns the buffer for balanced markup at the current depth.
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

    /// Takes the parts written since the last call. Open elements stay open for the next part.
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
