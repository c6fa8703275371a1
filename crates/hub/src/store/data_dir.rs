//! The data directory: where things are, who may read it, and that only one server uses it.

use std::fs::{self, DirBuilder, File, Permissions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::Access;
use serde::{Deserialize, Serialize};

use super::{OpenError, durable};

const PRIVATE_DIRECTORY: u32 = 0o700;
const LOCK_FILE: &str = "lock";
const LOCK_ATTEMPTS: u32 = 5;
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// What else may be there before the first start, or after a moved one.
const OURS: [&str; 14] = [
    "agent",
    "agents",
    "agents.json",
    "audit.jsonl",
    "config.toml",
    "lost+found",
    "open.html",
    "projects.json",
    "sessions",
    "sessions.json",
    "token",
    "trash",
    "uploads",
    "workspace",
];

/// A directory that exists, is ours, and is private.
#[derive(Debug, Clone)]
pub struct DataDir {
    path: PathBuf,
}

/// Proof that no other server uses the directory. Released when dropped, also by `kill -9`.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

/// Who uses a data directory, as far as can be seen without touching it.
#[derive(Debug)]
pub enum Holding {
    Missing,
    /// Why it cannot be used, as a sentence.
    Unusable(String),
    Free,
    /// A server; the text names it.
    Held(String),
}

/// What the lock file says about its holder.
#[derive(Debug, Serialize, Deserialize)]
struct Holder {
    pid: u32,
    #[serde(default)]
    url: Option<String>,
}

impl DataDir {
    pub(crate) const PROJECTS: &'static str = "projects.json";
    pub(crate) const SESSIONS: &'static str = "sessions.json";
    pub const TOKEN: &'static str = "token";

    /// Creates the directory or makes the existing one private. A directory with somebody else's
    /// files is refused, before anything in it is touched.
    pub fn prepare(path: &Path) -> Result<Self, OpenError> {
        let fail = |source| OpenError::Directory {
            path: path.to_owned(),
            source,
        };
        if path.exists() {
            if !path.is_dir() {
                return Err(fail(io::ErrorKind::NotADirectory.into()));
            }
            if !looks_like_ours(path).map_err(fail)? {
                return Err(OpenError::NotOurs {
                    path: path.to_owned(),
                });
            }
        } else {
            DirBuilder::new()
                .recursive(true)
                .mode(PRIVATE_DIRECTORY)
                .create(path)
                .map_err(fail)?;
        }
        let path = path.canonicalize().map_err(fail)?;
        fs::set_permissions(&path, Permissions::from_mode(PRIVATE_DIRECTORY)).map_err(fail)?;
        Ok(Self { path })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn token_file(&self) -> PathBuf {
        self.path.join(Self::TOKEN)
    }

    pub(crate) fn projects_file(&self) -> PathBuf {
        self.path.join(Self::PROJECTS)
    }

    pub(crate) fn sessions_file(&self) -> PathBuf {
        self.path.join(Self::SESSIONS)
    }

    /// Where the transcripts are; made if need be.
    pub(crate) fn sessions_folder(&self) -> Result<PathBuf, OpenError> {
        self.folder("sessions")
    }

    pub(crate) fn uploads_folder(&self) -> Result<PathBuf, OpenError> {
        self.folder("uploads")
    }

    /// A private folder in here; made if need be.
    fn folder(&self, name: &str) -> Result<PathBuf, OpenError> {
        let path = self.path.join(name);
        let made = DirBuilder::new()
            .recursive(true)
            .mode(PRIVATE_DIRECTORY)
            .create(&path);
        let private = || fs::set_permissions(&path, Permissions::from_mode(PRIVATE_DIRECTORY));
        match made.and_then(|()| private()) {
            Ok(()) => Ok(path),
            Err(source) => Err(OpenError::Directory { path, source }),
        }
    }

    /// Writes a private file, durably.
    pub fn write(&self, path: &Path, content: &[u8]) -> Result<(), OpenError> {
        durable::replace(path, content).map_err(|source| OpenError::Directory {
            path: self.path.clone(),
            source,
        })
    }

    /// Claims the directory for this process.
    pub fn lock(&self) -> Result<Lock, OpenError> {
        let fail = |source| OpenError::Directory {
            path: self.path.clone(),
            source,
        };
        let file = durable::open_private(&self.path.join(LOCK_FILE)).map_err(fail)?;
        let mut attempts_left = LOCK_ATTEMPTS;
        loop {
            attempts_left -= 1;
            match file.try_lock() {
                Ok(()) => return Ok(Lock { file }),
                // The one before us may be on its way out.
                Err(TryLockError::WouldBlock) if attempts_left > 0 => {
                    std::thread::sleep(LOCK_PAUSE);
                }
                Err(TryLockError::WouldBlock) => {
                    let (path, holder) = (self.path.clone(), holder(&file));
                    return Err(OpenError::Locked { path, holder });
                }
                Err(TryLockError::Error(source)) => return Err(fail(source)),
            }
        }
    }
}

/// Looks at a data directory without creating, changing or claiming anything.
pub fn look(path: &Path) -> Holding {
    if !path.exists() {
        return Holding::Missing;
    }
    let access = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
    let usable = rustix::fs::access(path, access).map_err(io::Error::from);
    let problem = match usable.and_then(|()| looks_like_ours(path)) {
        Ok(true) => None,
        Ok(false) => Some(OpenError::NotOurs {
            path: path.to_owned(),
        }),
        Err(source) => Some(OpenError::Directory {
            path: path.to_owned(),
            source,
        }),
    };
    if let Some(problem) = problem {
        return Holding::Unusable(problem.to_string());
    }
    match File::open(path.join(LOCK_FILE)) {
        Ok(file) if matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)) => {
            Holding::Held(holder(&file))
        }
        _ => Holding::Free,
    }
}

/// Where the server that uses a data directory can be reached, if one does.
pub fn address_of_server(path: &Path) -> Option<String> {
    let mut file = File::open(path.join(LOCK_FILE)).ok()?;
    if !matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)) {
        return None;
    }
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    let holder: Holder = serde_json::from_str(&text).ok()?;
    holder.url
}

/// Who the lock file names, to be put behind a noun; empty when it has not said yet.
fn holder(mut file: &File) -> String {
    let mut text = String::new();
    let read = file.rewind().and_then(|()| file.read_to_string(&mut text));
    match read.ok().and_then(|_| serde_json::from_str(&text).ok()) {
        Some(Holder {
            pid,
            url: Some(url),
        }) => format!(" (process {pid}, {url})"),
        Some(Holder { pid, url: None }) => format!(" (process {pid})"),
        None => String::new(),
    }
}

impl Lock {
    /// Says in the lock file where this server can be reached. Never holds a secret.
    pub fn announce(&self, url: &str) -> io::Result<()> {
        let holder = Holder {
            pid: std::process::id(),
            url: Some(url.to_owned()),
        };
        let text = serde_json::to_string(&holder)?;
        self.file.set_len(0)?;
        let mut file = &self.file;
        file.rewind()?;
        file.write_all(text.as_bytes())
    }
}

/// A directory in which a server of ours has run, or in which there is nothing else's.
fn looks_like_ours(path: &Path) -> io::Result<bool> {
    let has_run = std::fs::read_to_string(path.join(LOCK_FILE))
        .is_ok_and(|text| text.is_empty() || serde_json::from_str::<Holder>(&text).is_ok());
    let mut only_ours = true;
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name();
        only_ours &= name == LOCK_FILE || OURS.iter().any(|ours| name == *ours);
    }
    Ok(has_run || only_ours)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_new_directory_and_a_wide_open_one_end_up_private() {
        let root = tempfile::tempdir().unwrap();
        let new = DataDir::prepare(&root.path().join("a/b")).unwrap();
        assert_eq!(mode(new.path()), 0o700);

        let open = root.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, Permissions::from_mode(0o777)).unwrap();
        fs::write(open.join("config.toml"), "").unwrap();
        assert_eq!(mode(DataDir::prepare(&open).unwrap().path()), 0o700);
    }

    #[test]
    fn somebody_elses_directory_is_refused_and_not_touched() {
        let root = tempfile::tempdir().unwrap();
        fs::set_permissions(root.path(), Permissions::from_mode(0o755)).unwrap();
        fs::write(root.path().join("thesis.tex"), "").unwrap();
        let refused = DataDir::prepare(root.path()).unwrap_err();
        assert!(matches!(refused, OpenError::NotOurs { .. }), "{refused}");
        assert_eq!(mode(root.path()), 0o755);
    }

    #[test]
    fn a_directory_that_merely_has_a_file_of_a_name_of_ours_is_refused() {
        let root = tempfile::tempdir().unwrap();
        for name in ["config.toml", "token", "registry"] {
            fs::write(root.path().join(name), "").unwrap();
        }
        assert!(DataDir::prepare(root.path()).is_err());
    }

    #[test]
    fn a_directory_in_which_a_server_ran_may_hold_anything() {
        let root = tempfile::tempdir().unwrap();
        let dir = DataDir::prepare(&root.path().join("data")).unwrap();
        dir.lock().unwrap().announce("http://127.0.0.1:1").unwrap();
        fs::write(dir.path().join("my notes.txt"), "").unwrap();
        DataDir::prepare(dir.path()).unwrap();
    }

    #[test]
    fn a_second_lock_is_refused_and_names_the_first() {
        let root = tempfile::tempdir().unwrap();
        let dir = DataDir::prepare(&root.path().join("data")).unwrap();
        let lock = dir.lock().unwrap();
        lock.announce("http://127.0.0.1:1").unwrap();
        let refused = dir.lock().unwrap_err().to_string();
        assert!(
            refused.contains(&format!(
                "process {}, http://127.0.0.1:1",
                std::process::id()
            )),
            "{refused}"
        );
        drop(lock);
        dir.lock().unwrap();
    }
}
