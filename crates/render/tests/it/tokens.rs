//! HTML tokens as a browser's tokenizer produces them.

use std::cell::RefCell;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{
    BufferQueue, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    Start(String, Vec<(String, String)>),
    End(String),
    Text(String),
    /// A comment, doctype or parse error, none of which we write.
    Odd(String),
}

impl Piece {
    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        match self {
            Self::Start(_, attributes) => attributes
                .iter()
                .find(|(found, _)| found == name)
                .map(|(_, value)| value.as_str()),
            _ => None,
        }
    }

    pub(crate) fn has_class(&self, class: &str) -> bool {
        let classes = self.attribute("class").unwrap_or("");
        classes.split(' ').any(|found| found == class)
    }
}

#[derive(Default)]
struct Pieces(RefCell<Vec<Piece>>);

impl TokenSink for Pieces {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut pieces = self.0.borrow_mut();
        match token {
            Token::TagToken(tag) => {
                let name = tag.name.to_string();
                let mut attributes: Vec<_> = tag
                    .attrs
                    .iter()
                    .map(|a| (a.name.local.to_string(), a.value.to_string()))
                    .collect();
                attributes.sort();
                pieces.push(match tag.kind {
                    TagKind::StartTag => Piece::Start(name, attributes),
                    TagKind::EndTag => Piece::End(name),
                });
            }
            Token::CharacterTokens(text) => match pieces.last_mut() {
                Some(Piece::Text(before)) => before.push_str(&text),
                _ => pieces.push(Piece::Text(text.to_string())),
            },
            Token::EOFToken => {}
            other => pieces.push(Piece::Odd(format!("{other:?}"))),
        }
        TokenSinkResult::Continue
    }
}

pub(crate) fn pieces(html: &str) -> Vec<Piece> {
    let input = BufferQueue::default();
    input.push_back(StrTendril::from(html));
    let tokenizer = Tokenizer::new(Pieces::default(), TokenizerOpts::default());
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    tokenizer.sink.0.take()
}

/// The visible text of the HTML.
pub(crate) fn visible_text(html: &str) -> String {
    pieces(html)
        .into_iter()
        .filter_map(|piece| match piece {
            Piece::Text(text) => Some(text),
            _ => None,
        })
        .collect()
}
