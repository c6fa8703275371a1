//! The data directory: its paths and permissions.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use durable::ownership::{self, ClaimError, Lock};
use rustix::fs::Access;

use crate::{OpenError, names};

/// An existing private directory that belongs to Liminal Builder.
#[derive(Debug, Clone)]
pub struct DataDir {
    path: PathBuf,
}

impl DataDir {
    /// Creates the directory, or makes an existing one private. A directory with files of other programs is refused
    /// unchanged.
    pub fn prepare(path: &Path) -> Result<Self, OpenError> {
        let fail = |source| OpenError::Directory {
            path: path.to_owned(),
            source,
        };
        if path.exists() {
            if !path.is_dir() {
                return Err(fail(io::ErrorKind::NotADirectory.into()));
            }
            if !names::is_data_dir(path).map_err(fail)? {
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

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Path of the access token.
    pub fn token_file(&self) -> PathBuf {
        self.path.join(names::TOKEN)
    }

    /// The file with the server's signing key.
    pub fn server_key_file(&self) -> PathBuf {
        self.path.join(names::SERVER_KEY)
    }

    /// The list of browsers that signed in.
    pub fn browsers_file(&self) -> PathBuf {
        self.path.join(names::BROWSERS)
    }

    /// The page that redirects the browser to the address with the token.
    pub fn open_page(&self) -> PathBuf {
        self.path.join(names::OPEN_PAGE)
    }

    /// Path of the folder for projects of gateway sessions that were created without a folder. This call does not
    /// create it.
    pub fn scratch_folder(&self) -> PathBuf {
        self.path.join(names::SCRATCH_FOLDER)
    }

    /// Path of the audit file.
    pub fn audit_file(&self) -> PathBuf {
        self.path.join(names::AUDIT)
    }

    /// Path of the list of projects.
    pub fn projects_file(&self) -> PathBuf {
        self.path.join(names::PROJECTS)
    }

    /// Path of the list of sessions.
    pub fn sessions_file(&self) -> PathBuf {
        self.path.join(names::SESSIONS)
    }

    /// The folder of the transcripts, created if necessary.
    pub fn sessions_folder(&self) -> Result<PathBuf, OpenError> {
        self.folder(names::SESSIONS_FOLDER)
    }

    /// Folder of uploaded pictures, created if it is missing.
    pub fn uploads_folder(&self) -> Result<PathBuf, OpenError> {
        self.folder(names::UPLOADS_FOLDER)
    }

    /// A private folder in the data directory, created if necessary.
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

    /// Replaces a private file atomically and durably.
    pub fn write(&self, path: &Path, content: &[u8]) -> Result<(), OpenError> {
        durable::replace(path, content).map_err(|source| OpenError::Directory {
            path: self.path.clone(),
            source,
        })
    }

    /// Locks the directory for this process.
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

/// State of a data directory, as seen without changing it.
#[derive(Debug)]
pub enum Holding {
    Missing,
    /// The directory cannot be used. The text is the reason, as a sentence.
    Unusable(String),
    Free,
    /// A server uses the directory. The text describes the server.
    Held(String),
}

/// Inspects a data directory without creating, changing or locking anything.
pub fn inspect(path: &Path) -> Holding {
    if !path.exists() {
        return Holding::Missing;
    }
    let access = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
    let usable = rustix::fs::access(path, access).map_err(io::Error::from);
    let problem = match usable.and_then(|()| names::is_data_dir(path)) {
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
    fn new_and_existing_directories_become_private() {
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
    fn directory_of_another_program_is_refused_and_unchanged() {
        let root = tempfile::tempdir().unwrap();
        fs::set_permissions(root.path(), Permissions::from_mode(0o755)).unwrap();
        fs::write(root.path().join("thesis.tex"), "").unwrap();
        let refused = DataDir::prepare(root.path()).unwrap_err();
        assert!(matches!(refused, OpenError::NotOurs { .. }), "{refused}");
        assert_eq!(mode(root.path()), 0o755);
    }

    #[test]
    fn directory_with_some_unknown_names_is_refused() {
        let root = tempfile::tempdir().unwrap();
        for name in ["config.toml", "token", "registry"] {
            fs::write(root.path().join(name), "").unwrap();
        }
        assert!(DataDir::prepare(root.path()).is_err());
    }

    #[test]
    fn directory_that_a_server_used_may_contain_other_files() {
        let root = tempfile::tempdir().unwrap();
        let dir = DataDir::prepare(&root.path().join("data")).unwrap();
        dir.lock().unwrap().announce("http://127.0.0.1:1").unwrap();
        fs::write(dir.path().join("my notes.txt"), "").unwrap();
        DataDir::prepare(dir.path()).unwrap();
    }

    #[test]
    fn second_lock_is_refused_and_names_the_holder() {
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
