//! Which folder each session works in, as far as anybody has read it.
//!
//! Where a session works never changes once it is known, or only by hand. Knowing it saves reading
//! thousands of files when a client lists one project's sessions, and the order by folder saves walking
//! past all the others.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::session_id::SessionId;

#[derive(Default)]
pub(crate) struct Places {
    known: HashMap<SessionId, PathBuf>,
    sorted: Option<Sorted>,
}

/// The sessions of one list of names by folder, each newest first.
struct Sorted {
    ids: Arc<[SessionId]>,
    folders: HashMap<PathBuf, Vec<SessionId>>,
    unknown: Vec<SessionId>,
}

impl Places {
    pub(crate) fn learn(&mut self, id: SessionId, folder: &Path) {
        if self.known.get(&id).is_none_or(|known| known != folder) {
            self.known.insert(id, folder.to_owned());
            self.sorted = None;
        }
    }

    /// Those of `ids` that work in `folder` or may do so, newest first.
    pub(crate) fn within(&mut self, ids: &Arc<[SessionId]>, folder: &Path) -> Vec<SessionId> {
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
