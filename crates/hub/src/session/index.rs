//! Which sessions there are: `sessions.json`, an index over the transcripts.
//!
//! What a person decides about a session (that it exists, its name, that it is archived or gone) is
//! written to the index before anybody hears of it. When it was last active is not: that stands in
//! the transcript, so a message costs the same however many sessions there are, and the index is
//! brought up to date when it is written anyway. After a crash the transcripts tell.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use wire::{ChatEntry, Project, SessionListItem, SessionState};

use super::grouped::Grouped;
use super::title::{self, UNTITLED};
use crate::error::HubError;
use crate::events::{Events, Origin, What};
use durable::{create_private_dir, ownership};
use store::transcript::{Header, Note, Transcript, live_path};
use store::{DataDir, Document, Versioned, migrations, names};

/// Deleted sessions that can be brought back.
const DELETED_MAX: usize = 1000;
/// A transcript written this much later than the index knows has something new to tell.
const SAME_TIME: SignedDuration = SignedDuration::from_secs(2);
/// Where the last word about a session stands.
const TAIL: u64 = 50;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionMeta {
    /// Canonical: `{cliType}:{the agent's own id}`.
    pub(crate) id: String,
    /// Names its files, and the session at the gateway.
    pub(crate) key: String,
    pub(crate) project_id: String,
    pub(crate) project_path: String,
    pub(crate) cli_type: String,
    /// What whoever made it calls its agent, if that says more than the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) agent_id: Option<String>,
    pub(crate) archived: bool,
    pub(crate) title: String,
    pub(crate) last_active_at: String,
    pub(crate) created_at: String,
    /// Whether its last turn failed or was interrupted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) failed: bool,
}

impl SessionMeta {
    /// The agent's own id.
    pub(crate) fn agent_session_id(&self) -> &str {
        self.id
            .strip_prefix(&self.cli_type)
            .and_then(|rest| rest.strip_prefix(':'))
            .unwrap_or(&self.id)
    }

    pub(crate) fn header(&self) -> Header {
        Header {
            version: 1,
            edition: 0,
            key: self.key.clone(),
            session: self.id.clone(),
            cli_type: self.cli_type.clone(),
            agent_id: self.agent_id.clone(),
            project_id: self.project_id.clone(),
            project_path: self.project_path.clone(),
            created_at: self.created_at.clone(),
        }
    }

    fn belongs_to(&self, project: &Project) -> bool {
        self.project_id == project.id || self.project_path == project.path
    }
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct SessionsFile {
    sessions: Vec<Arc<SessionMeta>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    deleted: Vec<Arc<SessionMeta>>,
}

impl Versioned for SessionsFile {
    const MIGRATIONS: &'static [migrations::Migration] = migrations::SESSIONS;
}

/// What is wrong with the index in this data directory, if anything, without touching it.
pub(crate) fn problem(data_dir: &Path) -> Option<String> {
    store::problem::<SessionsFile>(&data_dir.join(names::SESSIONS))
}

pub(crate) struct Index {
    document: Document<SessionsFile>,
    folder: PathBuf,
    events: Events,
    /// What has happened since the index was written, by session id.
    news: Mutex<HashMap<String, News>>,
    /// The last state that was asked about, by project.
    grouped: Mutex<Option<(Arc<SessionsFile>, Arc<Grouped>)>>,
}

#[derive(Debug, Clone)]
struct News {
    last_active_at: Option<String>,
    state: SessionState,
    /// The one derived from the first message, which its transcript has already.
    title: Option<String>,
}

impl Default for News {
    fn default() -> Self {
        Self {
            last_active_at: None,
            state: SessionState::Idle,
            title: None,
        }
    }
}

impl Index {
    /// Reads the index, and repairs it from the transcripts. Also returns the sessions whose last turn
    /// never ended.
    pub(crate) fn open(
        dir: &DataDir,
        events: Events,
        notices: &mut Vec<String>,
    ) -> Result<(Self, Vec<Arc<SessionMeta>>), HubError> {
        let folder = dir.sessions_folder()?;
        let mut unended = vec![];
        let document = Document::open_with(dir.sessions_file(), notices, |file, notices| {
            let found = repair(file, &folder, notices);
            unended = found.unended;
            found.changed
        })?;
        let index = Self {
            document,
            folder,
            events,
            news: Mutex::default(),
            grouped: Mutex::default(),
        };
        Ok((index, unended))
    }

    pub(crate) fn find(&self, id: &str) -> Option<Arc<SessionMeta>> {
        let file = self.document.read();
        file.sessions.iter().find(|meta| meta.id == id).cloned()
    }

    pub(crate) fn path(&self, meta: &SessionMeta) -> PathBuf {
        self.folder.join(format!("{}.jsonl", meta.key))
    }

    /// The sessions of a project, the last active one first.
    pub(crate) fn list(&self, project: &Project, archived: bool) -> Vec<SessionListItem> {
        let grouped = self.grouped();
        let news = self.news();
        let mut items: Vec<SessionListItem> = grouped
            .of(project)
            .filter(|meta| meta.archived == archived)
            .map(|meta| item(meta, &project.id, news.get(&meta.id)))
            .collect();
        items.sort_by(|a, b| b.last_active_at.cmp(&a.last_active_at));
        items
    }

    fn grouped(&self) -> Arc<Grouped> {
        let file = self.document.read();
        let mut last = self.grouped.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((of, grouped)) if Arc::ptr_eq(of, &file) => grouped.clone(),
            _ => {
                let grouped = Arc::new(Grouped::new(&file.sessions));
                *last = Some((file, grouped.clone()));
                grouped
            }
        }
    }

    /// The session with this key.
    pub(crate) fn by_key(&self, key: &str) -> Option<Arc<SessionMeta>> {
        let file = self.document.read();
        file.sessions.iter().find(|meta| meta.key == key).cloned()
    }

    /// The kind of agent of the session that was last active.
    pub(crate) fn last_kind(&self) -> Option<String> {
        let file = self.document.read();
        let news = self.news();
        let last_active = |meta: &&Arc<SessionMeta>| {
            let news = news
                .get(&meta.id)
                .and_then(|news| news.last_active_at.clone());
            news.unwrap_or_else(|| meta.last_active_at.clone())
        };
        let last = file.sessions.iter().max_by_key(last_active)?;
        Some(last.cli_type.clone())
    }

    /// Every session of these projects with its key, the newest one first.
    pub(crate) fn named(&self, projects: &[Project]) -> Vec<Named> {
        let file = self.document.read();
        let news = self.news();
        let mut named: Vec<Named> = file
            .sessions
            .iter()
            .filter_map(|meta| {
                let project = projects.iter().find(|project| meta.belongs_to(project))?;
                Some(Named::new(meta, &project.id, news.get(&meta.id)))
            })
            .collect();
        named.sort_by(|a, b| b.item.created_at.cmp(&a.item.created_at));
        named
    }

    pub(crate) async fn insert(&self, meta: SessionMeta, origin: Origin) -> Result<(), HubError> {
        let meta = Arc::new(meta);
        let added = meta.clone();
        let what = What::SessionCreated(item(&meta, &meta.project_id, None));
        let change = move |file: &mut SessionsFile| {
            if file.sessions.iter().any(|known| known.id == added.id) {
                return Err(HubError::SessionDuplicate(added.id.clone()));
            }
            file.sessions.push(added);
            Ok(())
        };
        self.change(change, what, origin).await
    }

    pub(crate) async fn set_title(
        &self,
        id: &str,
        title: String,
        origin: Origin,
    ) -> Result<(), HubError> {
        let what = What::SessionTitle {
            session_id: id.to_owned(),
            title: title.clone(),
        };
        if let Some(news) = self.news().get_mut(id) {
            news.title = None;
        }
        self.edit(id, move |meta| meta.title = title, |_| what, origin)
            .await
    }

    pub(crate) async fn set_archived(
        &self,
        id: &str,
        archived: bool,
        origin: Origin,
    ) -> Result<(), HubError> {
        let told = move |meta: &SessionMeta| match archived {
            true => What::SessionArchived {
                session_id: meta.id.clone(),
            },
            false => What::SessionUnarchived(item(meta, &meta.project_id, None)),
        };
        self.edit(id, move |meta| meta.archived = archived, told, origin)
            .await
    }

    /// Fails when the data directory is not this server's any more.
    pub(crate) fn check_ownership(&self) -> Result<(), HubError> {
        ownership::check(&self.folder).map_err(|error| HubError::Write(Arc::new(error)))
    }

    /// Takes a session out of the index and moves its files to the trash folder.
    pub(crate) async fn delete(&self, id: &str, origin: Origin) -> Result<(), HubError> {
        let what = What::SessionDeleted {
            session_id: id.to_owned(),
        };
        let (id, news) = (id.to_owned(), self.news().clone());
        let (folder, events) = (self.folder.clone(), self.events.clone());
        let change = move |file: &mut SessionsFile| {
            bring_up_to_date(file, &news);
            let at = position(&file.sessions, &id)?;
            let meta = file.sessions.remove(at);
            file.deleted.push(meta.clone());
            if file.deleted.len() > DELETED_MAX {
                file.deleted.remove(0);
            }
            Ok(meta)
        };
        // Afterwards: the next start moves files that are still here; a moved file the index lists would be missing.
        let committed = move |meta: &Arc<SessionMeta>| {
            if let Err(error) = move_files(&meta.key, &folder, &trash(&folder)) {
                tracing::error!(%error, "could not move a deleted session to the trash");
            }
            events.publish(what, origin);
        };
        self.document.change(change, committed).await.map(drop)
    }

    /// Brings a deleted session back as it was. Its files are durable in their place before the index lists them.
    pub(crate) async fn restore(&self, id: &str, origin: Origin) -> Result<(), HubError> {
        let deleted = self.document.read();
        let at = position(&deleted.deleted, id)?;
        let meta = &deleted.deleted[at];
        let what = What::SessionUnarchived(item(meta, &meta.project_id, None));
        let (id, folder) = (id.to_owned(), self.folder.clone());
        let change = move |file: &mut SessionsFile| {
            let at = position(&file.deleted, &id)?;
            let meta = file.deleted.remove(at);
            move_files(&meta.key, &trash(&folder), &folder)?;
            file.sessions.push(meta);
            Ok(())
        };
        self.change(change, what, origin).await
    }

    /// The session has a title from its first message, and its transcript says so.
    pub(crate) fn note_title(&self, meta: &SessionMeta, title: String) {
        let mut news = self.news();
        news.entry(meta.id.clone()).or_default().title = Some(title.clone());
        drop(news);
        let session_id = meta.id.clone();
        let what = What::SessionTitle { session_id, title };
        self.events.publish(what, Origin::default());
    }

    /// Writes what the index does not know yet.
    pub(crate) async fn catch_up(&self) -> Result<(), HubError> {
        let news = self.news().clone();
        if news.is_empty() {
            return Ok(());
        }
        let change = move |file: &mut SessionsFile| {
            bring_up_to_date(file, &news);
            Ok(())
        };
        self.document.change(change, |()| ()).await
    }

    /// Something happened in the session.
    pub(crate) fn note(&self, meta: &SessionMeta, state: SessionState, active: Option<Timestamp>) {
        let last_active_at = {
            let mut news = self.news();
            let news = news.entry(meta.id.clone()).or_default();
            news.state = state;
            if let Some(active) = active {
                news.last_active_at = Some(super::state::stamp(active));
            }
            news.last_active_at.clone()
        };
        let what = What::SessionState {
            session_id: meta.id.clone(),
            project_id: meta.project_id.clone(),
            state,
            last_active_at: last_active_at.unwrap_or_else(|| meta.last_active_at.clone()),
        };
        self.events.publish(what, Origin::default());
    }

    /// Brings the index up to date and stops.
    pub(crate) async fn close(&self) {
        if let Err(error) = self.catch_up().await {
            tracing::error!(%error, "could not write the list of sessions");
        }
        self.document.close().await;
    }

    async fn edit(
        &self,
        id: &str,
        edit: impl FnOnce(&mut SessionMeta) + Send + 'static,
        told: impl FnOnce(&SessionMeta) -> What + Send + 'static,
        origin: Origin,
    ) -> Result<(), HubError> {
        let (id, news, events) = (id.to_owned(), self.news().clone(), self.events.clone());
        let change = move |file: &mut SessionsFile| {
            let at = position(&file.sessions, &id)?;
            bring_up_to_date(file, &news);
            edit(Arc::make_mut(&mut file.sessions[at]));
            Ok(file.sessions[at].clone())
        };
        let committed = move |meta: &Arc<SessionMeta>| events.publish(told(meta), origin);
        self.document.change(change, committed).await.map(drop)
    }

    async fn change(
        &self,
        change: impl FnOnce(&mut SessionsFile) -> Result<(), HubError> + Send + 'static,
        what: What,
        origin: Origin,
    ) -> Result<(), HubError> {
        let (news, events) = (self.news().clone(), self.events.clone());
        let change = move |file: &mut SessionsFile| {
            bring_up_to_date(file, &news);
            change(file)
        };
        self.document
            .change(change, move |()| events.publish(what, origin))
            .await
    }

    fn news(&self) -> MutexGuard<'_, HashMap<String, News>> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A session as programs name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    pub key: String,
    /// The kind of agent, or what whoever made the session calls it.
    pub agent_id: String,
    pub item: SessionListItem,
}

impl Named {
    fn new(meta: &SessionMeta, project_id: &str, news: Option<&News>) -> Self {
        let agent_id = meta.agent_id.as_ref().unwrap_or(&meta.cli_type);
        Self {
            key: meta.key.clone(),
            agent_id: agent_id.clone(),
            item: item(meta, project_id, news),
        }
    }
}

fn item(meta: &SessionMeta, project_id: &str, news: Option<&News>) -> SessionListItem {
    let active = news.and_then(|news| news.last_active_at.clone());
    let title = news.and_then(|news| news.title.clone());
    SessionListItem {
        id: meta.id.clone(),
        project_id: project_id.to_owned(),
        title: title.unwrap_or_else(|| meta.title.clone()),
        last_active_at: active.unwrap_or_else(|| meta.last_active_at.clone()),
        created_at: meta.created_at.clone(),
        cli_type: meta.cli_type.clone(),
        archived: meta.archived,
        state: match (news, meta.failed) {
            (Some(news), _) => news.state,
            (None, true) => SessionState::Failed,
            (None, false) => SessionState::Idle,
        },
    }
}

fn position(metas: &[Arc<SessionMeta>], id: &str) -> Result<usize, HubError> {
    metas
        .iter()
        .position(|meta| meta.id == id)
        .ok_or(HubError::SessionNotFound)
}

fn bring_up_to_date(file: &mut SessionsFile, news: &HashMap<String, News>) {
    for meta in &mut file.sessions {
        let Some(news) = news.get(&meta.id) else {
            continue;
        };
        let at = news.last_active_at.as_ref();
        // Also when it is earlier: a clock that was ahead has been set right.
        let at = at.filter(|at| **at != meta.last_active_at);
        let failed = news.state == SessionState::Failed;
        let title = news.title.as_ref().filter(|title| **title != meta.title);
        if at.is_some() || title.is_some() || failed != meta.failed {
            let meta = Arc::make_mut(meta);
            meta.failed = failed;
            if let Some(title) = title {
                meta.title.clone_from(title);
            }
            if let Some(at) = at {
                meta.last_active_at.clone_from(at);
            }
        }
    }
}

/// The folder for transcripts of deleted sessions.
pub(super) fn trash(folder: &Path) -> PathBuf {
    folder.with_file_name(names::TRASH_FOLDER)
}

/// Moves the files of a session, durably. A file already at the destination keeps its bytes under another name.
fn move_files(key: &str, from: &Path, to: &Path) -> Result<(), HubError> {
    let moved = || -> std::io::Result<()> {
        ownership::check(from)?;
        create_private_dir(to)?;
        let name = format!("{key}.jsonl");
        for name in [live_path(Path::new(&name)), PathBuf::from(name)] {
            move_file(&from.join(&name), &to.join(&name))?;
        }
        Ok(())
    };
    moved().map_err(|error| HubError::Write(Arc::new(error)))
}

fn move_file(from: &Path, to: &Path) -> std::io::Result<()> {
    if !from.try_exists()? {
        return Ok(());
    }
    match durable::rename_new(from, to) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let kept = durable::set_aside(to)?;
            tracing::warn!(kept = %kept.display(), "a file was in the way of a session's and was kept");
            durable::rename_new(from, to)
        }
        renamed => renamed,
    }
}

/// Brings the transcript of a listed session back from the trash: earlier versions did not sync the move out of it.
fn bring_back(meta: &SessionMeta, folder: &Path, notices: &mut Vec<String>) {
    let name = format!("{}.jsonl", meta.key);
    if !trash(folder).join(&name).exists() {
        return;
    }
    match move_files(&meta.key, &trash(folder), folder) {
        Ok(()) => tracing::warn!(
            session = meta.id,
            "its transcript was in the trash folder and is back"
        ),
        Err(error) => notices.push(format!(
            "The transcript of “{}” is in the trash folder and cannot be moved back: {error}.",
            meta.title
        )),
    }
}

#[derive(Default)]
struct Repaired {
    changed: bool,
    unended: Vec<Arc<SessionMeta>>,
}

/// Holds the index against the transcripts that are there.
fn repair(file: &mut SessionsFile, folder: &Path, notices: &mut Vec<String>) -> Repaired {
    let mut repaired = Repaired::default();
    let mut live = HashSet::new();
    let mut written: HashMap<String, Timestamp> = HashMap::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        // A rewrite that a crash cut off: the whole file is beside it.
        if name.ends_with(".live.jsonl.tmp") {
            let _ = std::fs::remove_file(entry.path());
        }
        let Some(key) = name.strip_suffix(".jsonl") else {
            continue;
        };
        if let Some(key) = key.strip_suffix(".live") {
            live.insert(key.to_owned());
            continue;
        }
        let modified = entry.metadata().and_then(|metadata| metadata.modified());
        let modified = modified
            .ok()
            .and_then(|time| Timestamp::try_from(time).ok())
            .unwrap_or_default();
        written.insert(key.to_owned(), modified);
    }
    for meta in &mut file.sessions {
        let known: Timestamp = meta.last_active_at.parse().unwrap_or_default();
        let Some(modified) = written.remove(&meta.key) else {
            bring_back(meta, folder, notices);
            continue;
        };
        // One without a title may have got it just before the end, which was too late for the index.
        let newer = modified.duration_since(known) > SAME_TIME
            || live.contains(&meta.key)
            || meta.title == UNTITLED;
        if newer
            && let Some(told) = told_by(&folder.join(format!("{}.jsonl", meta.key)), Some(meta))
            && told != **meta
        {
            *meta = Arc::new(told);
            repaired.changed = true;
        }
    }
    // Deleted, but the disk refused the move or a crash came before it.
    for meta in &file.deleted {
        if written.remove(&meta.key).is_some() || live.remove(&meta.key) {
            let _ = move_files(&meta.key, folder, &trash(folder));
        }
    }
    let mut again = 0;
    let mut lost = 0;
    for key in written.into_keys() {
        match told_by(&folder.join(format!("{key}.jsonl")), None) {
            Some(meta) => {
                let is_there = |key: &str| folder.join(format!("{key}.jsonl")).exists();
                let same = |known: &&mut Arc<SessionMeta>| known.id == meta.id;
                match file.sessions.iter_mut().find(same) {
                    // The index has it by another key, with no file: a byte of it was wrong.
                    Some(known) if !is_there(&known.key) => Arc::make_mut(known).key = meta.key,
                    _ => file.sessions.push(Arc::new(meta)),
                }
                again += 1;
            }
            None => lost += 1,
        }
    }
    if again > 0 {
        repaired.changed = true;
        notices.push(format!(
            "{again} session{} not in the list and {} found again by {} transcript{}.",
            if again == 1 { " was" } else { "s were" },
            if again == 1 { "was" } else { "were" },
            if again == 1 { "its" } else { "their" },
            if again == 1 { "" } else { "s" },
        ));
    }
    if lost > 0 {
        notices.push(format!(
            "{lost} file{} in {} could not be understood and {} left as {}.",
            if lost == 1 { "" } else { "s" },
            folder.display(),
            if lost == 1 { "was" } else { "were" },
            if lost == 1 { "it is" } else { "they are" },
        ));
    }
    repaired.unended = file
        .sessions
        .iter()
        .filter(|meta| live.contains(&meta.key))
        .cloned()
        .collect();
    repaired
}

fn first_words(entry: &ChatEntry) -> Option<&str> {
    match entry {
        ChatEntry::User { content, .. } => Some(content)
            .filter(|content| !content.trim().is_empty())
            .map(String::as_str),
        _ => None,
    }
}

/// A session's index entry as its transcript has it, over the entry that is known.
fn told_by(path: &Path, known: Option<&SessionMeta>) -> Option<SessionMeta> {
    let (transcript, found) = Transcript::open(path).ok()?;
    let mut meta = match (known, found.header) {
        (Some(known), _) => known.clone(),
        (None, Some(header)) => SessionMeta {
            id: header.session,
            key: header.key,
            project_id: header.project_id,
            project_path: header.project_path,
            cli_type: header.cli_type,
            agent_id: header.agent_id,
            archived: false,
            title: UNTITLED.to_owned(),
            last_active_at: header.created_at.clone(),
            created_at: header.created_at,
            failed: false,
        },
        (None, None) => return None,
    };
    let Note {
        title, archived, ..
    } = found.note;
    // The index has what was acknowledged, but for a title that was derived just before a crash. A note that it does not
    // know belongs to a request that was never answered.
    if meta.title == UNTITLED {
        meta.title = title.unwrap_or(meta.title);
    }
    if known.is_none() {
        meta.archived = archived.unwrap_or(meta.archived);
    }
    let total = transcript.total();
    let mut entries = transcript.read(total.saturating_sub(TAIL), total).ok()?;
    entries.extend(found.in_flight.into_values());
    // The end may have come between the first message and the note of its title.
    if meta.title == UNTITLED {
        let mut first = transcript.read(0, TAIL.min(total)).ok()?;
        first.extend(entries.iter().cloned());
        if let Some(words) = first.iter().find_map(first_words) {
            meta.title = title::derive(words);
        }
    }
    let last_turn = entries.iter().rev().find_map(|entry| match entry {
        ChatEntry::Turn(turn) => Some(turn.outcome.is_failure()),
        _ => None,
    });
    meta.failed = found.interrupted || last_turn.unwrap_or(meta.failed);
    let times = entries.iter().filter_map(|entry| match entry {
        ChatEntry::User { timestamp, .. } => Some(timestamp),
        ChatEntry::Turn(turn) => Some(&turn.timestamp),
        _ => None,
    });
    if let Some(last) = times.max().filter(|last| **last > meta.last_active_at) {
        meta.last_active_at.clone_from(last);
    }
    Some(meta)
}
