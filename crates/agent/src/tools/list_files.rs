//! `list_files`: lists a folder without the files that git ignores.

use std::path::Path;

use agent_client_protocol_schema::v1 as acp;
use ignore::WalkBuilder;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Offered, begin, mark_in_progress, schema};
use crate::turn::{Stop, Turn};
use crate::turn_output::Outcome;

pub(super) const NAME: &str = "list_files";
const ENTRIES_MAX: usize = 400;
/// Maximum entries visited, so that a huge folder does not take too long.
const WALKED_MAX: usize = 20_000;
const DEPTH: usize = 3;

#[derive(Deserialize)]
struct Input {
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    depth: Option<usize>,
}

pub(super) fn offered() -> Offered {
    let properties = json!({
        "path": {"type": "string", "description": "A folder, relative to the project. Default: the project folder."},
        "depth": {"type": "integer", "minimum": 1, "maximum": 20, "description": "Maximum depth. Default: 3."},
    });
    Offered {
        name: NAME,
        description: "Lists files and folders of the project, without files ignored by git.",
        schema: schema(properties, &[]),
    }
}

pub(super) async fn run(turn: &mut Turn, input: Value) -> Result<Outcome, Stop> {
    let title = |input: &Input| match input.path.as_deref() {
        None | Some("" | ".") => "List the project's files".to_owned(),
        Some(path) => format!("List {path}"),
    };
    let input: Input = match begin(turn, NAME, acp::ToolKind::Search, input, title).await? {
        Ok(input) => input,
        Err(outcome) => return Ok(outcome),
    };
    let outcome = match turn.roots.resolve(input.path.as_deref().unwrap_or(".")) {
        Ok(path) if path.is_dir() => {
            mark_in_progress(turn, Some(&path)).await?;
            let depth = input.depth.unwrap_or(DEPTH).clamp(1, 20);
            let listed = tokio::task::spawn_blocking(move || list(&path, depth)).await;
            listed.unwrap_or_else(|error| Outcome::failed(error.to_string()))
        }
        Ok(path) => Outcome::failed(format!(
            "There is no folder `{}`.",
            turn.roots.relative_to_cwd(&path)
        )),
        Err(reason) => Outcome::failed(reason),
    };
    turn.output.end_call(&outcome, true).await?;
    Ok(outcome)
}

/// Directory walk shared by `list_files` and `search`.
pub(super) fn walk(folder: &Path) -> WalkBuilder {
    let mut walk = WalkBuilder::new(folder);
    // Hidden files such as `.github` are part of a project; git's own data is not.
    walk.hidden(false)
        .require_git(false)
        .follow_links(false)
        .filter_entry(|entry| entry.file_name() != ".git");
    walk
}

fn list(folder: &Path, depth: usize) -> Outcome {
    let mut found = Vec::new();
    let mut walked = 0;
    for entry in walk(folder).max_depth(Some(depth)).build().flatten() {
        walked += 1;
        if walked > WALKED_MAX {
            break;
        }
        let Ok(inside) = entry.path().strip_prefix(folder) else {
            continue;
        };
        if inside.as_os_str().is_empty() {
            continue;
        }
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        let slash = if is_folder { "/" } else { "" };
        found.push((entry.depth(), format!("{}{slash}", inside.display())));
    }
    // Omit the deepest entries first.
    found.sort_by_key(|(depth, _)| *depth);
    let more = found.len().saturating_sub(ENTRIES_MAX);
    found.truncate(ENTRIES_MAX);
    let mut lines: Vec<_> = found.into_iter().map(|(_, line)| line).collect();
    lines.sort();
    if lines.is_empty() {
        return Outcome::done("This folder is empty.");
    }
    if walked > WALKED_MAX {
        lines.push("… and many more".to_owned());
    } else if more > 0 {
        lines.push(format!("… and {more} more"));
    }
    Outcome::done(lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_omits_git_ignored_files_and_includes_hidden_ones() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for folder in ["src/deep/er", "target", ".git/objects", ".github"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        for file in [
            "src/main.rs",
            "src/deep/er/x",
            "target/big",
            ".git/config",
            ".github/ci.yml",
            ".gitignore",
        ] {
            std::fs::write(root.join(file), "").unwrap();
        }
        std::fs::write(root.join(".gitignore"), "target/\n").unwrap();
        let listed = list(root, 3).text;
        let lines: Vec<_> = listed.lines().collect();
        assert_eq!(
            lines,
            [
                ".github/",
                ".github/ci.yml",
                ".gitignore",
                "src/",
                "src/deep/",
                "src/deep/er/",
                "src/main.rs"
            ]
        );
    }

    #[test]
    fn list_of_a_huge_folder_omits_the_deepest_entries() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("a")).unwrap();
        for number in 0..ENTRIES_MAX {
            std::fs::write(dir.path().join(format!("a/{number}")), "").unwrap();
        }
        std::fs::write(dir.path().join("z"), "").unwrap();
        let listed = list(dir.path(), 3).text;
        assert!(listed.contains("\nz\n"));
        assert!(listed.ends_with("… and 2 more"));
    }
}
