//! What a client sees on a server that was started in a given data directory.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use testkit::{Conversation, Person, Server, ServerSetup, Socket};

/// What to request besides the lists of projects and sessions.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    /// Sessions to restore if they are not listed.
    pub(crate) sessions: BTreeSet<String>,
    pub(crate) pictures: BTreeSet<String>,
}

#[derive(Debug)]
pub(crate) struct ObservedSession {
    pub(crate) title: String,
    pub(crate) archived: bool,
    /// Whether the session was not listed and had to be restored.
    pub(crate) restored: bool,
    /// The session's entries, or the reason why it cannot be opened.
    pub(crate) talk: Result<Conversation, String>,
}

#[derive(Debug, Default)]
pub(crate) struct Observed {
    pub(crate) token: String,
    pub(crate) notices: Vec<String>,
    /// By path.
    pub(crate) projects: BTreeSet<String>,
    pub(crate) sessions: BTreeMap<String, ObservedSession>,
    pub(crate) pictures: BTreeMap<String, Vec<u8>>,
    pub(crate) audit: BTreeSet<String>,
    /// Lines of the audit that do not contain the hash of the line before.
    pub(crate) audit_breaks: Vec<String>,
}

/// The agents available to the started server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Agents {
    /// Only the built-in agent.
    None,
    /// The scripted agent without its session files, so that it accepts every session id.
    Scripted,
}

/// Starts a server in this data directory, with the home directory of the recorded server.
pub(crate) async fn start(setup: &ServerSetup, data_dir: &Path, agents: Agents) -> Result<Server> {
    let mut by: Vec<OsString> = ["env", "-u", "SCRIPTED_AGENT_MEMORY"]
        .map(Into::into)
        .into();
    let mut dir = OsString::from("LIMINAL_DATA_DIR=");
    dir.push(data_dir);
    by.push(dir);
    if agents == Agents::None {
        by.push("CLAUDE_ACP_CMD=/nowhere/agent".into());
    }
    setup.start_by(&by).await
}

impl Observed {
    pub(crate) async fn of(server: &Server, data_dir: &Path, wanted: &Wanted) -> Result<Self> {
        let mut seen = Self {
            token: server.token.clone(),
            ..Self::default()
        };
        let mut socket = server.connect_unread().await?;
        let hello = socket.next_of("hello").await?;
        let notices = hello["notices"]
            .as_array()
            .context("expected notices")?
            .iter();
        seen.notices = notices
            .map(|notice| notice.as_str().unwrap_or_default().to_owned())
            .collect();
        let answer = socket.ask(json!({"type": "project:list"})).await?;
        for project in answer["projects"].as_array().context("expected a list")? {
            let text = |field: &str| project[field].as_str().unwrap_or_default().to_owned();
            seen.projects.insert(text("path"));
            for archived in [false, true] {
                seen.list(&mut socket, &text("id"), archived).await?;
            }
        }
        for id in wanted.sessions.iter().filter(|id| !id.is_empty()) {
            if !seen.sessions.contains_key(id) {
                let restore = json!({"type": "session:restore", "sessionId": id});
                let answer = socket.ask(restore).await?;
                if answer["type"] == "session:unarchived" {
                    seen.add(&answer["session"], true);
                }
            }
        }
        for (id, session) in &mut seen.sessions {
            session.talk = open(&mut socket, id).await?;
        }
        for id in &wanted.pictures {
            let answer = server.picture(id).await?;
            if answer.status == 200 {
                seen.pictures.insert(id.clone(), answer.body);
            }
        }
        for names in [
            ["audit.1.jsonl", "audit.jsonl"],
            ["audit.refused.1.jsonl", "audit.refused.jsonl"],
        ] {
            let text = |name: &str| std::fs::read(data_dir.join(name)).unwrap_or_default();
            let texts = names.map(text);
            for text in &texts {
                let text = String::from_utf8_lossy(text);
                seen.audit.extend(text.lines().map(str::to_owned));
            }
            seen.audit_breaks.extend(audit_breaks(&texts.concat()));
        }
        Ok(seen)
    }

    async fn list(&mut self, socket: &mut Socket, project_id: &str, archived: bool) -> Result<()> {
        let list = json!({"type": "session:list", "projectId": project_id, "archived": archived});
        let answer = socket.ask(list).await?;
        for item in answer["sessions"].as_array().context("expected a list")? {
            self.add(item, false);
        }
        Ok(())
    }

    fn add(&mut self, item: &Value, restored: bool) {
        let text = |field: &str| item[field].as_str().unwrap_or_default().to_owned();
        let session = ObservedSession {
            title: text("title"),
            archived: item["archived"] == true,
            restored,
            talk: Err("not opened".to_owned()),
        };
        self.sessions.insert(text("id"), session);
    }

    /// Describes the first difference between two observations.
    pub(crate) fn difference(&self, other: &Self) -> Option<String> {
        for (id, session) in &self.sessions {
            let Some(now) = other.sessions.get(id) else {
                return Some(format!("session {id} is gone"));
            };
            match (&session.talk, &now.talk) {
                (Ok(before), Ok(after)) if before.entries != after.entries => {
                    return Some(format!("{:?} became {:?}", before.said(), after.said()));
                }
                (Ok(_), Err(error)) => return Some(format!("{id}: {error}")),
                _ => {}
            }
            if (&session.title, session.archived) != (&now.title, now.archived) {
                return Some(format!("{session:?} became {now:?}"));
            }
        }
        let new = other
            .sessions
            .keys()
            .find(|id| !self.sessions.contains_key(*id));
        if let Some(new) = new {
            return Some(format!("session {new} appeared"));
        }
        (self.projects != other.projects)
            .then(|| format!("{:?} became {:?}", self.projects, other.projects))
    }
}

/// Lines that do not contain the hash of the last readable line before them, up to the first torn place.
fn audit_breaks(text: &[u8]) -> Vec<String> {
    let mut breaks = vec![];
    let mut last: Option<String> = None;
    for line in text.split(|byte| *byte == b'\n') {
        let Ok(record) = serde_json::from_slice::<Value>(line) else {
            break;
        };
        let prev = record["prev"].as_str();
        if let (Some(prev), Some(last)) = (prev, &last)
            && prev != last
        {
            breaks.push(record.to_string());
        }
        let hash = Sha256::digest(line);
        last = Some(hash.iter().map(|byte| format!("{byte:02x}")).collect());
    }
    breaks
}

/// The whole session, or the server's error message.
async fn open(socket: &mut Socket, id: &str) -> Result<Result<Conversation, String>> {
    let answer = socket
        .ask(json!({"type": "session:open", "sessionId": id}))
        .await?;
    if answer["type"] != "session:history" {
        return Ok(Err(answer["message"]
            .as_str()
            .unwrap_or_default()
            .to_owned()));
    }
    let mut talk = Conversation::new(id);
    talk.apply(&answer)?;
    // The built-in agent reads its own session files when the session attaches.
    while id.starts_with("liminal:")
        && talk.info["attachment"] != "attached"
        && !talk.info["problem"].is_object()
    {
        let message = socket.next().await;
        talk.apply(&message.with_context(|| format!("{}", talk.info))?)?;
    }
    Ok(Ok(talk))
}

/// Runs another turn in each session that can be opened.
pub(crate) async fn one_more_turn(server: &Server, seen: &Observed) -> Result<()> {
    let socket = server.connect().await?;
    let mut person = Person {
        socket,
        project_id: String::new(),
    };
    for (id, session) in &seen.sessions {
        if session.talk.is_err() || session.archived {
            continue;
        }
        let prompt = match id.starts_with("liminal:") {
            true => "/plan one; two",
            false => "say after",
        };
        let mut talk = person.open(id).await?;
        person.turn(&mut talk, prompt).await?;
        let said = talk.said();
        ensure!(
            said.last().is_some_and(|last| last == "turn ended"),
            "{said:?}"
        );
        let once = format!("user: {prompt}");
        ensure!(
            said.iter().rev().take(6).any(|said| *said == once),
            "{said:?}"
        );
    }
    Ok(())
}
