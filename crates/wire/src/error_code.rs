use serde::Serialize;
use ts_rs::TS;

/// Error code for programs; the message beside it is for users.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ErrorCode {
    /// The message is of an unknown type or malformed.
    InvalidMessage,
    /// The path is relative, missing, not a directory, or not readable.
    ProjectPathInvalid,
    /// The folder is already a project.
    ProjectDuplicate,
    /// No project has that id.
    ProjectNotFound,
    /// No session has that id.
    SessionNotFound,
    /// The agent is not installed, could not be started, or has exited.
    AgentUnavailable,
    /// The user must sign in with the agent first.
    SignInNeeded,
    /// The agent returned an error.
    AgentProtocolError,
    /// The operation is not possible in the session's current state.
    SessionBusy,
    /// The change could not be written to disk and was not applied.
    StoreUnavailable,
    /// Unexpected error in the server.
    InternalError,
}
