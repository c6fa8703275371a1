//! How long new, list and load take in a store of 100 sessions and in one of 10,000.
//!
//! `cargo run --release -p agent --example many_sessions [SESSIONS]`

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

fn main() {
    let most: usize = std::env::args()
        .nth(1)
        .map_or(10_000, |count| count.parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let mut made = 0;
    println!("sessions      new  list(1st)     list  list(cwd)     load  (median, microseconds)");
    for count in [100, most] {
        let policy = ExpiryPolicy {
            idle_days: 90,
            max_sessions: 0,
        };
        let store = Arc::new(FileStore::open(dir.path()).unwrap());
        let registry = Registry::new(store, policy);
        let config = |number: usize| SessionConfig {
            cwd: PathBuf::from(format!("/project/{}", number % 20)),
            ..SessionConfig::default()
        };
        while made < count {
            let session = registry.create_session(config(made)).unwrap();
            let mut writer = registry.store().open_history(session.id).unwrap();
            writer.append(&Record::turn_end(TurnEnd::Done)).unwrap();
            made += 1;
        }
        let new = median(|round| {
            registry.create_session(config(round)).unwrap();
        });
        made += ROUNDS;
        let begin = Instant::now();
        registry.list(None, None).unwrap();
        let first = begin.elapsed().as_micros();
        // Names are remembered once the directory has rested.
        std::thread::sleep(Duration::from_millis(2100));
        registry.list(None, None).unwrap();
        let list = median(|_| drop(registry.list(None, None).unwrap()));
        let cwd = PathBuf::from("/project/7");
        registry.list(None, Some(&cwd)).unwrap();
        let list_cwd = median(|_| drop(registry.list(None, Some(&cwd)).unwrap()));
        let ids = registry.store().ids().unwrap();
        registry.close_all();
        let load = median(|round| {
            let id = ids[round * ids.len() / ROUNDS];
            registry.open_session(id).unwrap();
            drop(registry.store().read_history(id).unwrap().replay());
        });
        println!("{count:8} {new:8} {first:10} {list:8} {list_cwd:10} {load:8}");
    }
    let registry = Registry::new(
        Arc::new(FileStore::open(dir.path()).unwrap()),
        ExpiryPolicy {
            idle_days: 90,
            max_sessions: 0,
        },
    );
    let begin = Instant::now();
    registry.remove_expired(jiff::Timestamp::now()).unwrap();
    println!("sweep, nothing old: {} us", begin.elapsed().as_micros());
}

fn median(mut act: impl FnMut(usize)) -> u128 {
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|round| {
            let begin = Instant::now();
            act(round);
            begin.elapsed()
        })
        .collect();
    times.sort();
    times[ROUNDS / 2].as_micros()
}
