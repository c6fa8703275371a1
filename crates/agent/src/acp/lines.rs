//! Transport between the pipes and the protocol crate: lines, bounded and in order.
//!
//! The crate's queues are unbounded, so the next line enters it only after the previous one has been
//! dispatched: a marker notification follows each line and reports that. Outgoing lines pass one
//! bounded channel, and lines waiting there are written together.

use futures_channel::mpsc as lines;
use futures_util::SinkExt;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, watch};

/// Maximum length of a line from the client. Prompts with images are long.
const LINE_BYTES_MAX: usize = 64 * 1024 * 1024;
const READ_BYTES: usize = 64 * 1024;
const WRITE_BYTES: usize = 256 * 1024;
pub(super) const MARK_METHOD: &str = "_liminal/dispatched";

/// Reads lines until the input ends or the receiver is dropped.
pub(super) async fn read(
    mut input: impl AsyncRead + Unpin,
    mut to_crate: lines::Sender<String>,
    mut dispatched: watch::Receiver<u64>,
) {
    let mut buffer = Vec::with_capacity(READ_BYTES);
    let mut searched = 0;
    let mut marks = 0;
    loop {
        buffer.reserve(READ_BYTES);
        match input.read_buf(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let mut begin = 0;
        while let Some(length) = memchr::memchr(b'\n', &buffer[begin.max(searched)..]) {
            let end = begin.max(searched) + length;
            searched = 0;
            let line = String::from_utf8_lossy(&buffer[begin..end]);
            begin = end + 1;
            if line.trim().is_empty() {
                continue;
            }
            marks += 1;
            let mark = format!(
                r#"{{"jsonrpc":"2.0","method":"{MARK_METHOD}","params":{{"mark":{marks}}}}}"#
            );
            let sent = async {
                to_crate.send(line.into_owned()).await.ok()?;
                to_crate.send(mark).await.ok()?;
                dispatched.wait_for(|mark| *mark >= marks).await.ok()?;
                Some(())
            };
            if sent.await.is_none() {
                return;
            }
        }
        buffer.drain(..begin);
        searched = buffer.len();
        if buffer.len() > LINE_BYTES_MAX {
            tracing::error!(
                "received a line of more than {LINE_BYTES_MAX} bytes; closing the connection"
            );
            return;
        }
        // Free the memory of a huge line instead of keeping it for the life of the process.
        if buffer.is_empty() && buffer.capacity() > 16 * READ_BYTES {
            buffer = Vec::with_capacity(READ_BYTES);
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
