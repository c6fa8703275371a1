//! Cache of each session's working directory, filled as sessions are read.
//!
//! A session's working directory hardly ever changes. The cache avoids reading thousands of files when
//! a client lists one project's sessions, and the grouping by folder avoids iterating over all others.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::session_id::SessionId;

#[derive(Default)]
pub(crate) struct WorkingDirectories {
    known: HashMap<SessionId, PathBuf>,
    sorted: Option<Sorted>,
}

/// The sessions of one id list, grouped by folder, newest first.
struct Sorted {
    ids: Arc<[SessionId]>,
    folders: HashMap<PathBuf, Vec<SessionId>>,
    unknown: Vec<SessionId>,
}

impl WorkingDirectories {
    pub(crate) fn insert(&mut self, id: SessionId, folder: &Path) {
        if self.known.get(&id).is_none_or(|known| known != folder) {
            self.known.insert(id, folder.to_owned());
            self.sorted = None;
        }
    }

    /// Returns the sessions of `ids` whose folder is `folder` or not known yet, newest first.
    pub(crate) fn sessions_in(&mut self, ids: &Arc<[SessionId]>, folder: &Path) -> Vec<SessionId> {
        let current = self.sorted.take().filter(|it| Arc::ptr_eq(&it.ids, ids));
        let sorted = current.unwrap_or_else(|| Sorted::new(ids, &self.known));
        let there = sorted.folders.get(folder).map_or(&[][..], Vec::as_slice);
        let mut within = [there, &sorted.unknown].concat();
        within.sort_unstable_by(|one, other| other.cmp(one));
        self.sorted = Some(sorted);
        within
    }
}

impl Sorted {
    fn new(ids: &Arc<[SessionId]>, known: &HashMap<SessionId, PathBuf>) -> Self {
        let mut folders = HashMap::<PathBuf, Vec<SessionId>>::new();
        let mut unknown = Vec::new();
        for id in ids.iter() {
            match known.get(id) {
                None => unknown.push(*id),
                Some(folder) => match folders.get_mut(folder) {
                    Some(there) => there.push(*id),
                    None => drop(folders.insert(folder.clone(), vec![*id])),
                },
            }
        }
        Self {
            ids: Arc::clone(ids),
            folders,
            unknown,
        }
    }
}
