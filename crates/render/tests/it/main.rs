//! Markdown in, HTML out, judged by a real HTML tokenizer and parser.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests, outside of a test function"
)]

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
