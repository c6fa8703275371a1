//! What the WebSockets of both doors have in common: what they take, and how they end.
//!
//! Whoever says goodbye is answered, and whoever is sent away gets to read why: a connection that is dropped while
//! something is still on its way from the other side takes our last words with it.

use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade};

const FRAME_BYTES_MAX: usize = 1024 * 1024;
/// Most messages are small, and there may be many connections.
const BUFFER_BYTES: usize = 8 * 1024;
/// What is read in less time than it takes to hand it over.
const SHORT_BYTES: usize = 16 * 1024;
/// How long a goodbye may take.
const CLOSE_DEADLINE: Duration = Duration::from_millis(500);

pub(crate) const GOING_AWAY: u16 = 1001;
pub(crate) const PROTOCOL_ERROR: u16 = 1002;
pub(crate) const NOT_TEXT: u16 = 1003;
pub(crate) const NOT_UTF8: u16 = 1007;
pub(crate) const TOO_BIG: u16 = 1009;
pub(crate) const TOO_SLOW: u16 = 4008;
pub(crate) const NOT_ADMITTED: u16 = 4401;

pub(crate) fn bounded(upgrade: WebSocketUpgrade) -> WebSocketUpgrade {
    upgrade
        .max_message_size(FRAME_BYTES_MAX)
        .max_frame_size(FRAME_BYTES_MAX)
        .read_buffer_size(BUFFER_BYTES)
}

/// Reads a text; a long one where it holds up nobody else. `None` if that ended badly.
pub(crate) async fn read<T: Send + 'static>(text: Utf8Bytes, read: fn(&str) -> T) -> Option<T> {
    if text.len() <= SHORT_BYTES {
        return Some(read(&text));
    }
    tokio::task::spawn_blocking(move || read(&text)).await.ok()
}

/// Says goodbye, and waits a moment for the answer. False when nobody takes it.
pub(crate) async fn close(socket: &mut WebSocket, code: u16, why: &'static str) -> bool {
    let frame = CloseFrame {
        code,
        reason: why.into(),
    };
    let closing = async {
        let said = socket.send(Message::Close(Some(frame))).await.is_ok();
        read_out(socket).await;
        said
    };
    let closed = tokio::time::timeout(CLOSE_DEADLINE, closing);
    closed.await.unwrap_or(false)
}

/// Answers the goodbye that was just received.
pub(crate) async fn answer_close(socket: &mut WebSocket) {
    let _ = tokio::time::timeout(CLOSE_DEADLINE, read_out(socket)).await;
}

/// Reading on is also what sends the answer.
async fn read_out(socket: &mut WebSocket) {
    while let Some(Ok(_)) = socket.recv().await {}
}

/// What to tell one whose frames cannot be read on from here.
pub(crate) fn why_broken(error: axum::Error) -> (u16, &'static str) {
    match error.into_inner().downcast_ref() {
        Some(tungstenite::Error::Capacity(_)) => (TOO_BIG, "a message may have 1 MiB at most"),
        Some(tungstenite::Error::Utf8(_)) => (NOT_UTF8, "that is not UTF-8"),
        _ => (PROTOCOL_ERROR, "that is not the WebSocket protocol"),
    }
}
