//! Injects faults into chosen system calls on chosen files with strace. Without strace the tests report that they are
//! skipped.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use testkit::ServerSetup;

/// Calls that write to any open file; only those on the trap's own files are counted.
const WRITES: [&str; 3] = ["write", "pwrite64", "writev"];

/// Other calls that change files, whichever file it is. strace skips calls that the architecture does not have.
const OTHERS: [&str; 11] = [
    "fsync",
    "fdatasync",
    "rename",
    "renameat",
    "renameat2",
    "linkat",
    "unlink",
    "unlinkat",
    "ftruncate",
    "mkdir",
    "mkdirat",
];

/// Why strace cannot be used here, or `None` if it can.
pub(crate) fn missing() -> Option<&'static str> {
    let tried = Command::new("strace")
        .args(["-qq", "-o", "/dev/null", "true"])
        .output();
    match tried {
        Ok(output) if output.status.success() => None,
        Ok(_) => Some("strace is not permitted to trace"),
        Err(_) => Some("strace is not installed"),
    }
}

/// Traces a server's changes to files: writes to `paths`, and all other file-changing calls.
pub(crate) struct Strace {
    paths: Vec<PathBuf>,
    log: PathBuf,
}

impl Strace {
    /// Traces the files at the top of the data directory and on `paths`.
    pub(crate) fn on(setup: &ServerSetup, mut paths: Vec<PathBuf>) -> Self {
        let dir = setup.data_dir();
        for name in [
            "projects.json",
            "sessions.json",
            "lock",
            "token",
            "audit.jsonl",
        ] {
            paths.extend([dir.join(name), dir.join(format!("{name}.tmp"))]);
        }
        let log = setup.home().join("strace.log");
        Self { paths, log }
    }

    /// The strace command line that only traces, either the writes or all other calls.
    pub(crate) fn watching(&self, writes: bool) -> Vec<OsString> {
        // Detached (-D), so that the server stays a direct child of the test.
        let mut by: Vec<OsString> = ["strace", "-D", "-f", "-qq", "-y", "-o"]
            .map(Into::into)
            .into();
        by.push(self.log.clone().into());
        if writes {
            for path in &self.paths {
                by.extend(["-P".into(), path.clone().into()]);
            }
        }
        let calls: Vec<String> = WRITES
            .iter()
            .chain(&OTHERS)
            .map(|call| format!("?{call}"))
            .collect();
        by.extend(["-e".into(), format!("trace={}", calls.join(",")).into()]);
        by
    }

    /// The same with a fault in strace's syntax, such as `fsync:error=EIO:when=3`.
    pub(crate) fn by(&self, fault: &str) -> Vec<OsString> {
        let call = fault.split(':').next().unwrap_or_default();
        let mut by = self.watching(WRITES.contains(&call));
        by.extend(["-e".into(), format!("inject={fault}").into()]);
        by
    }

    /// The traced calls, one per line; strace splits a call in two when another thread's call comes in between.
    pub(crate) fn log(&self) -> Result<Vec<String>> {
        let text = std::fs::read_to_string(&self.log).context("expected a log")?;
        let mut begun: HashMap<&str, &str> = HashMap::new();
        let mut calls = vec![];
        for line in text.lines() {
            let (thread, call) = line.split_once(' ').unwrap_or((line, ""));
            if let Some(beginning) = line.strip_suffix("<unfinished ...>") {
                begun.insert(thread, beginning);
            } else if let Some((_, end)) = call.split_once(" resumed>")
                && let Some(beginning) = begun.remove(thread)
            {
                calls.push(format!("{beginning}{end}"));
            } else {
                calls.push(line.to_owned());
            }
        }
        // Calls that never returned are included.
        calls.extend(begun.into_values().map(|begun| format!("{begun} = ?")));
        Ok(calls)
    }

    /// Every traced write, or every other call, with its number; strace counts a call's occurrences per thread.
    pub(crate) fn seen(&self, writes: bool) -> Result<Vec<(String, usize)>> {
        let mut by_thread: BTreeMap<(String, String), usize> = BTreeMap::new();
        for line in self.log()? {
            let mut words = line.split_whitespace();
            let (Some(thread), Some(call)) = (words.next(), words.next()) else {
                continue;
            };
            let Some((call, _)) = call.split_once('(') else {
                continue;
            };
            if WRITES.contains(&call) != writes {
                continue;
            }
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
