//! Limits and the closing handshake shared by the WebSockets of both listeners.
//!
//! A close frame is answered, and a client that is disconnected can read the reason. If the server dropped a
//! connection with unread input, the reset could discard the close frame before the client reads it.

use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade};

const FRAME_BYTES_MAX: usize = 1024 * 1024;
/// Size of a socket's buffers: small, as most messages are small and there may be many connections.
const BUFFER_BYTES: usize = 8 * 1024;
/// Frames up to this size are parsed in place: faster than handing them to another thread.
const PARSE_IN_PLACE_MAX: usize = 16 * 1024;
/// Time limit for the closing handshake.
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

/// Parses a text frame, a long one on a blocking thread. `None` if parsing panicked.
pub(crate) async fn read<T: Send + 'static>(text: Utf8Bytes, read: fn(&str) -> T) -> Option<T> {
    if text.len() <= PARSE_IN_PLACE_MAX {
        return Some(read(&text));
    }
    tokio::task::spawn_blocking(move || read(&text)).await.ok()
}

/// Sends a close frame and waits for the client to close. False if the frame could not be sent.
pub(crate) async fn close(socket: &mut WebSocket, code: u16, reason: &'static str) -> bool {
    let frame = CloseFrame {
        code,
        reason: reason.into(),
    };
    let closing = async {
        let sent = socket.send(Message::Close(Some(frame))).await.is_ok();
        read_to_end(socket).await;
        sent
    };
    let closed = tokio::time::timeout(CLOSE_DEADLINE, closing);
    closed.await.unwrap_or(false)
}

/// Completes the closing handshake after the client's close frame.
pub(crate) async fn answer_close(socket: &mut WebSocket) {
    let _ = tokio::time::timeout(CLOSE_DEADLINE, read_to_end(socket)).await;
}

/// Reads until the end of the connection; reading also sends the answer to a close frame.
async fn read_to_end(socket: &mut WebSocket) {
    while let Some(Ok(_)) = socket.recv().await {}
}

/// Close code and reason for a connection whose frames cannot be read any further.
pub(crate) fn close_reason(error: axum::Error) -> (u16, &'static str) {
    match error.into_inner().downcast_ref() {
        Some(tungstenite::Error::Capacity(_)) => (TOO_BIG, "a message may be at most 1 MiB"),
        Some(tungstenite::Error::Utf8(_)) => (NOT_UTF8, "text frame is not valid UTF-8"),
        _ => (PROTOCOL_ERROR, "WebSocket protocol error"),
    }
}
