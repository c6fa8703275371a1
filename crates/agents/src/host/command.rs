//! Starting a command below a keeper, and its exit status.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, PipeReader};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};

use tokio::process::Command;
use wire::TerminalExit;

use super::confine::path_to;
use crate::keeper::{Keepers, Kept};

/// The environment of a command.
pub(super) type Environment = BTreeMap<OsString, OsString>;

/// Whether the command of a request is a shell command line and not the name of a program.
pub(super) fn is_shell_line(command: &str, directory: &OwnedFd, env: &Environment) -> bool {
    if !command.contains(char::is_whitespace) {
        return false;
    }
    let exists = match command.contains('/') {
        true => path_to(directory).is_ok_and(|path| path.join(command).is_file()),
        false => {
            let path = env.get(OsStr::new("PATH"));
            let mut folders = path.into_iter().flat_map(std::env::split_paths);
            folders.any(|folder| folder.join(command).is_file())
        }
    };
    !exists
}

/// Starts a keeper with the command. Returns it with the pipe for standard output and standard error.
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
        .current_dir(path_to(directory)?)
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        // Not reached by Ctrl+C in the server's terminal, like agents.
        .process_group(0)
        .spawn()?;
    Ok((keepers.take(child), reader))
}

/// The exit of a command. The keeper, like a shell, reports a signal as exit code 128 + signal number.
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
