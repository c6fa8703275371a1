//! What a server must show after a power cut: everything that clients were shown. Changes that were requested but not
//! yet acknowledged are allowed in addition.
//!
//! Pure: fed with the recorded messages in order.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use anyhow::{Context, Result};
use serde_json::Value;
use testkit::Conversation;

use crate::power_cut::messages::Message;

const UNTITLED: &str = "New Session";

/// Values allowed after a cut: the one last shown, and those of unanswered requests. Empty while unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Allowed<T: Ord>(BTreeSet<T>);

impl<T: Ord> Allowed<T> {
    fn shown(&mut self, value: T) {
        self.0 = BTreeSet::from([value]);
    }

    /// Allows the value of a request; a value that was never shown stays unknown.
    fn asked(&mut self, value: T) {
        if self.is_known() {
            self.0.insert(value);
        }
    }

    pub(crate) fn allows(&self, value: &T) -> bool {
        self.0.contains(value)
    }

    pub(crate) fn is_known(&self) -> bool {
        !self.0.is_empty()
    }

    pub(crate) fn is_only(&self, value: &T) -> bool {
        self.0.len() == 1 && self.allows(value)
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Session {
    pub(crate) project_id: String,
    pub(crate) listed: Allowed<bool>,
    pub(crate) archived: Allowed<bool>,
    /// Unknown while the session may take its title from a message.
    pub(crate) title: Allowed<String>,
    pub(crate) queue: Vec<Value>,
    /// The session as shown to each connection.
    talks: BTreeMap<u64, Arc<Conversation>>,
}

impl Session {
    /// The session as shown to each connection.
    pub(crate) fn talks(&self) -> impl Iterator<Item = &Arc<Conversation>> {
        self.talks.values()
    }
}

/// A run of a gateway client: its message, and the response text as shown.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) session_id: String,
    pub(crate) message: String,
    pub(crate) text: String,
    /// Name of the event that ended the run.
    pub(crate) end: Option<String>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Expected {
    pub(crate) token: Option<String>,
    /// By path.
    pub(crate) projects: BTreeMap<String, Allowed<bool>>,
    pub(crate) sessions: BTreeMap<String, Session>,
    pub(crate) runs: BTreeMap<String, Run>,
    pub(crate) pictures: BTreeSet<String>,
    /// Audit lines of turns that were shown to have ended.
    pub(crate) audited: BTreeSet<String>,
    /// Audit lines of running turns, each with its session id.
    written: Vec<(String, String)>,
    paths: HashMap<String, String>,
    keys: HashMap<String, String>,
    calls: HashMap<(u64, u64), Value>,
}

impl Expected {
    pub(crate) fn take(&mut self, message: &Message) -> Result<()> {
        match message {
            Message::Ready(line) => {
                let token = line.split_once("/#token=").map(|(_, token)| token.trim());
                self.token = token.map(str::to_owned);
                Ok(())
            }
            Message::Kept(answer) => {
                let id = answer["id"].as_str().context("expected an id")?;
                self.pictures.insert(id.to_owned());
                Ok(())
            }
            Message::Asked(connection, message) => {
                self.asked(*connection, message);
                Ok(())
            }
            Message::Shown(connection, message) if message["type"].is_string() => self
                .shown(*connection, message)
                .with_context(|| format!("{message:.300}")),
            Message::Shown(connection, message) => {
                self.reported(*connection, message);
                Ok(())
            }
        }
    }

    /// Adds a line that was written to the audit.
    pub(crate) fn audit(&mut self, line: &str) {
        let record: Value = serde_json::from_str(line).unwrap_or_default();
        let session = record["sessionId"].as_str().unwrap_or_default();
        self.written.push((session.to_owned(), line.to_owned()));
    }

    fn asked(&mut self, connection: u64, message: &Value) {
        let text = |field: &str| message[field].as_str().unwrap_or_default().to_owned();
        if message["method"].is_string() {
            let id = message["id"].as_u64().unwrap_or_default();
            self.calls.insert((connection, id), message.clone());
            return;
        }
        let path = self.paths.get(&text("projectId")).cloned();
        if let Some(path) = path.or_else(|| message["path"].as_str().map(str::to_owned)) {
            let there = self.projects.entry(path).or_default();
            match text("type").as_str() {
                "project:add" | "project:restore" => there.asked(true),
                "project:remove" => there.asked(false),
                _ => {}
            }
        }
        let Some(session) = self.sessions.get_mut(&text("sessionId")) else {
            return;
        };
        match text("type").as_str() {
            "session:rename" => session.title.asked(text("title")),
            "session:archive" => session.archived.asked(true),
            "session:unarchive" => session.archived.asked(false),
            "session:delete" => session.listed.asked(false),
            "session:restore" => session.listed.asked(true),
            "session:send" if session.title.is_only(&UNTITLED.to_owned()) => {
                session.title = Allowed::default();
            }
            _ => {}
        }
    }

    fn shown(&mut self, connection: u64, message: &Value) -> Result<()> {
        let text = |field: &str| message[field].as_str().unwrap_or_default().to_owned();
        let kind = text("type");
        match kind.as_str() {
            "project:list" => {
                for project in message["projects"].as_array().context("expected a list")? {
                    self.project(project)?;
                }
            }
            "project:added" => self.project(&message["project"])?,
            "project:removed" => {
                let path = self
                    .paths
                    .get(&text("projectId"))
                    .context("expected a project")?;
                self.projects.entry(path.clone()).or_default().shown(false);
            }
            "session:list" => {
                for item in message["sessions"].as_array().context("expected a list")? {
                    self.item(item)?;
                }
            }
            "session:created" | "session:unarchived" => self.item(&message["session"])?,
            "session:archived" => self.session(&text("sessionId")).archived.shown(true),
            "session:deleted" => self.session(&text("sessionId")).listed.shown(false),
            "session:title-updated" => {
                self.session(&text("sessionId")).title.shown(text("title"));
            }
            "session:history" | "session:resumed" | "session:update" | "session:chunk"
            | "session:complete" | "session:cancelled" | "session:info" => {
                let id = text("sessionId");
                let session = self.session(&id);
                let talk = session.talks.entry(connection);
                let talk = talk.or_insert_with(|| Arc::new(Conversation::new(&id)));
                Arc::make_mut(talk).apply(message)?;
                if let Some(queue) = message["info"]["queue"].as_array() {
                    session.queue.clone_from(queue);
                }
                if message["entry"]["type"] == "turn" {
                    self.settle(&id);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Records that a turn of the session was shown to have ended, so that its audit lines must be kept.
    fn settle(&mut self, id: &str) {
        let of = |session: &str| !session.is_empty() && (id == session || id.ends_with(session));
        let written = std::mem::take(&mut self.written);
        let (settled, open): (Vec<_>, Vec<_>) =
            written.into_iter().partition(|(session, _)| of(session));
        self.audited
            .extend(settled.into_iter().map(|(_, line)| line));
        self.written = open;
    }

    fn session(&mut self, id: &str) -> &mut Session {
        self.sessions.entry(id.to_owned()).or_default()
    }

    fn project(&mut self, project: &Value) -> Result<()> {
        let path = project["path"]
            .as_str()
            .context("expected a path")?
            .to_owned();
        let id = project["id"].as_str().context("expected an id")?.to_owned();
        self.projects.entry(path.clone()).or_default().shown(true);
        self.paths.insert(id, path);
        Ok(())
    }

    fn item(&mut self, item: &Value) -> Result<()> {
        let id = item["id"].as_str().context("expected an id")?;
        let title = item["title"]
            .as_str()
            .context("expected a title")?
            .to_owned();
        let project_id = item["projectId"]
            .as_str()
            .context("expected a project")?
            .to_owned();
        let session = self.session(id);
        session.project_id = project_id;
        session.listed.shown(true);
        session.archived.shown(item["archived"] == true);
        session.title.shown(title);
        Ok(())
    }

    /// Adds a response or an event of the gateway.
    fn reported(&mut self, connection: u64, message: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        if let Some(event) = message["event"].as_str() {
            let data = &message["data"];
            let (Some(id), Some(key)) = (data["runId"].as_str(), data["sessionKey"].as_str())
            else {
                return;
            };
            let run = self.run(id, key);
            match event {
                "chat.user" => run.message = text(&data["text"]),
                "chat.delta" => run.text.push_str(&text(&data["text"])),
                "chat.final" | "chat.error" => run.end = Some(event.to_owned()),
                _ => {}
            }
            return;
        }
        let id = message["id"].as_u64().unwrap_or_default();
        let Some(call) = self.calls.remove(&(connection, id)) else {
            return;
        };
        let (result, params) = (&message["result"], &call["params"]);
        match call["method"].as_str() {
            Some("sessions.create") if result.is_object() => {
                let id = text(&result["session"]["id"]);
                self.keys.insert(text(&result["sessionKey"]), id.clone());
                self.session(&id).listed.shown(true);
                self.session(&id).archived.shown(false);
            }
            Some("chat.send") if result.is_object() => {
                let run = self.run(&text(&result["runId"]), &text(&params["sessionKey"]));
                run.message = text(&params["message"]);
            }
            _ => {}
        }
    }

    fn run(&mut self, id: &str, key: &str) -> &mut Run {
        let session_id = self.keys.get(key).cloned().unwrap_or_default();
        let run = self.runs.entry(id.to_owned());
        run.or_insert_with(|| Run {
            session_id,
            message: String::new(),
            text: String::new(),
            end: None,
        })
    }
}
