//! `run_command`: runs a shell command in the project, in the client's terminal if it supports that.

use std::process::Stdio;
use std::time::Duration;

use agent_client_protocol_schema::v1 as acp;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::process::Command;
use tokio::time::{Instant, MissedTickBehavior};

use super::{Offered, begin, mark_in_progress, permission, schema};
use crate::turn::{Stop, Turn};
use crate::turn_output::Outcome;

pub(super) const NAME: &str = "run_command";
/// Maximum output kept. Earlier output is dropped.
const OUTPUT_BYTES_MAX: usize = 64 * 1024;
const TIME_MAX: Duration = Duration::from_secs(600);
const PROGRESS_EVERY: Duration = Duration::from_millis(500);

#[derive(Deserialize)]
struct Input {
    command: String,
}

pub(super) fn offered() -> Offered {
    let properties = json!({
        "command": {"type": "string", "description": "Runs with `sh -c` in the project folder, without input, for at most 10 minutes."},
    });
    Offered {
        name: NAME,
        description: "Runs a shell command in the project. The user may be asked first.",
        schema: schema(properties, &["command"]),
    }
}

pub(super) async fn run(turn: &mut Turn, input: Value) -> Result<Outcome, Stop> {
    let title = |input: &Input| format!("`{}`", input.command.replace('\n', " "));
    let input: Input = match begin(turn, NAME, acp::ToolKind::Execute, input, title).await? {
        Ok(input) => input,
        Err(outcome) => return Ok(outcome),
    };
    if input.command.trim().is_empty() {
        let outcome = Outcome::failed("The command is empty.");
        turn.output.end_call(&outcome, true).await?;
        return Ok(outcome);
    }
    if let Some(refused) = permission(turn, NAME).await? {
        turn.output.end_call(&refused, true).await?;
        return Ok(refused);
    }
    mark_in_progress(turn, None).await?;
    match turn.output.link.capabilities.terminal {
        true => in_terminal(turn, input.command).await,
        false => as_child_process(turn, input.command).await,
    }
}

async fn in_terminal(turn: &mut Turn, command: String) -> Result<Outcome, Stop> {
    let link = turn.output.link.clone();
    let session = link.acp_session();
    let request = acp::CreateTerminalRequest::new(session.clone(), "sh")
        .args(vec!["-c".to_owned(), command])
        .cwd(turn.roots.cwd().to_owned())
        .output_byte_limit(OUTPUT_BYTES_MAX as u64);
    let created: Result<acp::CreateTerminalResponse, _> =
        link.request("terminal/create", request).await;
    let terminal = match created {
        Ok(created) => created.terminal_id,
        Err(error) => {
            let outcome = Outcome::failed(format!(
                "The client could not create a terminal: {}",
                error.message
            ));
            turn.output.end_call(&outcome, true).await?;
            return Ok(outcome);
        }
    };
    turn.output.set_terminal(Some(terminal.clone()));
    let shown = acp::ToolCallContent::Terminal(acp::Terminal::new(terminal.clone()));
    let fields = acp::ToolCallUpdateFields::new().content(vec![shown]);
    turn.output.change_call(fields).await?;

    let wait = acp::WaitForTerminalExitRequest::new(session.clone(), terminal.clone());
    let waiting = link.request::<acp::WaitForTerminalExitResponse>("terminal/wait_for_exit", wait);
    let exit = match tokio::time::timeout(TIME_MAX, waiting).await {
        Ok(Ok(answer)) => Ok(answer.exit_status),
        Ok(Err(error)) => Err(error.message),
        Err(_) => {
            let kill = acp::KillTerminalRequest::new(session.clone(), terminal.clone());
            link.request_and_forget("terminal/kill", kill);
            Err(timeout_message())
        }
    };
    let output = acp::TerminalOutputRequest::new(session.clone(), terminal.clone());
    let output: Result<acp::TerminalOutputResponse, _> =
        link.request("terminal/output", output).await;
    let output = output.map(|answer| answer.output).unwrap_or_default();
    turn.output.set_terminal(None);
    let release = acp::ReleaseTerminalRequest::new(session, terminal);
    link.request_and_forget("terminal/release", release);

    let outcome = match exit {
        Ok(status) => outcome_of_exit(
            output,
            status.exit_code.map(i64::from),
            status.signal.as_deref(),
        ),
        Err(reason) => Outcome::failed(format!("{output}\n{reason}")),
    };
    // The terminal no longer exists at a replay, so the history needs the output itself.
    turn.output.end_call(&outcome, true).await?;
    Ok(outcome)
}

async fn as_child_process(turn: &mut Turn, command: String) -> Result<Outcome, Stop> {
    let outcome = match start(&command, turn.roots.cwd()) {
        Ok((child, reader)) => wait_with_progress(turn, child, reader).await?,
        Err(error) => Outcome::failed(format!("The command could not be started: {error}")),
    };
    turn.output.end_call(&outcome, true).await?;
    Ok(outcome)
}

/// Starts the command in its own process group, with stdout and stderr in one pipe to keep their order.
fn start(
    command: &str,
    cwd: &std::path::Path,
) -> std::io::Result<(Child, tokio::net::unix::pipe::Receiver)> {
    let (reader, writer) = std::io::pipe()?;
    let child = Command::new("sh")
        .args(["-c", command])
        .current_dir(cwd)
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .process_group(0)
        .spawn()?;
    let reader = std::os::fd::OwnedFd::from(reader);
    let reader = tokio::net::unix::pipe::Receiver::from_owned_fd(reader)?;
    Ok((Child(child), reader))
}

/// A child process whose whole process group is killed on drop.
struct Child(tokio::process::Child);

impl Drop for Child {
    fn drop(&mut self) {
        // `None` once it has been waited for, as the pid may belong to another process by then.
        let pid = self.0.id().and_then(|pid| i32::try_from(pid).ok());
        if let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
        }
    }
}

async fn wait_with_progress(
    turn: &mut Turn,
    mut child: Child,
    mut reader: tokio::net::unix::pipe::Receiver,
) -> Result<Outcome, Stop> {
    let deadline = Instant::now() + TIME_MAX;
    let mut output = Tail::default();
    let mut ticks = tokio::time::interval(PROGRESS_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.reset();
    let mut shown = 0;
    let mut buffer = vec![0; 8192];
    let mut open = true;
    let status = loop {
        tokio::select! {
            read = reader.read(&mut buffer), if open => match read {
                Ok(0) | Err(_) => open = false,
                Ok(count) => output.push(&buffer[..count]),
            },
            // A background process of the command may keep the pipe open.
            status = child.0.wait(), if !open || output.quiet() => break status,
            _ = ticks.tick() => {
                output.quiet = output.total == shown;
                if output.total != shown {
                    shown = output.total;
                    turn.output.show_progress(&output.text()).await?;
                }
            }
            () = tokio::time::sleep_until(deadline) => {
                return Ok(Outcome::failed(format!("{}\n{}", output.text(), timeout_message())));
            }
        }
    };
    Ok(match status {
        Ok(status) => {
            use std::os::unix::process::ExitStatusExt;
            let signal = status.signal().map(|signal| signal.to_string());
            outcome_of_exit(
                output.text(),
                status.code().map(i64::from),
                signal.as_deref(),
            )
        }
        Err(error) => Outcome::failed(error.to_string()),
    })
}

/// The last `OUTPUT_BYTES_MAX` bytes of an output.
#[derive(Default)]
struct Tail {
    bytes: std::collections::VecDeque<u8>,
    total: usize,
    quiet: bool,
}

impl Tail {
    fn push(&mut self, more: &[u8]) {
        self.total += more.len();
        self.bytes.extend(more);
        let over = self.bytes.len().saturating_sub(OUTPUT_BYTES_MAX);
        self.bytes.drain(..over);
    }

    fn quiet(&self) -> bool {
        self.quiet
    }

    fn text(&self) -> String {
        let bytes: Vec<u8> = self.bytes.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        match self.total - bytes.len() {
            0 => text,
            cut => format!("… {cut} earlier bytes omitted\n{text}"),
        }
    }
}

fn timeout_message() -> String {
    format!(
        "The command was stopped after {} minutes.",
        TIME_MAX.as_secs() / 60
    )
}

fn outcome_of_exit(output: String, code: Option<i64>, signal: Option<&str>) -> Outcome {
    let output = output.trim_end();
    let gap = if output.is_empty() { "" } else { "\n" };
    match (code, signal) {
        (Some(0), _) if output.is_empty() => Outcome::done("(no output)"),
        (Some(0), _) => Outcome::done(output),
        (Some(code), _) => Outcome::failed(format!("{output}{gap}Exit code {code}.")),
        (None, signal) => {
            let signal = signal.unwrap_or("a signal");
            Outcome::failed(format!("{output}{gap}Ended by signal {signal}."))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_of_long_output_is_kept() {
        let mut tail = Tail::default();
        tail.push(b"begin");
        tail.push(&vec![b'x'; OUTPUT_BYTES_MAX]);
        assert!(tail.text().starts_with("… 5 earlier bytes omitted\nxxx"));
    }

    #[test]
    fn outcome_names_exit_code_or_signal() {
        assert!(outcome_of_exit("hi\n".to_owned(), Some(0), None).ok);
        let silent = outcome_of_exit(String::new(), Some(0), None);
        assert_eq!((silent.ok, silent.text.as_str()), (true, "(no output)"));
        let failed = outcome_of_exit("no\n".to_owned(), Some(2), None);
        assert!(!failed.ok);
        assert_eq!(failed.text, "no\nExit code 2.");
        assert_eq!(
            outcome_of_exit(String::new(), None, Some("9")).text,
            "Ended by signal 9."
        );
    }

    #[tokio::test]
    async fn dropping_a_command_kills_its_process_group() {
        let dir = tempfile::tempdir().unwrap();
        let (child, mut reader) = start("sleep 600 & echo begun; wait", dir.path()).unwrap();
        let mut buffer = [0; 64];
        assert!(reader.read(&mut buffer).await.unwrap() > 0);
        drop(child);
        // The pipe ends when the last process that could write to it has exited.
        let end = async { while reader.read(&mut buffer).await.unwrap() > 0 {} };
        let guard = Duration::from_secs(30);
        assert!(tokio::time::timeout(guard, end).await.is_ok());
    }
}
