//! Single entries of an open directory. No symbolic link is followed and no pipe blocks, whatever another process puts
//! in an entry's place.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

/// Maximum size of a file whose content is compared; a larger one counts as unreadable.
const COMPARED_BYTES_MAX: u64 = 4 * 1024 * 1024;

pub(super) fn kind_of(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

pub(super) fn open_to_read(directory: impl AsFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    rustix::fs::openat(directory, name, flags, Mode::empty())
}

/// The content of a regular file with its status; `None` if it is missing, too large or unreadable.
pub(super) fn content_of(directory: impl AsFd, name: &OsStr) -> Option<(Vec<u8>, Stat)> {
    let file = open_to_read(directory, name).ok()?;
    let stat = rustix::fs::fstat(&file).ok()?;
    if kind_of(&stat) != FileType::RegularFile {
        return None;
    }
    let mut content = vec![];
    let mut limited = File::from(file).take(COMPARED_BYTES_MAX + 1);
    limited.read_to_end(&mut content).ok()?;
    (content.len() as u64 <= COMPARED_BYTES_MAX).then_some((content, stat))
}
