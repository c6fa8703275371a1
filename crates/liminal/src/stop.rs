//! A stop signal for all tasks of the server, and the wait until they have ended.

use std::time::Duration;

use tokio::sync::watch;

/// The sending side: requests the stop and waits for the signals to be dropped.
pub(crate) struct Stop {
    sender: watch::Sender<bool>,
}

/// Held by each task that has to end; a signal that still exists means that its task is running.
#[derive(Clone)]
pub(crate) struct StopSignal {
    receiver: watch::Receiver<bool>,
}

pub(crate) fn channel() -> (Stop, StopSignal) {
    let (sender, receiver) = watch::channel(false);
    (Stop { sender }, StopSignal { receiver })
}

impl Stop {
    pub(crate) fn request(&self) {
        self.sender.send_replace(true);
    }

    /// Waits until every signal has been dropped, at most for the given time.
    pub(crate) async fn wait(&self, at_most: Duration) {
        let _ = tokio::time::timeout(at_most, self.sender.closed()).await;
    }
}

impl StopSignal {
    pub(crate) async fn received(&mut self) {
        let _ = self.receiver.wait_for(|requested| *requested).await;
    }
}
