//! Cancellation flag of a turn, shared by the turn and the requests that may cancel it.

use tokio::sync::watch;

/// Signals a running turn to stop. Clones share the signal.
#[derive(Clone)]
pub struct Cancel(watch::Sender<bool>);

impl Cancel {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(false))
    }

    pub(crate) fn cancel(&self) {
        self.0.send_replace(true);
    }

    pub(crate) async fn cancelled(&self) {
        // Cannot fail, because `self` holds the sender.
        let _ = self.0.subscribe().wait_for(|cancelled| *cancelled).await;
    }
}
