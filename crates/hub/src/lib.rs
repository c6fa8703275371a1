//! Projects, sessions, agents and their files, shared by the browser API and the gateway. No HTTP, no HTML.
//!
//! Each API holds a clone of [`Hub`], which is cheap. It calls the methods here and receives every change
//! through [`Hub::subscribe`]. An event is published only after the change is on disk.

mod cleaning;
mod error;
mod events;
mod files;
mod folders;
mod projects;
mod session;
mod stream;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use agents::{AgentKind, AgentSetup, Agents, InstallProgress, REGISTRY_URL, Refreshed, Traffic};
use uuid::Uuid;

use tokio::sync::broadcast;

pub use cleaning::{Cleaned, Cleaning};
pub use error::HubError;
pub use events::{Event, EventKind, Events, Origin};
use files::Searches;
pub use files::{FoundFiles, Search};
pub use folders::Completions;
pub use projects::Projects;
use session::Hosting;
pub use session::{Done, KeyedSession, Page, SessionRules, Sessions, Shown, UNTITLED};
use store::{Audit, CleaningRules, DataDir, Lock, OpenError, Uploads};
pub use stream::{Feed, FeedReader, QueuedEvent, SessionEvent, TooSlow, feed};

/// Interval of the check whether this server still owns the data directory.
const OWNERSHIP_CHECK: Duration = Duration::from_secs(1);

/// Configuration of a hub.
pub struct HubConfig {
    pub data_dir: DataDir,
    /// The user's home directory, for `~`.
    pub home: Option<PathBuf>,
    pub agents: AgentSetup,
    pub rules: SessionRules,
    pub cleaning: CleaningRules,
}

/// Describes problems with the files of a data directory, without changing anything.
pub fn store_problems(data_dir: &Path) -> Vec<String> {
    let problems = [projects::problem(data_dir), session::problem(data_dir)];
    problems.into_iter().flatten().collect()
}

/// Everything the server manages. Clones share it.
#[derive(Clone)]
pub struct Hub {
    inner: Arc<Inner>,
}

struct Inner {
    boot_id: Arc<str>,
    projects: Projects,
    sessions: Sessions,
    events: Events,
    home: Option<PathBuf>,
    agents: Arc<Agents>,
    audit: Audit,
    uploads: Uploads,
    searches: Searches,
    data_dir: PathBuf,
    cleaning_rules: CleaningRules,
    cleaning: tokio::sync::Mutex<()>,
    last_use: cleaning::LastUse,
    /// Problems found at start, as sentences for the user.
    notices: Vec<String>,
    /// The reason why the data directory must not be written to, if it was lost.
    trouble: Mutex<Option<String>>,
    /// Keeps other servers out of the data directory while the hub exists.
    lock: Lock,
}

impl Hub {
    /// Locks and reads the data directory and starts its writers. Must be called within a tokio runtime.
    pub fn open(config: HubConfig) -> Result<Self, HubError> {
        let last_use = cleaning::LastUse::of(config.data_dir.path());
        let lock = config.data_dir.lock()?;
        let keepers = config.agents.keepers.clone();
        // In a thread: it inspects every process of this machine while the files are read here.
        let cleaning_up = std::thread::spawn(move || keepers.clean_up());
        let events = Events::new();
        let mut notices = Vec::new();
        let dir = &config.data_dir;
        let projects = Projects::open(dir, events.clone(), &mut notices)?;
        let audit = Audit::open(&dir.audit_file()).map_err(|source| {
            let path = dir.path().to_owned();
            OpenError::Directory { path, source }
        })?;
        let uploads = Uploads::open(dir)?;
        let hosting = Hosting {
            data_dir: dir.path().to_owned(),
            keepers: config.agents.keepers.clone(),
            env: agents::environment(&config.agents.env),
            audit: audit.clone(),
            uploads: uploads.clone(),
        };
        let agent_events = events.clone();
        let agents = Arc::new(Agents::new(
            config.agents,
            move |cli_type, status, reason| {
                let event = EventKind::AgentStatus {
                    cli_type: cli_type.to_owned(),
                    status,
                    reason,
                };
                agent_events.publish(event, Origin::default());
            },
        ));
        let boot_id: Arc<str> = Uuid::new_v4().to_string().into();
        let sessions = Sessions::open(
            dir,
            agents.clone(),
            hosting,
            config.rules,
            boot_id.clone(),
            events.clone(),
            &mut notices,
        )?;
        for notice in &notices {
            tracing::warn!("{notice}");
        }
        let _ = cleaning_up.join();
        let hub = Self {
            inner: Arc::new(Inner {
                boot_id,
                projects,
                sessions,
                events,
                home: config.home,
                agents,
                audit,
                uploads,
                searches: Searches::default(),
                data_dir: config.data_dir.path().to_owned(),
                cleaning_rules: config.cleaning,
                cleaning: tokio::sync::Mutex::default(),
                last_use,
                notices,
                trouble: Mutex::default(),
                lock,
            }),
        };
        tokio::spawn(watch_ownership(Arc::downgrade(&hub.inner)));
        tokio::spawn(cleaning::clean_daily(Arc::downgrade(&hub.inner)));
        Ok(hub)
    }

    /// The projects of the server.
    pub fn projects(&self) -> &Projects {
        &self.inner.projects
    }

    /// The sessions of the server.
    pub fn sessions(&self) -> &Sessions {
        &self.inner.sessions
    }

    /// The agents of the server.
    pub fn agents(&self) -> &Agents {
        &self.inner.agents
    }

    /// Signs in to an agent with one of its methods. Progress is published for the requesting connection only.
    pub async fn sign_in(
        &self,
        cli_type: &str,
        method_id: &str,
        origin: Origin,
    ) -> Result<(), HubError> {
        let kind = self.agents().kind(cli_type);
        let kind = kind.ok_or_else(|| HubError::AgentUnknown(cli_type.to_owned()))?;
        let show = |shown| {
            let event = EventKind::SignIn {
                cli_type: cli_type.to_owned(),
                shown,
            };
            let origin = Origin {
                connection: origin.connection,
                request_id: None,
            };
            self.inner.events.publish(event, origin);
        };
        Ok(kind.authenticate(method_id, show).await?)
    }

    /// Pictures attached to messages.
    pub fn uploads(&self) -> &Uploads {
        &self.inner.uploads
    }

    /// Starts the process of the agent that was used last, so that the next session with it opens quickly.
    pub async fn warm_last_agent(&self) {
        let last = self.sessions().last_kind();
        if let Some(kind) = last.and_then(|cli_type| self.agents().kind(&cli_type)) {
            kind.warm().await;
        }
    }

    /// Determines the version of the installed Node.js in the background. Publishes the agent list if the version has
    /// changed.
    pub fn check_node_version(&self) {
        let (agents, events) = (self.inner.agents.clone(), self.inner.events.clone());
        tokio::spawn(async move {
            if agents.catalog().check_node_version().await {
                events.publish(EventKind::Agents(agents.summaries()), Origin::default());
            }
        });
    }

    /// Begins to install an agent and publishes the progress. Returns the progress output so far.
    pub fn install_agent(&self, cli_type: &str) -> Result<String, HubError> {
        let (agents, events) = (
            Arc::downgrade(&self.inner.agents),
            self.inner.events.clone(),
        );
        let installed = cli_type.to_owned();
        let report = move |news: InstallProgress| {
            let ended = matches!(news, InstallProgress::Ended(_));
            let cli_type = installed.clone();
            if let Some(agents) = agents.upgrade().filter(|_| ended) {
                events.publish(EventKind::Agents(agents.summaries()), Origin::default());
            }
            events.publish(
                EventKind::AgentInstall { cli_type, news },
                Origin::default(),
            );
        };
        Ok(self.inner.agents.install(cli_type, report)?)
    }

    /// Starts or stops recording the ACP frames of a session.
    pub fn watch_traffic(&self, session_id: &str, on: bool) -> Result<(), HubError> {
        let (kind, own_id) = self.kind_of(session_id)?;
        match kind.tap().watch(own_id, on) {
            true => Ok(()),
            false => Err(HubError::SessionRefused {
                code: wire::ErrorCode::SessionBusy,
                message: "Cannot record this session: too many sessions of its agent are recorded already. Stop one of them first.".to_owned(),
            }),
        }
    }

    /// The recorded frames after frame `after`; `None` if the session is not recorded.
    pub fn read_traffic(&self, session_id: &str, after: u64) -> Result<Option<Traffic>, HubError> {
        let (kind, own_id) = self.kind_of(session_id)?;
        Ok(kind.tap().read(own_id, after))
    }

    /// A session's agent, and the id of its agent session.
    fn kind_of<'a>(&self, session_id: &'a str) -> Result<(AgentKind, &'a str), HubError> {
        let parts = session_id.split_once(':');
        let (cli_type, own_id) = parts.ok_or(HubError::SessionNotFound)?;
        let kind = self.agents().kind(cli_type);
        Ok((kind.ok_or(HubError::SessionNotFound)?, own_id))
    }

    /// Fetches the newest list of agents from the public registry.
    pub async fn refresh_agents(&self) -> Result<Refreshed, HubError> {
        let agents = &self.inner.agents;
        let refreshed = agents.refresh(REGISTRY_URL).await;
        let refreshed = refreshed.map_err(HubError::NotRefreshed)?;
        let event = EventKind::Agents(agents.summaries());
        self.inner.events.publish(event, Origin::default());
        Ok(refreshed)
    }

    /// The epoch of event numbers: differs for every start of the server.
    pub fn boot_id(&self) -> &str {
        &self.inner.boot_id
    }

    /// Writes this server's URL into the lock file, for other processes that find the data directory locked.
    pub fn announce(&self, url: &str) -> std::io::Result<()> {
        self.inner.lock.announce(url)
    }

    /// The current problems, as sentences for every client: those found at start, and the loss of the data directory.
    pub fn notices(&self) -> Vec<String> {
        self.inner.notices()
    }

    /// Receives every later change, in the order in which changes reached the disk.
    pub fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.inner.events.subscribe()
    }

    /// Adds the folder at the path that the user typed. Every subscriber receives `EventKind::ProjectAdded`.
    pub async fn add_project(
        &self,
        typed: &str,
        origin: Origin,
    ) -> Result<wire::Project, HubError> {
        let path = folders::resolve(typed.to_owned(), self.inner.home.clone()).await?;
        self.inner.projects.add(path, origin).await
    }

    /// Folders whose paths begin with `typed`.
    pub async fn complete_folder(&self, typed: &str) -> Completions {
        let added = self
            .inner
            .projects
            .list()
            .into_iter()
            .map(|project| project.path)
            .collect();
        folders::complete(typed.to_owned(), self.inner.home.clone(), added).await
    }

    /// Begins a file search and ends the connection's previous one.
    pub fn begin_search(&self, connection: u64) -> Search {
        self.inner.searches.begin(connection)
    }

    /// Files of a project that match part of a path.
    pub async fn find_files(
        &self,
        search: Search,
        project_id: &str,
        query: String,
        limit: u32,
    ) -> Result<FoundFiles, HubError> {
        let projects = self.inner.projects.list();
        let mut projects = projects.into_iter();
        let project = projects.find(|project| project.id == project_id);
        let folder = project.ok_or(HubError::ProjectNotFound)?.path.into();
        Ok(search.find(folder, query, limit).await)
    }

    /// Stops every session and waits until all changes are written.
    pub async fn close(&self) {
        self.inner.sessions.close().await;
        self.inner.projects.close().await;
        self.inner.audit.flush().await;
    }
}

impl Inner {
    fn notices(&self) -> Vec<String> {
        let trouble = self.trouble.lock();
        let trouble = trouble.unwrap_or_else(PoisonError::into_inner).clone();
        self.notices.iter().cloned().chain(trouble).collect()
    }

    /// Informs every client when the data directory is lost, and when it is back.
    fn check_ownership(&self) {
        let found = self.lock.trouble();
        let mut known = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        if *known == found {
            return;
        }
        match &found {
            Some(trouble) => tracing::error!("{trouble}"),
            None => tracing::warn!("the data directory is available again; changes are saved"),
        }
        *known = found;
        drop(known);
        let event = EventKind::Notices(self.notices());
        self.events.publish(event, Origin::default());
    }
}

/// Checks ownership as long as the hub exists. Commands find a server by its lock file, so a removed lock file must be
/// restored even when nothing is written.
async fn watch_ownership(hub: Weak<Inner>) {
    loop {
        tokio::time::sleep(OWNERSHIP_CHECK).await;
        let Some(hub) = hub.upgrade() else {
            return;
        };
        // On a blocking thread: disks can be slow, and calls to disconnected network disks can block forever.
        let _ = tokio::task::spawn_blocking(move || hub.check_ownership()).await;
    }
}
