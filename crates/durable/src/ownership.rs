//! Ownership of a data directory: only one server may write to it, and only while the directory and its lock file are
//! the ones that the server has locked.
//!
//! Two advisory locks are held: one on the directory itself, which survives the removal of files in it, and one on the
//! file `lock`, which names the holder and which older versions check. On file systems without directory locks, only
//! the file counts. A removed lock file is written again. Every durable write calls `check` first, which fails if
//! another process has locked the lock file or the path leads to another directory.
//!
//! Invariant: after another process has locked the lock file, this process never writes to the directory again.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::files::open_private;

/// Name of the file that says which server uses the directory.
pub const LOCK_FILE: &str = "lock";

const LOCK_ATTEMPTS: u32 = 5;
const LOCK_PAUSE: Duration = Duration::from_millis(50);
/// How long commands wait for a server to write its address, or to restore a removed lock file.
const ADDRESS_WAIT: Duration = Duration::from_secs(3);

/// Data directories that this process has locked. `check` finds the one that contains a path, so that writers need no
/// reference to it.
static HELD: RwLock<Vec<Arc<Ownership>>> = RwLock::new(vec![]);

/// Proof that no other server uses the directory. Released when dropped, also by `kill -9`.
#[derive(Debug)]
pub struct Lock {
    ownership: Arc<Ownership>,
}

#[derive(Debug)]
struct Ownership {
    path: PathBuf,
    /// Holds the lock on the directory while it is open.
    directory: File,
    /// False on file systems without directory locks.
    directory_is_locked: bool,
    lock_file: Mutex<LockFile>,
    /// Result of the last check, readable without disk access.
    trouble: RwLock<Option<Trouble>>,
}

#[derive(Debug)]
struct LockFile {
    file: File,
    holder: Holder,
    /// The file was removed and could not be written again. Logged once.
    is_missing: bool,
}

/// Why the directory must not be written to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum Trouble {
    #[error(
        "the data directory {} was moved or removed while this server was running. Move it back, or stop the server and \
         start it where the directory is now.",
        .0.display()
    )]
    Gone(PathBuf),
    #[error(
        "{} is another directory now; the one that this server uses was moved while it was running. Put it back, or stop \
         the server and start it where the directory is now.",
        .0.display()
    )]
    Replaced(PathBuf),
    #[error(
        "another Liminal Builder{holder} has locked the data directory {}. Stop one of the two, then restart the other.",
        path.display()
    )]
    Taken { path: PathBuf, holder: String },
}

/// Why the directory could not be claimed.
#[derive(Debug)]
pub enum ClaimError {
    /// Another process holds the lock. The text describes the process, such as ` (process 12)`.
    Held(String),
    Io(io::Error),
}

/// Content of the lock file: the process that holds it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Holder {
    pid: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    url: Option<String>,
}

impl Holder {
    fn this_process() -> Self {
        Self {
            pid: std::process::id(),
            url: None,
        }
    }

    fn read(mut file: &File) -> Option<Self> {
        let mut text = String::new();
        file.rewind().ok()?;
        file.read_to_string(&mut text).ok()?;
        // The rest of a longer value may follow while the file is being rewritten.
        let mut values = serde_json::Deserializer::from_str(&text).into_iter();
        values.next()?.ok()
    }

    /// Replaces the content durably. At every moment the file begins with a complete value.
    fn write(&self, file: &File) -> io::Result<()> {
        let text = serde_json::to_string(self)?;
        file.write_all_at(text.as_bytes(), 0)?;
        file.set_len(text.len() as u64)?;
        file.sync_data()
    }

    /// Like `write`, but an error is only logged: on a full disk the lock is valid without its content.
    fn write_if_possible(&self, file: &File) {
        if let Err(error) = self.write(file) {
            tracing::warn!(%error, "could not write the lock file: commands may not find this server");
        }
    }

    /// Whether these bytes can be the beginning of the file's content.
    pub fn is_beginning(bytes: &[u8]) -> bool {
        const FIRST: &[u8] = b"{\"pid\":";
        bytes.starts_with(FIRST) || FIRST.starts_with(bytes)
    }

    /// Description to append to a noun, such as ` (process 12)`.
    fn description(&self) -> String {
        match self {
            Self {
                pid,
                url: Some(url),
            } => format!(" (process {pid}, {url})"),
            Self { pid, url: None } => format!(" (process {pid})"),
        }
    }
}

impl Lock {
    /// Claims the directory for this process.
    pub fn claim(path: &Path) -> Result<Self, ClaimError> {
        let fail = ClaimError::Io;
        let locked = || ClaimError::Held(holder(path));
        let directory = File::open(path).map_err(fail)?;
        let directory_is_locked = match try_lock(&directory) {
            Ok(()) => true,
            Err(TryLockError::WouldBlock) => return Err(locked()),
            Err(TryLockError::Error(error)) => {
                tracing::debug!(%error, "directories cannot be locked here; the lock file alone is used");
                false
            }
        };
        let file = open_private(&path.join(LOCK_FILE)).map_err(fail)?;
        match try_lock(&file) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(locked()),
            Err(TryLockError::Error(source)) => return Err(fail(source)),
        }
        let holder = Holder::this_process();
        holder.write_if_possible(&file);
        let ownership = Arc::new(Ownership {
            path: path.to_owned(),
            directory,
            directory_is_locked,
            lock_file: Mutex::new(LockFile {
                file,
                holder,
                is_missing: false,
            }),
            trouble: RwLock::default(),
        });
        // The directory or the file may have been replaced between opening and locking.
        ownership.check().map_err(fail)?;
        held_mut().push(ownership.clone());
        Ok(Self { ownership })
    }

    /// Writes this server's URL into the lock file. The URL contains no secret.
    pub fn announce(&self, url: &str) -> io::Result<()> {
        let mut lock_file = self.ownership.lock_file();
        lock_file.holder.url = Some(url.to_owned());
        lock_file.holder.write(&lock_file.file)
    }

    /// Checks the ownership and restores a removed lock file. If the ownership is lost, returns the reason as a
    /// sentence.
    pub fn trouble(&self) -> Option<String> {
        // Other disk errors are ignored here: the next write fails with them and reports them.
        let _ = self.ownership.check();
        let trouble = self.ownership.known_trouble();
        trouble.map(|trouble| format!("Nothing can be saved: {trouble}"))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        held_mut().retain(|held| !Arc::ptr_eq(held, &self.ownership));
    }
}

/// Fails if the path is in a data directory that this process had locked and no longer owns. Accesses the disk.
pub fn check(path: &Path) -> io::Result<()> {
    match holding(path) {
        Some(ownership) => ownership.check(),
        None => Ok(()),
    }
}

/// Like `check`, but returns the result of the last check, which is at most one second old. No disk access.
pub fn check_known(path: &Path) -> io::Result<()> {
    match holding(path).and_then(|ownership| ownership.known_trouble()) {
        Some(trouble) => Err(io::Error::other(trouble)),
        None => Ok(()),
    }
}

fn holding(path: &Path) -> Option<Arc<Ownership>> {
    let held = HELD.read().unwrap_or_else(PoisonError::into_inner);
    let holding = held.iter().find(|held| path.starts_with(&held.path));
    holding.cloned()
}

fn held_mut() -> impl std::ops::DerefMut<Target = Vec<Arc<Ownership>>> {
    HELD.write().unwrap_or_else(PoisonError::into_inner)
}

impl Ownership {
    fn lock_file(&self) -> MutexGuard<'_, LockFile> {
        self.lock_file
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn known_trouble(&self) -> Option<Trouble> {
        let trouble = self.trouble.read();
        trouble.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn check(&self) -> io::Result<()> {
        let mut lock_file = self.lock_file();
        let trouble = match self.known_trouble() {
            // Final: the other process may have written to the directory since then.
            Some(taken @ Trouble::Taken { .. }) => Some(taken),
            _ => self.inspect(&mut lock_file)?,
        };
        let mut known = self.trouble.write().unwrap_or_else(PoisonError::into_inner);
        known.clone_from(&trouble);
        match trouble {
            Some(trouble) => Err(io::Error::other(trouble)),
            None => Ok(()),
        }
    }

    fn inspect(&self, lock_file: &mut LockFile) -> io::Result<Option<Trouble>> {
        match identity(fs::metadata(&self.path))? {
            None => return Ok(Some(Trouble::Gone(self.path.clone()))),
            there if there != identity(self.directory.metadata())? => {
                return Ok(Some(Trouble::Replaced(self.path.clone())));
            }
            Some(_) => {}
        }
        let path = self.path.join(LOCK_FILE);
        let there = identity(fs::metadata(&path))?;
        if there.is_some() && there == identity(lock_file.file.metadata())? {
            return Ok(None);
        }
        let claimed = open_private(&path).and_then(|file| match try_lock(&file) {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        });
        match claimed {
            Ok(Some(file)) => {
                tracing::warn!(file = %path.display(), "the lock file was removed or replaced; wrote it again");
                lock_file.holder.write_if_possible(&file);
                lock_file.file = file;
                lock_file.is_missing = false;
            }
            Ok(None) => {
                return Ok(Some(Trouble::Taken {
                    path: self.path.clone(),
                    holder: holder(&self.path),
                }));
            }
            // The lock on the directory still keeps other servers out.
            Err(error) if self.directory_is_locked => {
                if !std::mem::replace(&mut lock_file.is_missing, true) {
                    tracing::warn!(file = %path.display(), %error, "the lock file was removed and cannot be written again");
                }
            }
            Err(error) => return Err(error),
        }
        Ok(None)
    }
}

/// Device and inode; `None` if there is no such file.
fn identity(file: io::Result<fs::Metadata>) -> io::Result<Option<(u64, u64)>> {
    match file {
        Ok(file) => Ok(Some((file.dev(), file.ino()))),
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(None),
            _ => Err(error),
        },
    }
}

/// Retries for a moment: the previous server may be exiting, and `is_held` in another process locks the file briefly.
fn try_lock(file: &File) -> Result<(), TryLockError> {
    let mut attempts_left = LOCK_ATTEMPTS;
    loop {
        attempts_left -= 1;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if attempts_left > 0 => std::thread::sleep(LOCK_PAUSE),
            done => return done,
        }
    }
}

/// The URL of the server that uses a data directory, if there is one. Waits briefly for a starting server to write it.
pub fn address_of_server(path: &Path) -> Option<String> {
    let begun = Instant::now();
    while is_held(path) {
        let file = File::open(path.join(LOCK_FILE)).ok();
        let holder = file.as_ref().and_then(Holder::read);
        if let Some(url) = holder.and_then(|holder| holder.url) {
            return Some(url);
        }
        if begun.elapsed() > ADDRESS_WAIT {
            break;
        }
        std::thread::sleep(LOCK_PAUSE);
    }
    None
}

/// Whether a server uses the directory, also if its lock file was removed.
pub fn is_held(path: &Path) -> bool {
    let is_locked = |path: &Path| {
        let file = File::open(path);
        file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
    };
    is_locked(path) || is_locked(&path.join(LOCK_FILE))
}

/// Description of the process in the lock file, such as ` (process 12)`; empty if the file names no process.
pub fn holder(path: &Path) -> String {
    let file = File::open(path.join(LOCK_FILE)).ok();
    let holder = file.as_ref().and_then(Holder::read);
    holder
        .map(|holder| holder.description())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claimed(path: &Path) -> Lock {
        Lock::claim(path).unwrap()
    }

    fn lock_content(path: &Path) -> String {
        fs::read_to_string(path.join(LOCK_FILE)).unwrap()
    }

    #[test]
    fn removed_lock_file_is_restored_with_the_same_content() {
        let dir = tempfile::tempdir().unwrap();
        let lock = claimed(dir.path());
        lock.announce("http://127.0.0.1:1").unwrap();
        let content = lock_content(dir.path());
        fs::remove_file(dir.path().join(LOCK_FILE)).unwrap();
        assert!(is_held(dir.path()));
        assert!(Lock::claim(dir.path()).is_err());
        assert_eq!(lock.trouble(), None);
        assert_eq!(lock_content(dir.path()), content);
        let address = address_of_server(dir.path());
        assert_eq!(address.as_deref(), Some("http://127.0.0.1:1"));
        drop(lock);
        assert!(!is_held(dir.path()));
    }

    #[test]
    fn shorter_lock_content_leaves_no_rest_of_a_longer_one() {
        let dir = tempfile::tempdir().unwrap();
        let lock = claimed(dir.path());
        lock.announce("http://a.long.name.example:65535").unwrap();
        lock.announce("http://a:1").unwrap();
        let pid = std::process::id();
        assert_eq!(
            lock_content(dir.path()),
            format!(r#"{{"pid":{pid},"url":"http://a:1"}}"#)
        );
    }

    #[test]
    fn lock_file_alone_decides_where_directories_cannot_be_locked() {
        let dir = tempfile::tempdir().unwrap();
        let first = claimed(dir.path());
        first.ownership.directory.unlock().unwrap();
        assert!(is_held(dir.path()));
        assert!(Lock::claim(dir.path()).is_err());
        // Without the file, another server can lock the directory; the first one detects it.
        fs::remove_file(dir.path().join(LOCK_FILE)).unwrap();
        let second = claimed(dir.path());
        let trouble = first.trouble().unwrap();
        let pid = std::process::id();
        assert!(trouble.contains(&format!("(process {pid})")), "{trouble}");
        assert!(first.ownership.check().is_err());
        assert_eq!(second.trouble(), None);
        drop(second);
        assert_eq!(first.trouble(), Some(trouble));
    }

    #[test]
    fn writes_fail_while_the_directory_is_moved_away() {
        let root = tempfile::tempdir().unwrap();
        let (path, away) = (root.path().join("data"), root.path().join("away"));
        fs::create_dir(&path).unwrap();
        let _lock = claimed(&path);
        let file = path.join("sessions/key.jsonl");
        let refusal = || check(&file).unwrap_err().to_string();
        check(&file).unwrap();
        fs::rename(&path, &away).unwrap();
        check_known(&file).unwrap();
        assert!(refusal().contains("was moved or removed"), "{}", refusal());
        check_known(&file).unwrap_err();
        fs::create_dir(&path).unwrap();
        assert!(refusal().contains("is another directory"), "{}", refusal());
        assert!(crate::replace(&path.join("x.json"), b"").is_err());
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
        fs::remove_dir(&path).unwrap();
        fs::rename(&away, &path).unwrap();
        check(&file).unwrap();
        check_known(&file).unwrap();
    }
}
