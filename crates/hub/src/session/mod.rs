//! Sessions: conversations with agents, each run by its own task.
//!
//! `state` makes the decisions, `task` carries them out and publishes them to the session's stream, `index`
//! lists the sessions. The APIs reach [`Sessions`] through the hub and address a session by its canonical id.

mod grouped;
mod index;
mod kept;
mod reconcile;
mod recovery;
mod state;
mod task;
mod title;

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;
use wire::{
    PermissionPolicy, Position, Project, QuestionAction, QuestionEntry, QueuedMessage, SessionInfo,
    SessionListItem,
};

use index::Index;
pub use index::KeyedSession;
pub(crate) use index::problem;
use state::{ConfigChoice, Input};
use task::{Command, FROM_AGENT_MAX, NewSession, Setup, Subscribe, TERMINALS_MAX};
pub use task::{Done, Page, Shown};
pub use title::UNTITLED;

use crate::error::HubError;
use crate::events::{Events, Origin};
use crate::stream::Feed;
use agents::{Agents, Auditor, HostSetup, Keepers, TerminalOutput};
use store::transcript::{SessionIdentity, Transcript};
use store::{Audit, DataDir, Uploads};

/// Maximum title length.
const TITLE_CHARS_MAX: usize = 200;
/// Maximum pictures per message.
const IMAGES_MAX: usize = 10;

/// Settings that apply to every session.
#[derive(Debug, Clone)]
pub struct SessionRules {
    /// Initial approval policy; the user can change it per session.
    pub policy: PermissionPolicy,
    /// Time without agent events after which a turn is shown as quiet.
    pub quiet_after: Duration,
    /// Whether the process of a quiet agent is ended.
    pub restarts_when_quiet: bool,
}

/// Access of agents to this machine, the same for every session.
#[derive(Clone)]
pub(crate) struct Hosting {
    /// The server's data directory, which agents must not read.
    pub(crate) data_dir: PathBuf,
    pub(crate) keepers: Keepers,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) audit: Audit,
    pub(crate) uploads: Uploads,
}

/// All sessions of a data directory. Each runs in its own task, started when it is first needed.
pub struct Sessions {
    index: Arc<Index>,
    hosting: Hosting,
    agents: Arc<Agents>,
    rules: SessionRules,
    boot_id: Arc<str>,
    /// Command channels of the running tasks, by canonical id. The lock is never held over an await.
    running: Mutex<HashMap<String, mpsc::Sender<Command>>>,
}

impl Sessions {
    pub(crate) fn open(
        dir: &DataDir,
        agents: Arc<Agents>,
        hosting: Hosting,
        rules: SessionRules,
        boot_id: Arc<str>,
        events: Events,
        notices: &mut Vec<String>,
    ) -> Result<Self, HubError> {
        let (index, interrupted) = Index::open(dir, events, notices)?;
        let sessions = Self {
            index: Arc::new(index),
            hosting,
            agents,
            rules,
            boot_id,
            running: Mutex::default(),
        };
        // Starting their tasks ends the interrupted turns, so that lists and transcripts are right from the start.
        for meta in interrupted {
            let _ = sessions.session(&meta.id);
        }
        Ok(sessions)
    }

    /// The sessions of a project, last active first. Answered from the index, without the agents.
    pub fn list(&self, project: &Project, archived: bool) -> Vec<SessionListItem> {
        self.index.list(project, archived)
    }

    /// All sessions of these projects, archived ones included, newest first.
    pub fn list_with_keys(&self, projects: &[Project]) -> Vec<KeyedSession> {
        self.index.list_with_keys(projects)
    }

    /// The catalog id of the agent that was used last.
    pub fn last_kind(&self) -> Option<String> {
        self.index.last_kind()
    }

    /// The canonical id of the session with this key.
    pub fn id_of(&self, key: &str) -> Option<String> {
        self.index.by_key(key).map(|meta| meta.id.clone())
    }

    /// The key of the session with this canonical id.
    pub fn key_of(&self, id: &str) -> Option<String> {
        self.index.find(id).map(|meta| meta.key.clone())
    }

    /// Creates a session with this agent in the project's folder. `feed` receives its events from the first one.
    ///
    /// `agent_id` is the caller's name for the agent, if it differs from `cli_type`.
    pub async fn create(
        &self,
        project: &Project,
        cli_type: &str,
        agent_id: Option<String>,
        feed: Option<Feed>,
        origin: Origin,
    ) -> Result<String, HubError> {
        let kind = self
            .agents
            .kind(cli_type)
            .ok_or_else(|| HubError::AgentUnknown(cli_type.to_owned()))?;
        let (inbox, from_agent) = mpsc::channel(FROM_AGENT_MAX);
        let (agent, answer) = kind
            .new_session(project.path.as_ref(), inbox.clone())
            .await
            .map_err(HubError::NotCreated)?;
        let id = format!("{cli_type}:{}", agent.id());
        if self.index.find(&id).is_some() {
            return Err(HubError::SessionDuplicate(id));
        }
        let meta = Arc::new(index::SessionMeta::new(SessionIdentity {
            id: id.clone(),
            key: Uuid::new_v4().to_string(),
            project_id: project.id.clone(),
            project_path: project.path.clone(),
            cli_type: cli_type.to_owned(),
            agent_id,
            created_at: state::stamp(Timestamp::now()),
        }));
        let (path, header) = (self.index.path(&meta), meta.header());
        let created = tokio::task::spawn_blocking(move || Transcript::create(&path, &header));
        let transcript = created
            .await
            .map_err(std::io::Error::other)
            .flatten()
            .map_err(|error| HubError::Write(Arc::new(error)))?;
        let fresh = NewSession {
            transcript,
            agent,
            answer,
            inbox,
            from_agent,
        };
        let commands = task::spawn(self.setup(meta.clone()), Some(fresh));
        self.running().insert(id.clone(), commands);
        if let Some(feed) = feed {
            self.follow(&id, feed).await?;
        }
        let inserted = self.index.insert((*meta).clone(), origin).await;
        if inserted.is_err() {
            self.running().remove(&id);
            // Otherwise the next start would find the transcript and list a session whose creation failed.
            let _ = std::fs::remove_file(self.index.path(&meta));
        }
        inserted.map(|()| id)
    }

    /// Subscribes `feed` to the session: sends a snapshot, or the events since `after`, then every later event.
    pub async fn show(
        &self,
        id: &str,
        feed: Feed,
        after: Option<Position>,
        tail: Option<u32>,
        origin: Origin,
    ) -> Result<Shown, HubError> {
        let how = Subscribe::Open {
            after,
            tail,
            origin,
        };
        self.ask(id, |reply| Command::Subscribe { feed, how, reply })
            .await?
    }

    /// Subscribes `feed` to later events only, without a snapshot.
    pub async fn follow(&self, id: &str, feed: Feed) -> Result<Shown, HubError> {
        let how = Subscribe::Follow;
        self.ask(id, |reply| Command::Subscribe { feed, how, reply })
            .await?
    }

    /// Unsubscribes the connection from the session.
    pub async fn leave(&self, id: &str, connection: u64) {
        let running = self.running().get(id).cloned();
        if let Some(running) = running {
            let _ = running.send(Command::Unsubscribe { connection }).await;
        }
    }

    /// Unsubscribes the connection from all sessions.
    pub async fn leave_all(&self, connection: u64) {
        let running: Vec<_> = self.running().values().cloned().collect();
        for session in running {
            let _ = session.send(Command::Unsubscribe { connection }).await;
        }
    }

    /// The `limit` entries before the entry with index `before`.
    pub async fn page(&self, id: &str, before: u64, limit: u32) -> Result<Page, HubError> {
        self.ask(id, |reply| Command::Page {
            before,
            limit,
            reply,
        })
        .await?
    }

    /// The current state of the session, without its entries.
    pub async fn info(&self, id: &str) -> Result<SessionInfo, HubError> {
        self.ask(id, |reply| Command::Info { reply }).await?
    }

    /// The current state, or `None` if the session's task is not running. Does not start the task.
    pub async fn info_if_open(&self, id: &str) -> Result<Option<SessionInfo>, HubError> {
        let open = self.running().contains_key(id);
        match open {
            true => self.info(id).await.map(Some),
            false => Ok(None),
        }
    }

    /// Sends a message, or queues it while a turn runs. A message whose request id was accepted before has no effect.
    pub async fn send(
        &self,
        id: &str,
        content: String,
        images: Vec<String>,
        origin: Origin,
    ) -> Result<Done, HubError> {
        if images.len() > IMAGES_MAX || !images.iter().all(|id| self.hosting.uploads.has(id)) {
            return Err(HubError::SessionRefused {
                code: wire::ErrorCode::InvalidMessage,
                message: "Cannot send the message: one of its pictures is missing, or it has more than ten. \
                          Add the pictures again."
                    .to_owned(),
            });
        }
        let message = QueuedMessage {
            queue_id: Uuid::new_v4().to_string(),
            content,
            images,
            request_id: origin.request_id.clone(),
        };
        self.act(id, Input::Send(message), origin).await
    }

    /// Cancels the running turn; with a request id, only if the turn was started by that request.
    pub async fn cancel(&self, id: &str, only: Option<String>) -> Result<Done, HubError> {
        self.act(id, Input::Cancel { only }, Origin::default())
            .await
    }

    /// Changes the text of a queued message.
    pub async fn edit_queued(
        &self,
        id: &str,
        queue_id: String,
        content: String,
    ) -> Result<Done, HubError> {
        let input = Input::EditQueued { queue_id, content };
        self.act(id, input, Origin::default()).await
    }

    /// Removes a queued message.
    pub async fn remove_queued(&self, id: &str, queue_id: String) -> Result<Done, HubError> {
        self.act(id, Input::RemoveQueued { queue_id }, Origin::default())
            .await
    }

    /// Resumes a paused queue.
    pub async fn resume_queue(&self, id: &str) -> Result<Done, HubError> {
        self.act(id, Input::ResumeQueue, Origin::default()).await
    }

    /// Answers a permission request.
    pub async fn permit(
        &self,
        id: &str,
        permission_id: String,
        option_id: String,
    ) -> Result<Done, HubError> {
        let input = Input::PermissionAnswered {
            permission_id,
            option_id,
        };
        self.act(id, input, Origin::default()).await
    }

    /// Answers an elicitation.
    pub async fn answer(
        &self,
        id: &str,
        question_id: String,
        action: QuestionAction,
        content: Option<Map<String, Value>>,
    ) -> Result<Done, HubError> {
        let input = Input::ElicitationAnswered {
            question_id,
            action,
            content,
        };
        self.act(id, input, Origin::default()).await
    }

    /// The open elicitations, with all their fields.
    pub async fn questions(&self, id: &str) -> Result<Vec<QuestionEntry>, HubError> {
        self.ask(id, |reply| Command::Elicitations { reply })
            .await?
    }

    /// Sets the approval policy of the session.
    pub async fn set_policy(&self, id: &str, policy: PermissionPolicy) -> Result<Done, HubError> {
        self.act(id, Input::SetPolicy(policy), Origin::default())
            .await
    }

    /// Sets the agent's mode, as soon as the agent has the session open.
    pub async fn set_mode(&self, id: &str, mode_id: String) -> Result<Done, HubError> {
        self.choose(id, ConfigChoice::Mode(mode_id)).await
    }

    /// Sets an option of the agent, as soon as the agent has the session open.
    pub async fn set_option(
        &self,
        id: &str,
        option_id: String,
        value: Value,
    ) -> Result<Done, HubError> {
        let choice = ConfigChoice::Option {
            id: option_id,
            value,
        };
        self.choose(id, choice).await
    }

    async fn choose(&self, id: &str, choice: ConfigChoice) -> Result<Done, HubError> {
        self.ask(id, |reply| Command::Choose { choice, reply })
            .await?
    }

    /// Retries opening the session with its agent after a failure.
    pub async fn attach(&self, id: &str) -> Result<Done, HubError> {
        self.act(id, Input::TryAgain, Origin::default()).await
    }

    /// Sets the title. Whitespace is normalized and a long title is cut.
    pub async fn rename(&self, id: &str, title: &str, origin: Origin) -> Result<(), HubError> {
        let title: String = title
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .chars()
            .take(TITLE_CHARS_MAX)
            .collect();
        if title.is_empty() {
            return Err(HubError::SessionRefused {
                code: wire::ErrorCode::InvalidMessage,
                message:
                    "Cannot rename the session: the title is empty. Type at least one character."
                        .to_owned(),
            });
        }
        let noted = title.clone();
        self.ask(id, |reply| Command::Titled {
            title: noted,
            reply,
        })
        .await??;
        self.index.set_title(id, title, origin).await
    }

    /// Archives the session, or brings it back to the list.
    pub async fn archive(&self, id: &str, archived: bool, origin: Origin) -> Result<(), HubError> {
        let commands = self.session(id)?;
        let _ = commands.send(Command::Archived(archived)).await;
        self.index.set_archived(id, archived, origin).await
    }

    /// Stops the session and moves its files to the trash folder.
    pub async fn delete(&self, id: &str, origin: Origin) -> Result<(), HubError> {
        self.index.find(id).ok_or(HubError::SessionNotFound)?;
        // Checked first: without ownership, the task would wait forever for a disk that it may not write to.
        self.index.check_ownership()?;
        let running = self.running().remove(id);
        if let Some(running) = running {
            stop(&running, true).await;
        }
        self.index.delete(id, origin).await
    }

    /// Restores a deleted session.
    pub async fn restore(&self, id: &str, origin: Origin) -> Result<(), HubError> {
        self.index.restore(id, origin).await
    }

    /// Stops every task after its conversation is on disk.
    pub(crate) async fn close(&self) {
        let running: Vec<_> = self.running().drain().map(|(_, session)| session).collect();
        let ends: Vec<_> = running
            .into_iter()
            .map(|session| tokio::spawn(async move { stop(&session, false).await }))
            .collect();
        for end in ends {
            let _ = end.await;
        }
        self.index.close().await;
    }

    async fn act(&self, id: &str, input: Input, origin: Origin) -> Result<Done, HubError> {
        self.ask(id, |reply| Command::Act {
            input,
            origin,
            reply,
        })
        .await?
    }

    async fn ask<R>(
        &self,
        id: &str,
        command: impl FnOnce(oneshot::Sender<R>) -> Command,
    ) -> Result<R, HubError> {
        let (reply, answered) = oneshot::channel();
        let session = self.session(id)?;
        session
            .send(command(reply))
            .await
            .map_err(|_| HubError::Closed)?;
        answered.await.map_err(|_| HubError::Closed)
    }

    /// Returns the command channel of the session's task, and starts the task if necessary. An unknown id causes no
    /// disk access.
    fn session(&self, id: &str) -> Result<mpsc::Sender<Command>, HubError> {
        let mut running = self.running();
        if let Some(session) = running.get(id) {
            return Ok(session.clone());
        }
        let meta = self.index.find(id).ok_or(HubError::SessionNotFound)?;
        let session = task::spawn(self.setup(meta), None);
        running.insert(id.to_owned(), session.clone());
        Ok(session)
    }

    fn setup(&self, meta: Arc<index::SessionMeta>) -> Setup {
        let (output, terminals) = mpsc::channel(TERMINALS_MAX);
        Setup {
            path: self.index.path(&meta),
            kind: self.agents.kind(&meta.cli_type),
            boot_id: self.boot_id.clone(),
            index: self.index.clone(),
            host: self.host_of(&meta, output),
            terminals,
            audit: self.hosting.audit.clone(),
            uploads: self.hosting.uploads.clone(),
            meta,
            policy: self.rules.policy,
            quiet_after: self.rules.quiet_after,
            restarts_when_quiet: self.rules.restarts_when_quiet,
        }
    }

    fn host_of(
        &self,
        meta: &index::SessionMeta,
        output: mpsc::Sender<TerminalOutput>,
    ) -> HostSetup {
        let data_dir = &self.hosting.data_dir;
        let project = PathBuf::from(&meta.project_path);
        // A project can be inside the data directory (scratch projects are); the server's own files stay forbidden.
        let ours = ["agent", "sessions", "token", "trash", "uploads"];
        let forbidden: Vec<PathBuf> = match project.starts_with(data_dir) {
            true => ours.iter().map(|name| data_dir.join(name)).collect(),
            false => vec![data_dir.clone(), data_dir.join("token")],
        };
        HostSetup {
            project,
            forbidden: forbidden.into_iter().filter(|path| path.exists()).collect(),
            session_id: meta.id.clone(),
            keepers: self.hosting.keepers.clone(),
            env: self.hosting.env.clone(),
            audit: auditor(&self.hosting.audit),
            output,
        }
    }

    fn running(&self) -> MutexGuard<'_, HashMap<String, mpsc::Sender<Command>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn auditor(audit: &Audit) -> Auditor {
    let audit = audit.clone();
    Auditor::new(move |session_id, event| audit.record(session_id, event))
}

async fn stop(session: &mpsc::Sender<Command>, deleted: bool) {
    let (reply, stopped) = oneshot::channel();
    if session.send(Command::Stop { deleted, reply }).await.is_ok() {
        let _ = stopped.await;
    }
}
