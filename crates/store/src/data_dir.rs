//! The data directory: where things are, and who may read it.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use durable::ownership::{self, ClaimError, Lock};
use rustix::fs::Access;

use crate::{OpenError, names};

/// A directory that exists, is ours, and is private.
#[derive(Debug, Clone)]
pub struct DataDir {
    path: PathBuf,
}

impl DataDir {
    /// Creates the directory or makes the existing one private. A directory with files of other programs is refused, before
    /// anything in it is touched.
    pub fn prepare(path: &Path) -> Result<Self, OpenError> {
        let fail = |source| OpenError::Directory {
            path: path.to_owned(),
            source,
        };
        if path.exists() {
            if !path.is_dir() {
                return Err(fail(io::ErrorKind::NotADirectory.into()));
            }
            if !names::looks_like_ours(path).map_err(fail)? {
                return Err(OpenError::NotOurs {
                    path: path.to_owned(),
                });
            }
        } else {
            durable::create_private_dir(path).map_err(fail)?;
        }
        let path = path.canonicalize().map_err(fail)?;
        let private = Permissions::from_mode(durable::PRIVATE_DIRECTORY);
        fs::set_permissions(&path, private).map_err(fail)?;
        Ok(Self { path })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn token_file(&self) -> PathBuf {
        self.path.join(names::TOKEN)
    }

    /// The page that leads the browser to the address with the token.
    pub fn open_page(&self) -> PathBuf {
        self.path.join(names::OPEN_PAGE)
    }

    /// Where sessions work that a program started without naming a folder; not made.
    pub fn scratch_folder(&self) -> PathBuf {
        self.path.join(names::SCRATCH_FOLDER)
    }

    pub fn audit_file(&self) -> PathBuf {
        self.path.join(names::AUDIT)
    }

    pub fn projects_file(&self) -> PathBuf {
        self.path.join(names::PROJECTS)
    }

    pub fn sessions_file(&self) -> PathBuf {
        self.path.join(names::SESSIONS)
    }

    /// Where the transcripts are; made if need be.
    pub fn sessions_folder(&self) -> Result<PathBuf, OpenError> {
        self.folder(names::SESSIONS_FOLDER)
    }

    pub fn uploads_folder(&self) -> Result<PathBuf, OpenError> {
        self.folder(names::UPLOADS_FOLDER)
    }

    /// A private folder in here; made if need be.
    fn folder(&self, name: &str) -> Result<PathBuf, OpenError> {
        let path = self.path.join(name);
        let private = || {
            let mode = Permissions::from_mode(durable::PRIVATE_DIRECTORY);
            fs::set_permissions(&path, mode)
        };
        match durable::create_private_dir(&path).and_then(|()| private()) {
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
        let path = || self.path.clone();
        Lock::claim(&self.path).map_err(|error| match error {
            ClaimError::Held(holder) => OpenError::Locked {
                path: path(),
                holder,
            },
            ClaimError::Io(source) => OpenError::Directory {
                path: path(),
                source,
            },
        })
    }
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

/// Looks at a data directory without creating, changing or claiming anything.
pub fn look(path: &Path) -> Holding {
    if !path.exists() {
        return Holding::Missing;
    }
    let access = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
    let usable = rustix::fs::access(path, access).map_err(io::Error::from);
    let problem = match usable.and_then(|()| names::looks_like_ours(path)) {
        Ok(true) => None,
        Ok(false) => Some(OpenError::NotOurs {
            path: path.to_owned(),
        }),
        Err(source) => Some(OpenError::Directory {
            path: path.to_owned(),
            source,
        }),
    };
    match problem {
        Some(problem) => Holding::Unusable(problem.to_string()),
        None if ownership::is_held(path) => Holding::Held(match ownership::holder(path) {
            unnamed if unnamed.is_empty() => " another process".to_owned(),
            named => named,
        }),
        None => Holding::Free,
    }
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
