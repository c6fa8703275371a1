//! The byte budget for agent messages that wait for their session.
//!
//! Short messages are bounded by the length of the queues. Long messages hold a permit of the budget until the session
//! has processed them, so that an agent is not read further while its session cannot keep up.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Messages up to this size are not charged to the budget.
const SHORT_BYTES: usize = 4 * 1024;
/// The budget per agent in KiB (64 MiB). It must exceed the longest line.
const BUDGET_KIB: usize = 64 * 1024;

/// A part of the byte budget, released when it is dropped.
#[derive(Debug, Default)]
pub struct BudgetPermit(Vec<OwnedSemaphorePermit>);

impl BudgetPermit {
    pub(super) fn join(&mut self, other: Self) {
        self.0.extend(other.0);
    }
}

#[derive(Debug)]
pub(super) struct ByteBudget(Arc<Semaphore>);

impl Default for ByteBudget {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(BUDGET_KIB)))
    }
}

impl ByteBudget {
    pub(super) fn applies_to(bytes: usize) -> bool {
        bytes > SHORT_BYTES
    }

    /// Waits for this many bytes of the budget and takes them. A larger number than the budget takes the whole budget.
    pub(super) async fn acquire(&self, bytes: usize) -> BudgetPermit {
        let kib = bytes.div_ceil(1024).min(BUDGET_KIB) as u32;
        let taken = self.0.clone().acquire_many_owned(kib).await;
        BudgetPermit(taken.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn acquire_waits_until_an_exhausted_budget_is_released() {
        let budget = ByteBudget::default();
        let most = budget.acquire(BUDGET_KIB * 1024 * 2).await;
        let waiting = budget.acquire(5000);
        tokio::pin!(waiting);
        assert!(futures_util::poll!(&mut waiting).is_pending());
        drop(most);
        waiting.await;
    }
}
