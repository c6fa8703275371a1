//! The built-in agent's store: duration of new, list and load with 100 and with 10,000 sessions, in microseconds.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agent::{ExpiryPolicy, FileStore, Record, Registry, SessionConfig, TurnEnd};
use anyhow::{Result, ensure};

use crate::figures::Figures;

const ROUNDS: usize = 200;
const FOLDER: &str = "/project/asked-for";
const IN_FOLDER: usize = 40;

pub(crate) fn measure(figures: &mut Figures) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let mut made = 0;
    for count in [100, 10_000] {
        let policy = ExpiryPolicy {
            idle_days: 90,
            max_sessions: 0,
        };
        let store = Arc::new(FileStore::open(dir.path())?);
        let registry = Registry::new(store, policy);
        let config = |number: usize| SessionConfig {
            // Both stores have the same number of sessions in the listed folder, and these are the oldest: the answer
            // is the same, and the search for it the longest possible.
            cwd: PathBuf::from(match number {
                0..IN_FOLDER => FOLDER,
                _ => "/project/other",
            }),
            ..SessionConfig::default()
        };
        while made < count {
            let session = registry.create_session(config(made))?;
            let mut writer = registry.store().open_history(session.id)?;
            writer.append(&Record::turn_end(TurnEnd::Done))?;
            made += 1;
        }
        let new = times(|round| {
            registry.create_session(config(made + round))?;
            Ok(())
        })?;
        made += ROUNDS;
        // The store caches the directory only when it has not changed for a while.
        std::thread::sleep(Duration::from_millis(2100));
        registry.list(None, None)?;
        let list = times(|_| Ok(registry.list(None, None).map(drop)?))?;
        let cwd = PathBuf::from(FOLDER);
        let page = registry.list(None, Some(&cwd))?;
        ensure!(page.sessions.len() == IN_FOLDER);
        let list_of_folder = times(|_| Ok(registry.list(None, Some(&cwd)).map(drop)?))?;
        let ids = registry.store().ids()?;
        registry.close_all();
        let load = times(|round| {
            let id = ids[round * ids.len() / ROUNDS];
            registry.open_session(id)?;
            drop(registry.store().read_history(id)?.replay());
            Ok(())
        })?;
        for (name, times) in [
            ("new", new),
            ("list", list),
            ("list_of_folder", list_of_folder),
            ("load", load),
        ] {
            for time in times {
                figures.add(format!("{name}_{count}"), time);
            }
        }
    }
    Ok(())
}

fn times(mut act: impl FnMut(usize) -> Result<()>) -> Result<Vec<f64>> {
    let time = |round| {
        let begin = Instant::now();
        act(round)?;
        Ok(begin.elapsed().as_secs_f64() * 1e6)
    };
    (0..ROUNDS).map(time).collect()
}
