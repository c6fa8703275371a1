use std::io;
use std::sync::Arc;

use wire::ErrorCode;

use crate::store::OpenError;

/// What can go wrong behind the doors. The text is for people, the code for programs.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    #[error("{0}")]
    ProjectPath(String),
    #[error("Project already added")]
    ProjectDuplicate,
    #[error("No such project")]
    ProjectNotFound,
    #[error("The change could not be saved and was not made: {0}")]
    Write(Arc<io::Error>),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("The server is stopping")]
    Closed,
}

impl HubError {
    /// Exhaustive on purpose: a new variant must choose its code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::ProjectPath(_) => ErrorCode::ProjectPathInvalid,
            Self::ProjectDuplicate => ErrorCode::ProjectDuplicate,
            Self::ProjectNotFound => ErrorCode::ProjectNotFound,
            Self::Write(_) | Self::Closed => ErrorCode::StoreUnavailable,
            Self::Open(_) => ErrorCode::InternalError,
        }
    }
}
