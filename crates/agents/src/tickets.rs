//! What is open between us and an agent: what we asked of it, and what it asked of us.
//!
//! Invariant: each ticket is claimed by exactly one, and an agent that was retired had none open and gets none.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Names a request whose answer comes as an event; each is issued once, whatever the connection.
pub type Ticket = u64;

static LAST: AtomicU64 = AtomicU64::new(0);

pub(super) struct Tickets {
    state: Mutex<State>,
}

struct State {
    open: HashSet<Ticket>,
    /// When the last one was issued or claimed.
    used: Instant,
    retired: bool,
}

impl Default for Tickets {
    fn default() -> Self {
        let state = State {
            open: HashSet::new(),
            used: Instant::now(),
            retired: false,
        };
        Self {
            state: Mutex::new(state),
        }
    }
}

impl Tickets {
    /// None once the agent is retired.
    pub(super) fn issue(&self) -> Option<Ticket> {
        let mut state = self.lock();
        if state.retired {
            return None;
        }
        let ticket = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        state.open.insert(ticket);
        state.used = Instant::now();
        Some(ticket)
    }

    /// One that is claimed when it is dropped.
    pub(super) fn hold(self: &Arc<Self>) -> Option<Held> {
        let ticket = self.issue()?;
        let tickets = Arc::clone(self);
        Some(Held { tickets, ticket })
    }

    /// True for the first who asks: only they may answer it.
    pub(super) fn claim(&self, ticket: Ticket) -> bool {
        let mut state = self.lock();
        state.used = Instant::now();
        state.open.remove(&ticket)
    }

    pub(super) fn claim_all(&self) -> Vec<Ticket> {
        let mut tickets: Vec<Ticket> = self.lock().open.drain().collect();
        tickets.sort_unstable();
        tickets
    }

    /// As if something had been asked just now.
    pub(super) fn touch(&self) {
        self.lock().used = Instant::now();
    }

    /// Since when nothing is open; not at all while something is.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let state = self.lock();
        state.open.is_empty().then_some(state.used)
    }

    /// Issues no more, if nothing has been open for so long.
    pub(super) fn retire(&self, idle_for: Duration) -> bool {
        let mut state = self.lock();
        let idle = state.open.is_empty() && state.used.elapsed() >= idle_for;
        state.retired |= idle;
        idle
    }

    pub(super) fn is_retired(&self) -> bool {
        self.lock().retired
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) struct Held {
    tickets: Arc<Tickets>,
    ticket: Ticket,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.tickets.claim(self.ticket);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_retired_only_with_nothing_open_and_gets_nothing_afterwards() {
        let tickets = Arc::new(Tickets::default());
        let asked = tickets.issue().unwrap();
        let held = tickets.hold();
        assert!(!tickets.retire(Duration::ZERO));
        tickets.claim(asked);
        assert!(!tickets.retire(Duration::ZERO));
        drop(held);
        assert!(!tickets.retire(Duration::from_secs(60)), "not yet");
        assert!(tickets.retire(Duration::ZERO));
        assert!(tickets.issue().is_none() && tickets.hold().is_none());
    }
}
