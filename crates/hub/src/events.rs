//! Events of the hub: changes of projects, sessions and agents, published to every API.

use tokio::sync::broadcast;
use wire::{AgentState, AgentSummary, Project, SessionListItem, SessionState, SignInShown};

use agents::InstallProgress;

/// Maximum events in the backlog of a subscriber. A subscriber that falls further behind has to fetch the lists again.
const SUBSCRIBER_BACKLOG_MAX: usize = 1024;

/// A change of which every connection is notified, with the request that caused it.
#[derive(Debug, Clone)]
pub struct Event {
    pub kind: EventKind,
    /// The request that caused the change, so that the requester's copy can carry its request id.
    pub origin: Origin,
}

/// What changed.
#[derive(Debug, Clone)]
pub enum EventKind {
    ProjectAdded(Project),
    ProjectRemoved {
        project_id: String,
    },
    SessionCreated(SessionListItem),
    SessionArchived {
        session_id: String,
    },
    /// The session is back in the list after being archived or deleted.
    SessionUnarchived(SessionListItem),
    SessionDeleted {
        session_id: String,
    },
    SessionTitle {
        session_id: String,
        title: String,
    },
    SessionState {
        session_id: String,
        project_id: String,
        state: SessionState,
        last_active_at: String,
    },
    /// Progress of a sign-in, for the requesting connection only.
    SignIn {
        cli_type: String,
        shown: SignInShown,
    },
    AgentStatus {
        cli_type: String,
        status: AgentState,
        reason: Option<String>,
    },
    /// The current problems that every client shows.
    Notices(Vec<String>),
    /// The agent list or the readiness of an agent has changed.
    Agents(Vec<AgentSummary>),
    AgentInstall {
        cli_type: String,
        news: InstallProgress,
    },
}

/// Identifies a request: the connection that sent it, and the request id that the client chose.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    pub connection: u64,
    pub request_id: Option<String>,
}

/// Publishes the server's events to all connections. Clones share the subscribers.
#[derive(Clone)]
pub struct Events {
    sender: broadcast::Sender<Event>,
}

impl Events {
    pub(crate) fn new() -> Self {
        Self {
            sender: broadcast::Sender::new(SUBSCRIBER_BACKLOG_MAX),
        }
    }

    pub(crate) fn publish(&self, kind: EventKind, origin: Origin) {
        // An error only means that there are no subscribers.
        let _ = self.sender.send(Event { kind, origin });
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.sender.subscribe()
    }
}
