//! The list of sessions: `sessions.json`, an index over the transcripts.
//!
//! The user's decisions about a session (create, rename, archive, delete) are written to the index before clients see
//! them. The time of the last activity is written to the transcript only, so that the cost of a message does not grow
//! with the number of sessions; the index receives it with its next write. After a crash the index is repaired from the
//! transcripts.

use std::collections::HashMap;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde::{Deserialize, Serialize, Serializer};
use wire::{Project, SessionListItem, SessionState};

use super::grouped::Grouped;
use super::recovery::repair;
use super::title::UNTITLED;
use crate::error::HubError;
use crate::events::{EventKind, Events, Origin};
use durable::{create_private_dir, ownership};
use store::transcript::{Header, SessionIdentity, live_path};
use store::{DataDir, Document, Versioned, migrations, names};

/// Maximum deleted sessions that can be restored.
const DELETED_MAX: usize = 1000;

/// A session in the list. Its identity is reached through `Deref`, because that is what most callers need.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(from = "MetaRecord<String>")]
pub(crate) struct SessionMeta {
    pub(crate) identity: SessionIdentity,
    pub(crate) archived: bool,
    pub(crate) title: String,
    pub(crate) last_active_at: String,
    /// Whether the last turn failed or was interrupted.
    pub(crate) failed: bool,
}

impl Deref for SessionMeta {
    type Target = SessionIdentity;

    fn deref(&self) -> &SessionIdentity {
        &self.identity
    }
}

/// A session as it is in `sessions.json`, owned after reading and borrowed for writing. The names and the order are
/// those of version 1.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct MetaRecord<T> {
    id: T,
    key: T,
    project_id: T,
    project_path: T,
    cli_type: T,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_id: Option<T>,
    archived: bool,
    title: T,
    last_active_at: T,
    created_at: T,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    failed: bool,
}

impl From<MetaRecord<String>> for SessionMeta {
    fn from(record: MetaRecord<String>) -> Self {
        Self {
            identity: SessionIdentity {
                id: record.id,
                key: record.key,
                project_id: record.project_id,
                project_path: record.project_path,
                cli_type: record.cli_type,
                agent_id: record.agent_id,
                created_at: record.created_at,
            },
            archived: record.archived,
            title: record.title,
            last_active_at: record.last_active_at,
            failed: record.failed,
        }
    }
}

impl Serialize for SessionMeta {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let record = MetaRecord {
            id: self.id.as_str(),
            key: &self.key,
            project_id: &self.project_id,
            project_path: &self.project_path,
            cli_type: &self.cli_type,
            agent_id: self.agent_id.as_deref(),
            archived: self.archived,
            title: &self.title,
            last_active_at: &self.last_active_at,
            created_at: &self.created_at,
            failed: self.failed,
        };
        record.serialize(serializer)
    }
}

impl SessionMeta {
    /// A session without messages.
    pub(crate) fn new(identity: SessionIdentity) -> Self {
        Self {
            last_active_at: identity.created_at.clone(),
            identity,
            archived: false,
            title: UNTITLED.to_owned(),
            failed: false,
        }
    }

    /// Id of the agent session.
    pub(crate) fn agent_session_id(&self) -> &str {
        self.id
            .strip_prefix(&self.cli_type)
            .and_then(|rest| rest.strip_prefix(':'))
            .unwrap_or(&self.id)
    }

    pub(crate) fn header(&self) -> Header {
        Header {
            version: 1,
            identity: self.identity.clone(),
            edition: 0,
        }
    }

    fn belongs_to(&self, project: &Project) -> bool {
        self.project_id == project.id || self.project_path == project.path
    }
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct SessionsFile {
    pub(super) sessions: Vec<Arc<SessionMeta>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) deleted: Vec<Deleted>,
}

/// A deleted session that can be restored.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Deleted {
    #[serde(flatten)]
    pub(super) meta: Arc<SessionMeta>,
    /// Not set by earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deleted_at: Option<Timestamp>,
}

impl Deleted {
    /// Whether the session was deleted before `limit`, as far as known.
    fn is_before(&self, limit: Option<Timestamp>) -> bool {
        matches!((self.deleted_at, limit), (Some(at), Some(limit)) if at < limit)
    }
}

impl Versioned for SessionsFile {
    const MIGRATIONS: &'static [migrations::Migration] = migrations::SESSIONS;
}

/// Describes a problem with the index in this data directory, without changing anything.
pub(crate) fn problem(data_dir: &Path) -> Option<String> {
    store::problem::<SessionsFile>(&data_dir.join(names::SESSIONS))
}

pub(crate) struct Index {
    document: Document<SessionsFile>,
    folder: PathBuf,
    events: Events,
    /// Changes that are not written to the index yet, by session id.
    pending: Mutex<HashMap<String, PendingUpdate>>,
    /// Cache: the sessions by project, for the state of the index they were grouped from.
    grouped: Mutex<Option<(Arc<SessionsFile>, Arc<Grouped>)>>,
}

/// Changes of one session that are not written to the index yet.
#[derive(Debug, Clone)]
struct PendingUpdate {
    last_active_at: Option<String>,
    state: SessionState,
    /// The title derived from the first message; the transcript already has it.
    title: Option<String>,
}

impl Default for PendingUpdate {
    fn default() -> Self {
        Self {
            last_active_at: None,
            state: SessionState::Idle,
            title: None,
        }
    }
}

impl Index {
    /// Reads the index and repairs it from the transcripts. Also returns the sessions whose last turn was
    /// interrupted.
    pub(crate) fn open(
        dir: &DataDir,
        events: Events,
        notices: &mut Vec<String>,
    ) -> Result<(Self, Vec<Arc<SessionMeta>>), HubError> {
        let folder = dir.sessions_folder()?;
        let mut interrupted = vec![];
        let document = Document::open_with(dir.sessions_file(), notices, |file, notices| {
            let found = repair(file, &folder, notices);
            interrupted = found.interrupted;
            found.changed
        })?;
        let index = Self {
            document,
            folder,
            events,
            pending: Mutex::default(),
            grouped: Mutex::default(),
        };
        Ok((index, interrupted))
    }

    pub(crate) fn find(&self, id: &str) -> Option<Arc<SessionMeta>> {
        let file = self.document.read();
        file.sessions.iter().find(|meta| meta.id == id).cloned()
    }

    pub(crate) fn path(&self, meta: &SessionMeta) -> PathBuf {
        self.folder.join(format!("{}.jsonl", meta.key))
    }

    /// The sessions of a project, last active first.
    pub(crate) fn list(&self, project: &Project, archived: bool) -> Vec<SessionListItem> {
        let grouped = self.grouped();
        let pending = self.pending();
        let mut items: Vec<SessionListItem> = grouped
            .of(project)
            .filter(|meta| meta.archived == archived)
            .map(|meta| item(meta, &project.id, pending.get(&meta.id)))
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

    /// The catalog id of the agent of the last active session.
    pub(crate) fn last_kind(&self) -> Option<String> {
        let file = self.document.read();
        let pending = self.pending();
        let last_active = |meta: &&Arc<SessionMeta>| {
            let pending = pending
                .get(&meta.id)
                .and_then(|pending| pending.last_active_at.clone());
            pending.unwrap_or_else(|| meta.last_active_at.clone())
        };
        let last = file.sessions.iter().max_by_key(last_active)?;
        Some(last.cli_type.clone())
    }

    /// All sessions of these projects with their keys, archived ones included, newest first.
    pub(crate) fn list_with_keys(&self, projects: &[Project]) -> Vec<KeyedSession> {
        let file = self.document.read();
        let pending = self.pending();
        let mut named: Vec<KeyedSession> = file
            .sessions
            .iter()
            // Of sessions created in one millisecond, the later one first.
            .rev()
            .filter_map(|meta| {
                let project = projects.iter().find(|project| meta.belongs_to(project))?;
                Some(KeyedSession::new(meta, &project.id, pending.get(&meta.id)))
            })
            .collect();
        named.sort_by(|a, b| b.item.created_at.cmp(&a.item.created_at));
        named
    }

    pub(crate) async fn insert(&self, meta: SessionMeta, origin: Origin) -> Result<(), HubError> {
        let meta = Arc::new(meta);
        let added = meta.clone();
        let event = EventKind::SessionCreated(item(&meta, &meta.project_id, None));
        let change = move |file: &mut SessionsFile| {
            if file.sessions.iter().any(|known| known.id == added.id) {
                return Err(HubError::SessionDuplicate(added.id.clone()));
            }
            file.sessions.push(added);
            Ok(())
        };
        self.change(change, event, origin).await
    }

    pub(crate) async fn set_title(
        &self,
        id: &str,
        title: String,
        origin: Origin,
    ) -> Result<(), HubError> {
        let event = EventKind::SessionTitle {
            session_id: id.to_owned(),
            title: title.clone(),
        };
        if let Some(pending) = self.pending().get_mut(id) {
            pending.title = None;
        }
        self.edit(id, move |meta| meta.title = title, |_| event, origin)
            .await
    }

    pub(crate) async fn set_archived(
        &self,
        id: &str,
        archived: bool,
        origin: Origin,
    ) -> Result<(), HubError> {
        let event = move |meta: &SessionMeta| match archived {
            true => EventKind::SessionArchived {
                session_id: meta.id.clone(),
            },
            false => EventKind::SessionUnarchived(item(meta, &meta.project_id, None)),
        };
        self.edit(id, move |meta| meta.archived = archived, event, origin)
            .await
    }

    /// Fails if this server no longer owns the data directory.
    pub(crate) fn check_ownership(&self) -> Result<(), HubError> {
        ownership::check(&self.folder).map_err(|error| HubError::Write(Arc::new(error)))
    }

    /// Takes a session out of the index and moves its files to the trash folder.
    pub(crate) async fn delete(&self, id: &str, origin: Origin) -> Result<(), HubError> {
        let event = EventKind::SessionDeleted {
            session_id: id.to_owned(),
        };
        let (id, pending) = (id.to_owned(), self.pending().clone());
        let (folder, events) = (self.folder.clone(), self.events.clone());
        let change = move |file: &mut SessionsFile| {
            bring_up_to_date(file, &pending);
            let at = position(&file.sessions, &id)?;
            let meta = file.sessions.remove(at);
            file.deleted.push(Deleted {
                meta: meta.clone(),
                deleted_at: Some(Timestamp::now()),
            });
            if file.deleted.len() > DELETED_MAX {
                file.deleted.remove(0);
            }
            Ok(meta)
        };
        // Moved after the index is written: the next start moves files that were left behind, but a file moved too
        // early would be missing from a listed session.
        let committed = move |meta: &Arc<SessionMeta>| {
            if let Err(error) = move_files(&meta.key, &folder, &trash(&folder)) {
                tracing::error!(%error, "could not move a deleted session to the trash");
            }
            events.publish(event, origin);
        };
        self.document.change(change, committed).await.map(drop)
    }

    /// Restores a deleted session. Its files are durably back in place before the index lists them.
    pub(crate) async fn restore(&self, id: &str, origin: Origin) -> Result<(), HubError> {
        let deleted = self.document.read();
        let at = position_of_deleted(&deleted.deleted, id)?;
        let meta = &deleted.deleted[at].meta;
        let event = EventKind::SessionUnarchived(item(meta, &meta.project_id, None));
        let (id, folder) = (id.to_owned(), self.folder.clone());
        let change = move |file: &mut SessionsFile| {
            let at = position_of_deleted(&file.deleted, &id)?;
            let meta = file.deleted.remove(at).meta;
            move_files(&meta.key, &trash(&folder), &folder)?;
            file.sessions.push(meta);
            Ok(())
        };
        self.change(change, event, origin).await
    }

    /// The sessions that are listed, and those deleted after `limit`, which can be restored.
    pub(crate) fn kept(&self, limit: Option<Timestamp>) -> Vec<Arc<SessionMeta>> {
        let file = self.document.read();
        let deleted = file.deleted.iter();
        let restorable = deleted.filter(|deleted| !deleted.is_before(limit));
        let restorable = restorable.map(|deleted| &deleted.meta);
        file.sessions.iter().chain(restorable).cloned().collect()
    }

    /// Forgets the sessions deleted before `limit`: they can no longer be restored.
    pub(crate) async fn forget_deleted(&self, limit: Option<Timestamp>) -> Result<(), HubError> {
        let file = self.document.read();
        let unknown = |deleted: &Deleted| deleted.deleted_at.is_none();
        let changes = |deleted: &Deleted| unknown(deleted) || deleted.is_before(limit);
        if !file.deleted.iter().any(changes) {
            return Ok(());
        }
        let change = move |file: &mut SessionsFile| {
            file.deleted.retain(|deleted| !deleted.is_before(limit));
            for deleted in file.deleted.iter_mut().filter(|deleted| unknown(deleted)) {
                // Its age counts from now.
                deleted.deleted_at = Some(Timestamp::now());
            }
            Ok(())
        };
        self.document.change(change, |()| ()).await
    }

    /// Publishes a title derived from the first message; the transcript already has it.
    pub(crate) fn note_title(&self, meta: &SessionMeta, title: String) {
        let mut pending = self.pending();
        pending.entry(meta.id.clone()).or_default().title = Some(title.clone());
        drop(pending);
        let session_id = meta.id.clone();
        let event = EventKind::SessionTitle { session_id, title };
        self.events.publish(event, Origin::default());
    }

    /// Writes pending changes to the index.
    pub(crate) async fn catch_up(&self) -> Result<(), HubError> {
        let pending = self.pending().clone();
        if pending.is_empty() {
            return Ok(());
        }
        let change = move |file: &mut SessionsFile| {
            bring_up_to_date(file, &pending);
            Ok(())
        };
        self.document.change(change, |()| ()).await
    }

    /// Publishes a session's state and, if given, its last activity; the index gets them with its next write.
    pub(crate) fn note(&self, meta: &SessionMeta, state: SessionState, active: Option<Timestamp>) {
        let last_active_at = {
            let mut pending = self.pending();
            let pending = pending.entry(meta.id.clone()).or_default();
            pending.state = state;
            if let Some(active) = active {
                pending.last_active_at = Some(super::state::stamp(active));
            }
            pending.last_active_at.clone()
        };
        let event = EventKind::SessionState {
            session_id: meta.id.clone(),
            project_id: meta.project_id.clone(),
            state,
            last_active_at: last_active_at.unwrap_or_else(|| meta.last_active_at.clone()),
        };
        self.events.publish(event, Origin::default());
    }

    /// Writes pending changes to the index and stops its writer.
    pub(crate) async fn close(&self) {
        if let Err(error) = self.catch_up().await {
            tracing::error!(%error, "could not write pending changes to the session index");
        }
        self.document.close().await;
    }

    async fn edit(
        &self,
        id: &str,
        edit: impl FnOnce(&mut SessionMeta) + Send + 'static,
        event: impl FnOnce(&SessionMeta) -> EventKind + Send + 'static,
        origin: Origin,
    ) -> Result<(), HubError> {
        let (id, pending, events) = (id.to_owned(), self.pending().clone(), self.events.clone());
        let change = move |file: &mut SessionsFile| {
            let at = position(&file.sessions, &id)?;
            bring_up_to_date(file, &pending);
            edit(Arc::make_mut(&mut file.sessions[at]));
            Ok(file.sessions[at].clone())
        };
        let committed = move |meta: &Arc<SessionMeta>| events.publish(event(meta), origin);
        self.document.change(change, committed).await.map(drop)
    }

    async fn change(
        &self,
        change: impl FnOnce(&mut SessionsFile) -> Result<(), HubError> + Send + 'static,
        event: EventKind,
        origin: Origin,
    ) -> Result<(), HubError> {
        let (pending, events) = (self.pending().clone(), self.events.clone());
        let change = move |file: &mut SessionsFile| {
            bring_up_to_date(file, &pending);
            change(file)
        };
        self.document
            .change(change, move |()| events.publish(event, origin))
            .await
    }

    fn pending(&self) -> MutexGuard<'_, HashMap<String, PendingUpdate>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A list item with the key of the session and the name of its agent, as the gateway uses them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyedSession {
    pub key: String,
    /// The name given by the program that created the session, or the agent's catalog id.
    pub agent_id: String,
    pub item: SessionListItem,
}

impl KeyedSession {
    fn new(meta: &SessionMeta, project_id: &str, pending: Option<&PendingUpdate>) -> Self {
        let agent_id = meta.agent_id.as_ref().unwrap_or(&meta.cli_type);
        Self {
            key: meta.key.clone(),
            agent_id: agent_id.clone(),
            item: item(meta, project_id, pending),
        }
    }
}

fn item(meta: &SessionMeta, project_id: &str, pending: Option<&PendingUpdate>) -> SessionListItem {
    let active = pending.and_then(|pending| pending.last_active_at.clone());
    let title = pending.and_then(|pending| pending.title.clone());
    SessionListItem {
        id: meta.id.clone(),
        project_id: project_id.to_owned(),
        title: title.unwrap_or_else(|| meta.title.clone()),
        last_active_at: active.unwrap_or_else(|| meta.last_active_at.clone()),
        created_at: meta.created_at.clone(),
        cli_type: meta.cli_type.clone(),
        archived: meta.archived,
        state: match (pending, meta.failed) {
            (Some(pending), _) => pending.state,
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

fn position_of_deleted(deleted: &[Deleted], id: &str) -> Result<usize, HubError> {
    deleted
        .iter()
        .position(|deleted| deleted.meta.id == id)
        .ok_or(HubError::SessionNotFound)
}

fn bring_up_to_date(file: &mut SessionsFile, pending: &HashMap<String, PendingUpdate>) {
    for meta in &mut file.sessions {
        let Some(pending) = pending.get(&meta.id) else {
            continue;
        };
        let at = pending.last_active_at.as_ref();
        // An earlier time is accepted, too: the clock may have been ahead and was corrected since.
        let at = at.filter(|at| **at != meta.last_active_at);
        let failed = pending.state == SessionState::Failed;
        let title = pending.title.as_ref().filter(|title| **title != meta.title);
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

/// Moves the files of a session, durably. A file already at the destination is set aside.
pub(super) fn move_files(key: &str, from: &Path, to: &Path) -> Result<(), HubError> {
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
            tracing::warn!(kept = %kept.display(), "set aside a file that had the name of a session file being moved");
            durable::rename_new(from, to)
        }
        renamed => renamed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_json_of_version_1_is_read_and_written_with_the_same_bytes() {
        let file = concat!(
            r#"{"sessions":[{"id":"codex:1","key":"k","projectId":"p","projectPath":"/p","cliType":"codex","#,
            r#""archived":false,"title":"Hello","lastActiveAt":"2026-01-02T03:04:06Z","#,
            r#""createdAt":"2026-01-02T03:04:05Z"}],"#,
            r#""deleted":[{"id":"codex:2","key":"l","projectId":"p","projectPath":"/p","cliType":"codex","#,
            r#""agentId":"mine","archived":true,"title":"Bye","lastActiveAt":"2026-01-02T03:04:06Z","#,
            r#""createdAt":"2026-01-02T03:04:05Z","failed":true}]}"#,
        );
        let read: SessionsFile = serde_json::from_str(file).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), file);
        assert_eq!(
            read.deleted[0].meta.identity.agent_id.as_deref(),
            Some("mine")
        );
        assert!(read.deleted[0].meta.failed);
    }
}
