//! Reassembles the messages between clients and the server from the bytes of the system calls.

use std::collections::HashMap;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// A message from or to a client.
#[derive(Debug, Clone)]
pub(crate) enum Message {
    /// The ready line on the server's standard output, with its address and token.
    Ready(String),
    /// From the client on this connection.
    Asked(u64, Value),
    /// To the client on this connection.
    Shown(u64, Value),
    /// The response to an accepted upload.
    Kept(Value),
}

/// One direction of a connection.
#[derive(Debug, Default)]
struct Stream {
    bytes: Vec<u8>,
    /// Whether the bytes are WebSocket frames.
    upgraded: bool,
}

/// All connections of a server, by the name that strace prints.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    numbers: HashMap<String, u64>,
    streams: HashMap<(u64, bool), Stream>,
    /// The last request line of each connection.
    requests: HashMap<u64, String>,
}

impl Connections {
    /// Adds received or sent bytes and returns the messages that they complete.
    pub(crate) fn moved(&mut self, name: &str, bytes: &[u8], sent: bool) -> Result<Vec<Message>> {
        let next = self.numbers.len() as u64;
        let connection = *self.numbers.entry(name.to_owned()).or_insert(next);
        let stream = self.streams.entry((connection, sent)).or_default();
        stream.bytes.extend_from_slice(bytes);
        let mut messages = vec![];
        loop {
            if stream.upgraded {
                let Some((opcode, payload)) = frame(&mut stream.bytes)? else {
                    break;
                };
                if opcode == 1 {
                    let message: Value = serde_json::from_slice(&payload)?;
                    messages.push(match sent {
                        true => Message::Shown(connection, message),
                        false => Message::Asked(connection, message),
                    });
                }
                continue;
            }
            let Some((head, body)) = http(&mut stream.bytes) else {
                break;
            };
            let first = head.lines().next().unwrap_or_default().to_owned();
            let upgrade = head.to_ascii_lowercase().contains("upgrade: websocket");
            if !sent {
                self.requests.insert(connection, first);
                stream.upgraded = upgrade;
                continue;
            }
            let request = self.requests.get(&connection).map_or("", String::as_str);
            stream.upgraded = first.contains(" 101 ");
            if request.starts_with("POST /uploads ") && first.contains(" 200 ") {
                messages.push(Message::Kept(serde_json::from_slice(&body)?));
            }
        }
        Ok(messages)
    }
}

/// Removes a complete HTTP head and body from the front of the bytes.
fn http(bytes: &mut Vec<u8>) -> Option<(String, Vec<u8>)> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let is_it = name.eq_ignore_ascii_case("content-length");
        is_it.then(|| value.trim().parse::<usize>().ok())?
    });
    let length = length.unwrap_or(0);
    if bytes.len() < end + length {
        return None;
    }
    let body = bytes[end..end + length].to_vec();
    bytes.drain(..end + length);
    Some((head, body))
}

/// Removes a complete WebSocket frame from the front and returns its opcode and payload.
fn frame(bytes: &mut Vec<u8>) -> Result<Option<(u8, Vec<u8>)>> {
    let [first, second, ..] = bytes[..] else {
        return Ok(None);
    };
    let (extended, masked) = (usize::from(second & 0x7f), second & 0x80 != 0);
    let (digits, mut at) = match extended {
        126 => (2, 4),
        127 => (8, 10),
        _ => (0, 2),
    };
    if bytes.len() < at + if masked { 4 } else { 0 } {
        return Ok(None);
    }
    let length = match digits {
        0 => extended,
        _ => {
            let digits = bytes[2..2 + digits].iter();
            digits.fold(0, |length, byte| length << 8 | usize::from(*byte))
        }
    };
    let mask: [u8; 4] = match masked {
        true => {
            at += 4;
            bytes[at - 4..at].try_into().context("expected a mask")?
        }
        false => [0; 4],
    };
    let Some(payload) = bytes.get(at..at + length) else {
        return Ok(None);
    };
    let opcode = first & 0x0f;
    ensure!(
        first & 0x80 != 0 && opcode != 0,
        "fragmented messages are not supported"
    );
    let unmasked = payload.iter().zip(mask.iter().cycle());
    let payload = unmasked.map(|(byte, mask)| byte ^ mask).collect();
    bytes.drain(..at + length);
    Ok(Some((opcode, payload)))
}
