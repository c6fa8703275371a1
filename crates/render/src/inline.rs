//! What the markdown parser makes of one paragraph, heading or table row.
//!
//! Each is parsed alone, so that what it becomes depends on nothing that may still come.

use pulldown_cmark::{BrokenLink, CowStr, Event, Options, Parser, Tag, TagEnd, TextMergeStream};

pub(crate) use pulldown_cmark::Alignment;

use crate::escape::{self, Seen};
use crate::known::Known;
use crate::writer::{NOTE_SCHEME, Writer};

/// Wider tables are shown as text: every row would be mostly empty cells.
const COLUMNS_MAX: usize = 64;
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Whole,
    /// The first words of a list item or footnote, without a paragraph around them.
    Bare,
    /// Goes on with a paragraph that had become too long.
    More,
    /// As typed: too deep to be understood.
    Verbatim,
}

pub(crate) fn write(out: &mut String, text: &str, shape: Shape, known: &mut Known) {
    let text = text.trim_end_matches(['\n', ' ', '\t']);
    if text.is_empty() {
        return;
    }
    if shape == Shape::Verbatim {
        out.push_str("<p class=\"raw\">");
        escape::text(out, text, Seen::Prose);
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

/// The header of a table, if these two lines make one.
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

/// One row of a table with these columns, unless the line is no row.
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

/// Tables only where `blocks` has found one.
fn options() -> Options {
    Options::ENABLE_STRIKETHROUGH | Options::ENABLE_MATH
}

fn table_options() -> Options {
    options() | Options::ENABLE_TABLES
}

/// Answers for labels that the paragraph itself does not define. The parser bounds how much these may
/// add to one paragraph.
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
