//! The commands an agent runs in one session (`terminal/*`).
//!
//! Each command runs below a keeper, which ends everything the command started. Its standard output and standard error
//! share one pipe, which keeps them in order. One task per command reads that pipe and never blocks on the receiver of
//! the output: output that is not sent yet is merged, and the oldest is dropped beyond the amount that a conversation
//! keeps. The working directory of a command is confined to the project; the command itself is not, it has the rights
//! of the user who runs the server.
//!
//! Invariant: a command ends when its terminal is released or its host is dropped.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agent_client_protocol_schema::v1 as acp;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::Instant;
use wire::TerminalExit;

use super::audit_event::{AuditWhat, Auditor};
use super::command::{Environment, exit_of, is_shell_line, spawn};
use super::screen::{Decoder, Tail};
use super::{Refusal, TerminalOutput};
use crate::keeper::{Keepers, Kept};

/// Maximum terminals of one session that are not released or whose command still runs.
const TERMINALS_MAX: usize = 64;
/// Default and maximum for the output that is kept per terminal.
const OUTPUT_BYTES: usize = 1024 * 1024;
const OUTPUT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Maximum output waiting to be sent, as much as a conversation keeps of a terminal.
const UNSENT_BYTES_MAX: usize = 1024 * 1024;
const CHUNK_BYTES: usize = 64 * 1024;
/// Maximum output sent per `BURST_INTERVAL`. Of faster output only the end is sent.
const BURST_BYTES_MAX: usize = 256 * 1024;
const BURST_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum bytes read after the command has ended: the largest pipe buffer an unprivileged user can get.
const LEFT_IN_PIPE_MAX: usize = 1024 * 1024;
/// Prefix of the server's own environment variables, among them the token.
const OWN_PREFIX: &[u8] = b"LIMINAL_";

pub(super) struct Setup {
    pub(super) session_id: String,
    pub(super) keepers: Keepers,
    pub(super) env: Vec<(OsString, OsString)>,
    pub(super) audit: Auditor,
    pub(super) output: mpsc::Sender<TerminalOutput>,
}

pub(super) struct Terminals {
    setup: Setup,
    /// `None` when closed.
    open: Mutex<Option<HashMap<String, Terminal>>>,
    slots: Arc<Semaphore>,
}

/// The session's side of a terminal. Dropping it ends the command.
struct Terminal {
    screen: Arc<Mutex<Tail>>,
    exit: Exit,
    stop: watch::Sender<bool>,
    /// Shared with the task: the slot is free when the terminal is released and the command has ended.
    _slot: Arc<OwnedSemaphorePermit>,
}

type Exit = watch::Receiver<Option<TerminalExit>>;

impl Terminals {
    pub(super) fn new(setup: Setup) -> Self {
        Self {
            setup,
            open: Mutex::new(Some(HashMap::new())),
            slots: Arc::new(Semaphore::new(TERMINALS_MAX)),
        }
    }

    /// Starts a command and returns the terminal's id. A command without arguments that contains white space and is no
    /// program is run by the shell, because some agents send whole command lines.
    pub(super) fn create(
        &self,
        request: acp::CreateTerminalRequest,
        start_in: Result<OwnedFd, Refusal>,
        cwd: &Path,
    ) -> Result<String, Refusal> {
        let mut argv = vec![request.command.clone()];
        argv.extend(request.args.iter().cloned());
        let started = start_in.and_then(|directory| {
            let env = self.environment(&request.env)?;
            if request.args.is_empty() && is_shell_line(&request.command, &directory, &env) {
                argv.splice(..0, ["sh".to_owned(), "-c".to_owned()]);
            }
            let limit = request.output_byte_limit.map_or(OUTPUT_BYTES, |limit| {
                usize::try_from(limit).map_or(OUTPUT_BYTES_MAX, |limit| limit.min(OUTPUT_BYTES_MAX))
            });
            self.start(&argv, &env, &directory, limit)
        });
        let (terminal_id, refused) = match &started {
            Ok(id) => (Some(id.clone()), None),
            Err(refusal) => (None, Some(refusal.message.clone())),
        };
        let cwd = cwd.to_string_lossy().into_owned();
        let what = AuditWhat::Command {
            terminal_id,
            argv,
            cwd,
            refused,
        };
        self.setup.audit.record(&self.setup.session_id, what);
        started
    }

    pub(super) fn output(&self, id: &str) -> Result<acp::TerminalOutputResponse, Refusal> {
        self.with(id, |terminal| {
            // The exit is read first: if it is set, the output is complete.
            let exit = terminal.exit.borrow().clone();
            let screen = lock(&terminal.screen);
            acp::TerminalOutputResponse::new(screen.text(), screen.truncated())
                .exit_status(exit.map(exit_status))
        })
    }

    pub(super) async fn wait_for_exit(
        &self,
        id: &str,
    ) -> Result<acp::WaitForTerminalExitResponse, Refusal> {
        let exit = self.with(id, |terminal| terminal.exit.clone())?;
        let exit = ended(exit).await;
        Ok(acp::WaitForTerminalExitResponse::new(exit_status(exit)))
    }

    /// Ends the command and everything it started. The output stays readable.
    pub(super) async fn kill(&self, id: &str) -> Result<(), Refusal> {
        let exit = self.with(id, |terminal| {
            terminal.stop.send_replace(true);
            terminal.exit.clone()
        })?;
        ended(exit).await;
        Ok(())
    }

    /// Ends the command and removes the terminal.
    pub(super) async fn release(&self, id: &str) -> Result<(), Refusal> {
        let terminal = lock(&self.open)
            .as_mut()
            .and_then(|open| open.remove(id))
            .ok_or_else(|| unknown(id))?;
        let exit = terminal.exit.clone();
        drop(terminal);
        ended(exit).await;
        Ok(())
    }

    pub(super) async fn close(&self) {
        let open = lock(&self.open).take().unwrap_or_default();
        let exits: Vec<Exit> = open
            .values()
            .map(|terminal| terminal.exit.clone())
            .collect();
        drop(open);
        for exit in exits {
            ended(exit).await;
        }
    }

    fn with<T>(&self, id: &str, look: impl FnOnce(&Terminal) -> T) -> Result<T, Refusal> {
        let open = lock(&self.open);
        let terminal = open.as_ref().and_then(|open| open.get(id));
        terminal.map(look).ok_or_else(|| unknown(id))
    }

    /// The command's environment: the base and the agent's additions, without the server's own variables.
    fn environment(&self, added: &[acp::EnvVariable]) -> Result<Environment, Refusal> {
        let mut env: Environment = self.setup.env.iter().cloned().collect();
        // It names the server's working directory.
        env.remove(OsStr::new("PWD"));
        for variable in added {
            let name = &variable.name;
            if name.is_empty() || name.contains(['=', '\0']) || variable.value.contains('\0') {
                let message = format!("{name:?} cannot be an environment variable");
                return Err(Refusal::not_allowed(message));
            }
            env.insert(name.into(), (&variable.value).into());
        }
        env.retain(|name, _| !name.as_bytes().starts_with(OWN_PREFIX));
        Ok(env)
    }

    fn start(
        &self,
        argv: &[String],
        env: &Environment,
        directory: &OwnedFd,
        limit: usize,
    ) -> Result<String, Refusal> {
        if argv.first().is_none_or(String::is_empty) || argv.iter().any(|part| part.contains('\0'))
        {
            return Err(Refusal::not_allowed(
                "The command is empty or contains a NUL byte",
            ));
        }
        let failed = |error: io::Error| Refusal::failed(format!("Could not start: {error}"));
        // Locked during the start, so that `close` cannot miss a command.
        let mut open = lock(&self.open);
        let open = open
            .as_mut()
            .ok_or_else(|| Refusal::failed("The session is closed"))?;
        let slot = self.slots.clone().try_acquire_owned().map_err(|_| {
            let message = format!("{TERMINALS_MAX} terminals are open; release some first");
            Refusal::failed(message)
        })?;
        let (keeper, reader) = spawn(&self.setup.keepers, argv, env, directory).map_err(failed)?;
        let reader = pipe::Receiver::from_owned_fd(reader.into()).map_err(failed)?;

        let id = uuid::Uuid::new_v4().to_string();
        let (stop, stopping) = watch::channel(false);
        let (ending, exit) = watch::channel(None);
        let terminal = Terminal {
            screen: Arc::new(Mutex::new(Tail::new(limit))),
            exit,
            stop,
            _slot: Arc::new(slot),
        };
        let running = Running {
            id: id.clone(),
            session_id: self.setup.session_id.clone(),
            keeper,
            screen: terminal.screen.clone(),
            decoder: Decoder::default(),
            unsent: Tail::new(UNSENT_BYTES_MAX),
            output: self.setup.output.clone(),
            audit: self.setup.audit.clone(),
            _slot: terminal._slot.clone(),
        };
        tokio::spawn(running.run(reader, stopping, ending));
        open.insert(id.clone(), terminal);
        Ok(id)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn unknown(id: &str) -> Refusal {
    Refusal::missing(format!("No terminal {id:?}"))
}

async fn ended(mut exit: Exit) -> TerminalExit {
    match exit.wait_for(Option::is_some).await {
        Ok(exit) => exit.clone(),
        // The task was dropped with the runtime.
        Err(_) => None,
    }
    .unwrap_or(TerminalExit {
        code: None,
        signal: None,
    })
}

fn exit_status(exit: TerminalExit) -> acp::TerminalExitStatus {
    acp::TerminalExitStatus::new()
        .exit_code(exit.code.and_then(|code| u32::try_from(code).ok()))
        .signal(exit.signal)
}

/// The task's side of a running command.
struct Running {
    id: String,
    session_id: String,
    keeper: Kept,
    screen: Arc<Mutex<Tail>>,
    decoder: Decoder,
    /// Output that is not sent yet.
    unsent: Tail,
    output: mpsc::Sender<TerminalOutput>,
    audit: Auditor,
    _slot: Arc<OwnedSemaphorePermit>,
}

impl Running {
    async fn run(
        mut self,
        mut pipe: pipe::Receiver,
        mut stop: watch::Receiver<bool>,
        ending: watch::Sender<Option<TerminalExit>>,
    ) {
        let mut buffer = vec![0; CHUNK_BYTES];
        let output = self.output.clone();
        let (mut reading, mut has_receiver, mut stopping) = (true, true, false);
        let (mut burst_bytes, mut burst_start) = (0, Instant::now());
        let status = loop {
            tokio::select! {
                read = pipe.read(&mut buffer), if reading => match read {
                    Ok(count @ 1..) => self.take_in(&buffer[..count]),
                    _ => reading = false,
                },
                permit = output.reserve(), if has_receiver && !self.unsent.is_empty() && burst_bytes < BURST_BYTES_MAX => {
                    let Ok(permit) = permit else {
                        has_receiver = false;
                        continue;
                    };
                    let text = self.unsent.take(CHUNK_BYTES);
                    if burst_start.elapsed() > BURST_INTERVAL {
                        (burst_bytes, burst_start) = (0, Instant::now());
                    }
                    burst_bytes += text.len();
                    permit.send(TerminalOutput { terminal_id: self.id.clone(), text, exit: None });
                }
                () = tokio::time::sleep_until(burst_start + BURST_INTERVAL), if burst_bytes >= BURST_BYTES_MAX => {
                    (burst_bytes, burst_start) = (0, Instant::now());
                }
                // Also resolves when the terminal is dropped.
                _ = stop.wait_for(|stop| *stop), if !stopping => {
                    stopping = true;
                    self.keeper.end();
                }
                status = self.keeper.wait() => break status,
            }
            // Endless output must not starve other tasks.
            tokio::task::yield_now().await;
        };
        if reading && let Ok(pipe) = pipe.into_nonblocking_fd() {
            self.take_rest(&pipe, &mut buffer);
        }
        let last = self.decoder.finish();
        self.show(last);
        let exit = exit_of(status);
        ending.send_replace(Some(exit.clone()));
        let what = AuditWhat::CommandEnded {
            terminal_id: self.id.clone(),
            exit: exit.clone(),
        };
        self.audit.record(&self.session_id, what);
        let last = TerminalOutput {
            terminal_id: self.id.clone(),
            text: self.unsent.take(usize::MAX),
            exit: Some(exit),
        };
        let _ = self.output.send(last).await;
    }

    fn take_in(&mut self, bytes: &[u8]) {
        let text = self.decoder.decode(bytes);
        self.show(&text);
    }

    fn show(&mut self, text: &str) {
        lock(&self.screen).push(text);
        self.unsent.push(text);
    }

    /// Reads the remaining output. The pipe may never end, because an unrelated process may hold it.
    fn take_rest(&mut self, pipe: &OwnedFd, buffer: &mut [u8]) {
        let mut left = LEFT_IN_PIPE_MAX;
        while left > 0
            && let Ok(count @ 1..) = rustix::io::read(pipe, &mut *buffer)
        {
            self.take_in(&buffer[..count]);
            left = left.saturating_sub(count);
        }
    }
}
