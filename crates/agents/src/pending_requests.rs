//! Pending requests between the server and an agent, in both directions.
//!
//! Invariant: each ticket is claimed exactly once; an agent is retired only while no request is pending, and no ticket
//! is issued for it afterwards.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Identifies a pending request; unique across all connections of this process.
pub type Ticket = u64;

static LAST: AtomicU64 = AtomicU64::new(0);

pub(super) struct PendingRequests {
    state: Mutex<State>,
}

struct State {
    open: HashSet<Ticket>,
    /// When a ticket was last issued or claimed.
    used: Instant,
    retired: bool,
}

impl Default for PendingRequests {
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

impl PendingRequests {
    /// Registers a pending request. `None` once the agent is retired.
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

    /// Registers a pending request that ends when the guard is dropped. `None` once the agent is retired.
    pub(super) fn hold(self: &Arc<Self>) -> Option<PendingGuard> {
        let ticket = self.issue()?;
        let pending = Arc::clone(self);
        Some(PendingGuard { pending, ticket })
    }

    /// Ends a pending request. True for the first caller only, who has to deliver the response.
    pub(super) fn claim(&self, ticket: Ticket) -> bool {
        let mut state = self.lock();
        state.used = Instant::now();
        state.open.remove(&ticket)
    }

    pub(super) fn claim_all(&self) -> Vec<Ticket> {
        let mut pending: Vec<Ticket> = self.lock().open.drain().collect();
        pending.sort_unstable();
        pending
    }

    /// Restarts the idle time.
    pub(super) fn touch(&self) {
        self.lock().used = Instant::now();
    }

    /// When the agent became idle; `None` while a request is pending.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let state = self.lock();
        state.open.is_empty().then_some(state.used)
    }

    /// Stops issuing tickets if no request was pending for `idle_for`, and returns whether that was the case.
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

pub(super) struct PendingGuard {
    pending: Arc<PendingRequests>,
    ticket: Ticket,
}

impl Drop for PendingGuard {
    fn drop(&mut self) {
        self.pending.claim(self.ticket);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_retires_only_while_idle_and_gets_no_ticket_afterwards() {
        let pending = Arc::new(PendingRequests::default());
        let ticket = pending.issue().unwrap();
        let guard = pending.hold();
        assert!(!pending.retire(Duration::ZERO));
        pending.claim(ticket);
        assert!(!pending.retire(Duration::ZERO));
        drop(guard);
        assert!(!pending.retire(Duration::from_secs(60)), "not yet");
        assert!(pending.retire(Duration::ZERO));
        assert!(pending.issue().is_none() && pending.hold().is_none());
    }
}
