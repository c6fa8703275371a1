//! `search`: finds the lines of the project that contain a text.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use agent_client_protocol_schema::v1 as acp;
use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;
use serde_json::{Value, json};

use super::list_files::walk;
use super::{Offered, Roots, begin, mark_in_progress, schema};
use crate::turn::{Stop, Turn};
use crate::turn_output::Outcome;

pub(super) const NAME: &str = "search";
const MATCHES_MAX: usize = 200;
const LINE_CHARS_MAX: usize = 200;
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

#[derive(Deserialize)]
struct Input {
    query: String,
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    regex: bool,
}

pub(super) fn offered() -> Offered {
    let properties = json!({
        "query": {"type": "string", "description": "Text to find. Case-sensitive only if it contains an upper-case letter."},
        "path": {"type": "string", "description": "A folder or file, relative to the project."},
        "regex": {"type": "boolean", "description": "Whether the query is a regular expression."},
    });
    Offered {
        name: NAME,
        description: "Finds the lines of the project's text files that contain a text.",
        schema: schema(properties, &["query"]),
    }
}

pub(super) async fn run(turn: &mut Turn, input: Value) -> Result<Outcome, Stop> {
    let title = |input: &Input| format!("Search for `{}`", input.query);
    let input: Input = match begin(turn, NAME, acp::ToolKind::Search, input, title).await? {
        Ok(input) => input,
        Err(outcome) => return Ok(outcome),
    };
    let folder = turn.roots.resolve(input.path.as_deref().unwrap_or("."));
    let outcome = match (pattern(&input), folder) {
        (Ok(pattern), Ok(folder)) => {
            mark_in_progress(turn, None).await?;
            let roots = turn.roots.clone();
            let stop = StopOnDrop::default();
            let stopped = stop.0.clone();
            let found =
                tokio::task::spawn_blocking(move || search(&pattern, folder, &roots, &stopped));
            let found = found.await;
            drop(stop);
            found.unwrap_or_else(|error| Outcome::failed(error.to_string()))
        }
        (Err(reason), _) | (_, Err(reason)) => Outcome::failed(reason),
    };
    turn.output.end_call(&outcome, true).await?;
    Ok(outcome)
}

/// Stops the search thread when the tool call is dropped, for example by a cancellation.
#[derive(Default)]
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn pattern(input: &Input) -> Result<Regex, String> {
    if input.query.is_empty() {
        return Err("The query is empty.".to_owned());
    }
    let text = match input.regex {
        true => input.query.clone(),
        false => regex::escape(&input.query),
    };
    RegexBuilder::new(&text)
        .case_insensitive(!input.query.chars().any(char::is_uppercase))
        .size_limit(1 << 20)
        .build()
        .map_err(|error| error.to_string())
}

fn search(pattern: &Regex, folder: PathBuf, roots: &Roots, stopped: &AtomicBool) -> Outcome {
    let mut found: Vec<String> = Vec::new();
    let mut full = false;
    for entry in walk(&folder).build().flatten() {
        if stopped.load(Ordering::Relaxed) || full {
            break;
        }
        let small = |data: std::fs::Metadata| data.is_file() && data.len() <= FILE_BYTES_MAX;
        if !entry.metadata().is_ok_and(small) {
            continue;
        }
        let Ok(bytes) = std::fs::read(entry.path()) else {
            continue;
        };
        if bytes[..bytes.len().min(8000)].contains(&0) || !pattern.is_match(&bytes) {
            continue;
        }
        for (number, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            if !pattern.is_match(line) {
                continue;
            }
            if found.len() == MATCHES_MAX {
                full = true;
                break;
            }
            let text: String = String::from_utf8_lossy(line)
                .trim()
                .chars()
                .take(LINE_CHARS_MAX)
                .collect();
            let file = roots.relative_to_cwd(entry.path());
            found.push(format!("{file}:{}: {text}", number + 1));
        }
    }
    if found.is_empty() {
        return Outcome::done("Nothing found.");
    }
    if full {
        found.push(format!("… only the first {MATCHES_MAX} matches are shown"));
    }
    Outcome::done(found.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search_fixture(query: &str, regex: bool) -> String {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::write(root.join("a.txt"), "One\ntwo ONE\nthree\n").unwrap();
        std::fs::write(root.join("binary"), b"one\0").unwrap();
        std::fs::write(root.join(".gitignore"), "hidden\n").unwrap();
        std::fs::write(root.join("hidden"), "one").unwrap();
        let roots = Roots::new(&root, &[]);
        let input = Input {
            query: query.to_owned(),
            path: None,
            regex,
        };
        match pattern(&input) {
            Ok(pattern) => search(&pattern, root, &roots, &AtomicBool::new(false)).text,
            Err(reason) => reason,
        }
    }

    #[test]
    fn matches_are_listed_with_file_and_line() {
        assert_eq!(
            search_fixture("one", false),
            "a.txt:1: One\na.txt:2: two ONE"
        );
        assert_eq!(search_fixture("One", false), "a.txt:1: One");
        assert_eq!(
            search_fixture("t.o|three", true),
            "a.txt:2: two ONE\na.txt:3: three"
        );
        assert_eq!(search_fixture("t.o", false), "Nothing found.");
    }

    #[test]
    fn invalid_regex_is_reported() {
        assert!(search_fixture("(", true).contains("regex parse error"));
    }
}
