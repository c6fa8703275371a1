//! Parses a frame into a request, or into the error response.

use serde_json::Value;
use wire::gateway::{Frame, Problem, Request};

use crate::strict_json;

const ID_BYTES_MAX: usize = 256;

/// Parses a request. The error is the response to send, with the request's id if it is readable.
pub(super) fn parse(text: &str) -> Result<Request, Box<Frame>> {
    let refused = |id, code, message: String| {
        let error = Problem::new(code, message);
        Box::new(Frame::Error { id, error })
    };
    let value: Value = strict_json::from_str(text).map_err(|error| {
        let message = format!("Parse error: {}", brief(&error.to_string()));
        refused(Value::Null, Problem::PARSE, message)
    })?;
    let id = match value.get("id") {
        Some(id @ (Value::String(_) | Value::Number(_)))
            if id.to_string().len() <= ID_BYTES_MAX =>
        {
            id.clone()
        }
        _ => {
            let message = format!(
                "Invalid request: id must be a number or a string of at most {ID_BYTES_MAX} bytes"
            );
            return Err(refused(Value::Null, Problem::INVALID_REQUEST, message));
        }
    };
    serde_json::from_value(value).map_err(|error| {
        let message = format!("Invalid request: {}", brief(&error.to_string()));
        refused(id, Problem::INVALID_REQUEST, message)
    })
}

/// The first 200 characters of a text quoted in an error, which can be up to 1 MiB long.
pub(super) fn brief(text: &str) -> String {
    match text.char_indices().nth(200) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
