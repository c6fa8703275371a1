//! Private files that survive a crash: replaced whole, renamed durably, set aside.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::ownership;

const PRIVATE_FILE: u32 = 0o600;
pub const PRIVATE_DIRECTORY: u32 = 0o700;
/// Ends the name of a file that is about to replace another.
pub const TEMPORARY: &str = ".tmp";
/// Stands between the name of a file that was set aside and the time of that.
pub const SET_ASIDE: &str = ".unreadable-";

/// Creates a private directory and its missing parents; an existing one is left as it is. After `Ok` their names are on disk.
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
            // The mode above is cut by the umask.
            fs::set_permissions(path, Permissions::from_mode(PRIVATE_DIRECTORY))?;
            match sync_directory_of(path) {
                // Who may create a name in a directory may still not be allowed to open it.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
                synced => synced,
            }
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) => Err(error),
    }
}

/// Replaces the file's content, durably. After a crash or an error the file is the old one or the new one, whole.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    // If the directory is exchanged after this, the temporary file is not there to be renamed.
    ownership::check(path)?;
    let temporary = beside(path, TEMPORARY);
    let written = write_new(&temporary, content).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written?;
    sync_directory_of(path)
}

fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
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

/// Opens a private file for reading and writing, creating it if need be, its content untouched.
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

/// Renames the file out of the way, durably and with its bytes untouched, and returns its new path.
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

/// Gives the file a second name beside it, under which it stays when the first is removed.
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

/// Renames a file, durably. Fails with `AlreadyExists` where there is a file at `to`: what is there is never replaced.
pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    ownership::check(to)?;
    rename_no_replace(from, to)?;
    // Where it is now first: a cut between the two leaves both names rather than none.
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
        // The file system does not know the flag.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => rename_if_absent(from, to),
        renamed => Ok(renamed?),
    }
}

#[cfg(not(target_os = "linux"))]
fn rename_no_replace(from: &Path, to: &Path) -> io::Result<()> {
    rename_if_absent(from, to)
}

/// Only this server works in the data directory, so nothing appears between the look and the rename.
fn rename_if_absent(from: &Path, to: &Path) -> io::Result<()> {
    match to.symlink_metadata() {
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => fs::rename(from, to),
    }
}

/// Makes the name of a file durable, or its removal.
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
    fn replacing_leaves_a_private_file_and_no_temporary_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.json");
        fs::write(&path, "old").unwrap();
        replace(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_set_aside_twice_in_a_second_keeps_both() {
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
