//! The last of what an agent wrote on its standard error, however much it writes.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::process::ChildStderr;
use tokio::sync::watch;

const KEPT_BYTES: usize = 8 * 1024;
/// How long a process that just failed may take to say why.
const LAST_WORDS: Duration = Duration::from_millis(500);

#[derive(Clone)]
pub(super) struct StderrTail {
    kept: Arc<Mutex<Vec<u8>>>,
    closed: watch::Receiver<bool>,
}

impl StderrTail {
    /// Reads until the end, so that the agent is never held up by its own complaints.
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

    /// As text, without control characters: it may end up in a terminal.
    pub(super) fn text(&self) -> String {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&kept);
        text.chars()
            .filter(|c| *c == '\n' || !c.is_control())
            .collect::<String>()
            .trim()
            .to_owned()
    }

    /// The same, once the process has had the time to say its last.
    pub(super) async fn settled(&self) -> String {
        let mut closed = self.closed.clone();
        let _ = tokio::time::timeout(LAST_WORDS, closed.wait_for(|closed| *closed)).await;
        self.text()
    }
}
