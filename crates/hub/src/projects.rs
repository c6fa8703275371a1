//! The list of projects: folders that users work in.
//!
//! Invariants: no two projects share a path, and `addedAt` increases with every added project, so that
//! sorting by it gives the order of insertion. Removed projects are kept in the file, so that undo, or
//! adding the folder again, restores the same id and with it all references to the project.

use std::path::Path;

use jiff::{Timestamp, ToSpan};
use serde::{Deserialize, Serialize};
use uuid::Uuid;
use wire::Project;

use crate::error::HubError;
use crate::events::{EventKind, Events, Origin};
use store::{self, DataDir, Document, Versioned, migrations};

/// Maximum removed projects that are kept.
const REMOVED_MAX: usize = 1000;

/// Content of `projects.json` without its version.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct ProjectsFile {
    projects: Vec<Project>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    removed: Vec<Project>,
}

impl Versioned for ProjectsFile {
    const MIGRATIONS: &'static [migrations::Migration] = migrations::PROJECTS;
}

/// Describes a problem with the project list in this data directory, without changing anything.
pub(crate) fn problem(data_dir: &Path) -> Option<String> {
    store::problem::<ProjectsFile>(&data_dir.join(store::names::PROJECTS))
}

/// The list of projects, kept in `projects.json`.
pub struct Projects {
    document: Document<ProjectsFile>,
    events: Events,
}

impl Projects {
    pub(crate) fn open(
        dir: &DataDir,
        events: Events,
        notices: &mut Vec<String>,
    ) -> Result<Self, HubError> {
        let document = Document::open(dir.projects_file(), notices)?;
        Ok(Self { document, events })
    }

    /// The projects, in the order in which they were added.
    pub fn list(&self) -> Vec<Project> {
        self.document.read().projects.clone()
    }

    /// Adds the folder at a resolved path to the end of the list.
    pub(crate) async fn add(&self, path: String, origin: Origin) -> Result<Project, HubError> {
        let added = move |file: &mut ProjectsFile| {
            if file.projects.iter().any(|project| project.path == path) {
                return Err(HubError::ProjectDuplicate);
            }
            let known = file.removed.iter().position(|project| project.path == path);
            let id = match known {
                Some(at) => file.removed.remove(at).id,
                None => Uuid::new_v4().to_string(),
            };
            let added_at = next_added_at(file, Timestamp::now());
            let project = Project {
                id,
                name: name_of(&path),
                path,
                added_at,
            };
            file.projects.push(project.clone());
            Ok(project)
        };
        self.change(added, origin, |project| {
            EventKind::ProjectAdded(project.clone())
        })
        .await
    }

    /// Removes a project from the list. Its folder is not changed.
    pub async fn remove(&self, project_id: &str, origin: Origin) -> Result<(), HubError> {
        let id = project_id.to_owned();
        let removed = move |file: &mut ProjectsFile| {
            let at = file
                .projects
                .iter()
                .position(|project| project.id == id)
                .ok_or(HubError::ProjectNotFound)?;
            file.removed.push(file.projects.remove(at));
            if file.removed.len() > REMOVED_MAX {
                file.removed.remove(0);
            }
            Ok(id)
        };
        self.change(removed, origin, |id| EventKind::ProjectRemoved {
            project_id: id.clone(),
        })
        .await?;
        Ok(())
    }

    /// Undoes a removal: the project gets the same id and the same place in the list.
    pub async fn restore(&self, project_id: &str, origin: Origin) -> Result<Project, HubError> {
        let id = project_id.to_owned();
        let restored = move |file: &mut ProjectsFile| {
            let at = file
                .removed
                .iter()
                .position(|project| project.id == id)
                .ok_or(HubError::ProjectNotFound)?;
            if file
                .projects
                .iter()
                .any(|project| project.path == file.removed[at].path)
            {
                return Err(HubError::ProjectDuplicate);
            }
            let project = file.removed.remove(at);
            let place = file
                .projects
                .partition_point(|other| other.added_at < project.added_at);
            file.projects.insert(place, project.clone());
            Ok(project)
        };
        self.change(restored, origin, |project| {
            EventKind::ProjectAdded(project.clone())
        })
        .await
    }

    pub(crate) async fn close(&self) {
        self.document.close().await;
    }

    async fn change<R: Send + 'static>(
        &self,
        decide: impl FnOnce(&mut ProjectsFile) -> Result<R, HubError> + Send + 'static,
        origin: Origin,
        event: impl FnOnce(&R) -> EventKind + Send + 'static,
    ) -> Result<R, HubError> {
        let events = self.events.clone();
        self.document
            .change(decide, move |result| events.publish(event(result), origin))
            .await
    }
}

fn name_of(path: &str) -> String {
    match path.rsplit('/').next() {
        Some(name) if !name.is_empty() => name.to_owned(),
        _ => path.to_owned(),
    }
}

/// The current time, or 1 ms after the newest project: a clock that was set back must not reorder the sidebar.
fn next_added_at(file: &ProjectsFile, now: Timestamp) -> String {
    // Truncated to milliseconds as in the file; otherwise two projects within a millisecond would compare as equal
    // there.
    let now = Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now);
    let known = file.projects.iter().chain(&file.removed);
    let newest = known
        .filter_map(|project| project.added_at.parse::<Timestamp>().ok())
        .max();
    let at = match newest {
        Some(newest) if newest >= now => newest.checked_add(1.millisecond()).unwrap_or(newest),
        _ => now,
    };
    format!("{at:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(path: &str, added_at: &str) -> Project {
        Project {
            id: path.to_owned(),
            path: path.to_owned(),
            name: name_of(path),
            added_at: added_at.to_owned(),
        }
    }

    #[test]
    fn project_added_after_the_clock_was_set_back_sorts_last() {
        let file = ProjectsFile {
            projects: vec![project("/a", "2036-01-01T00:00:00.000Z")],
            removed: vec![],
        };
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        assert_eq!(next_added_at(&file, now), "2036-01-01T00:00:00.001Z");
    }

    #[test]
    fn added_at_has_three_decimals_so_that_text_order_is_time_order() {
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        assert_eq!(
            next_added_at(&ProjectsFile::default(), now),
            "2026-01-01T00:00:00.000Z"
        );
    }

    #[test]
    fn projects_added_within_a_millisecond_get_different_times() {
        let file = ProjectsFile {
            projects: vec![project("/a", "2026-01-01T00:00:00.007Z")],
            removed: vec![],
        };
        let now = "2026-01-01T00:00:00.007999Z".parse().unwrap();
        assert_eq!(next_added_at(&file, now), "2026-01-01T00:00:00.008Z");
    }

    #[test]
    fn root_folder_is_named_by_a_slash() {
        assert_eq!(name_of("/"), "/");
        assert_eq!(name_of("/home/me/code"), "code");
    }
}
