//! For `cargo xtask bench`: what a session costs, from the agent's pipe to a client's socket, beside the
//! bare relay. The runs of both alternate. Prints one JSON object of lists.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use testkit::{Conversation, Person, Server, ServerSetup, Socket, count_turns};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

const CHUNKS: usize = 300_000;
const RUNS: usize = 5;
const PACED: usize = 1000;

#[tokio::main]
#[expect(clippy::print_stdout, reason = "the result")]
async fn main() -> Result<()> {
    let release = std::env::current_exe()?
        .ancestors()
        .nth(2)
        .context("target/release")?
        .to_owned();
    let mut measured = json!({});
    for _ in 0..RUNS {
        flood_ours(&release, &mut measured).await?;
        flood_relay(&release, &mut measured).await?;
    }
    many_open(&release, &mut measured).await?;
    many_kept(&release, &mut measured).await?;
    println!("{measured}");
    Ok(())
}

fn add(measured: &mut Value, what: &str, value: f64) {
    match &mut measured[what] {
        Value::Array(list) => list.push(value.into()),
        missing => *missing = json!([value]),
    }
}

fn setup(release: &Path) -> Result<ServerSetup> {
    let program = release.join("liminal");
    let agent = release.join("scripted-agent");
    Ok(ServerSetup::new(program.to_str().context("a path")?)?.env("CLAUDE_ACP_CMD", agent))
}

/// Seconds of processor time a process has used.
fn cpu(pid: u32) -> Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .context("fields")?
        .split_whitespace()
        .collect();
    let ticks: f64 = fields[11].parse::<f64>()? + fields[12].parse::<f64>()?;
    Ok(ticks / 100.0)
}

fn memory_mib(pid: u32) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS"))
        .context("memory")?;
    let kib: f64 = line
        .split_whitespace()
        .nth(1)
        .context("a number")?
        .parse()?;
    Ok(kib / 1024.0)
}

async fn flood_ours(release: &Path, measured: &mut Value) -> Result<()> {
    let setup = setup(release)?;
    let server = setup.start().await?;
    let mut person = Person::at(&server, &setup.folder("app")?).await?;
    let talk = person.begin().await?;
    let before = cpu(server.id())?;
    let begin = Instant::now();
    person.send(&talk, &format!("flood {CHUNKS} 20")).await?;
    let mut bytes = 0;
    while bytes < CHUNKS * 20 {
        let message = person.socket.next().await?;
        let text = match message["type"].as_str() {
            Some("session:chunk") => &message["content"],
            Some("session:update") if message["entry"]["type"] == "assistant" => {
                &message["entry"]["content"]
            }
            _ => continue,
        };
        bytes += text.as_str().map_or(0, str::len);
    }
    add(
        measured,
        "flood",
        CHUNKS as f64 / begin.elapsed().as_secs_f64() / 1000.0,
    );
    person.socket.next_of("session:complete").await?;
    add(
        measured,
        "cpu",
        (cpu(server.id())? - before) / CHUNKS as f64 * 100_000.0,
    );

    person.send(&talk, &format!("clock {PACED} 500")).await?;
    let mut late = vec![];
    loop {
        let message = person.socket.next().await?;
        let text = match message["type"].as_str() {
            Some("session:complete") => break,
            Some("session:chunk") => &message["content"],
            Some("session:update") if message["entry"]["type"] == "assistant" => {
                &message["entry"]["content"]
            }
            _ => continue,
        };
        late.extend(delays(text.as_str().unwrap_or_default())?);
    }
    latencies(measured, "latency", late);
    Ok(())
}

/// How long ago the times in a text were, in microseconds.
fn delays(text: &str) -> Result<Vec<f64>> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let delay = |sent: &str| -> Result<f64> {
        let sent = Duration::from_nanos(sent.parse()?);
        Ok(now.saturating_sub(sent).as_secs_f64() * 1e6)
    };
    text.split_whitespace().map(delay).collect()
}

fn latencies(measured: &mut Value, what: &str, mut late: Vec<f64>) {
    late.sort_by(f64::total_cmp);
    add(measured, &format!("{what}_p50"), late[late.len() / 2]);
    add(
        measured,
        &format!("{what}_p99"),
        late[late.len() * 99 / 100],
    );
}

struct Relay {
    child: Child,
    address: SocketAddr,
}

async fn start_relay(release: &Path) -> Result<Relay> {
    let mut child = Command::new(release.join("examples/bare_relay"))
        .arg(release.join("scripted-agent"))
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().context("a pipe")?)
        .read_line(&mut line)
        .await?;
    Ok(Relay {
        child,
        address: line.trim().parse()?,
    })
}

async fn flood_relay(release: &Path, measured: &mut Value) -> Result<()> {
    let relay = start_relay(release).await?;
    let pid = relay.child.id().context("a process")?;
    let mut socket = Socket::open(relay.address, "/ws", &[]).await?;
    let before = cpu(pid)?;
    let begin = Instant::now();
    socket.send_text(&format!("flood {CHUNKS} 20")).await?;
    let mut count = 0;
    while count < CHUNKS {
        socket.next_text().await?;
        count += 1;
    }
    add(
        measured,
        "relay_flood",
        CHUNKS as f64 / begin.elapsed().as_secs_f64() / 1000.0,
    );
    socket.next_text().await?;
    add(
        measured,
        "relay_cpu",
        (cpu(pid)? - before) / CHUNKS as f64 * 100_000.0,
    );
    socket.send_text(&format!("clock {PACED} 500")).await?;
    let mut late = vec![];
    loop {
        let text = socket.next_text().await?;
        if text == "done" {
            break;
        }
        let message: Value = serde_json::from_str(&text)?;
        late.extend(delays(
            message["content"]["text"].as_str().unwrap_or_default(),
        )?);
    }
    latencies(measured, "relay_latency", late);
    Ok(())
}

/// A hundred sessions open in one window.
async fn many_open(release: &Path, measured: &mut Value) -> Result<()> {
    let setup = setup(release)?;
    let server = setup.start().await?;
    let mut person = Person::at(&server, &setup.folder("app")?).await?;
    for number in 0..100 {
        let mut talk = person.begin().await?;
        person
            .turn(&mut talk, &format!("say session {number}"))
            .await?;
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    add(measured, "memory_100_open", memory_mib(server.id())?);
    Ok(())
}

/// How long a message takes with few and with many sessions kept, and in a short and a long one.
async fn many_kept(release: &Path, measured: &mut Value) -> Result<()> {
    let few = setup(release)?;
    let many = setup(release)?;
    let folder = many.folder("app")?;
    let started = many.start().await?;
    let project_id = Person::at(&started, &folder).await?.project_id;
    started.signal("TERM").await?;
    fill(&many.data_dir(), &project_id, &folder, 10_000)?;
    for _ in 0..RUNS {
        let begin = Instant::now();
        let server = many.start().await?;
        add(
            measured,
            "ready_10000",
            begin.elapsed().as_secs_f64() * 1000.0,
        );
        let mut socket = server.connect().await?;
        let list = json!({"type": "session:list", "projectId": project_id});
        let listed = socket.ask(list).await?;
        anyhow::ensure!(listed["sessions"].as_array().map(Vec::len) == Some(10_000));
        server.signal("TERM").await?;
    }
    let few_server = few.start().await?;
    let many_server = many.start().await?;
    let (mut alone, mut alone_talk) = begin(&few_server, &few).await?;
    let (mut among, mut among_talk) = begin(&many_server, &many).await?;
    let (mut long, mut long_talk) = begin(&few_server, &few).await?;
    for _ in 0..20 {
        long.turn(
            &mut long_talk,
            &"say x\ntool t read R\ntool-done t ok\n".repeat(500),
        )
        .await?;
        let keep = long_talk.entries.len().saturating_sub(3);
        long_talk.entries.drain(..keep);
    }
    for _ in 0..200 {
        add(
            measured,
            "message_alone",
            turn(&mut alone, &mut alone_talk).await?,
        );
        add(
            measured,
            "message_among_10000",
            turn(&mut among, &mut among_talk).await?,
        );
        add(
            measured,
            "message_after_20000",
            turn(&mut long, &mut long_talk).await?,
        );
    }
    Ok(())
}

async fn begin(server: &Server, setup: &ServerSetup) -> Result<(Person, Conversation)> {
    let mut person = Person::at(server, &setup.folder("app")?).await?;
    let talk = person.begin().await?;
    Ok((person, talk))
}

/// Milliseconds for one message and its answer.
async fn turn(person: &mut Person, talk: &mut Conversation) -> Result<f64> {
    let turns = count_turns(talk);
    let begin = Instant::now();
    person.send(talk, "say x").await?;
    person.until_turns(talk, turns + 1).await?;
    Ok(begin.elapsed().as_secs_f64() * 1000.0)
}

/// A store with so many sessions, as if they had been talked to.
fn fill(data_dir: &Path, project_id: &str, folder: &str, count: usize) -> Result<()> {
    let sessions: PathBuf = data_dir.join("sessions");
    std::fs::create_dir_all(&sessions)?;
    let now = "2026-01-01T00:00:00.000Z";
    let mut index = vec![];
    for number in 0..count {
        let key = format!("00000000-0000-4000-8000-{number:012}");
        let id = format!("claude-code:kept-{number}");
        let header = json!({"session": {
            "version": 1, "key": key, "session": id, "cliType": "claude-code", "projectId": project_id,
            "projectPath": folder, "createdAt": now,
        }});
        let entry = json!({"type": "user", "entryId": "e1", "content": "hello", "timestamp": now});
        let text = format!("{header}\n{{\"n\":1,\"entry\":{entry}}}\n");
        let path = sessions.join(format!("{key}.jsonl"));
        std::fs::write(&path, text)?;
        let file = std::fs::File::options().append(true).open(&path)?;
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600))?;
        index.push(json!({
            "id": id, "key": key, "projectId": project_id, "projectPath": folder, "cliType": "claude-code",
            "archived": false, "title": format!("Session {number}"), "lastActiveAt": now, "createdAt": now,
        }));
    }
    let text = json!({"version": 1, "sessions": index}).to_string();
    Ok(std::fs::write(data_dir.join("sessions.json"), text)?)
}
