//! Syntax highlighting with class names: a table of languages and one small lexer for all of them.
//!
//! The lexer works line by line with a few bytes of state between lines, so the cost per line does not grow with the
//! block. The lexer never fails: text that it does not recognize stays plain.

mod keyed;
mod languages;
mod lexer;
mod markup;
mod scan;
mod table;
mod words;

use crate::escape::{self, TextKind};
use crate::sink::Sink;
use languages::Language;
use lexer::Lexer;

/// Maximum length of a highlighted line. Longer lines are usually data and would become thousands of
/// elements.
const HIGHLIGHTED_LINE_BYTES_MAX: usize = 2000;

/// A code block with its language label and a copy button.
#[derive(Debug, Clone)]
pub(crate) struct Figure {
    lexer: Lexer,
    in_line: bool,
}

impl Figure {
    /// `info` is the info string of the fence; its first word is the language.
    pub(crate) fn open(sink: &mut Sink, info: &str) -> Self {
        let word = info
            .split([' ', '\t', ',', '{', ':'])
            .find(|word| !word.is_empty())
            .unwrap_or("");
        let language = languages::by_name(word);
        let mut html = "<figure class=\"code\"".to_owned();
        let known = language.map(Language::id);
        if let Some(id) = known {
            html.push_str(" data-language=\"");
            html.push_str(id);
            html.push('"');
        }
        html.push_str("><figcaption><span class=\"language\">");
        let shown = language.map_or(word, |language| language.name);
        let end = shown.floor_char_boundary(32);
        escape::text(&mut html, &shown[..end], TextKind::Exact);
        html.push_str("</span><button type=\"button\" class=\"copy\">Copy</button></figcaption>");
        sink.open(&html, "</figure>");
        sink.open("<pre tabindex=\"0\">", "</pre>");
        sink.open("<code>", "</code>");
        Self {
            lexer: Lexer::new(language),
            in_line: false,
        }
    }

    /// Adds a line or part of a long line; `ends` says that the line ends here.
    pub(crate) fn add(&mut self, sink: &mut Sink, text: &str, ends: bool) {
        let out = sink.here();
        if self.in_line || !ends || text.len() > HIGHLIGHTED_LINE_BYTES_MAX {
            escape::text(out, text, TextKind::Exact);
        } else {
            self.lexer.line(text, out);
        }
        if ends {
            out.push('\n');
        }
        self.in_line = !ends;
    }

    pub(crate) fn close(self, sink: &mut Sink) {
        for _ in ["code", "pre", "figure"] {
            sink.close();
        }
    }
}

pub(crate) fn figure(info: &str, text: &str) -> String {
    let mut sink = Sink::default();
    let mut figure = Figure::open(&mut sink, info);
    for line in text.lines() {
        figure.add(&mut sink, line, true);
    }
    figure.close(&mut sink);
    sink.take().into_iter().map(|part| part.html).collect()
}

pub(crate) fn lines(language_or_path: &str, text: &str) -> Vec<String> {
    let mut lexer = Lexer::new(languages::by_path(language_or_path));
    text.lines()
        .map(|line| {
            let mut out = String::with_capacity(line.len() * 2);
            match line.len() {
                0..=HIGHLIGHTED_LINE_BYTES_MAX => lexer.line(line, &mut out),
                _ => escape::text(&mut out, line, TextKind::Exact),
            }
            out
        })
        .collect()
}
