//! The lifecycle of one agent's process: start on demand, reconnect after a loss, end when idle.
//!
//! One task per agent owns its process. All callers that need the agent while it starts share that one start. A lost
//! process is restarted with backoff, a limited number of times; after that, or when the first start fails, it is
//! started again on request only. It may be started ahead of its first use, and is ended when it has been idle for
//! long.
//!
//! Invariant: at most one process per agent, and each change of status is published once.

use std::pin::Pin;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::connection::{AgentError, Connection, Start, connect};
use super::event::{AgentEvent, Queued};

/// Maximum commands queued for the task.
const COMMANDS_MAX: usize = 64;

/// State of an agent's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Idle,
    Starting,
    Connected,
    Disconnected,
    Reconnecting,
}

/// Pauses between attempts to restart a lost agent.
#[derive(Debug, Clone, Copy)]
pub struct Backoff {
    pub first: Duration,
    pub cap: Duration,
    pub tries: u32,
    /// Run time after which the count of failed attempts starts at zero again.
    pub stable: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            first: Duration::from_secs(1),
            cap: Duration::from_secs(30),
            tries: 5,
            stable: Duration::from_secs(60),
        }
    }
}

impl Backoff {
    /// The pause before attempt number `tried` (from 0), or `None` after the last attempt.
    fn pause(&self, tried: u32) -> Option<Duration> {
        let doubled = self.first.checked_mul(1_u32.checked_shl(tried)?)?;
        (tried < self.tries).then_some(doubled.min(self.cap))
    }
}

/// Receives a status and, when a start has ended, its result.
pub type Publish = Box<dyn Fn(Status, Option<&Result<Connection, AgentError>>) + Send>;

/// Parameters of an agent's lifecycle.
pub struct LifecycleConfig {
    /// Returns the start parameters, or why the agent cannot be started; called for each start.
    pub start: Box<dyn Fn() -> Result<Start, AgentError> + Send>,
    /// Receives the agent's events.
    pub events: mpsc::Sender<Queued>,
    /// Called on each change of status.
    pub publish: Publish,
    pub backoff: Backoff,
    /// Idle time after which the process is ended; `None` keeps it running.
    pub sleeps_after: Option<Duration>,
}

/// A handle of an agent's lifecycle task. Clones share it.
#[derive(Clone)]
pub struct AgentHandle {
    commands: mpsc::Sender<Command>,
}

enum Command {
    Connect { wants: Wants, answer: Waiter },
    Warm,
    Kill,
    ShutDown { done: oneshot::Sender<()> },
}

#[derive(PartialEq, Eq)]
enum Wants {
    /// A connection, new or existing.
    Connection,
    /// A restart, because the user asked for one.
    Restart,
}

type Waiter = oneshot::Sender<Result<Connection, AgentError>>;

impl AgentHandle {
    /// Starts the task that owns the agent's life. The process starts when it is first needed.
    pub fn new(life: LifecycleConfig) -> Self {
        let (commands, waiting) = mpsc::channel(COMMANDS_MAX);
        let kind = Kind {
            life,
            status: Status::Idle,
            connection: None,
            connected_at: Instant::now(),
            starting: None,
            ahead: false,
            leaving: None,
            waiters: vec![],
            tried: 0,
            retry_at: None,
        };
        tokio::spawn(kind.run(waiting));
        Self { commands }
    }

    /// The agent's connection. Starts the agent if it is not running.
    pub async fn connection(&self) -> Result<Connection, AgentError> {
        self.connect(Wants::Connection).await
    }

    /// Restarts the agent: ends it if it runs, and starts it without waiting for the backoff.
    pub async fn reconnect(&self) -> Result<Connection, AgentError> {
        self.connect(Wants::Restart).await
    }

    /// Starts the agent ahead of its first use. A failure is only logged.
    pub async fn warm(&self) {
        let _ = self.commands.send(Command::Warm).await;
    }

    /// Kills the process, which then counts as crashed.
    pub async fn kill(&self) {
        let _ = self.commands.send(Command::Kill).await;
    }

    async fn connect(&self, wants: Wants) -> Result<Connection, AgentError> {
        let stopping = || AgentError::Lost {
            name: "the agent".to_owned(),
            reason: "the server is stopping".to_owned(),
        };
        let (answer, answered) = oneshot::channel();
        let command = Command::Connect { wants, answer };
        self.commands.send(command).await.map_err(|_| stopping())?;
        answered.await.map_err(|_| stopping())?
    }

    /// Ends the agent, everything it started, and the lifecycle task.
    pub async fn shut_down(&self) {
        let (done, finished) = oneshot::channel();
        if self.commands.send(Command::ShutDown { done }).await.is_ok() {
            let _ = finished.await;
        }
    }
}

/// The lifecycle task of one agent: the state that it keeps between commands.
struct Kind {
    life: LifecycleConfig,
    status: Status,
    connection: Option<Connection>,
    connected_at: Instant,
    starting: Option<JoinHandle<Result<Connection, AgentError>>>,
    /// Whether the start in progress is ahead of the first use.
    ahead: bool,
    /// The idle process that is being ended.
    leaving: Option<JoinHandle<()>>,
    waiters: Vec<Waiter>,
    /// Failed attempts since the agent last ran stably.
    tried: u32,
    retry_at: Option<Instant>,
}

impl Kind {
    async fn run(mut self, mut commands: mpsc::Receiver<Command>) {
        loop {
            tokio::select! {
                command = commands.recv() => match command {
                    Some(Command::Connect { wants, answer }) => self.connection_requested(&wants, answer),
                    Some(Command::Warm) => self.warm(),
                    Some(Command::Kill) => {
                        if let Some(connection) = &self.connection {
                            connection.kill();
                        }
                    }
                    Some(Command::ShutDown { done }) => {
                        self.shut_down().await;
                        let _ = done.send(());
                        return;
                    }
                    None => return self.shut_down().await,
                },
                started = finished(&mut self.starting) => self.started(started),
                () = gone(self.connection.as_ref()) => self.lost(),
                () = due(self.retry_at) => self.begin(Status::Reconnecting),
                () = idle(self.connection.as_ref(), self.life.sleeps_after) => self.sleep(),
                () = left(&mut self.leaving) => self.left(),
            }
        }
    }

    fn warm(&mut self) {
        let resting = self.status == Status::Idle && self.leaving.is_none();
        if resting && self.starting.is_none() {
            self.ahead = true;
            self.begin(Status::Starting);
        }
    }

    fn sleep(&mut self) {
        let idle_for = self.life.sleeps_after.unwrap_or(Duration::MAX);
        // Fails if a request was sent just now; later requests get an error.
        let Some(connection) = self.connection.take_if(|it| it.retire(idle_for)) else {
            return;
        };
        tracing::info!(agent = connection.name(), "ending an idle agent");
        let events = self.life.events.clone();
        self.leaving = Some(tokio::spawn(async move {
            // Sessions must know now, not only when the process has exited.
            let asleep = Queued {
                connection: connection.id(),
                event: AgentEvent::Asleep,
            };
            let _ = events.send(asleep).await;
            connection.close().await;
        }));
        self.set_status(Status::Idle, None);
    }

    fn left(&mut self) {
        self.leaving = None;
        if !self.waiters.is_empty() {
            self.begin(Status::Starting);
        }
    }

    fn connection_requested(&mut self, wants: &Wants, answer: Waiter) {
        self.ahead = false;
        if self.leaving.is_some() {
            self.waiters.push(answer);
            return;
        }
        if *wants == Wants::Restart {
            self.tried = 0;
            if let Some(connection) = &self.connection {
                connection.kill();
                // When the process has ended, `lost` starts it again for the waiters.
                self.waiters.push(answer);
                return;
            }
        }
        match (&self.connection, &self.starting) {
            (Some(connection), _) => drop(answer.send(Ok(connection.clone()))),
            (None, Some(_)) => self.waiters.push(answer),
            (None, None) => {
                self.waiters.push(answer);
                let first = self.status == Status::Idle;
                self.begin(if first {
                    Status::Starting
                } else {
                    Status::Reconnecting
                });
            }
        }
    }

    fn begin(&mut self, status: Status) {
        self.retry_at = None;
        self.set_status(status, None);
        let start = (self.life.start)();
        let events = self.life.events.clone();
        self.starting = Some(tokio::spawn(async { connect(start?, events).await }));
    }

    fn started(&mut self, started: Result<Connection, AgentError>) {
        self.starting = None;
        match &started {
            Ok(connection) => {
                self.connection = Some(connection.clone());
                self.connected_at = Instant::now();
                self.set_status(Status::Connected, Some(&started));
            }
            Err(error) if self.ahead => {
                tracing::info!(%error, "could not start an agent ahead of its first use");
                self.set_status(Status::Idle, None);
            }
            Err(_) => {
                let was_reconnecting = self.status == Status::Reconnecting;
                self.set_status(Status::Disconnected, Some(&started));
                if was_reconnecting {
                    self.schedule_retry();
                }
            }
        }
        self.ahead = false;
        for waiter in self.waiters.drain(..) {
            let _ = waiter.send(started.clone());
        }
    }

    fn lost(&mut self) {
        self.connection = None;
        if self.connected_at.elapsed() >= self.life.backoff.stable {
            self.tried = 0;
        }
        self.set_status(Status::Disconnected, None);
        if self.waiters.is_empty() {
            self.schedule_retry();
        } else {
            self.begin(Status::Reconnecting);
        }
    }

    fn schedule_retry(&mut self) {
        if let Some(pause) = self.life.backoff.pause(self.tried) {
            self.tried += 1;
            self.retry_at = Some(Instant::now() + pause);
        }
    }

    fn set_status(&mut self, status: Status, result: Option<&Result<Connection, AgentError>>) {
        self.status = status;
        (self.life.publish)(status, result);
    }

    async fn shut_down(&mut self) {
        if let Some(starting) = self.starting.take() {
            // Aborting drops the receiver of the handshake, which makes the connection's task end the process.
            starting.abort();
        }
        if let Some(connection) = self.connection.take() {
            connection.close().await;
        }
        if let Some(leaving) = self.leaving.take() {
            let _ = leaving.await;
        }
    }
}

/// Resolves with the result of the start in progress; never if there is none.
async fn finished(
    starting: &mut Option<JoinHandle<Result<Connection, AgentError>>>,
) -> Result<Connection, AgentError> {
    match starting {
        Some(starting) => Pin::new(starting).await.unwrap_or_else(|_| {
            Err(AgentError::NotConnected {
                name: "the agent".to_owned(),
                reason: "starting it failed".to_owned(),
            })
        }),
        None => std::future::pending().await,
    }
}

/// Resolves when the process has ended; never if there is none.
async fn gone(connection: Option<&Connection>) {
    match connection {
        Some(connection) => connection.gone().await,
        None => std::future::pending().await,
    }
}

/// Resolves when the agent has been idle for `sleeps_after`; never if there is no process.
async fn idle(connection: Option<&Connection>, sleeps_after: Option<Duration>) {
    let (Some(connection), Some(sleeps_after)) = (connection, sleeps_after) else {
        return std::future::pending().await;
    };
    loop {
        let since = connection.idle_since();
        let left = since.map_or(sleeps_after, |since| {
            sleeps_after.saturating_sub(since.elapsed())
        });
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left).await;
    }
}

/// Resolves when the idle process that is being ended has exited; never if there is none.
async fn left(leaving: &mut Option<JoinHandle<()>>) {
    match leaving {
        Some(leaving) => drop(Pin::new(leaving).await),
        None => std::future::pending().await,
    }
}

async fn due(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_pauses_double_up_to_the_cap_and_end_after_the_last_try() {
        let seconds = |tried| Backoff::default().pause(tried).map(|pause| pause.as_secs());
        assert_eq!(
            [0, 1, 2, 3, 4, 5, 99].map(seconds),
            [Some(1), Some(2), Some(4), Some(8), Some(16), None, None]
        );
        let patient = Backoff {
            tries: 9,
            ..Backoff::default()
        };
        assert_eq!(patient.pause(8), Some(Duration::from_secs(30)));
    }
}
