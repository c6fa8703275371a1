//! Errors of model requests, with messages for the user.

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
    /// Whether the same request may succeed later.
    retryable: bool,
}

impl ModelError {
    pub(super) fn new(model: &ModelRef, error: genai::Error) -> Self {
        // `genai` wraps errors before the first event as stream errors.
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
        let detail = detail(&error);
        let provider_name = model.provider_name();
        let (message, retryable) = match status {
            Some(401 | 403) => {
                let key = model.key_variable();
                (
                    format!("{provider_name} rejected the API key. Check {key}.{detail}"),
                    false,
                )
            }
            Some(404) => (
                format!("{provider_name} does not know the model {model}.{detail}"),
                false,
            ),
            Some(429) => {
                let wait =
                    retry_after.map(|wait| format!(" It asks to wait {} s.", wait.as_secs()));
                let wait = wait.unwrap_or_default();
                (
                    format!("{provider_name} reports too many requests.{wait}{detail}"),
                    true,
                )
            }
            Some(status @ 500..) => (
                format!("{provider_name} reported a server error (status {status}).{detail}"),
                true,
            ),
            Some(status) => (
                format!("{provider_name} rejected the request (status {status}).{detail}"),
                false,
            ),
            None => return Self::without_status(model, &error, &detail),
        };
        Self {
            message,
            model: model.to_string(),
            status,
            retry_after,
            retryable,
        }
    }

    fn without_status(model: &ModelRef, error: &genai::Error, detail: &str) -> Self {
        match error {
            genai::Error::ChatResponse { .. } => Self {
                message: format!(
                    "{} ended the answer with an error.{detail}",
                    model.provider_name()
                ),
                ..Self::cut_off(model)
            },
            genai::Error::StreamParse { .. } => Self::cut_off(model),
            other => Self::unreachable(model, &innermost(other)),
        }
    }

    fn in_transport(model: &ModelRef, error: &(dyn std::error::Error + 'static)) -> Self {
        let timed_out = error.downcast_ref::<genai::webc::StreamTimeout>().is_some();
        let request = error.downcast_ref::<reqwest::Error>();
        if timed_out {
            Self::unreachable(model, "it sent no data for several minutes")
        } else if request.is_some_and(|error| error.is_connect() || error.is_request()) {
            Self::unreachable(model, &innermost(error))
        } else {
            Self::cut_off(model)
        }
    }

    /// Error for an answer that ended in the middle.
    pub(super) fn cut_off(model: &ModelRef) -> Self {
        let message = format!(
            "The answer of {model} was cut off in the middle. The received part is kept. Send a message to continue."
        );
        Self {
            message,
            model: model.to_string(),
            status: None,
            retry_after: None,
            retryable: true,
        }
    }

    pub(super) fn unreachable(model: &ModelRef, reason: &str) -> Self {
        Self {
            message: format!("{} cannot be reached: {reason}.", model.provider_name()),
            ..Self::cut_off(model)
        }
    }

    /// Delay before a retry, or `None` if a retry cannot help.
    pub(super) fn wait(&self, attempt: u32) -> Option<Duration> {
        let backoff = Duration::from_secs(1 << attempt.min(4)) / 2;
        self.retryable.then(|| self.retry_after.unwrap_or(backoff))
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

/// The provider's own error message, if the body has one of the usual fields.
fn detail(error: &genai::Error) -> String {
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

/// The last error of the source chain, as the earlier ones only name libraries.
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
