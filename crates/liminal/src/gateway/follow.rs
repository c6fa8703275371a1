//! Who asks: a connection, and the sessions it follows.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hub::{Feed, Hub, HubError, Origin, Shown};
use wire::gateway::{Problem, SessionKey};
use wire::{ErrorCode, Position};

use super::Context;

/// What one who follows must know to tell what comes next apart.
const TAIL: u32 = 50;

/// Clones are the same caller.
#[derive(Clone)]
pub(super) struct Caller {
    pub(super) context: Context,
    feed: Feed,
    connection: u64,
    /// Keys of the sessions that are followed, by canonical id.
    followed: Arc<Mutex<HashMap<String, String>>>,
}

impl Caller {
    pub(super) fn new(context: Context, feed: Feed, connection: u64) -> Self {
        Self {
            context,
            feed,
            connection,
            followed: Arc::default(),
        }
    }

    pub(super) fn hub(&self) -> &Hub {
        &self.context.hub
    }

    pub(super) fn origin(&self, request_id: Option<String>) -> Origin {
        Origin {
            connection: self.connection,
            request_id,
        }
    }

    /// The canonical id of a session that exists.
    pub(super) fn id_of(&self, key: &SessionKey) -> Result<String, Problem> {
        let id = self.hub().sessions().id_of(&key.0);
        id.ok_or_else(|| Problem::new(Problem::NOT_FOUND, "Session not found"))
    }

    pub(super) fn key_of(&self, id: &str) -> Option<String> {
        self.followed().get(id).cloned()
    }

    /// From now on its events are sent; after `after`, if that is still known.
    pub(super) async fn follow(
        &self,
        id: &str,
        key: &str,
        after: Option<Position>,
    ) -> Result<Shown, Problem> {
        let (sessions, feed) = (self.hub().sessions(), self.feed.clone());
        if self.key_of(id).is_some() && after.is_none() {
            // One that was deleted and brought back no longer knows who followed it.
            return sessions.follow(id, feed).await.map_err(problem);
        }
        // Before the first event of it can come.
        self.followed().insert(id.to_owned(), key.to_owned());
        let shown = sessions.show(id, feed, after, Some(TAIL), Origin::default());
        let shown = shown.await;
        if shown.is_err() {
            self.followed().remove(id);
        }
        shown.map_err(problem)
    }

    fn followed(&self) -> MutexGuard<'_, HashMap<String, String>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the hub says, in the gateway's codes.
pub(super) fn problem(error: HubError) -> Problem {
    let code = match error.code() {
        ErrorCode::SessionNotFound | ErrorCode::ProjectNotFound => Problem::NOT_FOUND,
        ErrorCode::InvalidMessage | ErrorCode::ProjectPathInvalid => Problem::INVALID_PARAMS,
        ErrorCode::InternalError => Problem::INTERNAL,
        _ => Problem::CONFLICT,
    };
    Problem::new(code, error.to_string())
}
