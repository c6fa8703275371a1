//! The connection to a server: the one that is there, or one started for this call.

use std::collections::VecDeque;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail};
use futures_util::{SinkExt, StreamExt};
use hub::store::{DataDir, address_of_server};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

use crate::config::Settings;
use crate::token::Token;

/// A list of many thousand sessions is one frame.
const FRAME_BYTES_MAX: usize = 256 * 1024 * 1024;
/// How long a server may take to let us in.
const ANSWER_DEADLINE: Duration = Duration::from_secs(10);
/// How long a server of our own may take to be ready, and to end.
const START_DEADLINE: Duration = Duration::from_secs(30);
const END_DEADLINE: Duration = Duration::from_secs(10);

pub(super) struct Link {
    socket: WebSocketStream<TcpStream>,
    /// What came while an answer was awaited.
    events: VecDeque<Value>,
    last_id: u64,
    /// It ends when this does, however we end: its standard input is a pipe from us.
    own: Option<Child>,
}

impl Link {
    pub(super) async fn open(settings: &Settings) -> anyhow::Result<Self> {
        let dir = DataDir::prepare(&settings.data_dir.value)?;
        let token = Token::obtain(&dir, settings.token.as_deref())?;
        let (url, own) = match address_of_server(dir.path()) {
            Some(url) => (url, None),
            None => {
                let (url, child) = start(&dir).await?;
                (url, Some(child))
            }
        };
        let entering = tokio::time::timeout(ANSWER_DEADLINE, Self::enter(&url, &token, own));
        let entered = entering.await.ok();
        entered.with_context(|| format!("The server at {url} does not answer."))?
    }

    async fn enter(url: &str, token: &Token, own: Option<Child>) -> anyhow::Result<Self> {
        let address = url.trim_start_matches("http://").trim_end_matches('/');
        let stream = TcpStream::connect(address)
            .await
            .with_context(|| format!("The server at {url} does not answer."))?;
        let limits = WebSocketConfig::default()
            .max_message_size(Some(FRAME_BYTES_MAX))
            .max_frame_size(Some(FRAME_BYTES_MAX));
        let door = format!("ws://{address}/gateway");
        let (socket, _) =
            tokio_tungstenite::client_async_with_config(door, stream, Some(limits)).await?;
        let mut link = Self {
            socket,
            events: VecDeque::new(),
            last_id: 0,
            own,
        };
        let hello = json!({"type": "auth", "token": token.reveal()});
        link.say(&hello).await?;
        let welcome = link.read().await?;
        if welcome["ok"] != true {
            bail!(
                "The server at {url} does not know our token. Is LIMINAL_TOKEN set as it was for the server?"
            );
        }
        Ok(link)
    }

    pub(super) async fn call(&mut self, method: &str, params: Value) -> anyhow::Result<Value> {
        self.last_id += 1;
        let id = self.last_id;
        self.say(&json!({"id": id, "method": method, "params": params}))
            .await?;
        loop {
            let mut frame = self.read().await?;
            if frame["id"] != id {
                self.events.push_back(frame);
            } else if let Some(message) = frame["error"]["message"].as_str() {
                bail!("{message}");
            } else {
                return Ok(frame["result"].take());
            }
        }
    }

    pub(super) async fn event(&mut self) -> anyhow::Result<Value> {
        match self.events.pop_front() {
            Some(event) => Ok(event),
            None => self.read().await,
        }
    }

    /// Ends a server that was started for this call.
    pub(super) async fn close(mut self) {
        let _ = self.socket.close(None).await;
        if let Some(mut own) = self.own.take() {
            drop(own.stdin.take());
            let _ = tokio::time::timeout(END_DEADLINE, own.wait()).await;
        }
    }

    async fn say(&mut self, frame: &Value) -> anyhow::Result<()> {
        let text = frame.to_string();
        self.socket.send(Message::Text(text.into())).await?;
        Ok(())
    }

    async fn read(&mut self) -> anyhow::Result<Value> {
        loop {
            match self.socket.next().await {
                Some(Ok(Message::Text(text))) => return Ok(serde_json::from_str(&text)?),
                Some(Ok(Message::Close(_)) | Err(_)) | None => bail!("the server hung up"),
                Some(Ok(_)) => {}
            }
        }
    }
}

async fn start(dir: &DataDir) -> anyhow::Result<(String, Child)> {
    let mut child = Command::new(std::env::current_exe()?)
        .args([
            "serve",
            "--while-stdin",
            "--port",
            "0",
            "--gateway-port",
            "off",
            "--no-open",
            "--data-dir",
        ])
        .arg(dir.path())
        .env("LIMINAL_LOG", "error")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let stdout = child.stdout.take().context("its output")?;
    let mut line = String::new();
    let mut lines = BufReader::new(stdout);
    tokio::time::timeout(START_DEADLINE, lines.read_line(&mut line)).await??;
    let url = line.trim_end().split_once("ready: ").map(|(_, url)| url);
    let url = url
        .and_then(|url| url.split_once("/#"))
        .map(|(url, _)| url.to_owned());
    Ok((url.context("the server did not start")?, child))
}
