//! A user's browser window, over the real WebSocket.

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::{Conversation, Server, Socket};

/// A browser window with a selected project.
pub struct Person {
    pub socket: Socket,
    pub project_id: String,
}

impl Person {
    /// Connects and selects a project, which is added if it is missing.
    pub async fn at(server: &Server, folder: &str) -> Result<Self> {
        let mut socket = server.connect().await?;
        let add = json!({"type": "project:add", "path": folder});
        let added = socket.ask(add).await?;
        let list = socket.ask(json!({"type": "project:list"})).await?;
        let projects = list["projects"].as_array().context("expected a list")?;
        let project = projects.iter().find(|project| project["path"] == folder);
        let project = project.with_context(|| format!("{added}"))?;
        let project_id = project["id"].as_str().context("expected an id")?.to_owned();
        Ok(Self { socket, project_id })
    }

    /// Asks for a session with this agent and returns the response, possibly an error.
    pub async fn ask_to_create(&mut self, cli_type: &str) -> Result<Value> {
        let create =
            json!({"type": "session:create", "projectId": self.project_id, "cliType": cli_type});
        self.socket.ask(create).await
    }

    /// Creates a session and returns its id.
    pub async fn create(&mut self) -> Result<String> {
        let created = self.ask_to_create("claude-code").await?;
        ensure!(created["type"] == "session:created", "{created}");
        Ok(created["sessionId"]
            .as_str()
            .context("expected an id")?
            .to_owned())
    }

    /// Creates a session and opens it.
    pub async fn begin(&mut self) -> Result<Conversation> {
        let id = self.create().await?;
        self.open(&id).await
    }

    /// Opens a session and returns it as the server shows it.
    pub async fn open(&mut self, session_id: &str) -> Result<Conversation> {
        let open = json!({"type": "session:open", "sessionId": session_id});
        let mut talk = Conversation::new(session_id);
        talk.apply(&self.socket.ask(open).await?)?;
        Ok(talk)
    }

    /// Requests the events that `talk` has not received yet.
    pub async fn resume(&mut self, talk: &mut Conversation) -> Result<Value> {
        let after = json!({"bootId": talk.boot_id, "seq": talk.seq});
        let open = json!({"type": "session:open", "sessionId": talk.session_id, "after": after});
        let answer = self.socket.ask(open).await?;
        talk.apply(&answer)?;
        Ok(answer)
    }

    /// Sends a message without waiting for its turn.
    pub async fn send(&mut self, talk: &Conversation, content: &str) -> Result<()> {
        let id = unique("send");
        self.send_as(talk, content, &id).await
    }

    /// Sends a message with this request id.
    pub async fn send_as(
        &mut self,
        talk: &Conversation,
        content: &str,
        request_id: &str,
    ) -> Result<()> {
        let send = json!({
            "type": "session:send", "sessionId": talk.session_id, "content": content, "requestId": request_id,
        });
        self.socket.send(send).await
    }

    /// Sends a request about a session and returns its response; earlier messages of the session are applied.
    pub async fn ask(&mut self, talk: &mut Conversation, mut message: Value) -> Result<Value> {
        let id = unique("ask");
        message["sessionId"] = json!(talk.session_id);
        message["requestId"] = json!(id);
        self.socket.send(message).await?;
        loop {
            let answer = self.socket.next().await?;
            talk.apply(&answer)?;
            if answer["requestId"] == id.as_str() {
                return Ok(answer);
            }
        }
    }

    /// Reads until `wanted` is true of the session.
    pub async fn until(
        &mut self,
        talk: &mut Conversation,
        wanted: impl Fn(&Conversation) -> bool,
    ) -> Result<()> {
        while !wanted(talk) {
            let message = self.socket.next().await;
            talk.apply(&message.with_context(|| format!("{:?}", talk.said()))?)?;
        }
        Ok(())
    }

    /// Reads until a summary line of `said()` starts with `beginning`.
    pub async fn until_said(&mut self, talk: &mut Conversation, beginning: &str) -> Result<()> {
        self.until(talk, |seen| {
            seen.said().iter().any(|said| said.starts_with(beginning))
        })
        .await
    }

    /// Sends a message and reads until its turn has ended.
    pub async fn turn(&mut self, talk: &mut Conversation, content: &str) -> Result<()> {
        let turns = count_turns(talk);
        self.send(talk, content).await?;
        self.until_turns(talk, turns + 1).await
    }

    /// Reads until at least `turns` turns have ended and no turn is running.
    pub async fn until_turns(&mut self, talk: &mut Conversation, turns: usize) -> Result<()> {
        self.until(talk, |seen| {
            count_turns(seen) >= turns && !seen.is_running()
        })
        .await
    }

    /// Reads until the server closes the connection and returns the close code.
    pub async fn closed_after(&mut self, talk: &mut Conversation) -> Result<Option<u16>> {
        loop {
            match self.socket.next_or_close().await? {
                Ok(message) => talk.apply(&message)?,
                Err(code) => return Ok(code),
            }
        }
    }

    /// Applies all remaining messages until the connection is closed.
    pub async fn drain(&mut self, talk: &mut Conversation) -> Result<()> {
        while let Ok(message) = self.socket.next().await {
            talk.apply(&message)?;
        }
        Ok(())
    }

    /// The sessions of the project, either the archived ones or all others.
    pub async fn list(&mut self, archived: bool) -> Result<Vec<Value>> {
        let list =
            json!({"type": "session:list", "projectId": self.project_id, "archived": archived});
        let answer = self.socket.ask(list).await?;
        Ok(answer["sessions"]
            .as_array()
            .context("expected a list")?
            .clone())
    }

    /// The titles of the sessions that are not archived, in the order of the list.
    pub async fn titles(&mut self) -> Result<Vec<String>> {
        let sessions = self.list(false).await?;
        let title = |session: &Value| Some(session["title"].as_str()?.to_owned());
        Ok(sessions.iter().filter_map(title).collect())
    }
}

/// Number of ended turns.
pub fn count_turns(talk: &Conversation) -> usize {
    let is_turn = |entry: &&Value| entry["type"] == "turn";
    talk.entries.iter().filter(is_turn).count()
}

/// Returns a request id that is unique among all test processes.
fn unique(word: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{word}-{}-{number}", std::process::id())
}
