//! Config choices: sent to the agent at once, or as soon as it has the session open, and again to a new agent process,
//! which does not know them.

use serde_json::Value;
use tokio::sync::oneshot;

use super::AgentLink;
use crate::error::HubError;
use crate::session::state::{ConfigChoice, Input};
use crate::session::task::{Done, TaskReport};
use agents::{AgentError, AgentSession};

/// Maximum config choices that wait for the agent to open the session.
const PENDING_CHOICES_MAX: usize = 16;

/// A config choice that the agent has not answered yet.
pub(in crate::session::task) struct PendingChoice {
    pub(in crate::session::task) choice: ConfigChoice,
    pub(in crate::session::task) reply: oneshot::Sender<Result<Done, HubError>>,
}

impl PendingChoice {
    pub(in crate::session::task) fn reply(self, result: Result<Done, HubError>) {
        let _ = self.reply.send(result);
    }
}

impl AgentLink {
    /// Sends a config choice in a subtask. If the agent does not have the session open, the choice is kept until it
    /// has, and the result is the input that opens the session.
    pub(in crate::session::task) fn choose(&mut self, pending: PendingChoice) -> Option<Input> {
        match &self.session {
            Some(session) if !session.is_asleep() => {
                let (reports, session) = (self.reports.clone(), session.clone());
                tokio::spawn(async move {
                    let connection = session.connection_id();
                    let answer = send_choice(&session, &pending.choice).await;
                    let answered = TaskReport::ChoiceAnswered {
                        connection,
                        pending,
                        answer,
                    };
                    let _ = reports.send(answered).await;
                });
                None
            }
            _ if self.choices.len() >= PENDING_CHOICES_MAX => {
                let message = format!(
                    "Cannot change the setting: {} does not have this session open yet. Try again when it has.",
                    self.agent_name()
                );
                let code = wire::ErrorCode::AgentUnavailable;
                pending.reply(Err(HubError::SessionRefused { code, message }));
                None
            }
            _ => {
                self.choices.push(pending);
                Some(Input::ClientOpened)
            }
        }
    }

    pub(in crate::session::task) fn has_pending_choices(&self) -> bool {
        !self.choices.is_empty()
    }

    pub(in crate::session::task) fn take_choices(&mut self) -> Vec<PendingChoice> {
        std::mem::take(&mut self.choices)
    }

    /// Handles the agent's answer to a config choice. A choice that did not reach the agent process in use is sent
    /// again.
    pub(in crate::session::task) fn choice_answered(
        &mut self,
        connection: u64,
        pending: PendingChoice,
        answer: Result<Value, AgentError>,
    ) -> Answered {
        // The agent process that accepted the choice has ended; its successor does not know it.
        let is_other = self.connection.is_some_and(|current| current != connection);
        match answer {
            Ok(_) if is_other => Answered::Again(pending),
            Ok(answer) => Answered::Accepted(pending, answer),
            Err(AgentError::Asleep { .. }) => Answered::Again(pending),
            Err(error) => {
                pending.reply(Err(error.into()));
                Answered::Refused
            }
        }
    }

    /// Sends the user's earlier choices to an agent process that has just opened the session, in a subtask. The session
    /// counts as open only after that.
    pub(in crate::session::task) fn restore(
        &mut self,
        session: AgentSession,
        answer: Value,
        missing: Vec<ConfigChoice>,
    ) {
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

    /// Ends the restore of earlier choices on this connection. False if another restore is in progress or none: the
    /// agent process that received these choices has ended.
    pub(in crate::session::task) fn end_restore(&mut self, connection: u64) -> bool {
        self.restoring.take_if(|id| *id == connection).is_some()
    }
}

/// The result of the agent's answer to a config choice.
pub(in crate::session::task) enum Answered {
    Accepted(PendingChoice, Value),
    Again(PendingChoice),
    Refused,
}

async fn send_choice(session: &AgentSession, choice: &ConfigChoice) -> Result<Value, AgentError> {
    match choice {
        ConfigChoice::Mode(mode) => session.set_mode(mode).await.map(|()| Value::Null),
        ConfigChoice::Option { id, value } => session.set_option(id, value.clone()).await,
    }
}
