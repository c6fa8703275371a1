//! Files of a data directory, as a test compares them.

use std::path::{Path, PathBuf};

use anyhow::Result;

/// Every file in a folder with its content, at any depth.
pub fn files_in(folder: &Path) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    let mut files = vec![];
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        match path.is_dir() {
            true => files.extend(files_in(&path)?),
            false => files.push((path.clone(), std::fs::read(&path)?)),
        }
    }
    Ok(files)
}
