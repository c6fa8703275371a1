//! The last 8 KiB of an agent's standard error.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::process::ChildStderr;
use tokio::sync::watch;

const KEPT_BYTES: usize = 8 * 1024;
/// Maximum wait for the remaining standard error of a process that has failed.
const FINAL_OUTPUT_TIMEOUT: Duration = Duration::from_millis(500);

#[derive(Clone)]
pub(super) struct StderrTail {
    kept: Arc<Mutex<Vec<u8>>>,
    closed: watch::Receiver<bool>,
}

impl StderrTail {
    /// Reads standard error until its end, so that the agent never blocks on a full pipe.
    pub(super) fn drain(mut stderr: ChildStderr) -> Self {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let (close, closed) = watch::channel(false);
        let tail = Self { kept, closed };
        let kept = tail.kept.clone();
        tokio::spawn(async move {
            let mut buffer = vec![0; KEPT_BYTES];
            while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend_from_slice(&buffer[..count]);
                let excess = kept.len().saturating_sub(KEPT_BYTES);
                kept.drain(..excess);
            }
            close.send_replace(true);
        });
        tail
    }

    /// The kept text without control characters, because it may be printed to a terminal.
    pub(super) fn text(&self) -> String {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&kept);
        text.chars()
            .filter(|c| *c == '\n' || !c.is_control())
            .collect::<String>()
            .trim()
            .to_owned()
    }

    /// Like `text`, after waiting up to `FINAL_OUTPUT_TIMEOUT` for the end of standard error.
    pub(super) async fn settled(&self) -> String {
        let mut closed = self.closed.clone();
        let _ = tokio::time::timeout(FINAL_OUTPUT_TIMEOUT, closed.wait_for(|closed| *closed)).await;
        self.text()
    }
}
