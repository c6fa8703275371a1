//! Commits, and the behaviour while the disk cannot be written: requests for changes are refused, agent events are
//! held back until they are written, and read requests are served.
//!
//! Invariant: a refused change is neither on disk nor in the state.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{SessionTask, COMMANDS_MAX, Command, Done, Subscribe, TaskReport};
use crate::error::HubError;
use crate::stream::SessionEvent;
use crate::session::state::{Effect, Input};
use store::transcript::Note;

/// Delay between attempts to write to a failing disk.
const WRITE_RETRY_DELAY: Duration = Duration::from_secs(1);
/// How long the end of a turn waits for the audit log to be synced.
const AUDIT_DEADLINE: Duration = Duration::from_secs(2);

impl SessionTask {
    /// Carries out the leading effects that must be on disk before the others, and returns the others.
    pub(super) async fn persist_first(
        &mut self,
        mut effects: Vec<Effect>,
    ) -> io::Result<Vec<Effect>> {
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
                self.log.commit().await?;
                Ok(rest)
            }
            Some(Effect::SaveQueue) => {
                self.log.record.save(self.queue_note()).await?;
                effects.remove(0);
                Ok(effects)
            }
            Some(Effect::SavePolicy) => {
                self.log.record.save(self.policy_note()).await?;
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
        if self.log.ends_turn() {
            // The audit log has everything that was allowed in a turn before a client sees its end. A disk that hangs
            // delays the commit below anyway.
            let flushed = self.setup.audit.flush();
            let _ = tokio::time::timeout(AUDIT_DEADLINE, flushed).await;
        }
        let mut reported = false;
        while let Err(error) = self.log.commit().await {
            tracing::error!(%error, "could not write changes of the conversation; retrying");
            let error = Arc::new(error);
            if !std::mem::replace(&mut reported, true) {
                self.log.publish(write_failed(&error));
            }
            let again = Instant::now() + WRITE_RETRY_DELAY;
            while self.deferred.len() < COMMANDS_MAX
                && let Ok(command) = tokio::time::timeout_at(again, self.commands.recv()).await
            {
                match command {
                    Some(command) => self.serve_while_disk_fails(command, &error).await,
                    None => break,
                }
            }
            tokio::time::sleep_until(again).await;
        }
    }

    /// Serves read requests from what is on disk, and refuses changes with the disk's error.
    async fn serve_while_disk_fails(&mut self, command: Command, error: &Arc<io::Error>) {
        let refused = || HubError::Write(error.clone());
        match command {
            Command::Subscribe { feed, how, reply } => {
                let opened = matches!(how, Subscribe::Open { .. }).then(|| feed.clone());
                let subscribed = self.subscribe(feed, how).await;
                if let Some(feed) = opened.filter(|_| subscribed.is_ok()) {
                    let subscribers = &self.log.subscribers;
                    subscribers.send_to(&feed, Arc::new(write_failed(error)));
                    let _ = self
                        .reports
                        .try_send(TaskReport::Input(Input::ClientOpened));
                }
                let _ = reply.send(subscribed);
            }
            Command::Unsubscribe { connection } => self.log.subscribers.remove(connection),
            Command::Page {
                before,
                limit,
                reply,
            } => drop(reply.send(self.log.page(before, limit).await)),
            Command::Info { reply } => drop(reply.send(Ok(self.state.info()))),
            Command::Elicitations { reply } => drop(reply.send(Ok(self.state.open_elicitations()))),
            // The agent is cancelled at once; the end of the turn is written later.
            Command::Act {
                input: input @ Input::Cancel { only: None },
                reply,
                ..
            } => {
                if let Some(agent) = &self.agent {
                    agent.cancel();
                }
                let _ = self.reports.try_send(TaskReport::Input(input));
                let _ = reply.send(Ok(Done::Noted));
            }
            Command::Act { reply, .. } | Command::Choose { reply, .. } => {
                let _ = reply.send(Err(refused()));
            }
            Command::Titled { reply, .. } => drop(reply.send(Err(refused()))),
            later @ (Command::Archived(_) | Command::Stop { .. }) => self.deferred.push_back(later),
        }
    }
}

fn write_failed(error: &io::Error) -> SessionEvent {
    SessionEvent::StoreTrouble(format!(
        "New messages cannot be saved: {error}. They are shown as soon as the disk can be written."
    ))
}
