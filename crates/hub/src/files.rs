//! Files of a project, found by part of their path.
//!
//! What git ignores, what is hidden and what a link leads to is no part of the answer, so nothing
//! outside the folder can be. The walk runs off the async threads, ends at a bound, and ends early
//! when whoever asked asks again or goes away.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering as Memory};
use std::sync::{Arc, Mutex, PoisonError};

use ignore::WalkBuilder;

const FOUND_MAX: usize = 100;
/// Where a walk ends, however large the folder is.
const WALKED_MAX: usize = 200_000;
const QUERY_CHARS_MAX: usize = 200;

#[derive(Debug, Default, PartialEq, Eq)]
pub struct FoundFiles {
    /// Relative to the project, the best first.
    pub paths: Vec<String>,
    /// Whether there may be more.
    pub truncated: bool,
}

/// The searches under way: at most one for each connection.
#[derive(Clone, Default)]
pub(crate) struct Searches {
    current: Arc<Mutex<HashMap<u64, Arc<AtomicBool>>>>,
}

impl Searches {
    /// Ends the search this connection still has, if any: it answers with what it has found.
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

/// A search that has its turn; dropped, it is over, also when nobody waits for its answer any more.
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
            // It could not be written into a message.
            .filter(|path| !path.chars().any(char::is_control))
        else {
            continue;
        };
        path_chars.clear();
        path_chars.extend(path.chars().map(lower));
        if let Some(fit) = fit(&query, &path_chars) {
            found.push((fit, path.to_owned()));
        }
        // So that a folder where everything fits costs no more than what is shown of it.
        if found.len() >= 8 * FOUND_MAX {
            truncated |= keep_best(&mut found, limit);
        }
    }
    truncated |= keep_best(&mut found, limit);
    let paths = found.into_iter().map(|(_, path)| path).collect();
    FoundFiles { paths, truncated }
}

/// One character for one, so that places in the path stay what they are.
fn lower(one: char) -> char {
    let mut lowered = one.to_lowercase();
    match (lowered.next(), lowered.next()) {
        (Some(lower), None) => lower,
        _ => one,
    }
}

fn walk(folder: &Path) -> WalkBuilder {
    let mut walk = WalkBuilder::new(folder);
    // A project within a repository is ignored as that says; one outside of any is not to be judged
    // by what stands in the folders above it.
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

/// How well a path fits: less is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Fit {
    kind: Kind,
    /// How many pieces the query falls into.
    pieces: usize,
    /// Of them, those that begin within a word.
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

/// Whether the characters of `query` come in `path` in their order, and how well. Both in lower case.
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
    // From the end, because the name says more than the folders before it.
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
    fn names_that_begin_alike_come_before_those_that_hold_it_and_those_that_scatter_it() {
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
    fn folders_can_be_left_out_of_a_path() {
        let root = tree(&[
            "crates/hub/src/folders.rs",
            "crates/hub/src/files.rs",
            "x/y.rs",
        ]);
        assert_eq!(found(&root, "hub/fol"), ["crates/hub/src/folders.rs"]);
        assert_eq!(found(&root, "src/f").len(), 2);
    }

    #[test]
    fn without_a_word_the_nearest_files_come_first() {
        let root = tree(&["a/b/deep.txt", "zebra.txt", "a/near.txt"]);
        assert_eq!(
            found(&root, ""),
            ["zebra.txt", "a/near.txt", "a/b/deep.txt"]
        );
    }

    #[test]
    fn what_git_ignores_hidden_files_and_links_are_left_out() {
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
    fn folders_above_a_project_judge_it_only_within_a_repository() {
        let root = tree(&["app/kept.txt"]);
        std::fs::write(root.path().join(".gitignore"), "*\n").unwrap();
        let app = root.path().join("app");
        let names = || find_now(&app, "", 20, &AtomicBool::new(false)).paths;
        assert_eq!(names(), ["kept.txt"]);
        std::fs::create_dir(root.path().join(".git")).unwrap();
        assert!(names().is_empty());
    }

    #[test]
    fn the_best_of_many_are_kept_and_it_is_said_that_there_are_more() {
        let many: Vec<String> = (0..2000).map(|number| format!("a/x{number}.txt")).collect();
        let mut names: Vec<&str> = many.iter().map(String::as_str).collect();
        names.push("z/x.txt");
        let root = tree(&names);
        let found = find_now(root.path(), "x.t", 3, &AtomicBool::new(false));
        assert_eq!(found.paths[0], "z/x.txt");
        assert_eq!((found.paths.len(), found.truncated), (3, true));
    }

    #[test]
    fn a_search_that_is_not_wanted_any_more_ends() {
        let root = tree(&["a.txt"]);
        let found = find_now(root.path(), "", 20, &AtomicBool::new(true));
        assert_eq!((found.paths.len(), found.truncated), (0, true));
    }

    #[tokio::test]
    async fn the_next_search_of_a_connection_ends_the_one_before() {
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
        assert_eq!(searches.lock().len(), 2, "the second goes on");
        drop((second, other));
        assert!(searches.lock().is_empty());
    }

    #[test]
    fn nothing_on_disk_is_nothing_found() {
        let gone = Path::new("/no/such/folder");
        let found = find_now(gone, "x", 20, &AtomicBool::new(false));
        assert_eq!(found, FoundFiles::default());
    }
}
