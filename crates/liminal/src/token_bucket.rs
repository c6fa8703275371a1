//! A token bucket: a burst, then a constant rate.

use std::time::{Duration, Instant};

pub(crate) struct TokenBucket {
    per_second: f64,
    burst: f64,
    /// Remaining tokens; negative after spending more than there were.
    tokens: f64,
    refilled_at: Instant,
}

impl TokenBucket {
    pub(crate) fn new(per_second: f64, burst: f64) -> Self {
        Self {
            per_second,
            burst,
            tokens: burst,
            refilled_at: Instant::now(),
        }
    }

    /// Takes one token if there is one.
    pub(crate) fn take(&mut self) -> bool {
        self.refill();
        let enough = self.tokens >= 1.0;
        if enough {
            self.tokens -= 1.0;
        }
        enough
    }

    /// Takes the amount in any case; returns how long to wait until the bucket is no longer overdrawn.
    pub(crate) fn spend(&mut self, amount: f64) -> Option<Duration> {
        self.refill();
        self.tokens -= amount;
        (self.tokens < 0.0).then(|| Duration::from_secs_f64(-self.tokens / self.per_second))
    }

    /// Removes the burst: from now on only the constant rate applies.
    pub(crate) fn remove_burst(&mut self) {
        self.tokens = self.tokens.min(0.0);
        self.burst = self.burst.min(1.0);
    }

    fn refill(&mut self) {
        let now = Instant::now();
        let refilled = now.duration_since(self.refilled_at).as_secs_f64() * self.per_second;
        self.tokens = (self.tokens + refilled).min(self.burst);
        self.refilled_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spending_more_than_the_burst_returns_the_wait_for_the_excess() {
        let mut bucket = TokenBucket::new(10.0, 3.0);
        assert_eq!(bucket.spend(3.0), None);
        let wait = bucket.spend(5.0).unwrap_or_default();
        assert!(wait > Duration::from_millis(400) && wait <= Duration::from_millis(500));
        assert!(!bucket.take());
    }

    #[test]
    fn bucket_without_burst_waits_for_every_amount() {
        let mut bucket = TokenBucket::new(10.0, 1000.0);
        bucket.remove_burst();
        let wait = bucket.spend(5.0).unwrap_or_default();
        assert!(wait > Duration::from_millis(400) && wait <= Duration::from_millis(500));
    }
}
