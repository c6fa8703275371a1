//! Writes the events of the markdown parser as HTML.
//!
//! Safe by construction: every tag and attribute name is a literal in this crate, all other text is
//! escaped, and HTML in the markdown is shown as text.

use pulldown_cmark::{Alignment, CodeBlockKind, Event, LinkType, Tag, TagEnd};

use crate::code;
use crate::escape::{self, TextKind};
use crate::inline::Shape;
use crate::link::{self, Target};
use crate::spot;

/// Maximum nesting depth of inline elements. Deeper ones keep their text and lose their tags.
const DEPTH_MAX: usize = 24;

/// Scheme that marks footnote references in the parser's output. It is never written to the HTML.
pub(crate) const NOTE_SCHEME: &str = "liminal-note:";

struct OpenLink {
    target: Target,
    /// Visible text of the link, compared with its destination.
    words: String,
}

pub(crate) struct Writer<'o> {
    out: &'o mut String,
    shape: Shape,
    depth: usize,
    link: Option<OpenLink>,
    /// Address and alt text of the open image, and the number of images nested in it.
    image: Option<(String, String, usize)>,
    code: Option<(String, String)>,
    pub(crate) columns: Vec<Alignment>,
    column: usize,
    in_head: bool,
    /// Output offset at the end of the last non-empty cell.
    row_end: usize,
    cell_begin: usize,
}

impl<'o> Writer<'o> {
    pub(crate) fn new(out: &'o mut String, shape: Shape) -> Self {
        Self {
            out,
            shape,
            depth: 0,
            link: None,
            image: None,
            code: None,
            columns: vec![],
            column: 0,
            in_head: false,
            row_end: 0,
            cell_begin: 0,
        }
    }

    pub(crate) fn event(&mut self, event: Event<'_>) {
        if let Some((_, words, inside)) = &mut self.image {
            match event {
                Event::Text(text) | Event::Code(text) => words.push_str(&text),
                Event::SoftBreak | Event::HardBreak => words.push(' '),
                Event::Start(Tag::Image { .. }) => *inside += 1,
                Event::End(TagEnd::Image) if *inside > 0 => *inside -= 1,
                Event::End(TagEnd::Image) => self.end_image(),
                _ => {}
            }
            return;
        }
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text(&text),
            Event::Code(text) => self.inline_code(&text),
            Event::InlineMath(text) => self.math("$", &text),
            Event::DisplayMath(text) => self.math("$$", &text),
            Event::Html(text) | Event::InlineHtml(text) => self.plain(&text),
            Event::SoftBreak => self.out.push('\n'),
            Event::HardBreak => self.out.push_str("<br>\n"),
            Event::Rule => self.out.push_str("<hr>"),
            Event::FootnoteReference(_) | Event::TaskListMarker(_) => {}
        }
    }

    /// Writes a start tag, unless the nesting exceeds `DEPTH_MAX`.
    fn open(&mut self, html: &str) {
        self.depth += 1;
        if self.depth <= DEPTH_MAX {
            self.out.push_str(html);
        }
    }

    fn close(&mut self, html: &str) {
        if self.depth <= DEPTH_MAX {
            self.out.push_str(html);
        }
        self.depth = self.depth.saturating_sub(1);
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => match self.shape {
                Shape::Bare if self.depth == 0 => self.open(""),
                Shape::More if self.depth == 0 => self.open("<p class=\"more\">"),
                _ => self.open("<p>"),
            },
            Tag::Heading { level, .. } => self.open(HEADINGS[level as usize - 1].0),
            Tag::BlockQuote(_) => self.open("<blockquote>"),
            Tag::HtmlBlock => self.open("<p class=\"raw\">"),
            Tag::List(None) => self.open("<ul>"),
            Tag::List(Some(start)) => self.open(&format!("<ol start=\"{start}\">")),
            Tag::Item => self.open("<li>"),
            Tag::CodeBlock(kind) => {
                let info = match kind {
                    CodeBlockKind::Fenced(info) => info.to_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((info, String::new()));
            }
            Tag::TableHead => {
                self.in_head = true;
                self.column = 0;
                self.open("<thead><tr>");
            }
            Tag::TableRow => {
                self.column = 0;
                self.open("<tr>");
                self.row_end = self.out.len();
            }
            Tag::TableCell => self.start_cell(),
            Tag::Emphasis => self.open("<em>"),
            Tag::Strong => self.open("<strong>"),
            Tag::Strikethrough => self.open("<del>"),
            Tag::Link {
                link_type,
                dest_url,
                ..
            } => self.start_link(link_type, &dest_url),
            Tag::Image { dest_url, .. } => {
                self.image = Some((dest_url.to_string(), String::new(), 0));
            }
            // `blocks` opens tables; the other extensions are not enabled in the parser.
            Tag::Table(_)
            | Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => match self.shape {
                Shape::Bare if self.depth == 1 => self.close(""),
                _ => self.close("</p>"),
            },
            TagEnd::Heading(level) => self.close(HEADINGS[level as usize - 1].1),
            TagEnd::BlockQuote(_) => self.close("</blockquote>"),
            TagEnd::HtmlBlock => self.close("</p>"),
            TagEnd::List(true) => self.close("</ol>"),
            TagEnd::List(false) => self.close("</ul>"),
            TagEnd::Item => self.close("</li>"),
            TagEnd::CodeBlock => {
                if let Some((info, text)) = self.code.take() {
                    self.out.push_str(&code::figure(&info, &text));
                }
            }
            TagEnd::TableHead => {
                self.in_head = false;
                self.close("</tr></thead>");
            }
            TagEnd::TableRow => {
                self.out.truncate(self.row_end);
                self.close("</tr>");
            }
            TagEnd::TableCell => self.end_cell(),
            TagEnd::Emphasis => self.close("</em>"),
            TagEnd::Strong => self.close("</strong>"),
            TagEnd::Strikethrough => self.close("</del>"),
            TagEnd::Link => self.end_link(),
            TagEnd::Image
            | TagEnd::Table
            | TagEnd::FootnoteDefinition
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::MetadataBlock(_) => {}
        }
    }

    fn start_cell(&mut self) {
        let side = match self.columns.get(self.column) {
            Some(Alignment::Right) => " class=\"right\"",
            Some(Alignment::Center) => " class=\"center\"",
            _ => "",
        };
        self.column += 1;
        match self.in_head {
            true => self.open(&format!("<th scope=\"col\"{side}>")),
            false => self.open(&format!("<td{side}>")),
        }
        self.cell_begin = self.out.len();
    }

    fn end_cell(&mut self) {
        let is_empty = self.out.len() == self.cell_begin;
        self.close(match self.in_head {
            true => "</th>",
            false => "</td>",
        });
        if !is_empty {
            self.row_end = self.out.len();
        }
    }

    fn start_link(&mut self, link_type: LinkType, address: &str) {
        let target = match link_type {
            LinkType::Email => link::mail(address),
            _ => link::target(address),
        };
        match &target {
            Target::Web { .. } | Target::Mail { .. } => {
                let mut html = String::new();
                link::open(&mut html, &target);
                self.open(&html);
            }
            Target::Path(path) => {
                let mut html = String::new();
                spot::open_path(&mut html, path);
                self.open(&html);
            }
            Target::Other(_) => self.open(""),
        }
        self.link = Some(OpenLink {
            target,
            words: String::new(),
        });
    }

    fn end_link(&mut self) {
        let Some(OpenLink { target, words }) = self.link.take() else {
            return;
        };
        if let Target::Other(address) = &target
            && let Some(label) = address.strip_prefix(NOTE_SCHEME)
        {
            // `text` did not write the link text of a footnote reference.
            self.close("");
            self.out.push_str("<sup class=\"note\" data-note=\"");
            escape::attribute(self.out, label);
            self.out.push_str("\">");
            escape::text(self.out, label, TextKind::Exact);
            return self.out.push_str("</sup>");
        }
        self.close(match &target {
            Target::Web { .. } | Target::Mail { .. } => "</a>",
            Target::Path(_) => "</span>",
            Target::Other(_) => "",
        });
        link::write_destination(self.out, &target, &words);
    }

    fn is_note(&self) -> bool {
        let target = self.link.as_ref().map(|link| &link.target);
        matches!(target, Some(Target::Other(address)) if address.starts_with(NOTE_SCHEME))
    }

    fn end_image(&mut self) {
        let Some((address, words, _)) = self.image.take() else {
            return;
        };
        let words = words.trim();
        self.out.push_str("<span class=\"image\">");
        escape::text(
            self.out,
            if words.is_empty() { "image" } else { words },
            TextKind::Prose,
        );
        let target = link::target(&address);
        match (&target, &mut self.link) {
            (Target::Web { .. }, None) => {
                self.out.push(' ');
                link::open(self.out, &target);
                escape::text(self.out, link::shortened(&address), TextKind::Exact);
                self.out.push_str("</a>");
            }
            (_, outer) => {
                self.out.push_str("<span class=\"host\"> ");
                escape::text(self.out, link::shortened(&address), TextKind::Exact);
                self.out.push_str("</span>");
                if let Some(outer) = outer {
                    outer.words.push_str(words);
                }
            }
        }
        self.out.push_str("</span>");
    }

    fn text(&mut self, text: &str) {
        if let Some((_, code)) = &mut self.code {
            return code.push_str(text);
        }
        if self.is_note() {
            return;
        }
        match &mut self.link {
            Some(link) => {
                link.words.push_str(text);
                escape::text(self.out, text, TextKind::Prose);
            }
            None => spot::write(self.out, text),
        }
    }

    /// Writes HTML of the markdown as visible text.
    fn plain(&mut self, text: &str) {
        if let Some(link) = &mut self.link {
            link.words.push_str(text);
        }
        escape::text(self.out, text, TextKind::Prose);
    }

    fn inline_code(&mut self, text: &str) {
        let path = match &mut self.link {
            Some(link) => {
                link.words.push_str(text);
                None
            }
            None => spot::path_in_code(text),
        };
        if let Some(path) = &path {
            spot::open_path(self.out, path);
        }
        self.out.push_str("<code>");
        escape::text(self.out, text, TextKind::Exact);
        self.out.push_str(if path.is_some() {
            "</code></span>"
        } else {
            "</code>"
        });
    }

    fn math(&mut self, around: &str, text: &str) {
        if let Some(link) = &mut self.link {
            link.words.push_str(text);
        }
        self.out.push_str("<span class=\"math\">");
        self.out.push_str(around);
        escape::text(self.out, text, TextKind::Prose);
        self.out.push_str(around);
        self.out.push_str("</span>");
    }
}

const HEADINGS: [(&str, &str); 6] = [
    ("<h1>", "</h1>"),
    ("<h2>", "</h2>"),
    ("<h3>", "</h3>"),
    ("<h4>", "</h4>"),
    ("<h5>", "</h5>"),
    ("<h6>", "</h6>"),
];
