//! Append-only files of lines. Only complete lines are written; a line torn by a crash is terminated before the next.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// Bytes per read.
pub const SCAN_BYTES: usize = 256 * 1024;
/// Size of the write buffer.
const GATHERED_BYTES: usize = 256 * 1024;

/// Opens a file for appending, and creates it if it is missing.
pub fn append_to(path: &Path) -> io::Result<File> {
    appending().create(true).open(path)
}

/// Opens an existing file for appending.
pub fn append_to_existing(path: &Path) -> io::Result<File> {
    appending().open(path)
}

fn appending() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).append(true).mode(0o600);
    options
}

/// A buffered writer of lines. A line may be longer than the buffer.
pub struct Appending<'a> {
    file: &'a mut File,
    gathered: Vec<u8>,
    written: u64,
}

impl Appending<'_> {
    /// Bytes written so far, those in the buffer included.
    pub fn bytes(&self) -> u64 {
        self.written + self.gathered.len() as u64
    }
}

impl Write for Appending<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.gathered.len() + bytes.len() > GATHERED_BYTES {
            self.flush()?;
        }
        self.gathered.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write_all(&self.gathered)?;
        self.written += self.gathered.len() as u64;
        self.gathered.clear();
        Ok(())
    }
}

/// Appends the output of `write`, and returns its result and length. After an error the file is truncated to its
/// earlier length if the disk allows it.
pub fn append<T>(
    file: &mut File,
    write: impl FnOnce(&mut Appending) -> io::Result<T>,
) -> io::Result<(T, u64)> {
    let before = file.metadata()?.len();
    let mut appending = Appending {
        file: &mut *file,
        gathered: vec![],
        written: 0,
    };
    let appended = write(&mut appending).and_then(|done| {
        appending.flush()?;
        Ok((done, appending.bytes()))
    });
    appended.inspect_err(|_| {
        let _ = file.set_len(before);
    })
}

/// Terminates a torn last line, so that the next line does not become part of it. Returns the file's length.
pub fn seal(file: &mut File) -> io::Result<u64> {
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

/// Calls `line` with the offset and text of each line. Memory use is bounded by the longest line.
pub fn scan(file: &mut impl Read, mut line: impl FnMut(u64, &[u8])) -> io::Result<()> {
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
