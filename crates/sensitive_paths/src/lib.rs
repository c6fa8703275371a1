//! Sensitive paths: files that cause code to run later without being called, such as git hooks, tasks of editors and
//! configuration of agents.
//!
//! Code started by such a file runs outside of all limits and approvals of this server, often when the user does
//! something harmless: `git status`, opening a folder, `make`, a push. So a write needs the user's approval, whatever
//! the approval policy. `list` names the files, with the reason; `content` compares old and new content where the name
//! alone would ask too often; `git_config` reads git's configuration, which may have any name. Pure.
//!
//! Source code of the project is not sensitive, although it runs when the project is built or tested: `build.rs`,
//! `conftest.py`, `vite.config.ts`. The agent is there to write it.

mod content;
mod git_config;
mod list;

use std::path::{Component, Path};

use content::Content;
use list::{Entry, LIST};

const GIT_CONFIG: &str = "git runs programs that its configuration names, and this text is valid as such in any file \
     that `include.path` or an embedded repository points to";

/// Why any write to this path is sensitive as long as its content is not known. The path is relative to the project,
/// with links resolved.
pub fn sensitive_path(below: &Path) -> Option<&'static str> {
    let names = folded(below);
    entries(&names).map(|entry| entry.reason).next()
}

/// Why replacing the content `before` (`None`: there is no file) by `after` is sensitive. The path is relative to the
/// project, with links resolved.
///
/// The answer for `before: None` is never `None` if that for another `before` is not.
pub fn sensitive_change(below: &Path, before: Option<&[u8]>, after: &[u8]) -> Option<&'static str> {
    let names = folded(below);
    let named = entries(&names).find(|entry| entry.content.is_changed(before, after));
    let git_config = || {
        let changed = Content::GitConfig.is_changed(before, after);
        changed.then_some(GIT_CONFIG)
    };
    named.map(|entry| entry.reason).or_else(git_config)
}

/// The names of a path as the most tolerant file system compares them.
fn folded(path: &Path) -> Vec<String> {
    let fold = |part: Component| match part {
        Component::Normal(name) => Some(fold(&name.to_string_lossy())),
        _ => None,
    };
    path.components().filter_map(fold).collect()
}

fn fold(name: &str) -> String {
    // HFS+ ignores these characters.
    let ignored = |c: &char| matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}');
    let name: String = name.chars().filter(|c| !ignored(c)).collect();
    // By way of upper case, which also turns `ſ` into `s` and `ﬁ` into `fi`.
    let name = name.to_uppercase().to_lowercase();
    // Windows file systems drop dots and spaces at the end.
    name.trim_end_matches(['.', ' ']).to_owned()
}

fn entries(names: &[String]) -> impl Iterator<Item = &'static Entry> {
    LIST.iter().filter(move |entry| {
        entry
            .patterns
            .split_whitespace()
            .any(|one| fits(one, names))
    })
}

/// Whether a pattern of the list fits a path: consecutive names anywhere in it, or at its end if the pattern does not
/// end with `/`.
fn fits(pattern: &str, names: &[String]) -> bool {
    let (pattern, is_folder) = match pattern.strip_suffix('/') {
        Some(folder) => (folder, true),
        None => (pattern, false),
    };
    let length = pattern.split('/').count();
    let mut windows = names.windows(length);
    let same = |window: &[String]| {
        let mut pairs = pattern.split('/').zip(window);
        pairs.all(|(pattern, name)| fits_name(pattern, name))
    };
    match is_folder {
        true => windows.any(same),
        false => windows.next_back().is_some_and(same),
    }
}

/// A pattern contains at most one `*`.
fn fits_name(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, end)) => {
            name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_folded_have_a_reason_and_one_star_at_most() {
        let mut seen = std::collections::BTreeSet::new();
        for entry in LIST {
            assert!(entry.reason.len() > 10, "{}", entry.patterns);
            for pattern in entry.patterns.split_whitespace() {
                for name in pattern.trim_end_matches('/').split('/') {
                    assert_eq!(fold(name), name, "{pattern} never fits");
                    assert!(name.matches('*').count() <= 1, "{pattern}");
                    assert!(name.len() > name.matches('*').count(), "{pattern}");
                }
                assert!(seen.insert(pattern), "{pattern} is listed twice");
            }
        }
    }

    #[test]
    fn every_pattern_fits_a_path_made_from_it() {
        for entry in LIST {
            for pattern in entry.patterns.split_whitespace() {
                let end = if pattern.ends_with('/') { "file" } else { "" };
                let path = format!("deep/er/{}{end}", pattern.replace('*', "x"));
                let found: Vec<_> = entries(&folded(Path::new(&path)))
                    .map(|entry| entry.reason)
                    .collect();
                assert!(found.contains(&entry.reason), "{path}: {found:?}");
            }
        }
    }
}
