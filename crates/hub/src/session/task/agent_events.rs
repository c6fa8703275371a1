//! Handles the agent's events: updates the agent link, then passes each event to the state as an input.

use serde_json::Value;
use wire::{AttachProblem, ChatEntry};

use super::link::{Answered, Loaded, PendingChoice, refuse_stale};
use super::mailbox::AGENT_EVENTS_PER_WAKE;
use super::{Done, SessionTask};
use crate::error::HubError;
use crate::session::reconcile::merge;
use crate::session::state::{ConfigChoice, Input, stamp};
use agents::{AgentError, AgentEvent, AgentSession, Attach, Routed, SessionResponse};
use conversation::Update;

impl SessionTask {
    /// Handles waiting agent events until none is left or the log stalls.
    pub(super) async fn agent_events(&mut self) {
        self.timers.restart_silence();
        // Text that later events may extend. Merged here, before it is numbered: a flood of chunks then costs few
        // writes and few events, without a timer that would delay the first one.
        let mut text: Option<Update> = None;
        // The byte budget of the events is held until they are written.
        let mut permits = vec![];
        let mut handled = 0;
        while !self.log.is_stalled()
            && let Some(Routed { connection, event }) = self.mailbox.next_event()
        {
            handled += 1;
            if !self
                .link
                .accepts(connection, &event, self.state.is_attaching())
            {
                refuse_stale(event);
                continue;
            }
            let event = match event {
                AgentEvent::Update { update, permit, .. } => {
                    permits.push(permit);
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
        self.permits.append(&mut permits);
        if handled >= AGENT_EVENTS_PER_WAKE {
            tokio::task::yield_now().await;
        }
    }

    async fn update(&mut self, update: Update) {
        if !matches!(update, Update::Session(_)) {
            if self.state.is_attaching() && self.link.is_replaying() {
                let now = stamp(self.timers.last_event_at());
                return self.link.replayed(update, &now);
            }
            // The agent failed to open the session but continues its replay.
            if self.state.is_detached() {
                return;
            }
        }
        self.step(Input::Update(update)).await;
    }

    async fn agent_event(&mut self, connection: u64, event: AgentEvent<SessionResponse>) {
        match event {
            AgentEvent::Update { update, .. } => self.update(update).await,
            AgentEvent::Response(response) => self.agent_response(connection, response).await,
            AgentEvent::Request {
                method,
                params,
                answer,
            } => {
                if let Some(input) = self.link.request(method, params, answer) {
                    self.step(input).await;
                }
            }
            AgentEvent::Visited { elicitation_id } => {
                self.step(Input::Visited { elicitation_id }).await;
            }
            // The current attempt has sent nothing yet; its request wakes the agent.
            AgentEvent::Asleep if self.state.is_attaching() && self.link.awaits_attach_answer() => {
            }
            AgentEvent::Asleep => {
                self.detach();
                self.step(Input::AgentAsleep).await;
                if self.link.has_pending_choices() {
                    self.step(Input::ClientOpened).await;
                }
            }
            AgentEvent::Exited { reason } => self.lost(reason).await,
        }
    }

    /// Handles what a request to the agent has led to.
    async fn agent_response(&mut self, connection: u64, response: SessionResponse) {
        match response {
            SessionResponse::Opening { .. } => self.link.connect(connection),
            SessionResponse::Attached { attempt, .. } if !self.link.is_current_attempt(attempt) => {
            }
            SessionResponse::Attached {
                session,
                how,
                result,
                ..
            } => match result {
                Ok(answer) if how == Attach::Load => {
                    let has_entries = self.log.total() > 0;
                    self.link.loaded(session, answer, has_entries);
                }
                Ok(answer) => {
                    self.link.drop_replay();
                    self.restore(session, answer).await;
                }
                // Handled here and not when the process ends: by then the next attempt may have begun.
                Err(AgentError::Lost { reason, .. }) => self.lost(reason).await,
                Err(error) => self.attach_failed(error.into()).await,
            },
            SessionResponse::Prompt { turn, result } => {
                self.timers.prompt_ended();
                let lost = matches!(result, Err(AgentError::Lost { .. }));
                // The `Exited` event that follows ends the turn and has the reason.
                if !lost {
                    let result = result.map_err(|error| match error {
                        // Without the agent's name, which the page shows anyway.
                        AgentError::Refused { message, .. } => message,
                        error => error.to_string(),
                    });
                    self.step(Input::Answered { turn, result }).await;
                }
            }
        }
    }

    /// Handles the end of the agent process, and fails the current attempt to open the session.
    async fn lost(&mut self, reason: String) {
        let attaching = self.state.is_attaching();
        self.detach();
        let name = self.link.agent_name();
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
        self.link.detach();
        self.timers.prompt_ended();
    }

    pub(super) async fn attach_failed(&mut self, error: HubError) {
        let (code, message) = (error.code(), error.to_string());
        for pending in self.link.take_choices() {
            let message = message.clone();
            pending.reply(Err(HubError::SessionRefused { code, message }));
        }
        let problem = AttachProblem { code, message };
        self.step(Input::AttachFailed(problem)).await;
    }

    /// Merges the replay into the transcript, then uses the session.
    pub(super) async fn finish_load(&mut self, loaded: Loaded) {
        if let Some(replay) = loaded.replay {
            self.merge_replay(replay).await;
        }
        self.restore(loaded.session, loaded.answer).await;
    }

    async fn merge_replay(&mut self, replay: Vec<ChatEntry>) {
        let total = self.log.total();
        let Ok(entries) = self.log.entries(0, total).await else {
            return;
        };
        let Some(merged) = merge(&entries, replay, self.state.has_unsent_prompt()) else {
            return;
        };
        let last = merged.entries.len() as u64;
        let kept = self.path_of_replaced();
        let header = self.meta.header();
        let state = &mut self.state;
        let info = || {
            state.renumber(last);
            state.info()
        };
        self.log
            .replace(header, merged.entries, merged.running, kept, info)
            .await;
    }

    /// Sends earlier config choices that the agent process does not know, then uses the session.
    async fn restore(&mut self, session: AgentSession, answer: Value) {
        let missing = self.state.choices_to_restore(&answer);
        match missing.is_empty() {
            true => self.opened(session, answer, vec![]).await,
            false => self.link.restore(session, answer, missing),
        }
    }

    pub(super) async fn opened(
        &mut self,
        session: AgentSession,
        answer: Value,
        chosen: Vec<(ConfigChoice, Value)>,
    ) {
        let attached = self.link.open(session, answer, chosen);
        self.step(attached).await;
        for pending in self.link.take_choices() {
            self.choose(pending).await;
        }
    }

    pub(super) async fn choose(&mut self, pending: PendingChoice) {
        if let Some(input) = self.link.choose(pending) {
            self.step(input).await;
        }
    }

    pub(super) async fn choice_answered(
        &mut self,
        connection: u64,
        pending: PendingChoice,
        answer: Result<Value, AgentError>,
    ) {
        match self.link.choice_answered(connection, pending, answer) {
            Answered::Accepted(PendingChoice { choice, reply }, answer) => {
                self.step(Input::ChoiceAccepted { choice, answer }).await;
                let _ = reply.send(Ok(Done::Noted));
            }
            Answered::Again(pending) => self.choose(pending).await,
            Answered::Refused => {}
        }
    }
}
