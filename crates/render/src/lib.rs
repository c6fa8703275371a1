//! Markdown to safe, highlighted HTML, also for a text that is still growing.
//!
//! Pure: no files, no network, no clock. `blocks` reads lines and writes every block once it is
//! finished, `inline` and `writer` what stands inside one, `code` colours by class names, `escape` makes anything
//! else text. The HTML holds no `id`, no `name`, no style, no script, and loads nothing.

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

/// The HTML of a whole text.
pub fn html(markdown: &str) -> String {
    live::html(markdown)
}

/// Coloured code, one fragment per line, for files and diffs. The language is a name, an ending or a
/// path; a language we do not know gives plain text.
pub fn code_lines(language_or_path: &str, text: &str) -> Vec<String> {
    code::lines(language_or_path, text)
}

/// Text where nothing hides: characters that cannot be seen are shown by their number. For paths,
/// commands, and whatever a person is asked to allow.
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    escape::text(&mut out, text, escape::Seen::Exact);
    out
}
