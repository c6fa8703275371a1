//! The current time on two clocks: the wall clock, which can be set, and a monotonic clock for durations.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use jiff::Timestamp;

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Now {
    /// Wall-clock time.
    pub(crate) at: Timestamp,
    /// Monotonic time since the first reading in this process.
    pub(crate) elapsed: Duration,
}

impl Now {
    pub(crate) fn read() -> Self {
        static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
        let elapsed = BEGIN.elapsed();
        Self {
            at: Timestamp::now(),
            elapsed,
        }
    }
}
