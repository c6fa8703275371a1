//! The end of a replay. Some agents answer `session/load` first and replay the conversation afterwards.
//!
//! Invariant: a loaded session counts as open only once no replay event has arrived for `QUIET_PERIOD`, or after
//! `SETTLE_MAX`.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::SessionTask;
use agents::AgentSession;

const QUIET_PERIOD: Duration = Duration::from_millis(200);
const SETTLE_MAX: Duration = Duration::from_secs(2);

/// A session whose load was answered while more replay events may follow.
pub(super) struct Settling {
    session: AgentSession,
    answer: Value,
    quiet_at: Instant,
    latest: Instant,
    /// Whether the replay is expected to follow the answer.
    follows: bool,
}

impl Settling {
    /// The time at which to check whether the replay has ended.
    pub(super) fn due(&self) -> Instant {
        self.quiet_at.min(self.latest)
    }

    /// Restarts the quiet period.
    fn extend(&mut self, from: Instant) {
        self.quiet_at = from + QUIET_PERIOD;
    }

    /// The time of the agent's last event for any session, if recent: the replay may be delayed by other sessions.
    fn busy_since(&self, now: Instant) -> Option<Instant> {
        let last = self.session.last_event().filter(|_| self.follows)?;
        (last + QUIET_PERIOD > now).then_some(last)
    }
}

impl SessionTask {
    /// Begins to wait for the end of the replay after the agent has answered the load.
    pub(super) fn loaded(&mut self, session: AgentSession, answer: Value) {
        let now = Instant::now();
        self.settling = Some(Settling {
            session,
            answer,
            quiet_at: now + QUIET_PERIOD,
            latest: now + SETTLE_MAX,
            follows: self.replay.is_empty() && self.log.record.total() > 0,
        });
    }

    /// Restarts the quiet period after a replay event.
    pub(super) fn replayed(&mut self) {
        if let Some(settling) = &mut self.settling {
            settling.follows = true;
            settling.extend(Instant::now());
        }
    }

    /// Ends the replay, unless more events may follow.
    pub(super) async fn settle(&mut self) {
        let now = Instant::now();
        if let Some(settling) = &mut self.settling
            && now < settling.latest
        {
            let waiting = (!self.from_agent.is_empty()).then_some(now);
            if let Some(from) = waiting.or_else(|| settling.busy_since(now)) {
                return settling.extend(from);
            }
        }
        let Some(settling) = self.settling.take() else {
            return;
        };
        let replay = std::mem::take(&mut self.replay);
        match replay.finish() {
            Some(entries) => self.merge_replay(entries).await,
            None => {
                let session = &self.setup.meta.id;
                tracing::warn!(
                    session,
                    "the agent's replay is too large; the transcript is kept unchanged"
                );
            }
        }
        self.restore(settling.session, settling.answer).await;
    }
}
