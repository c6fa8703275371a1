//! The life of one kind of agent: started when it is wanted, kept, lost, and brought back.
//!
//! One task per kind owns its process. Everybody who wants the agent while it starts shares that one
//! start. A lost agent is brought back after growing pauses, a few times; after that, or when its
//! very first start fails, it waits until somebody asks. It may be started ahead of that, and is put to
//! sleep when nobody has asked anything of it for long.
//!
//! Invariant: at most one process per kind, and each change of state is published once.

use std::pin::Pin;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::connection::{AgentError, AgentEvent, Connection, Start, connect};

/// How many may wait for the task's attention.
const COMMANDS_MAX: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Idle,
    Starting,
    Connected,
    Disconnected,
    Reconnecting,
}

/// When to try again.
#[derive(Debug, Clone, Copy)]
pub struct Backoff {
    pub first: Duration,
    pub cap: Duration,
    pub tries: u32,
    /// One that lived this long is forgiven its earlier deaths.
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
    /// The pause before try number `tried` (from 0), or nothing if there have been enough.
    fn pause(&self, tried: u32) -> Option<Duration> {
        let doubled = self.first.checked_mul(1_u32.checked_shl(tried)?)?;
        (tried < self.tries).then_some(doubled.min(self.cap))
    }
}

/// Takes a state and, when a start has ended, what came of it.
pub type Publish = Box<dyn Fn(Status, Option<&Result<Connection, AgentError>>) + Send>;

/// What a kind needs to live.
pub struct Life {
    /// How to start it, or why it cannot be, asked anew each time.
    pub start: Box<dyn Fn() -> Result<Start, AgentError> + Send>,
    /// Where what it says goes.
    pub events: mpsc::Sender<AgentEvent>,
    /// Told of each change of state, with what it came to, if it came to anything.
    pub publish: Publish,
    pub backoff: Backoff,
    /// How long it is kept with nothing to do, if not for ever.
    pub sleeps_after: Option<Duration>,
}

/// One kind of agent. Clones share it.
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
    /// A connection, to use it.
    It,
    /// A fresh round of tries, because a person asked for one.
    AnotherTry,
}

type Waiter = oneshot::Sender<Result<Connection, AgentError>>;

impl AgentHandle {
    pub fn new(life: Life) -> Self {
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

    /// The agent's connection, after starting it if need be.
    pub async fn connection(&self) -> Result<Connection, AgentError> {
        self.connect(Wants::It).await
    }

    /// Starts it anew: ends it if it runs, and tries at once, whatever was tried before.
    pub async fn reconnect(&self) -> Result<Connection, AgentError> {
        self.connect(Wants::AnotherTry).await
    }

    /// Starts it ahead of its first use. Should that fail, it is as if it had not been tried.
    pub async fn warm(&self) {
        let _ = self.commands.send(Command::Warm).await;
    }

    /// Ends the process, as if it had crashed.
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

    /// Ends the agent and everything it started, and with it this kind's life.
    pub async fn shut_down(&self) {
        let (done, finished) = oneshot::channel();
        if self.commands.send(Command::ShutDown { done }).await.is_ok() {
            let _ = finished.await;
        }
    }
}

/// The task's own state.
struct Kind {
    life: Life,
    status: Status,
    connection: Option<Connection>,
    connected_at: Instant,
    starting: Option<JoinHandle<Result<Connection, AgentError>>>,
    /// Nobody has asked for the start under way.
    ahead: bool,
    /// The process that was put to sleep and has not ended yet.
    leaving: Option<JoinHandle<()>>,
    waiters: Vec<Waiter>,
    /// Tries since it was last well.
    tried: u32,
    retry_at: Option<Instant>,
}

impl Kind {
    async fn run(mut self, mut commands: mpsc::Receiver<Command>) {
        loop {
            tokio::select! {
                command = commands.recv() => match command {
                    Some(Command::Connect { wants, answer }) => self.wanted(&wants, answer),
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
        // Somebody may have asked something of it in this very moment; and whoever does so from now on is told.
        let Some(connection) = self.connection.take_if(|it| it.retire(idle_for)) else {
            return;
        };
        tracing::info!(agent = connection.name(), "put to sleep");
        let events = self.life.events.clone();
        self.leaving = Some(tokio::spawn(async move {
            // Its sessions learn of it now, not when the process has taken its leave.
            let asleep = AgentEvent::Asleep {
                connection: connection.id(),
            };
            let _ = events.send(asleep).await;
            connection.close().await;
        }));
        self.become_now(Status::Idle, None);
    }

    fn left(&mut self) {
        self.leaving = None;
        if !self.waiters.is_empty() {
            self.begin(Status::Starting);
        }
    }

    fn wanted(&mut self, wants: &Wants, answer: Waiter) {
        self.ahead = false;
        if self.leaving.is_some() {
            self.waiters.push(answer);
            return;
        }
        if *wants == Wants::AnotherTry {
            self.tried = 0;
            if let Some(connection) = &self.connection {
                connection.kill();
                // It goes down first; `lost` begins anew for whoever waits.
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
        self.become_now(status, None);
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
                self.become_now(Status::Connected, Some(&started));
            }
            Err(error) if self.ahead => {
                tracing::info!(%error, "could not be started ahead");
                self.become_now(Status::Idle, None);
            }
            Err(_) => {
                let was_up_before = self.status == Status::Reconnecting;
                self.become_now(Status::Disconnected, Some(&started));
                if was_up_before {
                    self.try_later();
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
        self.become_now(Status::Disconnected, None);
        if self.waiters.is_empty() {
            self.try_later();
        } else {
            self.begin(Status::Reconnecting);
        }
    }

    fn try_later(&mut self) {
        if let Some(pause) = self.life.backoff.pause(self.tried) {
            self.tried += 1;
            self.retry_at = Some(Instant::now() + pause);
        }
    }

    fn become_now(&mut self, status: Status, came_to: Option<&Result<Connection, AgentError>>) {
        self.status = status;
        (self.life.publish)(status, came_to);
    }

    async fn shut_down(&mut self) {
        if let Some(starting) = self.starting.take() {
            // Nobody waits for it any more, which is how it learns that it is to end.
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

/// The result of the start under way; never, if there is none.
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

/// When the process has ended; never, if there is none.
async fn gone(connection: Option<&Connection>) {
    match connection {
        Some(connection) => connection.gone().await,
        None => std::future::pending().await,
    }
}

/// When nobody has asked anything of it for that long; never, if there is none.
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

/// When the process that was put to sleep has ended; never, if there is none.
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
    fn the_pauses_double_up_to_a_cap_and_end() {
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
