//! The agent's side of a session: what it says is heard, what it asks is served, and what it remembers is
//! held against what we have.
use std::collections::BTreeMap;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use uuid::Uuid;
use wire::{AttachProblem, ChatEntry, QuestionOutcome, TurnPhase};

use super::guarded::{AGREE, Guarded, Waiting};
use super::record::keep;
use super::{Actor, Own};
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

/// Questions of one session that may be open at once.
const QUESTIONS_MAX: usize = 16;
/// What an agent may remember of a session that it opens again; it is in memory until it is held against what we have.
const REPLAY_BYTES_MAX: usize = 512 * 1024 * 1024;

pub(super) struct Replay {
    fold: Entries,
    entries: BTreeMap<u64, ChatEntry>,
    /// It went on and on, and nothing of it is kept.
    too_much: bool,
}

impl Replay {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty() && !self.too_much
    }

    /// The conversation as the agent repeated it; none if it was too much.
    pub(super) fn finish(self) -> Option<Vec<ChatEntry>> {
        (!self.too_much).then(|| self.entries.into_values().collect())
    }

    fn apply(&mut self, update: Update, now: &str) {
        if self.too_much {
            return;
        }
        for change in self.fold.apply(update, now) {
            keep(&mut self.entries, &change);
        }
        if self.fold.held() > REPLAY_BYTES_MAX {
            *self = Self {
                too_much: true,
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
            too_much: false,
        }
    }
}

impl Actor {
    pub(super) async fn heard(&mut self, said: &mut Vec<Routed>) {
        self.last_heard = Instant::now();
        self.last_heard_at = Timestamp::now();
        self.quiet_told = false;
        // Text that may still grow, and the room that all of it takes until it is written.
        let mut text: Option<Update> = None;
        let mut rooms = vec![];
        for Routed { connection, event } in said.drain(..) {
            let said = match event {
                event if self.link != Some(connection) && !self.opens(&event) => {
                    ignore(event);
                    continue;
                }
                FromAgent::Update(update, room) => {
                    rooms.push(room);
                    let rest = match &mut text {
                        Some(grown) => grown.merge(update),
                        None => Some(update),
                    };
                    if let Some(update) = rest
                        && let Some(whole) = text.replace(update)
                    {
                        self.update(whole).await;
                    }
                    continue;
                }
                said => said,
            };
            if let Some(whole) = text.take() {
                self.update(whole).await;
            }
            self.agent_said(connection, said).await;
        }
        if let Some(whole) = text {
            self.update(whole).await;
        }
    }

    async fn update(&mut self, update: Update) {
        if !matches!(update, Update::Session(_)) {
            if self.state.is_attaching() && self.restoring.is_none() {
                let now = stamp(self.last_heard_at);
                self.replay.apply(update, &now);
                self.replayed();
                return;
            }
            // The agent would not open the session, and goes on with its replay.
            if self.state.is_detached() {
                return;
            }
        }
        self.step(Input::Update(update)).await;
    }

    /// Whether the event says which connection the attempt under way uses.
    fn opens(&self, event: &FromAgent) -> bool {
        let own = |attempt: u64| attempt == self.attempt && self.state.is_attaching();
        matches!(event, FromAgent::Opening { attempt } if own(*attempt))
    }

    /// Whether an attempt has no answer yet.
    fn is_asking(&self) -> bool {
        self.state.is_attaching() && self.settling.is_none() && self.restoring.is_none()
    }

    async fn agent_said(&mut self, connection: u64, said: FromAgent) {
        match said {
            FromAgent::Opening { .. } => self.link = Some(connection),
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
                // Here and not at the end of the process, by when the next attempt may be under way.
                Err(AgentError::Lost { reason, .. }) => self.lost(reason).await,
                Err(error) => self.attach_failed(error.into()).await,
            },
            FromAgent::Answered { turn, result } => {
                self.cancel_deadline = None;
                let lost = matches!(result, Err(AgentError::Lost { .. }));
                // What ended it is told by the end of the process, which follows.
                if !lost {
                    let result = result.map_err(|error| match error {
                        // Whose turn it was is plain to see.
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
            // The attempt has asked nothing of it yet, and wakes it.
            FromAgent::Asleep if self.is_asking() => {}
            FromAgent::Asleep => {
                self.let_go();
                self.step(Input::AgentAsleep).await;
                if !self.wishes.is_empty() {
                    self.step(Input::Watched).await;
                }
            }
            FromAgent::Lost { reason } => self.lost(reason).await,
        }
    }

    /// The process behind the session's connection is gone, and with it an attempt under way.
    async fn lost(&mut self, reason: String) {
        let attaching = self.state.is_attaching();
        self.let_go();
        let name = self.agent_name();
        let said = match reason.is_empty() {
            true => format!("Connection to {name} lost."),
            false => format!("Connection to {name} lost ({reason})."),
        };
        self.step(Input::AgentLost { reason: said }).await;
        // Last: another attempt may begin with it.
        if attaching {
            let lost = AgentError::Lost { name, reason };
            self.attach_failed(lost.into()).await;
        }
    }

    fn let_go(&mut self) {
        self.agent = None;
        self.link = None;
        self.cancel_deadline = None;
        self.replay = Replay::default();
        self.settling = None;
        self.restoring = None;
    }

    pub(super) async fn attach_failed(&mut self, error: HubError) {
        let (code, message) = (error.code(), error.to_string());
        for wish in std::mem::take(&mut self.wishes) {
            let message = message.clone();
            let refused = HubError::SessionRefused { code, message };
            let _ = wish.reply.send(Err(refused));
        }
        let problem = AttachProblem { code, message };
        self.step(Input::AttachFailed(problem)).await;
    }

    async fn request(&mut self, method: &str, params: Value, answer: Answer) {
        match method {
            "session/request_permission" => match from_acp::permission(&params) {
                Some((patch, options)) => {
                    let permission_id = format!("p{}", self.next_question);
                    self.next_question += 1;
                    let title = patch.title.clone().unwrap_or_default();
                    let guarded = would_write(&patch, self.setup.meta.project_path.as_ref());
                    self.questions
                        .insert(permission_id.clone(), (Waiting::Agent(answer), title));
                    self.step(Input::PermissionAsked {
                        permission_id,
                        patch: Box::new(patch),
                        options,
                        guarded,
                    })
                    .await;
                }
                None => answer.refuse(-32602, "not a permission request"),
            },
            "elicitation/create" => self.ask_person(&params, answer).await,
            _ => self.serve(method.to_owned(), params, answer),
        }
    }

    async fn ask_person(&mut self, params: &Value, answer: Answer) {
        if self.asked.len() >= QUESTIONS_MAX {
            return answer.refuse(-32603, "too many questions are open already");
        }
        let asked = match elicitation::read(params) {
            Ok(asked) => Box::new(asked),
            Err(reason) => return answer.refuse(-32602, &reason),
        };
        let question_id = Uuid::new_v4().to_string();
        let (own, id, withdrawn) = (self.own.clone(), question_id.clone(), answer.withdrawn());
        let waiting = tokio::spawn(async move {
            withdrawn.await;
            let withdrawn = Input::QuestionWithdrawn { question_id: id };
            let _ = own.send(Own::Input(withdrawn)).await;
        });
        self.asked
            .insert(question_id.clone(), (answer, waiting.abort_handle()));
        self.step(Input::QuestionAsked { question_id, asked }).await;
    }

    pub(super) fn answer_question(
        &mut self,
        question_id: &str,
        outcome: QuestionOutcome,
        answers: Option<&Map<String, Value>>,
    ) {
        if let Some((answer, waiting)) = self.asked.remove(question_id) {
            waiting.abort();
            answer.succeed(elicitation::answer(outcome, answers));
        }
    }

    /// Files and commands, in a task of their own: a command may take an hour.
    fn serve(&mut self, method: String, params: Value, answer: Answer) {
        let host = match &self.host {
            Some(host) => Ok(host.clone()),
            None => Host::open(self.setup.host.clone()),
        };
        match host {
            Ok(host) => {
                self.host = Some(host.clone());
                let own = self.own.clone();
                tokio::spawn(async move {
                    let turn = host.turn(&method).await;
                    // It is wanted again if somebody agrees.
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
                            let wanted = Guarded {
                                path,
                                params,
                                answer,
                            };
                            let _ = own.send(Own::Guarded(wanted)).await;
                        }
                        _ => answer.refuse(refusal.code, &refusal.message),
                    }
                });
            }
            Err(error) => {
                answer.refuse(
                    -32603,
                    &format!("the project's folder cannot be used: {error}"),
                );
            }
        }
    }

    pub(super) fn attach(&mut self) {
        self.let_go();
        self.attempt += 1;
        let attempt = self.attempt;
        let kind = self.setup.kind.clone();
        let (own, inbox, meta) = (
            self.own.clone(),
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
                let _ = own.send(Own::AttachFailed { attempt, error }).await;
            }
        });
    }

    /// When something last happened here, as far as this run knows.
    fn active_at(&self) -> Option<Timestamp> {
        (self.conversation.audience.seq() > 0).then_some(self.last_heard_at)
    }

    /// Holds what the agent said again against what we have.
    pub(super) async fn adopt(&mut self, replay: Vec<ChatEntry>) {
        let total = self.conversation.record.total();
        let Ok(entries) = self.conversation.entries(0, total).await else {
            return;
        };
        // What waits to be sent is not part of what the agent can know.
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
        self.conversation
            .replace(meta.header(), all, running, kept, info)
            .await;
    }

    pub(super) fn answer_permission(
        &mut self,
        permission_id: &str,
        option_id: Option<String>,
        by_policy: bool,
    ) {
        let Some((waiting, question)) = self.questions.remove(permission_id) else {
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
            Waiting::Agent(answer) => answer.succeed(match option_id {
                Some(id) => json!({"outcome": {"outcome": "selected", "optionId": id}}),
                None => json!({"outcome": {"outcome": "cancelled"}}),
            }),
            Waiting::Write { wanted, call_id } => {
                let agreed = option_id.is_some_and(|id| id == AGREE);
                self.write_if(agreed, wanted, call_id);
            }
        }
    }
}

/// An event of a connection that the session does not use any more.
fn ignore(event: FromAgent) {
    if let FromAgent::Request { answer, .. } = event {
        answer.refuse(-32602, "the session was opened through another connection");
    }
}

/// One that is gone meanwhile is left out: the words still count.
pub(super) async fn pictures(uploads: Uploads, ids: Vec<String>) -> Vec<Picture> {
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
