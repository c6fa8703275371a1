//! Renders markdown to safe HTML with syntax highlighting, incrementally for a streamed text.
//!
//! Pure: no files, no network, no clock. `blocks` parses lines and writes each block once it is
//! finished, `inline` and `writer` render the content of a block, `code` highlights code with class
//! names, `escape` writes everything else as text. The HTML contains no `id`, `name`, style or script
//! and loads no resources.

mod blocks;
mod code;
mod cursor;
mod escape;
mod inline;
mod known;
mod link;
mod live;
mod sink;
mod spot;
mod starts;
mod writer;

pub use live::{Delta, Live};
pub use sink::Part;

/// Returns the HTML of a complete markdown text.
pub fn html(markdown: &str) -> String {
    live::html(markdown)
}

/// Returns highlighted code for files and diffs, one HTML fragment per line. The language is given as
/// a name, a file extension or a path; an unknown language gives plain text.
pub fn code_lines(language_or_path: &str, text: &str) -> Vec<String> {
    code::lines(language_or_path, text)
}

/// Returns text as HTML with invisible characters shown as their code points. For paths, commands and
/// permission requests, where hidden characters could mislead the user.
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    escape::text(&mut out, text, escape::TextKind::Exact);
    out
}
