//! Session store on disk: one directory per session with its metadata and an append-only history.
//!
//! ```text
//! sessions/<id>/meta.json       replaced atomically
//! sessions/<id>/history.jsonl   one record per line, append-only
//! sessions/<id>/lock            locked while a process uses the session
//! expired/<id>/                 expired sessions
//! ```
//!
//! Several processes may share one store. A session's directory is created under a temporary name and
//! renamed, so it appears complete. An id that already exists is a collision. The locks are advisory
//! file locks, so they end with their process.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use super::{Hold, META_VERSION, Meta, State, Store, StoreError, Writer};
use crate::history::{History, Record};
use crate::session_id::SessionId;
use durable::{PRIVATE_DIRECTORY, lines};

const META: &str = "meta.json";
const HISTORY: &str = "history.jsonl";
const LOCK: &str = "lock";
const UNFINISHED: &str = ".new-";
const PRIVATE_FILE: u32 = 0o600;
/// Age from which a modification time is trusted: far longer than the timestamp resolution of any file
/// system.
const SETTLED_AFTER: Duration = Duration::from_secs(2);
/// Age from which an incomplete session is removed. Creating a session never takes this long.
const ABANDONED_AFTER: Duration = Duration::from_secs(3600);

/// A store on disk, which several processes may use at once.
pub struct FileStore {
    sessions: PathBuf,
    expired: PathBuf,
    /// Cached session ids with the modification time of the `sessions` directory.
    names: Mutex<Option<(SystemTime, Arc<[SessionId]>)>>,
}

impl FileStore {
    /// Opens the store in a directory and creates it if necessary.
    pub fn open(directory: &Path) -> Result<Self, StoreError> {
        let store = Self {
            sessions: directory.join("sessions"),
            expired: directory.join("expired"),
            names: Mutex::default(),
        };
        for directory in [directory, &store.sessions, &store.expired] {
            let is_new = !directory.exists();
            DirBuilder::new()
                .recursive(true)
                .mode(PRIVATE_DIRECTORY)
                .create(directory)?;
            fs::set_permissions(directory, Permissions::from_mode(PRIVATE_DIRECTORY))?;
            if let Some(parent) = directory.parent().filter(|_| is_new) {
                File::open(parent)?.sync_all()?;
            }
        }
        Ok(store)
    }

    fn directory(&self, id: SessionId) -> PathBuf {
        self.sessions.join(id.to_string())
    }

    /// Error for a missing file of a session: the session is damaged, expired or unknown.
    fn missing(&self, id: SessionId) -> StoreError {
        let name = id.to_string();
        if self.sessions.join(&name).exists() {
            StoreError::Damaged("a file is missing".to_owned())
        } else if self.expired.join(&name).exists() {
            StoreError::Expired
        } else {
            StoreError::NotFound
        }
    }

    fn open_file(
        &self,
        id: SessionId,
        name: &str,
        options: &OpenOptions,
    ) -> Result<File, StoreError> {
        match options.open(self.directory(id).join(name)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Err(self.missing(id)),
            opened => Ok(opened?),
        }
    }
}

impl Store for FileStore {
    fn create(&self, meta: &Meta) -> Result<(), StoreError> {
        let name = meta.session_id.to_string();
        let unfinished = format!("{UNFINISHED}{}-{name}", std::process::id());
        let unfinished = self.sessions.join(unfinished);
        let made = DirBuilder::new()
            .mode(PRIVATE_DIRECTORY)
            .create(&unfinished)
            .and_then(|()| {
                fs::set_permissions(&unfinished, Permissions::from_mode(PRIVATE_DIRECTORY))?;
                durable::write_synced(&unfinished.join(META), &to_json(meta)?)?;
                durable::write_synced(&unfinished.join(HISTORY), b"")?;
                durable::write_synced(&unfinished.join(LOCK), b"")?;
                File::open(&unfinished)?.sync_all()
            })
            // Fails if the session exists, because its directory is not empty.
            .and_then(|()| fs::rename(&unfinished, self.sessions.join(&name)));
        match made {
            Ok(()) => Ok(File::open(&self.sessions)?.sync_all()?),
            Err(error) => {
                let _ = fs::remove_dir_all(&unfinished);
                match error.kind() {
                    ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists => {
                        Err(StoreError::Collision)
                    }
                    _ => Err(error.into()),
                }
            }
        }
    }

    fn read_meta(&self, id: SessionId) -> Result<Meta, StoreError> {
        let mut text = String::new();
        self.open_file(id, META, OpenOptions::new().read(true))?
            .read_to_string(&mut text)
            .map_err(|error| match error.kind() {
                ErrorKind::InvalidData => damaged(META, "it is not text"),
                _ => error.into(),
            })?;
        let meta: Meta = serde_json::from_str(&text).map_err(|error| damaged(META, &error))?;
        if meta.version > META_VERSION {
            return Err(damaged(META, "it was written by a newer version"));
        }
        if meta.session_id != id {
            return Err(damaged(META, "it belongs to another session"));
        }
        Ok(meta)
    }

    fn write_meta(&self, meta: &Meta) -> Result<(), StoreError> {
        let directory = self.directory(meta.session_id);
        // Not `durable::replace`: several processes write this file, so each needs a temporary file of its own.
        let temporary = directory.join(format!("{META}.{}.tmp", std::process::id()));
        let written = durable::write_synced(&temporary, &to_json(meta)?)
            .and_then(|()| fs::rename(&temporary, directory.join(META)));
        match written {
            Ok(()) => Ok(File::open(&directory)?.sync_all()?),
            Err(error) if error.kind() == ErrorKind::NotFound => Err(self.missing(meta.session_id)),
            Err(error) => {
                let _ = fs::remove_file(&temporary);
                Err(error.into())
            }
        }
    }

    fn read_history(&self, id: SessionId) -> Result<History, StoreError> {
        let mut bytes = Vec::new();
        self.open_file(id, HISTORY, OpenOptions::new().read(true))?
            .read_to_end(&mut bytes)?;
        let mut history = History::default();
        for line in bytes.split(|byte| *byte == b'\n') {
            if line.is_empty() {
                continue;
            }
            match serde_json::from_slice(line) {
                Ok(record) => history.records.push(record),
                Err(_) => history.unreadable += 1,
            }
        }
        Ok(history)
    }

    fn open_history(&self, id: SessionId) -> Result<Box<dyn Writer>, StoreError> {
        let mut file = self.open_file(id, HISTORY, OpenOptions::new().read(true).append(true))?;
        lock(file.try_lock())?;
        // The next record must not continue a line torn by a crash or a full disk.
        lines::seal(&mut file)?;
        Ok(Box::new(Appending { file }))
    }

    fn ids(&self) -> Result<Arc<[SessionId]>, StoreError> {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = fs::metadata(&self.sessions)?.modified()?;
        if let Some((known, ids)) = &*names
            && *known == changed
        {
            return Ok(Arc::clone(ids));
        }
        let mut ids = Vec::new();
        for entry in fs::read_dir(&self.sessions)? {
            let name = entry?.file_name();
            ids.extend(name.to_str().and_then(|name| SessionId::parse(name).ok()));
        }
        ids.sort_unstable_by(|one, other| other.cmp(one));
        let ids: Arc<[SessionId]> = ids.into();
        // A second change within the timestamp resolution leaves the modification time unchanged, so the
        // ids are cached only if the directory has not changed for a while.
        let settled = changed.elapsed().is_ok_and(|age| age > SETTLED_AFTER);
        *names = settled.then(|| (changed, Arc::clone(&ids)));
        Ok(ids)
    }

    fn hold(&self, id: SessionId) -> Result<Box<dyn Hold>, StoreError> {
        let options = &mut OpenOptions::new();
        let options = options
            .read(true)
            .write(true)
            .create(true)
            .mode(PRIVATE_FILE);
        let file = self.open_file(id, LOCK, options)?;
        lock(file.try_lock_shared())?;
        // Another process may have moved the session to `expired/` before the lock was taken.
        if !self.directory(id).join(META).exists() {
            return Err(self.missing(id));
        }
        Ok(Box::new(Held(file)))
    }

    fn expire(
        &self,
        id: SessionId,
        should_expire: &dyn Fn(&Meta) -> bool,
    ) -> Result<bool, StoreError> {
        let options = &mut OpenOptions::new();
        let options = options
            .read(true)
            .write(true)
            .create(true)
            .mode(PRIVATE_FILE);
        let file = self.open_file(id, LOCK, options)?;
        if matches!(lock(file.try_lock()), Err(StoreError::Busy)) {
            return Ok(false);
        }
        let mut meta = self.read_meta(id)?;
        if !should_expire(&meta) {
            return Ok(false);
        }
        meta.state = State::Expired;
        self.write_meta(&meta)?;
        fs::rename(self.directory(id), self.expired.join(id.to_string()))?;
        for directory in [&self.sessions, &self.expired] {
            File::open(directory)?.sync_all()?;
        }
        Ok(true)
    }

    fn clean(&self) -> Result<(), StoreError> {
        for entry in fs::read_dir(&self.sessions)? {
            let entry = entry?;
            let unfinished = entry
                .file_name()
                .as_encoded_bytes()
                .starts_with(UNFINISHED.as_bytes());
            let age = || entry.metadata().and_then(|data| data.modified());
            if unfinished
                && age().is_ok_and(|made| made.elapsed().is_ok_and(|age| age > ABANDONED_AFTER))
            {
                fs::remove_dir_all(entry.path())?;
            }
        }
        Ok(())
    }
}

struct Held(
    // Closing the file releases the lock.
    #[expect(dead_code)] File,
);

impl Hold for Held {}

struct Appending {
    file: File,
}

impl Writer for Appending {
    fn append(&mut self, record: &Record) -> Result<(), StoreError> {
        let mut line = to_json(record)?;
        line.push(b'\n');
        Ok(self.file.write_all(&line)?)
    }

    fn sync(&mut self) -> Result<(), StoreError> {
        Ok(self.file.sync_data()?)
    }
}

fn lock(taken: Result<(), TryLockError>) -> Result<(), StoreError> {
    match taken {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(StoreError::Busy),
        Err(TryLockError::Error(error)) => Err(error.into()),
    }
}

fn damaged(file: &str, reason: impl std::fmt::Display) -> StoreError {
    StoreError::Damaged(format!("{file}: {reason}"))
}

fn to_json(value: &impl serde::Serialize) -> io::Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(io::Error::other)
}
