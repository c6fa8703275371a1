//! An ACP client for the built-in agent, over pipes, one line per message.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use testkit::HANG_GUARD;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::agent_stdio::schema::Schema;

/// A temporary directory with a project and the agent's data, and the environment of the agents started in it.
pub(crate) struct Place {
    _dir: tempfile::TempDir,
    pub(crate) project: PathBuf,
    pub(crate) data: PathBuf,
    env: Vec<(String, String)>,
}

impl Place {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let project = root.join("project");
        std::fs::create_dir(&project).unwrap();
        std::fs::write(
            project.join("README.md"),
            "# A project\nwith a needle in it\n",
        )
        .unwrap();
        Self {
            _dir: dir,
            project,
            data: root.join("data"),
            env: Vec::new(),
        }
    }

    pub(crate) fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.env.push((name.to_owned(), value.into()));
        self
    }

    pub(crate) fn write(&self, file: &str, text: &str) {
        std::fs::write(self.project.join(file), text).unwrap();
    }

    pub(crate) fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.project.join(file)).unwrap_or_default()
    }

    pub(crate) fn sessions(&self) -> PathBuf {
        self.data.join("agent/sessions")
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(testkit::liminal().unwrap());
        command
            .arg("agent")
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("LIMINAL_DATA_DIR", &self.data)
            .envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    pub(crate) fn start(&self) -> Agent {
        Agent::start(self.command())
    }

    /// Starts and initializes an agent; the client offers neither file access nor terminals.
    pub(crate) async fn start_initialized(&self) -> Agent {
        let mut agent = self.start();
        agent.initialize(json!({})).await;
        agent
    }
}

/// Handler for the agent's requests: returns a result or an error message; the result `Null` sends no response.
type Answering = Box<dyn FnMut(&str, &Value) -> Result<Value, String> + Send>;

/// A running agent.
pub(crate) struct Agent {
    pub(crate) child: Child,
    stdin: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
    next_id: AtomicU64,
    schema: &'static Schema,
    /// Id and method of each request without a response.
    waiting: Vec<(u64, String)>,
    /// Responses that arrived before `answer` was called for them.
    early: Vec<Value>,
    answering: Answering,
    /// Requests received from the agent: method and parameters.
    pub(crate) asked: Vec<(String, Value)>,
}

/// The response to a request.
pub(crate) struct Reply {
    pub(crate) result: Value,
    pub(crate) error: Value,
    /// The session updates that arrived before the response.
    pub(crate) updates: Vec<Value>,
}

impl Reply {
    pub(crate) fn kinds(&self) -> Vec<&str> {
        let kind = |update: &Value| update["sessionUpdate"].as_str().map(str::len);
        assert!(self.updates.iter().all(|update| kind(update).is_some()));
        self.updates
            .iter()
            .filter_map(|update| update["sessionUpdate"].as_str())
            .collect()
    }

    pub(crate) fn of_kind(&self, kind: &str) -> Vec<&Value> {
        let is = |update: &&Value| update["sessionUpdate"] == kind;
        self.updates.iter().filter(is).collect()
    }

    pub(crate) fn text(&self) -> String {
        text_of(&self.updates, "agent_message_chunk")
    }

    pub(crate) fn thoughts(&self) -> String {
        text_of(&self.updates, "agent_thought_chunk")
    }
}

pub(crate) fn text_of(updates: &[Value], kind: &str) -> String {
    let chunks = updates
        .iter()
        .filter(|update| update["sessionUpdate"] == kind);
    chunks
        .filter_map(|chunk| chunk["content"]["text"].as_str())
        .collect()
}

pub(crate) fn prompt(session: &str, text: &str) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]})
}

/// Answers every permission request with the given option.
pub(crate) fn permitting(option: &'static str) -> Answering {
    Box::new(move |method, _| match method {
        "session/request_permission" => {
            Ok(json!({"outcome": {"outcome": "selected", "optionId": option}}))
        }
        other => Err(format!("{other} is not a capability of this client")),
    })
}

impl Agent {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let stdout = child.stdout.take().unwrap();
        Self {
            stdin: child.stdin.take(),
            lines: BufReader::new(stdout).lines(),
            child,
            next_id: AtomicU64::new(1),
            schema: Schema::shared(),
            waiting: Vec::new(),
            early: vec![],
            answering: permitting("allow_once"),
            asked: Vec::new(),
        }
    }

    pub(crate) fn answer_with(&mut self, answering: Answering) {
        self.answering = answering;
    }

    pub(crate) async fn initialize(&mut self, capabilities: Value) -> Value {
        let params = json!({"protocolVersion": 1, "clientCapabilities": capabilities});
        self.call("initialize", params).await.result
    }

    pub(crate) async fn new_session(&mut self, cwd: &Path) -> String {
        let params = json!({"cwd": cwd, "mcpServers": []});
        let reply = self.call("session/new", params).await;
        assert_eq!(reply.error, Value::Null);
        let commands = self.update().await;
        assert_eq!(commands["sessionUpdate"], "available_commands_update");
        reply.result["sessionId"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn prompt(&mut self, session: &str, text: &str) -> Reply {
        self.call("session/prompt", prompt(session, text)).await
    }

    pub(crate) async fn load(&mut self, session: &str, cwd: &Path) -> Reply {
        let params = json!({"sessionId": session, "cwd": cwd, "mcpServers": []});
        self.call("session/load", params).await
    }

    /// Sends a request and collects the updates up to its response.
    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Reply {
        let id = self.send(method, params).await;
        self.answer(id).await
    }

    pub(crate) async fn send(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        self.waiting.push((id, method.to_owned()));
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await;
        id
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        self.write(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
            .await;
    }

    pub(crate) async fn write(&mut self, message: &Value) {
        self.write_line(&message.to_string()).await;
    }

    pub(crate) async fn write_line(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin
            .write_all(format!("{line}\n").as_bytes())
            .await
            .unwrap();
        stdin.flush().await.unwrap();
    }

    pub(crate) async fn answer(&mut self, id: u64) -> Reply {
        let mut updates = Vec::new();
        let reply = |message: &Value, updates| Reply {
            result: message["result"].clone(),
            error: message["error"].clone(),
            updates,
        };
        if let Some(at) = self.early.iter().position(|answer| answer["id"] == id) {
            return reply(&self.early.swap_remove(at), updates);
        }
        loop {
            let message = self.message().await;
            if message["method"] == "session/update" {
                updates.push(message["params"]["update"].clone());
            } else if message["method"].is_null() {
                if message["id"] == id {
                    return reply(&message, updates);
                }
                self.early.push(message);
            }
        }
    }

    /// Returns the next session update; requests of the agent are answered meanwhile.
    pub(crate) async fn update(&mut self) -> Value {
        loop {
            let message = self.message().await;
            if message["method"] == "session/update" {
                return message["params"]["update"].clone();
            }
        }
    }

    /// Reads until an update matches and returns it.
    pub(crate) async fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let update = self.update().await;
            if fits(&update) {
                return update;
            }
        }
    }

    /// Returns the next message after checking it against the schema; a request of the agent is answered first.
    pub(crate) async fn message(&mut self) -> Value {
        let message = self.line().await.expect("the agent closed its output");
        let id = message["id"].clone();
        let method = message["method"].as_str().map(str::to_owned);
        match method {
            Some(method) => {
                self.schema.check_call(&method, &message);
                if !id.is_null() {
                    self.asked.push((method.clone(), message["params"].clone()));
                    let answer = match (self.answering)(&method, &message["params"]) {
                        Ok(Value::Null) => return message,
                        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
                        Err(text) => {
                            json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32603, "message": text}})
                        }
                    };
                    self.write(&answer).await;
                }
            }
            None => {
                let place = self.waiting.iter().position(|(waiting, _)| id == *waiting);
                let method = place.map(|place| self.waiting.swap_remove(place).1);
                self.schema.check_answer(method.as_deref(), &message);
            }
        }
        message
    }

    /// Returns the next line, parsed, or `None` at the end of the output.
    pub(crate) async fn line(&mut self) -> Option<Value> {
        let line = tokio::time::timeout(HANG_GUARD, self.lines.next_line());
        let line = line
            .await
            .expect("the agent sent no line in time")
            .unwrap()?;
        Some(serde_json::from_str(&line).unwrap_or_else(|_| panic!("invalid JSON: {line}")))
    }

    /// Closes the agent's input and waits until it exits.
    pub(crate) async fn close_and_wait(mut self) -> std::process::ExitStatus {
        drop(self.stdin.take());
        while self.line().await.is_some() {}
        let ended = tokio::time::timeout(HANG_GUARD, self.child.wait());
        ended.await.expect("the agent did not exit").unwrap()
    }

    pub(crate) async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }
}
