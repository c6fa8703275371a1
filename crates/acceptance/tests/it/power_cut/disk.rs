//! A log of all operations on the files, folders and names of the data directory, and of the syncs between them.
//!
//! Pure except for `scan`. A node is a file or a folder, independent of its path. Only the data directory and its own
//! name are modelled.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::{Context, Result, bail};

pub(crate) type Node = usize;

/// The folder that contains the data directory.
pub(crate) const TOP: Node = 0;

/// An entry of a folder, and the node it refers to after a change.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Name {
    pub(crate) folder: Node,
    pub(crate) name: String,
    pub(crate) leads_to: Option<Node>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Change {
    /// Names that change atomically. A move between folders lists the new name first.
    Names(Vec<Name>),
    Write {
        file: Node,
        at: u64,
        bytes: Arc<[u8]>,
    },
    Length {
        file: Node,
        length: u64,
    },
}

#[derive(Debug)]
pub(crate) struct Operation {
    pub(crate) change: Change,
    pub(crate) time: SystemTime,
    /// Short description of the system call.
    pub(crate) call: String,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    /// The operation with this number was done.
    Done(usize),
    /// A finished sync of the node, which covers the operations before this number.
    Synced { node: Node, before: usize },
}

/// Kind of a node, and its content when the recording began.
#[derive(Debug)]
pub(crate) enum Origin {
    Folder,
    File(Arc<[u8]>, SystemTime),
    /// A file created during the recording.
    New,
}

#[derive(Debug)]
pub(crate) struct Disk {
    top: PathBuf,
    data_dir: PathBuf,
    pub(crate) origins: Vec<Origin>,
    pub(crate) first_names: BTreeMap<(Node, String), Node>,
    pub(crate) operations: Vec<Operation>,
    pub(crate) steps: Vec<Step>,
    /// The names as processes see them now.
    names: BTreeMap<(Node, String), Node>,
    /// The nodes of paths that were unlinked, renamed or replaced.
    gone: HashMap<PathBuf, Node>,
    open: HashMap<Node, Opened>,
}

/// State of a file that is open for writing. The server never writes a file through two descriptors at once.
#[derive(Debug, Default, Clone, Copy)]
struct Opened {
    length: u64,
    appends: bool,
    offset: u64,
}

/// The file of an open descriptor, as `/proc` prints it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Place {
    pub(crate) path: PathBuf,
    pub(crate) deleted: bool,
}

impl Disk {
    /// Reads the data directory as it is now; all of it counts as durable.
    pub(crate) fn scan(data_dir: &Path) -> Result<Self> {
        let top = data_dir.parent().context("expected a parent")?.to_owned();
        let mut disk = Self {
            top,
            data_dir: data_dir.to_owned(),
            origins: vec![Origin::Folder],
            first_names: BTreeMap::new(),
            operations: vec![],
            steps: vec![],
            names: BTreeMap::new(),
            gone: HashMap::new(),
            open: HashMap::new(),
        };
        if data_dir.exists() {
            disk.read(TOP, data_dir, &mut HashMap::new())?;
        }
        disk.names = disk.first_names.clone();
        Ok(disk)
    }

    fn read(&mut self, folder: Node, path: &Path, known: &mut HashMap<u64, Node>) -> Result<()> {
        use std::os::unix::fs::MetadataExt;
        let metadata = path.symlink_metadata()?;
        let node = *known.entry(metadata.ino()).or_insert(self.origins.len());
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.context("expected a name")?.to_owned();
        self.first_names.insert((folder, name), node);
        if node < self.origins.len() {
            return Ok(());
        }
        if metadata.is_dir() {
            self.origins.push(Origin::Folder);
            for entry in std::fs::read_dir(path)? {
                self.read(node, &entry?.path(), known)?;
            }
        } else {
            let bytes: Arc<[u8]> = std::fs::read(path)?.into();
            let opened = self.open.entry(node).or_default();
            opened.length = bytes.len() as u64;
            self.origins.push(Origin::File(bytes, metadata.modified()?));
        }
        Ok(())
    }

    /// Whether the path is part of the model.
    pub(crate) fn has(&self, path: &Path) -> bool {
        path.starts_with(&self.data_dir)
    }

    /// The path relative to the data directory, for reports.
    fn short(&self, path: &Path) -> String {
        match path.strip_prefix(&self.data_dir) {
            Ok(short) if short != Path::new("") => short.display().to_string(),
            _ => "the data directory".to_owned(),
        }
    }

    fn folder_and_name(&self, path: &Path) -> Result<(Node, String)> {
        let parent = path.parent().context("expected a parent")?;
        let folder = self.at(parent).with_context(|| format!("no {parent:?}"))?;
        let name = path.file_name().and_then(|name| name.to_str());
        Ok((folder, name.context("expected a name")?.to_owned()))
    }

    fn at(&self, path: &Path) -> Option<Node> {
        let rest = path.strip_prefix(&self.top).ok()?;
        rest.iter().try_fold(TOP, |folder, name| {
            let name = name.to_str()?.to_owned();
            self.names.get(&(folder, name)).copied()
        })
    }

    fn of(&self, place: &Place) -> Result<Node> {
        let found = match place.deleted {
            true => self.gone.get(&place.path).copied(),
            // Another thread may have renamed the file after the call began.
            false => (self.at(&place.path)).or_else(|| self.gone.get(&place.path).copied()),
        };
        found.with_context(|| format!("unknown file {place:?}"))
    }

    fn done(&mut self, change: Change, time: SystemTime, call: String) {
        self.steps.push(Step::Done(self.operations.len()));
        self.operations.push(Operation { change, time, call });
    }

    fn name(&mut self, names: Vec<Name>, time: SystemTime, call: String) {
        for Name {
            folder,
            name,
            leads_to,
        } in &names
        {
            let key = (*folder, name.clone());
            match leads_to {
                Some(node) => self.names.insert(key, *node),
                None => self.names.remove(&key),
            };
        }
        self.done(Change::Names(names), time, call);
    }

    /// Records that a file was opened, and created if it did not exist.
    pub(crate) fn opened(&mut self, path: &Path, flags: &str, time: SystemTime) -> Result<()> {
        let has = |flag: &str| flags.split('|').any(|one| one == flag);
        let node = match self.at(path) {
            Some(node) => node,
            None if has("O_CREAT") => self.make(path, Origin::New, time)?,
            None => bail!("{path:?} was opened but is unknown"),
        };
        if !(has("O_WRONLY") || has("O_RDWR")) {
            return Ok(());
        }
        let opened = self.open.entry(node).or_default();
        opened.appends = has("O_APPEND");
        opened.offset = 0;
        if has("O_TRUNC") && opened.length > 0 {
            let place = Place {
                path: path.to_owned(),
                deleted: false,
            };
            self.shortened(&place, 0, time)?;
        }
        Ok(())
    }

    pub(crate) fn made_folder(&mut self, path: &Path, time: SystemTime) -> Result<()> {
        self.make(path, Origin::Folder, time).map(drop)
    }

    fn make(&mut self, path: &Path, origin: Origin, time: SystemTime) -> Result<Node> {
        let (folder, name) = self.folder_and_name(path)?;
        let node = self.origins.len();
        let call = match origin {
            Origin::Folder => "mkdir",
            Origin::New | Origin::File(..) => "create",
        };
        self.origins.push(origin);
        let leads_to = Some(node);
        let call = format!("{call} {}", self.short(path));
        let name = Name {
            folder,
            name,
            leads_to,
        };
        self.name(vec![name], time, call);
        Ok(node)
    }

    pub(crate) fn moved_to(&mut self, place: &Place, offset: u64) -> Result<()> {
        let node = self.of(place)?;
        self.open.entry(node).or_default().offset = offset;
        Ok(())
    }

    /// Records a write, at the given offset or at the descriptor's position.
    pub(crate) fn wrote(
        &mut self,
        place: &Place,
        at: Option<u64>,
        bytes: &[u8],
        time: SystemTime,
    ) -> Result<()> {
        let file = self.of(place)?;
        let opened = self.open.entry(file).or_default();
        let begin = match at {
            Some(at) => at,
            None if opened.appends => opened.length,
            None => opened.offset,
        };
        let end = begin + bytes.len() as u64;
        if at.is_none() {
            opened.offset = end;
        }
        opened.length = opened.length.max(end);
        let call = format!(
            "write {} at {begin} of {}",
            bytes.len(),
            self.short(&place.path)
        );
        let change = Change::Write {
            file,
            at: begin,
            bytes: bytes.into(),
        };
        self.done(change, time, call);
        Ok(())
    }

    pub(crate) fn shortened(&mut self, place: &Place, length: u64, time: SystemTime) -> Result<()> {
        let file = self.of(place)?;
        self.open.entry(file).or_default().length = length;
        let call = format!("truncate {} to {length}", self.short(&place.path));
        self.done(Change::Length { file, length }, time, call);
        Ok(())
    }

    pub(crate) fn linked(&mut self, from: &Path, to: &Path, time: SystemTime) -> Result<()> {
        let leads_to = Some(self.at(from).with_context(|| format!("no {from:?}"))?);
        let (folder, name) = self.folder_and_name(to)?;
        let call = format!("link {} to {}", self.short(from), self.short(to));
        let name = Name {
            folder,
            name,
            leads_to,
        };
        self.name(vec![name], time, call);
        Ok(())
    }

    pub(crate) fn renamed(&mut self, from: &Path, to: &Path, time: SystemTime) -> Result<()> {
        let node = self.at(from).with_context(|| format!("no {from:?}"))?;
        self.forget(to);
        let (folder, name) = self.folder_and_name(to)?;
        let (old_folder, old_name) = self.folder_and_name(from)?;
        let call = format!("rename {} to {}", self.short(from), self.short(to));
        let is_now = Name {
            folder,
            name,
            leads_to: Some(node),
        };
        let was = Name {
            folder: old_folder,
            name: old_name,
            leads_to: None,
        };
        self.name(vec![is_now, was], time, call);
        // A call in progress still prints the old path for its descriptor.
        self.gone.insert(from.to_owned(), node);
        Ok(())
    }

    pub(crate) fn unlinked(&mut self, path: &Path, time: SystemTime) -> Result<()> {
        self.forget(path);
        let (folder, name) = self.folder_and_name(path)?;
        let call = format!("unlink {}", self.short(path));
        let name = Name {
            folder,
            name,
            leads_to: None,
        };
        self.name(vec![name], time, call);
        Ok(())
    }

    fn forget(&mut self, path: &Path) {
        if let Some(node) = self.at(path) {
            self.gone.insert(path.to_owned(), node);
        }
    }

    /// Records the end of a sync that began after `before` operations.
    pub(crate) fn synced(&mut self, place: &Place, before: usize) -> Result<()> {
        let node = self.of(place)?;
        self.steps.push(Step::Synced { node, before });
        Ok(())
    }

    /// The data directory's node in a set of names.
    pub(crate) fn data_dir_in(&self, names: &BTreeMap<(Node, String), Node>) -> Option<Node> {
        let name = self.data_dir.file_name()?.to_str()?.to_owned();
        names.get(&(TOP, name)).copied()
    }

    /// Short description of a step.
    pub(crate) fn describe(&self, step: Step) -> String {
        match step {
            Step::Done(number) => self.operations[number].call.clone(),
            Step::Synced { node, .. } => format!("sync {}", self.path_of(node)),
        }
    }

    /// The path of a node, or the last name it had.
    fn path_of(&self, node: Node) -> String {
        let mut path = vec![];
        let mut at = node;
        while let Some(((folder, name), _)) = self.names.iter().find(|(_, to)| **to == at) {
            path.insert(0, name.as_str());
            at = *folder;
            if at == TOP {
                break;
            }
        }
        match path.split_first() {
            None if node == TOP => "the folder of the data directory".to_owned(),
            None => self.last_name_of(node),
            Some((_, [])) => "the data directory".to_owned(),
            Some((_, rest)) => rest.join("/"),
        }
    }

    fn last_name_of(&self, node: Node) -> String {
        let names = self.operations.iter().rev();
        let mut names = names.filter_map(|operation| match &operation.change {
            Change::Names(names) => Some(names),
            Change::Write { .. } | Change::Length { .. } => None,
        });
        let last = names.find_map(|names| names.iter().find(|name| name.leads_to == Some(node)));
        last.map_or_else(|| format!("file {node}"), |name| name.name.clone())
    }
}
