//! Developer commands: `cargo xtask test | bench | audit | reproduce | types`.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a tool for developers, run in a terminal"
)]

mod agents;
mod audit;
mod bench;
mod guards;
mod reproduce;
mod slowest;
mod steps;
mod test;
mod tools;
mod words;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
cargo xtask test [rust|web|e2e|agents]
                                  run every check, or one part of them
cargo xtask test guards           count the instructions of frequently run code (callgrind)
cargo xtask test fire             run the long form of the fault, flood and attack tests
cargo xtask bench [server|web] [--quick] [--against FILE]
                                  compare the release build with baseline programs and with the last run
cargo xtask audit                 check licences, sources, bans and advisories (cargo-deny)
cargo xtask reproduce             build the release twice from scratch and compare
cargo xtask types                 generate web/types/wire.d.ts, docs/gateway.md and docs/configuration.md";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["test"] => test::run(test::Part::All),
        ["test", part] => match test::Part::parse(part) {
            Some(part) => test::run(part),
            None => return help(),
        },
        ["bench", options @ ..] => match bench::Options::parse(options) {
            Some(options) => bench::run(&options),
            None => return help(),
        },
        ["audit"] => audit::run(),
        ["reproduce"] => reproduce::run(),
        ["types"] => test::write_types(),
        _ => return help(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nxtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn help() -> ExitCode {
    eprintln!("{HELP}");
    ExitCode::from(2)
}

/// Cargo's target directory.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// The repository's root.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()
        .expect("the repository is there")
}
