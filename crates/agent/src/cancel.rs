//! A wish to stop, shared by whoever may have it and whoever must heed it.

use tokio::sync::watch;

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
        // Cannot fail: we hold the sender.
        let _ = self.0.subscribe().wait_for(|cancelled| *cancelled).await;
    }
}
