//! What the agent finds of its memory when it starts.

use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

/// Ends lines that a process before this one was killed in, and says which process this one is.
pub(crate) fn begin(memory: &Path) {
    for entry in std::fs::read_dir(memory).unwrap() {
        seal(&entry.unwrap().path());
    }
    // Whole at any moment: a test kills by it.
    let (pid, new) = (
        memory.with_file_name("agent.pid"),
        memory.with_file_name("agent.pid.new"),
    );
    std::fs::write(&new, std::process::id().to_string()).unwrap();
    std::fs::rename(new, pid).unwrap();
}

fn seal(path: &Path) {
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.read(true).append(true).open(path).unwrap();
    let mut last = [b'\n'];
    if file.seek(SeekFrom::End(-1)).is_ok() {
        file.read_exact(&mut last).unwrap();
    }
    if last != [b'\n'] {
        file.write_all(b"\n").unwrap();
    }
}
