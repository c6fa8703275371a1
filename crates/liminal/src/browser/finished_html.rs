//! The HTML of texts that are over, for every connection.
//!
//! A text is rendered when somebody first looks at it, and kept for whoever looks next. It is found by what it
//! says, so there is nothing to forget when an entry changes: another text is another key.
//!
//! Invariant: no more than `BYTES_MAX` are kept, whatever is looked at.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

/// Some thousands of entries as agents write them: more than all open windows show at once.
const BYTES_MAX: usize = 8 * 1024 * 1024;
/// What a kept text costs beside its HTML.
const ENTRY_BYTES: usize = 96;

/// Two numbers of the text under secret keys: nobody can write two texts that share them.
type Key = (u64, u64);

#[derive(Clone, Default)]
pub(crate) struct FinishedHtml(Arc<Shared>);

#[derive(Default)]
struct Shared {
    numbers: (RandomState, RandomState),
    kept: Mutex<Kept>,
}

/// What was asked for lately, and before that. When the first is full it takes the place of the second.
#[derive(Default)]
struct Kept {
    lately: HashMap<Key, Arc<str>>,
    before: HashMap<Key, Arc<str>>,
    /// Of `lately`.
    bytes: usize,
}

impl FinishedHtml {
    pub(crate) fn of(&self, text: &str) -> Arc<str> {
        let (one, other) = &self.0.numbers;
        let key = (one.hash_one(text), other.hash_one(text));
        if let Some(html) = self.kept(|kept| kept.get(key)) {
            return html;
        }
        // Without the lock: a long text must not keep the others waiting.
        let html: Arc<str> = render::html(text).into();
        self.kept(|kept| kept.put(key, html.clone()));
        html
    }

    fn kept<T>(&self, work: impl FnOnce(&mut Kept) -> T) -> T {
        work(&mut self.0.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Kept {
    fn get(&mut self, key: Key) -> Option<Arc<str>> {
        if let Some(html) = self.lately.get(&key) {
            return Some(html.clone());
        }
        let html = self.before.remove(&key)?;
        self.put(key, html.clone());
        Some(html)
    }

    fn put(&mut self, key: Key, html: Arc<str>) {
        let bytes = html.len() + ENTRY_BYTES;
        if bytes > BYTES_MAX / 2 {
            return;
        }
        if self.bytes + bytes > BYTES_MAX / 2 {
            self.before = std::mem::take(&mut self.lately);
            self.bytes = 0;
        }
        if self.lately.insert(key, html).is_none() {
            self.bytes += bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(finished: &FinishedHtml) -> usize {
        finished.kept(|kept| {
            let all = kept.lately.values().chain(kept.before.values());
            all.map(|html| html.len() + ENTRY_BYTES).sum()
        })
    }

    #[test]
    fn a_text_is_rendered_for_the_first_who_looks_and_kept_for_the_next() {
        let (one, other) = {
            let shared = FinishedHtml::default();
            (shared.clone(), shared)
        };
        let first = one.of("# a *b*");
        assert_eq!(&*first, render::html("# a *b*"));
        assert!(Arc::ptr_eq(&first, &other.of("# a *b*")));
        assert_ne!(first, other.of("# a *b*!"));
    }

    /// Something else to look at.
    fn other(finished: &FinishedHtml, number: u64) {
        finished.kept(|kept| kept.put((number, 0), "x".repeat(50_000).into()));
    }

    #[test]
    fn what_is_kept_has_a_bound() {
        let finished = FinishedHtml::default();
        let mut most = 0;
        for number in 0..600 {
            other(&finished, number);
            most = most.max(bytes(&finished));
        }
        assert!(most > BYTES_MAX / 2, "{most}");
        assert!(most <= BYTES_MAX, "{most}");
        finished.kept(|kept| kept.put((0, 0), "x".repeat(BYTES_MAX).into()));
        assert!(bytes(&finished) <= BYTES_MAX);
    }

    #[test]
    fn what_is_looked_at_again_and_again_stays() {
        let finished = FinishedHtml::default();
        let wanted = finished.of("wanted");
        for number in 0..600 {
            other(&finished, number);
            assert!(Arc::ptr_eq(&wanted, &finished.of("wanted")));
        }
    }
}
