//! Truncated files and files with a wrong byte: their content is kept, everything else is served, and what is added
//! afterwards can be read.
//!
//! Testing every length and every byte takes thousands of starts, so the hub is opened directly here, without HTTP;
//! one test goes through the whole server.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agents::{AgentSetup, Backoff, Catalog, Keepers};
use anyhow::{Context, Result, bail, ensure};
use hub::{Hub, HubConfig, HubError, Origin, SessionEvent, SessionRules};
use serde_json::{Value, json};
use store::{CleaningRules, DataDir, OpenError};
use testkit::{Conversation, HANG_GUARD, Person, ServerSetup, files_in, times};
use wire::{ChatEntry, PermissionPolicy};

/// A copy of the data directory of a killed server.
struct Snapshot {
    setup: ServerSetup,
    folder: String,
    files: Vec<(PathBuf, Vec<u8>)>,
    /// The entries of each session, as shown before the kill.
    conversations: Vec<Vec<Value>>,
}

impl Snapshot {
    /// Creates two sessions: one idle, one in the middle of a turn.
    async fn new() -> Result<Self> {
        let setup = ServerSetup::new()?.with_scripted_agent("")?;
        let folder = setup.folder("app")?;
        let server = setup.start().await?;
        let mut person = Person::at(&server, &folder).await?;
        let mut rests = person.begin().await?;
        person
            .turn(&mut rests, "say one\ntool t1 read Look\nsay two")
            .await?;
        let mut runs = person.begin().await?;
        person.turn(&mut runs, "say a").await?;
        person.send(&runs, "say b\nthink c\nsay d\nhang").await?;
        person.until_said(&mut runs, "assistant: d").await?;
        server.signal("KILL").await?;
        let files = files_in(&setup.data_dir())?;
        let conversations = vec![rests.entries, runs.entries];
        Ok(Self {
            setup,
            folder,
            files,
            conversations,
        })
    }

    fn find(&self, is_it: impl Fn(&str) -> bool) -> Result<&(PathBuf, Vec<u8>)> {
        let name = |path: &Path| path.to_string_lossy().into_owned();
        let mut files = self.files.iter();
        files
            .find(|(path, _)| is_it(&name(path)))
            .context("expected a file")
    }

    /// Restores the directory, with other bytes in one file.
    fn put(&self, damaged: &Path, bytes: &[u8]) -> Result<()> {
        let dir = self.setup.data_dir();
        std::fs::remove_dir_all(&dir)?;
        for (path, content) in &self.files {
            std::fs::create_dir_all(path.parent().context("expected a folder")?)?;
            let content = if path == damaged { bytes } else { content };
            std::fs::write(path, content)?;
        }
        Ok(())
    }

    /// Opens the damaged directory, reads it, runs a turn, and reads it again.
    async fn check(&self, damaged: &Path, bytes: &[u8]) -> Result<()> {
        self.put(damaged, bytes)?;
        let hub = match open(&self.setup.data_dir()) {
            Ok(hub) => hub,
            // A file of a newer version: nothing may be changed.
            Err(HubError::Open(OpenError::Newer { .. })) => {
                ensure!(
                    std::fs::read(damaged)? == bytes,
                    "the file of a newer version was changed"
                );
                return Ok(());
            }
            Err(error) => bail!("the hub does not open: {error}"),
        };
        let _ = hub.add_project(&self.folder, Origin::default()).await;
        let mut shown = vec![];
        for id in ids(&hub) {
            shown.push((id.clone(), history(&hub, &id).await?));
        }
        for conversation in &self.conversations {
            let most = shown
                .iter()
                .map(|(_, now)| count_unchanged(conversation, now))
                .max();
            let lost = conversation.len() - most.unwrap_or(0);
            // In a file of lines, every damaged line may be lost. In a live log, a line with a damaged number can
            // replace the entry with that number, which is then lost, too.
            let expected = match damaged.extension() {
                Some(end) if end == "jsonl" => self.may_be_lost(damaged, bytes)?,
                _ => 0,
            };
            ensure!(lost <= expected, "{lost} entries are lost: {shown:?}");
        }
        let (id, _) = shown.last().context("expected a session")?;
        add(&hub, id).await.context("running a turn")?;
        hub.close().await;
        hub.agents().shut_down().await;
        drop(hub);
        let again = open(&self.setup.data_dir())?;
        let now = history(&again, id).await?;
        let last: Vec<&str> = now
            .iter()
            .rev()
            .take(2)
            .filter_map(|e| e["type"].as_str())
            .collect();
        ensure!(
            last == ["turn", "user"] && now[now.len() - 2]["content"] == "after",
            "{now:?}"
        );
        again.close().await;
        again.agents().shut_down().await;
        self.kept(damaged, bytes, &shown)
    }

    fn may_be_lost(&self, damaged: &Path, bytes: &[u8]) -> Result<usize> {
        let changed = changed_lines(self.find(|name| Path::new(name) == damaged)?, bytes);
        let live = damaged.to_string_lossy().ends_with(".live.jsonl");
        Ok(if live { 2 * changed } else { changed })
    }

    /// Checks that the file's content is still in it or in a copy that was set aside. Exempt are a readable list,
    /// which may have been rewritten, and a live log with readable lines only, which is merged into the transcript.
    fn kept(&self, damaged: &Path, bytes: &[u8], shown: &[(String, Vec<Value>)]) -> Result<()> {
        let name = damaged
            .file_name()
            .context("expected a name")?
            .to_string_lossy();
        let now = files_in(&self.setup.data_dir())?;
        let there = now.iter().any(|(path, content)| {
            let its = path.file_name().unwrap_or_default().to_string_lossy();
            its.starts_with(&*name) && content.starts_with(bytes)
        });
        let is_json = |text: &[u8]| serde_json::from_slice::<Value>(text).is_ok();
        let mut lines = bytes.split_inclusive(|byte| *byte == b'\n');
        let read = match name.ends_with(".jsonl") {
            false => is_json(bytes),
            true => name.ends_with(".live.jsonl") && lines.all(is_json),
        };
        ensure!(
            there || read,
            "the content of the damaged file is gone; the sessions shown were {shown:?}"
        );
        Ok(())
    }
}

/// Whether the message was answered and its turn has ended.
fn answered(seen: &Conversation, request_id: &str) -> bool {
    let mut entries = seen.entries.iter();
    let sent = entries.any(|entry| entry["requestId"] == request_id);
    let said = sent && entries.any(|entry| entry["content"] == "after");
    said && entries.any(|entry| entry["type"] == "turn") && !seen.is_running()
}

/// Number of entries of `before` that are in `now` unchanged.
fn count_unchanged(before: &[Value], now: &[Value]) -> usize {
    let same = |entry: &&Value| {
        let found = now
            .iter()
            .find(|other| other["entryId"] == entry["entryId"]);
        found.is_some_and(|found| {
            found["content"] == entry["content"] && found["type"] == entry["type"]
        })
    };
    before.iter().filter(same).count()
}

fn changed_lines((_, before): &(PathBuf, Vec<u8>), now: &[u8]) -> usize {
    let lines = |bytes: &[u8]| -> BTreeSet<Vec<u8>> {
        let lines = bytes.split_inclusive(|byte| *byte == b'\n');
        lines.map(<[u8]>::to_vec).collect()
    };
    lines(before).difference(&lines(now)).count()
}

fn open(dir: &Path) -> Result<Hub, HubError> {
    Hub::open(HubConfig {
        data_dir: DataDir::prepare(dir)?,
        home: None,
        agents: AgentSetup {
            // No agent is found, so that each turn ends at once.
            catalog: Catalog::new("".into(), None, None),
            keepers: Keepers::new("/nowhere", dir),
            env: vec![],
            home: dir.to_owned(),
            start_timeout: HANG_GUARD,
            backoff: Backoff::default(),
            sleeps_after: None,
        },
        rules: SessionRules {
            policy: PermissionPolicy::Allow,
            quiet_after: Duration::from_secs(60),
            restarts_when_quiet: false,
        },
        cleaning: CleaningRules {
            age: None,
            bytes_max: None,
        },
    })
}

fn ids(hub: &Hub) -> BTreeSet<String> {
    let projects = hub.projects().list();
    let named = hub.sessions().list_with_keys(&projects);
    named.into_iter().map(|session| session.item.id).collect()
}

async fn history(hub: &Hub, id: &str) -> Result<Vec<Value>> {
    let (feed, mut reader) = hub::feed(1);
    hub.sessions()
        .show(id, feed, None, None, Origin::default())
        .await?;
    let first = tokio::time::timeout(HANG_GUARD, reader.next()).await?;
    match &*first.map_err(|_| anyhow::anyhow!("too slow"))?.event {
        SessionEvent::History { entries, .. } => entries
            .iter()
            .map(|entry| Ok(serde_json::to_value(entry)?))
            .collect(),
        other => bail!("not a history: {other:?}"),
    }
}

/// Runs a turn. It fails because there is no agent, and is recorded nevertheless.
async fn add(hub: &Hub, id: &str) -> Result<()> {
    let (feed, mut reader) = hub::feed(2);
    hub.sessions()
        .show(id, feed, None, None, Origin::default())
        .await?;
    let origin = Origin::default();
    hub.sessions()
        .send(id, "after".to_owned(), vec![], origin)
        .await?;
    loop {
        let next = tokio::time::timeout(HANG_GUARD, reader.next()).await?;
        let fed = next.map_err(|_| anyhow::anyhow!("too slow"))?;
        if let SessionEvent::Update { entry, .. } = &*fed.event
            && matches!(**entry, ChatEntry::Turn(_))
        {
            return Ok(());
        }
    }
}

/// Truncates a file at every length and flips bits in every byte; the short form takes a sample.
async fn every_damage(is_it: impl Fn(&str) -> bool) -> Result<()> {
    let snapshot = Snapshot::new().await?;
    let (path, bytes) = snapshot.find(is_it)?;
    let mut cases = 0;
    for at in (0..bytes.len()).step_by(times(61, 1)) {
        let mut damages = vec![bytes[..at].to_vec()];
        for bit in [0x01, 0x80] {
            let mut flipped = bytes.clone();
            flipped[at] ^= bit;
            damages.push(flipped);
        }
        for damaged in &damages {
            cases += 1;
            let checked = snapshot.check(path, damaged).await;
            checked.with_context(|| {
                format!(
                    "byte {at} of {}: {}",
                    path.display(),
                    String::from_utf8_lossy(damaged)
                )
            })?;
        }
    }
    eprintln!("{cases} damaged versions of {} bytes", bytes.len());
    Ok(())
}

#[tokio::test]
async fn damaged_project_list_loses_no_session() -> Result<()> {
    every_damage(|name| name.ends_with("/projects.json")).await
}

#[tokio::test]
async fn damaged_session_index_loses_no_session() -> Result<()> {
    every_damage(|name| name.ends_with("/sessions.json")).await
}

#[tokio::test]
async fn damaged_transcript_loses_only_the_damaged_lines() -> Result<()> {
    every_damage(|name| name.contains("/sessions/") && !name.contains(".live.")).await
}

#[tokio::test]
async fn damaged_live_log_loses_only_the_damaged_lines() -> Result<()> {
    every_damage(|name| name.ends_with(".live.jsonl")).await
}

#[tokio::test]
async fn server_with_a_damaged_file_serves_the_others() -> Result<()> {
    let snapshot = Snapshot::new().await?;
    for (path, bytes) in &snapshot.files {
        let name = path.to_string_lossy();
        if !name.ends_with(".json") && !name.ends_with(".jsonl") {
            continue;
        }
        for at in [0, bytes.len() / 2, bytes.len().saturating_sub(1)] {
            snapshot.put(path, &bytes[..at])?;
            let server = snapshot
                .setup
                .start()
                .await
                .with_context(|| format!("{name} {at}"))?;
            let mut person = Person::at(&server, &snapshot.folder).await?;
            let listed = person.list(false).await?;
            let least = if name.contains("/sessions/") { 1 } else { 2 };
            ensure!(listed.len() >= least, "{name} {at}: {listed:?}");
            for item in &listed {
                let id = item["id"].as_str().context("expected an id")?;
                let mut talk = person.open(id).await?;
                // The agent's replay may replace lost entries meanwhile, so that counting turns would be unreliable.
                let sent = format!("after-{id}");
                person.send_as(&talk, "say after", &sent).await?;
                person
                    .until(&mut talk, |seen| answered(seen, &sent))
                    .await?;
            }
            let projects = person.socket.ask(json!({"type": "project:list"})).await?;
            ensure!(
                projects["projects"]
                    .as_array()
                    .is_some_and(|list| list.len() == 1)
            );
        }
    }
    Ok(())
}
