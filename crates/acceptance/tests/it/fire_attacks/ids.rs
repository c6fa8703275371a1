//! Forged ids of sessions, projects, agents and permission requests: the server opens no file by such a name.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use testkit::{Program, Scene, ServerSetup, not_run};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::fire_attacks::requests;

const NO_STRACE: &str = "strace is not installed, so opened files cannot be observed";

/// A distinctive part of each forged id.
const MARKS: [&str; 3] = ["4711f0e9", "forged", "4711G4711"];

fn forged() -> Vec<String> {
    [
        "claude-code:forged",
        "claude-code:../../forged",
        "claude-code:/etc/forged",
        "liminal:sess_01ARZ3NDEKTSV4RRFFQ4711G4711",
        "liminal:sess_../forged",
        "sess_01ARZ3NDEKTSV4RRFFQ4711G4711",
        "4711f0e9-4711-4711-8711-471147114711",
        "4711f0e9-4711-4711-8711-471147114711.jsonl",
        "../4711f0e9-4711-4711-8711-471147114711",
        "..%2fforged",
        "forged\u{0}.jsonl",
        "forged/../../token",
        "codex:4711f0e9-4711-4711-8711-471147114711",
        "unknown:forged",
        ":forged",
    ]
    .map(str::to_owned)
    .to_vec()
}

/// Whether a field holds an id, not a path that clients may query or text for an agent.
fn is_id(field: &str) -> bool {
    let field = field.to_ascii_lowercase();
    field.ends_with("id") || field.ends_with("key") || field == "clitype" || field == "images"
}

/// An strace command that logs the file system calls of a process.
fn strace(output: &Path) -> Command {
    let mut strace = Command::new("strace");
    strace
        .args(["-f", "-qq", "-s", "4096", "-e", "trace=%file", "-o"])
        .arg(output);
    strace
}

/// Checks that no file system call contains a forged id.
fn assert_no_forged_id(seen: &str) {
    let made_up = |line: &&str| MARKS.iter().any(|mark| line.contains(mark));
    let looked_for: Vec<_> = seen.lines().filter(made_up).collect();
    assert!(looked_for.is_empty(), "{looked_for:#?}");
}

/// A running strace of a process.
struct Watch {
    strace: Child,
    output: tempfile::NamedTempFile,
}

impl Watch {
    /// Attaches strace to a process; `None` (and the test counts as not run) if strace is not available.
    async fn over(process: u32) -> Result<Option<Self>> {
        let output = tempfile::NamedTempFile::new()?;
        let strace = strace(output.path())
            .args(["-p", &process.to_string()])
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn();
        let Ok(strace) = strace else {
            not_run(NO_STRACE)?;
            return Ok(None);
        };
        Ok(Some(Self { strace, output }))
    }

    fn text(&self) -> Result<String> {
        Ok(String::from_utf8_lossy(&std::fs::read(self.output.path())?).into_owned())
    }

    /// Detaches strace and returns its log.
    async fn end(mut self) -> Result<String> {
        let id = self
            .strace
            .id()
            .context("strace has already exited")?
            .to_string();
        Command::new("kill").args(["-INT", &id]).status().await?;
        self.strace.wait().await?;
        self.text()
    }
}

#[tokio::test]
async fn server_opens_no_file_by_a_forged_id() -> Result<()> {
    let mut scene = Scene::new().await?;
    let folder = scene.setup.folder("app")?;
    let Some(watch) = Watch::over(scene.server.id()).await? else {
        return Ok(());
    };
    // A legitimate path must appear in the log, which proves that strace sees the calls.
    let upload = scene
        .server
        .picture("0123456789abcdef0123456789abcdef")
        .await?;
    assert_eq!(upload.status, 404);
    let seeing = async {
        while !watch.text()?.contains("seen-by-the-watch") {
            let complete =
                json!({"type": "folder:complete", "path": format!("{folder}/seen-by-the-watch/x")});
            scene.user.socket.ask(complete).await?;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(testkit::HANG_GUARD, seeing).await??;

    let mut asked = 0;
    for shape in requests::of_browsers()? {
        for id in forged() {
            let Some(mut request) = shape.fill(&id, is_id) else {
                break;
            };
            request["type"] = json!(shape.name);
            if request.get("path").is_some() {
                request["path"] = json!(folder);
            }
            let answer = scene.user.socket.ask(request).await?;
            ensure!(
                answer["code"] != "INTERNAL_ERROR",
                "{} {id:?}: {answer}",
                shape.name
            );
            asked += 1;
        }
    }
    for shape in requests::of_programs(&scene.setup).await? {
        let mut program = Program::at(&scene.server).await?;
        for id in forged() {
            let Some(params) = shape.fill(&id, is_id) else {
                break;
            };
            let answer = program.call(&shape.name, params).await?;
            ensure!(
                answer["error"]["code"] != -32603,
                "{} {id:?}: {answer}",
                shape.name
            );
            asked += 1;
        }
    }
    for path in [
        "forged",
        "..%2fforged",
        "4711f0e9-4711-4711-8711-471147114711",
    ] {
        assert_eq!(scene.server.picture(path).await?.status, 404, "{path}");
    }
    let seen = watch.end().await?;
    assert_no_forged_id(&seen);
    println!("{asked} requests with forged ids");
    drop(scene.session);
    Ok(())
}

/// Covers the built-in agent, which any client can start, with session ids that it did not create.
#[tokio::test]
async fn built_in_agent_opens_no_file_by_a_forged_session_id() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let folder = setup.folder("app")?;
    let output = tempfile::NamedTempFile::new()?;
    let inner = setup.command();
    let program = inner.as_std().get_program().to_owned();
    let mut agent = strace(output.path());
    agent
        .arg(program)
        .arg("agent")
        .env("HOME", setup.home())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let Ok(mut agent) = agent.spawn() else {
        return not_run(NO_STRACE);
    };
    let mut stdin = agent.stdin.take().context("expected a pipe")?;
    let mut stdout = BufReader::new(agent.stdout.take().context("expected a pipe")?);
    let mut lines = vec![
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1, "clientCapabilities": {}}}),
    ];
    for id in forged() {
        for method in [
            "session/load",
            "session/resume",
            "session/prompt",
            "session/set_mode",
            "session/close",
        ] {
            let params = json!({
                "sessionId": id, "cwd": folder, "mcpServers": [], "modeId": "x",
                "prompt": [{"type": "text", "text": "x"}],
            });
            let number = lines.len();
            lines.push(json!({"jsonrpc": "2.0", "id": number, "method": method, "params": params}));
        }
    }
    for line in &lines {
        use tokio::io::AsyncWriteExt as _;
        stdin.write_all(format!("{line}\n").as_bytes()).await?;
    }
    let mut answered = 0;
    while answered < lines.len() {
        let mut line = String::new();
        let reading = stdout.read_line(&mut line);
        ensure!(
            tokio::time::timeout(testkit::HANG_GUARD, reading).await?? > 0,
            "the agent closed its output"
        );
        let answer: serde_json::Value = serde_json::from_str(&line)?;
        if answer["id"] != 0 && answer["id"].is_number() {
            ensure!(answer["error"].is_object(), "{answer}");
        }
        answered += usize::from(answer["id"].is_number());
    }
    drop(stdin);
    let mut rest = String::new();
    tokio::time::timeout(testkit::HANG_GUARD, stdout.read_to_string(&mut rest)).await??;
    agent.wait().await?;
    let seen = String::from_utf8_lossy(&std::fs::read(output.path())?).into_owned();
    ensure!(
        seen.contains("sessions"),
        "strace recorded no file system call"
    );
    assert_no_forged_id(&seen);
    Ok(())
}
