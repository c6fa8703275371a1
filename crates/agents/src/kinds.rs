//! All agents of the catalog: what sessions and clients can do with each, and its published state.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use wire::{AgentMemory, AgentReadiness, AgentState, AgentSummary, QuestionAction, SignInShown};

use super::agent_session::AgentSession;
use super::connection::{AgentError, Connection, Start};
use super::event::{AgentEvent, Attach, Queued, Routed, SessionResponse};
use super::install::{InstallOutcome, InstallProgress, InstallRefused, Installs, Refreshed, fetch};
use super::lifecycle::{AgentHandle, LifecycleConfig, Status};
use super::memory;
use super::routes::{Expected, Inbox, Route, Routes, dispatch, lock};
use super::sign_in::{Attempts, Incoming, TYPED_BYTES_MAX};
use super::start::{AgentSetup, environment, start};
use super::wire_tap::WireTap;
use super::{AgentEntry, Catalog};

/// Maximum events of one agent that wait to be dispatched.
pub(super) const EVENTS_MAX: usize = 4096;
/// Tolerance when the agent's time of a turn's end is compared with the time in the transcript.
const TURN_END_TOLERANCE: SignedDuration = SignedDuration::from_secs(5);
/// Maximum pages of `session/list` that are searched for a session.
const LIST_PAGES_MAX: usize = 20;
/// Maximum lines of a start failure that are shown.
const PROBLEM_LINES_MAX: usize = 12;

/// All agents of this server, each with its state.
pub struct Agents {
    setup: Arc<AgentSetup>,
    publish: Publish,
    /// The agents used so far. The catalog may grow while the server runs.
    kinds: Mutex<HashMap<String, AgentKind>>,
    installs: Installs,
}

type Publish = Arc<dyn Fn(&str, AgentState, Option<String>) + Send + Sync>;

/// One agent of the catalog and its process. Clones share it.
#[derive(Clone)]
pub struct AgentKind {
    inner: Arc<Kind>,
}

struct Kind {
    name: String,
    handle: AgentHandle,
    events: mpsc::Sender<Queued>,
    routes: Arc<Mutex<Routes>>,
    seen: Arc<Mutex<Published>>,
    attempts: Attempts,
    /// Returns the current start parameters.
    start: Arc<dyn Fn() -> Result<Start, AgentError> + Send + Sync>,
    tap: Arc<WireTap>,
}

/// The published state of an agent.
struct Published {
    status: AgentState,
    version: Option<String>,
    /// The most recent connection, which may have ended.
    connection: Option<Connection>,
    /// Why the last start failed.
    problem: Option<String>,
}

impl Agents {
    /// `publish` is called on each change of an agent's state, with the reason if a start failed.
    pub fn new(
        setup: AgentSetup,
        publish: impl Fn(&str, AgentState, Option<String>) + Send + Sync + 'static,
    ) -> Self {
        Self {
            setup: Arc::new(setup),
            publish: Arc::new(publish),
            kinds: Mutex::default(),
            installs: Installs::default(),
        }
    }

    /// The agents this server knows.
    pub fn catalog(&self) -> &Catalog {
        &self.setup.catalog
    }

    /// The agent with this id, if the catalog has it. Must be called within a tokio runtime.
    pub fn kind(&self, cli_type: &str) -> Option<AgentKind> {
        let mut kinds = lock(&self.kinds);
        if let Some(kind) = kinds.get(cli_type) {
            return Some(kind.clone());
        }
        let entry = self.catalog().entry(cli_type)?;
        let kind = AgentKind::new(&entry, self.setup.clone(), self.publish.clone());
        kinds.insert(cli_type.to_owned(), kind.clone());
        Some(kind)
    }

    /// The state of every agent in the catalog, for clients.
    pub fn summaries(&self) -> Vec<AgentSummary> {
        let mut summaries = self.catalog().summaries();
        let kinds = lock(&self.kinds);
        for summary in &mut summaries {
            summary.installing = self.installs.is_running(&summary.cli_type);
            if let Some(kind) = kinds.get(&summary.cli_type) {
                kind.describe(summary);
            }
        }
        summaries
    }

    /// Starts the installation of a listed agent. `report` receives its progress. If the installation is already
    /// running, its output so far is returned.
    pub fn install(
        &self,
        cli_type: &str,
        report: impl Fn(InstallProgress) + Send + Sync + 'static,
    ) -> Result<String, InstallRefused> {
        let impossible = |reason: String| Err(InstallRefused::Impossible(reason));
        let catalog = self.catalog();
        let Some(entry) = catalog.entry(cli_type) else {
            return impossible(format!("There is no agent `{cli_type}` in the list."));
        };
        let plan = match catalog.plan(&entry) {
            Some(Ok(plan)) => plan,
            Some(Err(missing)) => return impossible(missing),
            None => {
                return impossible(format!(
                    "{} has a command of its own in the settings; there is nothing to install.",
                    entry.name
                ));
            }
        };
        let env = environment(&self.setup.env);
        let kind = lock(&self.kinds).get(cli_type).cloned();
        let report_and_reset = move |news: InstallProgress| {
            if let (InstallProgress::Ended(InstallOutcome::Installed), Some(kind)) = (&news, &kind)
            {
                lock(&kind.inner.seen).problem = None;
            }
            report(news);
        };
        self.installs.begin(
            cli_type,
            plan,
            self.setup.keepers.clone(),
            env,
            report_and_reset,
        )
    }

    /// Stops the installation of this agent, if one is running.
    pub fn cancel_install(&self, cli_type: &str) {
        self.installs.cancel(cli_type);
    }

    /// Fetches a newer list of agents from an https URL or a file.
    pub async fn refresh(&self, from: &str) -> Result<Refreshed, String> {
        refresh(self.catalog(), from).await
    }

    /// Memory use of the running agents, each with everything it started.
    pub async fn memory(&self) -> Vec<AgentMemory> {
        let running: Vec<(String, u32)> = lock(&self.kinds)
            .iter()
            .filter_map(|(cli_type, kind)| Some((cli_type.clone(), kind.process()?)))
            .collect();
        let reading = tokio::task::spawn_blocking(move || {
            let each = running
                .iter()
                .filter_map(|(cli_type, pid)| memory::below(*pid, cli_type));
            let mut found: Vec<AgentMemory> = each.collect();
            found.sort_by(|one, other| one.cli_type.cmp(&other.cli_type));
            found
        });
        reading.await.unwrap_or_default()
    }

    /// Ends all agents and everything they started, in parallel.
    pub async fn shut_down(&self) {
        self.installs.cancel_all();
        let kinds: Vec<AgentKind> = lock(&self.kinds).values().cloned().collect();
        let ends: Vec<_> = kinds
            .into_iter()
            .map(|kind| tokio::spawn(async move { kind.inner.handle.shut_down().await }))
            .collect();
        for end in ends {
            let _ = end.await;
        }
    }

    /// Ends all remaining processes of agents, commands, installations and sign-ins.
    pub async fn end_processes(&self) {
        self.setup.keepers.end_all().await;
    }

    /// Kills all remaining processes. Blocks for at most half a second.
    pub fn kill_processes(&self) {
        self.setup.keepers.kill_all();
    }
}

impl AgentKind {
    fn new(entry: &AgentEntry, setup: Arc<AgentSetup>, publish: Publish) -> Self {
        let (events, queue) = mpsc::channel(EVENTS_MAX);
        let attempts = Attempts::default();
        let routes = Arc::new(Mutex::new(Routes {
            attempts: attempts.clone(),
            ..Routes::default()
        }));
        tokio::spawn(dispatch(queue, Arc::clone(&routes)));
        let seen = Arc::new(Mutex::new(Published {
            status: AgentState::Idle,
            version: None,
            connection: None,
            problem: None,
        }));
        let (published, cli_type) = (seen.clone(), entry.cli_type.clone());
        let entry = entry.clone();
        let name = entry.name.clone();
        let (backoff, sleeps_after) = (setup.backoff, setup.sleeps_after);
        let tap: Arc<WireTap> = Arc::default();
        let tapped = tap.clone();
        let start: Arc<dyn Fn() -> Result<Start, AgentError> + Send + Sync> = Arc::new(move || {
            let tap = tapped.clone();
            start(&entry, &setup).map(|start| Start { tap, ..start })
        });
        let starts = start.clone();
        let handle = AgentHandle::new(LifecycleConfig {
            start: Box::new(move || starts()),
            events: events.clone(),
            publish: Box::new(move |status, result| {
                let reason = note(&published, status, result);
                publish(&cli_type, state_of(status), reason);
            }),
            backoff,
            sleeps_after,
        });
        Self {
            inner: Arc::new(Kind {
                name,
                handle,
                events,
                routes,
                seen,
                attempts,
                start,
                tap,
            }),
        }
    }

    /// The recorded ACP traffic of the sessions that are being watched.
    pub fn tap(&self) -> &WireTap {
        &self.inner.tap
    }

    /// The display name of the agent.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Signs in with one of the methods the agent offers. Progress goes to `show`. Dropping the future cancels the
    /// sign-in.
    pub async fn authenticate(
        &self,
        method_id: &str,
        show: impl Fn(SignInShown) + Send + Sync,
    ) -> Result<(), AgentError> {
        let connection = self.inner.handle.connection().await?;
        let refused = |message: &str| AgentError::Refused {
            name: self.inner.name.clone(),
            code: 0,
            message: message.to_owned(),
            data: None,
        };
        let run = connection.sign_in().find(method_id);
        let run = run.ok_or_else(|| refused("it offers no such sign-in method"))?;
        let attempt = self.inner.attempts.begin();
        let Some(run) = run else {
            let asked = connection.request("authenticate", json!({"methodId": method_id}));
            let asked = async { asked.await.map(drop) };
            let cancelled = || refused("the sign-in was cancelled");
            attempt.by_the_agent(asked, &show, cancelled).await?;
            lock(&self.inner.routes).locked = None;
            return Ok(());
        };
        attempt
            .in_a_terminal((self.inner.start)()?, run, &show)
            .await?;
        lock(&self.inner.routes).locked = None;
        // An agent reads new credentials when it starts. One with pending requests is not interrupted.
        if connection.idle_since().is_some() {
            self.inner.handle.reconnect().await?;
        }
        Ok(())
    }

    /// Sends input to the terminal of the sign-in in progress.
    pub fn type_in(&self, text: String) -> Result<(), AgentError> {
        self.pass(Incoming::Typed(text))
    }

    /// Answers the agent's request to open a URL for the sign-in in progress.
    pub fn answer_sign_in(&self, action: QuestionAction) -> Result<(), AgentError> {
        self.pass(Incoming::Answered(action))
    }

    /// Ends the sign-in in progress, if there is one.
    pub fn stop_sign_in(&self) {
        self.inner.attempts.stop();
    }

    fn pass(&self, incoming: Incoming) -> Result<(), AgentError> {
        let too_long = matches!(&incoming, Incoming::Typed(text) if text.len() > TYPED_BYTES_MAX);
        let passed = !too_long && self.inner.attempts.pass(incoming).is_ok();
        passed.then_some(()).ok_or_else(|| AgentError::Refused {
            name: self.inner.name.clone(),
            code: 0,
            message: "no sign-in is in progress, or its input is too large".to_owned(),
            data: None,
        })
    }

    /// Completes a summary of the catalog by the state of the process.
    fn describe(&self, summary: &mut AgentSummary) {
        let seen = lock(&self.inner.seen);
        summary.status = seen.status;
        summary.version.clone_from(&seen.version);
        let connection = seen.connection.as_ref();
        summary.sign_in = connection.map_or(vec![], |it| it.sign_in().shown());
        if summary.readiness == AgentReadiness::NotInstalled {
            return;
        }
        summary.problem.clone_from(&seen.problem);
        if seen.problem.is_some() {
            summary.readiness = AgentReadiness::Broken;
        } else if lock(&self.inner.routes).locked.is_some() {
            summary.readiness = AgentReadiness::NeedsLogin;
        }
    }

    /// The process id of the keeper, while the agent is connected.
    fn process(&self) -> Option<u32> {
        let seen = lock(&self.inner.seen);
        let runs = seen.status == AgentState::Connected;
        seen.connection.as_ref().filter(|_| runs)?.keeper_pid()
    }

    /// Starts the agent ahead of its first use.
    pub async fn warm(&self) {
        self.inner.handle.warm().await;
    }

    /// Restarts the agent.
    pub async fn restart(&self) -> Result<(), AgentError> {
        self.inner.handle.reconnect().await.map(drop)
    }

    /// Kills the process, which then counts as crashed.
    pub async fn kill(&self) {
        self.inner.handle.kill().await;
    }

    /// The last lines of the agent's standard error.
    pub fn stderr(&self) -> String {
        let seen = lock(&self.inner.seen);
        seen.connection
            .as_ref()
            .map(Connection::stderr)
            .unwrap_or_default()
    }

    /// Opens a new agent session in this folder. All its events go to `inbox`.
    pub async fn new_session(
        &self,
        cwd: &Path,
        inbox: Inbox,
    ) -> Result<(AgentSession, Value), AgentError> {
        let (reply, answered) = oneshot::channel();
        loop {
            let connection = self.inner.handle.connection().await?;
            let mut routes = lock(&self.inner.routes);
            let params = json!({"cwd": cwd, "mcpServers": []});
            // The idle agent process was ended just now; the next request for a connection starts it again.
            let Some(ticket) = connection.send(&self.inner.events, "session/new", params) else {
                continue;
            };
            let session = self.session(connection, String::new());
            let expected = Expected::New {
                inbox,
                session,
                reply,
            };
            routes.expected.insert(ticket, expected);
            break;
        }
        answered.await.unwrap_or_else(|_| Err(self.gone()))
    }

    /// Opens an existing agent session again. `inbox` gets `SessionResponse::Opening` with the connection before any
    /// other event of it, and `SessionResponse::Attached` with the result. `since` is the time of the last entry in the transcript:
    /// an agent whose session is newer is asked to replay the conversation.
    pub async fn attach(
        &self,
        session_id: &str,
        cwd: &Path,
        since: Timestamp,
        attempt: u64,
        inbox: Inbox,
    ) -> Result<(), AgentError> {
        loop {
            let connection = self.inner.handle.connection().await?;
            // The process is exiting; the request goes to the next one.
            if connection.has_ended() {
                connection.gone().await;
                continue;
            }
            let how = self
                .attach_method(&connection, session_id, cwd, since)
                .await?;
            let method = match how {
                Attach::Resume => "session/resume",
                Attach::Load => "session/load",
            };
            let opening = Routed {
                connection: connection.id(),
                event: AgentEvent::Response(SessionResponse::Opening { attempt }),
            };
            // The session that requested this attempt is gone.
            if inbox.send(opening).await.is_err() {
                return Ok(());
            }
            let params = json!({"sessionId": session_id, "cwd": cwd, "mcpServers": []});
            let mut routes = lock(&self.inner.routes);
            // The agent fell asleep just now; the next request for a connection starts it again.
            let Some(ticket) = connection.send(&self.inner.events, method, params) else {
                continue;
            };
            let route = Route {
                inbox,
                connection: connection.id(),
            };
            routes.sessions.insert(session_id.to_owned(), route);
            let session = self.session(connection, session_id.to_owned());
            let expected = Expected::Attach {
                session,
                attempt,
                how,
            };
            routes.expected.insert(ticket, expected);
            return Ok(());
        }
    }

    async fn attach_method(
        &self,
        connection: &Connection,
        session_id: &str,
        cwd: &Path,
        since: Timestamp,
    ) -> Result<Attach, AgentError> {
        let capabilities = &connection.initialized().agent_capabilities;
        let can_resume = capabilities.session_capabilities.resume.is_some();
        match (can_resume, capabilities.load_session) {
            (true, true) if agent_is_newer(connection, session_id, cwd, since).await => {
                Ok(Attach::Load)
            }
            (true, _) => Ok(Attach::Resume),
            (false, true) => Ok(Attach::Load),
            (false, false) => Err(AgentError::Refused {
                name: self.inner.name.clone(),
                code: -32601,
                message: "it cannot reopen a session of an earlier process. \
                          The conversation stays readable; start a new session to continue."
                    .to_owned(),
                data: None,
            }),
        }
    }

    fn session(&self, connection: Connection, id: String) -> AgentSession {
        let Kind { events, routes, .. } = &*self.inner;
        AgentSession::new(id, connection, events.clone(), Arc::clone(routes))
    }

    fn gone(&self) -> AgentError {
        AgentError::Lost {
            name: self.inner.name.clone(),
            reason: String::new(),
        }
    }
}

/// Whether the agent lists the session with a later update than `since`.
async fn agent_is_newer(
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
            return updated
                .is_some_and(|updated| updated.duration_since(since) > TURN_END_TOLERANCE);
        }
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    false
}

/// Fetches a newer list of agents for a catalog from an https URL or a file.
pub async fn refresh(catalog: &Catalog, from: &str) -> Result<Refreshed, String> {
    let text = fetch(from, catalog.tool("curl").as_deref()).await?;
    let taken = catalog.take_list(&text);
    taken.map_err(|reason| format!("The list of agents from {from} was rejected: {reason}."))
}

/// The first line of an error, which says what failed, and the last lines, which say why.
fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    match lines.len() > PROBLEM_LINES_MAX {
        true => {
            let last = &lines[lines.len() - (PROBLEM_LINES_MAX - 1)..];
            format!("{}\n…\n{}", lines[0], last.join("\n"))
        }
        false => text.to_owned(),
    }
}

/// Updates the published state after a change of status. Returns the reason of a failed start.
fn note(
    seen: &Mutex<Published>,
    status: Status,
    result: Option<&Result<Connection, AgentError>>,
) -> Option<String> {
    let mut seen = lock(seen);
    seen.status = state_of(status);
    match result {
        Some(Ok(connection)) => {
            let info = connection.initialized().agent_info.as_ref();
            seen.version = info.map(|info| info.version.clone());
            seen.connection = Some(connection.clone());
            seen.problem = None;
            None
        }
        Some(Err(error)) => {
            seen.problem = Some(last_lines(&error.to_string()));
            Some(error.to_string())
        }
        None => None,
    }
}

fn state_of(status: Status) -> AgentState {
    match status {
        Status::Idle => AgentState::Idle,
        Status::Starting => AgentState::Starting,
        Status::Connected => AgentState::Connected,
        Status::Disconnected => AgentState::Disconnected,
        Status::Reconnecting => AgentState::Reconnecting,
    }
}
