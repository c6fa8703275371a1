//! Transport between the pipes and the protocol crate: lines, bounded and in order.
//!
//! Incoming lines pass the barrier of `acp_lines`. Outgoing lines pass one bounded channel, and lines waiting there
//! are written together.

use acp_lines::{Barrier, LineBuffer};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

/// Maximum length of a line from the client. Prompts with images are long.
const LINE_BYTES_MAX: usize = 64 * 1024 * 1024;
const WRITE_BYTES: usize = 256 * 1024;

/// Reads lines until the input ends or the receiver is dropped.
pub(super) async fn read(mut input: impl AsyncRead + Unpin, mut barrier: Barrier) {
    let mut buffer = LineBuffer::default();
    while let Ok(1..) = buffer.read(&mut input).await {
        while let Some(line) = buffer.next_line() {
            if line.trim().is_empty() {
                continue;
            }
            if barrier.pass(line.into_owned()).await.is_err() {
                return;
            }
        }
        if buffer.unfinished_bytes() > LINE_BYTES_MAX {
            tracing::error!(
                "received a line of more than {LINE_BYTES_MAX} bytes; closing the connection"
            );
            return;
        }
    }
}

/// Writes lines until all senders are dropped or the output fails.
pub(super) async fn write(mut output: impl AsyncWrite + Unpin, mut lines: mpsc::Receiver<String>) {
    let mut together = Vec::new();
    while let Some(line) = lines.recv().await {
        let mut next = Some(line);
        while let Some(line) = next {
            together.extend_from_slice(line.as_bytes());
            together.push(b'\n');
            next = match together.len() < WRITE_BYTES {
                true => lines.try_recv().ok(),
                false => None,
            };
        }
        let written = output.write_all(&together).await;
        if written.is_err() || output.flush().await.is_err() {
            return;
        }
        together.clear();
        together.shrink_to(WRITE_BYTES);
    }
}
