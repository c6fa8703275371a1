//! Every kind of agent there is, and the way from what each says to the session it is about.
//!
//! Each kind has one task that reads its queue and hands every event on to its session's inbox, in
//! wire order. Inboxes are bounded: a session that cannot keep up holds up its agent.
//!
//! Invariant: a session hears of its agent only through its inbox, and `Lost` is the last it hears.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agent_client_protocol_schema::v1 as acp;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use wire::{AgentState, AgentSummary};

use super::connection::{AgentError, AgentEvent, Answer, Connection, Start, Ticket, connect};
use super::from_acp::Update;
use super::lifecycle::{AgentHandle, Backoff, Life, Status};
use super::{AgentEntry, Catalog};

/// Events of one agent that may wait to be handed on.
const EVENTS_MAX: usize = 4096;
/// How much later than we an agent may have written its own last word about a turn we saw.
const SAME_TURN: SignedDuration = SignedDuration::from_secs(5);
const LIST_PAGES_MAX: usize = 20;

/// What every agent is started with.
pub struct AgentSetup {
    pub catalog: Catalog,
    /// The command of the keeper.
    pub keeper: Vec<OsString>,
    /// Our own environment; agents get what of it is theirs.
    pub env: Vec<(OsString, OsString)>,
    /// Where processes are started.
    pub home: PathBuf,
    pub start_timeout: Duration,
    pub backoff: Backoff,
}

/// What a session hears of its agent.
pub enum FromAgent {
    Update(Update),
    /// The agent has the session open, or would not open it.
    Attached {
        session: AgentSession,
        how: Attach,
        result: Result<Value, AgentError>,
    },
    /// The answer to a prompt.
    Answered {
        turn: u64,
        result: Result<Value, AgentError>,
    },
    Request {
        method: String,
        params: Value,
        answer: Answer,
    },
    /// The process is gone.
    Lost {
        reason: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attach {
    /// The agent goes on where it was.
    Resume,
    /// The agent first says everything again.
    Load,
}

type Inbox = mpsc::Sender<FromAgent>;

pub struct Agents {
    catalog: Catalog,
    kinds: HashMap<String, AgentKind>,
}

/// One kind of agent, as sessions use it. Clones share it.
#[derive(Clone)]
pub struct AgentKind {
    inner: Arc<Kind>,
}

struct Kind {
    name: String,
    handle: AgentHandle,
    events: mpsc::Sender<AgentEvent>,
    routes: Arc<Mutex<Routes>>,
    seen: Arc<Mutex<Seen>>,
}

/// What people are told of a kind.
#[derive(Debug, Clone)]
struct Seen {
    status: AgentState,
    version: Option<String>,
    /// The last one there was.
    connection: Option<Connection>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Connection({})", self.id())
    }
}

#[derive(Default)]
struct Routes {
    /// By the agent's own session id.
    sessions: HashMap<String, Route>,
    expected: HashMap<Ticket, Expected>,
}

struct Route {
    inbox: Inbox,
    connection: u64,
}

/// What an answer is for.
enum Expected {
    New {
        inbox: Inbox,
        session: AgentSession,
        reply: oneshot::Sender<Result<(AgentSession, Value), AgentError>>,
    },
    Attach {
        session: AgentSession,
        how: Attach,
    },
    Prompt {
        session_id: String,
        turn: u64,
    },
}

impl Agents {
    /// `publish` is told of each change of a kind's state, with why it is away.
    pub fn new(
        setup: AgentSetup,
        publish: impl Fn(&str, AgentState, Option<String>) + Clone + Send + 'static,
    ) -> Self {
        let catalog = setup.catalog.clone();
        let setup = Arc::new(setup);
        let kind = |entry: &AgentEntry| {
            let publish = publish.clone();
            (
                entry.cli_type.clone(),
                AgentKind::new(entry, setup.clone(), publish),
            )
        };
        let kinds = catalog.entries().iter().map(kind).collect();
        Self { catalog, kinds }
    }

    pub fn kind(&self, cli_type: &str) -> Option<AgentKind> {
        self.kinds.get(cli_type).cloned()
    }

    /// What the browser is told.
    pub fn summaries(&self) -> Vec<AgentSummary> {
        let mut summaries = self.catalog.summaries();
        for summary in &mut summaries {
            if let Some(kind) = self.kinds.get(&summary.cli_type) {
                let seen = lock(&kind.inner.seen);
                summary.status = seen.status;
                summary.version.clone_from(&seen.version);
                let connection = seen.connection.as_ref();
                summary.sign_in = connection.map_or(vec![], |it| it.sign_in().to_vec());
            }
        }
        summaries
    }

    /// Ends every agent and everything they started, all at once.
    pub async fn shut_down(&self) {
        let ends: Vec<_> = self
            .kinds
            .values()
            .map(|kind| {
                let kind = kind.clone();
                tokio::spawn(async move { kind.inner.handle.shut_down().await })
            })
            .collect();
        for end in ends {
            let _ = end.await;
        }
    }
}

impl AgentKind {
    fn new(
        entry: &AgentEntry,
        setup: Arc<AgentSetup>,
        publish: impl Fn(&str, AgentState, Option<String>) + Send + 'static,
    ) -> Self {
        let (events, queue) = mpsc::channel(EVENTS_MAX);
        let routes = Arc::default();
        tokio::spawn(hand_on(queue, Arc::clone(&routes)));
        let seen = Arc::new(Mutex::new(Seen {
            status: AgentState::Idle,
            version: None,
            connection: None,
        }));
        let (noted, cli_type) = (seen.clone(), entry.cli_type.clone());
        let entry = entry.clone();
        let name = entry.name.clone();
        let handle = AgentHandle::new(Life {
            start: Box::new(move || start(&entry, &setup)),
            events: events.clone(),
            publish: Box::new(move |status, came_to| {
                let reason = note(&noted, status, came_to);
                publish(&cli_type, shown(status), reason);
            }),
            backoff: Backoff::default(),
        });
        Self {
            inner: Arc::new(Kind {
                name,
                handle,
                events,
                routes,
                seen,
            }),
        }
    }

    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Signs in by one of the agent's own methods.
    pub async fn authenticate(&self, method_id: &str) -> Result<(), AgentError> {
        let connection = self.inner.handle.connection().await?;
        let params = json!({"methodId": method_id});
        connection.request("authenticate", params).await.map(drop)
    }

    /// Starts the agent anew.
    pub async fn restart(&self) -> Result<(), AgentError> {
        self.inner.handle.reconnect().await.map(drop)
    }

    /// Ends the process; what it was doing counts as crashed.
    pub async fn kill(&self) {
        self.inner.handle.kill().await;
    }

    /// The last lines of its standard error.
    pub fn stderr(&self) -> String {
        let seen = lock(&self.inner.seen);
        seen.connection
            .as_ref()
            .map(Connection::stderr)
            .unwrap_or_default()
    }

    /// A new session in this folder. What the agent says of it goes to `inbox` from the first word on.
    pub async fn new_session(
        &self,
        cwd: &Path,
        inbox: Inbox,
    ) -> Result<(AgentSession, Value), AgentError> {
        let connection = self.inner.handle.connection().await?;
        let (reply, answered) = oneshot::channel();
        {
            let mut routes = lock(&self.inner.routes);
            let params = json!({"cwd": cwd, "mcpServers": []});
            let ticket = connection.send(&self.inner.events, "session/new", params);
            let session = self.session(connection, String::new());
            let expected = Expected::New {
                inbox,
                session,
                reply,
            };
            routes.expected.insert(ticket, expected);
        }
        answered.await.unwrap_or_else(|_| Err(self.gone()))
    }

    /// Gives the agent a session it had before. `FromAgent::Attached` says what became of it. `since` is
    /// the last we know to have happened in it: an agent that knows of something later is asked to
    /// say everything again.
    pub async fn attach(
        &self,
        session_id: &str,
        cwd: &Path,
        since: Timestamp,
        inbox: Inbox,
    ) -> Result<(), AgentError> {
        let connection = self.inner.handle.connection().await?;
        let capabilities = &connection.initialized().agent_capabilities;
        let can_resume = capabilities.session_capabilities.resume.is_some();
        let how = match (can_resume, capabilities.load_session) {
            (true, true) if knows_more(&connection, session_id, cwd, since).await => Attach::Load,
            (true, _) => Attach::Resume,
            (false, true) => Attach::Load,
            (false, false) => {
                return Err(AgentError::Refused {
                    name: self.inner.name.clone(),
                    code: -32601,
                    message: "it cannot go on with a session from before it was started. \
                              The conversation stays readable; start a new session to go on."
                        .to_owned(),
                    data: None,
                });
            }
        };
        let method = match how {
            Attach::Resume => "session/resume",
            Attach::Load => "session/load",
        };
        let params = json!({"sessionId": session_id, "cwd": cwd, "mcpServers": []});
        let mut routes = lock(&self.inner.routes);
        let route = Route {
            inbox,
            connection: connection.id(),
        };
        routes.sessions.insert(session_id.to_owned(), route);
        let ticket = connection.send(&self.inner.events, method, params);
        let session = self.session(connection, session_id.to_owned());
        routes
            .expected
            .insert(ticket, Expected::Attach { session, how });
        Ok(())
    }

    fn session(&self, connection: Connection, id: String) -> AgentSession {
        AgentSession {
            id,
            connection,
            kind: self.clone(),
        }
    }

    fn gone(&self) -> AgentError {
        AgentError::Lost {
            name: self.inner.name.clone(),
            reason: String::new(),
        }
    }
}

/// A picture that goes with a prompt.
pub struct Picture {
    pub mime_type: String,
    /// Base64.
    pub data: String,
}

/// A session that an agent has open.
#[derive(Clone)]
pub struct AgentSession {
    id: String,
    connection: Connection,
    kind: AgentKind,
}

impl AgentSession {
    /// The agent's own id for it.
    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn takes_images(&self) -> bool {
        let capabilities = &self.connection.initialized().agent_capabilities;
        capabilities.prompt_capabilities.image
    }

    /// The answer comes to the inbox, after everything the agent said before it.
    pub fn prompt(&self, turn: u64, text: &str, pictures: Vec<Picture>) {
        let pictures = pictures.into_iter().map(
            |picture| json!({"type": "image", "mimeType": picture.mime_type, "data": picture.data}),
        );
        let text = (!text.is_empty()).then(|| json!({"type": "text", "text": text}));
        let blocks: Vec<Value> = text.into_iter().chain(pictures).collect();
        let mut routes = lock(&self.kind.inner.routes);
        let params = json!({"sessionId": self.id, "prompt": blocks});
        let ticket = self
            .connection
            .send(&self.kind.inner.events, "session/prompt", params);
        let expected = Expected::Prompt {
            session_id: self.id.clone(),
            turn,
        };
        routes.expected.insert(ticket, expected);
    }

    pub fn cancel(&self) {
        self.connection
            .notify("session/cancel", json!({"sessionId": self.id}));
    }

    pub async fn set_mode(&self, mode_id: &str) -> Result<(), AgentError> {
        let params = json!({"sessionId": self.id, "modeId": mode_id});
        self.connection
            .request("session/set_mode", params)
            .await
            .map(drop)
    }

    /// Answers with the options as they are now.
    pub async fn set_option(&self, option_id: &str, value: Value) -> Result<Value, AgentError> {
        let mut params = json!({"sessionId": self.id, "configId": option_id, "value": value});
        if value.is_boolean() {
            params["type"] = json!("boolean");
        }
        self.connection
            .request("session/set_config_option", params)
            .await
    }

    /// Lets the agent forget what it holds of it, where it can.
    pub async fn close(&self) {
        lock(&self.kind.inner.routes).sessions.remove(&self.id);
        let capabilities = &self.connection.initialized().agent_capabilities;
        if capabilities.session_capabilities.close.is_some() {
            let params = json!({"sessionId": self.id});
            let _ = self.connection.request("session/close", params).await;
        }
    }
}

/// Whether the agent lists the session with something later than what we have.
async fn knows_more(
    connection: &Connection,
    session_id: &str,
    cwd: &Path,
    since: Timestamp,
) -> bool {
    let capabilities = &connection.initialized().agent_capabilities;
    if capabilities.session_capabilities.list.is_none() {
        return false;
    }
    let mut cursor = Value::Null;
    for _ in 0..LIST_PAGES_MAX {
        let mut params = json!({"cwd": cwd});
        if !cursor.is_null() {
            params["cursor"] = cursor;
        }
        let Ok(page) = connection.request("session/list", params).await else {
            return false;
        };
        let sessions = page["sessions"].as_array().map_or(&[][..], Vec::as_slice);
        let listed = sessions
            .iter()
            .find(|listed| listed["sessionId"] == session_id);
        if let Some(listed) = listed {
            let updated = listed["updatedAt"].as_str();
            let updated = updated.and_then(|text| text.parse::<Timestamp>().ok());
            return updated.is_some_and(|updated| updated.duration_since(since) > SAME_TURN);
        }
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    false
}

/// Starts an agent, asks it who it is, and ends it. `None` when it does not say.
pub async fn look_at(entry: &AgentEntry, setup: &AgentSetup) -> Result<Option<String>, AgentError> {
    // Whatever it says besides is nobody's.
    let (events, mut queue) = mpsc::channel(EVENTS_MAX);
    let ignored = tokio::spawn(async move { while queue.recv().await.is_some() {} });
    let connection = connect(start(entry, setup)?, events).await?;
    let info = connection.initialized().agent_info.clone();
    connection.close().await;
    ignored.abort();
    Ok(info.map(|info| format!("{} {}", info.title.unwrap_or(info.name), info.version)))
}

fn start(entry: &AgentEntry, setup: &AgentSetup) -> Result<Start, AgentError> {
    let launch = setup.catalog.launch(entry).ok_or_else(|| {
        let reason = match (&entry.chosen, entry.install_command()) {
            (Some(chosen), _) => format!("`{}` was not found", chosen.join(" ")),
            (None, Some(install)) => format!("to install it: {install}"),
            (None, None) => String::new(),
        };
        AgentError::NotStarted {
            name: entry.name.clone(),
            reason,
        }
    })?;
    let fs = acp::FileSystemCapabilities::new()
        .read_text_file(true)
        .write_text_file(true);
    let mut meta = acp::Meta::new();
    meta.insert("terminal_output".to_owned(), Value::Bool(true));
    let capabilities = acp::ClientCapabilities::new()
        .fs(fs)
        .terminal(true)
        .meta(meta);
    let mut env = environment(&setup.env);
    env.extend(
        entry
            .env
            .iter()
            .map(|(name, value)| (name.into(), value.into())),
    );
    Ok(Start {
        name: entry.name.clone(),
        launch,
        keeper: setup.keeper.clone(),
        env,
        cwd: entry.cwd.clone().unwrap_or_else(|| setup.home.clone()),
        timeout: setup.start_timeout,
        capabilities,
    })
}

/// What of our environment is an agent's business: all of it but our own settings, the token among
/// them, and what cargo adds for the program it runs.
pub fn environment(ours: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
    const CARGOS: [&str; 5] = [
        "CARGO_PKG_",
        "CARGO_MANIFEST_",
        "CARGO_BIN_",
        "CARGO_CRATE_",
        "CARGO_PRIMARY_",
    ];
    let theirs = |name: &str| {
        let own = name.starts_with("LIMINAL_") && !name.starts_with("LIMINAL_AGENT_");
        !own && name != "CARGO" && !CARGOS.iter().any(|prefix| name.starts_with(prefix))
    };
    ours.iter()
        .filter(|(name, _)| name.to_str().is_none_or(theirs))
        .cloned()
        .collect()
}

/// Remembers what people are told of a kind, and says why it is away.
fn note(
    seen: &Mutex<Seen>,
    status: Status,
    came_to: Option<&Result<Connection, AgentError>>,
) -> Option<String> {
    let mut seen = lock(seen);
    seen.status = shown(status);
    match came_to {
        Some(Ok(connection)) => {
            let info = connection.initialized().agent_info.as_ref();
            seen.version = info.map(|info| info.version.clone());
            seen.connection = Some(connection.clone());
            None
        }
        Some(Err(error)) => Some(error.to_string()),
        None => None,
    }
}

fn shown(status: Status) -> AgentState {
    match status {
        Status::Idle => AgentState::Idle,
        Status::Starting => AgentState::Starting,
        Status::Connected => AgentState::Connected,
        Status::Disconnected => AgentState::Disconnected,
        Status::Reconnecting => AgentState::Reconnecting,
    }
}

/// Hands each event on to its session.
async fn hand_on(mut queue: mpsc::Receiver<AgentEvent>, routes: Arc<Mutex<Routes>>) {
    let mut batch = Vec::new();
    // Text that may still grow before it is handed on.
    let mut text: Option<(String, Update)> = None;
    while queue.recv_many(&mut batch, 512).await > 0 {
        for event in batch.drain(..) {
            let event = match event {
                AgentEvent::Update { session_id, update } => {
                    let rest = match &mut text {
                        Some((of, grown)) if *of == session_id => grown.merge(update),
                        _ => Some(update),
                    };
                    if let Some(update) = rest {
                        flush(&routes, &mut text).await;
                        text = Some((session_id, update));
                    }
                    continue;
                }
                event => event,
            };
            flush(&routes, &mut text).await;
            match event {
                AgentEvent::Update { .. } => {}
                AgentEvent::Answered { ticket, result } => {
                    let expected = lock(&routes).expected.remove(&ticket);
                    if let Some(expected) = expected {
                        answered(&routes, expected, result).await;
                    }
                }
                AgentEvent::Request {
                    method,
                    params,
                    answer,
                } => {
                    let session_id = params["sessionId"].as_str().unwrap_or_default().to_owned();
                    let request = FromAgent::Request {
                        method,
                        params,
                        answer,
                    };
                    if let Some(FromAgent::Request { answer, .. }) =
                        deliver(&routes, &session_id, request).await
                    {
                        answer.refuse(-32602, "no such session");
                    }
                }
                AgentEvent::Exited { connection, reason } => {
                    for inbox in take_routes(&routes, connection) {
                        let reason = reason.clone();
                        let _ = inbox.send(FromAgent::Lost { reason }).await;
                    }
                }
            }
        }
        flush(&routes, &mut text).await;
    }
}

async fn flush(routes: &Mutex<Routes>, text: &mut Option<(String, Update)>) {
    if let Some((session_id, update)) = text.take() {
        deliver(routes, &session_id, FromAgent::Update(update)).await;
    }
}

/// Gives back what nobody was there to take.
async fn deliver(routes: &Mutex<Routes>, session_id: &str, said: FromAgent) -> Option<FromAgent> {
    let inbox = lock(routes)
        .sessions
        .get(session_id)
        .map(|route| route.inbox.clone());
    match inbox {
        Some(inbox) => inbox.send(said).await.err().map(|unsent| unsent.0),
        None => Some(said),
    }
}

async fn answered(routes: &Mutex<Routes>, expected: Expected, result: Result<Value, AgentError>) {
    match expected {
        Expected::New {
            inbox,
            mut session,
            reply,
        } => {
            let opened = result.and_then(|value| match value["sessionId"].as_str() {
                Some(id) if !id.is_empty() => {
                    session.id = id.to_owned();
                    Ok((session, value))
                }
                _ => Err(AgentError::Refused {
                    name: session.kind.name().to_owned(),
                    code: 0,
                    message: "its answer names no session".to_owned(),
                    data: None,
                }),
            });
            if let Ok((session, _)) = &opened {
                let connection = session.connection.id();
                let route = Route { inbox, connection };
                lock(routes).sessions.insert(session.id.clone(), route);
            }
            let _ = reply.send(opened);
        }
        Expected::Attach { session, how } => {
            let id = session.id.clone();
            let attached = FromAgent::Attached {
                session,
                how,
                result,
            };
            deliver(routes, &id, attached).await;
        }
        Expected::Prompt { session_id, turn } => {
            deliver(routes, &session_id, FromAgent::Answered { turn, result }).await;
        }
    }
}

fn take_routes(routes: &Mutex<Routes>, connection: u64) -> Vec<Inbox> {
    let mut routes = lock(routes);
    let ended = routes
        .sessions
        .extract_if(|_, route| route.connection == connection);
    ended.map(|(_, route)| route.inbox).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
