//! Search for files of a project by part of their path.
//!
//! Results leave out ignored and hidden files and the targets of symlinks, so nothing outside the
//! folder is found. The walk runs on a blocking thread, is bounded, and ends early when the connection
//! starts another search or closes.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering as Memory};
use std::sync::{Arc, Mutex, PoisonError};

use ignore::WalkBuilder;

const FOUND_MAX: usize = 100;
/// Maximum directory entries visited by one search.
const WALKED_MAX: usize = 200_000;
const QUERY_CHARS_MAX: usize = 200;

/// Files of a project that match a search.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FoundFiles {
    /// Paths relative to the project, best match first.
    pub paths: Vec<String>,
    /// Whether there may be more matches.
    pub truncated: bool,
}

/// The running searches, at most one per connection.
#[derive(Clone, Default)]
pub(crate) struct Searches {
    current: Arc<Mutex<HashMap<u64, Arc<AtomicBool>>>>,
}

impl Searches {
    /// Begins a search and ends the connection's previous one, which returns what it has found so far.
    pub(crate) fn begin(&self, connection: u64) -> Search {
        let stop = Arc::new(AtomicBool::new(false));
        let earlier = self.lock().insert(connection, stop.clone());
        if let Some(earlier) = earlier {
            earlier.store(true, Memory::Relaxed);
        }
        Search {
            searches: self.clone(),
            connection,
            stop,
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Arc<AtomicBool>>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running search. Dropping it ends it, for example when the request is abandoned.
pub struct Search {
    searches: Searches,
    connection: u64,
    stop: Arc<AtomicBool>,
}

impl Search {
    pub(crate) async fn find(&self, folder: PathBuf, query: String, limit: u32) -> FoundFiles {
        let stop = self.stop.clone();
        let work = move || find_now(&folder, &query, limit as usize, &stop);
        match tokio::task::spawn_blocking(work).await {
            Ok(found) => found,
            Err(stopped) => match stopped.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => FoundFiles::default(),
            },
        }
    }
}

impl Drop for Search {
    fn drop(&mut self) {
        self.stop.store(true, Memory::Relaxed);
        let mut current = self.searches.lock();
        let now = current.get(&self.connection);
        if now.is_some_and(|now| Arc::ptr_eq(now, &self.stop)) {
            current.remove(&self.connection);
        }
    }
}

fn find_now(folder: &Path, query: &str, limit: usize, stop: &AtomicBool) -> FoundFiles {
    let limit = limit.clamp(1, FOUND_MAX);
    let query: Vec<char> = query
        .chars()
        .filter(|one| !one.is_whitespace())
        .take(QUERY_CHARS_MAX)
        .flat_map(char::to_lowercase)
        .collect();
    let mut found: Vec<(Fit, String)> = vec![];
    let mut truncated = false;
    let mut path_chars = vec![];
    for (walked, entry) in walk(folder).build().flatten().enumerate() {
        if walked == WALKED_MAX || stop.load(Memory::Relaxed) {
            truncated = true;
            break;
        }
        if !entry.file_type().is_some_and(|kind| kind.is_file()) {
            continue;
        }
        let Some(path) = entry
            .path()
            .strip_prefix(folder)
            .ok()
            .and_then(Path::to_str)
            // A path with control characters cannot be put into a message.
            .filter(|path| !path.chars().any(char::is_control))
        else {
            continue;
        };
        path_chars.clear();
        path_chars.extend(path.chars().map(lower));
        if let Some(fit) = fit(&query, &path_chars) {
            found.push((fit, path.to_owned()));
        }
        // Bounds the memory for a folder in which every file matches.
        if found.len() >= 8 * FOUND_MAX {
            truncated |= keep_best(&mut found, limit);
        }
    }
    truncated |= keep_best(&mut found, limit);
    let paths = found.into_iter().map(|(_, path)| path).collect();
    FoundFiles { paths, truncated }
}

/// The lower case of a character as exactly one character, so that indexes into the path stay valid.
fn lower(one: char) -> char {
    let mut lowered = one.to_lowercase();
    match (lowered.next(), lowered.next()) {
        (Some(lower), None) => lower,
        _ => one,
    }
}

fn walk(folder: &Path) -> WalkBuilder {
    let mut walk = WalkBuilder::new(folder);
    // Ignore files of parent folders apply only within a git repository; outside of one, they are unrelated to the
    // project.
    let in_repository = folder.ancestors().any(|at| at.join(".git").exists());
    walk.hidden(true)
        .require_git(false)
        .parents(in_repository)
        .follow_links(false)
        .same_file_system(true);
    walk
}

fn keep_best(found: &mut Vec<(Fit, String)>, limit: usize) -> bool {
    found.sort_unstable_by(|(a, a_path), (b, b_path)| {
        a.cmp(b)
            .then_with(|| a_path.len().cmp(&b_path.len()))
            .then_with(|| a_path.cmp(b_path))
    });
    let more = found.len() > limit;
    found.truncate(limit);
    more
}

/// How well a path matches the query; less is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Fit {
    kind: Kind,
    /// Number of contiguous pieces of the path that together contain the query.
    pieces: usize,
    /// Number of pieces that begin inside a word.
    within: usize,
    depth: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    NameBegins,
    NameHolds,
    PathHolds,
    NameScattered,
    PathScattered,
}

/// Matches the characters of `query` in order against `path`; both are in lower case. `None` if they do not occur.
fn fit(query: &[char], path: &[char]) -> Option<Fit> {
    let depth = path.iter().filter(|one| **one == '/').count();
    let fit = |kind, pieces, within| Fit {
        kind,
        pieces,
        within,
        depth,
    };
    if query.is_empty() {
        return Some(fit(Kind::NameBegins, 0, 0));
    }
    let name = path
        .iter()
        .rposition(|one| *one == '/')
        .map_or(0, |at| at + 1);
    if path[name..].starts_with(query) {
        return Some(fit(Kind::NameBegins, 1, 0));
    }
    if let Some(at) = holds(&path[name..], query) {
        let within = usize::from(!begins_word(path, name + at));
        return Some(fit(Kind::NameHolds, 1, within));
    }
    if let Some(at) = holds(path, query) {
        let within = usize::from(!begins_word(path, at));
        return Some(fit(Kind::PathHolds, 1, within));
    }
    // Matched from the end, because the file name matters more than its folders.
    let (mut pieces, mut within, mut next) = (1, 0, path.len());
    let mut last: Option<usize> = None;
    for wanted in query.iter().rev() {
        let at = path[..next].iter().rposition(|one| one == wanted)?;
        if let Some(last) = last.filter(|last| at + 1 != *last) {
            pieces += 1;
            within += usize::from(!begins_word(path, last));
        }
        (last, next) = (Some(at), at);
    }
    within += usize::from(!begins_word(path, next));
    let kind = match next.cmp(&name) {
        Ordering::Less => Kind::PathScattered,
        Ordering::Equal | Ordering::Greater => Kind::NameScattered,
    };
    Some(fit(kind, pieces, within))
}

fn holds(text: &[char], part: &[char]) -> Option<usize> {
    text.windows(part.len()).position(|piece| piece == part)
}

fn begins_word(path: &[char], at: usize) -> bool {
    at == 0 || !path[at - 1].is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for file in files {
            let path = root.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        root
    }

    fn found(root: &tempfile::TempDir, query: &str) -> Vec<String> {
        find_now(root.path(), query, 20, &AtomicBool::new(false)).paths
    }

    #[test]
    fn matches_are_ranked_by_name_prefix_then_substring_then_scattered() {
        let root = tree(&[
            "src/main.rs",
            "src/domain.rs",
            "main/other.rs",
            "src/my_archive_index.rs",
            "unlike.txt",
        ]);
        let all = [
            "src/main.rs",
            "src/domain.rs",
            "main/other.rs",
            "src/my_archive_index.rs",
        ];
        assert_eq!(found(&root, "MAIN"), all);
        assert_eq!(found(&root, "ma in"), all);
        assert_eq!(found(&root, "mainx"), ["src/my_archive_index.rs"]);
    }

    #[test]
    fn query_may_skip_parts_of_a_path() {
        let root = tree(&[
            "crates/hub/src/folders.rs",
            "crates/hub/src/files.rs",
            "x/y.rs",
        ]);
        assert_eq!(found(&root, "hub/fol"), ["crates/hub/src/folders.rs"]);
        assert_eq!(found(&root, "src/f").len(), 2);
    }

    #[test]
    fn empty_query_lists_the_shallowest_files_first() {
        let root = tree(&["a/b/deep.txt", "zebra.txt", "a/near.txt"]);
        assert_eq!(
            found(&root, ""),
            ["zebra.txt", "a/near.txt", "a/b/deep.txt"]
        );
    }

    #[test]
    fn ignored_files_hidden_files_and_links_are_left_out() {
        let root = tree(&["kept.txt", "built/left.txt", ".secret/left.txt", ".env"]);
        let outside = tree(&["left.txt"]);
        std::fs::write(root.path().join(".gitignore"), "built/\n").unwrap();
        std::os::unix::fs::symlink(outside.path(), root.path().join("link")).unwrap();
        std::os::unix::fs::symlink(
            outside.path().join("left.txt"),
            root.path().join("linked.txt"),
        )
        .unwrap();
        assert_eq!(found(&root, ""), ["kept.txt"]);
        assert!(found(&root, "../").is_empty());
    }

    #[test]
    fn ignore_files_of_parent_folders_apply_only_within_a_repository() {
        let root = tree(&["app/kept.txt"]);
        std::fs::write(root.path().join(".gitignore"), "*\n").unwrap();
        let app = root.path().join("app");
        let names = || find_now(&app, "", 20, &AtomicBool::new(false)).paths;
        assert_eq!(names(), ["kept.txt"]);
        std::fs::create_dir(root.path().join(".git")).unwrap();
        assert!(names().is_empty());
    }

    #[test]
    fn best_of_many_matches_are_returned_with_the_truncated_flag() {
        let many: Vec<String> = (0..2000).map(|number| format!("a/x{number}.txt")).collect();
        let mut names: Vec<&str> = many.iter().map(String::as_str).collect();
        names.push("z/x.txt");
        let root = tree(&names);
        let found = find_now(root.path(), "x.t", 3, &AtomicBool::new(false));
        assert_eq!(found.paths[0], "z/x.txt");
        assert_eq!((found.paths.len(), found.truncated), (3, true));
    }

    #[test]
    fn stopped_search_returns_at_once_as_truncated() {
        let root = tree(&["a.txt"]);
        let found = find_now(root.path(), "", 20, &AtomicBool::new(true));
        assert_eq!((found.paths.len(), found.truncated), (0, true));
    }

    #[tokio::test]
    async fn next_search_of_a_connection_ends_the_previous_one() {
        let root = tree(&["a.txt"]);
        let searches = Searches::default();
        let (first, other) = (searches.begin(1), searches.begin(2));
        let second = searches.begin(1);
        let found = async |search: &Search| {
            let found = search.find(root.path().to_owned(), "a".into(), 20).await;
            found.paths.len()
        };
        assert_eq!(found(&first).await, 0);
        assert_eq!((found(&second).await, found(&other).await), (1, 1));
        drop(first);
        assert_eq!(searches.lock().len(), 2, "the second search still runs");
        drop((second, other));
        assert!(searches.lock().is_empty());
    }

    #[test]
    fn missing_folder_gives_an_empty_result() {
        let gone = Path::new("/no/such/folder");
        let found = find_now(gone, "x", 20, &AtomicBool::new(false));
        assert_eq!(found, FoundFiles::default());
    }
}
