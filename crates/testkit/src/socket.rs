//! A WebSocket client for JSON messages; every operation ends after [`HANG_GUARD`].

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, bail};
use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::{HeaderName, HeaderValue};
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::tungstenite::{self, Message};

use crate::HANG_GUARD;

/// A WebSocket connection that sends and receives JSON.
pub struct Socket {
    stream: WebSocketStream<TcpStream>,
}

/// The server rejected the WebSocket upgrade.
#[derive(Debug)]
pub struct Refused {
    pub status: Option<u16>,
    pub reason: String,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "refused: {:?} {}", self.status, self.reason)
    }
}

impl std::error::Error for Refused {}

impl Socket {
    /// Opens a connection with these headers.
    pub async fn open(
        address: SocketAddr,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Result<Self, Refused> {
        let other = |error: &dyn std::fmt::Display| Refused {
            status: None,
            reason: error.to_string(),
        };
        let mut request = format!("ws://{address}{path}")
            .into_client_request()
            .map_err(|error| other(&error))?;
        for (name, value) in headers {
            let name: HeaderName = name.parse().map_err(|error| other(&error))?;
            let value: HeaderValue = value.parse().map_err(|error| other(&error))?;
            request.headers_mut().insert(name, value);
        }
        let stream = TcpStream::connect(address)
            .await
            .map_err(|error| other(&error))?;
        // No client-side limit: a history message may be long, and the server enforces its own limits.
        let limits = WebSocketConfig::default()
            .max_message_size(None)
            .max_frame_size(None);
        let opening = tokio_tungstenite::client_async_with_config(request, stream, Some(limits));
        match tokio::time::timeout(HANG_GUARD, opening).await {
            Ok(Ok((stream, _))) => Ok(Self { stream }),
            Ok(Err(tungstenite::Error::Http(response))) => Err(Refused {
                status: Some(response.status().as_u16()),
                reason: String::from_utf8_lossy(response.body().as_deref().unwrap_or_default())
                    .into_owned(),
            }),
            Ok(Err(error)) => Err(other(&error)),
            Err(late) => Err(other(&late)),
        }
    }

    /// Sends a message as text.
    pub async fn send(&mut self, message: Value) -> anyhow::Result<()> {
        self.send_text(&message.to_string()).await
    }

    /// Sends a text frame, which may be invalid JSON.
    pub async fn send_text(&mut self, text: &str) -> anyhow::Result<()> {
        self.send_raw(Message::text(text)).await
    }

    /// Sends a binary frame.
    pub async fn send_bytes(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.send_raw(Message::binary(bytes.to_vec())).await
    }

    /// Sends a ping frame.
    pub async fn ping(&mut self) -> anyhow::Result<()> {
        self.send_raw(Message::Ping("there?".into())).await
    }

    /// Closes the connection and returns the server's close code, if it sends one.
    pub async fn hang_up(&mut self, code: u16) -> anyhow::Result<Option<u16>> {
        let close_frame = CloseFrame {
            code: code.into(),
            reason: "done".into(),
        };
        self.send_raw(Message::Close(Some(close_frame))).await?;
        self.closed().await
    }

    async fn send_raw(&mut self, message: Message) -> anyhow::Result<()> {
        Ok(tokio::time::timeout(HANG_GUARD, self.stream.send(message)).await??)
    }

    /// Returns the next message, parsed.
    pub async fn next(&mut self) -> anyhow::Result<Value> {
        match self
            .next_frame()
            .await?
            .context("the server closed the connection")?
        {
            Message::Text(text) => Ok(serde_json::from_str(&text)?),
            other => bail!("not a text message: {other:?}"),
        }
    }

    /// Returns the next message as text, unparsed.
    pub async fn next_text(&mut self) -> anyhow::Result<String> {
        match self
            .next_frame()
            .await?
            .context("the server closed the connection")?
        {
            Message::Text(text) => Ok(text.to_string()),
            other => bail!("not a text message: {other:?}"),
        }
    }

    /// Returns the next message, or the close code if the server closed the connection.
    pub async fn next_or_close(&mut self) -> anyhow::Result<Result<Value, Option<u16>>> {
        match self.next_frame().await {
            Ok(Some(Message::Text(text))) => Ok(Ok(serde_json::from_str(&text)?)),
            Ok(Some(Message::Close(frame))) => Ok(Err(frame.map(|frame| frame.code.into()))),
            Ok(Some(other)) => bail!("not a text message: {other:?}"),
            Ok(None) | Err(_) => Ok(Err(None)),
        }
    }

    /// Returns the next message of this type and skips all others.
    pub async fn next_of(&mut self, kind: &str) -> anyhow::Result<Value> {
        loop {
            let message = self.next().await?;
            if message["type"] == kind {
                return Ok(message);
            }
        }
    }

    /// Sends a request and waits for the response with its id.
    pub async fn ask(&mut self, mut message: Value) -> anyhow::Result<Value> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let id = format!("{}-{number}", message["type"].as_str().unwrap_or_default());
        message["requestId"] = Value::from(id.as_str());
        self.send(message).await?;
        loop {
            let answer = self.next().await?;
            if answer["requestId"] == id.as_str() {
                return Ok(answer);
            }
        }
    }

    /// Skips messages until the server closes the connection and returns the close code.
    pub async fn closed(&mut self) -> anyhow::Result<Option<u16>> {
        loop {
            match self.next_frame().await {
                Ok(Some(Message::Close(frame))) => return Ok(frame.map(|frame| frame.code.into())),
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => return Ok(None),
            }
        }
    }

    async fn next_frame(&mut self) -> anyhow::Result<Option<Message>> {
        loop {
            let next = tokio::time::timeout(HANG_GUARD, self.stream.next());
            match next.await.context("no message arrived")?.transpose()? {
                Some(Message::Pong(_)) => {}
                next => return Ok(next),
            }
        }
    }
}
