//! Removal of what no session can show any more: files in `trash/`, pictures in `uploads/`, and expired sessions of the
//! built-in agent.
//!
//! `plan` finds what may be removed, `remove` removes it. The caller says what must stay. Both block on the disk.
//!
//! Invariant: a file is removed only if it has a name that the server gives, the caller does not keep it, no remaining
//! transcript contains its name, and it was not modified for a day.

use std::collections::HashSet;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use durable::ownership;

use uuid::Uuid;

use crate::names;
use crate::uploads;

/// Minimum age of everything that is removed: a picture may belong to a message that is still being written.
pub const AGE_MIN: Duration = Duration::from_secs(24 * 60 * 60);
/// Bytes of a transcript that are searched at a time.
const SEARCH_BYTES: usize = 256 * 1024;
/// Characters of a UUID.
const UUID_CHARS: usize = 36;
/// Characters of a ULID.
const ULID_CHARS: usize = 26;

/// What must stay, whatever its age.
#[derive(Debug, Default)]
pub struct Kept {
    /// Keys of the sessions that are listed or can be restored.
    pub keys: HashSet<String>,
    /// Their sessions of the built-in agent.
    pub agent_sessions: HashSet<String>,
}

/// When files are removed. `None` disables a rule.
#[derive(Debug, Clone, Copy)]
pub struct CleaningRules {
    pub age: Option<Duration>,
    /// Maximum size of everything that may be removed; beyond it the oldest are removed first.
    pub bytes_max: Option<u64>,
}

/// A folder that is cleaned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CleanedFolder {
    Trash,
    Uploads,
    Expired,
}

impl CleanedFolder {
    /// All folders that are cleaned.
    pub const ALL: [Self; 3] = [Self::Trash, Self::Uploads, Self::Expired];

    /// Its path in the data directory.
    pub fn name(self) -> &'static str {
        match self {
            Self::Trash => names::TRASH_FOLDER,
            Self::Uploads => names::UPLOADS_FOLDER,
            Self::Expired => names::EXPIRED_FOLDER,
        }
    }
}

/// A file, or the directory of an expired session.
#[derive(Debug)]
pub struct Removable {
    pub folder: CleanedFolder,
    pub bytes: u64,
    path: PathBuf,
    modified: SystemTime,
}

/// Number and size of the entries of a folder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FolderSize {
    pub entries: u64,
    pub bytes: u64,
}

/// Size of a folder that is cleaned. A missing folder is empty.
pub fn folder_size(data_dir: &Path, folder: CleanedFolder) -> FolderSize {
    let mut size = FolderSize::default();
    for entry in entries(&data_dir.join(folder.name())).unwrap_or_default() {
        size.entries += 1;
        size.bytes += entry.bytes;
    }
    size
}

/// Finds what the rules remove, oldest first.
pub fn plan(
    data_dir: &Path,
    kept: &Kept,
    rules: CleaningRules,
    now: SystemTime,
) -> io::Result<Vec<Removable>> {
    let aged = |entry: &Entry, age: Duration| {
        let since = now.duration_since(entry.modified);
        since.is_ok_and(|since| since >= age)
    };
    let mut found = vec![];
    // After the index was lost, the trash is where its deleted sessions can be found.
    if !index_was_set_aside(data_dir, rules.age.unwrap_or(AGE_MIN), now)? {
        for entry in entries(&data_dir.join(names::TRASH_FOLDER))? {
            if is_session_file(&entry.name) && !kept.keys.contains(key_of(&entry.name)) {
                found.push(entry.removable(CleanedFolder::Trash));
            }
        }
    }
    for entry in entries(&data_dir.join(names::EXPIRED_FOLDER))? {
        if is_agent_session(&entry.name) && !kept.agent_sessions.contains(&entry.name) {
            found.push(entry.removable(CleanedFolder::Expired));
        }
    }
    let mut pictures = entries(&data_dir.join(names::UPLOADS_FOLDER))?;
    pictures.retain(|entry| uploads::is_picture(&entry.name) && aged(entry, AGE_MIN));
    let mut unused: HashSet<String> = pictures.iter().map(|entry| entry.name.clone()).collect();
    let going: HashSet<PathBuf> = found.iter().map(|one| one.path.clone()).collect();
    // A transcript in the trash that stays for now keeps its pictures, too.
    let mut searched = HashSet::new();
    // The sessions again at the end: one may have been restored meanwhile.
    for folder in [
        names::SESSIONS_FOLDER,
        names::TRASH_FOLDER,
        names::SESSIONS_FOLDER,
    ] {
        if unused.is_empty() {
            break;
        }
        let mut transcripts = entries(&data_dir.join(folder))?;
        // Live logs first: their content moves into the transcripts.
        transcripts.sort_by_key(|entry| !entry.name.ends_with(".live.jsonl"));
        for entry in transcripts {
            let stays = !going.contains(&entry.path) || !aged(&entry, AGE_MIN);
            if stays && !searched.contains(&entry.path) && remove_used(&entry.path, &mut unused)? {
                searched.insert(entry.path);
            }
        }
    }
    pictures.retain(|entry| unused.contains(&entry.name));
    found.extend(
        pictures
            .into_iter()
            .map(|entry| entry.removable(CleanedFolder::Uploads)),
    );

    found.sort_by_key(|one| one.modified);
    let mut bytes: u64 = found.iter().map(|one| one.bytes).sum();
    found.retain(|one| {
        let age = now.duration_since(one.modified).unwrap_or_default();
        let too_old = rules.age.is_some_and(|limit| age >= limit);
        let too_much = rules.bytes_max.is_some_and(|most| bytes > most);
        let goes = age >= AGE_MIN && (too_old || too_much);
        if goes {
            bytes -= one.bytes;
        }
        goes
    });
    Ok(found)
}

/// Removes what was planned, unless it was modified since, and returns what was removed. Stops if this process no
/// longer owns the data directory.
pub fn remove(data_dir: &Path, planned: Vec<Removable>) -> io::Result<Vec<Removable>> {
    let mut removed = vec![];
    for one in planned {
        ownership::check(&data_dir.join(one.folder.name()))?;
        let unchanged = Entry::at(one.path.clone()).is_ok_and(|now| now.modified == one.modified);
        if !unchanged {
            continue;
        }
        let gone = match one.folder {
            CleanedFolder::Expired => fs::remove_dir_all(&one.path),
            CleanedFolder::Trash | CleanedFolder::Uploads => fs::remove_file(&one.path),
        };
        match gone {
            Ok(()) => removed.push(one),
            Err(error) => {
                tracing::warn!(path = %one.path.display(), %error, "could not remove a file");
            }
        }
    }
    Ok(removed)
}

struct Entry {
    name: String,
    path: PathBuf,
    bytes: u64,
    modified: SystemTime,
}

impl Entry {
    /// Links are not followed. A directory has the size of its files, and the newest of their modification times.
    fn at(path: PathBuf) -> io::Result<Self> {
        let metadata = path.symlink_metadata()?;
        let mut entry = Self {
            name: String::new(),
            bytes: metadata.len(),
            modified: metadata.modified()?,
            path,
        };
        if let Some(name) = entry.path.file_name() {
            entry.name = name.to_string_lossy().into_owned();
        }
        if metadata.is_dir() {
            let files: Vec<Metadata> = fs::read_dir(&entry.path)?
                .map(|file| file?.metadata())
                .collect::<io::Result<_>>()?;
            entry.bytes = files.iter().map(Metadata::len).sum();
            let newest = files.iter().filter_map(|file| file.modified().ok()).max();
            entry.modified = newest.unwrap_or(entry.modified);
        }
        // Moved here much later than it was last written.
        let replaced = replaced_at(&entry.name);
        entry.modified = replaced.map_or(entry.modified, |at| at.max(entry.modified));
        Ok(entry)
    }

    fn removable(self, folder: CleanedFolder) -> Removable {
        Removable {
            folder,
            bytes: self.bytes,
            path: self.path,
            modified: self.modified,
        }
    }
}

/// The entries of a folder; none if it is missing.
fn entries(folder: &Path) -> io::Result<Vec<Entry>> {
    let listed = match fs::read_dir(folder) {
        Ok(listed) => listed,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(vec![]),
        Err(error) => return Err(error),
    };
    let mut found = vec![];
    for entry in listed {
        match Entry::at(entry?.path()) {
            Ok(entry) => found.push(entry),
            // Removed since it was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// The key in the name of a session's file. A transcript that an agent's own history replaced is not shown by the
/// session of that key.
fn key_of(name: &str) -> &str {
    let key = name.strip_suffix(".jsonl").unwrap_or(name);
    key.strip_suffix(".live").unwrap_or(key)
}

/// Whether the name begins with a session's key.
fn is_session_file(name: &str) -> bool {
    let (Some(key), Some(rest)) = (name.get(..UUID_CHARS), name.get(UUID_CHARS..)) else {
        return false;
    };
    Uuid::try_parse(key).is_ok() && rest.starts_with('.')
}

/// Whether the name is the id of a session of the built-in agent.
fn is_agent_session(name: &str) -> bool {
    let ulid = name.strip_prefix("sess_").unwrap_or_default();
    ulid.len() == ULID_CHARS && ulid.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// When a transcript was replaced by its agent's own history, according to its name.
fn replaced_at(name: &str) -> Option<SystemTime> {
    let (_, at) = name.strip_suffix(".jsonl")?.split_once(".before-")?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(at.parse().ok()?))
}

fn index_was_set_aside(data_dir: &Path, within: Duration, now: SystemTime) -> io::Result<bool> {
    let beginning = format!("{}{}", names::SESSIONS, durable::SET_ASIDE);
    Ok(entries(data_dir)?.iter().any(|entry| {
        let age = now.duration_since(entry.modified).unwrap_or_default();
        entry.name.starts_with(&beginning) && age < within
    }))
}

/// Removes from `unused` the pictures whose names are in the file. Returns whether the file was there.
fn remove_used(path: &Path, unused: &mut HashSet<String>) -> io::Result<bool> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let mut bytes = vec![];
    loop {
        let kept = bytes.len();
        bytes.resize(kept + SEARCH_BYTES, 0);
        let read = file.read(&mut bytes[kept..])?;
        bytes.truncate(kept + read);
        if read == 0 {
            return Ok(true);
        }
        for name in picture_names(&bytes) {
            unused.remove(name);
        }
        // A name can be cut by the end of this piece.
        let overlap = UUID_CHARS + uploads::ENDING_CHARS_MAX;
        bytes.drain(..bytes.len().saturating_sub(overlap));
    }
}

/// Everything in the bytes that has the form of a picture's name.
fn picture_names(bytes: &[u8]) -> impl Iterator<Item = &str> {
    memchr::memchr_iter(b'.', bytes).flat_map(move |dot| {
        let begin = dot.checked_sub(UUID_CHARS);
        uploads::endings().filter_map(move |ending| {
            let end = dot + 1 + ending.len();
            let name = std::str::from_utf8(bytes.get(begin?..end)?).ok()?;
            uploads::is_picture(name).then_some(name)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    const OLD: &str = "00000000-0000-4000-8000-00000000000a";
    const KEPT: &str = "00000000-0000-4000-8000-00000000000b";
    const YOUNG: &str = "00000000-0000-4000-8000-00000000000c";
    const PICTURE: &str = "0b2c8a52-5b5c-4f0e-9d0b-6a1a3f1f0c11.png";

    struct Place {
        _dir: tempfile::TempDir,
        data: PathBuf,
        now: SystemTime,
    }

    impl Place {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let data = dir.path().to_owned();
            Self {
                _dir: dir,
                data,
                now: SystemTime::now(),
            }
        }

        fn file(&self, path: &str, content: &str, days: u32) {
            let path = self.data.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, content).unwrap();
            let file = File::options().write(true).open(&path).unwrap();
            file.set_modified(self.now - DAY * days).unwrap();
        }

        fn plan(&self, kept: &Kept, age: Option<u32>, bytes_max: Option<u64>) -> Vec<String> {
            let rules = CleaningRules {
                age: age.map(|days| DAY * days),
                bytes_max,
            };
            let planned = plan(&self.data, kept, rules, self.now).unwrap();
            let below = |one: &Removable| {
                let path = one.path.strip_prefix(&self.data).unwrap();
                path.to_str().unwrap().to_owned()
            };
            planned.iter().map(below).collect()
        }
    }

    #[test]
    fn only_old_files_that_are_not_kept_are_planned() {
        let place = Place::new();
        place.file(&format!("trash/{OLD}.jsonl"), "", 31);
        place.file(&format!("trash/{OLD}.live.jsonl"), "", 32);
        place.file(&format!("trash/{KEPT}.jsonl"), "", 400);
        place.file(&format!("trash/{KEPT}.before-1.jsonl"), "", 40);
        place.file(&format!("trash/{YOUNG}.jsonl"), "", 29);
        place.file("trash/chapter.tex", "", 400);
        place.file("agent/expired/notes/meta.json", "", 400);
        let yesterday = place.now - DAY;
        let yesterday = yesterday.duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let replaced = format!("trash/{KEPT}.before-{}.jsonl", yesterday.as_millis());
        place.file(&replaced, "", 400);
        place.file(
            "agent/expired/sess_01ARZ3NDEKTSV4RRFFQ69G5FAA/meta.json",
            "",
            50,
        );
        place.file(
            "agent/expired/sess_01ARZ3NDEKTSV4RRFFQ69G5FAB/meta.json",
            "",
            50,
        );
        place.file(
            "agent/expired/sess_01ARZ3NDEKTSV4RRFFQ69G5FAC/meta.json",
            "",
            50,
        );
        place.file(
            "agent/expired/sess_01ARZ3NDEKTSV4RRFFQ69G5FAC/history.jsonl",
            "",
            3,
        );
        let kept = Kept {
            keys: [KEPT.to_owned()].into(),
            agent_sessions: ["sess_01ARZ3NDEKTSV4RRFFQ69G5FAA".to_owned()].into(),
        };
        assert_eq!(
            place.plan(&kept, Some(30), None),
            [
                "agent/expired/sess_01ARZ3NDEKTSV4RRFFQ69G5FAB".to_owned(),
                format!("trash/{KEPT}.before-1.jsonl"),
                format!("trash/{OLD}.live.jsonl"),
                format!("trash/{OLD}.jsonl"),
            ]
        );
        assert!(place.plan(&kept, None, None).is_empty());
    }

    #[test]
    fn oldest_files_go_first_when_there_are_too_many_bytes() {
        let place = Place::new();
        let [a, b, today] = [OLD, KEPT, YOUNG].map(|key| format!("trash/{key}.jsonl"));
        place.file(&a, "12345", 3);
        place.file(&b, "12345", 2);
        place.file(&today, &"x".repeat(100), 0);
        let plan = |most| place.plan(&Kept::default(), None, Some(most));
        assert!(plan(110).is_empty());
        assert_eq!(plan(109), [a.as_str()]);
        // What was modified today stays.
        assert_eq!(plan(0), [a, b]);
    }

    #[test]
    fn picture_stays_while_a_remaining_transcript_names_it() {
        let place = Place::new();
        let line = format!("{{\"images\":[\"{PICTURE}\"]}}\n");
        place.file(&format!("uploads/{PICTURE}"), "", 40);
        place.file("uploads/notes.txt", "", 40);
        let kept = Kept {
            keys: [KEPT.to_owned()].into(),
            ..Kept::default()
        };
        let plan = || place.plan(&kept, Some(30), None);
        // Across the boundary between two pieces of the search.
        let long = format!("{}{line}", "x".repeat(SEARCH_BYTES - 30));
        let deleted = format!("trash/{KEPT}.jsonl");
        for (path, content) in [
            ("sessions/a.jsonl", &line),
            ("sessions/a.live.jsonl", &long),
            (deleted.as_str(), &line),
        ] {
            place.file(path, content, 40);
            assert!(plan().is_empty(), "{path}");
            fs::remove_file(place.data.join(path)).unwrap();
        }
        let gone = format!("trash/{OLD}.jsonl");
        place.file(&gone, &line, 41);
        assert_eq!(plan(), [gone, format!("uploads/{PICTURE}")]);
    }

    #[test]
    fn trash_stays_while_a_lost_index_is_new() {
        let place = Place::new();
        let gone = format!("trash/{OLD}.jsonl");
        place.file(&gone, "", 40);
        place.file("sessions.json.unreadable-20260101T000000Z", "", 10);
        let plan = || place.plan(&Kept::default(), Some(30), None);
        assert!(plan().is_empty());
        place.file("sessions.json.unreadable-20260101T000000Z", "", 31);
        assert_eq!(plan(), [gone]);
    }
}
