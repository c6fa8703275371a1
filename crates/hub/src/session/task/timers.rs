//! The timers of a session: the silence of its agent during a turn, and the deadline of a cancel.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use crate::session::state::Input;

/// Time after which the process of an agent that does not answer a cancel is ended.
const CANCEL_DEADLINE: Duration = Duration::from_secs(10);

pub(super) struct Timers {
    /// Silence after which a turn is shown as quiet.
    quiet_after: Duration,
    last_event: Instant,
    last_event_at: Timestamp,
    /// Whether `Input::Quiet` was sent since the last event.
    quiet_reported: bool,
    cancel_deadline: Option<Instant>,
}

impl Timers {
    pub(super) fn new(quiet_after: Duration) -> Self {
        Self {
            quiet_after,
            last_event: Instant::now(),
            last_event_at: Timestamp::now(),
            quiet_reported: false,
            cancel_deadline: None,
        }
    }

    /// Restarts the silence timer: the agent sent an event, or was sent a prompt.
    pub(super) fn restart_silence(&mut self) {
        self.last_event = Instant::now();
        self.last_event_at = Timestamp::now();
        self.quiet_reported = false;
    }

    pub(super) fn last_event_at(&self) -> Timestamp {
        self.last_event_at
    }

    pub(super) fn cancel_sent(&mut self) {
        self.cancel_deadline = Some(Instant::now() + CANCEL_DEADLINE);
    }

    /// Clears the deadline of a cancel: the agent has answered the prompt or has ended.
    pub(super) fn prompt_ended(&mut self) {
        self.cancel_deadline = None;
    }

    /// Restarts all timers after a stall of the log, during which the agent's events were not read.
    pub(super) fn restart_after_stall(&mut self) {
        self.restart_silence();
        if self.cancel_deadline.is_some() {
            self.cancel_sent();
        }
    }

    /// The time of the next timer.
    pub(super) fn next(&self, expects_events: bool) -> Option<Instant> {
        let reports = expects_events && !self.quiet_reported;
        let quiet = reports.then(|| self.last_event + self.quiet_after);
        [quiet, self.cancel_deadline].into_iter().flatten().min()
    }

    /// The input for a timer that is due.
    pub(super) fn due(&mut self, expects_events: bool) -> Option<Input> {
        let now = Instant::now();
        if self.cancel_deadline.take_if(|at| *at <= now).is_some() {
            return Some(Input::CancelUnanswered);
        }
        let reports = expects_events && !self.quiet_reported;
        if reports && now >= self.last_event + self.quiet_after {
            self.quiet_reported = true;
            let since = self.last_event_at;
            return Some(Input::Quiet { since });
        }
        None
    }
}
