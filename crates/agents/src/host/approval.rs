//! Which permission requests of an agent need the user's approval under any policy.
//!
//! What the agent will do is known from its description only. It is compared with the files of the project, which are
//! read and never changed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use conversation::ToolCallPatch;
use sensitive_paths::{sensitive_change, sensitive_path};
use wire::{ToolContent, ToolKind};

use super::confine::Project;

/// Whether the tool call of a permission request changes a sensitive path, as far as the agent describes it.
pub fn would_write(patch: &ToolCallPatch, project: &Path) -> bool {
    let only_looks = matches!(
        patch.kind,
        Some(ToolKind::Read | ToolKind::Search | ToolKind::Think | ToolKind::Fetch)
    );
    let mut changes = Changes::new(project);
    let mut described = vec![];
    for part in patch.content.iter().flatten() {
        if let ToolContent::Diff {
            path,
            old_text,
            new_text,
        } = part
        {
            described.push(path);
            if changes.is_sensitive(path.as_ref(), old_text.as_deref(), new_text) {
                return true;
            }
        }
    }
    let named = patch.locations.iter().flatten();
    let mut named = named.filter(|location| !described.contains(&&location.path));
    !only_looks && named.any(|location| changes.is_sensitive_path(location.path.as_ref()))
}

/// The changes of a tool call, in order.
struct Changes<'a> {
    path: &'a Path,
    project: Option<Project>,
    /// By path: the content on disk, and that after the changes so far.
    files: BTreeMap<PathBuf, (Content, Content)>,
}

/// The content of a file, if it exists and can be read.
type Content = Option<Vec<u8>>;

impl<'a> Changes<'a> {
    fn new(path: &'a Path) -> Self {
        Self {
            path,
            project: Project::open(path, &[]).ok(),
            files: BTreeMap::new(),
        }
    }

    /// Whether a change is sensitive. `old` is the text that `new` replaces: the whole content or a part of it.
    fn is_sensitive(&mut self, path: &Path, old: Option<&str>, new: &str) -> bool {
        let (named, real, content) = self.look(path);
        let (disk, now) = self
            .files
            .entry(real.clone())
            .or_insert_with(|| (content.clone(), content));
        let old = old.filter(|old| !old.is_empty());
        let now_text = now.as_deref().map(str::from_utf8);
        let variants = match (old, now_text) {
            (None, _) => vec![new.as_bytes().to_vec()],
            // Either one or every place may be meant.
            (Some(old), Some(Ok(now))) if now.contains(old) => vec![
                now.replace(old, new).into_bytes(),
                now.replacen(old, new, 1).into_bytes(),
            ],
            // Not the content that the agent has seen, so the result is not known.
            _ => {
                let mut paths = [&named, &real].into_iter();
                return paths.any(|path| sensitive_path(path).is_some());
            }
        };
        let sensitive = variants.iter().any(|after| {
            let change = |path: &PathBuf| sensitive_change(path, disk.as_deref(), after);
            [&named, &real]
                .into_iter()
                .any(|path| change(path).is_some())
        });
        *now = variants.into_iter().next_back();
        sensitive
    }

    fn is_sensitive_path(&self, path: &Path) -> bool {
        let (named, real, _) = self.look(path);
        [named, real]
            .iter()
            .any(|path| sensitive_path(path).is_some())
    }

    /// The path below the project as named and with links resolved, and the content there.
    fn look(&self, path: &Path) -> (PathBuf, PathBuf, Content) {
        let named = path.strip_prefix(self.path).unwrap_or(path).to_owned();
        match self.project.as_ref().and_then(|project| project.look(path)) {
            Some((real, content)) => (named, real, content),
            None => (named.clone(), named, None),
        }
    }
}
