//! Resolution and completion of folder paths that users type.
//!
//! Typed text is untrusted and the disk may be slow, so all of it runs on blocking threads and
//! every listing is bounded.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use wire::FolderSuggestion;

use crate::error::HubError;

/// Maximum length of a typed path; longer ones cannot be opened on this system (`PATH_MAX`).
const PATH_BYTES_MAX: usize = 4096;
const SUGGESTIONS_MAX: usize = 100;
/// Maximum entries of a folder that are searched.
const SCAN_MAX: usize = 50_000;

/// Folders that complete a typed path.
#[derive(Debug, Default)]
pub struct Completions {
    pub folders: Vec<FolderSuggestion>,
    pub truncated: bool,
}

/// Resolves a typed path to the canonical path of a readable directory, or returns the reason why it cannot be used.
pub(crate) async fn resolve(typed: String, home: Option<PathBuf>) -> Result<String, HubError> {
    off_thread(move || resolve_now(&typed, home.as_deref()))
        .await
        .map_err(HubError::ProjectPath)
}

/// Directories whose paths begin with `typed`. An unreadable folder has no completions.
pub(crate) async fn complete(
    typed: String,
    home: Option<PathBuf>,
    added: HashSet<String>,
) -> Completions {
    off_thread(move || complete_now(&typed, home.as_deref(), &added)).await
}

async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(stopped) => std::panic::resume_unwind(stopped.into_panic()),
    }
}

fn resolve_now(typed: &str, home: Option<&Path>) -> Result<String, String> {
    let path = expand(typed.trim(), home)?;
    let real = path.canonicalize().map_err(|error| reason(&error))?;
    let metadata = real.metadata().map_err(|error| reason(&error))?;
    if !metadata.is_dir() {
        return Err("That is not a directory".to_owned());
    }
    std::fs::read_dir(&real).map_err(|error| reason(&error))?;
    real.into_os_string().into_string().map_err(|_| {
        "That path is not valid UTF-8, so it cannot be used. Rename the directory".to_owned()
    })
}

fn expand(typed: &str, home: Option<&Path>) -> Result<PathBuf, String> {
    if typed.is_empty() {
        return Err("Type the path of a directory".to_owned());
    }
    if typed.len() > PATH_BYTES_MAX {
        return Err("That path is longer than 4096 bytes".to_owned());
    }
    if typed.contains('\0') {
        return Err("A path cannot contain a NUL character".to_owned());
    }
    if let Some(rest) = typed.strip_prefix('~') {
        if !rest.is_empty() && !rest.starts_with('/') {
            return Err("`~` works only for your own home (`~/…`); type the whole path".to_owned());
        }
        let home = home.ok_or("This server has no home directory; type the whole path")?;
        return Ok(home.join(rest.trim_start_matches('/')));
    }
    let path = PathBuf::from(typed);
    if path.is_absolute() {
        Ok(path)
    } else {
        Err("Type an absolute path, such as /home/me/code or ~/code".to_owned())
    }
}

fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "Directory does not exist".to_owned(),
        ErrorKind::NotADirectory => "That is not a directory".to_owned(),
        ErrorKind::PermissionDenied => "That directory is not readable by this server".to_owned(),
        _ => format!("That directory cannot be used: {error}"),
    }
}

fn complete_now(typed: &str, home: Option<&Path>, added: &HashSet<String>) -> Completions {
    let typed = match typed.trim_start() {
        "" | "~" => "~/",
        text => text,
    };
    let Some(cut) = typed.rfind('/') else {
        return Completions::default();
    };
    let (parent_typed, prefix) = typed.split_at(cut + 1);
    let Ok(parent) = expand(parent_typed, home) else {
        return Completions::default();
    };
    let Ok(entries) = std::fs::read_dir(&parent) else {
        return Completions::default();
    };
    let prefix = prefix.to_lowercase();
    let mut truncated = false;
    let mut names = Vec::new();
    for (count, entry) in entries.flatten().enumerate() {
        if count == SCAN_MAX {
            truncated = true;
            break;
        }
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let wanted = name.to_lowercase().starts_with(&prefix)
            && (prefix.starts_with('.') || !name.starts_with('.'));
        if wanted && is_directory(&entry) {
            names.push(name);
        }
    }
    names.sort_by_cached_key(|name| (name.to_lowercase(), name.clone()));
    truncated |= names.len() > SUGGESTIONS_MAX;
    names.truncate(SUGGESTIONS_MAX);
    let folders = names
        .into_iter()
        .map(|name| FolderSuggestion {
            path: format!("{parent_typed}{name}/"),
            added: parent
                .join(&name)
                .canonicalize()
                .is_ok_and(|real| real.to_str().is_some_and(|real| added.contains(real))),
            name,
        })
        .collect();
    Completions { folders, truncated }
}

fn is_directory(entry: &std::fs::DirEntry) -> bool {
    match entry.file_type() {
        Ok(kind) if kind.is_symlink() => entry.path().is_dir(),
        Ok(kind) => kind.is_dir(),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(completions: &Completions) -> Vec<&str> {
        completions
            .folders
            .iter()
            .map(|folder| folder.name.as_str())
            .collect()
    }

    fn tree() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for folder in ["apple", "Apricot", "banana", ".hidden"] {
            std::fs::create_dir(root.path().join(folder)).unwrap();
        }
        std::fs::write(root.path().join("apart.txt"), "").unwrap();
        root
    }

    #[test]
    fn completion_lists_folders_by_prefix_ignoring_case() {
        let root = tree();
        let found = complete_now(
            &format!("{}/ap", root.path().display()),
            None,
            &HashSet::new(),
        );
        assert_eq!(names(&found), ["apple", "Apricot"]);
        assert!(found.folders[0].path.ends_with("/apple/"));
    }

    #[test]
    fn hidden_folders_are_listed_once_the_dot_is_typed() {
        let root = tree();
        let base = root.path().display();
        assert_eq!(
            names(&complete_now(&format!("{base}/"), None, &HashSet::new())),
            ["apple", "Apricot", "banana"]
        );
        assert_eq!(
            names(&complete_now(&format!("{base}/."), None, &HashSet::new())),
            [".hidden"]
        );
    }

    #[test]
    fn completions_of_a_tilde_path_keep_the_tilde() {
        let root = tree();
        let found = complete_now("~/ban", Some(root.path()), &HashSet::new());
        assert_eq!(found.folders[0].path, "~/banana/");
        assert_eq!(
            names(&complete_now("", Some(root.path()), &HashSet::new())),
            ["apple", "Apricot", "banana"]
        );
    }

    #[test]
    fn project_folder_is_marked_also_behind_a_symlink() {
        let root = tree();
        let real = root.path().canonicalize().unwrap();
        std::os::unix::fs::symlink(real.join("apple"), real.join("zlink")).unwrap();
        let added = HashSet::from([real.join("apple").to_str().unwrap().to_owned()]);
        let found = complete_now(&format!("{}/", real.display()), None, &added);
        let marked: Vec<_> = found
            .folders
            .iter()
            .filter(|folder| folder.added)
            .map(|folder| folder.name.as_str())
            .collect();
        assert_eq!(marked, ["apple", "zlink"]);
    }

    #[test]
    fn unusable_paths_have_no_completions() {
        for typed in [
            &format!("~{}", "/".repeat(1_000_000)),
            "relative/x",
            "~other/x",
            "/no/such/place/x",
            "\0/",
            "plain",
        ] {
            assert!(
                complete_now(typed, None, &HashSet::new())
                    .folders
                    .is_empty(),
                "{typed:?}"
            );
        }
    }

    #[test]
    fn long_listing_is_truncated_and_flagged() {
        let root = tempfile::tempdir().unwrap();
        for number in 0..SUGGESTIONS_MAX + 1 {
            std::fs::create_dir(root.path().join(format!("d{number:04}"))).unwrap();
        }
        let found = complete_now(
            &format!("{}/", root.path().display()),
            None,
            &HashSet::new(),
        );
        assert_eq!(
            (found.folders.len(), found.truncated),
            (SUGGESTIONS_MAX, true)
        );
    }

    #[test]
    fn paths_with_dots_and_links_resolve_to_the_canonical_path() {
        let root = tree();
        let real = root.path().canonicalize().unwrap();
        std::os::unix::fs::symlink(real.join("apple"), real.join("link")).unwrap();
        let expected = real.join("apple").to_str().unwrap().to_owned();
        for typed in ["apple", "link", "banana/../apple", "./apple/.", "apple/"] {
            assert_eq!(
                resolve_now(&format!("{}/{typed}", real.display()), None),
                Ok(expected.clone()),
                "{typed}"
            );
        }
        assert_eq!(resolve_now("  ~/apple \n", Some(&real)), Ok(expected));
    }

    #[test]
    fn each_unusable_path_gets_a_specific_message() {
        let root = tree();
        let base = root.path().display();
        let cases = [
            (String::new(), "Type the path of a directory"),
            (
                "code/app".into(),
                "Type an absolute path, such as /home/me/code or ~/code",
            ),
            (
                "~nobody/x".into(),
                "`~` works only for your own home (`~/…`); type the whole path",
            ),
            (format!("{base}/missing"), "Directory does not exist"),
            (format!("{base}/apart.txt"), "That is not a directory"),
            (format!("{base}/apart.txt/x"), "That is not a directory"),
            ("/a\0b".into(), "A path cannot contain a NUL character"),
            (
                format!("~{}", "/".repeat(5000)),
                "That path is longer than 4096 bytes",
            ),
        ];
        for (typed, sentence) in cases {
            assert_eq!(
                resolve_now(&typed, None).unwrap_err(),
                sentence,
                "{typed:?}"
            );
        }
    }
}
