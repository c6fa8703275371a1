//! Session storage.
//!
//! `Store` is the interface of a backend: `files` stores sessions on disk, `memory` keeps them for the
//! life of the process, for tests.

mod files;
mod memory;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

pub use files::FileStore;
use jiff::Timestamp;
pub use memory::MemoryStore;
use serde::{Deserialize, Serialize};

use crate::history::{History, Record};
use crate::session_id::SessionId;

/// Metadata of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Meta {
    pub version: u32,
    pub session_id: SessionId,
    pub cwd: PathBuf,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub additional_directories: Vec<PathBuf>,
    pub state: State,
    pub created_at: Timestamp,
    pub last_used_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default)]
    pub mode: Mode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persona: Option<String>,
    /// Number of prompts received.
    #[serde(default)]
    pub turns: u64,
}

pub(crate) const META_VERSION: u32 = 1;

/// Whether a session can still be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The session has had no prompt yet.
    Created,
    Active,
    /// Moved to `expired/`.
    Expired,
}

/// Permission mode of a session: the actions that need no approval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Requests permission before it writes a file or runs a command.
    #[default]
    Ask,
    /// Writes files and runs commands without a permission request.
    Auto,
    /// Neither writes files nor runs commands.
    Plan,
}

/// Why a session could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("no such session")]
    NotFound,
    #[error("it expired and was moved to the expired folder")]
    Expired,
    #[error("a session with this id already exists")]
    Collision,
    #[error("another process is using the session")]
    Busy,
    #[error("its files are damaged: {0}")]
    Damaged(String),
    #[error("the session store failed: {0}")]
    Io(#[from] io::Error),
}

/// Lock on a session in use. While it exists, the session does not expire.
pub trait Hold: Send + Sync {}

/// Exclusive writer of a session's history.
pub trait Writer: Send + Sync {
    /// Appends a record. After `Ok` it survives a crash of this process.
    fn append(&mut self, record: &Record) -> Result<(), StoreError>;
    /// Makes all appended records durable. After `Ok` they survive a power failure.
    fn sync(&mut self) -> Result<(), StoreError>;
}

/// Where sessions and their histories are kept.
pub trait Store: Send + Sync {
    /// Adds a session atomically. Fails with `Collision` if the id is taken.
    fn create(&self, meta: &Meta) -> Result<(), StoreError>;
    fn read_meta(&self, id: SessionId) -> Result<Meta, StoreError>;
    fn write_meta(&self, meta: &Meta) -> Result<(), StoreError>;
    fn read_history(&self, id: SessionId) -> Result<History, StoreError>;
    /// Opens the history for writing. Fails with `Busy` while this or another process has a writer.
    fn open_history(&self, id: SessionId) -> Result<Box<dyn Writer>, StoreError>;
    /// Returns all session ids, newest first. Reads no session, so damaged ones are included.
    fn ids(&self) -> Result<Arc<[SessionId]>, StoreError>;
    fn hold(&self, id: SessionId) -> Result<Box<dyn Hold>, StoreError>;
    /// Moves a session to `expired/` if `should_expire` holds for its current metadata and it is not in
    /// use. Returns whether it was moved.
    fn expire(
        &self,
        id: SessionId,
        should_expire: &dyn Fn(&Meta) -> bool,
    ) -> Result<bool, StoreError>;
    /// Removes incomplete sessions left by a process that died while creating them.
    fn clean(&self) -> Result<(), StoreError>;
}
