//! For `cargo xtask bench`: the barest relay from an agent's pipe to a WebSocket that still looks at what
//! it passes on. It parses every line into types, feeds the socket whatever is there, and keeps nothing.
//!
//! `bare_relay AGENT` prints its address. The first message of a client is the prompt.

use agent_client_protocol_schema::v1::SessionNotification;
use anyhow::{Context, Result};
use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use axum::routing::any;
use futures_util::SinkExt;
use serde::Deserialize;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;

#[derive(Deserialize)]
struct Line {
    params: Option<SessionNotification>,
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "the address")]
async fn main() -> Result<()> {
    let agent = std::env::args().nth(1).context("the agent's path")?;
    let app = axum::Router::new()
        .route("/ws", any(accept))
        .with_state(agent);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    Ok(axum::serve(listener, app).await?)
}

async fn accept(State(agent): State<String>, upgrade: WebSocketUpgrade) -> Response {
    upgrade
        .write_buffer_size(256 * 1024)
        .on_upgrade(move |socket| async move {
            let _ = relay(agent, socket).await;
        })
}

async fn relay(agent: String, mut socket: WebSocket) -> Result<()> {
    let mut child = Command::new(agent)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut stdin = child.stdin.take().context("a pipe")?;
    let mut lines = BufReader::with_capacity(64 * 1024, child.stdout.take().context("a pipe")?);
    while let Some(Ok(Message::Text(prompt))) = socket.recv().await {
        let params =
            json!({"sessionId": "s", "prompt": [{"type": "text", "text": prompt.as_str()}]});
        let request =
            json!({"jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": params});
        stdin.write_all(format!("{request}\n").as_bytes()).await?;
        let mut text = String::new();
        loop {
            text.clear();
            lines.read_line(&mut text).await?;
            let line: Line = serde_json::from_str(&text)?;
            let Some(params) = line.params else { break };
            let message = serde_json::to_string(&params.update)?;
            socket.feed(Message::Text(message.into())).await?;
            // Flushed when nothing more is there yet.
            if !lines.buffer().contains(&b'\n') {
                socket.flush().await?;
            }
        }
        socket.send(Message::Text("done".into())).await?;
    }
    Ok(())
}
