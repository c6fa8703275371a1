//! Tests of the crash models on small simulated disks.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Result;

use crate::power_cut::crash_models::{Cut, Model};
use crate::power_cut::disk::{Disk, Place};
use crate::power_cut::state::State;

const DATA_DIR: &str = "/home/of/data";
const CHOICES: usize = 60;

/// A disk with an empty, durable data directory.
struct Small(Disk);

impl Small {
    fn new() -> Result<Self> {
        let mut disk = Disk::scan(Path::new(DATA_DIR))?;
        disk.made_folder(Path::new(DATA_DIR), SystemTime::UNIX_EPOCH)?;
        let mut small = Self(disk);
        small.sync("/home/of")?;
        Ok(small)
    }

    fn path(name: &str) -> PathBuf {
        Path::new(DATA_DIR).join(name)
    }

    fn place(name: &str) -> Place {
        Place {
            path: Self::path(name),
            deleted: false,
        }
    }

    fn folder(&mut self, name: &str) -> Result<()> {
        self.0
            .made_folder(&Self::path(name), SystemTime::UNIX_EPOCH)
    }

    fn append(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        let now = SystemTime::UNIX_EPOCH;
        self.0
            .opened(&Self::path(name), "O_WRONLY|O_CREAT|O_APPEND", now)?;
        self.0.wrote(&Self::place(name), None, bytes, now)
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<()> {
        self.0
            .renamed(&Self::path(from), &Self::path(to), SystemTime::UNIX_EPOCH)
    }

    /// A sync that covers all operations so far.
    fn sync(&mut self, name: &str) -> Result<()> {
        let before = self.0.operations.len();
        self.0.synced(&Self::place(name), before)
    }

    /// The states that a cut at this moment may leave.
    fn left(&self, model: Model) -> Vec<State> {
        let cut = Cut::new(&self.0, self.0.steps.len(), model, false);
        (0..CHOICES)
            .map(|number| cut.state(&cut.choice(number, 1)))
            .collect()
    }

    /// The distinct contents that a file may have after a cut; `None` if the file may be missing.
    fn may_be(&self, model: Model, name: &str) -> Vec<Option<String>> {
        let text = |state: State| {
            let content = state.content(name)?;
            Some(String::from_utf8_lossy(content).into_owned())
        };
        let mut found: Vec<_> = self.left(model).into_iter().map(text).collect();
        found.sort();
        found.dedup();
        found
    }
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn unsynced_append_leaves_a_prefix_or_zeros_depending_on_the_model() -> Result<()> {
    let mut disk = Small::new()?;
    disk.append("log", b"ab")?;
    disk.sync("log")?;
    disk.sync("")?;
    disk.append("log", b"cd")?;
    let all = ["ab", "abc", "abcd"].map(some);
    assert_eq!(disk.may_be(Model::Ordered, "log"), all);
    assert_eq!(disk.may_be(Model::Strict, "log"), ["ab", "abcd"].map(some));
    let zeros = ["ab", "ab\0\0", "abc", "abcd"].map(some);
    assert_eq!(disk.may_be(Model::Zeros, "log"), zeros);
    disk.sync("log")?;
    for model in Model::ALL {
        assert_eq!(disk.may_be(model, "log"), [some("abcd")]);
    }
    Ok(())
}

#[test]
fn name_of_a_synced_file_is_durable_once_its_folder_is_synced() -> Result<()> {
    let mut disk = Small::new()?;
    disk.append("new", b"text")?;
    disk.sync("new")?;
    assert_eq!(disk.may_be(Model::Ordered, "new"), [some("text")]);
    assert_eq!(disk.may_be(Model::Strict, "new"), [None, some("text")]);
    disk.sync("")?;
    assert_eq!(disk.may_be(Model::Strict, "new"), [some("text")]);
    Ok(())
}

#[test]
fn sync_commits_earlier_names_but_not_the_data_of_other_files() -> Result<()> {
    let mut disk = Small::new()?;
    disk.append("first", b"text")?;
    disk.append("second", b"text")?;
    disk.sync("second")?;
    let first = disk.may_be(Model::Ordered, "first");
    assert!(
        first.contains(&some("")) && first.contains(&some("text")),
        "{first:?}"
    );
    assert!(!first.contains(&None), "{first:?}");
    Ok(())
}

#[test]
fn sync_covers_only_operations_before_it_began() -> Result<()> {
    let mut disk = Small::new()?;
    disk.append("log", b"one")?;
    let before = disk.0.operations.len();
    disk.append("log", b"two")?;
    disk.0.synced(&Small::place("log"), before)?;
    disk.0.synced(&Small::place(""), before)?;
    let strict = disk.may_be(Model::Strict, "log");
    assert_eq!(strict, ["one", "onetwo"].map(some));
    Ok(())
}

#[test]
fn replaced_file_has_the_old_or_the_new_content() -> Result<()> {
    let mut disk = Small::new()?;
    disk.append("list", b"old")?;
    disk.sync("list")?;
    disk.sync("")?;
    disk.append("list.tmp", b"new")?;
    disk.sync("list.tmp")?;
    disk.rename("list.tmp", "list")?;
    for model in Model::ALL {
        assert_eq!(disk.may_be(model, "list"), ["new", "old"].map(some));
    }
    disk.sync("")?;
    for model in Model::ALL {
        assert_eq!(disk.may_be(model, "list"), [some("new")]);
    }
    Ok(())
}

#[test]
fn file_moved_between_folders_is_in_one_of_them() -> Result<()> {
    let mut disk = Small::new()?;
    disk.folder("here")?;
    disk.folder("there")?;
    disk.append("here/file", b"text")?;
    for name in ["here/file", "here", ""] {
        disk.sync(name)?;
    }
    disk.rename("here/file", "there/file")?;
    disk.sync("here")?;
    for model in Model::ALL {
        for state in disk.left(model) {
            let (old, new) = (state.content("here/file"), state.content("there/file"));
            assert!(old.is_none() && new == Some(b"text"), "{state:?}");
        }
    }
    Ok(())
}

#[test]
fn disk_that_ignores_syncs_may_lose_everything_recorded() -> Result<()> {
    let mut disk = Small::new()?;
    disk.append("log", b"text")?;
    disk.sync("log")?;
    disk.sync("")?;
    let cut = Cut::new(&disk.0, disk.0.steps.len(), Model::Ordered, true);
    assert_eq!(cut.state(&cut.choice(0, 1)).content("log"), None);
    assert_eq!(
        cut.state(&cut.choice(1, 1)).content("log"),
        Some(&b"text"[..])
    );
    Ok(())
}
