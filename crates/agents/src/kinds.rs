//! Every kind of agent there is, as sessions use it and as people are told of it.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use wire::{AgentMemory, AgentReadiness, AgentState, AgentSummary, QuestionAction, SignInShown};

use super::agent_session::AgentSession;
use super::connection::{AgentError, AgentEvent, Connection, Start};
use super::lifecycle::{AgentHandle, Life, Status};
use super::memory;
use super::obtain::{Ended, Installs, News, NotInstalled, Refreshed, fetch};
use super::routes::{Attach, Expected, FromAgent, Inbox, Route, Routed, Routes, hand_on, lock};
use super::sign_in::{Attempts, Incoming, TYPED_BYTES_MAX};
use super::start::{AgentSetup, environment, start};
use super::wire_tap::WireTap;
use super::{AgentEntry, Catalog};

/// Events of one agent that may wait to be handed on.
pub(super) const EVENTS_MAX: usize = 4096;
/// How much later than we an agent may have written its own last word about a turn we saw.
const SAME_TURN: SignedDuration = SignedDuration::from_secs(5);
const LIST_PAGES_MAX: usize = 20;
/// Of what an agent said before it failed to start.
const PROBLEM_LINES_MAX: usize = 12;

pub struct Agents {
    setup: Arc<AgentSetup>,
    publish: Publish,
    /// Those somebody has wanted so far; the list of all grows while we run.
    kinds: Mutex<HashMap<String, AgentKind>>,
    installs: Installs,
}

type Publish = Arc<dyn Fn(&str, AgentState, Option<String>) + Send + Sync>;

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
    attempts: Attempts,
    /// How it would be started now.
    start: Arc<dyn Fn() -> Result<Start, AgentError> + Send + Sync>,
    tap: Arc<WireTap>,
}

/// What people are told of a kind.
struct Seen {
    status: AgentState,
    version: Option<String>,
    /// The last one there was.
    connection: Option<Connection>,
    /// Why it did not start when it was last tried.
    problem: Option<String>,
}

impl Agents {
    /// `publish` is told of each change of a kind's state, with why it is away.
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

    pub fn catalog(&self) -> &Catalog {
        &self.setup.catalog
    }

    /// Must be called within a tokio runtime.
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

    /// What the browser is told.
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

    /// Brings an agent of the list here. `tell` hears how it goes; the answer is what has been said so far, of one that
    /// is under way already.
    pub fn install(
        &self,
        cli_type: &str,
        tell: impl Fn(News) + Send + Sync + 'static,
    ) -> Result<String, NotInstalled> {
        let impossible = |reason: String| Err(NotInstalled::Impossible(reason));
        let catalog = self.catalog();
        let Some(entry) = catalog.entry(cli_type) else {
            return impossible(format!("There is no agent `{cli_type}` in the list."));
        };
        let plan = match catalog.plan(&entry) {
            Some(Ok(plan)) => plan,
            Some(Err(missing)) => return impossible(missing),
            None => {
                return impossible(format!(
                    "{} is started by a command that was set for it; there is nothing to install.",
                    entry.name
                ));
            }
        };
        let env = environment(&self.setup.env);
        let kind = lock(&self.kinds).get(cli_type).cloned();
        let told = move |news: News| {
            if let (News::Ended(Ended::Installed), Some(kind)) = (&news, &kind) {
                lock(&kind.inner.seen).problem = None;
            }
            tell(news);
        };
        self.installs
            .begin(cli_type, plan, self.setup.keepers.clone(), env, told)
    }

    pub fn cancel_install(&self, cli_type: &str) {
        self.installs.cancel(cli_type);
    }

    /// Fetches a newer list of agents: from an https address, or from a file.
    pub async fn refresh(&self, from: &str) -> Result<Refreshed, String> {
        refresh(self.catalog(), from).await
    }

    /// What those that run take, with everything they started.
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

    /// Ends every agent and everything they started, all at once.
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

    /// Ends whatever still runs for agents, commands, installs and sign-ins.
    pub async fn end_processes(&self) {
        self.setup.keepers.end_all().await;
    }

    /// The same at once. It blocks, for half a second at most.
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
        tokio::spawn(hand_on(queue, Arc::clone(&routes)));
        let seen = Arc::new(Mutex::new(Seen {
            status: AgentState::Idle,
            version: None,
            connection: None,
            problem: None,
        }));
        let (noted, cli_type) = (seen.clone(), entry.cli_type.clone());
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
        let handle = AgentHandle::new(Life {
            start: Box::new(move || starts()),
            events: events.clone(),
            publish: Box::new(move |status, came_to| {
                let reason = note(&noted, status, came_to);
                publish(&cli_type, shown(status), reason);
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

    /// What goes between us and it, for those sessions that are watched.
    pub fn tap(&self) -> &WireTap {
        &self.inner.tap
    }

    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Signs in by one of the agent's own methods. What is to be seen of it goes to `show`; dropped, it is given up.
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
        let run = run.ok_or_else(|| refused("it offers no such way to sign in"))?;
        let attempt = self.inner.attempts.begin();
        let Some(run) = run else {
            let asked = connection.request("authenticate", json!({"methodId": method_id}));
            let asked = async { asked.await.map(drop) };
            let given_up = || refused("it was given up");
            attempt.by_the_agent(asked, &show, given_up).await?;
            lock(&self.inner.routes).locked = None;
            return Ok(());
        };
        attempt
            .in_a_terminal((self.inner.start)()?, run, &show)
            .await?;
        lock(&self.inner.routes).locked = None;
        // What it signed in with it reads when it starts; one that works for somebody is left alone.
        if connection.idle_since().is_some() {
            self.inner.handle.reconnect().await?;
        }
        Ok(())
    }

    /// Into the terminal in which somebody signs in.
    pub fn type_in(&self, text: String) -> Result<(), AgentError> {
        self.pass(Incoming::Typed(text))
    }

    /// Whether the person goes where the agent sent them to sign in.
    pub fn answer_sign_in(&self, action: QuestionAction) -> Result<(), AgentError> {
        self.pass(Incoming::Answered(action))
    }

    pub fn stop_sign_in(&self) {
        self.inner.attempts.stop();
    }

    fn pass(&self, incoming: Incoming) -> Result<(), AgentError> {
        let too_long = matches!(&incoming, Incoming::Typed(text) if text.len() > TYPED_BYTES_MAX);
        let passed = !too_long && self.inner.attempts.pass(incoming).is_ok();
        passed.then_some(()).ok_or_else(|| AgentError::Refused {
            name: self.inner.name.clone(),
            code: 0,
            message: "nobody signs in just now, or that was too much at once".to_owned(),
            data: None,
        })
    }

    /// What people are told of it, beside what the catalog knows.
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

    /// Its keeper's, while it runs.
    fn process(&self) -> Option<u32> {
        let seen = lock(&self.inner.seen);
        let runs = seen.status == AgentState::Connected;
        seen.connection.as_ref().filter(|_| runs)?.keeper_pid()
    }

    /// Starts the agent ahead of its first use.
    pub async fn warm(&self) {
        self.inner.handle.warm().await;
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
        let (reply, answered) = oneshot::channel();
        loop {
            let connection = self.inner.handle.connection().await?;
            let mut routes = lock(&self.inner.routes);
            let params = json!({"cwd": cwd, "mcpServers": []});
            // It fell asleep just now; asked for again, it is woken.
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

    /// Gives the agent a session it had before. `FromAgent::Opening` names the connection, before anything else comes
    /// from it; `FromAgent::Attached` says what became of it. `since` is the last we know to have happened in it: an
    /// agent that knows of something later is asked to say everything again.
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
            // The process is on its way out; the next one is asked instead.
            if connection.has_ended() {
                connection.gone().await;
                continue;
            }
            let how = self.how(&connection, session_id, cwd, since).await?;
            let method = match how {
                Attach::Resume => "session/resume",
                Attach::Load => "session/load",
            };
            let opening = Routed {
                connection: connection.id(),
                event: FromAgent::Opening { attempt },
            };
            // Without a session to receive it there is nothing to open.
            if inbox.send(opening).await.is_err() {
                return Ok(());
            }
            let params = json!({"sessionId": session_id, "cwd": cwd, "mcpServers": []});
            let mut routes = lock(&self.inner.routes);
            // It fell asleep just now; asked for again, it is woken.
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

    async fn how(
        &self,
        connection: &Connection,
        session_id: &str,
        cwd: &Path,
        since: Timestamp,
    ) -> Result<Attach, AgentError> {
        let capabilities = &connection.initialized().agent_capabilities;
        let can_resume = capabilities.session_capabilities.resume.is_some();
        match (can_resume, capabilities.load_session) {
            (true, true) if knows_more(connection, session_id, cwd, since).await => {
                Ok(Attach::Load)
            }
            (true, _) => Ok(Attach::Resume),
            (false, true) => Ok(Attach::Load),
            (false, false) => Err(AgentError::Refused {
                name: self.inner.name.clone(),
                code: -32601,
                message: "it cannot go on with a session from before it was started. \
                          The conversation stays readable; start a new session to go on."
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

/// Fetches a list of agents for a catalog, from an https address or from a file.
pub async fn refresh(catalog: &Catalog, from: &str) -> Result<Refreshed, String> {
    let text = fetch(from, catalog.tool("curl").as_deref()).await?;
    let taken = catalog.take_list(&text);
    taken.map_err(|reason| format!("The list from {from} was not taken: {reason}."))
}

/// The first line, which says what happened, and the last ones, which say why.
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

fn shown(status: Status) -> AgentState {
    match status {
        Status::Idle => AgentState::Idle,
        Status::Starting => AgentState::Starting,
        Status::Connected => AgentState::Connected,
        Status::Disconnected => AgentState::Disconnected,
        Status::Reconnecting => AgentState::Reconnecting,
    }
}
