//! How long new, list and load take in a store of 100 sessions and in one of 10,000, in microseconds.
//!
//! Prints lists of numbers as JSON; `cargo xtask bench` turns them into rows.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement: what goes wrong should be loud, and the figures are its output"
)]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agent::{ExpiryPolicy, FileStore, Record, Registry, SessionConfig, TurnEnd};

const ROUNDS: usize = 200;
const FOLDER: &str = "/project/asked-for";
const IN_FOLDER: usize = 40;

fn main() {
    let dir = tempfile::tempdir().unwrap();
    let mut made = 0;
    let mut measured = serde_json::Map::new();
    for count in [100, 10_000] {
        let policy = ExpiryPolicy {
            idle_days: 90,
            max_sessions: 0,
        };
        let store = Arc::new(FileStore::open(dir.path()).unwrap());
        let registry = Registry::new(store, policy);
        let config = |number: usize| SessionConfig {
            // The folder that is asked for has as many sessions in the small store as in the large one,
            // and they are the oldest: the answer is equal, the way to it is the longest there is.
            cwd: PathBuf::from(match number {
                0..IN_FOLDER => FOLDER,
                _ => "/project/other",
            }),
            ..SessionConfig::default()
        };
        while made < count {
            let session = registry.create_session(config(made)).unwrap();
            let mut writer = registry.store().open_history(session.id).unwrap();
            writer.append(&Record::turn_end(TurnEnd::Done)).unwrap();
            made += 1;
        }
        let new = times(|round| {
            registry.create_session(config(made + round)).unwrap();
        });
        made += ROUNDS;
        // Names are remembered once the directory has rested.
        std::thread::sleep(Duration::from_millis(2100));
        registry.list(None, None).unwrap();
        let list = times(|_| drop(registry.list(None, None).unwrap()));
        let cwd = PathBuf::from(FOLDER);
        let page = registry.list(None, Some(&cwd)).unwrap();
        assert_eq!(page.sessions.len(), IN_FOLDER);
        let list_of_folder = times(|_| drop(registry.list(None, Some(&cwd)).unwrap()));
        let ids = registry.store().ids().unwrap();
        registry.close_all();
        let load = times(|round| {
            let id = ids[round * ids.len() / ROUNDS];
            registry.open_session(id).unwrap();
            drop(registry.store().read_history(id).unwrap().replay());
        });
        for (name, times) in [
            ("new", new),
            ("list", list),
            ("list_of_folder", list_of_folder),
            ("load", load),
        ] {
            measured.insert(format!("{name}_{count}"), times.into());
        }
    }
    println!("{}", serde_json::Value::Object(measured));
}

fn times(mut act: impl FnMut(usize)) -> Vec<f64> {
    let time = |round| {
        let begin = Instant::now();
        act(round);
        begin.elapsed().as_secs_f64() * 1e6
    };
    (0..ROUNDS).map(time).collect()
}
