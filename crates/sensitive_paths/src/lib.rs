//! Sensitive paths: files that cause code to run later, such as git hooks and the configuration of agents and editors.
//!
//! Code started by such a file runs outside of all limits and approvals of this server. So each write needs the user's
//! approval, whatever the approval policy. Pure.

use std::path::{Component, Path};

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
pub fn is_sensitive(below: &Path) -> bool {
    // Some file systems ignore case, and some drop dots and spaces at the end of a name.
    let folded = |part: Component| {
        let name = part.as_os_str().to_string_lossy().to_lowercase();
        name.trim_end_matches(['.', ' ']).to_owned()
    };
    let names: Vec<String> = below.components().map(folded).collect();
    let file = names.last().map(String::as_str).unwrap_or_default();
    names.iter().any(|name| FOLDERS.contains(&name.as_str())) || FILES.contains(&file)
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
