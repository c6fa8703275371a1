//! Cleaning of the data directory: in the background after the start and daily, and when the user asks for it.
//!
//! Invariant: a deleted session is forgotten durably before its files are removed, so what can be restored has its
//! files.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use store::{AGE_MIN, CleanedFolder, CleaningRules, FolderSize, Removable};

use crate::error::HubError;
use crate::{Hub, Inner};

/// Time from the start of the server to the first cleaning, so that it does not delay the first requests.
const AFTER_START: Duration = Duration::from_secs(3);
const INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);

/// Maximum time without use after which the clock is believed: a clock that is years ahead makes everything old.
const GAP_MAX: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// When the data directory was last used, as far as known.
pub(crate) struct LastUse {
    at: Mutex<Option<SystemTime>>,
}

impl LastUse {
    /// Reads the modification times in a data directory. Must be called before anything is written to it.
    pub(crate) fn of(data_dir: &Path) -> Self {
        let entries = std::fs::read_dir(data_dir).into_iter().flatten().flatten();
        let modified = |entry: std::fs::DirEntry| entry.metadata().ok()?.modified().ok();
        Self {
            at: Mutex::new(entries.filter_map(modified).max()),
        }
    }

    /// Whether `now` is close enough to the last use to be believed. It is the last use from now on.
    fn is_recent(&self, now: SystemTime) -> bool {
        let mut at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        let gap = at.and_then(|at| now.duration_since(at).ok());
        *at = Some(now);
        gap.unwrap_or_default() <= GAP_MAX
    }
}

/// What is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cleaning {
    /// What the rules remove by age and size.
    ByRules,
    /// Everything that is unused for a day.
    Now,
    /// Nothing; what `Now` would remove is counted.
    DryRun,
}

/// Number and size of the removed entries of a folder.
#[derive(Debug, Clone, Copy)]
pub struct Cleaned {
    pub folder: CleanedFolder,
    pub size: FolderSize,
}

impl Hub {
    /// Removes unused files and returns what was removed. One cleaning runs at a time.
    pub async fn clean(&self, cleaning: Cleaning) -> Result<Vec<Cleaned>, HubError> {
        clean(&self.inner, cleaning).await
    }
}

/// Cleans as long as the hub exists.
pub(crate) async fn clean_daily(hub: Weak<Inner>) {
    tokio::time::sleep(AFTER_START).await;
    loop {
        let Some(inner) = hub.upgrade() else {
            return;
        };
        match clean(&inner, Cleaning::ByRules).await {
            Ok(cleaned) => {
                let bytes: u64 = cleaned.iter().map(|one| one.size.bytes).sum();
                let entries: u64 = cleaned.iter().map(|one| one.size.entries).sum();
                tracing::info!(
                    entries,
                    bytes,
                    "removed unused files from the data directory"
                );
            }
            Err(error) => tracing::warn!(%error, "could not clean the data directory"),
        }
        drop(inner);
        tokio::time::sleep(INTERVAL).await;
    }
}

async fn clean(inner: &Arc<Inner>, cleaning: Cleaning) -> Result<Vec<Cleaned>, HubError> {
    // One at a time: two would report the same files.
    let _running = inner.cleaning.lock().await;
    if !inner.last_use.is_recent(SystemTime::now()) {
        return Err(HubError::ClockChanged);
    }
    let rules = match cleaning {
        Cleaning::ByRules => inner.cleaning_rules,
        Cleaning::Now | Cleaning::DryRun => CleaningRules {
            age: Some(AGE_MIN),
            bytes_max: None,
        },
    };
    let limit = inner
        .cleaning_rules
        .age
        .and_then(|age| Timestamp::now().checked_sub(age).ok());
    if cleaning != Cleaning::DryRun {
        inner.sessions.forget_deleted(limit).await?;
    }
    let inner = inner.clone();
    let cleaned = tokio::task::spawn_blocking(move || {
        let kept = inner.sessions.kept(limit);
        let planned = store::plan(&inner.data_dir, &kept, rules, SystemTime::now())?;
        match cleaning {
            Cleaning::DryRun => Ok(planned),
            Cleaning::ByRules | Cleaning::Now => store::remove(&inner.data_dir, planned),
        }
    });
    let cleaned = cleaned.await.map_err(std::io::Error::other).flatten();
    let cleaned = cleaned.map_err(|error| HubError::Clean(Arc::new(error)))?;
    Ok(CleanedFolder::ALL
        .into_iter()
        .map(|folder| count(folder, &cleaned))
        .collect())
}

fn count(folder: CleanedFolder, removed: &[Removable]) -> Cleaned {
    let mut size = FolderSize::default();
    for one in removed.iter().filter(|one| one.folder == folder) {
        size.entries += 1;
        size.bytes += one.bytes;
    }
    Cleaned { folder, size }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_is_believed_after_a_short_gap_or_at_the_second_look() {
        let dir = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        assert!(LastUse::of(dir.path()).is_recent(now));
        std::fs::write(dir.path().join("lock"), "").unwrap();
        assert!(LastUse::of(dir.path()).is_recent(now + GAP_MAX - Duration::from_secs(60)));
        let ahead = now + GAP_MAX * 120;
        let last_use = LastUse::of(dir.path());
        assert!(!last_use.is_recent(ahead));
        assert!(last_use.is_recent(ahead + INTERVAL));
        // The clock was corrected.
        assert!(last_use.is_recent(now));
    }
}
