//! Frames of the gateway, the API for programs.
//!
//! A client first sends `{"type":"auth","token":…}`, then requests `{id, method, params}`. Each request is
//! answered by `{id, result}` or `{id, error}`; events `{event, data}` may come in between.

mod params;
mod results;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use params::{
    AbortParams, AnswerParams, AnswerQuestionParams, BrowserParams, CleanParams, CreateParams,
    CwdParam, HistoryParams, IdempotencyKey, KeyParams, Limit, ListParams, MessageParams,
    MessageText, NoParams, PathParams, ProjectParams, QueueParams, RenameParams, RunId, SendParams,
    SessionKey, SubscribeParams,
};
pub use results::{
    Agent, AgentList, Browser, BrowserList, CleanedFolder, CleanedList, Done, Health, MemoryList,
    Message, MessageBody, Messages, NewSession, Permission, PermissionList, ProjectAdded,
    ProjectList, Question, QuestionList, Queue, QueuedRun, Role, Run, Session, SessionList,
    SessionWithMessages, Subscribed,
};

/// First frame of a client.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Auth {
    Auth { token: String },
}

/// A request. The response repeats its id.
#[derive(Debug, Deserialize)]
pub struct Request {
    pub id: Value,
    pub method: String,
    #[serde(default)]
    pub params: Option<Value>,
}

/// A frame sent to a client.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Frame {
    Auth {
        r#type: &'static str,
        ok: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'static str>,
    },
    Result {
        id: Value,
        result: Value,
    },
    Error {
        id: Value,
        error: Problem,
    },
    Event {
        event: &'static str,
        data: Value,
    },
}

/// Error of a failed request.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Problem {
    pub code: i32,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl Problem {
    /// Not JSON.
    pub const PARSE: i32 = -32700;
    /// JSON, but not a request.
    pub const INVALID_REQUEST: i32 = -32600;
    /// There is no method with this name.
    pub const UNKNOWN_METHOD: i32 = -32601;
    /// The parameters do not fit the method.
    pub const INVALID_PARAMS: i32 = -32602;
    /// The server failed.
    pub const INTERNAL: i32 = -32603;
    /// The session, project, message or run does not exist.
    pub const NOT_FOUND: i32 = 404;
    /// Not possible in the current state.
    pub const CONFLICT: i32 = 409;
    /// A rate limit or another limit is reached.
    pub const TOO_MANY: i32 = 429;

    /// An error without further data.
    pub fn new(code: i32, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            code,
            message,
            data: None,
        }
    }
}
