//! How fast somebody may go on, after a rest: so much at once, and then only so much a second.

use std::time::{Duration, Instant};

pub(crate) struct Pace {
    a_second: f64,
    at_once: f64,
    /// Below nothing when more was taken than there was.
    left: f64,
    at: Instant,
}

impl Pace {
    pub(crate) fn new(a_second: f64, at_once: f64) -> Self {
        Self {
            a_second,
            at_once,
            left: at_once,
            at: Instant::now(),
        }
    }

    /// Takes one, if there is one.
    pub(crate) fn take(&mut self) -> bool {
        self.refill();
        let enough = self.left >= 1.0;
        if enough {
            self.left -= 1.0;
        }
        enough
    }

    /// Takes so much in any case, and says how long to wait before the next.
    pub(crate) fn spend(&mut self, amount: f64) -> Option<Duration> {
        self.refill();
        self.left -= amount;
        (self.left < 0.0).then(|| Duration::from_secs_f64(-self.left / self.a_second))
    }

    /// No rest counts any more: from here on only so much a second.
    pub(crate) fn hurry_no_more(&mut self) {
        self.left = self.left.min(0.0);
        self.at_once = self.at_once.min(1.0);
    }

    fn refill(&mut self) {
        let now = Instant::now();
        let refilled = now.duration_since(self.at).as_secs_f64() * self.a_second;
        self.left = (self.left + refilled).min(self.at_once);
        self.at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_much_at_once_and_then_a_wait_as_long_as_it_takes() {
        let mut pace = Pace::new(10.0, 3.0);
        assert_eq!(pace.spend(3.0), None);
        let wait = pace.spend(5.0).unwrap_or_default();
        assert!(wait > Duration::from_millis(400) && wait <= Duration::from_millis(500));
        assert!(!pace.take());
    }

    #[test]
    fn whoever_may_not_hurry_waits_for_each() {
        let mut pace = Pace::new(10.0, 1000.0);
        pace.hurry_no_more();
        let wait = pace.spend(5.0).unwrap_or_default();
        assert!(wait > Duration::from_millis(400) && wait <= Duration::from_millis(500));
    }
}
