//! Parses a frame into a typed request, or into the reason for its rejection.

use serde::Deserialize;
use wire::ClientFrame;

use crate::strict_json;

const REQUEST_ID_CHARS_MAX: usize = 128;

/// An invalid frame, answered with `INVALID_MESSAGE`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Invalid {
    pub(super) message: String,
    /// The request's id, if readable, so that the client knows which request failed.
    pub(super) request_id: Option<String>,
}

pub(super) fn parse(text: &str) -> Result<ClientFrame, Invalid> {
    let invalid = |reason: String, request_id| Invalid {
        message: format!("Invalid request payload: {reason}."),
        request_id,
    };
    let frame: ClientFrame = strict_json::from_str(text)
        .map_err(|error| invalid(brief(&error.to_string()), request_id(text)))?;
    match &frame.request_id {
        Some(id) if id.chars().count() > REQUEST_ID_CHARS_MAX => Err(invalid(
            format!("requestId is longer than {REQUEST_ID_CHARS_MAX} characters"),
            None,
        )),
        _ => Ok(frame),
    }
}

fn request_id(text: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Envelope {
        #[serde(rename = "requestId")]
        request_id: String,
    }
    let id = serde_json::from_str::<Envelope>(text).ok()?.request_id;
    (id.chars().count() <= REQUEST_ID_CHARS_MAX).then_some(id)
}

/// The first 200 characters of a reason, which may quote up to 1 MiB of input.
fn brief(reason: &str) -> String {
    match reason.char_indices().nth(200) {
        Some((end, _)) => format!("{}…", &reason[..end]),
        None => reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> Invalid {
        parse(text).unwrap_err()
    }

    #[test]
    fn error_for_an_invalid_frame_has_reason_and_request_id() {
        let invalid = problem(r#"{"requestId":"r7","type":"project:explode"}"#);
        assert_eq!(invalid.request_id.as_deref(), Some("r7"));
        assert!(
            invalid
                .message
                .starts_with("Invalid request payload: unknown variant `project:explode`")
        );
    }

    #[test]
    fn frame_with_a_duplicate_key_is_rejected() {
        let invalid = problem(r#"{"type":"project:add","path":"/a","path":"/b"}"#);
        assert!(
            invalid.message.contains("duplicate key `path`"),
            "{}",
            invalid.message
        );
    }

    #[test]
    fn error_for_a_large_frame_is_short() {
        let invalid = problem(&format!(r#"{{"type":"{}"}}"#, "x".repeat(500_000)));
        assert!(invalid.message.len() < 1000);
        assert_eq!(
            problem(&format!(
                r#"{{"type":"project:list","requestId":"{}"}}"#,
                "é".repeat(129)
            ))
            .request_id,
            None
        );
    }
}
