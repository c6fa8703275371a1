//! Reading and writing the project's text files.
//!
//! `confine` has found the directory; what happens here names only single entries of it and follows
//! no link. A write is a new file put in the old one's place: whoever looks sees one or the other,
//! whole. So other hard links to the old file keep the old content.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};

use super::Refusal;
use super::confine::{For, Place, Project, kind_of, trouble};

/// What one answer may hold.
const CONTENT_BYTES_MAX: usize = 32 * 1024 * 1024;
/// How far into a file we look for the line an answer should begin with.
const SKIPPED_BYTES_MAX: u64 = 1024 * 1024 * 1024;
const CHUNK_BYTES: usize = 64 * 1024;
const NEW_FILE: Mode = Mode::from_raw_mode(0o666);
const EVERYBODY: Mode = Mode::RWXU.union(Mode::RWXG).union(Mode::RWXO);

/// The lines from `line` (the first is 1), at most `limit`, each with its own line end.
pub(super) fn read(
    project: &Project,
    path: &Path,
    line: Option<u32>,
    limit: Option<u32>,
) -> Result<String, Refusal> {
    let place = project.file(path, For::Reading)?;
    if let Some(found) = &place.found {
        must_be_regular(path, found)?;
    }
    // Should anything else have taken its place, a link is not followed and a pipe does not hold us up.
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&place.directory, &place.name, flags, Mode::empty())
        .map_err(|error| trouble(path, error.into()))?;
    let found = rustix::fs::fstat(&file).map_err(|error| trouble(path, error.into()))?;
    must_be_regular(path, &found)?;
    project.must_not_be_forbidden(path, &found)?;
    let skip = line.unwrap_or(1).saturating_sub(1);
    let bytes = lines(File::from(file), skip, limit).map_err(|error| match error {
        Unreadable::Io(error) => trouble(path, error),
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

/// Cuts behind as many line ends, and counts them down.
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

/// Replaces the file's content, or makes the file and the directories it lies in. A guarded one is written only if it
/// is the one that was agreed to.
pub(super) fn write(
    project: &Project,
    path: &Path,
    content: &[u8],
    agreed: Option<&Path>,
) -> Result<(), Refusal> {
    let place = project.file(path, For::Writing { agreed })?;
    let mode = match &place.found {
        None => None,
        Some(found) => {
            must_be_regular(path, found)?;
            let mode = Mode::from_raw_mode(found.st_mode) & EVERYBODY;
            // The system would let us: replacing is a right on the directory, not on the file.
            if !mode.intersects(Mode::WUSR | Mode::WGRP | Mode::WOTH) {
                let message = format!("{} is read-only", path.display());
                return Err(Refusal::not_allowed(message));
            }
            Some(mode)
        }
    };
    replace(&place, content, mode).map_err(|error| trouble(path, error))
}

fn replace(place: &Place, content: &[u8], mode: Option<Mode>) -> io::Result<()> {
    let directory = place.directory.as_fd();
    let (temporary, mut file) = Temporary::create(directory, mode.unwrap_or(NEW_FILE))?;
    file.write_all(content)?;
    if let Some(mode) = mode {
        // The umask has cut what we asked for.
        rustix::fs::fchmod(&file, mode)?;
    }
    file.sync_all()?;
    rustix::fs::renameat(directory, &temporary.name, directory, &place.name)?;
    temporary.keep();
    let listing = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match rustix::fs::openat(directory, ".", listing, Mode::empty()) {
        Ok(directory) => Ok(rustix::fs::fsync(directory)?),
        // A directory we may change but not list cannot be synced.
        Err(rustix::io::Errno::ACCESS) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A file that is removed again unless it is kept.
struct Temporary<'a> {
    directory: BorrowedFd<'a>,
    name: String,
    kept: bool,
}

impl<'a> Temporary<'a> {
    fn create(directory: BorrowedFd<'a>, mode: Mode) -> io::Result<(Self, File)> {
        // Not made from the file's own name, which may be as long as names can be.
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
        _ => "no ordinary file",
    };
    Err(Refusal::not_allowed(format!(
        "{} is {kind}",
        path.display()
    )))
}
