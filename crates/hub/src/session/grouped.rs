//! The sessions of the index, grouped by project, so that listing one project does not iterate over the
//! sessions of all others.

use std::collections::HashMap;
use std::sync::Arc;

use wire::Project;

use super::index::SessionMeta;

#[derive(Default)]
pub(super) struct Grouped {
    by_project: HashMap<String, Vec<Arc<SessionMeta>>>,
    /// The sessions by path of their project folder: a folder that was removed and added again can have a new project
    /// id, and keeps its sessions.
    by_path: HashMap<String, Vec<Arc<SessionMeta>>>,
}

impl Grouped {
    pub(super) fn new(sessions: &[Arc<SessionMeta>]) -> Self {
        let mut grouped = Self::default();
        for meta in sessions {
            add(&mut grouped.by_project, &meta.project_id, meta);
            add(&mut grouped.by_path, &meta.project_path, meta);
        }
        grouped
    }

    pub(super) fn of(&self, project: &Project) -> impl Iterator<Item = &Arc<SessionMeta>> {
        let named = self.by_project.get(&project.id).into_iter().flatten();
        let there = self.by_path.get(&project.path).into_iter().flatten();
        let id = project.id.clone();
        named.chain(there.filter(move |meta| meta.project_id != id))
    }
}

fn add(groups: &mut HashMap<String, Vec<Arc<SessionMeta>>>, key: &str, meta: &Arc<SessionMeta>) {
    match groups.get_mut(key) {
        Some(group) => group.push(meta.clone()),
        None => drop(groups.insert(key.to_owned(), vec![meta.clone()])),
    }
}
