//! Who is inside, so that a server that was started for one call ends only when nobody else needs it.

use std::sync::Arc;

use tokio::sync::watch;

/// Clones count the same guests.
#[derive(Clone)]
pub(crate) struct Guests {
    /// `None` once nobody is let in any more.
    inside: Arc<watch::Sender<Option<usize>>>,
}

impl Default for Guests {
    fn default() -> Self {
        let inside = Arc::new(watch::Sender::new(Some(0)));
        Self { inside }
    }
}

/// One of them, until it is dropped.
pub(crate) struct Guest {
    guests: Guests,
}

impl Guests {
    pub(crate) fn enter(&self) -> Option<Guest> {
        let entered = self.inside.send_if_modified(|inside| {
            let counted = inside.as_mut().map(|count| *count += 1);
            counted.is_some()
        });
        entered.then(|| Guest {
            guests: self.clone(),
        })
    }

    /// When everybody has left. Nobody comes in afterwards.
    pub(crate) async fn all_left(&self) {
        let mut changes = self.inside.subscribe();
        while !self
            .inside
            .send_if_modified(|inside| inside.take_if(|count| *count == 0).is_some())
        {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.guests.inside.send_modify(|inside| {
            if let Some(count) = inside {
                *count -= 1;
            }
        });
    }
}
