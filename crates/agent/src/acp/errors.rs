//! Conversion of the agent's errors to JSON-RPC errors for the client.

use agent_client_protocol_schema::v1 as acp;
use serde_json::{Value, json};

use crate::registry::Registry;
use crate::session_id::{EXAMPLE, EXPECTED_FORMAT, SessionId, SessionIdError};
use crate::store::StoreError;

const INVALID_REQUEST: i32 = -32600;
const METHOD_NOT_FOUND: i32 = -32601;
pub(super) const INVALID_PARAMS: i32 = -32602;
const INTERNAL: i32 = -32603;
/// Number of existing sessions listed in a "not found" error.
const SUGGESTED: usize = 5;

pub(super) fn invalid_session_id(error: SessionIdError, provided: &Value) -> acp::Error {
    let data = json!({
        "providedSessionId": provided,
        "expectedFormat": EXPECTED_FORMAT,
        "example": EXAMPLE,
    });
    acp::Error::new(INVALID_PARAMS, error.to_string()).data(data)
}

pub(super) fn invalid_params(message: impl Into<String>) -> acp::Error {
    acp::Error::new(INVALID_PARAMS, message)
}

pub(super) fn method_not_found(method: &str) -> acp::Error {
    acp::Error::new(METHOD_NOT_FOUND, "Method not found").data(json!({ "method": method }))
}

pub(super) fn turn_is_running(id: SessionId) -> acp::Error {
    acp::Error::new(
        INVALID_REQUEST,
        "A turn is already running in this session. Wait until it ends, or cancel it.",
    )
    .data(json!({ "sessionId": id }))
}

/// Exhaustive on purpose: a new variant must choose its message.
pub(crate) fn store_error(
    error: &StoreError,
    id: Option<SessionId>,
    registry: &Registry,
) -> acp::Error {
    let not_found = |reason: &str, expired: bool| {
        let message = format!("Session not found: {reason}");
        let mut data = json!({
            "sessionId": id,
            "availableSessions": registry.newest(SUGGESTED),
        });
        if expired {
            data["expired"] = true.into();
        }
        acp::Error::new(INVALID_PARAMS, message).data(data)
    };
    let failed = |message: String| {
        acp::Error::new(INTERNAL, message).data(id.map(|id| json!({ "sessionId": id })))
    };
    match error {
        StoreError::NotFound => not_found("sessionId does not exist", false),
        StoreError::Expired => not_found("it expired and was moved to the expired folder", true),
        StoreError::Damaged(reason) => failed(format!(
            "Cannot read the session: its files are damaged ({reason}). They were not changed."
        )),
        StoreError::Busy => failed(
            "The session is in use by another agent process. Close it there and retry.".to_owned(),
        ),
        StoreError::Collision => failed(
            "Could not create the session: no unused session id was found. Retry.".to_owned(),
        ),
        StoreError::Io(error) => failed(format!(
            "The session store failed: {error}. Check the free space and permissions of the data directory and retry."
        )),
    }
}
