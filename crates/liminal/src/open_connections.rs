//! The number of open connections, so that a server started for one call ends only after the last client has left.

use std::sync::Arc;

use tokio::sync::watch;

/// Counter of open connections; clones share the count.
#[derive(Clone)]
pub(crate) struct OpenConnections {
    /// `None` once no further connection is admitted.
    count: Arc<watch::Sender<Option<usize>>>,
}

impl Default for OpenConnections {
    fn default() -> Self {
        let count = Arc::new(watch::Sender::new(Some(0)));
        Self { count }
    }
}

/// One open connection; it ends when this is dropped.
pub(crate) struct OpenConnection {
    connections: OpenConnections,
}

impl OpenConnections {
    pub(crate) fn enter(&self) -> Option<OpenConnection> {
        let entered = self.count.send_if_modified(|count| {
            let counted = count.as_mut().map(|count| *count += 1);
            counted.is_some()
        });
        entered.then(|| OpenConnection {
            connections: self.clone(),
        })
    }

    /// Waits until all connections have ended. No connection is admitted afterwards.
    pub(crate) async fn all_left(&self) {
        let mut changes = self.count.subscribe();
        while !self
            .count
            .send_if_modified(|count| count.take_if(|count| *count == 0).is_some())
        {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.connections.count.send_modify(|count| {
            if let Some(count) = count {
                *count -= 1;
            }
        });
    }
}
