//! Scanner over one line that writes tokens as spans and the text between them as plain text.

use crate::escape::{self, TextKind};

/// Token class, written as a class name in the HTML. `web/styles/code.css` colours each one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Keyword,
    String,
    Comment,
    /// Numbers, constants and literals such as `true`.
    Number,
    Function,
    Type,
    /// Keys, attributes and fields.
    Property,
    Variable,
    /// Attributes, decorators and preprocessor directives.
    Meta,
    Tag,
    Heading,
    Inserted,
    Deleted,
}

impl Class {
    fn name(self) -> &'static str {
        match self {
            Self::Keyword => "k",
            Self::String => "s",
            Self::Comment => "c",
            Self::Number => "n",
            Self::Function => "f",
            Self::Type => "t",
            Self::Property => "p",
            Self::Variable => "v",
            Self::Meta => "m",
            Self::Tag => "g",
            Self::Heading => "h",
            Self::Inserted => "i",
            Self::Deleted => "d",
        }
    }
}

pub(crate) struct Scan<'l, 'o> {
    line: &'l str,
    at: usize,
    written: usize,
    out: &'o mut String,
}

impl<'l, 'o> Scan<'l, 'o> {
    pub(crate) fn new(line: &'l str, out: &'o mut String) -> Self {
        Self {
            line,
            at: 0,
            written: 0,
            out,
        }
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.line.as_bytes().get(self.at).copied()
    }

    pub(crate) fn peek_at(&self, ahead: usize) -> Option<u8> {
        self.line.as_bytes().get(self.at + ahead).copied()
    }

    pub(crate) fn before(&self) -> &'l str {
        &self.line[..self.at]
    }

    pub(crate) fn rest(&self) -> &'l str {
        &self.line[self.at..]
    }

    /// Skips one character, which stays plain text.
    pub(crate) fn skip(&mut self) {
        self.at += self.rest().chars().next().map_or(0, char::len_utf8);
    }

    pub(crate) fn skip_bytes(&mut self, length: usize) {
        self.at = self.line.ceil_char_boundary(self.at + length);
    }

    pub(crate) fn skip_spaces(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Writes the next `length` bytes as a token.
    pub(crate) fn token(&mut self, length: usize, class: Class) {
        let end = self.line.ceil_char_boundary(self.at + length);
        if end == self.at {
            return;
        }
        self.write_plain();
        self.out.push_str("<span class=\"");
        self.out.push_str(class.name());
        self.out.push_str("\">");
        escape::text(self.out, &self.line[self.at..end], TextKind::Exact);
        self.out.push_str("</span>");
        self.at = end;
        self.written = end;
    }

    pub(crate) fn token_to_end(&mut self, class: Class) {
        self.token(self.line.len() - self.at, class);
    }

    /// Length in bytes of the leading characters that satisfy `fits`.
    pub(crate) fn run(&self, fits: impl Fn(char) -> bool) -> usize {
        let rest = self.rest();
        rest.find(|c| !fits(c)).unwrap_or(rest.len())
    }

    pub(crate) fn finish(mut self) {
        self.at = self.line.len();
        self.write_plain();
    }

    fn write_plain(&mut self) {
        escape::text(self.out, &self.line[self.written..self.at], TextKind::Exact);
        self.written = self.at;
    }
}
