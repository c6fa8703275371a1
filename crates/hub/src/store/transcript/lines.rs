//! Files of lines that only grow: whole lines in, and out again whatever a crash has left of the last one.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// How much is read at once.
pub(super) const SCAN_BYTES: usize = 256 * 1024;

pub(super) fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
}

/// All of it or, after an error, nothing that could be taken for the beginning of the next line.
pub(super) fn append_whole(file: &mut File, text: &[u8]) -> io::Result<()> {
    let before = file.metadata()?.len();
    file.write_all(text).inspect_err(|_| {
        let _ = file.set_len(before);
    })
}

/// Ends a torn last line, so that the next one does not become part of it. Returns the size.
pub(super) fn seal(file: &mut File) -> io::Result<u64> {
    let size = file.metadata()?.len();
    if size == 0 {
        return Ok(0);
    }
    let mut last = [0];
    file.read_exact_at(&mut last, size - 1)?;
    if last == *b"\n" {
        return Ok(size);
    }
    file.write_all(b"\n")?;
    Ok(size + 1)
}

/// Calls `line` for each line with its offset. Streams; a line is held whole.
pub(super) fn scan(file: &mut impl Read, mut line: impl FnMut(u64, &[u8])) -> io::Result<()> {
    let mut buffer: Vec<u8> = Vec::with_capacity(SCAN_BYTES);
    let mut base = 0;
    loop {
        let searched = buffer.len();
        buffer.resize(searched + SCAN_BYTES, 0);
        let count = file.read(&mut buffer[searched..])?;
        buffer.truncate(searched + count);
        let mut begin = 0;
        let mut from = searched;
        while let Some(length) = memchr::memchr(b'\n', &buffer[from..]) {
            let end = from + length;
            line(base + begin as u64, &buffer[begin..end]);
            begin = end + 1;
            from = begin;
        }
        if count == 0 {
            if !buffer.is_empty() {
                line(base, &buffer);
            }
            return Ok(());
        }
        buffer.drain(..begin);
        base += begin as u64;
    }
}
