//! Which tool calls need the user's approval under any policy. Pure.

use std::path::Path;

use conversation::ToolCallPatch;
use sensitive_paths::is_sensitive;
use wire::{ToolContent, ToolKind};

/// Whether the tool call of a permission request writes a sensitive path, as far as the agent describes it.
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
