//! The connection to the gateway of the running server, or of one started for this call.

use std::collections::VecDeque;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use store::{DataDir, address_of_server};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdout, Command};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

use crate::config::Settings;
use crate::serve::DATA_DIR_TAKEN;
use crate::token::Token;

/// Maximum frame size; a list of many thousand sessions is one frame.
const FRAME_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Time limit for connecting and authenticating.
const ANSWER_DEADLINE: Duration = Duration::from_secs(10);
/// Time limit for the start of a server.
const START_DEADLINE: Duration = Duration::from_secs(30);
/// Time limit for the end of a server.
const END_DEADLINE: Duration = Duration::from_secs(10);
const RETRY_INTERVAL: Duration = Duration::from_millis(50);

pub(super) struct Link {
    socket: WebSocketStream<TcpStream>,
    /// Events received while waiting for a response.
    events: VecDeque<Value>,
    last_id: u64,
    started: Option<StartedServer>,
}

/// A server started for this call. Its standard input is a pipe from this process, so it stops when this process ends,
/// even if killed, as soon as no other client is connected.
struct StartedServer {
    process: Child,
    stdout: BufReader<ChildStdout>,
}

impl Link {
    pub(super) async fn open(settings: &Settings) -> anyhow::Result<Self> {
        let dir = DataDir::prepare(&settings.data_dir.value)?;
        let start_time = Instant::now();
        loop {
            let (url, started) = find_or_start(&dir).await?;
            // After the server has started: its first start creates the token.
            let token = Token::obtain(&dir, settings.token.as_deref())?;
            let connecting =
                tokio::time::timeout(ANSWER_DEADLINE, Self::connect(&url, &token, started));
            match connecting.await {
                Ok(Ok(Some(link))) => return Ok(link),
                Ok(Err(error)) => return Err(error),
                // That server was stopping: start a new one.
                Ok(Ok(None)) if start_time.elapsed() < START_DEADLINE => {
                    tokio::time::sleep(RETRY_INTERVAL).await;
                }
                _ => bail!(
                    "The server at {url} does not answer. Look at its log, or end its process and retry."
                ),
            }
        }
    }

    /// Connects and authenticates. `None` if the connection fails before the server has responded.
    async fn connect(
        url: &str,
        token: &Token,
        started: Option<StartedServer>,
    ) -> anyhow::Result<Option<Self>> {
        let address = url.trim_start_matches("http://").trim_end_matches('/');
        let Ok(stream) = TcpStream::connect(address).await else {
            return Ok(None);
        };
        let limits = WebSocketConfig::default()
            .max_message_size(Some(FRAME_BYTES_MAX))
            .max_frame_size(Some(FRAME_BYTES_MAX));
        let endpoint = format!("ws://{address}/gateway");
        let upgraded = tokio_tungstenite::client_async_with_config(endpoint, stream, Some(limits));
        let socket = match upgraded.await {
            Ok((socket, _)) => socket,
            Err(tungstenite::Error::Http(refused)) => {
                bail!(
                    "The server at {url} rejected the connection: {}.",
                    refused.status()
                )
            }
            Err(_) => return Ok(None),
        };
        let mut link = Self {
            socket,
            events: VecDeque::new(),
            last_id: 0,
            started,
        };
        let hello = json!({"type": "auth", "token": token.reveal()});
        if link.send(&hello).await.is_err() {
            return Ok(None);
        }
        let Ok(welcome) = link.read().await else {
            return Ok(None);
        };
        if welcome["ok"] != true {
            bail!(
                "The server at {url} rejected the access token. Set LIMINAL_TOKEN to the same value as for the server."
            );
        }
        Ok(Some(link))
    }

    pub(super) async fn call(&mut self, method: &str, params: Value) -> anyhow::Result<Value> {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({"id": id, "method": method, "params": params}))
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

    /// Closes the connection and stops a server that was started for this call.
    pub(super) async fn close(mut self) {
        let _ = self.socket.close(None).await;
        if let Some(mut started) = self.started.take() {
            drop(started.process.stdin.take());
            // Waits for the server's end, or for its notice that other clients are connected.
            let mut line = String::new();
            let reading = started.stdout.read_line(&mut line);
            let _ = tokio::time::timeout(END_DEADLINE, reading).await;
        }
    }

    async fn send(&mut self, frame: &Value) -> anyhow::Result<()> {
        let text = frame.to_string();
        self.socket.send(Message::Text(text.into())).await?;
        Ok(())
    }

    async fn read(&mut self) -> anyhow::Result<Value> {
        loop {
            match self.socket.next().await {
                Some(Ok(Message::Text(text))) => return Ok(serde_json::from_str(&text)?),
                Some(Ok(Message::Close(_)) | Err(_)) | None => {
                    bail!("The server closed the connection.")
                }
                Some(Ok(_)) => {}
            }
        }
    }
}

/// The address of the running server, or of one started for this call.
async fn find_or_start(dir: &DataDir) -> anyhow::Result<(String, Option<StartedServer>)> {
    let start_time = Instant::now();
    loop {
        if let Some(url) = address_of_server(dir.path()) {
            return Ok((url, None));
        }
        if let Some((url, started)) = start(dir).await? {
            return Ok((url, Some(started)));
        }
        // Another server has locked the data directory and has not written its address yet.
        if start_time.elapsed() > START_DEADLINE {
            bail!(
                "Another process uses the data directory but has not published its address. Stop it and retry."
            );
        }
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
}

/// Starts a server. `None` if another process holds the data directory.
async fn start(dir: &DataDir) -> anyhow::Result<Option<(String, StartedServer)>> {
    let mut process = Command::new(std::env::current_exe()?)
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
        // Copied instead of inherited: a reader of this process's stderr must not wait for the end of the server, which
        // other clients may keep running.
        .stderr(Stdio::piped())
        // Ctrl+C must not reach the server: this process translates it into an abort of the run.
        .process_group(0)
        .spawn()?;
    let mut stderr = process.stderr.take().context("its errors")?;
    let passing_on =
        tokio::spawn(async move { tokio::io::copy(&mut stderr, &mut tokio::io::stderr()).await });
    let stdout = process.stdout.take().context("its output")?;
    let mut line = String::new();
    let mut stdout = BufReader::new(stdout);
    tokio::time::timeout(START_DEADLINE, stdout.read_line(&mut line)).await??;
    let url = line.trim_end().split_once("ready: ").map(|(_, url)| url);
    if let Some((url, _)) = url.and_then(|url| url.split_once("/#")) {
        return Ok(Some((url.to_owned(), StartedServer { process, stdout })));
    }
    let ended = tokio::time::timeout(START_DEADLINE, process.wait()).await??;
    let _ = passing_on.await;
    match ended.code() {
        Some(code) if code == i32::from(DATA_DIR_TAKEN) => Ok(None),
        _ => bail!("The server did not start. Run `liminal doctor` to find out why."),
    }
}
