//! Files by which other programs are told what to run: hooks, and the configuration of agents and editors.
//!
//! Writing one looks like any other edit and runs something later, outside of everything that is confined and asked
//! here. So a person is asked each time, whatever the policy. Pure.

use std::path::{Component, Path};

use wire::{ToolContent, ToolKind};

use crate::agents::from_acp::ToolCallPatch;

/// Everything below a folder of this name. In lower case.
const FOLDERS: &[&str] = &[
    ".aider",
    ".claude",
    ".codex",
    ".continue",
    ".cursor",
    ".devcontainer",
    ".fleet",
    ".gemini",
    ".git",
    ".githooks",
    ".husky",
    ".idea",
    ".nova",
    ".nvim",
    ".opencode",
    ".vim",
    ".vscode",
    ".windsurf",
    ".zed",
];

/// A file of this name, wherever it is. In lower case.
const FILES: &[&str] = &[
    ".aider.conf.yml",
    ".claude.json",
    ".cursorrules",
    ".dir-locals.el",
    ".envrc",
    ".exrc",
    ".git",
    ".gitconfig",
    ".mcp.json",
    ".nvim.lua",
    ".nvimrc",
    ".pre-commit-config.yaml",
    ".vimrc",
    ".windsurfrules",
    "lefthook.yml",
    "opencode.json",
];

/// Whether a path below the project is such a file, or lies in such a folder. Links have to be followed before.
pub(super) fn is_guarded(below: &Path) -> bool {
    // Not every file system tells capitals apart, and some drop what is at a name's end.
    let folded = |part: Component| {
        let name = part.as_os_str().to_string_lossy().to_lowercase();
        name.trim_end_matches(['.', ' ']).to_owned()
    };
    let names: Vec<String> = below.components().map(folded).collect();
    let file = names.last().map(String::as_str).unwrap_or_default();
    names.iter().any(|name| FOLDERS.contains(&name.as_str())) || FILES.contains(&file)
}

/// Whether a tool call that an agent asks permission for would write such a file, as far as it says.
pub fn would_write(patch: &ToolCallPatch, project: &Path) -> bool {
    let guarded = |path: &str| {
        let path = Path::new(path);
        is_guarded(path.strip_prefix(project).unwrap_or(path))
    };
    let only_looks = matches!(
        patch.kind,
        Some(ToolKind::Read | ToolKind::Search | ToolKind::Think | ToolKind::Fetch)
    );
    let named = patch.locations.iter().flatten();
    let changed = patch.content.iter().flatten();
    let is_guarded_change =
        |part: &ToolContent| matches!(part, ToolContent::Diff { path, .. } if guarded(path));
    changed.into_iter().any(is_guarded_change)
        || (!only_looks && named.into_iter().any(|location| guarded(&location.path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_and_configuration_are_guarded_in_any_folder_and_spelling() {
        for path in [
            ".git/hooks/pre-commit",
            ".git/config",
            ".GIT/hooks/x",
            "deep/er/.git/hooks/x",
            ".git",
            "lib/.git",
            ".git./config",
            ".claude/settings.json",
            ".Claude/settings.local.json",
            ".codex/config.toml",
            ".cursor/mcp.json",
            ".mcp.json",
            "sub/.mcp.json",
            ".vscode/tasks.json",
            ".idea/workspace.xml",
            ".zed/tasks.json",
            ".devcontainer/devcontainer.json",
            ".husky/pre-push",
            ".envrc",
            ".exrc",
        ] {
            assert!(is_guarded(Path::new(path)), "{path}");
        }
        for path in [
            "src/main.rs",
            "git/hooks/x",
            ".gitignore",
            "claude/settings.json",
            "CLAUDE.md",
            "AGENTS.md",
            "vscode/tasks.json",
            ".git-notes.md",
            "notes/.gitkeep",
        ] {
            assert!(!is_guarded(Path::new(path)), "{path}");
        }
    }
}
