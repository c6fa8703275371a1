//! Tests of the rendered HTML, checked with a real HTML tokenizer and parser.

#![expect(clippy::unwrap_used, reason = "test helpers outside test functions")]

mod bounds;
mod chunking;
mod code;
mod dom;
mod markdown;
mod safety;
mod spec;
mod texts;
mod tokens;
mod tree;
