//! Text updates per second from an agent's pipe: through our connection, through the protocol crate alone, and through
//! a reader that only parses lines into types.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use agent_client_protocol::{Client, Lines, UntypedMessage};
use agent_client_protocol_schema::v1::SessionNotification;
use agents::{AgentEvent, Keepers, Launch, Start, connect};
use anyhow::{Context, Result};
use futures_util::{StreamExt, sink, stream};
use serde::Deserialize;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines as TokioLines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::{Notify, mpsc};

use crate::figures::{Effort, Figures};
use crate::process::sibling_program;

const UPDATES: usize = 300_000;

pub(crate) async fn measure(effort: Effort, figures: &mut Figures) -> Result<()> {
    let (agent, liminal) = (
        sibling_program("scripted-agent")?,
        sibling_program("liminal")?,
    );
    for _ in 0..effort.of(5, 2) {
        let ours = by_our_connection(agent.clone(), liminal.clone()).await?;
        figures.add("updates", rate(ours));
        figures.add("updates_crate", rate(by_the_crate(&agent).await?));
        figures.add("updates_typed", rate(by_a_typed_reader(&agent).await?));
    }
    Ok(())
}

fn rate(took: Duration) -> f64 {
    UPDATES as f64 / took.as_secs_f64() / 1000.0
}

fn prompt() -> serde_json::Value {
    json!({"sessionId": "s", "prompt": [{"type": "text", "text": format!("flood {UPDATES} 20")}]})
}

async fn by_our_connection(program: PathBuf, liminal: PathBuf) -> Result<Duration> {
    let start = Start {
        name: "Scripted".to_owned(),
        launch: Launch {
            program,
            args: vec![],
        },
        keepers: Keepers::new(liminal, "/no/data".as_ref()),
        env: vec![],
        cwd: "/".into(),
        timeout: Duration::from_secs(30),
        capabilities: Default::default(),
        tap: Default::default(),
    };
    let (sender, mut events) = mpsc::channel(1024);
    let connection = connect(start, sender.clone()).await?;
    let began = Instant::now();
    connection.send(&sender, "session/prompt", prompt());
    let mut count = 0;
    let mut batch = Vec::new();
    while count < UPDATES {
        anyhow::ensure!(
            events.recv_many(&mut batch, 256).await > 0,
            "the agent ended"
        );
        count += batch
            .drain(..)
            .filter(|queued| matches!(queued.event, AgentEvent::Update { .. }))
            .count();
    }
    let took = began.elapsed();
    connection.kill();
    Ok(took)
}

async fn by_the_crate(agent: &PathBuf) -> Result<Duration> {
    let (mut child, lines) = spawn(agent)?;
    let stdin = child.stdin.take().context("the child has no stdin")?;
    let outgoing = Box::pin(sink::unfold(stdin, async |mut stdin, line: String| {
        stdin.write_all(format!("{line}\n").as_bytes()).await?;
        Ok::<_, std::io::Error>(stdin)
    }));
    let incoming = stream::unfold(lines, async |mut lines| {
        Some((lines.next_line().await.transpose()?, lines))
    });
    let all = std::sync::Arc::new(Notify::new());
    let (counted, mut count) = (all.clone(), 0);
    let took = Client
        .v1()
        .on_receive_notification(
            async move |_: SessionNotification, _| {
                count += 1;
                if count == UPDATES {
                    counted.notify_one();
                }
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .connect_with(Lines::new(outgoing, incoming.boxed()), async move |rpc| {
            let greeting = UntypedMessage::new("initialize", json!({"protocolVersion": 1}))?;
            rpc.send_request(greeting).block_task().await?;
            let began = Instant::now();
            rpc.prepare_request(UntypedMessage::new("session/prompt", prompt())?)
                .detach()?;
            all.notified().await;
            Ok(began.elapsed())
        })
        .await;
    child.kill().await?;
    took.map_err(|error| anyhow::anyhow!("{error}"))
}

async fn by_a_typed_reader(agent: &PathBuf) -> Result<Duration> {
    #[derive(Deserialize)]
    struct Line {
        #[expect(dead_code, reason = "the benchmark measures the parsing")]
        params: SessionNotification,
    }
    let (mut child, mut lines) = spawn(agent)?;
    let mut stdin = child.stdin.take().context("the child has no stdin")?;
    let began = Instant::now();
    let request =
        json!({"jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": prompt()});
    stdin.write_all(format!("{request}\n").as_bytes()).await?;
    let mut count = 0;
    while count < UPDATES {
        let line = lines.next_line().await?.context("the agent ended")?;
        count += usize::from(serde_json::from_str::<Line>(&line).is_ok());
    }
    let took = began.elapsed();
    child.kill().await?;
    Ok(took)
}

fn spawn(agent: &PathBuf) -> Result<(Child, TokioLines<BufReader<ChildStdout>>)> {
    let mut child = Command::new(agent)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let stdout = child.stdout.take().context("the child has no stdout")?;
    Ok((child, BufReader::with_capacity(64 * 1024, stdout).lines()))
}
