//! Names of what the server writes at the top of the data directory, and how a directory of ours is recognised.
//!
//! Invariant: whatever the server creates there has its name in this list; `tests/data_dir.rs` of the binary walks a used
//! directory.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::path::Path;

use durable::ownership::{Holder, LOCK_FILE as LOCK};

pub const PROJECTS: &str = "projects.json";
pub const SESSIONS: &str = "sessions.json";
pub const SESSIONS_FOLDER: &str = "sessions";
pub const UPLOADS_FOLDER: &str = "uploads";
pub const TRASH_FOLDER: &str = "trash";
pub const AUDIT: &str = "audit.jsonl";
/// The audit before the last rotation.
pub const AUDIT_BEFORE: &str = "audit.1.jsonl";
pub const TOKEN: &str = "token";
pub const OPEN_PAGE: &str = "open.html";
/// Where sessions work that a program started without naming a folder.
pub const SCRATCH_FOLDER: &str = "scratch";

/// Everything that may be there besides temporary and set-aside files. The last six are made by the crates of
/// the agents, by the user, or by the file system.
const OURS: [&str; 17] = [
    LOCK,
    PROJECTS,
    SESSIONS,
    SESSIONS_FOLDER,
    UPLOADS_FOLDER,
    TRASH_FOLDER,
    AUDIT,
    AUDIT_BEFORE,
    TOKEN,
    OPEN_PAGE,
    SCRATCH_FOLDER,
    "agents.json",
    "agents",
    "agent",
    "config.toml",
    "workspace",
    "lost+found",
];

/// Bytes of a lock file that are looked at; ours has less than a hundred.
const LOCK_BYTES_MAX: u64 = 4096;

/// Whether a name at the top of the data directory is one of ours, also as a temporary or a set-aside file.
fn is_ours(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    let name = match name.split_once(durable::SET_ASIDE) {
        Some((name, _)) => name,
        None => name,
    };
    let name = name.strip_suffix(durable::TEMPORARY).unwrap_or(name);
    OURS.contains(&name)
}

/// Whether a server of ours has run in the directory, or there is nothing else's in it.
pub(super) fn looks_like_ours(path: &Path) -> io::Result<bool> {
    let mut all_ours = true;
    let mut folders = 0;
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name();
        all_ours &= is_ours(&name);
        folders += u32::from(name == SESSIONS_FOLDER || name == UPLOADS_FOLDER);
    }
    let has_run = match lock_file(&path.join(LOCK)) {
        LockFile::Ours => true,
        // Many programs have an empty file of that name, but not beside what every server of ours makes.
        LockFile::Blank => folders == 2,
        LockFile::NotOurs => false,
    };
    Ok(all_ours || has_run)
}

enum LockFile {
    /// It names a server, or begins to.
    Ours,
    /// Empty or filled with zeros, as a power cut leaves a file that was being written.
    Blank,
    /// There is none, or another program has written it.
    NotOurs,
}

fn lock_file(path: &Path) -> LockFile {
    let mut bytes = vec![];
    let read =
        fs::File::open(path).and_then(|file| file.take(LOCK_BYTES_MAX).read_to_end(&mut bytes));
    if read.is_err() {
        return LockFile::NotOurs;
    }
    let text = bytes.trim_ascii_end();
    let written = text.split(|byte| *byte == 0).next().unwrap_or_default();
    if written.is_empty() {
        return LockFile::Blank;
    }
    match Holder::is_beginning(written) {
        true => LockFile::Ours,
        false => LockFile::NotOurs,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_temporary_and_set_aside_files_are_ours() {
        for name in [
            "lock",
            "audit.1.jsonl",
            "scratch",
            "projects.json.tmp",
            "token.tmp",
            "sessions.json.unreadable-20260101T000000Z",
            "sessions.json.unreadable-20260101T000000Z-2",
        ] {
            assert!(is_ours(OsStr::new(name)), "{name}");
        }
        for name in [
            "thesis.tex",
            "thesis.tmp",
            "thesis.unreadable-1",
            ".tmp",
            "",
            "token.bak",
        ] {
            assert!(!is_ours(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn torn_lock_is_ours_and_the_lock_of_another_program_is_not() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("thesis.tex"), "").unwrap();
        let lock = dir.path().join(LOCK);
        let ours = |content: &[u8]| {
            fs::write(&lock, content).unwrap();
            looks_like_ours(dir.path()).unwrap()
        };
        let whole = br#"{"pid":4711,"url":"http://127.0.0.1:4321"}"#;
        for length in 1..=whole.len() {
            let mut torn = whole[..length].to_vec();
            assert!(ours(&torn), "{length} bytes");
            torn.resize(whole.len(), 0);
            assert!(ours(&torn), "{length} bytes, then zeros");
        }
        for other in [&b"4711\n"[..], b"{}", b"{\"process\":1}", b"", &[0; 40]] {
            assert!(!ours(other), "{other:?}");
        }
        for folder in [SESSIONS_FOLDER, UPLOADS_FOLDER] {
            fs::create_dir(dir.path().join(folder)).unwrap();
        }
        assert!(ours(b"") && ours(&[0; 40]) && !ours(b"4711\n"));
    }
}
