//! The caller of a method: a gateway connection and the sessions it is subscribed to.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hub::{Feed, Hub, HubError, Origin, Shown};
use wire::gateway::{Problem, SessionKey};
use wire::{ErrorCode, Position};

use super::Context;

/// Number of recent entries loaded with a subscription: needed to interpret the events that follow.
const RECENT_ENTRIES: u32 = 50;

/// A connection as the methods see it. Clones share its state.
#[derive(Clone)]
pub(super) struct Caller {
    pub(super) context: Context,
    feed: Feed,
    connection: u64,
    /// Keys of the subscribed sessions, by canonical session id.
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

    /// The canonical id of the session with this key, or a not-found error.
    pub(super) fn id_of(&self, key: &SessionKey) -> Result<String, Problem> {
        let id = self.hub().sessions().id_of(&key.0);
        id.ok_or_else(|| Problem::new(Problem::NOT_FOUND, "Session not found"))
    }

    pub(super) fn key_of(&self, id: &str) -> Option<String> {
        self.followed().get(id).cloned()
    }

    /// Subscribes the connection to a session. With `after`, missed events are sent first if they are still available.
    pub(super) async fn follow(
        &self,
        id: &str,
        key: &str,
        after: Option<Position>,
    ) -> Result<Shown, Problem> {
        let (sessions, feed) = (self.hub().sessions(), self.feed.clone());
        if self.key_of(id).is_some() && after.is_none() {
            // Subscribes once more: a session that was deleted and restored has lost its subscribers.
            return sessions.follow(id, feed).await.map_err(problem);
        }
        // Before the first event of the session can arrive.
        self.followed().insert(id.to_owned(), key.to_owned());
        let shown = sessions.show(id, feed, after, Some(RECENT_ENTRIES), Origin::default());
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

/// Converts an error of the hub to an error with the gateway's code.
pub(super) fn problem(error: HubError) -> Problem {
    let code = match error.code() {
        ErrorCode::SessionNotFound | ErrorCode::ProjectNotFound => Problem::NOT_FOUND,
        ErrorCode::InvalidMessage | ErrorCode::ProjectPathInvalid => Problem::INVALID_PARAMS,
        ErrorCode::InternalError => Problem::INTERNAL,
        _ => Problem::CONFLICT,
    };
    Problem::new(code, error.to_string())
}
