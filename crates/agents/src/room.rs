//! Room in memory for what is on its way from an agent to a session. What is short is bounded by how many may wait; what is
//! long takes room until the session has dealt with it, so that an agent whose session cannot go on is not read on.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What is no longer than this takes none.
const SHORT_BYTES: usize = 4 * 1024;
/// For all that is long together; the longest line has to fit.
const KIB: usize = 64 * 1024;

/// Given back when it is dropped.
#[derive(Debug, Default)]
pub struct Room(Vec<OwnedSemaphorePermit>);

impl Room {
    pub(super) fn join(&mut self, other: Self) {
        self.0.extend(other.0);
    }
}

#[derive(Debug)]
pub(super) struct Rooms(Arc<Semaphore>);

impl Default for Rooms {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(KIB)))
    }
}

impl Rooms {
    pub(super) fn are_needed(bytes: usize) -> bool {
        bytes > SHORT_BYTES
    }

    /// Waits until there is room for so much.
    pub(super) async fn take(&self, bytes: usize) -> Room {
        let kib = bytes.div_ceil(1024).min(KIB) as u32;
        let taken = self.0.clone().acquire_many_owned(kib).await;
        Room(taken.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_finds_no_room_waits_until_some_is_given_back() {
        let rooms = Rooms::default();
        let most = rooms.take(KIB * 1024 * 2).await;
        let waiting = rooms.take(5000);
        tokio::pin!(waiting);
        assert!(futures_util::poll!(&mut waiting).is_pending());
        drop(most);
        waiting.await;
    }
}
