//! The process table of this machine, read from `/proc`; empty on systems without `/proc`.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Pause between two passes of killing.
const PAUSE: Duration = Duration::from_millis(2);

pub(super) struct Process {
    pub(super) pid: i32,
    pub(super) parent: i32,
    pub(super) group: i32,
    /// Whether the first thread has ended. Other threads may still run, and children keep this parent until they end
    /// too.
    pub(super) ended: bool,
}

/// All processes.
pub(super) fn processes() -> Vec<Process> {
    pids().filter_map(process).collect()
}

pub(super) fn pids() -> impl Iterator<Item = i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn process(pid: i32) -> Option<Process> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The process name is in parentheses and may itself contain parentheses.
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_ascii_whitespace();
    Some(Process {
        pid,
        ended: matches!(fields.next()?, "Z" | "X"),
        parent: fields.next()?.parse().ok()?,
        group: fields.next()?.parse().ok()?,
    })
}

/// All descendants of a process that have not ended.
pub(crate) fn descendants(ancestor: Pid) -> Vec<Pid> {
    let ancestor = ancestor.as_raw_nonzero().get();
    let mut found = with_descendants(&processes(), vec![ancestor], &HashSet::new());
    found.retain(|pid| pid.as_raw_nonzero().get() != ancestor);
    found
}

/// The processes and their descendants, without ended ones. A spared process is left out with its descendants.
pub(super) fn with_descendants(
    table: &[Process],
    roots: Vec<i32>,
    spared: &HashSet<i32>,
) -> Vec<Pid> {
    let mut seen = spared.clone();
    let mut next = roots;
    let mut found = vec![];
    while let Some(pid) = next.pop() {
        if !seen.insert(pid) {
            continue;
        }
        let process = table.iter().find(|process| process.pid == pid);
        if process.is_some_and(|process| !process.ended) {
            found.extend(Pid::from_raw(pid));
        }
        let children = table.iter().filter(|process| process.parent == pid);
        next.extend(children.map(|process| process.pid));
    }
    found
}

/// This process and its ancestors.
pub(super) fn with_ancestors(table: &[Process]) -> HashSet<i32> {
    let mut line = HashSet::new();
    let mut next = Some(std::process::id() as i32);
    while let Some(pid) = next.filter(|pid| line.insert(*pid)) {
        let process = table.iter().find(|process| process.pid == pid);
        next = process.map(|process| process.parent);
    }
    line
}

/// The result of killing processes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Killed {
    pub(super) count: usize,
    /// Processes still running at the deadline.
    pub(super) left: usize,
}

/// Kills the processes that `look` finds until it finds none twice in a row: a process may start others until it is
/// dead, and a process may get another parent while the table is read. `after` runs after each pass with all processes
/// killed so far.
pub(super) fn kill_until_none(
    mut look: impl FnMut() -> Vec<Pid>,
    mut after: impl FnMut(&HashSet<Pid>),
    deadline: Duration,
) -> Killed {
    let deadline = Instant::now() + deadline;
    let mut killed = HashSet::new();
    let mut empty = 0;
    loop {
        let mut found = look();
        // A process of another user cannot be killed and is not waited for.
        found.retain(|pid| kill_process(*pid, Signal::KILL) != Err(rustix::io::Errno::PERM));
        empty = if found.is_empty() { empty + 1 } else { 0 };
        let left = found.len();
        killed.extend(found);
        after(&killed);
        if empty == 2 || Instant::now() >= deadline {
            return Killed {
                count: killed.len(),
                left,
            };
        }
        std::thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i32, parent: i32) -> Process {
        Process {
            pid,
            parent,
            group: pid,
            ended: pid == 13,
        }
    }

    #[test]
    fn descendants_include_children_of_ended_processes_but_no_spared_ones() {
        let table = [(10, 1), (11, 10), (12, 10), (13, 11), (14, 13), (15, 12)]
            .map(|(pid, parent)| process(pid, parent));
        let found = |roots: &[i32], spared: &[i32]| {
            let spared = spared.iter().copied().collect();
            let found = with_descendants(&table, roots.to_vec(), &spared);
            let mut pids: Vec<i32> = found.iter().map(|pid| pid.as_raw_nonzero().get()).collect();
            pids.sort_unstable();
            pids
        };
        assert_eq!(found(&[10], &[]), [10, 11, 12, 14, 15]);
        assert_eq!(found(&[10], &[12]), [10, 11, 14]);
        assert_eq!(found(&[11, 14, 99], &[]), [11, 14]);
    }
}
