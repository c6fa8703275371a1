//! The end of a replay. Some agents answer `session/load` first and repeat the conversation afterwards.
//!
//! Invariant: a session that was loaded counts as open only once no more of it has come for `QUIET`, or after `AT_MOST`.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::Actor;
use agents::AgentSession;

const QUIET: Duration = Duration::from_millis(200);
const AT_MOST: Duration = Duration::from_secs(2);

/// A session whose load was answered, while more of its replay may follow.
pub(super) struct Settling {
    session: AgentSession,
    answer: Value,
    quiet_at: Instant,
    latest: Instant,
    /// The replay follows the answer, as far as can be seen.
    follows: bool,
}

impl Settling {
    /// The next moment at which the replay may have ended.
    pub(super) fn due(&self) -> Instant {
        self.quiet_at.min(self.latest)
    }

    /// Waits for more of the replay.
    fn extend(&mut self, from: Instant) {
        self.quiet_at = from + QUIET;
    }

    /// Whether the agent is busy with other sessions, behind which a replay that follows may wait.
    fn busy_since(&self, now: Instant) -> Option<Instant> {
        let last = self.session.last_event().filter(|_| self.follows)?;
        (last + QUIET > now).then_some(last)
    }
}

impl Actor {
    /// The agent has answered a load.
    pub(super) fn loaded(&mut self, session: AgentSession, answer: Value) {
        let now = Instant::now();
        self.settling = Some(Settling {
            session,
            answer,
            quiet_at: now + QUIET,
            latest: now + AT_MOST,
            follows: self.replay.is_empty() && self.conversation.record.total() > 0,
        });
    }

    /// More of the replay has come.
    pub(super) fn replayed(&mut self) {
        if let Some(settling) = &mut self.settling {
            settling.follows = true;
            settling.extend(Instant::now());
        }
    }

    /// Ends the replay, unless more of it may be on its way.
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
            Some(entries) => self.adopt(entries).await,
            None => {
                let session = &self.setup.meta.id;
                tracing::warn!(session, "an agent remembers too much; what we have stays");
            }
        }
        self.restore(settling.session, settling.answer).await;
    }
}
