//! The replay of a conversation by an agent that loads its session. Some agents answer `session/load` first and replay
//! afterwards.
//!
//! Invariant: a loaded session counts as open only once no replay event has arrived for `QUIET_PERIOD`, or after
//! `SETTLE_MAX`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use wire::ChatEntry;

use super::AgentLink;
use crate::session::task::record::apply;
use agents::AgentSession;
use conversation::{Entries, Update};

const QUIET_PERIOD: Duration = Duration::from_millis(200);
const SETTLE_MAX: Duration = Duration::from_secs(2);
/// Maximum size of a replay, which is in memory until it is merged into the transcript.
const REPLAY_BYTES_MAX: usize = 512 * 1024 * 1024;

/// The entries that an agent has replayed.
pub(super) struct Replay {
    fold: Entries,
    entries: BTreeMap<u64, ChatEntry>,
    /// The replay exceeded `REPLAY_BYTES_MAX` and was discarded.
    overflowed: bool,
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

impl Replay {
    fn is_empty(&self) -> bool {
        self.entries.is_empty() && !self.overflowed
    }

    /// The replayed conversation; `None` if it was too large.
    fn finish(self) -> Option<Vec<ChatEntry>> {
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

/// A session that the agent has loaded, with what it replayed; `None` if that was too large.
pub(in crate::session::task) struct Loaded {
    pub(in crate::session::task) session: AgentSession,
    pub(in crate::session::task) answer: Value,
    pub(in crate::session::task) replay: Option<Vec<ChatEntry>>,
}

impl AgentLink {
    /// Whether updates are part of a replay while the session is being opened.
    pub(in crate::session::task) fn is_replaying(&self) -> bool {
        self.restoring.is_none()
    }

    /// Whether the agent has not answered the current attempt to open the session.
    pub(in crate::session::task) fn awaits_attach_answer(&self) -> bool {
        self.settling.is_none() && self.restoring.is_none()
    }

    pub(in crate::session::task) fn replayed(&mut self, update: Update, now: &str) {
        self.replay.apply(update, now);
        if let Some(settling) = &mut self.settling {
            settling.follows = true;
            settling.extend(Instant::now());
        }
    }

    /// Discards what was replayed: the agent has resumed the session instead.
    pub(in crate::session::task) fn drop_replay(&mut self) {
        self.replay = Replay::default();
    }

    /// Begins to wait for the end of the replay after the agent has answered the load.
    pub(in crate::session::task) fn loaded(
        &mut self,
        session: AgentSession,
        answer: Value,
        has_entries: bool,
    ) {
        let now = Instant::now();
        self.settling = Some(Settling {
            session,
            answer,
            quiet_at: now + QUIET_PERIOD,
            latest: now + SETTLE_MAX,
            follows: self.replay.is_empty() && has_entries,
        });
    }

    /// The time at which to check whether the replay has ended.
    pub(in crate::session::task) fn settle_at(&self) -> Option<Instant> {
        let settling = self.settling.as_ref()?;
        Some(settling.quiet_at.min(settling.latest))
    }

    /// Ends the replay if no event has arrived for `QUIET_PERIOD` and none is waiting, or after `SETTLE_MAX`.
    pub(in crate::session::task) fn settle(&mut self, events_wait: bool) -> Option<Loaded> {
        let now = Instant::now();
        if self.settle_at().is_none_or(|at| at > now) {
            return None;
        }
        if let Some(settling) = &mut self.settling
            && now < settling.latest
        {
            let waiting = events_wait.then_some(now);
            if let Some(from) = waiting.or_else(|| settling.busy_since(now)) {
                settling.extend(from);
                return None;
            }
        }
        let Settling {
            session, answer, ..
        } = self.settling.take()?;
        let replay = std::mem::take(&mut self.replay).finish();
        if replay.is_none() {
            let session = &self.meta.id;
            tracing::warn!(
                session,
                "the agent's replay is too large; the transcript is kept unchanged"
            );
        }
        Some(Loaded {
            session,
            answer,
            replay,
        })
    }
}
