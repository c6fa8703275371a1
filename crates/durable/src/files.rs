//! Durable operations on private files: atomic replacement, rename, setting aside.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::ownership;

const PRIVATE_FILE: u32 = 0o600;
/// Mode of a directory that only its owner may use.
pub const PRIVATE_DIRECTORY: u32 = 0o700;
/// Suffix of a temporary file that is about to replace another file.
pub const TEMPORARY: &str = ".tmp";
/// Separates the name of a file that was set aside from the time.
pub const SET_ASIDE: &str = ".unreadable-";

/// Creates a private directory and its missing parents, durably. An existing directory is left unchanged.
pub fn create_private_dir(path: &Path) -> io::Result<()> {
    let create = || DirBuilder::new().mode(PRIVATE_DIRECTORY).create(path);
    let created = create().or_else(|error| match (error.kind(), path.parent()) {
        (io::ErrorKind::NotFound, Some(parent)) if !parent.as_os_str().is_empty() => {
            create_private_dir(parent)?;
            create()
        }
        _ => Err(error),
    });
    match created {
        Ok(()) => {
            // The umask reduces the mode above.
            fs::set_permissions(path, Permissions::from_mode(PRIVATE_DIRECTORY))?;
            match sync_directory_of(path) {
                // A directory can be writable without being readable; then it cannot be opened for a sync.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
                synced => synced,
            }
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) => Err(error),
    }
}

/// Replaces the file's content atomically and durably. After a crash or an error the file has the old or the new
/// content.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    // If the directory is replaced after this check, the rename fails because the temporary file is missing.
    ownership::check(path)?;
    let temporary = beside(path, TEMPORARY);
    let written = write_synced(&temporary, content).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written?;
    sync_directory_of(path)
}

/// Writes a private file and syncs its content, but not its name. An existing file is truncated first.
pub fn write_synced(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(PRIVATE_FILE)
        .open(path)?;
    // The mode above is reduced by the umask, and has no effect on an existing file.
    file.set_permissions(Permissions::from_mode(PRIVATE_FILE))?;
    file.write_all(content)?;
    file.sync_all()
}

/// Opens a private file for reading and writing without changing its content. Creates it if it is missing.
pub fn open_private(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(PRIVATE_FILE)
        .open(path)?;
    file.set_permissions(Permissions::from_mode(PRIVATE_FILE))?;
    Ok(file)
}

/// Restricts a file to its owner.
pub fn make_private(path: &Path) -> io::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(PRIVATE_FILE))
}

/// Sets a file aside: renames it durably without changing its content. Returns the new path.
pub fn set_aside(path: &Path) -> io::Result<PathBuf> {
    let stamp = jiff::Timestamp::now()
        .strftime("%Y%m%dT%H%M%SZ")
        .to_string();
    ownership::check(path)?;
    let mut aside = beside(path, &format!("{SET_ASIDE}{stamp}"));
    let mut number = 2;
    while aside.symlink_metadata().is_ok() {
        aside = beside(path, &format!("{SET_ASIDE}{stamp}-{number}"));
        number += 1;
    }
    fs::rename(path, &aside)?;
    sync_directory_of(path)?;
    Ok(aside)
}

/// Adds a hard link beside the file, so that the content is kept when the file is removed. Returns the link's path.
pub fn keep_beside(path: &Path) -> io::Result<PathBuf> {
    let stamp = jiff::Timestamp::now().as_millisecond();
    let kept = beside(path, &format!("{SET_ASIDE}{stamp}"));
    fs::hard_link(path, &kept)?;
    Ok(kept)
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().map(OsString::from).unwrap_or_default();
    name.push(suffix);
    path.with_file_name(name)
}

/// Renames a file durably. Fails with `AlreadyExists` if there is a file at `to`.
pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    ownership::check(to)?;
    rename_no_replace(from, to)?;
    // The new directory first: a power cut between the two syncs leaves both names instead of none.
    sync_directory_of(to)?;
    match from.parent() == to.parent() {
        true => Ok(()),
        false => sync_directory_of(from),
    }
}

#[cfg(target_os = "linux")]
fn rename_no_replace(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use rustix::io::Errno;
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // The file system does not support the flag.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => rename_if_absent(from, to),
        renamed => Ok(renamed?),
    }
}

#[cfg(not(target_os = "linux"))]
fn rename_no_replace(from: &Path, to: &Path) -> io::Result<()> {
    rename_if_absent(from, to)
}

/// Not atomic, but only this server writes to the data directory, so no file appears between the check and the rename.
fn rename_if_absent(from: &Path, to: &Path) -> io::Result<()> {
    match to.symlink_metadata() {
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => fs::rename(from, to),
    }
}

/// Syncs the directory of a file, so that its creation, rename or removal is durable.
pub fn sync_directory_of(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(directory) if directory.as_os_str().is_empty() => File::open(".")?.sync_all(),
        Some(directory) => File::open(directory)?.sync_all(),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replace_leaves_a_private_file_and_no_temporary_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.json");
        fs::write(&path, "old").unwrap();
        replace(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn files_set_aside_within_one_second_are_all_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.json");
        for content in ["one", "two", "three"] {
            fs::write(&path, content).unwrap();
            let aside = set_aside(&path).unwrap();
            assert_eq!(fs::read_to_string(aside).unwrap(), content);
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3);
    }
}
