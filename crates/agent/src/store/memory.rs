//! Session store in memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Hold, Meta, State, Store, StoreError, Writer};
use crate::history::{History, Record};
use crate::session_id::SessionId;

/// A store in memory, for tests.
#[derive(Clone, Default)]
pub struct MemoryStore {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    sessions: BTreeMap<SessionId, (Meta, Vec<Record>)>,
    held: HashMap<SessionId, usize>,
    writing: HashMap<SessionId, ()>,
}

impl MemoryStore {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Held(MemoryStore, SessionId);

impl Hold for Held {}

impl Drop for Held {
    fn drop(&mut self) {
        let mut inner = self.0.lock();
        if let Some(count) = inner.held.get_mut(&self.1) {
            *count -= 1;
        }
    }
}

struct Appending(MemoryStore, SessionId);

impl Writer for Appending {
    fn append(&mut self, record: &Record) -> Result<(), StoreError> {
        let mut inner = self.0.lock();
        let session = inner.sessions.get_mut(&self.1);
        let (_, records) = session.ok_or(StoreError::NotFound)?;
        records.push(record.clone());
        Ok(())
    }

    fn sync(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}

impl Drop for Appending {
    fn drop(&mut self) {
        self.0.lock().writing.remove(&self.1);
    }
}

impl Store for MemoryStore {
    fn create(&self, meta: &Meta) -> Result<(), StoreError> {
        let mut inner = self.lock();
        if inner.sessions.contains_key(&meta.session_id) {
            return Err(StoreError::Collision);
        }
        let session = (meta.clone(), Vec::new());
        inner.sessions.insert(meta.session_id, session);
        Ok(())
    }

    fn read_meta(&self, id: SessionId) -> Result<Meta, StoreError> {
        let inner = self.lock();
        let (meta, _) = inner.sessions.get(&id).ok_or(StoreError::NotFound)?;
        match meta.state {
            State::Expired => Err(StoreError::Expired),
            State::Created | State::Active => Ok(meta.clone()),
        }
    }

    fn write_meta(&self, meta: &Meta) -> Result<(), StoreError> {
        let mut inner = self.lock();
        let session = inner.sessions.get_mut(&meta.session_id);
        session.ok_or(StoreError::NotFound)?.0 = meta.clone();
        Ok(())
    }

    fn read_history(&self, id: SessionId) -> Result<History, StoreError> {
        self.read_meta(id)?;
        let inner = self.lock();
        let (_, records) = inner.sessions.get(&id).ok_or(StoreError::NotFound)?;
        Ok(History {
            records: records.clone(),
            unreadable: 0,
        })
    }

    fn open_history(&self, id: SessionId) -> Result<Box<dyn Writer>, StoreError> {
        self.read_meta(id)?;
        match self.lock().writing.insert(id, ()) {
            Some(()) => Err(StoreError::Busy),
            None => Ok(Box::new(Appending(self.clone(), id))),
        }
    }

    fn ids(&self) -> Result<Arc<[SessionId]>, StoreError> {
        let inner = self.lock();
        let kept = inner.sessions.iter().rev();
        Ok(kept
            .filter(|(_, (meta, _))| meta.state != State::Expired)
            .map(|(id, _)| *id)
            .collect())
    }

    fn hold(&self, id: SessionId) -> Result<Box<dyn Hold>, StoreError> {
        self.read_meta(id)?;
        *self.lock().held.entry(id).or_default() += 1;
        Ok(Box::new(Held(self.clone(), id)))
    }

    fn expire(
        &self,
        id: SessionId,
        should_expire: &dyn Fn(&Meta) -> bool,
    ) -> Result<bool, StoreError> {
        let mut inner = self.lock();
        let in_use = inner.held.get(&id).is_some_and(|count| *count > 0);
        let (meta, _) = inner.sessions.get_mut(&id).ok_or(StoreError::NotFound)?;
        let goes = !in_use && should_expire(meta);
        if goes {
            meta.state = State::Expired;
        }
        Ok(goes)
    }

    fn clean(&self) -> Result<(), StoreError> {
        Ok(())
    }
}
