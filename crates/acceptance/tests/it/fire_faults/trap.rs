//! Faults at chosen system calls on chosen files, with strace. Where it is not, or may not trace, a test says so.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use testkit::ServerSetup;

/// What adds to a file, or to anything else that is open: only those on known files are meant.
const WRITES: [&str; 3] = ["write", "pwrite64", "writev"];

/// What else changes a file, whichever it is. A call that this machine's architecture does not have is passed over.
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

/// Watches what a server does to files: writes to these, and whatever else changes any.
pub(crate) struct Trap {
    paths: Vec<PathBuf>,
    log: PathBuf,
}

impl Trap {
    /// On what lies at the top of this server's data directory, and on these.
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

    /// What to start the server by, so that it only watches: writes, or everything else.
    pub(crate) fn watching(&self, writes: bool) -> Vec<OsString> {
        // Detached, so that the server is the child of whoever starts it.
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

    /// The same with a fault: what happens at a call, in strace's words: `fsync:error=EIO:when=3`.
    pub(crate) fn by(&self, fault: &str) -> Vec<OsString> {
        let call = fault.split(':').next().unwrap_or_default();
        let mut by = self.watching(WRITES.contains(&call));
        by.extend(["-e".into(), format!("inject={fault}").into()]);
        by
    }

    /// The calls of the log, each whole and where it ended: strace cuts in two what another thread came between.
    pub(crate) fn log(&self) -> Result<Vec<String>> {
        let text = std::fs::read_to_string(&self.log).context("a log")?;
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
        // What never ended was begun all the same.
        calls.extend(begun.into_values().map(|begun| format!("{begun} = ?")));
        Ok(calls)
    }

    /// Every write that was seen, or everything else, with its number: strace counts each thread's calls of a name by
    /// themselves.
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
