//! The connection to a server: the one that is there, or one started for this call.

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

/// A list of many thousand sessions is one frame.
const FRAME_BYTES_MAX: usize = 256 * 1024 * 1024;
/// How long a server may take to let us in.
const ANSWER_DEADLINE: Duration = Duration::from_secs(10);
/// How long a server of our own may take to be ready, and to end.
const START_DEADLINE: Duration = Duration::from_secs(30);
const END_DEADLINE: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

pub(super) struct Link {
    socket: WebSocketStream<TcpStream>,
    /// What came while an answer was awaited.
    events: VecDeque<Value>,
    last_id: u64,
    own: Option<Own>,
}

/// A server that was started for this call. It ends when this does, however we end, because its standard input is a
/// pipe from us; but not before others have left who came to it meanwhile.
struct Own {
    process: Child,
    stdout: BufReader<ChildStdout>,
}

impl Link {
    pub(super) async fn open(settings: &Settings) -> anyhow::Result<Self> {
        let dir = DataDir::prepare(&settings.data_dir.value)?;
        let begun = Instant::now();
        loop {
            let (url, own) = find_or_start(&dir).await?;
            // Afterwards: the first server makes one.
            let token = Token::obtain(&dir, settings.token.as_deref())?;
            let entering = tokio::time::timeout(ANSWER_DEADLINE, Self::enter(&url, &token, own));
            match entering.await {
                Ok(Ok(Some(link))) => return Ok(link),
                Ok(Err(error)) => return Err(error),
                // It was about to end: the next one is ours.
                Ok(Ok(None)) if begun.elapsed() < START_DEADLINE => {
                    tokio::time::sleep(LOOK_AGAIN).await;
                }
                _ => bail!("The server at {url} does not answer."),
            }
        }
    }

    /// Nothing when nobody is there, or they hang up before they have answered.
    async fn enter(url: &str, token: &Token, own: Option<Own>) -> anyhow::Result<Option<Self>> {
        let address = url.trim_start_matches("http://").trim_end_matches('/');
        let Ok(stream) = TcpStream::connect(address).await else {
            return Ok(None);
        };
        let limits = WebSocketConfig::default()
            .max_message_size(Some(FRAME_BYTES_MAX))
            .max_frame_size(Some(FRAME_BYTES_MAX));
        let door = format!("ws://{address}/gateway");
        let upgraded = tokio_tungstenite::client_async_with_config(door, stream, Some(limits));
        let socket = match upgraded.await {
            Ok((socket, _)) => socket,
            Err(tungstenite::Error::Http(refused)) => {
                bail!("The server at {url} refuses: {}.", refused.status())
            }
            Err(_) => return Ok(None),
        };
        let mut link = Self {
            socket,
            events: VecDeque::new(),
            last_id: 0,
            own,
        };
        let hello = json!({"type": "auth", "token": token.reveal()});
        if link.say(&hello).await.is_err() {
            return Ok(None);
        }
        let Ok(welcome) = link.read().await else {
            return Ok(None);
        };
        if welcome["ok"] != true {
            bail!(
                "The server at {url} does not know our token. Is LIMINAL_TOKEN set as it was for the server?"
            );
        }
        Ok(Some(link))
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
            drop(own.process.stdin.take());
            // Its end, or a word that others still need it.
            let mut word = String::new();
            let reading = own.stdout.read_line(&mut word);
            let _ = tokio::time::timeout(END_DEADLINE, reading).await;
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

/// The address of the one that is there, or of one of our own.
async fn find_or_start(dir: &DataDir) -> anyhow::Result<(String, Option<Own>)> {
    let begun = Instant::now();
    loop {
        if let Some(url) = address_of_server(dir.path()) {
            return Ok((url, None));
        }
        if let Some((url, own)) = start(dir).await? {
            return Ok((url, Some(own)));
        }
        // Somebody else was faster, and has not said where yet.
        if begun.elapsed() > START_DEADLINE {
            bail!(
                "Another process has the data directory, and does not say where it can be reached."
            );
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// Nothing when another has the data directory.
async fn start(dir: &DataDir) -> anyhow::Result<Option<(String, Own)>> {
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
        // Passed on, not handed over: whoever reads ours waits for our end, not for that of a server others still use.
        .stderr(Stdio::piped())
        // Ctrl+C is for us, who pass it on as what it means.
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
        return Ok(Some((url.to_owned(), Own { process, stdout })));
    }
    let ended = tokio::time::timeout(START_DEADLINE, process.wait()).await??;
    let _ = passing_on.await;
    match ended.code() {
        Some(code) if code == i32::from(DATA_DIR_TAKEN) => Ok(None),
        _ => bail!("The server did not start."),
    }
}
