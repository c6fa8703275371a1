//! A gateway client, over the real WebSocket.

use std::collections::VecDeque;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::{Server, ServerSetup, Socket};

/// An authenticated gateway connection, with the events that arrived while it waited for responses.
pub struct Program {
    pub socket: Socket,
    events: VecDeque<Value>,
    next_id: u64,
}

impl Program {
    /// Connects to the gateway and authenticates.
    pub async fn at(server: &Server) -> Result<Self> {
        let mut socket = server.knock().await?;
        let hello = json!({"type": "auth", "token": server.token});
        socket.send(hello).await?;
        let welcome = socket.next().await?;
        ensure!(welcome == json!({"type": "auth", "ok": true}), "{welcome}");
        Ok(Self {
            socket,
            events: VecDeque::new(),
            next_id: 1,
        })
    }

    /// Calls a method and returns the response frame, a result or an error.
    pub async fn call(&mut self, method: &str, params: Value) -> Result<Value> {
        self.call_with(method, &params.to_string()).await
    }

    /// Like [`Self::call`], with `params` sent verbatim; they may be invalid JSON.
    pub async fn call_with(&mut self, method: &str, params: &str) -> Result<Value> {
        let id = self.next_id;
        self.next_id += 1;
        let request = format!(r#"{{"id":{id},"method":"{method}","params":{params}}}"#);
        self.socket.send_text(&request).await?;
        loop {
            let frame = self.socket.next().await?;
            // The response to unreadable JSON has no id.
            if frame["id"] == id || frame["error"]["code"] == -32700 {
                return Ok(frame);
            }
            ensure!(
                frame["event"].is_string(),
                "neither a response nor an event: {frame}"
            );
            self.events.push_back(frame);
        }
    }

    /// Calls a method that must succeed, and returns its result.
    pub async fn result(&mut self, method: &str, params: Value) -> Result<Value> {
        let answer = self.call(method, params).await?;
        ensure!(answer.get("error").is_none(), "{answer}");
        Ok(answer["result"].clone())
    }

    /// Calls a method that must fail, and returns the code of its error.
    pub async fn code(&mut self, method: &str, params: Value) -> Result<i64> {
        let answer = self.call(method, params).await?;
        answer["error"]["code"]
            .as_i64()
            .with_context(|| format!("expected an error: {answer}"))
    }

    /// Returns the next event.
    pub async fn event(&mut self) -> Result<Value> {
        match self.events.pop_front() {
            Some(event) => Ok(event),
            None => self.socket.next().await,
        }
    }

    /// Returns the next event with this name and skips all others.
    pub async fn event_of(&mut self, name: &str) -> Result<Value> {
        loop {
            let event = self.event().await?;
            if event["event"] == name {
                return Ok(event);
            }
        }
    }

    /// Returns all events up to the end of a run.
    pub async fn until_end(&mut self, run_id: &str) -> Result<Vec<Value>> {
        let mut seen = vec![];
        loop {
            let event = self.event().await?;
            let ended = is_end(&event) && event["data"]["runId"] == run_id;
            seen.push(event);
            if ended {
                return Ok(seen);
            }
        }
    }

    /// Sends a message and returns the id of its run.
    pub async fn send(&mut self, key: &str, message: &str) -> Result<String> {
        let params = json!({"sessionKey": key, "message": message});
        let sent = self.result("chat.send", params).await?;
        Ok(sent["runId"].as_str().context("expected a run")?.to_owned())
    }

    /// Sends a message and returns all events up to the end of its run.
    pub async fn say(&mut self, key: &str, message: &str) -> Result<Vec<Value>> {
        let run_id = self.send(key, message).await?;
        self.until_end(&run_id).await
    }

    /// Creates a session of the scripted agent in the folder `app`.
    pub async fn create(&mut self, setup: &ServerSetup) -> Result<String> {
        let params = json!({"agentId": "claude-code", "cwd": setup.folder("app")?});
        let created = self.result("sessions.create", params).await?;
        Ok(created["sessionKey"]
            .as_str()
            .context("expected a key")?
            .to_owned())
    }
}

fn is_end(event: &Value) -> bool {
    let name = event["event"].as_str();
    name.is_some_and(|name| ["chat.final", "chat.error"].contains(&name))
}

/// The text of all events with this name, joined.
pub fn heard_text(events: &[Value], name: &str) -> String {
    let of = events.iter().filter(|seen| seen["event"] == name);
    of.filter_map(|seen| seen["data"]["text"].as_str())
        .collect()
}

/// The names of the events that ended a run, in order.
pub fn ends(events: &[Value]) -> Vec<&str> {
    let ends = events.iter().filter(|seen| is_end(seen));
    ends.filter_map(|seen| seen["event"].as_str()).collect()
}
