//! A program at the gateway, over the real socket.

use std::collections::VecDeque;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::{Server, ServerSetup, Socket};

/// A program that has been let in, with the events that came while it waited for answers.
pub struct Program {
    pub socket: Socket,
    events: VecDeque<Value>,
    next_id: u64,
}

impl Program {
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

    /// The answer, be it a result or an error.
    pub async fn call(&mut self, method: &str, params: Value) -> Result<Value> {
        self.call_with(method, &params.to_string()).await
    }

    /// The same with parameters as they are written, which may be no JSON at all.
    pub async fn call_with(&mut self, method: &str, params: &str) -> Result<Value> {
        let id = self.next_id;
        self.next_id += 1;
        let request = format!(r#"{{"id":{id},"method":"{method}","params":{params}}}"#);
        self.socket.send_text(&request).await?;
        loop {
            let frame = self.socket.next().await?;
            // What could not be read has no id.
            if frame["id"] == id || frame["error"]["code"] == -32700 {
                return Ok(frame);
            }
            ensure!(
                frame["event"].is_string(),
                "neither answer nor event: {frame}"
            );
            self.events.push_back(frame);
        }
    }

    pub async fn result(&mut self, method: &str, params: Value) -> Result<Value> {
        let answer = self.call(method, params).await?;
        ensure!(answer.get("error").is_none(), "{answer}");
        Ok(answer["result"].clone())
    }

    pub async fn code(&mut self, method: &str, params: Value) -> Result<i64> {
        let answer = self.call(method, params).await?;
        answer["error"]["code"]
            .as_i64()
            .with_context(|| format!("no error: {answer}"))
    }

    pub async fn event(&mut self) -> Result<Value> {
        match self.events.pop_front() {
            Some(event) => Ok(event),
            None => self.socket.next().await,
        }
    }

    /// The next event with this name; others are passed over.
    pub async fn event_of(&mut self, name: &str) -> Result<Value> {
        loop {
            let event = self.event().await?;
            if event["event"] == name {
                return Ok(event);
            }
        }
    }

    /// Everything up to the end of a run.
    pub async fn until_end(&mut self, run_id: &str) -> Result<Vec<Value>> {
        let mut heard = vec![];
        loop {
            let event = self.event().await?;
            let ended = is_end(&event) && event["data"]["runId"] == run_id;
            heard.push(event);
            if ended {
                return Ok(heard);
            }
        }
    }

    /// Sends a message, and says which run it is.
    pub async fn send(&mut self, key: &str, message: &str) -> Result<String> {
        let params = json!({"sessionKey": key, "message": message});
        let sent = self.result("chat.send", params).await?;
        Ok(sent["runId"].as_str().context("a run")?.to_owned())
    }

    /// Sends a message, and listens until its run is over.
    pub async fn say(&mut self, key: &str, message: &str) -> Result<Vec<Value>> {
        let run_id = self.send(key, message).await?;
        self.until_end(&run_id).await
    }

    /// A session of the scripted agent, in the folder `app`.
    pub async fn create(&mut self, setup: &ServerSetup) -> Result<String> {
        let params = json!({"agentId": "claude-code", "cwd": setup.folder("app")?});
        let created = self.result("sessions.create", params).await?;
        Ok(created["sessionKey"].as_str().context("a key")?.to_owned())
    }
}

fn is_end(event: &Value) -> bool {
    let name = event["event"].as_str();
    name.is_some_and(|name| ["chat.final", "chat.error"].contains(&name))
}

/// All text of the events with this name.
pub fn heard_text(events: &[Value], name: &str) -> String {
    let of = events.iter().filter(|heard| heard["event"] == name);
    of.filter_map(|heard| heard["data"]["text"].as_str())
        .collect()
}

/// How the runs among these events ended.
pub fn ends(events: &[Value]) -> Vec<&str> {
    let ends = events.iter().filter(|heard| is_end(heard));
    ends.filter_map(|heard| heard["event"].as_str()).collect()
}
