//! Minimal relays from an agent's pipe to a WebSocket, without storage or authentication.
//!
//! Each prints its address. A client's message is the prompt; `done` is the last message of a turn.

use agent_client_protocol::{Client, Lines, UntypedMessage};
use agent_client_protocol_schema::v1::{ContentBlock, SessionNotification, SessionUpdate};
use anyhow::{Context, Result, bail};
use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use axum::routing::any;
use axum::serve::ListenerExt;
use futures_util::{SinkExt, StreamExt, sink, stream};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Forwards lines unparsed; all lines available form one frame.
    Lines,
    /// Parses each line into types and serializes it again; frames are flushed in batches.
    Typed,
    /// Like `Typed`, but joins all available text into one frame.
    Coalesced,
    /// The official protocol crate, with one frame per update.
    Crate,
}

#[derive(Clone)]
struct Relay {
    kind: Kind,
    agent: String,
}

#[derive(Deserialize)]
struct Line {
    params: Option<SessionNotification>,
}

pub(crate) async fn serve(kind: &str, agent: &str) -> Result<()> {
    let kind = match kind {
        "lines" => Kind::Lines,
        "typed" => Kind::Typed,
        "coalesced" => Kind::Coalesced,
        "crate" => Kind::Crate,
        other => bail!("no relay {other}"),
    };
    let agent = agent.to_owned();
    let app = axum::Router::new()
        .route("/ws", any(accept))
        .with_state(Relay { kind, agent });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    Ok(axum::serve(listener, app).await?)
}

async fn accept(State(relay): State<Relay>, upgrade: WebSocketUpgrade) -> Response {
    let upgrade = upgrade.write_buffer_size(256 * 1024);
    upgrade.on_upgrade(async move |socket| {
        let _ = match relay.kind {
            Kind::Crate => by_the_crate(&relay.agent, socket).await,
            kind => by_hand(kind, &relay.agent, socket).await,
        };
    })
}

fn spawn(agent: &str) -> Result<(Child, ChildStdin, BufReader<ChildStdout>)> {
    let mut child = Command::new(agent)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let stdin = child.stdin.take().context("the child has no stdin")?;
    let stdout = child.stdout.take().context("the child has no stdout")?;
    Ok((child, stdin, BufReader::with_capacity(64 * 1024, stdout)))
}

fn prompt(text: &str) -> Value {
    json!({"sessionId": "s", "prompt": [{"type": "text", "text": text}]})
}

async fn by_hand(kind: Kind, agent: &str, mut socket: WebSocket) -> Result<()> {
    let (_child, mut stdin, mut lines) = spawn(agent)?;
    while let Some(Ok(Message::Text(text))) = socket.recv().await {
        let request =
            json!({"jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": prompt(&text)});
        stdin.write_all(format!("{request}\n").as_bytes()).await?;
        match kind {
            Kind::Lines => pass_on(&mut lines, &mut socket).await?,
            kind => parse(kind, &mut lines, &mut socket).await?,
        }
        socket.send(Message::Text("done".into())).await?;
    }
    Ok(())
}

async fn pass_on(lines: &mut BufReader<ChildStdout>, socket: &mut WebSocket) -> Result<()> {
    let mut rest = String::new();
    loop {
        let read = lines.fill_buf().await?;
        let (text, count) = (String::from_utf8_lossy(read).into_owned(), read.len());
        anyhow::ensure!(count > 0, "the agent ended");
        lines.consume(count);
        rest.push_str(&text);
        let Some(end) = rest.rfind('\n') else {
            continue;
        };
        let whole: String = rest.drain(..=end).collect();
        // The response to the prompt is the only line with a result.
        let ended = whole.contains("\"result\"");
        socket.send(Message::Text(whole.into())).await?;
        if ended {
            return Ok(());
        }
    }
}

async fn parse(
    kind: Kind,
    lines: &mut BufReader<ChildStdout>,
    socket: &mut WebSocket,
) -> Result<()> {
    let (mut text, mut joined) = (String::new(), String::new());
    loop {
        text.clear();
        lines.read_line(&mut text).await?;
        let line: Line = serde_json::from_str(&text)?;
        let Some(params) = line.params else { break };
        let more = lines.buffer().contains(&b'\n');
        match (kind, &params.update) {
            (Kind::Coalesced, SessionUpdate::AgentMessageChunk(chunk)) => {
                if let ContentBlock::Text(said) = &chunk.content {
                    joined.push_str(&said.text);
                }
                if !more {
                    let message = json!({"text": std::mem::take(&mut joined)}).to_string();
                    socket.feed(Message::Text(message.into())).await?;
                }
            }
            (_, update) => {
                let message = serde_json::to_string(update)?;
                socket.feed(Message::Text(message.into())).await?;
            }
        }
        // Flushed when no further line is available.
        if !more {
            socket.flush().await?;
        }
    }
    if !joined.is_empty() {
        let message = json!({"text": joined}).to_string();
        socket.feed(Message::Text(message.into())).await?;
    }
    Ok(())
}

async fn by_the_crate(agent: &str, socket: WebSocket) -> Result<()> {
    let (_child, stdin, lines) = spawn(agent)?;
    let outgoing = Box::pin(sink::unfold(stdin, async |mut stdin, line: String| {
        stdin.write_all(format!("{line}\n").as_bytes()).await?;
        Ok::<_, std::io::Error>(stdin)
    }));
    let incoming = stream::unfold(lines.lines(), async |mut lines| {
        Some((lines.next_line().await.transpose()?, lines))
    });
    let (updates, mut received) = mpsc::channel::<String>(256);
    let (mut sink, mut prompts) = socket.split();
    tokio::spawn(async move {
        while let Some(update) = received.recv().await {
            sink.send(Message::Text(update.into())).await?;
        }
        Ok::<_, axum::Error>(())
    });
    let ends = updates.clone();
    let served = Client
        .v1()
        .on_receive_notification(
            async move |notification: SessionNotification, _| {
                let update = serde_json::to_string(&notification.update).unwrap_or_default();
                let _ = updates.send(update).await;
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .connect_with(Lines::new(outgoing, incoming.boxed()), async move |rpc| {
            let greeting = UntypedMessage::new("initialize", json!({"protocolVersion": 1}))?;
            rpc.send_request(greeting).block_task().await?;
            while let Some(Ok(Message::Text(text))) = prompts.next().await {
                let request = UntypedMessage::new("session/prompt", prompt(&text))?;
                rpc.send_request(request).block_task().await?;
                let _ = ends.send("done".to_owned()).await;
            }
            Ok(())
        })
        .await;
    served.map_err(|error| anyhow::anyhow!("{error}"))
}
