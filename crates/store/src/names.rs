//! Names of the files and folders at the top level of the data directory, and recognition of such a directory.
//!
//! Invariant: everything that the server creates there is in this list; `tests/data_dir.rs` of the binary checks it on
//! a used directory.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::path::Path;

use durable::ownership::{Holder, LOCK_FILE as LOCK};

/// The list of projects.
pub const PROJECTS: &str = "projects.json";
/// The list of sessions, an index over the transcripts.
pub const SESSIONS: &str = "sessions.json";
/// Folder of the transcripts and live logs.
pub const SESSIONS_FOLDER: &str = "sessions";
/// Folder of the uploaded pictures.
pub const UPLOADS_FOLDER: &str = "uploads";
/// Folder of transcripts that were deleted or replaced.
pub const TRASH_FOLDER: &str = "trash";
/// Expired sessions of the built-in agent, one directory each.
pub const EXPIRED_FOLDER: &str = "agent/expired";
/// What agents were allowed and refused.
pub const AUDIT: &str = "audit.jsonl";
/// The audit before the last rotation.
pub const AUDIT_BEFORE: &str = "audit.1.jsonl";
/// What agents were refused.
pub const AUDIT_REFUSED: &str = "audit.refused.jsonl";
/// The refusals before the last rotation.
pub const AUDIT_REFUSED_BEFORE: &str = "audit.refused.1.jsonl";
/// The access token.
pub const TOKEN: &str = "token";
/// The key with which the server proves to browsers that it is the one they signed in to.
pub const SERVER_KEY: &str = "server-key";
/// The browsers that signed in, with their public keys.
pub const BROWSERS: &str = "browsers.json";
/// A page that leads the browser to the address with the token.
pub const OPEN_PAGE: &str = "open.html";
/// Contains the projects of gateway sessions that were created without a folder.
pub const SCRATCH_FOLDER: &str = "scratch";

/// All known names, without temporary and set-aside files. The last six are created by the crates of the
/// agents, the user, or the file system.
const KNOWN: [&str; 21] = [
    LOCK,
    PROJECTS,
    SESSIONS,
    SESSIONS_FOLDER,
    UPLOADS_FOLDER,
    TRASH_FOLDER,
    AUDIT,
    AUDIT_BEFORE,
    AUDIT_REFUSED,
    AUDIT_REFUSED_BEFORE,
    TOKEN,
    SERVER_KEY,
    BROWSERS,
    OPEN_PAGE,
    SCRATCH_FOLDER,
    "agents.json",
    "agents",
    "agent",
    "config.toml",
    "workspace",
    "lost+found",
];

/// Maximum bytes read of a lock file; ours has fewer than 100.
const LOCK_BYTES_MAX: u64 = 4096;

/// Whether a name at the top of the data directory is known, also as that of a temporary or set-aside file.
fn is_known(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    let name = match name.split_once(durable::SET_ASIDE) {
        Some((name, _)) => name,
        None => name,
    };
    let name = name.strip_suffix(durable::TEMPORARY).unwrap_or(name);
    KNOWN.contains(&name)
}

/// Whether a Liminal Builder server has run in the directory, or it contains known names only.
pub(super) fn is_data_dir(path: &Path) -> io::Result<bool> {
    let mut all_known = true;
    let mut folders = 0;
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name();
        all_known &= is_known(&name);
        folders += u32::from(name == SESSIONS_FOLDER || name == UPLOADS_FOLDER);
    }
    let has_run = match lock_file(&path.join(LOCK)) {
        LockFile::Ours => true,
        // Many programs have an empty file named `lock`, but not beside the two folders that our server always creates.
        LockFile::Blank => folders == 2,
        LockFile::NotOurs => false,
    };
    Ok(all_known || has_run)
}

enum LockFile {
    /// The lock file has content of our server, or the beginning of such content.
    Ours,
    /// Empty or filled with zeros, as after a power cut during a write.
    Blank,
    /// Missing, or written by another program.
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
    fn temporary_and_set_aside_files_have_known_names() {
        for name in [
            "lock",
            "audit.1.jsonl",
            "scratch",
            "projects.json.tmp",
            "token.tmp",
            "sessions.json.unreadable-20260101T000000Z",
            "sessions.json.unreadable-20260101T000000Z-2",
        ] {
            assert!(is_known(OsStr::new(name)), "{name}");
        }
        for name in [
            "thesis.tex",
            "thesis.tmp",
            "thesis.unreadable-1",
            ".tmp",
            "",
            "token.bak",
        ] {
            assert!(!is_known(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn torn_lock_file_is_recognised_and_that_of_another_program_is_not() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("thesis.tex"), "").unwrap();
        let lock = dir.path().join(LOCK);
        let ours = |content: &[u8]| {
            fs::write(&lock, content).unwrap();
            is_data_dir(dir.path()).unwrap()
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
