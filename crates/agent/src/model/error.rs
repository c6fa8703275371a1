//! What can go wrong between us and a model, in words for a person.

use std::time::Duration;

use agent_client_protocol_schema::v1 as acp;
use serde_json::{Value, json};

use super::ModelRef;

const REASON_CHARS_MAX: usize = 300;

#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct ModelError {
    message: String,
    model: String,
    status: Option<u16>,
    retry_after: Option<Duration>,
    /// Whether the same request may work later.
    passing: bool,
}

impl ModelError {
    pub(super) fn new(model: &ModelRef, error: genai::Error) -> Self {
        // What happens before the first word comes wrapped as if it had happened in the stream.
        let error = match error {
            genai::Error::WebStream { error, .. } => match error.downcast::<genai::Error>() {
                Ok(inner) => *inner,
                Err(other) => return Self::in_transport(model, other.as_ref()),
            },
            error => error,
        };
        let status = error.status().map(|status| status.as_u16());
        let header = |name: &str| {
            let value = error.headers()?.get(name)?.to_str().ok()?;
            value.trim().parse::<f64>().ok()
        };
        let seconds = header("retry-after").or(header("retry-after-ms").map(|ms| ms / 1000.0));
        let retry_after = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let said = said(&error);
        let whose = model.whose();
        let (message, passing) = match status {
            Some(401 | 403) => {
                let key = model.key_variable();
                (
                    format!("{whose} does not accept the key. Check {key}.{said}"),
                    false,
                )
            }
            Some(404) => (
                format!("{whose} does not know the model {model}.{said}"),
                false,
            ),
            Some(429) => {
                let wait =
                    retry_after.map(|wait| format!(" It asks to wait {} s.", wait.as_secs()));
                let wait = wait.unwrap_or_default();
                (
                    format!("{whose} has had too many requests.{wait}{said}"),
                    true,
                )
            }
            Some(status @ 500..) => (
                format!("{whose} has a problem (status {status}).{said}"),
                true,
            ),
            Some(status) => (
                format!("{whose} refused the request (status {status}).{said}"),
                false,
            ),
            None => return Self::without_status(model, &error, &said),
        };
        Self {
            message,
            model: model.to_string(),
            status,
            retry_after,
            passing,
        }
    }

    fn without_status(model: &ModelRef, error: &genai::Error, said: &str) -> Self {
        match error {
            genai::Error::ChatResponse { .. } => Self {
                message: format!("{} broke off.{said}", model.whose()),
                ..Self::cut(model)
            },
            genai::Error::StreamParse { .. } => Self::cut(model),
            other => Self::unreachable(model, &innermost(other)),
        }
    }

    fn in_transport(model: &ModelRef, error: &(dyn std::error::Error + 'static)) -> Self {
        let silent = error.downcast_ref::<genai::webc::StreamTimeout>().is_some();
        let request = error.downcast_ref::<reqwest::Error>();
        if silent {
            Self::unreachable(model, "no answer came for a long time")
        } else if request.is_some_and(|error| error.is_connect() || error.is_request()) {
            Self::unreachable(model, &innermost(error))
        } else {
            Self::cut(model)
        }
    }

    /// The answer ended in the middle.
    pub(super) fn cut(model: &ModelRef) -> Self {
        let message = format!(
            "The answer of {model} was cut off in the middle. What came is kept; ask again to go on."
        );
        Self {
            message,
            model: model.to_string(),
            status: None,
            retry_after: None,
            passing: true,
        }
    }

    pub(super) fn unreachable(model: &ModelRef, reason: &str) -> Self {
        Self {
            message: format!("{} cannot be reached: {reason}.", model.whose()),
            ..Self::cut(model)
        }
    }

    /// How long to wait before asking again; None if that cannot help.
    pub(super) fn wait(&self, attempt: u32) -> Option<Duration> {
        let patience = Duration::from_secs(1 << attempt.min(4)) / 2;
        self.passing.then(|| self.retry_after.unwrap_or(patience))
    }

    pub(crate) fn for_client(&self) -> acp::Error {
        let data = json!({
            "model": self.model,
            "status": self.status,
            "retryAfterSeconds": self.retry_after.map(|wait| wait.as_secs()),
        });
        acp::Error::new(-32603, self.message.clone()).data(data)
    }
}

/// What the provider itself says, if it says it the way they all do.
fn said(error: &genai::Error) -> String {
    let body = match error {
        genai::Error::HttpError { body, .. } => serde_json::from_str(body).unwrap_or(Value::Null),
        genai::Error::ChatResponse { body, .. } => body.clone(),
        _ => Value::Null,
    };
    let reason = body["error"]["message"]
        .as_str()
        .or(body["message"].as_str())
        .or(body["error"].as_str());
    match reason {
        Some(reason) => {
            let reason: String = reason.chars().take(REASON_CHARS_MAX).collect();
            format!(" It says: {reason}")
        }
        None => String::new(),
    }
}

/// The last reason of a chain; the ones before it name libraries.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut reason = error;
    while let Some(source) = reason.source() {
        reason = source;
    }
    let text: String = reason.to_string().chars().take(REASON_CHARS_MAX).collect();
    text.lines()
        .last()
        .unwrap_or_default()
        .trim_end_matches('.')
        .to_owned()
}
