//! A versioned JSON file, held in memory and replaced atomically.
//!
//! A single writer task carries out all changes. It takes every waiting change, applies them to a copy
//! of the content, writes the copy once, and only then publishes it and answers the callers. So ten
//! concurrent changes cost one or two writes, and a change is acknowledged only once it is on disk.
//!
//! Invariant: the content that `read` returns is on disk.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::migrations::Migration;
use crate::OpenError;

/// Maximum changes in the writer's queue; further callers wait until there is space.
const WAITING_MAX: usize = 1024;

/// The content of a versioned file, without its version.
pub trait Versioned:
    Clone + Default + Serialize + DeserializeOwned + Send + Sync + 'static
{
    const MIGRATIONS: &'static [Migration];
    const VERSION: u64 = Self::MIGRATIONS.len() as u64;
}

/// A versioned file and the task that writes it.
pub struct Document<T> {
    current: Arc<RwLock<Arc<T>>>,
    changes: mpsc::Sender<Message<T>>,
}

/// The reason why a change was not made.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    #[error("could not write the file: {0}")]
    Write(Arc<io::Error>),
    #[error("the document is closed")]
    Closed,
}

enum Message<T> {
    Change(Change<T>),
    Close(oneshot::Sender<()>),
}

/// Applies a change to the copy. Returns whether it changed anything, and a callback for after the write.
type Change<T> = Box<dyn FnOnce(&mut T) -> (bool, Finish) + Send>;
type Finish = Box<dyn FnOnce(&Result<(), Arc<io::Error>>) + Send>;

impl<T: Versioned> Document<T> {
    /// Reads the file, or starts empty. An unreadable file is set aside, and a notice reports it.
    pub fn open(path: PathBuf, notices: &mut Vec<String>) -> Result<Self, OpenError> {
        Self::open_with(path, notices, |_, _| false)
    }

    /// Like `open`. `repair` may change the content that was read, and returns whether it did.
    pub fn open_with(
        path: PathBuf,
        notices: &mut Vec<String>,
        repair: impl FnOnce(&mut T, &mut Vec<String>) -> bool,
    ) -> Result<Self, OpenError> {
        let mut content = load::<T>(&path, notices)?;
        if repair(&mut content, notices) {
            let text = to_text(&content).map_err(io::Error::from);
            let written = text.and_then(|text| durable::replace(&path, text.as_bytes()));
            // Not fatal: the repaired content is in memory, and the next start can repair the file again.
            if let Err(error) = written {
                notices.push(format!(
                    "{} could not be repaired on disk: {error}. Nothing is lost, but changes cannot be saved until \
                     the disk can be written.",
                    path.display()
                ));
            }
        }
        let current = Arc::new(RwLock::new(Arc::new(content)));
        let (changes, waiting) = mpsc::channel(WAITING_MAX);
        tokio::spawn(write_changes(path, current.clone(), waiting));
        Ok(Self { current, changes })
    }

    /// The content as it is on disk.
    pub fn read(&self) -> Arc<T> {
        self.current
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Lets `decide` change the content, waits until the change is on disk, and runs `committed`; callbacks run in
    /// the order of the changes. A refusal or a failed write changes nothing.
    pub async fn change<R: Send + 'static, E: From<ChangeError> + Send + 'static>(
        &self,
        decide: impl FnOnce(&mut T) -> Result<R, E> + Send + 'static,
        committed: impl FnOnce(&R) + Send + 'static,
    ) -> Result<R, E> {
        let (answer, answered) = oneshot::channel();
        let change: Change<T> = Box::new(move |content| {
            let decided = decide(content);
            let changed = decided.is_ok();
            let finish: Finish = Box::new(move |written| {
                let result = match written {
                    // A refusal fails, too: it may be based on an earlier change of this batch that was not written.
                    Err(error) => Err(ChangeError::Write(error.clone()).into()),
                    Ok(()) => decided.inspect(|result| committed(result)),
                };
                let _ = answer.send(result);
            });
            (changed, finish)
        });
        self.changes
            .send(Message::Change(change))
            .await
            .map_err(|_| ChangeError::Closed)?;
        answered.await.map_err(|_| ChangeError::Closed)?
    }

    /// Stops accepting changes and waits for the pending ones.
    pub async fn close(&self) {
        let (done, finished) = oneshot::channel();
        if self.changes.send(Message::Close(done)).await.is_ok() {
            let _ = finished.await;
        }
    }
}

async fn write_changes<T: Versioned>(
    path: PathBuf,
    current: Arc<RwLock<Arc<T>>>,
    mut waiting: mpsc::Receiver<Message<T>>,
) {
    let mut closed = None;
    while closed.is_none() {
        let mut batch = Vec::new();
        if waiting.recv_many(&mut batch, WAITING_MAX).await == 0 {
            return;
        }
        let before = current
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let mut content = T::clone(&before);
        let mut changed = false;
        let mut finishes = Vec::new();
        for message in batch {
            match message {
                Message::Close(done) => closed = Some(done),
                Message::Change(_) if closed.is_some() => {}
                Message::Change(change) => {
                    let (this_changed, finish) = change(&mut content);
                    changed |= this_changed;
                    finishes.push(finish);
                }
            }
        }
        let written = if changed {
            write(&path, content.clone(), before).await
        } else {
            Ok(())
        };
        match &written {
            Ok(()) => *current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(content),
            Err(error) => {
                tracing::error!(file = %path.display(), %error, "could not write a versioned file")
            }
        }
        for finish in finishes {
            finish(&written);
        }
    }
    waiting.close();
    if let Some(done) = closed {
        let _ = done.send(());
    }
}

/// Replaces `before` by `content` on disk. After an error the file contains `before`.
async fn write<T: Versioned>(
    path: &Path,
    content: T,
    before: Arc<T>,
) -> Result<(), Arc<io::Error>> {
    let path = path.to_owned();
    let written = tokio::task::spawn_blocking(move || {
        let text = to_text(&content)?;
        let replaced = durable::replace(&path, text.as_bytes());
        // The final directory sync can fail after the rename; without this, the next start would read the refused
        // content.
        if replaced.is_err() && std::fs::read(&path).is_ok_and(|there| there == text.as_bytes()) {
            let _ = durable::replace(&path, to_text(&*before)?.as_bytes());
        }
        replaced
    });
    let written = written.await.map_err(io::Error::other).flatten();
    written.map_err(Arc::new)
}

fn to_text<T: Versioned>(content: &T) -> Result<String, serde_json::Error> {
    #[derive(Serialize)]
    struct File<'a, T> {
        version: u64,
        #[serde(flatten)]
        content: &'a T,
    }
    let mut text = serde_json::to_string_pretty(&File {
        version: T::VERSION,
        content,
    })?;
    text.push('\n');
    Ok(text)
}

/// The reason why the next start could not read the file at `path`, if there is one. Changes nothing.
pub fn problem<T: Versioned>(path: &Path) -> Option<String> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(source) => return Some(read_error(path, source).to_string()),
    };
    match parse::<T>(&bytes) {
        Ok(_) => None,
        Err(Trouble::Newer(found)) => Some(newer_error::<T>(path, found).to_string()),
        Err(Trouble::Unreadable(reason)) => Some(format!(
            "{} cannot be understood ({reason}). The next start keeps it aside and begins with an empty list.",
            path.display()
        )),
    }
}

fn read_error(path: &Path, source: io::Error) -> OpenError {
    OpenError::Read {
        path: path.to_owned(),
        source,
    }
}

fn newer_error<T: Versioned>(path: &Path, found: u64) -> OpenError {
    OpenError::Newer {
        path: path.to_owned(),
        found,
        known: T::VERSION,
    }
}

fn load<T: Versioned>(path: &Path, notices: &mut Vec<String>) -> Result<T, OpenError> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(T::default()),
        Err(source) => return Err(read_error(path, source)),
    };
    match parse(&bytes) {
        Ok(content) => Ok(content),
        Err(Trouble::Newer(found)) => Err(newer_error::<T>(path, found)),
        Err(Trouble::Unreadable(reason)) => {
            let aside = durable::set_aside(path).map_err(|source| read_error(path, source))?;
            notices.push(format!(
                "{} could not be understood ({reason}). It was kept as {}, and an empty list is used instead.",
                path.display(),
                aside.display()
            ));
            Ok(T::default())
        }
    }
}

enum Trouble {
    Newer(u64),
    Unreadable(String),
}

fn parse<T: Versioned>(bytes: &[u8]) -> Result<T, Trouble> {
    #[derive(Deserialize)]
    struct Current {
        version: u64,
    }
    let unreadable = |error: serde_json::Error| Trouble::Unreadable(error.to_string());
    // The usual case: parsed directly, without a `Value` first.
    if matches!(serde_json::from_slice(bytes), Ok(Current { version }) if version == T::VERSION) {
        return serde_json::from_slice(bytes).map_err(unreadable);
    }
    let mut value: Value = serde_json::from_slice(bytes).map_err(unreadable)?;
    let version = match value.get("version") {
        None => 0,
        Some(version) => version
            .as_u64()
            .ok_or_else(|| Trouble::Unreadable("its version is not a number".to_owned()))?,
    };
    if version > T::VERSION {
        return Err(Trouble::Newer(version));
    }
    for migrate in &T::MIGRATIONS[version as usize..] {
        value = migrate(value).map_err(Trouble::Unreadable)?;
    }
    serde_json::from_value(value).map_err(unreadable)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use serde::Deserialize;
    use tempfile::TempDir;

    use super::*;
    use crate::migrations;

    #[derive(Debug, Clone, Default, Serialize, Deserialize)]
    struct List {
        projects: Vec<u32>,
    }

    impl Versioned for List {
        const MIGRATIONS: &'static [Migration] = migrations::PROJECTS;
    }

    fn open(dir: &TempDir, notices: &mut Vec<String>) -> Result<Document<List>, OpenError> {
        Document::open(dir.path().join("list.json"), notices)
    }

    fn push(number: u32) -> impl FnOnce(&mut List) -> Result<u32, ChangeError> + Send + 'static {
        move |list| {
            list.projects.push(number);
            Ok(number)
        }
    }

    fn text(dir: &TempDir) -> String {
        std::fs::read_to_string(dir.path().join("list.json")).unwrap()
    }

    #[tokio::test]
    async fn change_is_on_disk_before_it_is_acknowledged() {
        let dir = tempfile::tempdir().unwrap();
        let document = open(&dir, &mut vec![]).unwrap();
        let file = dir.path().join("list.json");
        let seen = Arc::new(std::sync::Mutex::new(String::new()));
        let seen_by_commit = seen.clone();
        document
            .change(push(7), move |_| {
                *seen_by_commit.lock().unwrap() = std::fs::read_to_string(file).unwrap()
            })
            .await
            .unwrap();
        let on_disk: Value = serde_json::from_str(&seen.lock().unwrap()).unwrap();
        assert_eq!(on_disk, serde_json::json!({"version": 1, "projects": [7]}));
    }

    #[tokio::test]
    async fn waiting_changes_are_written_together_and_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let document = Arc::new(open(&dir, &mut vec![]).unwrap());
        let order = Arc::new(std::sync::Mutex::new(vec![]));
        let lengths = Arc::new(std::sync::Mutex::new(std::collections::HashSet::new()));
        let file = dir.path().join("list.json");
        let tasks: Vec<_> = (0..500)
            .map(|number| {
                let (document, order) = (document.clone(), order.clone());
                let (lengths, file) = (lengths.clone(), file.clone());
                tokio::spawn(async move {
                    document
                        .change(push(number), move |number| {
                            order.lock().unwrap().push(*number);
                            let on_disk: Value =
                                serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
                            let length = on_disk["projects"].as_array().unwrap().len();
                            lengths.lock().unwrap().insert(length);
                        })
                        .await
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap().unwrap();
        }
        assert_eq!(document.read().projects, *order.lock().unwrap());
        // Each write has a different length, so this counts the writes: far fewer than changes.
        assert!(lengths.lock().unwrap().len() <= 50);
        let reopened = open(&dir, &mut vec![]).unwrap();
        assert_eq!(reopened.read().projects, document.read().projects);
        assert_eq!(reopened.read().projects.len(), 500);
    }

    #[tokio::test]
    async fn refused_change_writes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let document = open(&dir, &mut vec![]).unwrap();
        let refused = document
            .change(|_| Err::<(), _>(ChangeError::Closed), |_| ())
            .await;
        assert!(matches!(refused, Err(ChangeError::Closed)));
        assert!(!dir.path().join("list.json").exists());
    }

    #[tokio::test]
    async fn failed_write_changes_nothing_and_later_writes_can_succeed() {
        let dir = tempfile::tempdir().unwrap();
        let document = open(&dir, &mut vec![]).unwrap();
        document.change(push(1), |_| ()).await.unwrap();
        // A directory at the path of the temporary file makes the write fail, also for root.
        std::fs::create_dir(dir.path().join("list.json.tmp")).unwrap();
        let published = Arc::new(AtomicU32::new(0));
        let counter = published.clone();
        let failed = document
            .change(push(2), move |_| counter.store(1, Ordering::SeqCst))
            .await;
        assert!(matches!(failed, Err(ChangeError::Write(_))), "{failed:?}");
        assert_eq!(published.load(Ordering::SeqCst), 0);
        assert_eq!(document.read().projects, [1]);
        std::fs::remove_dir(dir.path().join("list.json.tmp")).unwrap();
        document.change(push(3), |_| ()).await.unwrap();
        assert_eq!(open(&dir, &mut vec![]).unwrap().read().projects, [1, 3]);
    }

    #[tokio::test]
    async fn changes_after_close_are_refused_and_earlier_ones_are_on_disk() {
        let dir = tempfile::tempdir().unwrap();
        let document = open(&dir, &mut vec![]).unwrap();
        document.change(push(1), |_| ()).await.unwrap();
        document.close().await;
        document.close().await;
        assert!(matches!(
            document.change(push(2), |_| ()).await,
            Err(ChangeError::Closed)
        ));
        assert_eq!(open(&dir, &mut vec![]).unwrap().read().projects, [1]);
    }

    #[tokio::test]
    async fn unreadable_file_is_set_aside_unchanged_with_a_notice() {
        let truncated = br#"{"version":1,"proj"#.as_slice();
        for bytes in [
            truncated,
            b"",
            b"\xff\xfe",
            b"{}",
            br#"{"version":"1"}"#,
            br#"{"version":1,"projects":{}}"#,
        ] {
            let dir = tempfile::tempdir().unwrap();
            std::fs::write(dir.path().join("list.json"), bytes).unwrap();
            let mut notices = vec![];
            let document = open(&dir, &mut notices).unwrap();
            assert!(document.read().projects.is_empty());
            assert_eq!(notices.len(), 1);
            document.change(push(1), |_| ()).await.unwrap();
            let kept: Vec<_> = std::fs::read_dir(dir.path())
                .unwrap()
                .map(|entry| entry.unwrap())
                .filter(|entry| entry.file_name().to_string_lossy().contains("unreadable"))
                .collect();
            assert_eq!(kept.len(), 1);
            assert_eq!(std::fs::read(kept[0].path()).unwrap(), bytes);
            assert!(
                notices[0].contains(kept[0].path().to_str().unwrap()),
                "{}",
                notices[0]
            );
        }
    }

    #[tokio::test]
    async fn file_of_a_newer_version_is_refused_and_left_unchanged() {
        let dir = tempfile::tempdir().unwrap();
        let newer = r#"{"version":99,"projects":[],"more":true}"#;
        std::fs::write(dir.path().join("list.json"), newer).unwrap();
        let refused = open(&dir, &mut vec![]).err().unwrap();
        assert!(matches!(
            refused,
            OpenError::Newer {
                found: 99,
                known: 1,
                ..
            }
        ));
        assert_eq!(text(&dir), newer);
    }

    #[tokio::test]
    async fn bare_list_is_migrated_and_versioned_with_the_next_write() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("list.json"), "[4, 5]").unwrap();
        let mut notices = vec![];
        let document = open(&dir, &mut notices).unwrap();
        assert_eq!(
            (document.read().projects.clone(), notices.len()),
            (vec![4, 5], 0)
        );
        document.change(push(6), |_| ()).await.unwrap();
        let on_disk: Value = serde_json::from_str(&text(&dir)).unwrap();
        assert_eq!(
            on_disk,
            serde_json::json!({"version": 1, "projects": [4, 5, 6]})
        );
    }
}
