//! Converts markdown on stdin to HTML on stdout.
//!
//! `cargo run -p render --example page < README.md`

use std::io::{Read, Write};

fn main() -> std::io::Result<()> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    std::io::stdout().write_all(render::html(&text).as_bytes())
}
