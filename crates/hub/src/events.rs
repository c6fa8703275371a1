//! What has changed, told to every door.

use tokio::sync::broadcast;
use wire::{AgentState, AgentSummary, Project, SessionListItem, SessionState, SignInShown};

use agents::News;

/// How many events a subscriber may fall behind before it has to start over from a fresh list.
const SUBSCRIBER_BACKLOG_MAX: usize = 1024;

#[derive(Debug, Clone)]
pub struct Event {
    pub what: What,
    /// Who asked for it, so that their copy can carry their request id.
    pub origin: Origin,
}

#[derive(Debug, Clone)]
pub enum What {
    ProjectAdded(Project),
    ProjectRemoved {
        project_id: String,
    },
    SessionCreated(SessionListItem),
    SessionArchived {
        session_id: String,
    },
    /// It is back in the list: it was archived, or deleted.
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
    /// Only for whom it comes from.
    SignIn {
        cli_type: String,
        shown: SignInShown,
    },
    AgentStatus {
        cli_type: String,
        status: AgentState,
        reason: Option<String>,
    },
    /// What every user of this server should know, as of now.
    Notices(Vec<String>),
    /// Which agents there are, and how they are, has changed.
    Agents(Vec<AgentSummary>),
    AgentInstall {
        cli_type: String,
        news: News,
    },
}

/// A request, named by the connection it came in on and the id the client gave it.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    pub connection: u64,
    pub request_id: Option<String>,
}

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

    pub(crate) fn publish(&self, what: What, origin: Origin) {
        // An error only says that nobody listens.
        let _ = self.sender.send(Event { what, origin });
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.sender.subscribe()
    }
}
