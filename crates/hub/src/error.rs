use std::io;
use std::sync::Arc;

use wire::ErrorCode;

use agents::{AgentError, InstallRefused};
use store::{ChangeError, OpenError};

/// Errors of the hub. Users see the message; clients branch on the code.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    #[error("{0}")]
    ProjectPath(String),
    #[error("Project already added")]
    ProjectDuplicate,
    #[error("No such project")]
    ProjectNotFound,
    #[error("Session not found")]
    SessionNotFound,
    #[error("The agent created a session with the id of an existing one ({0})")]
    SessionDuplicate(String),
    #[error("Could not load session: {0}")]
    SessionUnreadable(String),
    #[error("{message}")]
    SessionRefused { code: ErrorCode, message: String },
    #[error("No agent is named `{0}`. `liminal doctor` lists the agents.")]
    AgentUnknown(String),
    #[error(transparent)]
    InstallRefused(#[from] InstallRefused),
    #[error("{0}")]
    NotRefreshed(String),
    #[error("Could not create session: {0}")]
    NotCreated(AgentError),
    #[error(transparent)]
    Agent(#[from] AgentError),
    #[error("The change could not be saved and was not made: {0}")]
    Write(Arc<io::Error>),
    #[error(
        "Could not clean the data directory: {0}. Check its permissions and the disk, and retry."
    )]
    Clean(Arc<io::Error>),
    #[error(
        "The data directory was not cleaned: it was not used for a month, or the clock was changed. Check the date, and \
         run `liminal clean` again."
    )]
    ClockChanged,
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("The server is stopping")]
    Closed,
}

impl From<ChangeError> for HubError {
    fn from(error: ChangeError) -> Self {
        match error {
            ChangeError::Write(error) => Self::Write(error),
            ChangeError::Closed => Self::Closed,
        }
    }
}

impl HubError {
    /// Exhaustive on purpose: a new variant must choose its code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::ProjectPath(_) => ErrorCode::ProjectPathInvalid,
            Self::ProjectDuplicate => ErrorCode::ProjectDuplicate,
            Self::ProjectNotFound => ErrorCode::ProjectNotFound,
            Self::SessionNotFound => ErrorCode::SessionNotFound,
            Self::SessionUnreadable(_) => ErrorCode::StoreUnavailable,
            Self::SessionRefused { code, .. } => *code,
            Self::AgentUnknown(_) | Self::InstallRefused(_) | Self::NotRefreshed(_) => {
                ErrorCode::AgentUnavailable
            }
            Self::SessionDuplicate(_) => ErrorCode::AgentProtocolError,
            Self::NotCreated(error) | Self::Agent(error) => match error {
                AgentError::Refused { .. } => ErrorCode::AgentProtocolError,
                AgentError::SignInNeeded { .. } => ErrorCode::SignInNeeded,
                AgentError::NotStarted { .. }
                | AgentError::NotConnected { .. }
                | AgentError::Asleep { .. }
                | AgentError::Lost { .. } => ErrorCode::AgentUnavailable,
            },
            Self::Write(_) | Self::Clean(_) | Self::ClockChanged | Self::Closed => {
                ErrorCode::StoreUnavailable
            }
            Self::Open(_) => ErrorCode::InternalError,
        }
    }
}
