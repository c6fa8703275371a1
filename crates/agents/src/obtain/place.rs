//! Where agents stand that were brought here: a folder each below `agents/` of the data directory.
//!
//! Nothing is remembered: whether one is here is read from its folder each time, so that an agent installed by hand
//! with the command we show is found like one installed by our button.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use serde_json::Value;

use super::listing::{self, LIST_BYTES_MAX, Listed, Refreshed, Way};
use durable::ownership;

/// A newer list of agents, and the folder of installed ones, in the data directory.
const AGENTS_FILE: &str = "agents.json";
const AGENTS_FOLDER: &str = "agents";
/// In the folder while an installation is under way: what is there is not to be trusted.
const UNFINISHED: &str = ".unfinished";
const MANIFEST_BYTES_MAX: u64 = 1024 * 1024;

type List = Arc<Vec<Arc<Listed>>>;

/// The agents there are in the list, and which of them are here.
#[derive(Debug)]
pub struct Shelf {
    data_dir: PathBuf,
    /// The list, and when the file was written that it was read from.
    kept: Mutex<Option<(Option<SystemTime>, List)>>,
}

/// One that is here.
#[derive(Debug, PartialEq, Eq)]
pub struct Here {
    pub program: PathBuf,
    pub args: Vec<String>,
    pub version: Option<String>,
    /// What it asks of Node.
    pub node: Option<String>,
}

impl Shelf {
    pub fn new(data_dir: &Path) -> Self {
        Self {
            data_dir: data_dir.to_owned(),
            kept: Mutex::default(),
        }
    }

    /// Our list, with what a newer one has more or newer.
    pub fn listed(&self) -> List {
        let path = self.data_dir.join(AGENTS_FILE);
        let stamp = path.metadata().and_then(|file| file.modified()).ok();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((read, list)) = &*kept
            && *read == stamp
        {
            return list.clone();
        }
        let newer = stamp.map(|_| read_list(&path)).unwrap_or_default();
        let list: List = Arc::new(
            merge(listing::shipped(), newer)
                .into_iter()
                .map(Arc::new)
                .collect(),
        );
        *kept = Some((stamp, list.clone()));
        list
    }

    /// The one we call this.
    pub fn find(&self, cli_type: &str) -> Option<Arc<Listed>> {
        let list = self.listed();
        list.iter()
            .find(|listed| listing::our_id(&listed.id) == cli_type)
            .cloned()
    }

    /// Takes a newer list in place of the one before. Agents that are here stay in it.
    pub fn keep(&self, text: &str) -> Result<Refreshed, String> {
        let (mut agents, left_out) = listing::read(text)?;
        for known in self.listed().iter() {
            let gone = agents.iter().all(|agent| agent.id != known.id);
            if gone && self.here(known).is_some() {
                agents.push(Listed::clone(known));
            }
        }
        durable::replace(
            &self.data_dir.join(AGENTS_FILE),
            listing::write(&agents).as_bytes(),
        )
        .map_err(|error| format!("it could not be kept: {error}"))?;
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(Refreshed {
            agents: agents.len(),
            left_out,
        })
    }

    pub fn folder(&self, listed: &Listed) -> PathBuf {
        self.data_dir
            .join(AGENTS_FOLDER)
            .join(listing::our_id(&listed.id))
    }

    /// How it would be started, if it was brought here.
    pub fn here(&self, listed: &Listed) -> Option<Here> {
        let folder = self.folder(listed);
        if !folder.is_dir() || folder.join(UNFINISHED).exists() {
            return None;
        }
        listed
            .ways
            .iter()
            .find_map(|way| found(&folder, listed, way))
    }
}

/// Says that a folder is not to be trusted until `finish`.
pub(super) fn begin(folder: &Path) -> std::io::Result<()> {
    ownership::check(folder)?;
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join(UNFINISHED), "")
}

pub(super) fn finish(folder: &Path) -> std::io::Result<()> {
    std::fs::remove_file(folder.join(UNFINISHED))
}

/// Where the parts of an agent from PyPI stand.
pub(super) fn uv_folders(folder: &Path) -> (PathBuf, PathBuf) {
    (folder.join("tools"), folder.join("bin"))
}

/// Where an archive is unpacked.
pub(super) fn unpacked(folder: &Path) -> PathBuf {
    folder.join("files")
}

fn found(folder: &Path, listed: &Listed, way: &Way) -> Option<Here> {
    let (program, version, node) = match way {
        Way::Npm(package) => {
            let manifest = folder
                .join("node_modules")
                .join(&package.name)
                .join("package.json");
            let manifest = read_manifest(&manifest)?;
            let command = command_of(&manifest, listed, &package.name)?;
            let program = folder.join("node_modules/.bin").join(command);
            let text = |value: &Value| value.as_str().map(str::to_owned);
            (
                program,
                text(&manifest["version"]),
                text(&manifest["engines"]["node"]),
            )
        }
        Way::Uv(package) => {
            let command = listed.program.as_deref().unwrap_or(&package.name);
            (uv_folders(folder).1.join(command), None, None)
        }
        Way::Binary(binary) => (unpacked(folder).join(&binary.program), None, None),
    };
    super::super::catalog::is_executable(&program).then(|| Here {
        program,
        args: way.args().to_owned(),
        version,
        node,
    })
}

fn read_manifest(path: &Path) -> Option<Value> {
    let size = path.metadata().ok()?.len();
    if size > MANIFEST_BYTES_MAX {
        return None;
    }
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

/// Which of a package's commands is the agent: the one we know, else the one named like it, else its only one.
fn command_of(manifest: &Value, listed: &Listed, package: &str) -> Option<String> {
    let plain = package.rsplit('/').next().unwrap_or(package);
    let command = match &manifest["bin"] {
        Value::String(_) => plain.to_owned(),
        Value::Object(commands) => {
            let known = listed
                .program
                .as_deref()
                .into_iter()
                .chain([plain, &listed.id]);
            let mut known = known.filter(|name| commands.contains_key(*name));
            let only = commands.keys().next().map(String::as_str);
            known.next().or(only)?.to_owned()
        }
        _ => return None,
    };
    (!command.contains('/') && !command.starts_with('.')).then_some(command)
}

/// What was kept of a newer list. One that cannot be read is as good as none: it can be fetched again.
fn read_list(path: &Path) -> Vec<Listed> {
    let fits = |path: &Path| {
        path.metadata()
            .is_ok_and(|file| file.len() <= 2 * LIST_BYTES_MAX as u64)
    };
    let text = fits(path)
        .then(|| std::fs::read_to_string(path).ok())
        .flatten();
    match text.as_deref().map(listing::read) {
        Some(Ok((agents, _))) => agents,
        _ => {
            tracing::warn!(path = %path.display(), "the list of agents cannot be read; ours is used");
            vec![]
        }
    }
}

/// Everything of both; of one that is in both the newer, with what only ours knows.
fn merge(ours: Vec<Listed>, newer: Vec<Listed>) -> Vec<Listed> {
    let mut merged = ours;
    for mut agent in newer {
        let same = |known: &&mut Listed| listing::our_id(&known.id) == listing::our_id(&agent.id);
        match merged.iter_mut().find(same) {
            Some(known) if parts(&known.version) <= parts(&agent.version) => {
                agent.program = agent.program.or_else(|| known.program.clone());
                agent.node = agent.node.or_else(|| known.node.clone());
                *known = agent;
            }
            Some(_) => {}
            None => merged.push(agent),
        }
    }
    merged.sort_by_key(|agent| agent.name.to_lowercase());
    merged
}

fn parts(version: &str) -> Vec<u64> {
    let numbers = version.split(|c: char| !c.is_ascii_digit());
    numbers
        .take(3)
        .map(|part| part.parse().unwrap_or(0))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use serde_json::json;

    use super::*;

    fn one(id: &str, version: &str) -> Value {
        json!({"id": id, "name": id, "version": version,
               "distribution": {"npx": {"package": format!("{id}@{version}"), "args": ["--acp"]}}})
    }

    fn shelf() -> (tempfile::TempDir, Shelf) {
        let dir = tempfile::tempdir().unwrap();
        let shelf = Shelf::new(dir.path());
        (dir, shelf)
    }

    fn put(shelf: &Shelf, id: &str) {
        let folder = shelf.folder(&shelf.find(id).unwrap());
        let package = folder.join("node_modules").join(id);
        std::fs::create_dir_all(&package).unwrap();
        std::fs::create_dir_all(folder.join("node_modules/.bin")).unwrap();
        let manifest = json!({"version": "9.9.9", "bin": {"other": "o.js", id: "m.js"}, "engines": {"node": ">=30"}});
        std::fs::write(package.join("package.json"), manifest.to_string()).unwrap();
        let program = folder.join("node_modules/.bin").join(id);
        std::fs::write(&program, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn an_agent_is_here_when_its_folder_has_it_whoever_put_it_there() {
        let (_dir, shelf) = shelf();
        shelf
            .keep(&json!({"agents": [one("mine", "1.0.0")]}).to_string())
            .unwrap();
        let mine = shelf.find("mine").unwrap();
        assert_eq!(shelf.here(&mine), None);
        put(&shelf, "mine");
        let here = shelf.here(&mine).unwrap();
        assert!(here.program.ends_with("agents/mine/node_modules/.bin/mine"));
        assert_eq!(
            (here.version.as_deref(), here.node.as_deref()),
            (Some("9.9.9"), Some(">=30"))
        );
        begin(&shelf.folder(&mine)).unwrap();
        assert_eq!(shelf.here(&mine), None, "half of one is none");
        finish(&shelf.folder(&mine)).unwrap();
        assert!(shelf.here(&mine).is_some());
    }

    #[test]
    fn a_newer_list_adds_and_replaces_and_one_that_is_here_stays() {
        let (_dir, shelf) = shelf();
        let before = shelf.listed().len();
        let list = |agents: Value| json!({"agents": agents}).to_string();
        shelf
            .keep(&list(json!([
                one("mine", "1.0.0"),
                one("gemini", "99.0.0"),
                one("cline", "0.1.0")
            ])))
            .unwrap();
        assert_eq!(shelf.listed().len(), before + 1);
        assert_eq!(shelf.find("gemini").unwrap().version, "99.0.0");
        assert_eq!(
            shelf.find("gemini").unwrap().program.as_deref(),
            Some("gemini")
        );
        assert_ne!(
            shelf.find("cline").unwrap().version,
            "0.1.0",
            "ours is newer"
        );
        put(&shelf, "mine");
        shelf.keep(&list(json!([one("else", "1.0.0")]))).unwrap();
        assert!(shelf.find("mine").is_some() && shelf.find("else").is_some());
    }

    #[test]
    fn a_bad_list_changes_nothing_and_a_broken_file_is_as_good_as_none() {
        let (dir, shelf) = shelf();
        shelf
            .keep(&json!({"agents": [one("mine", "1.0.0")]}).to_string())
            .unwrap();
        assert!(shelf.keep("{").is_err());
        assert!(shelf.find("mine").is_some());
        std::fs::write(dir.path().join(AGENTS_FILE), "{").unwrap();
        let again = Shelf::new(dir.path());
        assert!(again.find("mine").is_none() && again.find("gemini").is_some());
    }
}
