//! What a person chooses of what the agent offers: told to the agent now, when it has the session open, and
//! again when it has forgotten.

use serde_json::Value;
use tokio::sync::oneshot;

use super::command::Done;
use super::{Actor, Own};
use crate::error::HubError;
use crate::session::state::{Choice, Input};
use agents::{AgentError, AgentSession};

/// How many may wait for the agent.
const WISHES_MAX: usize = 16;

pub(super) struct Wish {
    pub(super) choice: Choice,
    pub(super) reply: oneshot::Sender<Result<Done, HubError>>,
}

impl Actor {
    pub(super) async fn choose(&mut self, wish: Wish) {
        match &self.agent {
            Some(agent) if !agent.is_asleep() => {
                let (own, agent) = (self.own.clone(), agent.clone());
                tokio::spawn(async move {
                    let connection = agent.connection_id();
                    let answer = put(&agent, &wish.choice).await;
                    let chose = Own::Chose {
                        connection,
                        wish,
                        answer,
                    };
                    let _ = own.send(chose).await;
                });
            }
            _ if self.wishes.len() >= WISHES_MAX => {
                let message = format!("{} does not have this session open yet.", self.agent_name());
                let code = wire::ErrorCode::AgentUnavailable;
                let refused = HubError::SessionRefused { code, message };
                let _ = wish.reply.send(Err(refused));
            }
            _ => {
                self.wishes.push(wish);
                self.step(Input::Watched).await;
            }
        }
    }

    pub(super) async fn chose(
        &mut self,
        connection: u64,
        wish: Wish,
        answer: Result<Value, AgentError>,
    ) {
        match answer {
            // The process that agreed is gone, and the one after it was not asked.
            Ok(_) if self.link.is_some_and(|link| link != connection) => self.choose(wish).await,
            Ok(answer) => {
                let choice = wish.choice;
                self.step(Input::Chose { choice, answer }).await;
                let _ = wish.reply.send(Ok(Done::Noted));
            }
            Err(AgentError::Asleep { .. }) => self.choose(wish).await,
            Err(error) => drop(wish.reply.send(Err(error.into()))),
        }
    }

    /// The agent has opened the session: it is as it was left once the agent knows what had been chosen.
    pub(super) async fn restore(&mut self, session: AgentSession, answer: Value) {
        let forgotten = self.state.forgotten(&answer);
        if forgotten.is_empty() {
            return self.opened(session, answer, vec![]).await;
        }
        self.restoring = Some(session.connection_id());
        let own = self.own.clone();
        tokio::spawn(async move {
            let mut chosen = vec![];
            for choice in forgotten {
                match put(&session, &choice).await {
                    Ok(answer) => chosen.push((choice, answer)),
                    // It says itself what it is set to now.
                    Err(error) => tracing::info!(%error, "what was chosen is no longer to be had"),
                }
            }
            let restored = Own::Restored {
                session,
                answer,
                chosen,
            };
            let _ = own.send(restored).await;
        });
    }

    pub(super) async fn restored(
        &mut self,
        session: AgentSession,
        answer: Value,
        chosen: Vec<(Choice, Value)>,
    ) {
        // Otherwise the agent is gone, and with it what it was told.
        if self
            .restoring
            .take_if(|id| *id == session.connection_id())
            .is_some()
        {
            self.opened(session, answer, chosen).await;
        }
    }

    async fn opened(&mut self, session: AgentSession, answer: Value, chosen: Vec<(Choice, Value)>) {
        let takes_images = session.takes_images();
        self.agent = Some(session);
        let attached = Input::Attached {
            answer,
            takes_images,
            chosen,
        };
        self.step(attached).await;
        for wish in std::mem::take(&mut self.wishes) {
            self.choose(wish).await;
        }
    }
}

async fn put(agent: &AgentSession, choice: &Choice) -> Result<Value, AgentError> {
    match choice {
        Choice::Mode(mode) => agent.set_mode(mode).await.map(|()| Value::Null),
        Choice::Option { id, value } => agent.set_option(id, value.clone()).await,
    }
}
