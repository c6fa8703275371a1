use serde::Serialize;
use ts_rs::TS;

/// What a program branches on; people read the message beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ErrorCode {
    /// The message was not one we know, or not well formed.
    InvalidMessage,
    /// The path is relative, missing, not a directory, or not readable.
    ProjectPathInvalid,
    /// That folder is a project already.
    ProjectDuplicate,
    /// No project has that id.
    ProjectNotFound,
    /// No session has that id.
    SessionNotFound,
    /// The agent is missing, could not be started, or is gone.
    AgentUnavailable,
    /// The agent wants the person to sign in first.
    SignInNeeded,
    /// The agent answered with an error.
    AgentProtocolError,
    /// It cannot be done in the state the session is in.
    SessionBusy,
    /// The change could not be written to disk and was not made.
    StoreUnavailable,
    /// Our fault.
    InternalError,
}
