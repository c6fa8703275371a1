//! One agent process and the ACP connection to it.
//!
//! The official crate implements the protocol. Its handlers run inside its dispatch loop and only enqueue events,
//! within the limits of `inbound_limiter`. Below the crate, `line_reader` reads the agent's lines: `session/update`
//! goes straight to the event queue; every other line goes through the crate, and the reader waits until it was
//! dispatched. So all events leave one queue in wire order, at most one line is inside the crate's unbounded queues,
//! and an agent that writes faster than its events are processed is slowed down by its own pipe.
//!
//! Invariant: each ticket is answered exactly once, also when the process ends unexpectedly.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{Agent, Client, Lines, UntypedMessage};
use agent_client_protocol_schema::v1 as acp;
use futures_channel::mpsc as lines;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::sync::{mpsc, oneshot, watch};
use wire::SignInMethod;

use super::Launch;
use super::error_reason;
use super::event::{AgentEvent, Queued};
use super::inbound_limiter::InboundLimiter;
use super::keeper::{Ender, Keepers, Kept};
use super::line_reader::{self, LineReader, Oddities};
use super::pending_requests::{PendingRequests, Ticket};
use super::sign_in::Offers;
use super::stderr_tail::StderrTail;
use super::wire_tap::WireTap;

/// Maximum time an agent may take to exit after its input was closed.
const CLOSE_DEADLINE: Duration = Duration::from_secs(5);
/// Exit code of the keeper, as of a shell, for a command that could not be started.
const COULD_NOT_START: i32 = 127;
/// Maximum lines queued for the agent.
const OUTGOING_MAX: usize = 256;

/// How to start an agent.
pub struct Start {
    /// The display name, for messages.
    pub name: String,
    pub launch: Launch,
    pub keepers: Keepers,
    /// The agent's whole environment.
    pub env: Vec<(OsString, OsString)>,
    pub cwd: PathBuf,
    pub timeout: Duration,
    pub capabilities: acp::ClientCapabilities,
    /// Receives a copy of the lines in both directions.
    pub tap: Arc<WireTap>,
}

/// An error of an agent or of the connection to it. Each message can be shown to the user.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AgentError {
    #[error("Could not start {name}. Check that it's installed.{}", detail(.reason))]
    NotStarted { name: String, reason: String },
    #[error("Could not connect to {name}.{}", detail(.reason))]
    NotConnected { name: String, reason: String },
    #[error("{name} wants you to sign in first.{}", detail(&methods.join("; ")))]
    SignInNeeded { name: String, methods: Vec<String> },
    #[error("{name} refused: {message}")]
    Refused {
        name: String,
        code: i64,
        message: String,
        data: Option<Box<Value>>,
    },
    #[error("Connection to {name} lost.{}", detail(.reason))]
    Lost { name: String, reason: String },
    #[error("{name} is asleep.")]
    Asleep { name: String },
}

fn detail(reason: &str) -> String {
    match reason {
        "" => String::new(),
        reason => format!(" ({reason})"),
    }
}

/// The connection to a running agent process. Clones share it.
#[derive(Clone)]
pub struct Connection {
    inner: Arc<Inner>,
}

struct Inner {
    id: u64,
    name: String,
    /// The sign-in methods the agent has offered.
    sign_in: Arc<Offers>,
    rpc: ConnectionTo<Agent>,
    initialized: acp::InitializeResponse,
    pending: Arc<PendingRequests>,
    /// Whether the agent's output has ended.
    ended: Arc<AtomicBool>,
    stop: watch::Sender<bool>,
    gone: watch::Receiver<bool>,
    keeper_pid: Option<u32>,
    keeper: Ender,
    oddities: Arc<Oddities>,
    stderr: StderrTail,
}

/// Starts the agent and initializes the connection. Its events go to `events`.
pub async fn connect(start: Start, events: mpsc::Sender<Queued>) -> Result<Connection, AgentError> {
    static NEXT_ID: AtomicU64 = AtomicU64::new(1);
    let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
    let name = start.name.clone();
    let timeout = start.timeout;
    let (ready, handshake) = oneshot::channel();
    let running = run(id, start, events, ready);
    tokio::spawn(running);
    match tokio::time::timeout(timeout, handshake).await {
        Ok(Ok(result)) => result,
        Ok(Err(_)) => Err(AgentError::NotConnected {
            name,
            reason: "it exited during the handshake".to_owned(),
        }),
        Err(_) => {
            let reason = format!("no answer within {} s", timeout.as_secs_f32());
            Err(AgentError::NotConnected { name, reason })
        }
    }
}

impl Connection {
    pub(super) fn name(&self) -> &str {
        &self.inner.name
    }

    /// Unique for each agent process.
    pub fn id(&self) -> u64 {
        self.inner.id
    }

    /// The agent's response to `initialize`: its capabilities, name and version.
    pub fn initialized(&self) -> &acp::InitializeResponse {
        &self.inner.initialized
    }

    /// The sign-in methods the agent has offered so far.
    pub(super) fn sign_in(&self) -> &Offers {
        &self.inner.sign_in
    }

    /// Counters of the messages that could not be used.
    pub fn oddities(&self) -> &Oddities {
        &self.inner.oddities
    }

    pub(super) fn keeper_pid(&self) -> Option<u32> {
        self.inner.keeper_pid
    }

    /// The last lines of the agent's standard error.
    pub fn stderr(&self) -> String {
        self.inner.stderr.text()
    }

    /// Sends a request whose response arrives as `AgentEvent::Response`, in wire order with the updates. Returns `None`
    /// if the agent is asleep.
    pub fn send(
        &self,
        events: &mpsc::Sender<Queued>,
        method: &str,
        params: impl serde::Serialize,
    ) -> Option<Ticket> {
        let ticket = self.inner.pending.issue()?;
        let (pending, ended) = (self.inner.pending.clone(), self.inner.ended.clone());
        let (id, name, answers) = (self.inner.id, self.inner.name.clone(), events.clone());
        let sign_in = self.inner.sign_in.clone();
        let sent = UntypedMessage::new(method, params).and_then(|message| {
            let request = self.inner.rpc.prepare_request(message);
            request.on_receiving_result(async move |result| {
                // When the agent's output ends, the crate fails all pending requests; `run` then reports the actual
                // reason.
                let lost = result.is_err() && ended.load(Ordering::Acquire);
                if !lost && pending.claim(ticket) {
                    let result = result.map_err(|error| refused(&name, &sign_in, error));
                    let _ = answers.send(Queued::response(id, ticket, result)).await;
                }
                Ok(())
            })
        });
        // The connection has ended, so the callback above is never called.
        if sent.is_err() && self.inner.pending.claim(ticket) {
            let (id, result) = (self.inner.id, Err(self.lost()));
            let (response, events) = (Queued::response(id, ticket, result), events.clone());
            tokio::spawn(async move { events.send(response).await });
        }
        Some(ticket)
    }

    fn refused(&self, error: agent_client_protocol::Error) -> AgentError {
        refused(&self.inner.name, &self.inner.sign_in, error)
    }

    fn lost(&self) -> AgentError {
        AgentError::Lost {
            name: self.inner.name.clone(),
            reason: String::new(),
        }
    }

    /// Sends a request and waits for its response, which may overtake updates the agent sent before it.
    pub async fn request(
        &self,
        method: &str,
        params: impl serde::Serialize,
    ) -> Result<Value, AgentError> {
        let name = || self.inner.name.clone();
        let asleep = || AgentError::Asleep { name: name() };
        let _asked = self.inner.pending.hold().ok_or_else(asleep)?;
        let (answer, answered) = oneshot::channel();
        let message = UntypedMessage::new(method, params).map_err(|error| self.refused(error))?;
        self.inner
            .rpc
            .prepare_request(message)
            .on_receiving_result(async move |result| {
                let _ = answer.send(result);
                Ok(())
            })
            .map_err(|_| self.lost())?;
        let mut gone = self.inner.gone.clone();
        tokio::select! {
            answer = answered => match answer.map_err(|_| self.lost())? {
                Err(_) if self.inner.ended.load(Ordering::Acquire) => Err(self.lost()),
                answer => answer.map_err(|error| self.refused(error)),
            },
            _ = gone.wait_for(|gone| *gone) => Err(self.lost()),
        }
    }

    /// Sends a notification such as `session/cancel`.
    pub fn notify(&self, method: &str, params: impl serde::Serialize) {
        let sent = UntypedMessage::new(method, params)
            .and_then(|message| self.inner.rpc.send_notification(message));
        if let Err(error) = sent {
            tracing::debug!(%error, method, "could not send a notification to the agent");
        }
    }

    /// When the agent became idle; `None` while a turn runs or another request is pending.
    pub fn idle_since(&self) -> Option<Instant> {
        self.inner.pending.idle_since()
    }

    /// Stops sending requests if none was pending for `idle_for`, and returns whether that was the case.
    pub(super) fn retire(&self, idle_for: Duration) -> bool {
        self.inner.pending.retire(idle_for)
    }

    pub(super) fn is_retired(&self) -> bool {
        self.inner.pending.is_retired()
    }

    /// Whether the agent's output has ended. No request can be sent any more, although the process may still run.
    pub(super) fn has_ended(&self) -> bool {
        self.inner.ended.load(Ordering::Acquire)
    }

    /// Waits until the process has ended.
    pub async fn gone(&self) {
        let mut gone = self.inner.gone.clone();
        let _ = gone.wait_for(|gone| *gone).await;
    }

    /// Closes the agent's input and, if it has not exited within five seconds, ends it and everything it started.
    pub async fn close(&self) {
        self.inner.stop.send_replace(true);
        let mut gone = self.inner.gone.clone();
        if tokio::time::timeout(CLOSE_DEADLINE, gone.wait_for(|gone| *gone))
            .await
            .is_ok()
        {
            return;
        }
        self.kill();
        let _ = gone.wait_for(|gone| *gone).await;
    }

    /// Ends the agent and everything it started, without waiting.
    pub fn kill(&self) {
        self.inner.keeper.end();
    }
}

fn refused(name: &str, sign_in: &Offers, error: agent_client_protocol::Error) -> AgentError {
    let name = name.to_owned();
    let code = i64::from(i32::from(error.code));
    if code == -32000 {
        let listed = error.data.as_ref().map(|data| &data["authMethods"]);
        let listed = listed.map_or(vec![], |listed| sign_in.take(listed));
        let methods = if listed.is_empty() {
            sign_in.shown()
        } else {
            listed
        };
        let methods = methods.iter().map(one_line).collect();
        return AgentError::SignInNeeded { name, methods };
    }
    AgentError::Refused {
        name,
        code,
        message: error_reason::in_words(&error.message, error.data.as_ref()),
        data: error.data.map(Box::new),
    }
}

fn one_line(method: &SignInMethod) -> String {
    match &method.command {
        Some(command) => format!("{}: run `{command}`", method.name),
        None => method.name.clone(),
    }
}

type Ready = oneshot::Sender<Result<Connection, AgentError>>;

/// Runs one agent process from its start to its exit.
async fn run(id: u64, start: Start, events: mpsc::Sender<Queued>, ready: Ready) {
    let name = start.name.clone();
    let mut keeper = match spawn(&start) {
        Ok(keeper) => keeper,
        Err(error) => {
            let reason = error.to_string();
            let _ = ready.send(Err(AgentError::NotStarted { name, reason }));
            return;
        }
    };
    let (Some(stdin), Some(stdout), Some(stderr)) = (
        keeper.stdin.take(),
        keeper.stdout.take(),
        keeper.stderr.take(),
    ) else {
        return;
    };
    let stderr = StderrTail::drain(stderr);
    let (stop, stopping) = watch::channel(false);
    let (gone, is_gone) = watch::channel(false);
    let oddities = Arc::new(Oddities::default());
    let pending = Arc::new(PendingRequests::default());

    let (outgoing, to_agent) = lines::channel(OUTGOING_MAX);
    let (limiter, delivered) = InboundLimiter::new();
    let writing = tokio::spawn(line_reader::write_lines(
        stdin,
        to_agent,
        stopping,
        start.tap.clone(),
        delivered,
    ));
    let (reader, from_agent, on_dispatched) = LineReader::new(
        id,
        events.clone(),
        oddities.clone(),
        start.tap.clone(),
        limiter.clone(),
    );
    let ended = reader.ended();
    let reading = tokio::spawn(reader.read_lines(stdout, keeper.wait()));

    let outgoing = outgoing.sink_map_err(std::io::Error::other);
    let transport = Lines::new(outgoing, from_agent.map(Ok::<String, std::io::Error>));
    let shared = Shared {
        id,
        name: name.clone(),
        pending: pending.clone(),
        ended,
        stop,
        is_gone,
        keeper_pid: keeper.pid,
        keeper: keeper.ender(),
        oddities,
        stderr: stderr.clone(),
    };
    let capabilities = start.capabilities;
    let (requests, pending_inbound) = (events.clone(), pending.clone());
    let completions = events.clone();
    let connected = Client
        .v1()
        .name("liminal")
        .on_receive_request(
            async move |request: UntypedMessage, responder: Responder<Value>, agent| {
                let (method, params) = request.into_parts();
                let receive = limiter.receive(&method, responder, agent, pending_inbound.hold());
                let Some(answer) = receive.await else {
                    return Ok(());
                };
                match SERVED.contains(&method.as_str()) {
                    true => drop(
                        requests
                            .send(Queued {
                                connection: id,
                                event: AgentEvent::Request {
                                    method,
                                    params,
                                    answer,
                                },
                            })
                            .await,
                    ),
                    false => answer.refuse(-32601, "Method not found"),
                }
                Ok(())
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_notification(
            async move |notification: UntypedMessage, agent| {
                let (method, params) = (&notification.method, &notification.params);
                match (method.as_str(), params["elicitationId"].as_str()) {
                    ("elicitation/complete", Some(elicitation_id)) => {
                        let elicitation_id = elicitation_id.to_owned();
                        let visited = Queued {
                            connection: id,
                            event: AgentEvent::Visited { elicitation_id },
                        };
                        let _ = completions.send(visited).await;
                    }
                    _ => on_dispatched.notice(method, params, &agent).await,
                }
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .connect_with(transport, async move |rpc| {
            let mut ready = ready;
            let initialized = tokio::select! {
                initialized = initialize(rpc.clone(), capabilities, shared) => initialized,
                // The caller of `connect` has timed out.
                () = ready.closed() => Err("no answer in time".to_owned()),
            };
            match initialized {
                Ok(connection) => {
                    let _ = ready.send(Ok(connection));
                    rpc.incoming_closed().await;
                    Ok(None)
                }
                Err(reason) => Ok(Some((ready, reason))),
            }
        })
        .await;
    if let Ok(Some((ready, reason))) = connected {
        keeper.end();
        let code = keeper.wait().await.and_then(|status| status.code());
        writing.abort();
        let said = stderr.settled().await;
        let reason = if said.is_empty() { reason } else { said };
        let _ = ready.send(Err(match code {
            Some(COULD_NOT_START) => AgentError::NotStarted { name, reason },
            _ => AgentError::NotConnected { name, reason },
        }));
        return;
    }
    // The connection has ended. A process that still runs has violated the protocol or is exiting.
    let violation = reading.await.unwrap_or(None);
    if violation.is_some() {
        keeper.end();
    }
    let status = keeper.wait().await;
    // An unrelated process may still hold the other end of the agent's input.
    writing.abort();
    let reason = violation.unwrap_or_else(|| ending(status, &stderr.text()));
    for ticket in pending.claim_all() {
        let result = Err(AgentError::Lost {
            name: name.clone(),
            reason: reason.clone(),
        });
        let _ = events.send(Queued::response(id, ticket, result)).await;
    }
    gone.send_replace(true);
    let exited = Queued {
        connection: id,
        event: AgentEvent::Exited { reason },
    };
    let _ = events.send(exited).await;
}

/// The requests an agent may send. All others are refused.
const SERVED: [&str; 9] = [
    "session/request_permission",
    "elicitation/create",
    "fs/read_text_file",
    "fs/write_text_file",
    "terminal/create",
    "terminal/output",
    "terminal/wait_for_exit",
    "terminal/kill",
    "terminal/release",
];

fn spawn(start: &Start) -> std::io::Result<Kept> {
    let (program, args) = start.keepers.command();
    let child = Command::new(program)
        .args(args)
        .arg(&start.launch.program)
        .args(&start.launch.args)
        .env_clear()
        .envs(start.env.iter().map(|(name, value)| (name, value)))
        .current_dir(&start.cwd)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // A group of its own, so that Ctrl+C in the server's terminal does not reach it: the server ends agents in
        // order.
        .process_group(0)
        .spawn()?;
    Ok(start.keepers.take(child))
}

struct Shared {
    id: u64,
    name: String,
    pending: Arc<PendingRequests>,
    ended: Arc<AtomicBool>,
    stop: watch::Sender<bool>,
    is_gone: watch::Receiver<bool>,
    keeper_pid: Option<u32>,
    keeper: Ender,
    oddities: Arc<Oddities>,
    stderr: StderrTail,
}

/// Sends `initialize` and returns the connection, or the reason of the failure.
async fn initialize(
    rpc: ConnectionTo<Agent>,
    capabilities: acp::ClientCapabilities,
    shared: Shared,
) -> Result<Connection, String> {
    let client = json!({"name": "liminal-builder", "title": "Liminal Builder", "version": env!("CARGO_PKG_VERSION")});
    // Always 1: adapters that are asked for 2 answer with a draft that can neither load sessions nor read files. The
    // crate refuses any other version in the response.
    let params =
        json!({"protocolVersion": 1, "clientInfo": client, "clientCapabilities": capabilities});
    let message = UntypedMessage::new("initialize", params).map_err(|error| error.message)?;
    let answer = rpc
        .send_request(message)
        .block_task()
        .await
        .map_err(crate_error_reason)?;
    let sign_in = Arc::new(Offers::default());
    sign_in.take(&answer["authMethods"]);
    // The idle time begins now, not at the start of the process.
    shared.pending.touch();
    let initialized: acp::InitializeResponse = serde_json::from_value(answer)
        .map_err(|error| format!("its response to `initialize` is invalid: {error}"))?;
    Ok(Connection {
        inner: Arc::new(Inner {
            id: shared.id,
            name: shared.name,
            sign_in,
            rpc,
            initialized,
            pending: shared.pending,
            ended: shared.ended,
            stop: shared.stop,
            gone: shared.is_gone,
            keeper_pid: shared.keeper_pid,
            keeper: shared.keeper,
            oddities: shared.oddities,
            stderr: shared.stderr,
        }),
    })
}

/// The reason of an error of the crate, which puts it into `data` beside a general message such as "Invalid request".
fn crate_error_reason(error: agent_client_protocol::Error) -> String {
    let text = error.data.as_ref().filter(|data| data.is_string());
    let detail = text.and_then(error_reason::reason);
    detail.unwrap_or_else(|| error_reason::in_words(&error.message, error.data.as_ref()))
}

/// Exit codes by which a shell and the keeper report a process ended by SIGKILL or SIGTERM.
const KILLED: i32 = 128 + 9;
const TERMINATED: i32 = 128 + 15;

/// How the process ended, with the last line of its standard error if there is one.
fn ending(status: Option<std::process::ExitStatus>, stderr: &str) -> String {
    let code =
        status.and_then(|status| status.code().or(status.signal().map(|signal| 128 + signal)));
    let how = match code {
        // The signal came from outside, so standard error does not explain it.
        Some(code @ (KILLED | TERMINATED)) => return format!("ended by signal {}", code - 128),
        Some(code) if code > 128 => format!("ended by signal {}", code - 128),
        Some(code) => format!("exit code {code}"),
        None => "ended".to_owned(),
    };
    match stderr.lines().last().map(str::trim) {
        Some(last) if !last.is_empty() => format!("{how}: {last}"),
        _ => how,
    }
}
