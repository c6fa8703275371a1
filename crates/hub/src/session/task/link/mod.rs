//! The agent link: a session's side of the connection to its agent.
//!
//! It opens the session with the agent, sends prompts and answers, and serves the agent's requests in subtasks, so that
//! the session's task never waits for the agent. It decides nothing: what an agent's event means for the conversation
//! is an [`Input`] for the state.
//!
//! Invariant: events of a connection that the session no longer uses are ignored, and their requests refused.

mod choices;
mod elicitations;
mod permissions;
mod replay;

use std::sync::Arc;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::mpsc;

pub(super) use self::choices::{Answered, PendingChoice};
use self::elicitations::Elicitations;
pub(super) use self::permissions::GuardedWrite;
use self::permissions::Permissions;
pub(super) use self::replay::Loaded;
use self::replay::{Replay, Settling};
use super::TaskReport;
use crate::error::HubError;
use crate::session::index::SessionMeta;
use crate::session::state::{AgentEffect, ConfigChoice, Input};
use agents::{
    AgentEvent, AgentKind, AgentSession, Answer, Host, HostSetup, Picture, Routed, SessionResponse,
    from_acp, would_write,
};
use store::Uploads;

const INVALID_PARAMS: i32 = -32602;
const INTERNAL_ERROR: i32 = -32603;

pub(super) struct AgentLink {
    meta: Arc<SessionMeta>,
    /// `None` if the catalog no longer has this agent.
    kind: Option<AgentKind>,
    uploads: Uploads,
    /// The session as the agent has it open.
    session: Option<AgentSession>,
    /// Number of the current attempt to open the session. Events of earlier attempts are ignored.
    attempt: u64,
    /// The connection of the open session, or of the current attempt once it is known.
    connection: Option<u64>,
    /// Passed to the agent with each attempt to open the session; receives its events for the mailbox.
    inbox: mpsc::Sender<Routed>,
    reports: mpsc::Sender<TaskReport>,
    /// Entries that the agent has replayed so far.
    replay: Replay,
    /// Set after a load was answered, while more replay events may follow.
    settling: Option<Settling>,
    /// The connection to which earlier config choices are being sent again.
    restoring: Option<u64>,
    /// Config choices to send once the agent has the session open.
    choices: Vec<PendingChoice>,
    permissions: Permissions,
    elicitations: Elicitations,
    host_setup: HostSetup,
    /// Opened with the agent's first file or terminal request.
    host: Option<Host>,
}

impl AgentLink {
    pub(super) fn new(
        meta: Arc<SessionMeta>,
        kind: Option<AgentKind>,
        uploads: Uploads,
        inbox: mpsc::Sender<Routed>,
        reports: mpsc::Sender<TaskReport>,
        host_setup: HostSetup,
    ) -> Self {
        Self {
            meta,
            kind,
            uploads,
            session: None,
            attempt: 0,
            connection: None,
            inbox,
            reports,
            replay: Replay::default(),
            settling: None,
            restoring: None,
            choices: vec![],
            permissions: Permissions::default(),
            elicitations: Elicitations::default(),
            host_setup,
            host: None,
        }
    }

    /// The agent's name, as users know it.
    pub(super) fn agent_name(&self) -> String {
        match &self.kind {
            Some(kind) => kind.name().to_owned(),
            None => self.meta.cli_type.clone(),
        }
    }

    /// Whether an event of this connection is for the session as it is open, or announces the connection of the
    /// current attempt to open it.
    pub(super) fn accepts(
        &self,
        connection: u64,
        event: &AgentEvent<SessionResponse>,
        is_attaching: bool,
    ) -> bool {
        let is_current = |attempt: u64| attempt == self.attempt && is_attaching;
        self.connection == Some(connection)
            || matches!(event, AgentEvent::Response(SessionResponse::Opening { attempt }) if is_current(*attempt))
    }

    pub(super) fn is_current_attempt(&self, attempt: u64) -> bool {
        attempt == self.attempt
    }

    /// Whether the user has to do something before the agent continues.
    pub(super) fn waits_for_user(&self) -> bool {
        !self.permissions.is_empty() || !self.elicitations.is_empty()
    }

    /// Uses this connection from now on.
    pub(super) fn connect(&mut self, connection: u64) {
        self.connection = Some(connection);
    }

    /// Uses the session that the agent has opened. Returns the input for the state.
    pub(super) fn open(
        &mut self,
        session: AgentSession,
        answer: Value,
        chosen: Vec<(ConfigChoice, Value)>,
    ) -> Input {
        let takes_images = session.takes_images();
        self.connection = Some(session.connection_id());
        self.session = Some(session);
        Input::Attached {
            answer,
            takes_images,
            chosen,
        }
    }

    /// Forgets the connection and the current attempt to open the session.
    pub(super) fn detach(&mut self) {
        self.session = None;
        self.connection = None;
        self.replay = Replay::default();
        self.settling = None;
        self.restoring = None;
    }

    /// Carries out an effect on the agent. `since` is the time of the session's last activity.
    pub(super) async fn perform(&mut self, effect: AgentEffect, since: Option<Timestamp>) {
        match effect {
            AgentEffect::Attach => self.attach(since),
            AgentEffect::Prompt { turn, message } => {
                let pictures = load_pictures(self.uploads.clone(), message.images).await;
                if let Some(session) = &self.session {
                    session.prompt(turn, &message.content, pictures);
                }
            }
            AgentEffect::Cancel => self.cancel(),
            AgentEffect::AnswerPermission {
                permission_id,
                option_id,
                by_policy,
            } => self.send_permission_answer(&permission_id, option_id, by_policy),
            AgentEffect::AnswerElicitation {
                question_id,
                outcome,
                answers,
            } => self
                .elicitations
                .answer(&question_id, outcome, answers.as_ref()),
            AgentEffect::Kill => {
                if let Some(kind) = self.kind.clone() {
                    let session = &self.meta.id;
                    tracing::warn!(
                        session,
                        "ending an agent process that was quiet for too long or ignored a cancel"
                    );
                    tokio::spawn(async move { kind.kill().await });
                }
            }
        }
    }

    pub(super) fn cancel(&self) {
        if let Some(session) = &self.session {
            session.cancel();
        }
    }

    /// Ends the agent's terminals, and closes the session with the agent if it is deleted.
    pub(super) async fn close(&mut self, deleted: bool) {
        if let Some(host) = self.host.take() {
            host.close().await;
        }
        if let Some(session) = self.session.take_if(|_| deleted) {
            tokio::spawn(async move { session.close().await });
        }
    }

    /// Receives a request of the agent. Returns the input for the state if it needs a decision.
    pub(super) fn request(
        &mut self,
        method: String,
        params: Value,
        answer: Answer,
    ) -> Option<Input> {
        match method.as_str() {
            "session/request_permission" => match from_acp::permission(&params) {
                Some((patch, options)) => {
                    let title = patch.title.clone().unwrap_or_default();
                    let guarded = would_write(&patch, self.meta.project_path.as_ref());
                    Some(Input::PermissionRequested {
                        permission_id: self.permissions.open(answer, title),
                        patch: Box::new(patch),
                        options,
                        guarded,
                    })
                }
                None => {
                    answer.refuse(INVALID_PARAMS, "not a permission request");
                    None
                }
            },
            "elicitation/create" => self.elicitations.open(&params, answer, &self.reports),
            _ => {
                self.serve(method, params, answer);
                None
            }
        }
    }

    /// Serves a file or terminal request in a subtask: a command may run for an hour.
    fn serve(&mut self, method: String, params: Value, answer: Answer) {
        let host = match &self.host {
            Some(host) => host.clone(),
            None => match Host::open(self.host_setup.clone()) {
                Ok(host) => self.host.insert(host).clone(),
                Err(error) => {
                    let message = format!("the project folder cannot be used: {error}");
                    return answer.refuse(INTERNAL_ERROR, &message);
                }
            },
        };
        let reports = self.reports.clone();
        tokio::spawn(async move {
            let turn = host.turn(&method).await;
            // Needed again if the user allows the write.
            let again = (method == "fs/write_text_file").then(|| params.clone());
            let refusal = match host.serve(&method, params).await {
                Ok(result) => {
                    let delivered = answer.delivered();
                    answer.succeed(result);
                    if turn.is_some() {
                        delivered.await;
                    }
                    return;
                }
                Err(refusal) => refusal,
            };
            match (refusal.guarded, again) {
                (Some(path), Some(params)) => {
                    let write = GuardedWrite {
                        path,
                        params,
                        answer,
                    };
                    let _ = reports.send(TaskReport::GuardedWrite(write)).await;
                }
                _ => answer.refuse(refusal.code, &refusal.message),
            }
        });
    }

    /// Opens the session with the agent in a subtask, as a new attempt.
    fn attach(&mut self, since: Option<Timestamp>) {
        self.detach();
        self.attempt += 1;
        let attempt = self.attempt;
        let kind = self.kind.clone();
        let (reports, inbox, meta) = (self.reports.clone(), self.inbox.clone(), self.meta.clone());
        let since = since.or_else(|| meta.last_active_at.parse().ok());
        let since = since.unwrap_or_default();
        tokio::spawn(async move {
            let attached = match kind {
                Some(kind) => {
                    let id = meta.agent_session_id();
                    let cwd = meta.project_path.as_ref();
                    let attached = kind.attach(id, cwd, since, attempt, inbox).await;
                    attached.map_err(HubError::Agent)
                }
                None => Err(HubError::AgentUnknown(meta.cli_type.clone())),
            };
            if let Err(error) = attached {
                let _ = reports
                    .send(TaskReport::AttachFailed { attempt, error })
                    .await;
            }
        });
    }
}

/// Drops an event from a connection that the session no longer uses; a request is refused.
pub(super) fn refuse_stale(event: AgentEvent<SessionResponse>) {
    if let AgentEvent::Request { answer, .. } = event {
        answer.refuse(
            INVALID_PARAMS,
            "the session was opened through another connection",
        );
    }
}

/// Loads the pictures of a message. Missing ones are skipped, so that the text is still sent.
async fn load_pictures(uploads: Uploads, ids: Vec<String>) -> Vec<Picture> {
    if ids.is_empty() {
        return vec![];
    }
    let loaded = tokio::task::spawn_blocking(move || {
        let picture = |id: &String| {
            let upload = uploads.load(id)?;
            Some(Picture {
                mime_type: upload.mime_type.to_owned(),
                data: BASE64_STANDARD.encode(upload.bytes),
            })
        };
        ids.iter().filter_map(picture).collect()
    });
    loaded.await.unwrap_or_default()
}
