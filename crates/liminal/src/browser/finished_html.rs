//! A cache of the HTML of finished texts, shared by all browser connections.
//!
//! The key is a hash of the text, so a changed entry needs no invalidation: a different text is a different key.
//!
//! Invariant: the cache never exceeds `BYTES_MAX`.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum size of the cache: room for several thousand typical entries, more than all open windows show.
const BYTES_MAX: usize = 8 * 1024 * 1024;
/// Overhead of a cached text in addition to its HTML.
const ENTRY_BYTES: usize = 96;

/// Two hashes of the text with random keys, so that collisions cannot be constructed.
type Key = (u64, u64);

#[derive(Clone, Default)]
pub(crate) struct FinishedHtml(Arc<Shared>);

#[derive(Default)]
struct Shared {
    numbers: (RandomState, RandomState),
    cache: Mutex<Cache>,
}

/// Two generations of cached texts. When `recent` is full, it replaces `older`.
#[derive(Default)]
struct Cache {
    recent: HashMap<Key, Arc<str>>,
    older: HashMap<Key, Arc<str>>,
    /// Size of `recent`.
    bytes: usize,
}

impl FinishedHtml {
    pub(crate) fn of(&self, text: &str) -> Arc<str> {
        let (one, other) = &self.0.numbers;
        let key = (one.hash_one(text), other.hash_one(text));
        if let Some(html) = self.with_cache(|cache| cache.get(key)) {
            return html;
        }
        // Without the lock: rendering a long text must not block other connections.
        let html: Arc<str> = render::html(text).into();
        self.with_cache(|cache| cache.put(key, html.clone()));
        html
    }

    fn with_cache<T>(&self, work: impl FnOnce(&mut Cache) -> T) -> T {
        work(&mut self.0.cache.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Cache {
    fn get(&mut self, key: Key) -> Option<Arc<str>> {
        if let Some(html) = self.recent.get(&key) {
            return Some(html.clone());
        }
        let html = self.older.remove(&key)?;
        self.put(key, html.clone());
        Some(html)
    }

    fn put(&mut self, key: Key, html: Arc<str>) {
        let bytes = html.len() + ENTRY_BYTES;
        if bytes > BYTES_MAX / 2 {
            return;
        }
        if self.bytes + bytes > BYTES_MAX / 2 {
            self.older = std::mem::take(&mut self.recent);
            self.bytes = 0;
        }
        if self.recent.insert(key, html).is_none() {
            self.bytes += bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(finished: &FinishedHtml) -> usize {
        finished.with_cache(|cache| {
            let all = cache.recent.values().chain(cache.older.values());
            all.map(|html| html.len() + ENTRY_BYTES).sum()
        })
    }

    #[test]
    fn text_is_rendered_once_and_then_served_from_the_cache() {
        let (one, other) = {
            let shared = FinishedHtml::default();
            (shared.clone(), shared)
        };
        let first = one.of("# a *b*");
        assert_eq!(&*first, render::html("# a *b*"));
        assert!(Arc::ptr_eq(&first, &other.of("# a *b*")));
        assert_ne!(first, other.of("# a *b*!"));
    }

    /// Adds an unrelated text to the cache.
    fn other(finished: &FinishedHtml, number: u64) {
        finished.with_cache(|cache| cache.put((number, 0), "x".repeat(50_000).into()));
    }

    #[test]
    fn cache_size_is_bounded() {
        let finished = FinishedHtml::default();
        let mut most = 0;
        for number in 0..600 {
            other(&finished, number);
            most = most.max(bytes(&finished));
        }
        assert!(most > BYTES_MAX / 2, "{most}");
        assert!(most <= BYTES_MAX, "{most}");
        finished.with_cache(|cache| cache.put((0, 0), "x".repeat(BYTES_MAX).into()));
        assert!(bytes(&finished) <= BYTES_MAX);
    }

    #[test]
    fn frequently_used_text_stays_cached() {
        let finished = FinishedHtml::default();
        let wanted = finished.of("wanted");
        for number in 0..600 {
            other(&finished, number);
            assert!(Arc::ptr_eq(&wanted, &finished.of("wanted")));
        }
    }
}
