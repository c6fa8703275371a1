//! Where sessions are kept.
//!
//! `Store` says what any backend must do; `files` is the one on disk, `memory` the one for tests and
//! for a client that wants to leave nothing behind.

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

/// What is known of a session beside its history.
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
    /// How many prompts it has had.
    #[serde(default)]
    pub turns: u64,
}

pub(crate) const META_VERSION: u32 = 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Nobody has said anything yet.
    Created,
    Active,
    /// Moved aside.
    Expired,
}

/// What the agent may do without asking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Asks before it writes or runs.
    #[default]
    Ask,
    /// Writes and runs without asking.
    Auto,
    /// Neither writes nor runs.
    Plan,
}

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("there is no such session")]
    NotFound,
    #[error("it expired and was moved aside")]
    Expired,
    #[error("a session of that name exists already")]
    Collision,
    #[error("another process is using it")]
    Busy,
    #[error("its files are damaged: {0}")]
    Damaged(String),
    #[error("the session store failed: {0}")]
    Io(#[from] io::Error),
}

/// A session is in use while one of these lives; it is then never expired.
pub trait Hold: Send + Sync {}

/// The only writer of a history, for as long as it lives.
pub trait Writer: Send + Sync {
    /// After `Ok` the record survives the end of this process.
    fn append(&mut self, record: &Record) -> Result<(), StoreError>;
    /// After `Ok` everything appended survives the end of the machine.
    fn sync(&mut self) -> Result<(), StoreError>;
}

pub trait Store: Send + Sync {
    /// Adds a session, whole or not at all.
    fn create(&self, meta: &Meta) -> Result<(), StoreError>;
    fn read_meta(&self, id: SessionId) -> Result<Meta, StoreError>;
    fn write_meta(&self, meta: &Meta) -> Result<(), StoreError>;
    fn read_history(&self, id: SessionId) -> Result<History, StoreError>;
    /// Busy while another writer lives, in this process or another.
    fn open_history(&self, id: SessionId) -> Result<Box<dyn Writer>, StoreError>;
    /// The newest first. Reads no session, so that a damaged one is listed too.
    fn ids(&self) -> Result<Arc<[SessionId]>, StoreError>;
    fn hold(&self, id: SessionId) -> Result<Box<dyn Hold>, StoreError>;
    /// Moves a session aside, if it still `deserves` it and nobody holds it. Says whether it did.
    fn expire(&self, id: SessionId, deserves: &dyn Fn(&Meta) -> bool) -> Result<bool, StoreError>;
    /// Clears what a process that died in the middle of something has left.
    fn clean(&self) -> Result<(), StoreError>;
}
