//! A state of the data directory after a power cut.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::{Result, ensure};

use crate::power_cut::disk::{Change, Disk, Node, Operation, Origin};

/// Maximum size of a state, far larger than any recording, so that a mistake in a model does not fill the disk.
const STATE_BYTES_MAX: u64 = 512 * 1024 * 1024;

#[derive(Debug, Clone)]
pub(crate) struct Content {
    pub(crate) bytes: Vec<u8>,
    pub(crate) time: SystemTime,
}

impl Default for Content {
    fn default() -> Self {
        Self::new(vec![], SystemTime::UNIX_EPOCH)
    }
}

impl Content {
    pub(crate) fn new(bytes: Vec<u8>, time: SystemTime) -> Self {
        Self { bytes, time }
    }

    pub(crate) fn write(&mut self, at: u64, bytes: &[u8], time: SystemTime) {
        let (begin, end) = (at as usize, at as usize + bytes.len());
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes[begin..end].copy_from_slice(bytes);
        self.time = time;
    }

    pub(crate) fn apply(&mut self, operation: &Operation) {
        match &operation.change {
            Change::Write { at, bytes, .. } => self.write(*at, bytes, operation.time),
            Change::Length { length, .. } => {
                self.bytes.resize(*length as usize, 0);
                self.time = operation.time;
            }
            Change::Names(_) => {}
        }
    }
}

/// Files and folders by their path relative to the data directory, if that exists.
#[derive(Debug)]
pub(crate) struct State {
    is_there: bool,
    folders: Vec<PathBuf>,
    files: BTreeMap<PathBuf, (Node, Arc<Content>)>,
}

impl State {
    pub(crate) fn new(
        disk: &Disk,
        names: &BTreeMap<(Node, String), Node>,
        contents: BTreeMap<Node, Arc<Content>>,
    ) -> Self {
        let data_dir = disk.data_dir_in(names);
        let mut state = Self {
            is_there: data_dir.is_some(),
            folders: vec![],
            files: BTreeMap::new(),
        };
        let mut left: Vec<(Node, PathBuf)> = vec![];
        left.extend(data_dir.map(|node| (node, PathBuf::new())));
        while let Some((folder, path)) = left.pop() {
            let inside = names.range((folder, String::new())..(folder + 1, String::new()));
            for ((_, name), node) in inside {
                let path = path.join(name);
                if matches!(disk.origins[*node], Origin::Folder) {
                    state.folders.push(path.clone());
                    left.push((*node, path));
                } else {
                    let content = contents.get(node).cloned().unwrap_or_default();
                    state.files.insert(path, (*node, content));
                }
            }
        }
        state.folders.sort();
        state
    }

    /// A hash that is equal for states a server cannot distinguish.
    pub(crate) fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.is_there.hash(&mut hasher);
        self.folders.hash(&mut hasher);
        for (path, (node, content)) in &self.files {
            path.hash(&mut hasher);
            content.bytes.hash(&mut hasher);
            let links = self.files.values().filter(|(other, _)| other == node);
            links.count().hash(&mut hasher);
        }
        hasher.finish()
    }

    /// Writes the state to a path that must not exist yet.
    pub(crate) fn put(&self, data_dir: &Path) -> Result<()> {
        if !self.is_there {
            return Ok(());
        }
        let bytes = |(_, content): &(Node, Arc<Content>)| content.bytes.len() as u64;
        let total: u64 = self.files.values().map(bytes).sum();
        ensure!(total <= STATE_BYTES_MAX, "a state of {total} bytes");
        fs::create_dir(data_dir)?;
        for folder in &self.folders {
            fs::create_dir(data_dir.join(folder))?;
        }
        let mut written: HashMap<Node, PathBuf> = HashMap::new();
        for (path, (node, content)) in &self.files {
            let path = data_dir.join(path);
            if let Some(other) = written.get(node) {
                fs::hard_link(other, &path)?;
                continue;
            }
            fs::write(&path, &content.bytes)?;
            File::options()
                .write(true)
                .open(&path)?
                .set_modified(content.time)?;
            written.insert(*node, path);
        }
        Ok(())
    }

    /// Whether the state has a non-empty live log.
    pub(crate) fn has_live_log(&self) -> bool {
        let is_live = |path: &PathBuf| path.to_string_lossy().ends_with(".live.jsonl");
        let mut files = self.files.iter();
        files.any(|(path, (_, content))| is_live(path) && !content.bytes.is_empty())
    }

    /// The content of a file, `None` if it is missing.
    pub(crate) fn content(&self, path: &str) -> Option<&[u8]> {
        let (_, content) = self.files.get(Path::new(path))?;
        Some(&content.bytes)
    }

    /// Each file with its length, number of zero bytes, and whether its last line is torn.
    pub(crate) fn describe(&self) -> String {
        let mut text = String::new();
        for (path, (_, content)) in &self.files {
            let bytes = &content.bytes;
            let zeros = bytes.iter().filter(|byte| **byte == 0).count();
            let torn = bytes.last().is_some_and(|last| *last != b'\n');
            let end = if torn { ", no line end" } else { "" };
            let zeros = match zeros {
                0 => String::new(),
                zeros => format!(", {zeros} zeros"),
            };
            text += &format!(
                "\n    {} ({} bytes{zeros}{end})",
                path.display(),
                bytes.len()
            );
        }
        text
    }
}
