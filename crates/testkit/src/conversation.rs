//! A strict client-side model of one session.

use std::collections::BTreeSet;

use anyhow::{Context, ensure};
use serde_json::Value;

/// One session as a client sees it. Every message must continue the previous one without a gap.
#[derive(Debug, Default, Clone)]
pub struct Conversation {
    pub session_id: String,
    pub boot_id: String,
    pub seq: u64,
    /// Index of the first loaded entry, from 0.
    pub first: usize,
    pub entries: Vec<Value>,
    pub info: Value,
    /// Ids of the entries that the server declared final.
    pub complete: Vec<String>,
    pub cancelled: Vec<String>,
    /// Final and cancelled ids since the last history message, which may renumber entries.
    final_now: BTreeSet<String>,
}

impl Conversation {
    /// A session of which nothing was received yet.
    pub fn new(session_id: &str) -> Self {
        Self {
            session_id: session_id.to_owned(),
            ..Self::default()
        }
    }

    /// Applies a message; a message about another session changes nothing.
    pub fn apply(&mut self, message: &Value) -> anyhow::Result<()> {
        if message["sessionId"] != self.session_id.as_str() {
            return Ok(());
        }
        let text = |field: &str| message[field].as_str().unwrap_or_default().to_owned();
        let kind = text("type");
        match kind.as_str() {
            "session:history" => {
                self.boot_id = text("bootId");
                self.seq = message["seq"].as_u64().context("expected a number")?;
                self.first = message["first"].as_u64().context("expected a number")? as usize;
                self.entries = message["entries"]
                    .as_array()
                    .context("expected a list")?
                    .clone();
                self.info = message["info"].clone();
                self.final_now.clear();
            }
            "session:resumed" => {
                ensure!(
                    message["seq"] == self.seq,
                    "resumed at another sequence number: {message}"
                );
                self.info = message["info"].clone();
            }
            "session:info" => self.info = message["info"].clone(),
            "session:update" | "session:chunk" | "session:complete" | "session:cancelled" => {
                let seq = message["seq"].as_u64().context("expected a number")?;
                ensure!(seq == self.seq + 1, "{seq} follows {}: {message}", self.seq);
                self.seq = seq;
                match kind.as_str() {
                    "session:update" => self.upsert(message)?,
                    "session:chunk" => {
                        let id = text("entryId");
                        ensure!(
                            !self.final_now.contains(&id),
                            "text was appended after the entry was final: {message}"
                        );
                        self.append(&id, message)?;
                    }
                    "session:complete" => {
                        self.final_now.insert(text("entryId"));
                        self.complete.push(text("entryId"));
                    }
                    _ => {
                        self.final_now.insert(text("entryId"));
                        self.cancelled.push(text("entryId"));
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn position(&self, entry_id: &Value) -> Option<usize> {
        let is_it = |entry: &Value| entry["entryId"] == *entry_id;
        self.entries.iter().rposition(is_it)
    }

    fn upsert(&mut self, message: &Value) -> anyhow::Result<()> {
        let entry = &message["entry"];
        match (self.position(&entry["entryId"]), message["begins"] == true) {
            (Some(at), false) => self.entries[at] = entry.clone(),
            (None, true) => self.entries.push(entry.clone()),
            (None, false) if self.first > 0 => {}
            _ => anyhow::bail!(
                "the entry begins twice, or an update came before its beginning: {message}"
            ),
        }
        Ok(())
    }

    fn append(&mut self, entry_id: &str, message: &Value) -> anyhow::Result<()> {
        let at = self
            .position(&Value::from(entry_id))
            .context("the chunk names an unknown entry")?;
        let more = message["content"].as_str().context("expected a text")?;
        let entry = &mut self.entries[at];
        let target = match message["terminalId"].as_str() {
            None => &mut entry["content"],
            Some(id) => {
                let parts = entry["content"].as_array_mut().context("expected parts")?;
                let is_it = |part: &&mut Value| part["terminalId"] == id;
                let part = parts
                    .iter_mut()
                    .find(is_it)
                    .context("the chunk names an unknown terminal")?;
                &mut part["output"]
            }
        };
        match target {
            Value::String(text) => text.push_str(more),
            other => anyhow::bail!("expected a string: {other}"),
        }
        Ok(())
    }

    /// Fails unless every entry shown here is in `now` exactly once, with at least the text shown here.
    pub fn is_kept_in(&self, now: &Self) -> anyhow::Result<()> {
        let ids: BTreeSet<&str> = now
            .entries
            .iter()
            .filter_map(|entry| entry["entryId"].as_str())
            .collect();
        ensure!(
            ids.len() == now.entries.len(),
            "two entries have the same id"
        );
        for entry in &self.entries {
            let id = entry["entryId"].as_str().context("expected an id")?;
            let found = now.entries.iter().find(|entry| entry["entryId"] == id);
            let found = found.with_context(|| format!("{entry} is missing"))?;
            ensure!(found["type"] == entry["type"], "{entry} became {found}");
            let contents = (entry["content"].as_str(), found["content"].as_str());
            if let (Some(shown), Some(kept)) = contents {
                ensure!(kept.starts_with(shown), "{entry} lost text: {found}");
            }
        }
        Ok(())
    }

    /// One short line per entry: its type and its text or status.
    pub fn said(&self) -> Vec<String> {
        self.entries.iter().map(brief).collect()
    }

    /// Whether the server reports a running turn.
    pub fn is_running(&self) -> bool {
        self.info["turn"].is_object()
    }
}

fn brief(entry: &Value) -> String {
    let text = |field: &str| entry[field].as_str().unwrap_or_default();
    match text("type") {
        "tool-call" => format!("tool {} {}", text("name"), text("status")),
        "turn" => format!("turn {}", text("outcome")),
        "plan" => "plan".to_owned(),
        "question" => {
            let outcome = entry["outcome"].as_str().unwrap_or("open");
            format!("question {outcome}: {}", text("message"))
        }
        kind => format!("{kind}: {}", text("content")),
    }
}
