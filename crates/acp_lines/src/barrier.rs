//! The barrier in front of the protocol crate.

use futures_channel::mpsc as lines;
use futures_util::SinkExt;
use serde_json::Value;
use tokio::sync::watch;

/// Method of the marker notification that follows each line.
pub const MARK_METHOD: &str = "_liminal/dispatched";

/// Passes lines into the protocol crate, one at a time.
#[derive(Debug)]
pub struct Barrier {
    to_crate: lines::Sender<String>,
    dispatched: watch::Receiver<u64>,
    marks: u64,
}

/// Reports the markers that the crate has dispatched.
#[derive(Debug, Clone)]
pub struct Dispatched(watch::Sender<u64>);

/// The crate takes no more lines, or dispatches none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closed;

/// A barrier, the lines for the crate's transport, and the reporter for its notification handler. If the reporter is
/// dropped, the barrier is closed.
pub fn barrier() -> (Barrier, lines::Receiver<String>, Dispatched) {
    let (to_crate, lines) = lines::channel(2);
    let (mark, dispatched) = watch::channel(0);
    let barrier = Barrier {
        to_crate,
        dispatched,
        marks: 0,
    };
    (barrier, lines, Dispatched(mark))
}

impl Barrier {
    /// Passes a line to the crate and waits until the crate has dispatched it.
    pub async fn pass(&mut self, line: String) -> Result<(), Closed> {
        self.marks += 1;
        let mark = self.marks;
        let marker =
            format!(r#"{{"jsonrpc":"2.0","method":"{MARK_METHOD}","params":{{"mark":{mark}}}}}"#);
        self.to_crate.send(line).await.map_err(|_| Closed)?;
        self.to_crate.send(marker).await.map_err(|_| Closed)?;
        let dispatched = self.dispatched.wait_for(|seen| *seen >= mark);
        dispatched.await.map(drop).map_err(|_| Closed)
    }
}

impl Dispatched {
    /// The number of the marker, if the notification is one.
    pub fn mark(method: &str, params: &Value) -> Option<u64> {
        params["mark"].as_u64().filter(|_| method == MARK_METHOD)
    }

    /// Lets the line behind this marker pass.
    pub fn reached(&self, mark: u64) {
        self.0.send_replace(mark);
    }
}
