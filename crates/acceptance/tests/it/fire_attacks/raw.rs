//! A WebSocket client that sends what it likes, byte by byte.

use anyhow::{Result, ensure};
use testkit::{HANG_GUARD, Server};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

pub(crate) const TEXT: u8 = 1;
pub(crate) const CONTINUATION: u8 = 0;
const LAST: u8 = 0x80;
/// The bit by which a compressed message is known.
pub(crate) const COMPRESSED: u8 = 0x40;

/// As whom somebody sends what they like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caller {
    /// At the browser's door, with the token.
    Window,
    /// At the gateway, let in.
    Program,
    /// At the gateway, before it has said who it is.
    Stranger,
}

impl Caller {
    pub(crate) const ALL: [Self; 3] = [Self::Window, Self::Program, Self::Stranger];
}

pub(crate) struct Raw {
    pub(crate) stream: TcpStream,
    /// The answer to the upgrade.
    pub(crate) head: String,
}

impl Raw {
    /// A connection to the browser door by somebody who knows the token, with any other headers.
    pub(crate) async fn browser(server: &Server, headers: &str) -> Result<Self> {
        let bearer = format!("Authorization: Bearer {}\r\n{headers}", server.token);
        Self::open(server, "/ws", &bearer).await
    }

    pub(crate) async fn of(caller: Caller, server: &Server) -> Result<Self> {
        match caller {
            Caller::Window => Self::browser(server, "").await,
            Caller::Stranger => Self::open(server, "/gateway", "").await,
            Caller::Program => {
                let mut raw = Self::open(server, "/gateway", "").await?;
                let hello = serde_json::json!({"type": "auth", "token": server.token}).to_string();
                let hello = frame(TEXT, true, hello.as_bytes());
                raw.stream.write_all(&hello).await?;
                raw.hears("\"ok\":true").await?;
                Ok(raw)
            }
        }
    }

    /// Reads until these words came.
    pub(crate) async fn hears(&mut self, words: &str) -> Result<()> {
        let mut heard = vec![];
        while !String::from_utf8_lossy(&heard).contains(words) {
            let mut buffer = [0; 4096];
            let reading = self.stream.read(&mut buffer);
            let count = tokio::time::timeout(HANG_GUARD, reading).await??;
            ensure!(count > 0, "hung up: {}", String::from_utf8_lossy(&heard));
            heard.extend(&buffer[..count]);
        }
        Ok(())
    }

    pub(crate) async fn open(server: &Server, path: &str, headers: &str) -> Result<Self> {
        let socket = TcpSocket::new_v4()?;
        // What waits on this side says nothing of the other.
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

    /// What the server says until it hangs up.
    pub(crate) async fn rest(&mut self) -> Result<Vec<u8>> {
        let mut heard = vec![];
        let reading = self.stream.read_to_end(&mut heard);
        // Hung up on in the middle of our own words is hung up all the same.
        let _ = tokio::time::timeout(HANG_GUARD, reading).await?;
        Ok(heard)
    }
}

/// A masked frame; the mask is nothing, so that the bytes stay as they are.
pub(crate) fn frame(kind: u8, last: bool, payload: &[u8]) -> Vec<u8> {
    let mut bytes = head(kind, last, payload.len() as u64);
    bytes.extend(payload);
    bytes
}

/// A frame's beginning, which may promise more than ever comes.
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

/// The code in a goodbye, if there is one at the end of what was heard.
pub(crate) fn goodbye(heard: &[u8]) -> Option<u16> {
    let at = heard
        .windows(2)
        .rposition(|pair| pair[0] == 0x88 && pair[1] < 126)?;
    let code = heard.get(at + 2..at + 4)?;
    Some(u16::from_be_bytes([code[0], code[1]]))
}
