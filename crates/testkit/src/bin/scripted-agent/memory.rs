//! The agent's session files at start.

use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

/// Completes lines that a killed process left without a newline, and writes this process's id to `agent.pid`.
pub(crate) fn begin(memory: &Path) {
    for entry in std::fs::read_dir(memory).unwrap() {
        complete_last_line(&entry.unwrap().path());
    }
    // Replaced atomically: a test may read the id at any moment to kill the process.
    let (pid, new) = (
        memory.with_file_name("agent.pid"),
        memory.with_file_name("agent.pid.new"),
    );
    let id = std::process::id().to_string();
    std::fs::write(&new, &id).unwrap();
    // A fault that a test injects into system calls hits this process, too.
    if std::fs::rename(new, &pid).is_err() {
        std::fs::write(pid, id).unwrap();
    }
}

fn complete_last_line(path: &Path) {
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
