//! Sensitive paths: files that cause code to run later, such as hooks and the configuration of agents and editors.
//!
//! Writing one looks like any other edit, and the code it starts runs without confinement or approval. So writing one
//! always needs the user's approval. Pure: paths in, yes or no out.

use std::path::{Component, Path};

/// Folders in which every file is sensitive, in lower case.
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

/// Names of files that are sensitive in any folder, in lower case.
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

/// Whether a path below the project is sensitive. Symbolic links must be resolved before.
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
    fn hooks_and_configuration_are_sensitive_in_any_folder_and_spelling() {
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
