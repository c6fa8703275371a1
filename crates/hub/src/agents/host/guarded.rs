//! Sensitive paths: files that cause code to run later, such as git hooks and the configuration of agents and editors.
//!
//! Code started by such a file runs outside of all limits and approvals of this server. So each write needs the user's
//! approval, whatever the approval policy. Pure.

use std::path::{Component, Path};

use wire::{ToolContent, ToolKind};

use crate::agents::from_acp::ToolCallPatch;

/// Directory names, in lower case; all paths below such a directory are sensitive.
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

/// File names, in lower case; such a file is sensitive in any directory.
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

/// Whether a path relative to the project is sensitive. Links must be resolved before.
pub(super) fn is_sensitive(below: &Path) -> bool {
    // Some file systems ignore case, and some drop dots and spaces at the end of a name.
    let folded = |part: Component| {
        let name = part.as_os_str().to_string_lossy().to_lowercase();
        name.trim_end_matches(['.', ' ']).to_owned()
    };
    let names: Vec<String> = below.components().map(folded).collect();
    let file = names.last().map(String::as_str).unwrap_or_default();
    names.iter().any(|name| FOLDERS.contains(&name.as_str())) || FILES.contains(&file)
}

/// Whether a tool call of a permission request would write to a sensitive path, according to its own fields.
pub fn would_write(patch: &ToolCallPatch, project: &Path) -> bool {
    let sensitive = |path: &str| {
        let path = Path::new(path);
        is_sensitive(path.strip_prefix(project).unwrap_or(path))
    };
    let only_looks = matches!(
        patch.kind,
        Some(ToolKind::Read | ToolKind::Search | ToolKind::Think | ToolKind::Fetch)
    );
    let named = patch.locations.iter().flatten();
    let changed = patch.content.iter().flatten();
    let is_sensitive_change =
        |part: &ToolContent| matches!(part, ToolContent::Diff { path, .. } if sensitive(path));
    changed.into_iter().any(is_sensitive_change)
        || (!only_looks && named.into_iter().any(|location| sensitive(&location.path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_and_configuration_are_sensitive_in_any_folder_and_case() {
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
            assert!(is_sensitive(Path::new(path)), "{path}");
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
            assert!(!is_sensitive(Path::new(path)), "{path}");
        }
    }
}
