//! Cost of creating, opening and listing sessions, and the memory of each.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testkit::{Person, ServerSetup};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::figures::{Effort, Figures, ms};
use crate::plain::Plain;
use crate::process::{memory_mib, setup, sibling_program};
use crate::store::{fill, id};

const OPEN: usize = 100;
const LISTED: usize = 10_000;
const SETTLE: Duration = Duration::from_millis(500);

pub(crate) async fn measure(effort: Effort, figures: &mut Figures) -> Result<()> {
    memory(effort, figures).await?;
    let kept = setup()?;
    let mut entries = vec![2000, 20_000];
    entries.resize(LISTED, 1);
    let project_id = fill(&kept, &entries).await?;
    for _ in 0..effort.of(9, 3) {
        let server = kept.start().await?;
        let mut person = Person::at(&server, &kept.folder("app")?).await?;
        for (name, number) in [("2000", 0), ("20000", 1)] {
            let begin = Instant::now();
            let open = json!({"type": "session:open", "sessionId": id(number)});
            let history = person.socket.ask(open).await?;
            figures.add(format!("history_{name}"), ms(begin));
            ensure!(history["type"] == "session:history", "{history:.200}");
            figures.add(format!("plain_history_{name}"), read(&kept, number)?);
        }
        let begin = Instant::now();
        let list = json!({"type": "session:list", "projectId": project_id});
        let listed = person.socket.ask(list).await?;
        figures.add("list", ms(begin));
        ensure!(listed["sessions"].as_array().map(Vec::len) >= Some(LISTED));
        figures.add("plain_list", read_index(&kept)?);
        person.create().await?;
        let mut agent = Agent::start().await?;
        for _ in 0..10 {
            let begin = Instant::now();
            let id = person.create().await?;
            figures.add("create", ms(begin));
            figures.add("agent_create", agent.create().await?);
            let begin = Instant::now();
            person.open(&id).await?;
            figures.add("open", ms(begin));
            let begin = Instant::now();
            person.socket.ask(json!({"type": "nonsense"})).await?;
            figures.add("plain_open", ms(begin));
        }
        server.signal("KILL").await?;
    }
    Ok(())
}

/// The agent alone, driven through its pipes, without storage.
struct Agent {
    _child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Agent {
    async fn start() -> Result<Self> {
        let mut child = Command::new(sibling_program("scripted-agent")?)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let stdin = child.stdin.take().context("the child has no stdin")?;
        let stdout = BufReader::new(child.stdout.take().context("the child has no stdout")?);
        let mut agent = Self {
            _child: child,
            stdin,
            stdout,
        };
        let hello = json!({"protocolVersion": 1, "clientCapabilities": {}});
        agent.ask("initialize", &hello).await?;
        Ok(agent)
    }

    /// Duration of `session/new`, in milliseconds.
    async fn create(&mut self) -> Result<f64> {
        let begin = Instant::now();
        let new = json!({"cwd": "/", "mcpServers": []});
        self.ask("session/new", &new).await?;
        Ok(ms(begin))
    }

    async fn ask(&mut self, method: &str, params: &Value) -> Result<()> {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let line = format!("{request}\n");
        self.stdin.write_all(line.as_bytes()).await?;
        loop {
            let mut line = String::new();
            ensure!(
                self.stdout.read_line(&mut line).await? > 0,
                "the agent has ended"
            );
            let said: Value = serde_json::from_str(&line)?;
            if said["id"] == 1 && said.get("method").is_none() {
                ensure!(said.get("result").is_some(), "{said}");
                return Ok(());
            }
        }
    }
}

/// Baseline of a history: reads a transcript, serializes it as one response and parses that, in milliseconds.
fn read(kept: &ServerSetup, number: usize) -> Result<f64> {
    let name = format!("sessions/00000000-0000-4000-8000-{number:012}.jsonl");
    let path = kept.data_dir().join(name);
    let begin = Instant::now();
    let text = std::fs::read_to_string(path)?;
    let lines = text.lines().map(serde_json::from_str);
    let entries: Vec<Value> = lines.collect::<Result<_, _>>()?;
    let answer: Value = serde_json::from_str(&serde_json::to_string(&entries)?)?;
    let took = ms(begin);
    ensure!(answer.is_array());
    Ok(took)
}

/// Baseline of the session list: reads the index, serializes it as one response and parses that, in milliseconds.
fn read_index(kept: &ServerSetup) -> Result<f64> {
    let path = kept.data_dir().join("sessions.json");
    let begin = Instant::now();
    let index: Value = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    let answer: Value = serde_json::from_str(&index["sessions"].to_string())?;
    let took = ms(begin);
    ensure!(answer.is_array());
    Ok(took)
}

/// Memory of a hundred sessions open in one window, and of one session open in a hundred windows.
async fn memory(effort: Effort, figures: &mut Figures) -> Result<()> {
    for _ in 0..effort.of(3, 1) {
        let setup = setup()?;
        let server = setup.start().await?;
        let folder = setup.folder("app")?;
        let mut person = Person::at(&server, &folder).await?;
        let mut talk = person.begin().await?;
        person.turn(&mut talk, "say first").await?;
        tokio::time::sleep(SETTLE).await;
        let before = memory_mib(server.id())?;
        let mut windows = vec![];
        for _ in 0..OPEN {
            let mut window = Person::at(&server, &folder).await?;
            window.open(&talk.session_id).await?;
            windows.push(window);
        }
        tokio::time::sleep(SETTLE).await;
        let watched = memory_mib(server.id())?;
        figures.add(
            "memory_subscriber",
            (watched - before) / OPEN as f64 * 1024.0,
        );
        drop(windows);
        for number in 1..OPEN {
            let mut talk = person.begin().await?;
            person
                .turn(&mut talk, &format!("say session {number}"))
                .await?;
        }
        tokio::time::sleep(SETTLE).await;
        let open = memory_mib(server.id())?;
        figures.add("memory_100_open", open);
        let others = (OPEN - 1) as f64;
        figures.add("memory_session", (open - before) / others * 1024.0);
        server.signal("KILL").await?;
        if let Some(script) = std::env::var_os("NODE_BRIDGE") {
            figures.add("node_memory", bridge_mib(Path::new(&script)).await?);
        }
    }
    Ok(())
}

/// Memory of a bridge in Node with one session.
async fn bridge_mib(script: &Path) -> Result<f64> {
    let mut bridge = Plain::node_bridge(script).await?;
    bridge.socket.send_text("say first").await?;
    while bridge.socket.next_text().await? != "done" {}
    tokio::time::sleep(SETTLE).await;
    memory_mib(bridge.id()?)
}
