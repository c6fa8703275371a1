//! Reading and writing text files of the project.
//!
//! `confine` resolves the directory; this module accesses single entries of it and follows no symbolic link. A write is
//! an atomic replace: readers see either the old or the new content. So other hard links to the file keep the old
//! content. The content that was checked is the one that is written.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::Refusal;
use super::confine::{Access, FileEntry, Project, io_refusal};
use super::entry::{kind_of, open_to_read};

/// Maximum size of one response.
const CONTENT_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Maximum bytes skipped to find the first requested line.
const SKIPPED_BYTES_MAX: u64 = 1024 * 1024 * 1024;
const CHUNK_BYTES: usize = 64 * 1024;
/// How often a write starts again because another process changed the file that was compared.
const ATTEMPTS_MAX: usize = 8;
const NEW_FILE: Mode = Mode::from_raw_mode(0o666);
const PERMISSION_BITS: Mode = Mode::RWXU.union(Mode::RWXG).union(Mode::RWXO);

/// At most `limit` lines from number `line` (the first is 1), with their line endings unchanged.
pub(super) fn read(
    project: &Project,
    path: &Path,
    line: Option<u32>,
    limit: Option<u32>,
) -> Result<String, Refusal> {
    let entry = project.file(path, Access::Reading)?;
    if let Some(found) = &entry.found {
        must_be_regular(path, found)?;
    }
    let file = open_to_read(&entry.directory, &entry.name)
        .map_err(|error| io_refusal(path, error.into()))?;
    let found = rustix::fs::fstat(&file).map_err(|error| io_refusal(path, error.into()))?;
    must_be_regular(path, &found)?;
    project.check_not_forbidden(path, &found)?;
    let skip = line.unwrap_or(1).saturating_sub(1);
    let bytes = lines(File::from(file), skip, limit).map_err(|error| match error {
        Unreadable::Io(error) => io_refusal(path, error),
        Unreadable::TooLarge => Refusal::failed(format!(
            "{} is too large to read at once; ask for fewer lines (`line`, `limit`)",
            path.display()
        )),
    })?;
    String::from_utf8(bytes)
        .map_err(|_| Refusal::failed(format!("{} is not UTF-8 text", path.display())))
}

enum Unreadable {
    Io(io::Error),
    TooLarge,
}

fn lines(mut file: impl Read, mut skip: u32, limit: Option<u32>) -> Result<Vec<u8>, Unreadable> {
    let mut left = limit.unwrap_or(u32::MAX);
    let (mut kept, mut skipped) = (vec![], 0);
    let mut buffer = vec![0; CHUNK_BYTES];
    while left > 0 {
        let count = match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Unreadable::Io(error)),
        };
        let (before, rest) = split_after_lines(&buffer[..count], &mut skip);
        skipped += before.len() as u64;
        let wanted = match limit {
            Some(_) => split_after_lines(rest, &mut left).0,
            None => rest,
        };
        kept.extend_from_slice(wanted);
        if kept.len() > CONTENT_BYTES_MAX || skipped > SKIPPED_BYTES_MAX {
            return Err(Unreadable::TooLarge);
        }
    }
    Ok(kept)
}

/// Splits after at most `lines` lines, and reduces `lines` by the number found.
fn split_after_lines<'a>(bytes: &'a [u8], lines: &mut u32) -> (&'a [u8], &'a [u8]) {
    if *lines == 0 {
        return bytes.split_at(0);
    }
    for end in memchr::memchr_iter(b'\n', bytes) {
        *lines -= 1;
        if *lines == 0 {
            return bytes.split_at(end + 1);
        }
    }
    bytes.split_at(bytes.len())
}

/// Replaces the content of a file, or creates it and its directories. A sensitive change is written only if its path
/// equals `agreed`.
pub(super) fn write(
    project: &Project,
    path: &Path,
    content: &[u8],
    agreed: Option<&Path>,
) -> Result<(), Refusal> {
    for _ in 0..ATTEMPTS_MAX {
        let entry = project.file(path, Access::Writing { content, agreed })?;
        let mode = match &entry.found {
            None => None,
            Some(found) => {
                must_be_regular(path, found)?;
                let mode = Mode::from_raw_mode(found.st_mode) & PERMISSION_BITS;
                // The system would allow it, because replacing a file requires write permission on the directory only.
                if !mode.intersects(Mode::WUSR | Mode::WGRP | Mode::WOTH) {
                    let message = format!("{} is read-only", path.display());
                    return Err(Refusal::not_allowed(message));
                }
                Some(mode)
            }
        };
        let replaced = replace(&entry, content, mode).map_err(|error| io_refusal(path, error))?;
        if replaced {
            return Ok(());
        }
    }
    let message = format!("{} is being changed by another process", path.display());
    Err(Refusal::failed(message))
}

/// Returns `false` without a change if the file is no longer the one that was compared.
fn replace(entry: &FileEntry, content: &[u8], mode: Option<Mode>) -> io::Result<bool> {
    let directory = entry.directory.as_fd();
    let (temporary, mut file) = Temporary::create(directory, mode.unwrap_or(NEW_FILE))?;
    file.write_all(content)?;
    if let Some(mode) = mode {
        // The umask was applied to the mode at creation.
        rustix::fs::fchmod(&file, mode)?;
    }
    file.sync_all()?;
    if let Some(compared) = &entry.compared
        && !is_unchanged(entry, compared)
    {
        return Ok(false);
    }
    rustix::fs::renameat(directory, &temporary.name, directory, &entry.name)?;
    temporary.keep();
    let listing = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match rustix::fs::openat(directory, ".", listing, Mode::empty()) {
        Ok(directory) => rustix::fs::fsync(directory)?,
        // A directory without read permission cannot be synced.
        Err(Errno::ACCESS) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(true)
}

fn is_unchanged(entry: &FileEntry, compared: &Stat) -> bool {
    let found = rustix::fs::statat(&entry.directory, &entry.name, AtFlags::SYMLINK_NOFOLLOW);
    let key = |stat: &Stat| {
        let changed = (stat.st_ctime, stat.st_ctime_nsec);
        (stat.st_dev, stat.st_ino, stat.st_size, changed)
    };
    found.is_ok_and(|found| key(&found) == key(compared))
}

/// A temporary file that is removed when dropped, unless `keep` was called.
struct Temporary<'a> {
    directory: BorrowedFd<'a>,
    name: String,
    kept: bool,
}

impl<'a> Temporary<'a> {
    fn create(directory: BorrowedFd<'a>, mode: Mode) -> io::Result<(Self, File)> {
        // Not derived from the file's name, which may already have the maximum length.
        let name = format!(".liminal-{}.tmp", uuid::Uuid::new_v4().simple());
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(directory, &name, flags, mode)?;
        let temporary = Self {
            directory,
            name,
            kept: false,
        };
        Ok((temporary, File::from(file)))
    }

    fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.kept {
            let _ = rustix::fs::unlinkat(self.directory, &self.name, AtFlags::empty());
        }
    }
}

fn must_be_regular(path: &Path, found: &Stat) -> Result<(), Refusal> {
    let kind = match kind_of(found) {
        FileType::RegularFile => return Ok(()),
        FileType::Directory => "a directory",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        _ => "not a regular file",
    };
    Err(Refusal::not_allowed(format!(
        "{} is {kind}",
        path.display()
    )))
}
