//! The wish to stop, and the wait until everybody has.

use std::time::Duration;

use tokio::sync::watch;

/// Held by whoever may ask for it.
pub(crate) struct Stop {
    sender: watch::Sender<bool>,
}

/// Held by everything that has to end. As long as one is alive, something is still running.
#[derive(Clone)]
pub(crate) struct StopSignal {
    receiver: watch::Receiver<bool>,
}

pub(crate) fn channel() -> (Stop, StopSignal) {
    let (sender, receiver) = watch::channel(false);
    (Stop { sender }, StopSignal { receiver })
}

impl Stop {
    pub(crate) fn ask(&self) {
        self.sender.send_replace(true);
    }

    /// Until every signal has been dropped, or the time is up.
    pub(crate) async fn wait(&self, at_most: Duration) {
        let _ = tokio::time::timeout(at_most, self.sender.closed()).await;
    }
}

impl StopSignal {
    pub(crate) async fn received(&mut self) {
        let _ = self.receiver.wait_for(|asked| *asked).await;
    }
}
