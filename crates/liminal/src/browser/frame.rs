//! From the text of a frame to a typed request, or to the reason why not.

use serde::Deserialize;
use wire::ClientFrame;

use crate::strict_json;

const REQUEST_ID_CHARS_MAX: usize = 128;

/// A frame that is answered with `INVALID_MESSAGE`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Invalid {
    pub(super) message: String,
    /// Where it could still be made out, so that the caller knows which request failed.
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

/// Error texts quote the input, which may be a megabyte long.
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
    fn the_reason_and_the_request_id_survive() {
        let invalid = problem(r#"{"requestId":"r7","type":"project:explode"}"#);
        assert_eq!(invalid.request_id.as_deref(), Some("r7"));
        assert!(
            invalid
                .message
                .starts_with("Invalid request payload: unknown variant `project:explode`")
        );
    }

    #[test]
    fn a_key_given_twice_is_refused() {
        let invalid = problem(r#"{"type":"project:add","path":"/a","path":"/b"}"#);
        assert!(
            invalid
                .message
                .contains("the key `path` stands there twice"),
            "{}",
            invalid.message
        );
    }

    #[test]
    fn a_huge_input_does_not_come_back_in_the_error() {
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
