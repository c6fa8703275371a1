//! Sign-in with a method the agent offers.
//!
//! Some agents sign in on an `authenticate` request; some name a command that signs in interactively, often their own
//! with other arguments. That command runs on a pseudo-terminal below a keeper. The user's input goes to that terminal
//! and is neither logged nor stored.
//!
//! Invariants: only a command the agent offered is run; at most one attempt per agent is in progress; an attempt ends
//! when its caller drops it.

use std::ffi::OsString;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pty_process::{Command, OwnedReadPty, OwnedWritePty, Size};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{mpsc, watch};
use wire::{Ask, QuestionAction, QuestionOutcome, SignInKind, SignInMethod, SignInShown};

use super::connection::{AgentError, Start};
use super::elicitation::{self, Elicitation};
use super::host::Decoder;
use super::inbound_limiter::Answer;
use super::routes::lock;

/// Maximum sign-in methods of one agent.
const METHODS_MAX: usize = 32;
const ROWS: u16 = 24;
const COLUMNS: u16 = 80;
/// Bytes per read of the command's output. Together with the pause it limits the rate at which output is sent.
const READ_BYTES: usize = 4 * 1024;
const PAUSE: Duration = Duration::from_millis(20);
/// Maximum wait for remaining output after the command has exited.
const REST: Duration = Duration::from_secs(1);
/// Maximum inputs waiting for the command.
const TYPED_MAX: usize = 64;
/// Maximum length of one input.
pub(super) const TYPED_BYTES_MAX: usize = 16 * 1024;

/// A sign-in method, with the command that clients do not see.
#[derive(Debug, Clone)]
struct Offered {
    shown: SignInMethod,
    run: Option<Run>,
}

/// The command of an interactive sign-in method.
#[derive(Debug, Clone, Default)]
pub(super) struct Run {
    /// The program; `None` for the agent's own command.
    program: Option<String>,
    args: Vec<String>,
    env: Vec<(OsString, OsString)>,
}

/// The sign-in methods the agent has offered so far.
#[derive(Debug, Default)]
pub(super) struct Offers(Mutex<Vec<Offered>>);

impl Offers {
    /// Adds the methods in an agent's `authMethods`, and returns these for clients.
    pub(super) fn take(&self, listed: &Value) -> Vec<SignInMethod> {
        let listed = listed.as_array().into_iter().flatten();
        let listed: Vec<Offered> = listed.filter_map(offered).take(METHODS_MAX).collect();
        let shown = listed.iter().map(|method| method.shown.clone()).collect();
        let mut known = lock(&self.0);
        for method in listed {
            let same = known.iter().position(|old| old.shown.id == method.shown.id);
            match same {
                Some(at) => known[at] = method,
                None if known.len() < METHODS_MAX => known.push(method),
                None => {}
            }
        }
        shown
    }

    pub(super) fn shown(&self) -> Vec<SignInMethod> {
        let known = lock(&self.0);
        known.iter().map(|method| method.shown.clone()).collect()
    }

    /// The method with this id, if there is one: its command, or `None` if the agent signs in itself.
    pub(super) fn find(&self, id: &str) -> Option<Option<Run>> {
        let known = lock(&self.0);
        let method = known.iter().find(|method| method.shown.id == id)?;
        Some(method.run.clone())
    }
}

fn offered(method: &Value) -> Option<Offered> {
    let text = |field: &str| method[field].as_str().map(str::to_owned);
    let id = text("id")?;
    let words = |from: &Value| -> Vec<String> {
        let words = from.as_array().into_iter().flatten();
        words.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let pairs = |from: &Value| -> Vec<(OsString, OsString)> {
        let pairs = from.as_object().into_iter().flatten();
        let pair = |(name, value): (&String, &Value)| Some((name.into(), value.as_str()?.into()));
        pairs.filter_map(pair).collect()
    };
    let legacy = &method["_meta"]["terminal-auth"];
    let program = legacy["command"].as_str().map(str::to_owned);
    // A method with a type runs the agent's own command, so there is no command line to show.
    let legacy_program = program.as_ref().filter(|_| method["type"].is_null());
    let command = legacy_program.map(|program| {
        [vec![program.clone()], words(&legacy["args"])]
            .concat()
            .join(" ")
    });
    let (kind, run) = match (method["type"].as_str(), program) {
        (Some("terminal"), _) => {
            let run = Run {
                program: None,
                args: words(&method["args"]),
                env: pairs(&method["env"]),
            };
            (SignInKind::Terminal, Some(run))
        }
        (Some("env_var"), _) => (SignInKind::EnvVar, None),
        (_, Some(program)) => {
            let run = Run {
                program: Some(program),
                args: words(&legacy["args"]),
                env: pairs(&legacy["env"]),
            };
            (SignInKind::Terminal, Some(run))
        }
        _ => (SignInKind::Agent, None),
    };
    let named = method["vars"].as_array().into_iter().flatten();
    let named = named.filter_map(|variable| variable["name"].as_str());
    let variables = named.chain(method["varName"].as_str());
    Some(Offered {
        shown: SignInMethod {
            name: text("name").unwrap_or_else(|| id.clone()),
            description: text("description").map(|text| text.trim().to_owned()),
            kind,
            command,
            variables: variables.map(str::to_owned).collect(),
            id,
        },
        run,
    })
}

/// An input of the sign-in in progress.
pub(super) enum Incoming {
    Typed(String),
    Answered(QuestionAction),
    /// An elicitation of the agent outside of any session.
    Elicitation(Box<(Elicitation, Answer)>),
    Visited(String),
}

/// The sign-in in progress, if there is one. Clones share it.
#[derive(Clone, Default)]
pub(super) struct Attempts(Arc<Mutex<Option<Running>>>);

struct Running {
    number: u64,
    incoming: mpsc::Sender<Incoming>,
    stop: watch::Sender<bool>,
}

/// A sign-in in progress, as its caller holds it. Dropping it ends it.
pub(super) struct Attempt {
    of: Attempts,
    number: u64,
    incoming: mpsc::Receiver<Incoming>,
    stop: watch::Receiver<bool>,
}

impl Attempts {
    /// Begins an attempt and ends the previous one.
    pub(super) fn begin(&self) -> Attempt {
        let (incoming, received) = mpsc::channel(TYPED_MAX);
        let (stop, stopped) = watch::channel(false);
        let mut running = lock(&self.0);
        let number = running.as_ref().map_or(1, |before| before.number + 1);
        let before = running.replace(Running {
            number,
            incoming,
            stop,
        });
        if let Some(before) = before {
            before.stop.send_replace(true);
        }
        Attempt {
            of: self.clone(),
            number,
            incoming: received,
            stop: stopped,
        }
    }

    pub(super) fn stop(&self) {
        if let Some(running) = &*lock(&self.0) {
            running.stop.send_replace(true);
        }
    }

    /// Passes an input to the attempt. Returns the input if there is no attempt or its queue is full.
    pub(super) fn pass(&self, incoming: Incoming) -> Result<(), Incoming> {
        match &*lock(&self.0) {
            Some(running) => running
                .incoming
                .try_send(incoming)
                .map_err(mpsc::error::TrySendError::into_inner),
            None => Err(incoming),
        }
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let mut running = lock(&self.of.0);
        running.take_if(|running| running.number == self.number);
    }
}

pub(super) type Show<'a> = &'a (dyn Fn(SignInShown) + Send + Sync);

impl Attempt {
    /// Waits while the agent signs in itself. Meanwhile it may ask the user to open a URL.
    pub(super) async fn by_the_agent(
        mut self,
        done: impl Future<Output = Result<(), AgentError>>,
        show: Show<'_>,
        cancelled: impl Fn() -> AgentError,
    ) -> Result<(), AgentError> {
        let mut done = std::pin::pin!(done);
        let mut open: Option<(Option<String>, Answer)> = None;
        loop {
            tokio::select! {
                result = &mut done => return result,
                () = stopped(&mut self.stop) => return Err(cancelled()),
                Some(incoming) = self.incoming.recv() => match incoming {
                    Incoming::Elicitation(asked) => {
                        let (asked, answer) = *asked;
                        match asked.ask {
                            Ask::Link { url, .. } => {
                                open = Some((asked.elicitation_id, answer));
                                show(SignInShown::Link { message: asked.message, url });
                            }
                            Ask::Form { .. } => answer
                                .refuse(-32602, "only a URL can be shown during a sign-in"),
                        }
                    }
                    Incoming::Answered(action) => {
                        if let Some((_, answer)) = open.take() {
                            let outcome = match action {
                                QuestionAction::Accept => QuestionOutcome::Accepted,
                                QuestionAction::Decline => QuestionOutcome::Declined,
                                QuestionAction::Cancel => QuestionOutcome::Cancelled,
                            };
                            answer.succeed(elicitation::answer(outcome, None));
                        }
                    }
                    Incoming::Visited(id) => {
                        if let Some((_, answer)) = open.take_if(|(of, _)| of.as_ref() == Some(&id)) {
                            answer.succeed(elicitation::answer(QuestionOutcome::Accepted, None));
                        }
                        show(SignInShown::LinkClosed);
                    }
                    Incoming::Typed(_) => {}
                },
            }
        }
    }

    /// Runs the sign-in command in a terminal. It succeeds if the command exits with 0.
    pub(super) async fn in_a_terminal(
        mut self,
        start: Start,
        run: Run,
        show: Show<'_>,
    ) -> Result<(), AgentError> {
        let name = start.name.clone();
        let failed = |message: String| AgentError::Refused {
            name: name.clone(),
            code: 0,
            message,
            data: None,
        };
        let no_terminal =
            |error: pty_process::Error| failed(format!("cannot open a terminal: {error}"));
        let (pty, pts) = pty_process::open().map_err(no_terminal)?;
        pty.resize(Size::new(ROWS, COLUMNS)).map_err(no_terminal)?;
        let child = command(&start, run)
            .spawn(pts)
            .map_err(|error| failed(format!("its command could not be started: {error}")))?;
        let keeper = start.keepers.take(child);
        let (read, write) = pty.into_split();
        let mut screen = Screen {
            read,
            decoder: Decoder::default(),
            bytes: vec![0; READ_BYTES],
            show,
        };
        // Polled concurrently, so that a command that does not read its input can still be ended.
        let (_, none) = mpsc::channel(1);
        let incoming = std::mem::replace(&mut self.incoming, none);
        let mut typing = std::pin::pin!(pass_on_typed(incoming, write));
        let status = loop {
            tokio::select! {
                // The end of the output does not count: only the exit of the command ends the attempt.
                _ = screen.more() => {}
                status = keeper.wait() => break status,
                () = stopped(&mut self.stop) => return Err(failed("the sign-in was cancelled".to_owned())),
                () = &mut typing => {}
            }
        };
        // The remaining output is shown before the result.
        let rest = async { while screen.more().await {} };
        let _ = tokio::time::timeout(REST, rest).await;
        match status.and_then(|status| status.code()) {
            Some(0) => Ok(()),
            Some(code) => Err(failed(format!("its command ended with exit code {code}"))),
            None => Err(failed("its command was killed".to_owned())),
        }
    }
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Writes the user's input to the terminal. Never resolves.
async fn pass_on_typed(mut incoming: mpsc::Receiver<Incoming>, mut write: OwnedWritePty) {
    while let Some(incoming) = incoming.recv().await {
        match incoming {
            // A failed write is ignored: the command has exited or is being ended.
            Incoming::Typed(text) => drop(write.write_all(text.as_bytes()).await),
            Incoming::Elicitation(asked) => {
                asked.1.refuse(-32602, "the sign-in runs in a terminal")
            }
            Incoming::Answered(_) | Incoming::Visited(_) => {}
        }
    }
    std::future::pending().await
}

/// The output of the sign-in command.
struct Screen<'a> {
    read: OwnedReadPty,
    decoder: Decoder,
    bytes: Vec<u8>,
    show: Show<'a>,
}

impl Screen<'_> {
    /// Reads and shows more output. False at its end, which a pseudo-terminal reports as an error.
    async fn more(&mut self) -> bool {
        let read = self.read.read(&mut self.bytes).await;
        let count = read.unwrap_or_default();
        let text = self.decoder.decode(&self.bytes[..count]);
        if !text.is_empty() {
            (self.show)(SignInShown::Output { text });
        }
        tokio::time::sleep(PAUSE).await;
        count > 0
    }
}

fn command(start: &Start, run: Run) -> Command {
    let (keeper, mut words) = start.keepers.command();
    match run.program {
        Some(program) => words.push(program.into()),
        None => {
            words.push(start.launch.program.clone().into());
            words.extend(start.launch.args.iter().map(OsString::from));
        }
    }
    words.extend(run.args.into_iter().map(OsString::from));
    Command::new(keeper)
        .args(words)
        .env_clear()
        .envs(start.env.iter().map(|(name, value)| (name, value)))
        .env("TERM", "xterm-256color")
        .envs(run.env)
        .current_dir(&start.cwd)
}
