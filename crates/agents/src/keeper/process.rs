//! The keeper process: runs one command and ends everything below it.
//!
//! Agents start servers, watchers and shells, some in sessions of their own, where killing a process group does not
//! reach them. The server starts the keeper instead of the agent; the keeper starts the agent with its own standard
//! streams and adopts orphaned processes of the agent. When the agent exits, on SIGTERM, or when the server has ended
//! for any reason, the keeper ends everything below it and exits.
//!
//! It is single-threaded and runs as `liminal keeper --store ID --parent PID -- COMMAND`. With `--store`, everything it
//! starts carries its mark, so that the server can end it if the keeper is killed.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid, getppid, kill_process, wait};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::low_level::pipe;

use super::mark::{Mark, StoreId};
use super::table::{descendants, kill_until_none};

/// The exit code, as of a shell, for a command that could not be started.
const COULD_NOT_START: u8 = 127;
/// Interval for checking the parent on systems that do not report its end.
const LOOK_AGAIN: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 200_000_000,
};
/// Maximum wait for killed processes to disappear, after which the keeper exits anyway.
const KILL_DEADLINE: Duration = Duration::from_secs(10);

/// Runs the command until its end and returns its exit code (128 + signal number if it was killed).
pub fn keep(parent: u32, store: Option<StoreId>, command: &[OsString]) -> u8 {
    let mut stderr = io::stderr();
    let Some((program, args)) = command.split_first() else {
        let _ = writeln!(stderr, "keeper: no command");
        return COULD_NOT_START;
    };
    adopt_orphans();
    if let Some(store) = store {
        // Without a mark the processes below are still found by their process group and their parents.
        let _ = Mark::new(store, std::process::id()).carry();
    }
    let watch = match Watch::start(parent) {
        Ok(watch) => watch,
        Err(error) => {
            let _ = writeln!(stderr, "keeper: {error}");
            return COULD_NOT_START;
        }
    };
    let agent = match Command::new(program).args(args).spawn() {
        Ok(agent) => agent.id(),
        Err(error) => {
            let _ = writeln!(stderr, "{}: {error}", program.display());
            return COULD_NOT_START;
        }
    };
    let code = watch.wait_for(agent);
    if code.is_none()
        && let Some(agent) = Pid::from_raw(agent as i32)
    {
        // The agent is not reaped yet, so the process id is still its own.
        let _ = kill_process(agent, Signal::KILL);
    }
    end_everything_below();
    code.unwrap_or(128 + Signal::TERM.as_raw() as u8)
}

/// Makes orphaned descendants children of this process instead of init. Has no effect on other systems than Linux.
fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_child_subreaper(Some(getpid()));
}

/// Waits for the first event that ends a keeper.
struct Watch {
    /// Becomes readable when a signal arrives.
    signals: UnixStream,
    asked_to_stop: Arc<AtomicBool>,
    parent: u32,
    parent_end: Option<OwnedFd>,
}

impl Watch {
    fn start(parent: u32) -> io::Result<Self> {
        let (signals, sender) = UnixStream::pair()?;
        signals.set_nonblocking(true)?;
        // Before the agent is started, so that its exit cannot be missed.
        let asked_to_stop = Arc::new(AtomicBool::new(false));
        flag::register(SIGTERM, asked_to_stop.clone())?;
        pipe::register(SIGTERM, sender.try_clone()?)?;
        // On a terminal, a hangup ends all descendants; an interrupt is left to the command.
        flag::register(SIGHUP, asked_to_stop.clone())?;
        pipe::register(SIGHUP, sender.try_clone()?)?;
        flag::register(SIGINT, Arc::default())?;
        pipe::register(SIGCHLD, sender)?;
        let parent_end = watch_process(parent);
        Ok(Self {
            signals,
            asked_to_stop,
            parent,
            parent_end,
        })
    }

    /// Waits for the end of the agent and returns its exit code, or `None` if the keeper has to end it.
    fn wait_for(&self, agent: u32) -> Option<u8> {
        loop {
            if let Some(code) = reap(agent) {
                return Some(code);
            }
            if self.asked_to_stop.load(Ordering::SeqCst) || self.parent_is_gone() {
                return None;
            }
            let mut fds = vec![PollFd::new(&self.signals, PollFlags::IN)];
            if let Some(end) = &self.parent_end {
                fds.push(PollFd::from_borrowed_fd(end.as_fd(), PollFlags::IN));
            }
            let _ = poll(&mut fds, self.parent_end.is_none().then_some(&LOOK_AGAIN));
            let mut drained = [0; 64];
            while (&self.signals)
                .read(&mut drained)
                .is_ok_and(|count| count > 0)
            {}
        }
    }

    /// Whether the parent has ended, in which case this process has another parent.
    fn parent_is_gone(&self) -> bool {
        getppid().map(|pid| pid.as_raw_nonzero().get() as u32) != Some(self.parent)
    }
}

/// A file descriptor that becomes readable when the process ends, if the system supports that.
fn watch_process(pid: u32) -> Option<OwnedFd> {
    #[cfg(target_os = "linux")]
    {
        let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
        rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = pid;
        None
    }
}

/// Reaps all children that have ended. Returns the exit code of the agent if it is among them.
fn reap(agent: u32) -> Option<u8> {
    let mut code = None;
    while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
        if pid.as_raw_nonzero().get() as u32 == agent {
            code = Some(exit_code(status));
        }
    }
    code
}

fn exit_code(status: WaitStatus) -> u8 {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => code as u8,
        (None, Some(signal)) => 128 + signal as u8,
        (None, None) => 1,
    }
}

/// Kills all descendants. Orphans become children of this process and are found in the next pass.
fn end_everything_below() {
    let below = || descendants(getpid());
    kill_until_none(
        below,
        |_| {
            reap(0);
        },
        KILL_DEADLINE,
    );
}
