//! The agent link of a session: receives the agent's events, serves its requests, and merges the conversation it
//! replays into the transcript.

use std::collections::BTreeMap;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use uuid::Uuid;
use wire::{AttachProblem, ChatEntry, QuestionOutcome, TurnPhase};

use super::permissions::{ALLOW_WRITE, GuardedWrite, PendingPermission};
use super::record::apply;
use super::{SessionTask, TaskReport};
use crate::error::HubError;
use crate::session::index::trash;
use crate::session::reconcile::{Reconciled, reconcile};
use crate::session::state::{Input, stamp};
use agents::elicitation;
use agents::from_acp;
use agents::{
    AgentError, Answer, Attach, AuditWhat, DecidedBy, FromAgent, Host, Picture, Routed, would_write,
};
use conversation::Update;
use conversation::{Entries, entry_number};
use store::Uploads;

/// Maximum open elicitations per session.
const ELICITATIONS_MAX: usize = 16;
/// Maximum size of a replay, which is in memory until it is merged into the transcript.
const REPLAY_BYTES_MAX: usize = 512 * 1024 * 1024;

pub(super) struct Replay {
    fold: Entries,
    entries: BTreeMap<u64, ChatEntry>,
    /// The replay exceeded `REPLAY_BYTES_MAX` and was discarded.
    overflowed: bool,
}

impl Replay {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty() && !self.overflowed
    }

    /// The replayed conversation; `None` if it was too large.
    pub(super) fn finish(self) -> Option<Vec<ChatEntry>> {
        (!self.overflowed).then(|| self.entries.into_values().collect())
    }

    fn apply(&mut self, update: Update, now: &str) {
        if self.overflowed {
            return;
        }
        for change in self.fold.apply(update, now) {
            apply(&mut self.entries, &change);
        }
        if self.fold.held() > REPLAY_BYTES_MAX {
            *self = Self {
                overflowed: true,
                ..Self::default()
            };
        }
    }
}

impl Default for Replay {
    fn default() -> Self {
        Self {
            fold: Entries::after(0),
            entries: BTreeMap::new(),
            overflowed: false,
        }
    }
}

impl SessionTask {
    pub(super) async fn agent_events(&mut self, events: &mut Vec<Routed>) {
        self.last_event = Instant::now();
        self.last_event_at = Timestamp::now();
        self.quiet_reported = false;
        // Text that later events may extend, and the byte budget held by the events until they are written.
        let mut text: Option<Update> = None;
        let mut rooms = vec![];
        for Routed { connection, event } in events.drain(..) {
            let event = match event {
                event
                    if self.agent_connection != Some(connection)
                        && !self.starts_current_attempt(&event) =>
                {
                    refuse_stale(event);
                    continue;
                }
                FromAgent::Update(update, room) => {
                    rooms.push(room);
                    let rest = match &mut text {
                        Some(text) => text.merge(update),
                        None => Some(update),
                    };
                    if let Some(update) = rest
                        && let Some(whole) = text.replace(update)
                    {
                        self.update(whole).await;
                    }
                    continue;
                }
                event => event,
            };
            if let Some(whole) = text.take() {
                self.update(whole).await;
            }
            self.agent_event(connection, event).await;
        }
        if let Some(whole) = text {
            self.update(whole).await;
        }
    }

    async fn update(&mut self, update: Update) {
        if !matches!(update, Update::Session(_)) {
            if self.state.is_attaching() && self.restoring.is_none() {
                let now = stamp(self.last_event_at);
                self.replay.apply(update, &now);
                self.replayed();
                return;
            }
            // The agent failed to open the session but continues its replay.
            if self.state.is_detached() {
                return;
            }
        }
        self.step(Input::Update(update)).await;
    }

    /// Whether the event announces the connection used by the current attempt to open the session.
    fn starts_current_attempt(&self, event: &FromAgent) -> bool {
        let is_current = |attempt: u64| attempt == self.attempt && self.state.is_attaching();
        matches!(event, FromAgent::Opening { attempt } if is_current(*attempt))
    }

    /// Whether the agent has not answered the current attempt to open the session.
    fn awaits_attach_answer(&self) -> bool {
        self.state.is_attaching() && self.settling.is_none() && self.restoring.is_none()
    }

    async fn agent_event(&mut self, connection: u64, event: FromAgent) {
        match event {
            FromAgent::Opening { .. } => self.agent_connection = Some(connection),
            FromAgent::Update(update, _) => self.update(update).await,
            FromAgent::Attached { attempt, .. } if attempt != self.attempt => {}
            FromAgent::Attached {
                session,
                how,
                result,
                ..
            } => match result {
                Ok(answer) if how == Attach::Load => self.loaded(session, answer),
                Ok(answer) => {
                    self.replay = Replay::default();
                    self.restore(session, answer).await;
                }
                // Handled here and not when the process ends: by then the next attempt may have begun.
                Err(AgentError::Lost { reason, .. }) => self.lost(reason).await,
                Err(error) => self.attach_failed(error.into()).await,
            },
            FromAgent::Answered { turn, result } => {
                self.cancel_deadline = None;
                let lost = matches!(result, Err(AgentError::Lost { .. }));
                // The `Lost` event that follows ends the turn and has the reason.
                if !lost {
                    let result = result.map_err(|error| match error {
                        // Without the agent's name, which the page shows anyway.
                        AgentError::Refused { message, .. } => message,
                        error => error.to_string(),
                    });
                    self.step(Input::Answered { turn, result }).await;
                }
            }
            FromAgent::Request {
                method,
                params,
                answer,
            } => self.request(&method, params, answer).await,
            FromAgent::Visited { elicitation_id } => {
                self.step(Input::Visited { elicitation_id }).await;
            }
            // The current attempt has sent nothing yet; its request wakes the agent.
            FromAgent::Asleep if self.awaits_attach_answer() => {}
            FromAgent::Asleep => {
                self.detach();
                self.step(Input::AgentAsleep).await;
                if !self.pending_choices.is_empty() {
                    self.step(Input::ClientOpened).await;
                }
            }
            FromAgent::Lost { reason } => self.lost(reason).await,
        }
    }

    /// Handles the end of the agent process, and fails the current attempt to open the session.
    async fn lost(&mut self, reason: String) {
        let attaching = self.state.is_attaching();
        self.detach();
        let name = self.agent_name();
        let message = match reason.is_empty() {
            true => format!("Connection to {name} lost."),
            false => format!("Connection to {name} lost ({reason})."),
        };
        self.step(Input::AgentLost { reason: message }).await;
        // Last, because it can start another attempt.
        if attaching {
            let lost = AgentError::Lost { name, reason };
            self.attach_failed(lost.into()).await;
        }
    }

    fn detach(&mut self) {
        self.agent = None;
        self.agent_connection = None;
        self.cancel_deadline = None;
        self.replay = Replay::default();
        self.settling = None;
        self.restoring = None;
    }

    pub(super) async fn attach_failed(&mut self, error: HubError) {
        let (code, message) = (error.code(), error.to_string());
        for pending in std::mem::take(&mut self.pending_choices) {
            let message = message.clone();
            let refused = HubError::SessionRefused { code, message };
            let _ = pending.reply.send(Err(refused));
        }
        let problem = AttachProblem { code, message };
        self.step(Input::AttachFailed(problem)).await;
    }

    async fn request(&mut self, method: &str, params: Value, answer: Answer) {
        match method {
            "session/request_permission" => match from_acp::permission(&params) {
                Some((patch, options)) => {
                    let permission_id = format!("p{}", self.next_permission);
                    self.next_permission += 1;
                    let title = patch.title.clone().unwrap_or_default();
                    let guarded = would_write(&patch, self.setup.meta.project_path.as_ref());
                    self.permission_requests.insert(
                        permission_id.clone(),
                        (PendingPermission::Agent(answer), title),
                    );
                    self.step(Input::PermissionRequested {
                        permission_id,
                        patch: Box::new(patch),
                        options,
                        guarded,
                    })
                    .await;
                }
                None => answer.refuse(-32602, "not a permission request"),
            },
            "elicitation/create" => self.elicit(&params, answer).await,
            _ => self.serve(method.to_owned(), params, answer),
        }
    }

    async fn elicit(&mut self, params: &Value, answer: Answer) {
        if self.elicitations.len() >= ELICITATIONS_MAX {
            return answer.refuse(-32603, "too many elicitations are open in this session");
        }
        let asked = match elicitation::read(params) {
            Ok(asked) => Box::new(asked),
            Err(reason) => return answer.refuse(-32602, &reason),
        };
        let question_id = Uuid::new_v4().to_string();
        let (reports, id, withdrawn) = (
            self.reports.clone(),
            question_id.clone(),
            answer.withdrawn(),
        );
        let waiting = tokio::spawn(async move {
            withdrawn.await;
            let withdrawn = Input::ElicitationWithdrawn { question_id: id };
            let _ = reports.send(TaskReport::Input(withdrawn)).await;
        });
        self.elicitations
            .insert(question_id.clone(), (answer, waiting.abort_handle()));
        self.step(Input::ElicitationRequested { question_id, asked })
            .await;
    }

    pub(super) fn send_elicitation_answer(
        &mut self,
        question_id: &str,
        outcome: QuestionOutcome,
        answers: Option<&Map<String, Value>>,
    ) {
        if let Some((answer, waiting)) = self.elicitations.remove(question_id) {
            waiting.abort();
            answer.succeed(elicitation::answer(outcome, answers));
        }
    }

    /// Serves a file or terminal request in a separate task: a command may run for an hour.
    fn serve(&mut self, method: String, params: Value, answer: Answer) {
        let host = match &self.host {
            Some(host) => Ok(host.clone()),
            None => Host::open(self.setup.host.clone()),
        };
        match host {
            Ok(host) => {
                self.host = Some(host.clone());
                let reports = self.reports.clone();
                tokio::spawn(async move {
                    let turn = host.turn(&method).await;
                    // Needed again if the user allows the write.
                    let again = (method == "fs/write_text_file").then(|| params.clone());
                    let refusal = match host.serve(&method, params).await {
                        Ok(result) => {
                            let taken = answer.taken();
                            answer.succeed(result);
                            if turn.is_some() {
                                taken.await;
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
            Err(error) => {
                answer.refuse(
                    -32603,
                    &format!("the project folder cannot be used: {error}"),
                );
            }
        }
    }

    pub(super) fn attach(&mut self) {
        self.detach();
        self.attempt += 1;
        let attempt = self.attempt;
        let kind = self.setup.kind.clone();
        let (reports, inbox, meta) = (
            self.reports.clone(),
            self.inbox.clone(),
            self.setup.meta.clone(),
        );
        let since = meta.last_active_at.parse().unwrap_or_default();
        let since = self.active_at().unwrap_or(since);
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

    /// Time of the last event since this server started.
    fn active_at(&self) -> Option<Timestamp> {
        (self.log.subscribers.seq() > 0).then_some(self.last_event_at)
    }

    /// Merges the agent's replay into the transcript.
    pub(super) async fn merge_replay(&mut self, replay: Vec<ChatEntry>) {
        let total = self.log.record.total();
        let Ok(entries) = self.log.entries(0, total).await else {
            return;
        };
        // A prompt that was not sent yet cannot be part of the replay.
        let sending = self.state.phase() == Some(TurnPhase::Starting);
        let mut ours: Vec<(u64, String)> = entries
            .iter()
            .filter_map(|entry| match entry {
                ChatEntry::User {
                    content, entry_id, ..
                } => Some((entry_number(entry_id), content.clone())),
                _ => None,
            })
            .collect();
        let unsent = if sending { ours.pop() } else { None };
        let texts: Vec<String> = ours.into_iter().map(|(_, text)| text).collect();
        let (kept, new) = match reconcile(&texts, replay) {
            Reconciled::Same => return,
            Reconciled::More(more) => {
                let end = unsent.as_ref().map_or(total, |(number, _)| number - 1);
                (entries[..end as usize].to_vec(), more)
            }
            Reconciled::Other(theirs) => (vec![], theirs),
        };
        let waiting = unsent.map(|(number, _)| entries[number as usize - 1..].to_vec());
        let sent_now = waiting.as_ref().map_or(0, |waiting| waiting.len() as u64);
        let all = kept
            .into_iter()
            .chain(new)
            .chain(waiting.into_iter().flatten());
        let all: BTreeMap<u64, ChatEntry> = all
            .zip(1..)
            .map(|(mut entry, number)| {
                entry.set_entry_id(format!("e{number}"));
                (number, entry)
            })
            .collect();
        let (meta, last) = (&self.setup.meta, all.len() as u64);
        let running = (sent_now > 0).then(|| last - sent_now + 1);
        let now = Timestamp::now().as_millisecond();
        let folder = self.setup.path.parent().map(trash).unwrap_or_default();
        let kept = folder.join(format!("{}.before-{now}.jsonl", meta.key));
        let state = &mut self.state;
        let info = || {
            state.renumber(last);
            state.info()
        };
        self.log
            .replace(meta.header(), all, running, kept, info)
            .await;
    }

    pub(super) fn send_permission_answer(
        &mut self,
        permission_id: &str,
        option_id: Option<String>,
        by_policy: bool,
    ) {
        let Some((waiting, question)) = self.permission_requests.remove(permission_id) else {
            return;
        };
        let by = match (by_policy, &option_id) {
            (true, _) => DecidedBy::Policy,
            (false, Some(_)) => DecidedBy::Person,
            (false, None) => DecidedBy::Cancel,
        };
        let what = AuditWhat::Permission {
            question,
            chosen: option_id.clone(),
            by,
        };
        self.setup.host.audit.record(&self.setup.meta.id, what);
        match waiting {
            PendingPermission::Agent(answer) => answer.succeed(match option_id {
                Some(id) => json!({"outcome": {"outcome": "selected", "optionId": id}}),
                None => json!({"outcome": {"outcome": "cancelled"}}),
            }),
            PendingPermission::Write { write, call_id } => {
                let allowed = option_id.is_some_and(|id| id == ALLOW_WRITE);
                self.finish_write(allowed, write, call_id);
            }
        }
    }
}

/// Drops an event from a connection that the session no longer uses; a request is refused.
fn refuse_stale(event: FromAgent) {
    if let FromAgent::Request { answer, .. } = event {
        answer.refuse(-32602, "the session was opened through another connection");
    }
}

/// Loads the pictures of a message. Missing ones are skipped, so that the text is still sent.
pub(super) async fn load_pictures(uploads: Uploads, ids: Vec<String>) -> Vec<Picture> {
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
