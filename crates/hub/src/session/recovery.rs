//! The repair of the list of sessions at start: `sessions.json` is compared with the transcripts on disk.
//!
//! Nothing here deletes a transcript: files move between `sessions/` and `trash/`, and what the list has wrong or
//! lacks is read from the transcripts.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use wire::ChatEntry;

use super::index::{Deleted, SessionMeta, SessionsFile, move_files, trash};
use super::title::{self, UNTITLED};
use store::transcript::{Note, Transcript};

/// A transcript modified this much later than the activity in the index is read at start: it may have newer data.
const SAME_TIME: SignedDuration = SignedDuration::from_secs(2);
/// Entries read from the end of a transcript to find the last turn and the last activity.
const TAIL: u64 = 50;

/// Moves the transcript of a listed session back from the trash folder: earlier versions did not sync a restore.
fn bring_back(meta: &SessionMeta, folder: &Path, notices: &mut Vec<String>) {
    let name = format!("{}.jsonl", meta.key);
    if !trash(folder).join(&name).exists() {
        return;
    }
    match move_files(&meta.key, &trash(folder), folder) {
        Ok(()) => tracing::warn!(
            session = meta.id,
            "moved a transcript back from the trash folder"
        ),
        Err(error) => notices.push(format!(
            "The transcript of “{}” is in the trash folder and cannot be moved back: {error}. Move it back to sessions/ \
             and restart the server.",
            meta.title
        )),
    }
}

/// What a repair found.
#[derive(Default)]
pub(super) struct Repaired {
    /// Whether the index differs from the file and has to be written.
    pub(super) changed: bool,
    /// The sessions whose last turn was interrupted.
    pub(super) interrupted: Vec<Arc<SessionMeta>>,
}

/// Compares the index with the transcripts on disk and corrects it.
pub(super) fn repair(
    file: &mut SessionsFile,
    folder: &Path,
    notices: &mut Vec<String>,
) -> Repaired {
    let mut repaired = Repaired::default();
    let mut live = HashSet::new();
    let mut written: HashMap<String, Timestamp> = HashMap::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        // Left by a rewrite that a crash interrupted; the complete live log is beside it.
        if name.ends_with(".live.jsonl.tmp") {
            let _ = std::fs::remove_file(entry.path());
        }
        let Some(key) = name.strip_suffix(".jsonl") else {
            continue;
        };
        if let Some(key) = key.strip_suffix(".live") {
            live.insert(key.to_owned());
            continue;
        }
        let modified = entry.metadata().and_then(|metadata| metadata.modified());
        let modified = modified
            .ok()
            .and_then(|time| Timestamp::try_from(time).ok())
            .unwrap_or_default();
        written.insert(key.to_owned(), modified);
    }
    for meta in &mut file.sessions {
        let known: Timestamp = meta.last_active_at.parse().unwrap_or_default();
        let Some(modified) = written.remove(&meta.key) else {
            bring_back(meta, folder, notices);
            continue;
        };
        // A title may have been derived just before the server ended, too late for the index.
        let newer = modified.duration_since(known) > SAME_TIME
            || live.contains(&meta.key)
            || meta.title == UNTITLED;
        if newer
            && let Some(current) =
                from_transcript(&folder.join(format!("{}.jsonl", meta.key)), Some(meta))
            && current != **meta
        {
            *meta = Arc::new(current);
            repaired.changed = true;
        }
    }
    // Files of deleted sessions whose move to the trash failed or was prevented by a crash.
    for Deleted { meta, .. } in &file.deleted {
        if written.remove(&meta.key).is_some() || live.remove(&meta.key) {
            let _ = move_files(&meta.key, folder, &trash(folder));
        }
    }
    let mut restored = 0;
    let mut unreadable = 0;
    for key in written.into_keys() {
        match from_transcript(&folder.join(format!("{key}.jsonl")), None) {
            Some(meta) => {
                let is_there = |key: &str| folder.join(format!("{key}.jsonl")).exists();
                let same = |known: &&mut Arc<SessionMeta>| known.id == meta.id;
                match file.sessions.iter_mut().find(same) {
                    // The index lists the session under a key without a file: a byte of the key was damaged.
                    Some(known) if !is_there(&known.key) => {
                        Arc::make_mut(known).identity.key = meta.identity.key;
                    }
                    _ => file.sessions.push(Arc::new(meta)),
                }
                restored += 1;
            }
            None => unreadable += 1,
        }
    }
    if restored > 0 {
        repaired.changed = true;
        notices.push(format!(
            "{restored} session{} missing from the list and {} restored from {} transcript{}.",
            if restored == 1 { " was" } else { "s were" },
            if restored == 1 { "was" } else { "were" },
            if restored == 1 { "its" } else { "their" },
            if restored == 1 { "" } else { "s" },
        ));
    }
    if unreadable > 0 {
        notices.push(format!(
            "{unreadable} file{} in {} could not be understood as {} and {} left unchanged.",
            if unreadable == 1 { "" } else { "s" },
            folder.display(),
            if unreadable == 1 {
                "a transcript"
            } else {
                "transcripts"
            },
            if unreadable == 1 { "was" } else { "were" },
        ));
    }
    repaired.interrupted = file
        .sessions
        .iter()
        .filter(|meta| live.contains(&meta.key))
        .cloned()
        .collect();
    repaired
}

fn first_words(entry: &ChatEntry) -> Option<&str> {
    match entry {
        ChatEntry::User { content, .. } => Some(content)
            .filter(|content| !content.trim().is_empty())
            .map(String::as_str),
        _ => None,
    }
}

/// The index entry of a session according to its transcript, based on the `known` entry if there is one.
fn from_transcript(path: &Path, known: Option<&SessionMeta>) -> Option<SessionMeta> {
    let (transcript, found) = Transcript::open(path).ok()?;
    let mut meta = match (known, found.header) {
        (Some(known), _) => known.clone(),
        (None, Some(header)) => SessionMeta::new(header.identity),
        (None, None) => return None,
    };
    let Note {
        title, archived, ..
    } = found.note;
    // Every acknowledged change is in the index, except a title derived just before a crash. Any other note that the
    // index does not have belongs to a request that was never acknowledged.
    if meta.title == UNTITLED {
        meta.title = title.unwrap_or(meta.title);
    }
    if known.is_none() {
        meta.archived = archived.unwrap_or(meta.archived);
    }
    let total = transcript.total();
    let mut entries = transcript.read(total.saturating_sub(TAIL), total).ok()?;
    entries.extend(found.in_flight.into_values());
    // The server may have ended between writing the first message and writing its title.
    if meta.title == UNTITLED {
        let mut first = transcript.read(0, TAIL.min(total)).ok()?;
        first.extend(entries.iter().cloned());
        if let Some(words) = first.iter().find_map(first_words) {
            meta.title = title::derive(words);
        }
    }
    let last_turn = entries.iter().rev().find_map(|entry| match entry {
        ChatEntry::Turn(turn) => Some(turn.outcome.is_failure()),
        _ => None,
    });
    meta.failed = found.interrupted || last_turn.unwrap_or(meta.failed);
    let times = entries.iter().filter_map(|entry| match entry {
        ChatEntry::User { timestamp, .. } => Some(timestamp),
        ChatEntry::Turn(turn) => Some(&turn.timestamp),
        _ => None,
    });
    if let Some(last) = times.max().filter(|last| **last > meta.last_active_at) {
        meta.last_active_at.clone_from(last);
    }
    Some(meta)
}
