//! When something happens: by the clock, which may be set, and by what has gone by.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use jiff::Timestamp;

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Now {
    /// By the clock.
    pub(crate) at: Timestamp,
    /// Since some moment in the life of this program.
    pub(crate) spent: Duration,
}

impl Now {
    pub(crate) fn read() -> Self {
        static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
        let spent = BEGIN.elapsed();
        Self {
            at: Timestamp::now(),
            spent,
        }
    }
}
