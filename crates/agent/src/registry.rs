//! Registry of sessions: creates, opens, lists, closes and expires them.
//!
//! The store is authoritative; the registry only holds the sessions that this process has open. A
//! session is opened on first use, and the least recently used idle session is closed when too many
//! are open.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::{Span, Timestamp};

use crate::cancel::Cancel;
use crate::session_id::{SessionId, SessionIdError};
use crate::store::{Hold, META_VERSION, Meta, Mode, State, Store, StoreError};
use crate::working_directories::WorkingDirectories;

/// Maximum open sessions, since each one uses a file descriptor.
const OPEN_MAX: usize = 256;
/// Attempts to find an unused id. A collision needs the same 80 random bits in the same millisecond.
const CREATE_ATTEMPTS: usize = 8;
/// Sessions per page of the list.
const PAGE: usize = 50;

/// Settings of a new session.
#[derive(Debug, Clone, Default)]
pub struct SessionConfig {
    pub cwd: PathBuf,
    pub additional_directories: Vec<PathBuf>,
    pub persona: Option<String>,
    pub model: Option<String>,
}

/// Rules for moving sessions to `expired/`. Zero disables a rule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExpiryPolicy {
    pub idle_days: u32,
    pub max_sessions: usize,
}

/// An open session.
pub struct Session {
    pub id: SessionId,
    meta: Mutex<Meta>,
    running: Mutex<Option<Cancel>>,
    /// Tools that the user has allowed while the session is open.
    allowed: Mutex<HashSet<String>>,
    used: Mutex<Timestamp>,
    _hold: Box<dyn Hold>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Guard of a running turn: while it exists, the session cannot start another turn.
pub struct Running {
    session: Arc<Session>,
    pub cancel: Cancel,
}

impl Drop for Running {
    fn drop(&mut self) {
        *locked(&self.session.running) = None;
    }
}

impl Session {
    /// A copy of the session's metadata.
    pub fn meta(&self) -> Meta {
        locked(&self.meta).clone()
    }

    /// Marks a turn as running. Returns `None` if one is already running.
    pub fn start_turn(self: &Arc<Self>) -> Option<Running> {
        let mut running = locked(&self.running);
        if running.is_some() {
            return None;
        }
        let cancel = Cancel::new();
        *running = Some(cancel.clone());
        Some(Running {
            session: self.clone(),
            cancel,
        })
    }

    /// Whether a turn is running.
    pub fn is_running(&self) -> bool {
        locked(&self.running).is_some()
    }

    /// Cancels the running turn, if there is one.
    pub fn cancel(&self) {
        if let Some(cancel) = &*locked(&self.running) {
            cancel.cancel();
        }
    }

    /// Stops asking for permission for this tool while the session is open.
    pub fn allow_always(&self, tool: &str) {
        locked(&self.allowed).insert(tool.to_owned());
    }

    /// Whether the user has allowed this tool while the session is open.
    pub fn allows(&self, tool: &str) -> bool {
        locked(&self.allowed).contains(tool)
    }

    fn touch(&self) {
        *locked(&self.used) = Timestamp::now();
    }
}

/// The sessions of the agent: those in the store, and those that are open.
pub struct Registry {
    store: Arc<dyn Store>,
    policy: ExpiryPolicy,
    open: Mutex<HashMap<SessionId, Arc<Session>>>,
    working_directories: Mutex<WorkingDirectories>,
    new_id: fn() -> std::io::Result<SessionId>,
}

/// One page of the session list.
#[derive(Debug, Default)]
pub struct Page {
    pub sessions: Vec<Meta>,
    /// Sessions that could not be read, with the reason.
    pub damaged: Vec<(SessionId, String)>,
    pub next: Option<SessionId>,
}

impl Registry {
    /// A registry over a store, with random session ids.
    pub fn new(store: Arc<dyn Store>, policy: ExpiryPolicy) -> Self {
        Self::with_ids(store, policy, SessionId::generate)
    }

    /// Like `new`, with another id generator.
    pub fn with_ids(
        store: Arc<dyn Store>,
        policy: ExpiryPolicy,
        new_id: fn() -> std::io::Result<SessionId>,
    ) -> Self {
        Self {
            store,
            policy,
            open: Mutex::default(),
            working_directories: Mutex::default(),
            new_id,
        }
    }

    /// Parses the text of a session id.
    pub fn validate_session_id(text: &str) -> Result<SessionId, SessionIdError> {
        SessionId::parse(text)
    }

    /// The store with the metadata and histories of all sessions.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Creates a session durably under a new id, and opens it.
    pub fn create_session(&self, config: SessionConfig) -> Result<Arc<Session>, StoreError> {
        let now = Timestamp::now();
        let mut meta = Meta {
            version: META_VERSION,
            session_id: (self.new_id)()?,
            cwd: config.cwd,
            additional_directories: config.additional_directories,
            state: State::Created,
            created_at: now,
            last_used_at: now,
            title: None,
            mode: Mode::default(),
            model: config.model,
            persona: config.persona,
            turns: 0,
        };
        for attempt in 1.. {
            match self.store.create(&meta) {
                Err(StoreError::Collision) if attempt < CREATE_ATTEMPTS => {
                    meta.session_id = (self.new_id)()?;
                }
                Err(error) => return Err(error),
                Ok(()) => break,
            }
        }
        self.open_with(meta)
    }

    /// Returns the session if it is open.
    pub fn get_session(&self, id: SessionId) -> Option<Arc<Session>> {
        locked(&self.open).get(&id).cloned()
    }

    /// Returns the session and opens it if necessary.
    pub fn open_session(&self, id: SessionId) -> Result<Arc<Session>, StoreError> {
        if let Some(session) = self.get_session(id) {
            session.touch();
            return Ok(session);
        }
        self.open_with(self.store.read_meta(id)?)
    }

    fn open_with(&self, meta: Meta) -> Result<Arc<Session>, StoreError> {
        let id = meta.session_id;
        let hold = self.store.hold(id)?;
        let session = Arc::new(Session {
            id,
            meta: Mutex::new(meta),
            running: Mutex::default(),
            allowed: Mutex::default(),
            used: Mutex::new(Timestamp::now()),
            _hold: hold,
        });
        let mut open = locked(&self.open);
        let kept = open.entry(id).or_insert(session).clone();
        if open.len() > OPEN_MAX {
            let idle = |session: &&Arc<Session>| session.id != id && !session.is_running();
            let oldest = open
                .values()
                .filter(idle)
                .min_by_key(|session| *locked(&session.used));
            if let Some(oldest) = oldest.map(|session| session.id) {
                open.remove(&oldest);
            }
        }
        Ok(kept)
    }

    /// Changes the metadata of a session, in the store first.
    pub fn change(
        &self,
        session: &Session,
        change: impl FnOnce(&mut Meta),
    ) -> Result<Meta, StoreError> {
        let mut held = locked(&session.meta);
        let mut meta = held.clone();
        change(&mut meta);
        if meta != *held {
            self.store.write_meta(&meta)?;
            *held = meta.clone();
        }
        Ok(meta)
    }

    /// Closes a session: cancels its turn and releases its lock. It stays in the store.
    pub fn close_session(&self, id: SessionId) -> Option<Arc<Session>> {
        let session = locked(&self.open).remove(&id)?;
        session.cancel();
        Some(session)
    }

    /// Closes all open sessions, cancels their turns and returns them.
    pub fn close_all(&self) -> Vec<Arc<Session>> {
        let all: Vec<_> = locked(&self.open)
            .drain()
            .map(|(_, session)| session)
            .collect();
        for session in &all {
            session.cancel();
        }
        all
    }

    /// Returns the newest `count` session ids.
    pub fn newest(&self, count: usize) -> Vec<SessionId> {
        let ids = self.store.ids().unwrap_or_default();
        ids.iter().take(count).copied().collect()
    }

    /// Returns a page of the list, newest first, starting after `after`.
    pub fn list(
        &self,
        after: Option<SessionId>,
        cwd: Option<&PathBuf>,
    ) -> Result<Page, StoreError> {
        let ids = self.store.ids()?;
        let ids = match cwd {
            None => ids,
            Some(cwd) => locked(&self.working_directories)
                .sessions_in(&ids, cwd)
                .into(),
        };
        let begin = after.map_or(0, |after| ids.partition_point(|id| *id >= after));
        let mut page = Page::default();
        let mut last = None;
        for id in &ids[begin..] {
            if page.sessions.len() == PAGE {
                page.next = last;
                break;
            }
            last = Some(*id);
            match self.store.read_meta(*id) {
                Ok(meta) => {
                    locked(&self.working_directories).insert(*id, &meta.cwd);
                    if cwd.is_none_or(|cwd| *cwd == meta.cwd) {
                        page.sessions.push(meta);
                    }
                }
                // The session was removed after the ids were read.
                Err(StoreError::NotFound | StoreError::Expired) => {}
                Err(error) => page.damaged.push((*id, error.to_string())),
            }
        }
        Ok(page)
    }

    /// Moves sessions to `expired/` according to the policy. A session in use by any process is kept.
    pub fn remove_expired(&self, now: Timestamp) -> Result<Vec<SessionId>, StoreError> {
        self.store.clean()?;
        let ExpiryPolicy {
            idle_days,
            max_sessions,
        } = self.policy;
        if idle_days == 0 && max_sessions == 0 {
            return Ok(Vec::new());
        }
        let limit = Span::new().hours(i64::from(idle_days) * 24);
        let limit = now.checked_sub(limit).unwrap_or(Timestamp::MIN);
        let ids = self.store.ids()?;
        let too_many = match max_sessions {
            0 => 0,
            max => ids.len().saturating_sub(max),
        };
        let mut removed = Vec::new();
        let mut kept = Vec::new();
        for &id in ids.iter() {
            // A session created after the limit was also last used after the limit, so its file need not be read.
            let young =
                idle_days == 0 || i128::from(id.created_ms()) > i128::from(limit.as_millisecond());
            if young && too_many == 0 {
                continue;
            }
            let idle = |meta: &Meta| idle_days != 0 && meta.last_used_at < limit;
            match self.store.read_meta(id) {
                Ok(meta) if idle(&meta) => {
                    if self.expire(id, &idle) {
                        removed.push(id);
                    }
                }
                Ok(meta) => kept.push((meta.last_used_at, id)),
                // A damaged session stays where it is, for the user to inspect.
                Err(_) => {}
            }
        }
        kept.sort_unstable();
        let mut too_many = too_many.saturating_sub(removed.len());
        for (last_used_at, id) in kept {
            if too_many == 0 {
                break;
            }
            if self.expire(id, &|meta| meta.last_used_at == last_used_at) {
                removed.push(id);
                too_many -= 1;
            }
        }
        Ok(removed)
    }

    fn expire(&self, id: SessionId, should_expire: &dyn Fn(&Meta) -> bool) -> bool {
        match self.store.expire(id, should_expire) {
            Ok(expired) => expired,
            Err(error) => {
                tracing::warn!(session = %id, %error, "could not move an expired session");
                false
            }
        }
    }
}
