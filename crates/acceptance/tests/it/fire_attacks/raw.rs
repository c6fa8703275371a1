//! A WebSocket client that can send arbitrary bytes.

use anyhow::{Result, ensure};
use testkit::{HANG_GUARD, Server};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

pub(crate) const TEXT: u8 = 1;
pub(crate) const CONTINUATION: u8 = 0;
const LAST: u8 = 0x80;
/// The RSV1 bit, which marks a compressed message.
pub(crate) const COMPRESSED: u8 = 0x40;

/// Kind of connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caller {
    /// Authenticated, on the browser API.
    Browser,
    /// Authenticated, on the gateway.
    Program,
    /// On the gateway, before authentication.
    Unauthenticated,
}

impl Caller {
    pub(crate) const ALL: [Self; 3] = [Self::Browser, Self::Program, Self::Unauthenticated];
}

pub(crate) struct Raw {
    pub(crate) stream: TcpStream,
    /// The HTTP response to the upgrade.
    pub(crate) head: String,
}

impl Raw {
    /// Opens an authenticated connection to the browser API, with additional headers.
    pub(crate) async fn browser(server: &Server, headers: &str) -> Result<Self> {
        let bearer = format!("Authorization: Bearer {}\r\n{headers}", server.token);
        Self::open(server, "/ws", &bearer).await
    }

    pub(crate) async fn of(caller: Caller, server: &Server) -> Result<Self> {
        match caller {
            Caller::Browser => Self::browser(server, "").await,
            Caller::Unauthenticated => Self::open(server, "/gateway", "").await,
            Caller::Program => {
                let mut raw = Self::open(server, "/gateway", "").await?;
                let hello = serde_json::json!({"type": "auth", "token": server.token}).to_string();
                let hello = frame(TEXT, true, hello.as_bytes());
                raw.stream.write_all(&hello).await?;
                raw.read_until("\"ok\":true").await?;
                Ok(raw)
            }
        }
    }

    /// Reads until the received bytes contain `words`.
    pub(crate) async fn read_until(&mut self, words: &str) -> Result<()> {
        let mut received = vec![];
        while !String::from_utf8_lossy(&received).contains(words) {
            let mut buffer = [0; 4096];
            let reading = self.stream.read(&mut buffer);
            let count = tokio::time::timeout(HANG_GUARD, reading).await??;
            ensure!(
                count > 0,
                "the server closed the connection: {}",
                String::from_utf8_lossy(&received)
            );
            received.extend(&buffer[..count]);
        }
        Ok(())
    }

    pub(crate) async fn open(server: &Server, path: &str, headers: &str) -> Result<Self> {
        let socket = TcpSocket::new_v4()?;
        // A small send buffer, so that bytes queued on this side are not counted as read by the server.
        socket.set_send_buffer_size(64 * 1024)?;
        let mut stream = socket.connect(server.address).await?;
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{headers}\r\n",
            server.address
        );
        stream.write_all(request.as_bytes()).await?;
        let mut head = vec![];
        while !head.ends_with(b"\r\n\r\n") {
            head.push(tokio::time::timeout(HANG_GUARD, stream.read_u8()).await??);
        }
        let head = String::from_utf8(head)?;
        ensure!(head.starts_with("HTTP/1.1 101"), "{head}");
        Ok(Self { stream, head })
    }

    /// Returns everything the server sends until it closes the connection.
    pub(crate) async fn rest(&mut self) -> Result<Vec<u8>> {
        let mut received = vec![];
        let reading = self.stream.read_to_end(&mut received);
        // A reset while bytes are still being sent counts as closed.
        let _ = tokio::time::timeout(HANG_GUARD, reading).await?;
        Ok(received)
    }
}

/// A masked frame; the mask is zero, so that the payload is sent unchanged.
pub(crate) fn frame(kind: u8, last: bool, payload: &[u8]) -> Vec<u8> {
    let mut bytes = head(kind, last, payload.len() as u64);
    bytes.extend(payload);
    bytes
}

/// The head of a frame; its length may be more than what is sent.
pub(crate) fn head(kind: u8, last: bool, length: u64) -> Vec<u8> {
    let mut bytes = vec![kind | if last { LAST } else { 0 }];
    match length {
        0..126 => bytes.push(0x80 | length as u8),
        126..0x1_0000 => {
            bytes.push(0x80 | 126);
            bytes.extend((length as u16).to_be_bytes());
        }
        _ => {
            bytes.push(0x80 | 127);
            bytes.extend(length.to_be_bytes());
        }
    }
    bytes.extend([0; 4]);
    bytes
}

/// The close code at the end of the received bytes, if there is a close frame.
pub(crate) fn close_code(received: &[u8]) -> Option<u16> {
    let at = received
        .windows(2)
        .rposition(|pair| pair[0] == 0x88 && pair[1] < 126)?;
    let code = received.get(at + 2..at + 4)?;
    Some(u16::from_be_bytes([code[0], code[1]]))
}
