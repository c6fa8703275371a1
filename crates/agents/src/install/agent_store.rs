//! Installed agents: one directory each below `agents/` in the data directory.
//!
//! Nothing else is recorded: each lookup reads the directory, so that an agent installed by hand with the shown command
//! is found like one installed by this server.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use serde_json::Value;

use super::listing::{self, LIST_BYTES_MAX, Listed, Refreshed, Source};
use durable::ownership;

/// File of the fetched list of agents and folder of the installed agents, both in the data directory.
const AGENTS_FILE: &str = "agents.json";
const AGENTS_FOLDER: &str = "agents";
/// A marker file in the directory of an unfinished installation. An agent in a directory with this file is not started.
const UNFINISHED: &str = ".unfinished";
const MANIFEST_BYTES_MAX: u64 = 1024 * 1024;

type List = Arc<Vec<Arc<Listed>>>;

/// The list of agents, and those installed in a data directory.
#[derive(Debug)]
pub(crate) struct AgentStore {
    data_dir: PathBuf,
    /// The cached list, with the modification time of the file it was read from.
    cached: Mutex<Option<(Option<SystemTime>, List)>>,
}

/// An installed agent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Installed {
    pub program: PathBuf,
    pub args: Vec<String>,
    pub version: Option<String>,
    /// The range of Node versions it requires.
    pub node: Option<String>,
}

impl AgentStore {
    pub(crate) fn new(data_dir: &Path) -> Self {
        Self {
            data_dir: data_dir.to_owned(),
            cached: Mutex::default(),
        }
    }

    /// The shipped list merged with the fetched one.
    pub(crate) fn listed(&self) -> List {
        let path = self.data_dir.join(AGENTS_FILE);
        let stamp = path.metadata().and_then(|file| file.modified()).ok();
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((read, list)) = &*cached
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
        *cached = Some((stamp, list.clone()));
        list
    }

    /// The listed agent with this catalog id.
    pub(crate) fn find(&self, cli_type: &str) -> Option<Arc<Listed>> {
        let list = self.listed();
        list.iter()
            .find(|listed| listing::our_id(&listed.id) == cli_type)
            .cloned()
    }

    /// Replaces the fetched list by a newer one. Installed agents stay in the list.
    pub(crate) fn replace_list(&self, text: &str) -> Result<Refreshed, String> {
        let (mut agents, left_out) = listing::read(text)?;
        for known in self.listed().iter() {
            let gone = agents.iter().all(|agent| agent.id != known.id);
            if gone && self.installed(known).is_some() {
                agents.push(Listed::clone(known));
            }
        }
        durable::replace(
            &self.data_dir.join(AGENTS_FILE),
            listing::write(&agents).as_bytes(),
        )
        .map_err(|error| format!("it could not be saved: {error}"))?;
        *self.cached.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(Refreshed {
            agents: agents.len(),
            left_out,
        })
    }

    pub(crate) fn folder(&self, listed: &Listed) -> PathBuf {
        self.data_dir
            .join(AGENTS_FOLDER)
            .join(listing::our_id(&listed.id))
    }

    /// How to start the agent, if it is installed.
    pub(crate) fn installed(&self, listed: &Listed) -> Option<Installed> {
        let folder = self.folder(listed);
        if !folder.is_dir() || folder.join(UNFINISHED).exists() {
            return None;
        }
        listed
            .sources
            .iter()
            .find_map(|source| found(&folder, listed, source))
    }
}

/// Marks a directory as unfinished until `finish`.
pub(super) fn begin(folder: &Path) -> std::io::Result<()> {
    ownership::check(folder)?;
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join(UNFINISHED), "")
}

pub(super) fn finish(folder: &Path) -> std::io::Result<()> {
    std::fs::remove_file(folder.join(UNFINISHED))
}

/// The directories of the tools and the programs of an agent from PyPI.
pub(super) fn uv_folders(folder: &Path) -> (PathBuf, PathBuf) {
    (folder.join("tools"), folder.join("bin"))
}

/// The directory into which an archive is unpacked.
pub(super) fn unpacked(folder: &Path) -> PathBuf {
    folder.join("files")
}

fn found(folder: &Path, listed: &Listed, source: &Source) -> Option<Installed> {
    let (program, version, node) = match source {
        Source::Npm(package) => {
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
        Source::Uv(package) => {
            let command = listed.program.as_deref().unwrap_or(&package.name);
            (uv_folders(folder).1.join(command), None, None)
        }
        Source::Binary(binary) => (unpacked(folder).join(&binary.program), None, None),
    };
    super::super::catalog::is_executable(&program).then(|| Installed {
        program,
        args: source.args().to_owned(),
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

/// The command of an npm package that starts the agent: the listed one, else the one named like the package or the
/// agent, else the first one.
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

/// The fetched list; empty if it cannot be read, because it can be fetched again.
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
            tracing::warn!(path = %path.display(), "cannot read the list of agents; using the shipped one");
            vec![]
        }
    }
}

/// All agents of both lists. Of two entries for one agent the newer is used, completed by fields of the shipped list.
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

    fn agents() -> (tempfile::TempDir, AgentStore) {
        let dir = tempfile::tempdir().unwrap();
        let agents = AgentStore::new(dir.path());
        (dir, agents)
    }

    fn put(agents: &AgentStore, id: &str) {
        let folder = agents.folder(&agents.find(id).unwrap());
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
    fn agent_is_installed_when_its_folder_is_complete() {
        let (_dir, agents) = agents();
        agents
            .replace_list(&json!({"agents": [one("mine", "1.0.0")]}).to_string())
            .unwrap();
        let mine = agents.find("mine").unwrap();
        assert_eq!(agents.installed(&mine), None);
        put(&agents, "mine");
        let installed = agents.installed(&mine).unwrap();
        assert!(
            installed
                .program
                .ends_with("agents/mine/node_modules/.bin/mine")
        );
        assert_eq!(
            (installed.version.as_deref(), installed.node.as_deref()),
            (Some("9.9.9"), Some(">=30"))
        );
        begin(&agents.folder(&mine)).unwrap();
        assert_eq!(
            agents.installed(&mine),
            None,
            "an unfinished installation is not used"
        );
        finish(&agents.folder(&mine)).unwrap();
        assert!(agents.installed(&mine).is_some());
    }

    #[test]
    fn newer_list_adds_and_replaces_agents_and_keeps_installed_ones() {
        let (_dir, agents) = agents();
        let before = agents.listed().len();
        let list = |agents: Value| json!({"agents": agents}).to_string();
        agents
            .replace_list(&list(json!([
                one("mine", "1.0.0"),
                one("gemini", "99.0.0"),
                one("cline", "0.1.0")
            ])))
            .unwrap();
        assert_eq!(agents.listed().len(), before + 1);
        assert_eq!(agents.find("gemini").unwrap().version, "99.0.0");
        assert_eq!(
            agents.find("gemini").unwrap().program.as_deref(),
            Some("gemini")
        );
        assert_ne!(
            agents.find("cline").unwrap().version,
            "0.1.0",
            "the shipped entry is newer"
        );
        put(&agents, "mine");
        agents
            .replace_list(&list(json!([one("else", "1.0.0")])))
            .unwrap();
        assert!(agents.find("mine").is_some() && agents.find("else").is_some());
    }

    #[test]
    fn invalid_list_is_rejected_and_an_unreadable_file_is_ignored() {
        let (dir, agents) = agents();
        agents
            .replace_list(&json!({"agents": [one("mine", "1.0.0")]}).to_string())
            .unwrap();
        assert!(agents.replace_list("{").is_err());
        assert!(agents.find("mine").is_some());
        std::fs::write(dir.path().join(AGENTS_FILE), "{").unwrap();
        let again = AgentStore::new(dir.path());
        assert!(again.find("mine").is_none() && again.find("gemini").is_some());
    }
}
