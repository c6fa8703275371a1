//! Renders the content of one paragraph, heading or table row with the markdown parser.
//!
//! Each is parsed on its own, so its HTML never depends on text that arrives later.

use pulldown_cmark::{BrokenLink, CowStr, Event, Options, Parser, Tag, TagEnd, TextMergeStream};

pub(crate) use pulldown_cmark::Alignment;

use crate::escape::{self, TextKind};
use crate::known::Known;
use crate::writer::{NOTE_SCHEME, Writer};

/// Maximum columns of a table. Wider ones are shown as text: a short row would be filled up with
/// empty cells.
const COLUMNS_MAX: usize = 64;

/// How the HTML of a paragraph is wrapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Whole,
    /// First text of a list item or footnote, without a `<p>` around it.
    Bare,
    /// Continuation of a paragraph that was split at `PARAGRAPH_BYTES_MAX`.
    More,
    /// Unparsed source text, used below the maximum nesting depth.
    Verbatim,
}

pub(crate) fn write(out: &mut String, text: &str, shape: Shape, known: &mut Known) {
    let text = text.trim_end_matches(['\n', ' ', '\t']);
    if text.is_empty() {
        return;
    }
    if shape == Shape::Verbatim {
        out.push_str("<p class=\"raw\">");
        escape::text(out, text, TextKind::Prose);
        return out.push_str("</p>");
    }
    let mut added = vec![];
    {
        let mut resolve = resolver(known);
        let parser = Parser::new_with_broken_link_callback(text, options(), Some(&mut resolve));
        for (label, definition) in parser.reference_definitions().iter() {
            added.push((label.to_owned(), definition.dest.to_string()));
        }
        let mut writer = Writer::new(out, shape);
        for event in TextMergeStream::new(parser) {
            writer.event(event);
        }
    }
    for (label, address) in added {
        known.add_address(&label, address);
    }
}

/// Returns the columns and the HTML of a table header if these two lines form one.
pub(crate) fn head(line: &str, under: &str, known: &Known) -> Option<(Vec<Alignment>, String)> {
    let text = format!("{}\n{under}\n", line.trim_end());
    let mut resolve = resolver(known);
    let mut events = TextMergeStream::new(Parser::new_with_broken_link_callback(
        &text,
        table_options(),
        Some(&mut resolve),
    ));
    let Some(Event::Start(Tag::Table(columns))) = events.next() else {
        return None;
    };
    if columns.len() > COLUMNS_MAX {
        return None;
    }
    let mut out = String::new();
    let mut writer = Writer::new(&mut out, Shape::Whole);
    writer.columns = columns.clone();
    for event in events {
        let is_last = matches!(event, Event::End(TagEnd::TableHead));
        writer.event(event);
        if is_last {
            break;
        }
    }
    Some((columns, out))
}

/// Returns the HTML of a table row with these columns, or `None` if the line is not a row.
pub(crate) fn row(columns: &[Alignment], line: &str, known: &Known) -> Option<String> {
    let mut text = String::with_capacity(line.len() + columns.len() * 4 + 8);
    for cell in ["|a", "|-"] {
        text.extend(std::iter::repeat_n(cell, columns.len()));
        text.push_str("|\n");
    }
    text.push_str(line);
    let mut resolve = resolver(known);
    let mut events = TextMergeStream::new(Parser::new_with_broken_link_callback(
        &text,
        table_options(),
        Some(&mut resolve),
    ));
    events.find(|event| matches!(event, Event::End(TagEnd::TableHead)))?;
    let mut out = String::new();
    let mut writer = Writer::new(&mut out, Shape::Whole);
    writer.columns = columns.to_vec();
    for event in events {
        match event {
            Event::End(TagEnd::Table) => return (!out.is_empty()).then_some(out),
            event => writer.event(event),
        }
    }
    None
}

/// Without tables: `blocks` detects them and uses `table_options`.
fn options() -> Options {
    Options::ENABLE_STRIKETHROUGH | Options::ENABLE_MATH
}

fn table_options() -> Options {
    options() | Options::ENABLE_TABLES
}

/// Resolves link labels that the paragraph itself does not define. The parser limits how much text
/// these may add to one paragraph.
fn resolver<'a>(
    known: &Known,
) -> impl Fn(BrokenLink<'a>) -> Option<(CowStr<'a>, CowStr<'a>)> + use<'a> {
    let known = known.clone();
    move |broken| {
        if let Some(label) = broken.reference.strip_prefix('^') {
            let mark = known
                .has_note(label)
                .then(|| format!("{NOTE_SCHEME}{label}"))?;
            return Some((mark.into(), "".into()));
        }
        let address = known.address(&broken.reference)?;
        Some((address.to_owned().into(), "".into()))
    }
}
