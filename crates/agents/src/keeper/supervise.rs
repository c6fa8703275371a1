//! The server's side of keepers: starts them, ends them, and cleans up after killed ones.
//!
//! One task per keeper owns its process. A keeper that exits has ended everything below it first. A keeper that was
//! killed has not, so the task then kills all processes that carry the keeper's mark or belong to its process group.
//!
//! Invariant: when the end of a keeper is reported, no process below it runs.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::watch;

use super::mark::{Mark, StoreId};
use super::table::{self, Killed, Process};

/// Maximum time a keeper may take to end everything below it before it is killed.
const KEEPER_DEADLINE: Duration = Duration::from_secs(1);
/// Maximum wait for killed processes to disappear, after which the server stops trying.
const KILL_DEADLINE: Duration = Duration::from_secs(2);
/// Like `KILL_DEADLINE`, for the cleanup when the server stops.
const LAST_DEADLINE: Duration = Duration::from_millis(500);

/// The keepers of one server. Clones share them.
#[derive(Clone)]
pub struct Keepers(Arc<Inner>);

struct Inner {
    /// `liminal keeper --store ID`.
    command: Vec<OsString>,
    store: StoreId,
    /// Running keepers by process id, until they are reaped.
    running: watch::Sender<BTreeMap<u32, Ender>>,
}

impl Keepers {
    /// `program` is this binary. `data_dir` is part of the marks, by which a later server finds processes of this one.
    pub fn new(program: impl Into<OsString>, data_dir: &Path) -> Self {
        let store = StoreId::of(data_dir);
        let words = ["keeper".into(), "--store".into(), store.to_string().into()];
        Self(Arc::new(Inner {
            command: [vec![program.into()], words.into()].concat(),
            store,
            running: watch::Sender::default(),
        }))
    }

    /// The keeper's program, and its arguments up to the command that it runs.
    pub fn command(&self) -> (OsString, Vec<OsString>) {
        let mut words = self.0.command.clone();
        let program = words.remove(0);
        let parent = std::process::id().to_string().into();
        words.extend(["--parent".into(), parent, "--".into()]);
        (program, words)
    }

    /// Supervises a keeper that was just started, and everything below it.
    pub fn take(&self, mut child: Child) -> Kept {
        let (ended, end) = watch::channel(None);
        let ender = Ender(watch::Sender::default());
        let kept = Kept {
            pid: child.id(),
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
            ender: ender.clone(),
            end,
        };
        if let Some(pid) = child.id() {
            self.0.running.send_modify(|running| {
                running.insert(pid, ender.clone());
            });
        }
        tokio::spawn(supervise(self.clone(), Keeper(child), ender, ended));
        kept
    }

    /// Kills processes left by an earlier server of this data directory. The data directory must be locked.
    pub fn clean_up(&self) {
        let killed = end_left_in(self.0.store, &[], KILL_DEADLINE);
        report(killed, "left by an earlier server");
    }

    /// Ends every keeper and everything below it.
    pub async fn end_all(&self) {
        for ender in self.0.running.borrow().values() {
            ender.end();
        }
        let mut running = self.0.running.subscribe();
        let all_ended = running.wait_for(BTreeMap::is_empty);
        let _ = tokio::time::timeout(KEEPER_DEADLINE + LAST_DEADLINE, all_ended).await;
        let keepers = self.clone();
        let _ = tokio::task::spawn_blocking(move || keepers.kill_all()).await;
    }

    /// Kills every keeper and everything below it. Blocks for at most half a second.
    pub fn kill_all(&self) {
        let running: Vec<u32> = self.0.running.borrow().keys().copied().collect();
        for pid in &running {
            if let Some(pid) = i32::try_from(*pid).ok().and_then(Pid::from_raw) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        let killed = end_left_in(self.0.store, &running, LAST_DEADLINE);
        report(killed, "left by the keepers of this server");
    }
}

/// The handle of a running keeper. Dropping it ends the keeper.
pub struct Kept {
    pub pid: Option<u32>,
    pub stdin: Option<ChildStdin>,
    pub stdout: Option<ChildStdout>,
    pub stderr: Option<ChildStderr>,
    ender: Ender,
    end: End,
}

/// `Some` when the keeper has ended, with its exit status if that is known.
type End = watch::Receiver<Option<Option<ExitStatus>>>;

impl Kept {
    /// Ends the keeper and everything below it.
    pub fn end(&self) {
        self.ender.end();
    }

    /// A handle that ends the keeper's processes, for another task.
    pub fn ender(&self) -> Ender {
        self.ender.clone()
    }

    /// Waits until the keeper and everything below it has ended.
    pub fn wait(&self) -> impl Future<Output = Option<ExitStatus>> + use<> {
        let mut end = self.end.clone();
        async move {
            match end.wait_for(Option::is_some).await {
                Ok(status) => status.flatten(),
                // The supervising task was dropped with the runtime.
                Err(_) => None,
            }
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.end();
    }
}

/// Ends a keeper. Clones end the same one.
#[derive(Clone)]
pub struct Ender(watch::Sender<bool>);

impl Ender {
    /// Ends the keeper and everything below it.
    pub fn end(&self) {
        self.0.send_replace(true);
    }
}

async fn supervise(
    of: Keepers,
    mut keeper: Keeper,
    ender: Ender,
    ended: watch::Sender<Option<Option<ExitStatus>>>,
) {
    let pid = keeper.0.id();
    let mut asked = ender.0.subscribe();
    let by_itself = tokio::select! {
        status = keeper.0.wait() => Some(status),
        () = async { drop(asked.wait_for(|asked| *asked).await) } => None,
    };
    let status = match by_itself {
        Some(status) => status,
        None => keeper.end().await,
    };
    let status = status.ok();
    if let Some(pid) = pid {
        // Immediately, because the process id may be reused from now on.
        of.0.running.send_modify(|running| {
            running.remove(&pid);
        });
        if status.is_none_or(|status| status.signal().is_some()) || cfg!(not(target_os = "linux")) {
            let store = of.0.store;
            let left = tokio::task::spawn_blocking(move || end_left_by(store, pid)).await;
            if let Ok(killed) = left {
                report(killed, "left by a killed keeper");
            }
        }
    }
    ended.send_replace(Some(status));
}

/// The process of a keeper. Dropping it sends SIGTERM.
struct Keeper(Child);

impl Keeper {
    fn ask_to_end(&self) {
        // The id is `None` once the process is reaped, so this cannot be the id of another process.
        let pid = self.0.id().and_then(|pid| i32::try_from(pid).ok());
        if let Some(pid) = pid.and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::TERM);
            // A descendant may have stopped the keeper with SIGSTOP, and a stopped process does not handle SIGTERM.
            let _ = kill_process(pid, Signal::CONT);
        }
    }

    async fn end(&mut self) -> std::io::Result<ExitStatus> {
        self.ask_to_end();
        match tokio::time::timeout(KEEPER_DEADLINE, self.0.wait()).await {
            Ok(status) => status,
            Err(_) => {
                let _ = self.0.start_kill();
                self.0.wait().await
            }
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.ask_to_end();
    }
}

/// Kills everything below a keeper that has ended.
fn end_left_by(store: StoreId, keeper: u32) -> Killed {
    let mark = Mark::new(store, keeper);
    let keeper = keeper as i32;
    #[cfg(not(target_os = "linux"))]
    if let Some(group) = Pid::from_raw(keeper) {
        // Without `/proc` the process group is the only way to find the processes.
        let _ = rustix::process::kill_process_group(group, Signal::KILL);
    }
    let look = || {
        let table = table::processes();
        // If the process id is in use again, the process group of that id belongs to another process, too.
        let reused = table.iter().any(|process| process.pid == keeper);
        let roots = table.iter().filter(|process| {
            (process.group == keeper && !reused) || Mark::of(process.pid) == Some(mark)
        });
        with_all_below(&table, roots.map(|process| process.pid).collect())
    };
    table::kill_until_none(look, reap, KILL_DEADLINE)
}

/// Kills everything that carries a mark of this data directory, except processes whose keeper still has a running
/// server. `ending` are the keepers of this server that are killed nevertheless.
fn end_left_in(store: StoreId, ending: &[u32], deadline: Duration) -> Killed {
    let look = || {
        let marked = Mark::all().filter(|(_, mark)| mark.store() == store);
        let marked: Vec<(i32, Mark)> = marked.collect();
        if marked.is_empty() {
            return vec![];
        }
        let table = table::processes();
        let mut keepers = HashMap::new();
        let mut is_left = |mark: Mark| {
            *keepers.entry(mark).or_insert_with(|| {
                ending.contains(&(mark.keeper() as u32)) || !has_server(&table, mark)
            })
        };
        let roots = marked.into_iter().filter(|(_, mark)| is_left(*mark));
        with_all_below(&table, roots.map(|(pid, _)| pid).collect())
    };
    table::kill_until_none(look, reap, deadline)
}

/// Whether the keeper and the server that started it are still running.
fn has_server(table: &[Process], mark: Mark) -> bool {
    let keeper = table.iter().find(|process| process.pid == mark.keeper());
    keeper.is_some_and(|keeper| {
        let words = std::fs::read(format!("/proc/{}/cmdline", keeper.pid)).unwrap_or_default();
        let words: Vec<&[u8]> = words.split(|byte| *byte == 0).collect();
        let started_by = words.windows(2).find(|words| words[0] == b"--parent");
        let parent = keeper.parent.to_string();
        !keeper.ended
            && started_by.is_some_and(|words| words[1] == parent.as_bytes())
            && Mark::of(keeper.pid) == Some(mark)
    })
}

/// The processes and everything below them, except this process and its ancestors.
fn with_all_below(table: &[Process], roots: Vec<i32>) -> Vec<Pid> {
    table::with_descendants(table, roots, &table::with_ancestors(table))
}

/// Reaps killed processes that became children of this process, which happens if it is process 1.
fn reap(killed: &HashSet<Pid>) {
    for pid in killed {
        let _ = waitpid(Some(*pid), WaitOptions::NOHANG);
    }
}

fn report(killed: Killed, origin: &str) {
    if killed.count > 0 {
        tracing::warn!(
            killed = killed.count,
            left = killed.left,
            "killed remaining agent processes, {origin}"
        );
    }
}
