//! Words that hide who acts: a sentence with one of them has to be decoded. Write "the agent", "a client", "the user".
//!
//! The list is short on purpose; CONTRIBUTING.md has the rules for texts.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

use crate::root;

const WORDS: [&str; 7] = [
    "nobody",
    "somebody",
    "whoever",
    "anybody",
    "everybody",
    "anew",
    "aloud",
];

/// Files in which the words stand for something else: the list itself, texts for tests and models, prescribed texts.
const EXCEPT: &[&str] = &[
    "xtask/src/words.rs",
    // The user `nobody`.
    "crates/hub/src/folders.rs",
    "crates/testkit/src/server.rs",
];

const ENDINGS: [&str; 6] = ["rs", "js", "md", "html", "css", "toml"];

/// Returns the number of files looked at, or fails with each place.
pub(crate) fn check() -> anyhow::Result<String> {
    let listed = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(root())
        .output()
        .context("git lists the files to check")?;
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let mut found = vec![];
    let mut looked_at = 0;
    for name in listed.split('\0') {
        let ending = Path::new(name)
            .extension()
            .and_then(|ending| ending.to_str());
        let is_text = ending.is_some_and(|ending| ENDINGS.contains(&ending));
        if !is_text || EXCEPT.contains(&name) {
            continue;
        }
        looked_at += 1;
        // A file that was removed and not committed yet.
        let Ok(text) = std::fs::read_to_string(root().join(name)) else {
            continue;
        };
        for (number, line) in (1..).zip(text.lines()) {
            found.extend(words_in(line).map(|word| format!("{name}:{number}: {word}")));
        }
    }
    if !found.is_empty() {
        bail!(
            "name the subject instead of these words:\n{}",
            found.join("\n")
        );
    }
    Ok(format!("{looked_at} files"))
}

fn words_in(line: &str) -> impl Iterator<Item = &'static str> {
    let lower = line.to_lowercase();
    let words: Vec<String> = lower
        .split(|letter: char| !letter.is_ascii_lowercase())
        .map(str::to_owned)
        .collect();
    WORDS
        .into_iter()
        .filter(move |word| words.iter().any(|found| found == word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_text_and_in_names_but_not_inside_others() {
        let found: Vec<_> = words_in("fn Nobody_waits() // started anew").collect();
        assert_eq!(found, ["nobody", "anew"]);
        assert_eq!(words_in("renewed; nobodys").count(), 0);
    }
}
