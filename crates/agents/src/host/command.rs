//! One command under its keeper: how it is started, and how it ended.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, PipeReader};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};

use tokio::process::Command;
use wire::TerminalExit;

use super::confine::way_to;
use crate::keeper::{Keepers, Kept};

/// What a command finds in its environment.
pub(super) type Environment = BTreeMap<OsString, OsString>;

/// Whether the program an agent named is really a line for the shell.
pub(super) fn is_shell_line(command: &str, directory: &OwnedFd, env: &Environment) -> bool {
    if !command.contains(char::is_whitespace) {
        return false;
    }
    let exists = match command.contains('/') {
        true => way_to(directory).is_ok_and(|way| way.join(command).is_file()),
        false => {
            let path = env.get(OsStr::new("PATH"));
            let mut folders = path.into_iter().flat_map(std::env::split_paths);
            folders.any(|folder| folder.join(command).is_file())
        }
    };
    !exists
}

/// The keeper with the command in it, and the pipe both its streams go to.
pub(super) fn spawn(
    keepers: &Keepers,
    argv: &[String],
    env: &Environment,
    directory: &OwnedFd,
) -> io::Result<(Kept, PipeReader)> {
    let (program, args) = keepers.command();
    let (reader, writer) = io::pipe()?;
    let child = Command::new(program)
        .args(args)
        .args(argv)
        .env_clear()
        .envs(env)
        .current_dir(way_to(directory)?)
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        // Out of reach of a Ctrl+C in our terminal, as agents are.
        .process_group(0)
        .spawn()?;
    Ok((keepers.take(child), reader))
}

/// The keeper answers, as a shell does, with 128 and the number of the signal.
pub(super) fn exit_of(status: Option<ExitStatus>) -> TerminalExit {
    let name = |number| signal_hook::low_level::signal_name(number).map(str::to_owned);
    let code = status.and_then(|status| status.code());
    let signal = match code {
        Some(code) => name(code - 128),
        None => status.and_then(|status| name(status.signal()?)),
    };
    TerminalExit {
        code: code.filter(|_| signal.is_none()),
        signal,
    }
}
