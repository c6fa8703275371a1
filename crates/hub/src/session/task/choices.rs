//! Config choices: sent to the agent at once, or as soon as it has the session open, and again when a new agent
//! process no longer knows them.

use serde_json::Value;
use tokio::sync::oneshot;

use super::command::Done;
use super::{SessionTask, TaskReport};
use crate::error::HubError;
use crate::session::state::{ConfigChoice, Input};
use agents::{AgentError, AgentSession};

/// Maximum config choices that wait for the agent to open the session.
const PENDING_CHOICES_MAX: usize = 16;

/// A config choice that the agent has not answered yet.
pub(super) struct PendingChoice {
    pub(super) choice: ConfigChoice,
    pub(super) reply: oneshot::Sender<Result<Done, HubError>>,
}

impl SessionTask {
    pub(super) async fn choose(&mut self, pending: PendingChoice) {
        match &self.agent {
            Some(agent) if !agent.is_asleep() => {
                let (reports, agent) = (self.reports.clone(), agent.clone());
                tokio::spawn(async move {
                    let connection = agent.connection_id();
                    let answer = send_choice(&agent, &pending.choice).await;
                    let answered = TaskReport::ChoiceAnswered {
                        connection,
                        pending,
                        answer,
                    };
                    let _ = reports.send(answered).await;
                });
            }
            _ if self.pending_choices.len() >= PENDING_CHOICES_MAX => {
                let message = format!(
                    "Cannot change the setting: {} does not have this session open yet. Try again when it has.",
                    self.agent_name()
                );
                let code = wire::ErrorCode::AgentUnavailable;
                let refused = HubError::SessionRefused { code, message };
                let _ = pending.reply.send(Err(refused));
            }
            _ => {
                self.pending_choices.push(pending);
                self.step(Input::ClientOpened).await;
            }
        }
    }

    pub(super) async fn choice_answered(
        &mut self,
        connection: u64,
        pending: PendingChoice,
        answer: Result<Value, AgentError>,
    ) {
        match answer {
            // The agent process that accepted the choice has ended; its successor does not know it.
            Ok(_)
                if self
                    .agent_connection
                    .is_some_and(|current| current != connection) =>
            {
                self.choose(pending).await
            }
            Ok(answer) => {
                let choice = pending.choice;
                self.step(Input::ChoiceAccepted { choice, answer }).await;
                let _ = pending.reply.send(Ok(Done::Noted));
            }
            Err(AgentError::Asleep { .. }) => self.choose(pending).await,
            Err(error) => drop(pending.reply.send(Err(error.into()))),
        }
    }

    /// Sends the user's earlier choices to an agent process that has just opened the session. The session counts as
    /// open only after that.
    pub(super) async fn restore(&mut self, session: AgentSession, answer: Value) {
        let missing = self.state.choices_to_restore(&answer);
        if missing.is_empty() {
            return self.opened(session, answer, vec![]).await;
        }
        self.restoring = Some(session.connection_id());
        let reports = self.reports.clone();
        tokio::spawn(async move {
            let mut chosen = vec![];
            for choice in missing {
                match send_choice(&session, &choice).await {
                    Ok(answer) => chosen.push((choice, answer)),
                    // The agent reports the current value itself.
                    Err(error) => {
                        tracing::info!(%error, "the agent rejected an earlier config choice")
                    }
                }
            }
            let restored = TaskReport::Restored {
                session,
                answer,
                chosen,
            };
            let _ = reports.send(restored).await;
        });
    }

    pub(super) async fn restored(
        &mut self,
        session: AgentSession,
        answer: Value,
        chosen: Vec<(ConfigChoice, Value)>,
    ) {
        // Otherwise that agent process has ended, and a new one does not have these choices.
        if self
            .restoring
            .take_if(|id| *id == session.connection_id())
            .is_some()
        {
            self.opened(session, answer, chosen).await;
        }
    }

    async fn opened(
        &mut self,
        session: AgentSession,
        answer: Value,
        chosen: Vec<(ConfigChoice, Value)>,
    ) {
        let takes_images = session.takes_images();
        self.agent = Some(session);
        let attached = Input::Attached {
            answer,
            takes_images,
            chosen,
        };
        self.step(attached).await;
        for pending in std::mem::take(&mut self.pending_choices) {
            self.choose(pending).await;
        }
    }
}

async fn send_choice(agent: &AgentSession, choice: &ConfigChoice) -> Result<Value, AgentError> {
    match choice {
        ConfigChoice::Mode(mode) => agent.set_mode(mode).await.map(|()| Value::Null),
        ConfigChoice::Option { id, value } => agent.set_option(id, value.clone()).await,
    }
}
