//! While the disk refuses: what a person asks is refused, what the agent says is held back, and whoever reads is served.
//!
//! Invariant: what was refused is neither on disk nor in the state.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{Actor, COMMANDS_MAX, Command, Done, Own, Subscribe};
use crate::error::HubError;
use crate::session::feed::SessionEvent;
use crate::session::state::{Effect, Input};
use store::transcript::Note;

const WRITE_AGAIN: Duration = Duration::from_secs(1);
/// How long the end of a turn waits for the audit.
const AUDIT_DEADLINE: Duration = Duration::from_secs(2);

impl Actor {
    /// Does what has to be on disk before anything else, if there is any, and returns the rest.
    pub(super) async fn keep_first(&mut self, mut effects: Vec<Effect>) -> io::Result<Vec<Effect>> {
        match effects.first() {
            Some(Effect::TurnBegins) => {
                let is_written = |effect: &Effect| {
                    matches!(
                        effect,
                        Effect::TurnBegins | Effect::Origin | Effect::Change(_)
                    )
                };
                let rest = effects.iter().position(|effect| !is_written(effect));
                let rest = effects.split_off(rest.unwrap_or(effects.len()));
                self.carry_out(effects).await;
                self.conversation.commit().await?;
                Ok(rest)
            }
            Some(Effect::SaveQueue) => {
                self.conversation.record.save(self.queue_note()).await?;
                effects.remove(0);
                Ok(effects)
            }
            Some(Effect::SavePolicy) => {
                self.conversation.record.save(self.policy_note()).await?;
                effects.remove(0);
                Ok(effects)
            }
            _ => Ok(effects),
        }
    }

    pub(super) fn queue_note(&self) -> Note {
        Note {
            queue: Some(self.state.queue()),
            ..Note::default()
        }
    }

    pub(super) fn policy_note(&self) -> Note {
        Note {
            policy: Some(self.state.policy()),
            ..Note::default()
        }
    }

    pub(super) fn chosen_note(&self) -> Note {
        Note {
            chosen: Some(self.state.chosen().clone()),
            ..Note::default()
        }
    }

    /// Writes and publishes pending changes, as soon as the disk allows it.
    pub(super) async fn commit(&mut self) {
        if self.conversation.ends_turn() {
            // What was allowed in a turn is in the audit before a client sees its end. A disk that hangs holds up the
            // commit below anyway.
            let flushed = self.setup.audit.flush();
            let _ = tokio::time::timeout(AUDIT_DEADLINE, flushed).await;
        }
        let mut told = false;
        while let Err(error) = self.conversation.commit().await {
            tracing::error!(%error, "could not write what was said");
            let error = Arc::new(error);
            if !std::mem::replace(&mut told, true) {
                self.conversation.show(held_back(&error));
            }
            let again = Instant::now() + WRITE_AGAIN;
            while self.put_off.len() < COMMANDS_MAX
                && let Ok(command) = tokio::time::timeout_at(again, self.commands.recv()).await
            {
                match command {
                    Some(command) => self.meanwhile(command, &error).await,
                    None => break,
                }
            }
            tokio::time::sleep_until(again).await;
        }
    }

    /// One who reads is answered from what is on disk; one who wants a change is told why there is none.
    async fn meanwhile(&mut self, command: Command, error: &Arc<io::Error>) {
        let refused = || HubError::Write(error.clone());
        match command {
            Command::Subscribe { feed, how, reply } => {
                let newcomer = matches!(how, Subscribe::Open { .. }).then(|| feed.clone());
                let subscribed = self.subscribe(feed, how).await;
                if let Some(feed) = newcomer.filter(|_| subscribed.is_ok()) {
                    let audience = &self.conversation.audience;
                    audience.show_to(&feed, Arc::new(held_back(error)));
                    let _ = self.own.try_send(Own::Input(Input::Watched));
                }
                let _ = reply.send(subscribed);
            }
            Command::Unsubscribe { connection } => self.conversation.audience.leave(connection),
            Command::Page {
                before,
                limit,
                reply,
            } => drop(reply.send(self.conversation.page(before, limit).await)),
            Command::Info { reply } => drop(reply.send(Ok(self.state.info()))),
            Command::Questions { reply } => drop(reply.send(Ok(self.state.questions()))),
            // The agent stops now; that it has is written down later.
            Command::Act {
                input: input @ Input::Cancel { only: None },
                reply,
                ..
            } => {
                if let Some(agent) = &self.agent {
                    agent.cancel();
                }
                let _ = self.own.try_send(Own::Input(input));
                let _ = reply.send(Ok(Done::Noted));
            }
            Command::Act { reply, .. } | Command::Choose { reply, .. } => {
                let _ = reply.send(Err(refused()));
            }
            Command::Titled { reply, .. } => drop(reply.send(Err(refused()))),
            later @ (Command::Archived(_) | Command::Stop { .. }) => self.put_off.push_back(later),
        }
    }
}

fn held_back(error: &io::Error) -> SessionEvent {
    SessionEvent::StoreTrouble(format!(
        "What is said cannot be saved, so it is held back until it can: {error}"
    ))
}
