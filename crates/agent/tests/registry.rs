//! Tests of the registry with both stores: sessions, expiry, collisions and storage failures.

#![expect(clippy::unwrap_used, reason = "test helpers outside test functions")]

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use agent::{
    ExpiryPolicy, FileStore, History, Hold, MemoryStore, Meta, Mode, Record, Registry,
    SessionConfig, SessionId, State, Store, StoreError, TurnEnd, Writer,
};
use jiff::{Timestamp, ToSpan};

/// Both backends, each with an empty store.
fn backends() -> Vec<(&'static str, Arc<dyn Store>, Option<tempfile::TempDir>)> {
    let dir = tempfile::tempdir().unwrap();
    let files = FileStore::open(dir.path()).unwrap();
    vec![
        ("files", Arc::new(files), Some(dir)),
        ("memory", Arc::new(MemoryStore::default()), None),
    ]
}

fn config(cwd: &str) -> SessionConfig {
    SessionConfig {
        cwd: PathBuf::from(cwd),
        ..SessionConfig::default()
    }
}

fn keep_all(store: Arc<dyn Store>) -> Registry {
    Registry::new(store, ExpiryPolicy::default())
}

fn write(store: &dyn Store, id: SessionId, ends: &[TurnEnd]) {
    let mut writer = store.open_history(id).unwrap();
    for end in ends {
        writer.append(&Record::turn_end(*end)).unwrap();
    }
    writer.sync().unwrap();
}

#[test]
fn session_is_created_changed_closed_and_reopened() {
    for (name, store, _dir) in backends() {
        let registry = keep_all(store.clone());
        let before = Timestamp::now();
        let session = registry.create_session(config("/tmp")).unwrap();
        let meta = session.meta();
        assert_eq!(meta.state, State::Created, "{name}");
        assert!(meta.created_at >= before && meta.created_at <= Timestamp::now());
        assert!(registry.get_session(session.id).is_some());
        registry
            .change(&session, |meta| meta.mode = Mode::Auto)
            .unwrap();
        assert_eq!(
            store.read_meta(session.id).unwrap().mode,
            Mode::Auto,
            "written to the store immediately"
        );
        registry.close_session(session.id).unwrap();
        assert!(registry.get_session(session.id).is_none());
        assert_eq!(
            registry.open_session(session.id).unwrap().meta().mode,
            Mode::Auto
        );
        let unknown: SessionId = agent::EXAMPLE.parse().unwrap();
        assert!(matches!(
            registry.open_session(unknown),
            Err(StoreError::NotFound)
        ));
        assert!(Registry::validate_session_id("nonsense").is_err());
        assert_eq!(
            Registry::validate_session_id(&session.id.to_string()),
            Ok(session.id)
        );
    }
}

#[test]
fn history_is_read_back_by_another_store() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(FileStore::open(dir.path()).unwrap());
    let id = keep_all(store.clone())
        .create_session(config("/tmp"))
        .unwrap()
        .id;
    write(store.as_ref(), id, &[TurnEnd::Done, TurnEnd::Cancelled]);
    let again = FileStore::open(dir.path()).unwrap();
    let history = again.read_history(id).unwrap();
    assert_eq!((history.turns(), history.unreadable), (2, 0));
    assert_eq!(again.read_meta(id).unwrap().cwd, Path::new("/tmp"));
}

#[test]
fn second_history_writer_is_rejected_as_busy() {
    for (name, store, _dir) in backends() {
        let id = keep_all(store.clone())
            .create_session(config("/"))
            .unwrap()
            .id;
        let writer = store.open_history(id).unwrap();
        assert!(
            matches!(store.open_history(id), Err(StoreError::Busy)),
            "{name}"
        );
        drop(writer);
        assert!(store.open_history(id).is_ok(), "{name}");
    }
}

#[test]
fn concurrent_threads_create_sessions_without_loss() {
    for (name, store, _dir) in backends() {
        let registry = Arc::new(keep_all(store));
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let registry = registry.clone();
                std::thread::spawn(move || {
                    let mut ids = Vec::new();
                    for _ in 0..25 {
                        let session = registry.create_session(config("/")).unwrap();
                        write(registry.store().as_ref(), session.id, &[TurnEnd::Done]);
                        registry.change(&session, |meta| meta.turns += 1).unwrap();
                        ids.push(session.id);
                    }
                    ids
                })
            })
            .collect();
        let ids: HashSet<_> = threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect();
        assert_eq!(ids.len(), 200, "{name}");
        for id in ids {
            assert_eq!(registry.open_session(id).unwrap().meta().turns, 1);
            assert_eq!(registry.store().read_history(id).unwrap().turns(), 1);
        }
    }
}

#[test]
fn idle_sessions_over_the_limit_close_and_reopen_on_use() {
    let dir = tempfile::tempdir().unwrap();
    let registry = keep_all(Arc::new(FileStore::open(dir.path()).unwrap()));
    let first = registry.create_session(config("/")).unwrap();
    let running = first.start_turn().unwrap();
    let ids: Vec<_> = (0..300)
        .map(|_| registry.create_session(config("/")).unwrap().id)
        .collect();
    let open = ids
        .iter()
        .filter(|id| registry.get_session(**id).is_some())
        .count();
    assert_eq!(open, 255);
    assert!(
        registry.get_session(first.id).is_some(),
        "a session with a running turn is never closed"
    );
    drop(running);
    assert!(registry.open_session(ids[0]).is_ok());
}

#[test]
fn second_turn_is_rejected_while_one_runs() {
    let registry = keep_all(Arc::new(MemoryStore::default()));
    let session = registry.create_session(config("/")).unwrap();
    let running = session.start_turn().unwrap();
    assert!(session.start_turn().is_none());
    drop(running);
    assert!(session.start_turn().is_some());
}

/// Counter for the repeating ids of the collision test.
static NEXT: AtomicU64 = AtomicU64::new(0);

#[test]
fn create_with_an_existing_id_fails_as_collision() {
    for (name, store, _dir) in backends() {
        let taken = SessionId::generate().unwrap();
        let registry = keep_all(store.clone());
        let meta = registry.create_session(config("/first")).unwrap().meta();
        let taken = Meta {
            session_id: taken,
            ..meta
        };
        store.create(&taken).unwrap();
        assert!(
            matches!(store.create(&taken), Err(StoreError::Collision)),
            "{name}"
        );
        assert_eq!(
            store.read_meta(taken.session_id).unwrap(),
            taken,
            "{name}: untouched"
        );
    }
}

#[test]
fn id_collision_is_retried_with_another_id() {
    // Returns each id twice, so that every creation but the first collides once.
    fn twice() -> std::io::Result<SessionId> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed) / 2;
        let ulid = format!("sess_01ARZ3NDEKTSV4RRFFQ69{number:05}");
        Ok(ulid.parse().unwrap())
    }
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(FileStore::open(dir.path()).unwrap());
    let registry = Registry::with_ids(store.clone(), ExpiryPolicy::default(), twice);
    for _ in 0..10 {
        registry.create_session(config("/")).unwrap();
    }
    assert_eq!(store.ids().unwrap().len(), 10);
    let always = || Ok(agent::EXAMPLE.parse().unwrap());
    let registry = Registry::with_ids(store.clone(), ExpiryPolicy::default(), always);
    registry.create_session(config("/")).unwrap();
    assert!(
        matches!(
            registry.create_session(config("/")),
            Err(StoreError::Collision)
        ),
        "gives up after the last attempt"
    );
    assert_eq!(
        std::fs::read_dir(dir.path().join("sessions"))
            .unwrap()
            .count(),
        11,
        "no incomplete directory is left"
    );
}

#[test]
fn idle_sessions_expire_but_recent_and_open_ones_do_not() {
    for (name, store, _dir) in backends() {
        let policy = ExpiryPolicy {
            idle_days: 30,
            max_sessions: 0,
        };
        let registry = Registry::new(store.clone(), policy);
        let [idle, used, open] = [0; 3].map(|_| registry.create_session(config("/")).unwrap().id);
        let later = Timestamp::now() + (24 * 31).hours();
        let session = registry.open_session(used).unwrap();
        registry
            .change(&session, |meta| meta.last_used_at = later - 24.hours())
            .unwrap();
        drop(session);
        registry.close_session(idle);
        registry.close_session(used);
        assert_eq!(
            registry.remove_expired(Timestamp::now()).unwrap(),
            [],
            "{name}: not yet"
        );
        assert_eq!(registry.remove_expired(later).unwrap(), [idle], "{name}");
        assert!(
            matches!(registry.open_session(idle), Err(StoreError::Expired)),
            "{name}"
        );
        assert!(
            matches!(store.open_history(idle), Err(StoreError::Expired)),
            "{name}"
        );
        assert_eq!(*store.ids().unwrap(), [open, used]);
        registry.close_session(open);
        assert_eq!(
            registry.remove_expired(later).unwrap(),
            [open],
            "{name}: after it was closed"
        );
    }
}

#[test]
fn least_recently_used_sessions_over_the_limit_expire() {
    for (name, store, _dir) in backends() {
        let policy = ExpiryPolicy {
            idle_days: 0,
            max_sessions: 3,
        };
        let registry = Registry::new(store.clone(), policy);
        let ids: Vec<_> = (0..6)
            .map(|_| registry.create_session(config("/")).unwrap().id)
            .collect();
        let session = registry.open_session(ids[0]).unwrap();
        registry
            .change(&session, |meta| meta.last_used_at = Timestamp::now())
            .unwrap();
        drop(session);
        registry.close_all();
        let removed: HashSet<_> = registry
            .remove_expired(Timestamp::now())
            .unwrap()
            .into_iter()
            .collect();
        assert_eq!(removed, HashSet::from([ids[1], ids[2], ids[3]]), "{name}");
        assert_eq!(
            registry.remove_expired(Timestamp::now()).unwrap(),
            [],
            "{name}"
        );
    }
}

#[test]
fn without_expiry_rules_nothing_expires() {
    for (_, store, _dir) in backends() {
        let registry = keep_all(store);
        let id = registry.create_session(config("/")).unwrap().id;
        registry.close_session(id);
        let later = Timestamp::now() + (24 * 10_000).hours();
        assert_eq!(registry.remove_expired(later).unwrap(), []);
    }
}

#[test]
fn session_in_use_by_another_registry_does_not_expire() {
    let dir = tempfile::tempdir().unwrap();
    let policy = ExpiryPolicy {
        idle_days: 1,
        max_sessions: 0,
    };
    let ours = Registry::new(Arc::new(FileStore::open(dir.path()).unwrap()), policy);
    let theirs = keep_all(Arc::new(FileStore::open(dir.path()).unwrap()));
    let id = theirs.create_session(config("/")).unwrap().id;
    let later = Timestamp::now() + 72.hours();
    assert_eq!(ours.remove_expired(later).unwrap(), []);
    theirs.close_session(id);
    assert_eq!(ours.remove_expired(later).unwrap(), [id]);
}

#[test]
fn incomplete_session_is_not_listed_and_is_removed_after_an_hour() {
    let dir = tempfile::tempdir().unwrap();
    let registry = keep_all(Arc::new(FileStore::open(dir.path()).unwrap()));
    let incomplete = dir
        .path()
        .join("sessions/.new-1-sess_01ARZ3NDEKTSV4RRFFQ69G5FAV");
    std::fs::create_dir(&incomplete).unwrap();
    assert_eq!(registry.newest(5), []);
    registry.remove_expired(Timestamp::now()).unwrap();
    assert!(
        incomplete.exists(),
        "another process may still be creating it"
    );
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(7200);
    std::fs::File::open(&incomplete)
        .unwrap()
        .set_modified(old)
        .unwrap();
    registry.remove_expired(Timestamp::now()).unwrap();
    assert!(!incomplete.exists());
}

/// A store that can simulate a full disk.
struct FullDisk {
    inner: MemoryStore,
    full: Arc<std::sync::atomic::AtomicBool>,
}

impl FullDisk {
    fn check_space(&self) -> Result<(), StoreError> {
        match self.full.load(Ordering::SeqCst) {
            true => Err(std::io::Error::from(std::io::ErrorKind::StorageFull).into()),
            false => Ok(()),
        }
    }
}

struct FullDiskWriter(Box<dyn Writer>, Arc<std::sync::atomic::AtomicBool>);

impl Writer for FullDiskWriter {
    fn append(&mut self, record: &Record) -> Result<(), StoreError> {
        if self.1.load(Ordering::SeqCst) {
            return Err(std::io::Error::from(std::io::ErrorKind::StorageFull).into());
        }
        self.0.append(record)
    }

    fn sync(&mut self) -> Result<(), StoreError> {
        self.0.sync()
    }
}

impl Store for FullDisk {
    fn create(&self, meta: &Meta) -> Result<(), StoreError> {
        self.check_space()?;
        self.inner.create(meta)
    }

    fn read_meta(&self, id: SessionId) -> Result<Meta, StoreError> {
        self.inner.read_meta(id)
    }

    fn write_meta(&self, meta: &Meta) -> Result<(), StoreError> {
        self.check_space()?;
        self.inner.write_meta(meta)
    }

    fn read_history(&self, id: SessionId) -> Result<History, StoreError> {
        self.inner.read_history(id)
    }

    fn open_history(&self, id: SessionId) -> Result<Box<dyn Writer>, StoreError> {
        let writer = self.inner.open_history(id)?;
        Ok(Box::new(FullDiskWriter(writer, self.full.clone())))
    }

    fn ids(&self) -> Result<Arc<[SessionId]>, StoreError> {
        self.inner.ids()
    }

    fn hold(&self, id: SessionId) -> Result<Box<dyn Hold>, StoreError> {
        self.inner.hold(id)
    }

    fn expire(&self, id: SessionId, deserves: &dyn Fn(&Meta) -> bool) -> Result<bool, StoreError> {
        self.check_space()?;
        self.inner.expire(id, deserves)
    }

    fn clean(&self) -> Result<(), StoreError> {
        self.inner.clean()
    }
}

/// Runs the agent in this process, connected with pipes.
mod pipes {
    use std::sync::Arc;

    use agent::{Directories, Registry, Settings};
    use serde_json::{Value, json};
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines};

    pub(crate) struct Client {
        to_agent: DuplexStream,
        lines: Lines<BufReader<DuplexStream>>,
        id: u64,
    }

    impl Client {
        pub(crate) fn new(registry: Registry) -> Self {
            let (to_agent, input) = tokio::io::duplex(1 << 16);
            let (output, from_agent) = tokio::io::duplex(1 << 16);
            let nowhere = Directories::within(std::path::Path::new("/nonexistent"));
            let settings = Settings::load(&nowhere, &|_| None).unwrap();
            tokio::spawn(agent::serve(
                Arc::new(registry),
                Arc::new(settings),
                input,
                output,
            ));
            let lines = BufReader::new(from_agent).lines();
            Self {
                to_agent,
                lines,
                id: 0,
            }
        }

        pub(crate) async fn line(&mut self) -> Value {
            let line = self.lines.next_line().await.unwrap().unwrap();
            serde_json::from_str(&line).unwrap()
        }

        pub(crate) async fn send(&mut self, method: &str, params: Value) -> u64 {
            self.id += 1;
            let line = json!({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params});
            self.to_agent
                .write_all(format!("{line}\n").as_bytes())
                .await
                .unwrap();
            self.id
        }

        pub(crate) async fn call(&mut self, method: &str, params: Value) -> Value {
            let id = self.send(method, params).await;
            loop {
                let line = self.line().await;
                if line["id"] == id {
                    return line;
                }
            }
        }
    }
}

#[tokio::test]
async fn full_disk_is_reported_without_data_loss_and_recovers() {
    use serde_json::json;
    let full = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let inner = MemoryStore::default();
    let store = FullDisk {
        inner: inner.clone(),
        full: full.clone(),
    };
    let mut client = pipes::Client::new(keep_all(Arc::new(store)));
    let cwd = std::env::temp_dir();
    let new = json!({"cwd": cwd, "mcpServers": []});
    let session = client.call("session/new", new.clone()).await["result"]["sessionId"].clone();
    let prompt =
        |text: &str| json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
    assert_eq!(
        client.call("session/prompt", prompt("/plan one")).await["result"]["stopReason"],
        "end_turn"
    );
    let id: SessionId = serde_json::from_value(session.clone()).unwrap();
    let before = inner.read_history(id).unwrap();

    full.store(true, Ordering::SeqCst);
    let error = client.call("session/prompt", prompt("/plan two")).await["error"].clone();
    assert_eq!(error["code"], -32603);
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("no storage space"),
        "{error}"
    );
    assert_eq!(
        inner.read_history(id).unwrap(),
        before,
        "the failed prompt is neither recorded nor executed"
    );
    assert_eq!(
        client.call("session/new", new.clone()).await["error"]["code"],
        -32603
    );
    let load = json!({"sessionId": session, "cwd": cwd, "mcpServers": []});
    assert!(
        client.call("session/load", load).await["error"].is_null(),
        "reading still works"
    );

    // The disk becomes full in the middle of an answer.
    full.store(false, Ordering::SeqCst);
    let id = client.send("session/prompt", prompt("hello")).await;
    loop {
        let line = client.line().await;
        if line["params"]["update"]["sessionUpdate"] == "agent_message_chunk" {
            full.store(true, Ordering::SeqCst);
        }
        if line["id"] == id {
            assert_eq!(line["error"]["code"], -32603, "{line}");
            break;
        }
    }
    full.store(false, Ordering::SeqCst);
    assert_eq!(
        client.call("session/prompt", prompt("/plan three")).await["result"]["stopReason"],
        "end_turn"
    );
    assert!(client.call("session/new", new).await["result"]["sessionId"].is_string());
}

#[test]
fn cached_session_ids_are_never_stale() {
    let dir = tempfile::tempdir().unwrap();
    let (ours, theirs) = (
        FileStore::open(dir.path()).unwrap(),
        keep_all(Arc::new(FileStore::open(dir.path()).unwrap())),
    );
    let rest = || {
        let folder = std::fs::File::open(dir.path().join("sessions")).unwrap();
        let earlier = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
        folder.set_modified(earlier).unwrap();
    };
    let mut made = Vec::new();
    for round in 0..50 {
        made.insert(0, theirs.create_session(config("/")).unwrap().id);
        assert_eq!(*ours.ids().unwrap(), made);
        if round % 2 == 0 {
            rest();
        }
        assert_eq!(*ours.ids().unwrap(), made, "also from the cache");
    }
}

#[test]
fn list_of_a_folder_has_exactly_its_sessions() {
    let dir = tempfile::tempdir().unwrap();
    let open = || keep_all(Arc::new(FileStore::open(dir.path()).unwrap()));
    let (ours, theirs) = (open(), open());
    let folders = ["/a", "/b", "/c"].map(PathBuf::from);
    let mut made = folders.clone().map(|_| Vec::new());
    for number in 0..180 {
        let folder = if number < 120 { number % 2 } else { 2 };
        let config = config(folders[folder].to_str().unwrap());
        let session = [&ours, &theirs][number % 3 % 2].create_session(config);
        made[folder].insert(0, session.unwrap().id);
        if number % 10 == 0 {
            // The cached order is outdated by the new sessions.
            let names = std::fs::File::open(dir.path().join("sessions")).unwrap();
            let earlier = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
            names.set_modified(earlier).unwrap();
            for _ in 0..2 {
                for (folder, made) in folders.iter().zip(&made) {
                    assert_eq!(whole_list(&ours, folder), *made, "{number}, {folder:?}");
                }
            }
        }
    }
}

fn whole_list(registry: &Registry, folder: &PathBuf) -> Vec<SessionId> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = registry.list(after, Some(folder)).unwrap();
        assert!(page.damaged.is_empty());
        all.extend(page.sessions.iter().map(|meta| meta.session_id));
        after = page.next;
        if after.is_none() {
            return all;
        }
    }
}

#[test]
fn opening_a_store_below_a_file_fails() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "x").unwrap();
    assert!(matches!(
        FileStore::open(&file.join("agent")),
        Err(StoreError::Io(_))
    ));
}
