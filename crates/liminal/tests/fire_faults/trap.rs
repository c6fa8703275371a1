//! Faults at chosen system calls on chosen files, with strace. Where it is not, or may not trace, a test says so.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

/// What changes a file. A call that this machine's architecture does not have is passed over.
const CALLS: [&str; 12] = [
    "write",
    "pwrite64",
    "writev",
    "fsync",
    "fdatasync",
    "rename",
    "renameat",
    "renameat2",
    "linkat",
    "unlink",
    "unlinkat",
    "ftruncate",
];

/// Why nothing can be traced here.
pub(crate) fn missing() -> Option<&'static str> {
    let tried = Command::new("strace")
        .args(["-qq", "-o", "/dev/null", "true"])
        .output();
    match tried {
        Ok(output) if output.status.success() => None,
        Ok(_) => Some("strace may not trace here"),
        Err(_) => Some("there is no strace here"),
    }
}

/// Watches what a server does to these files.
pub(crate) struct Trap {
    paths: Vec<PathBuf>,
    log: PathBuf,
}

impl Trap {
    pub(crate) fn on(paths: Vec<PathBuf>, log: PathBuf) -> Self {
        Self { paths, log }
    }

    /// What to start the server by. `fault` is what happens at a call, in strace's words: `fsync:error=EIO:when=3`.
    pub(crate) fn by(&self, fault: Option<&str>) -> Vec<OsString> {
        // Detached, so that the server is the child of whoever starts it.
        let mut by: Vec<OsString> = ["strace", "-D", "-f", "-qq", "-y", "-o"]
            .map(Into::into)
            .into();
        by.push(self.log.clone().into());
        for path in &self.paths {
            by.extend(["-P".into(), path.clone().into()]);
        }
        let calls: Vec<String> = CALLS.iter().map(|call| format!("?{call}")).collect();
        by.extend(["-e".into(), format!("trace={}", calls.join(",")).into()]);
        if let Some(fault) = fault {
            by.extend(["-e".into(), format!("inject={fault}").into()]);
        }
        by
    }

    /// The lines of the log, without who it was.
    pub(crate) fn log(&self) -> Result<Vec<String>> {
        let text = std::fs::read_to_string(&self.log).context("a log")?;
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// Every call that was seen, with its number: strace counts each thread's calls of a name by themselves.
    pub(crate) fn seen(&self) -> Result<Vec<(String, usize)>> {
        let mut by_thread: BTreeMap<(String, String), usize> = BTreeMap::new();
        for line in self.log()? {
            let mut words = line.split_whitespace();
            let (Some(thread), Some(call)) = (words.next(), words.next()) else {
                continue;
            };
            let Some((call, _)) = call.split_once('(') else {
                continue;
            };
            *by_thread.entry((call.into(), thread.into())).or_default() += 1;
        }
        let mut most: BTreeMap<String, usize> = BTreeMap::new();
        for ((call, _), count) in by_thread {
            let known = most.entry(call).or_default();
            *known = count.max(*known);
        }
        let numbered =
            |(call, count): (String, usize)| (1..=count).map(move |number| (call.clone(), number));
        Ok(most.into_iter().flat_map(numbered).collect())
    }
}
