//! A typical workday of a user in a few seconds, with every operation that changes a file, and what was acknowledged.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testkit::{Conversation, HANG_GUARD, HttpResponse, Person, Server, ServerSetup};

use crate::fire_faults::data_check::DataCheck;
use crate::fire_faults::strace::Strace;

const IMAGE: &str = "GIF89a";
const ASKS: &str = "permission p1 Look\npermission p2 Look\nsay four";

/// The sessions of the workday, and what a window was shown of them.
pub(crate) struct Workday {
    pub(crate) setup: ServerSetup,
    folder: String,
    other_folder: String,
    main: Conversation,
    to_delete: String,
    /// The session that will be archived.
    to_archive: String,
    keys: Vec<String>,
    pub(crate) shown: Shown,
}

/// Operations acknowledged to the window.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    added: bool,
    renamed: bool,
    deleted: bool,
    archived: bool,
    /// Id of the created session.
    created: Option<String>,
    /// Id of the uploaded image.
    picture: Option<String>,
    /// Messages of the refusals.
    pub(crate) refused: Vec<String>,
    /// Prompts that were refused.
    unsent: Vec<String>,
}

impl Workday {
    /// Creates three sessions without any fault.
    pub(crate) async fn prepare() -> Result<Self> {
        let setup = ServerSetup::scripted("")?;
        let folder = setup.folder("app")?;
        let other_folder = setup.folder("other")?;
        let server = setup.start().await?;
        let mut person = Person::at(&server, &folder).await?;
        let mut main = person.begin().await?;
        person.turn(&mut main, "say before").await?;
        let to_delete = person.create().await?;
        let to_archive = person.create().await?;
        server.signal("TERM").await?;
        let index = std::fs::read(setup.data_dir().join("sessions.json"))?;
        let index: Value = serde_json::from_slice(&index)?;
        let sessions = index["sessions"].as_array().context("expected a list")?;
        let key = |meta: &Value| Some(meta["key"].as_str()?.to_owned());
        let keys = sessions.iter().filter_map(key).collect();
        Ok(Self {
            setup,
            folder,
            other_folder,
            main,
            to_delete,
            to_archive,
            keys,
            shown: Shown::default(),
        })
    }

    /// The file-changing calls of the workday without faults.
    pub(crate) async fn rehearsed() -> Result<Vec<(String, usize)>> {
        let mut calls = vec![];
        for writes in [true, false] {
            let mut workday = Self::prepare().await?;
            let strace = workday.strace();
            let server = workday.setup.start_by(&strace.watching(writes)).await?;
            workday.happens(&server).await?;
            server.signal("KILL").await?;
            calls.extend(strace.seen(writes)?);
        }
        ensure!(calls.len() > 20, "too few calls were recorded: {calls:?}");
        Ok(calls)
    }

    /// Traces all files the workday writes to, except those of the session it creates, whose name is not known yet.
    pub(crate) fn strace(&self) -> Strace {
        let dir = self.setup.data_dir();
        let sessions = dir.join("sessions");
        let mut paths = vec![dir, sessions.clone()];
        for key in &self.keys {
            for end in ["jsonl", "jsonl.tmp", "live.jsonl", "live.jsonl.tmp"] {
                paths.push(sessions.join(format!("{key}.{end}")));
            }
        }
        Strace::on(&self.setup, paths)
    }

    /// Runs the workday to its end or until the server dies.
    pub(crate) async fn happens(&mut self, server: &Server) -> Result<()> {
        let mut socket = server.connect().await?;
        let add = json!({"type": "project:add", "path": self.other_folder});
        self.shown.added = self.granted(&socket.ask(add).await?);
        let mut person = Person::at(server, &self.folder).await?;
        let opened = person.open(&self.main.session_id).await?;
        self.main.is_kept_in(&opened)?;
        self.main = opened;
        self.prompted(
            &mut person,
            "think hm\nsay one\ntool t1 read Look\ntool-done t1 ok\nsay two",
        )
        .await?;
        let rename = json!({"type": "session:rename", "title": "Renamed"});
        let renamed = self.asked(&mut person, rename).await?;
        self.shown.renamed = renamed;
        self.prompted(&mut person, "rate 30 10 1000\nsay three")
            .await?;
        let delete = json!({"type": "session:delete", "sessionId": self.to_delete});
        let deleted = person.socket.ask(delete).await?;
        self.shown.deleted = self.granted(&deleted);
        let archive = json!({"type": "session:archive", "sessionId": self.to_archive});
        let archived = person.socket.ask(archive).await?;
        self.shown.archived = self.granted(&archived);
        let created = person.ask_to_create("claude-code").await?;
        if self.granted(&created) {
            self.shown.created = created["sessionId"].as_str().map(str::to_owned);
        }
        self.upload(server).await?;
        // Approved permissions are audited, the second even if the audit of the first failed.
        self.prompted(&mut person, ASKS).await
    }

    /// Waits until the audit contains each approval, or a note that lines were lost.
    pub(crate) async fn is_audited(&self) -> Result<()> {
        let asked = !self.shown.unsent.iter().any(|unsent| unsent == ASKS);
        let path = self.setup.data_dir().join("audit.jsonl");
        let audited = async {
            loop {
                let text = std::fs::read_to_string(&path).unwrap_or_default();
                let lines = text
                    .lines()
                    .filter_map(|line| serde_json::from_str::<Value>(line).ok());
                let count = |line: Value| match line["what"].as_str() {
                    Some("permission") => line["times"].as_u64().unwrap_or(1),
                    Some("lost") => line["lines"].as_u64().unwrap_or(0),
                    _ => 0,
                };
                if lines.map(count).sum::<u64>() == if asked { 2 } else { 0 } {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(HANG_GUARD, audited)
            .await
            .context("the approvals are not in the audit")
    }

    async fn upload(&mut self, server: &Server) -> Result<()> {
        let answer = send_image(server).await?;
        match answer.status {
            200 => {
                let kept: Value = serde_json::from_slice(&answer.body)?;
                self.shown.picture = kept["id"].as_str().map(str::to_owned);
            }
            507 => self.shown.refused.push(answer.text()),
            other => anyhow::bail!("{other} for an image: {}", answer.text()),
        }
        Ok(())
    }

    /// Sends a prompt and reads until its turn has ended or the prompt was refused.
    async fn prompted(&mut self, person: &mut Person, content: &str) -> Result<()> {
        let turns = testkit::count_turns(&self.main);
        person.send_as(&self.main, content, content).await?;
        loop {
            let message = person.socket.next().await?;
            self.main.apply(&message)?;
            if message["type"] == "error" {
                self.granted(&message);
                if message["requestId"] == content {
                    self.shown.unsent.push(content.to_owned());
                    return Ok(());
                }
            }
            if testkit::count_turns(&self.main) > turns && !self.main.is_running() {
                return Ok(());
            }
        }
    }

    async fn asked(&mut self, person: &mut Person, message: Value) -> Result<bool> {
        let answer = person.ask(&mut self.main, message).await?;
        Ok(self.granted(&answer))
    }

    fn granted(&mut self, answer: &Value) -> bool {
        let refused = answer["type"] == "error";
        if refused {
            let message = answer["message"].as_str().unwrap_or_default();
            self.shown.refused.push(message.to_owned());
        }
        !refused
    }

    /// Checks after a restart that everything acknowledged is there once and nothing refused is there. Returns the time
    /// until a window showed the session again.
    pub(crate) async fn is_restored(&mut self) -> Result<Duration> {
        let begun = Instant::now();
        let server = self.setup.start().await?;
        let mut person = Person::at(&server, &self.folder).await?;
        let now = person.open(&self.main.session_id).await?;
        let took = begun.elapsed();
        self.main.is_kept_in(&now)?;
        ensure!(
            !now.is_running(),
            "a turn is still running after the restart"
        );
        for unsent in &self.shown.unsent {
            let there = |entry: &&Value| entry["requestId"] == unsent.as_str();
            let found = now.entries.iter().find(there);
            ensure!(
                found.is_none(),
                "the refused prompt is in the transcript: {found:?}"
            );
        }
        let listed = person.list(false).await?;
        let times = |id: &str| listed.iter().filter(|item| item["id"] == id).count();
        ensure!(times(&self.main.session_id) == 1, "listed once: {listed:?}");
        let to_delete = times(&self.to_delete);
        let expected = if self.shown.deleted { 0..=0 } else { 0..=1 };
        ensure!(expected.contains(&to_delete), "deleted: {listed:?}");
        if let Some(created) = &self.shown.created {
            ensure!(times(created) == 1, "created: {listed:?}");
            person.open(created).await?;
        }
        let archived = person.list(true).await?;
        let to_archive = |listed: &[Value]| {
            let is_it = |item: &&Value| item["id"] == self.to_archive.as_str();
            listed.iter().filter(is_it).count()
        };
        let (here, away) = (to_archive(&listed), to_archive(&archived));
        ensure!(
            here + away == 1 && (away == 1 || !self.shown.archived),
            "archived: {listed:?} {archived:?}"
        );
        if let Some(picture) = &self.shown.picture {
            let shown = server.picture(picture).await?;
            ensure!(shown.text() == IMAGE, "the image: {}", shown.status);
        }
        if self.shown.renamed {
            let title = |item: &&Value| item["title"] == "Renamed";
            ensure!(listed.iter().any(|item| title(&item)), "{listed:?}");
        }
        let projects = person.socket.ask(json!({"type": "project:list"})).await?;
        let projects = projects["projects"].as_array().context("expected a list")?;
        let added = |project: &&Value| project["path"] == self.other_folder.as_str();
        let added = projects.iter().filter(added).count();
        ensure!(
            added <= 1 && (added == 1 || !self.shown.added),
            "{projects:?}"
        );
        DataCheck::default().can_be_read(&self.setup.data_dir())?;
        self.main = now;
        person.turn(&mut self.main, "say after").await?;
        let last = self.main.said();
        ensure!(
            last.ends_with(&["assistant: after".into(), "turn ended".into()]),
            "{last:?}"
        );
        server.signal("KILL").await?;
        let server = self.setup.start().await?;
        let mut person = Person::at(&server, &self.folder).await?;
        let again = person.open(&self.main.session_id).await?;
        ensure!(
            again.entries == self.main.entries,
            "{:?} was {:?}",
            again.said(),
            last
        );
        Ok(took)
    }
}

/// Uploads an image as a window does.
pub(crate) async fn send_image(server: &Server) -> Result<HttpResponse> {
    let head = [
        "POST /uploads HTTP/1.1".to_owned(),
        format!("Host: {}", server.address),
        format!("Authorization: Bearer {}", server.token),
    ];
    testkit::http(server.address, &head, IMAGE).await
}
