//! Extraction of a readable one-line reason from an agent's JSON-RPC error. Pure.
//!
//! Agents put the reason into `message`, into `data` (as a string or in fields such as `details`, `message`, `error`),
//! or forward the error of their provider as JSON inside a string.

use serde_json::Value;

/// Maximum length of a reason in characters.
const CHARS_MAX: usize = 1000;
/// Maximum nesting depth in `data` at which a reason is searched.
const DEPTH_MAX: usize = 5;
/// The standard message of code -32603, which carries no reason.
const INTERNAL: &str = "Internal error";
/// Fields in which agents and providers put a reason, most specific first.
const FIELDS: [&str; 7] = [
    "details",
    "detail",
    "message",
    "error_description",
    "error",
    "errors",
    "reason",
];

/// The error message, extended by the reason in `data` if that adds something.
pub(super) fn in_words(message: &str, data: Option<&Value>) -> String {
    let message = match message.strip_prefix(INTERNAL) {
        Some("" | ".") => "",
        Some(rest) => rest.strip_prefix(": ").unwrap_or(message),
        None => message,
    };
    let message = one_line(&from_provider(message));
    let details = data.and_then(reason).unwrap_or_default();
    let combined = match (message.as_str(), details.as_str()) {
        ("", "") => INTERNAL.to_owned(),
        (message, "") => message.to_owned(),
        ("", details) => details.to_owned(),
        (message, details) if message.contains(details) => message.to_owned(),
        (message, details) if details.contains(message) => details.to_owned(),
        (message, details) => format!("{}: {details}", message.trim_end_matches(['.', ':'])),
    };
    bounded(&combined)
}

/// The reason in an error's `data`, as one line.
pub(super) fn reason(data: &Value) -> Option<String> {
    let text = find(data, DEPTH_MAX)?;
    let text = one_line(&text);
    (!text.is_empty()).then(|| bounded(&text))
}

fn find(value: &Value, depth: usize) -> Option<String> {
    let depth = depth.checked_sub(1)?;
    match value {
        Value::String(text) if text.trim().is_empty() => None,
        Value::String(text) => Some(from_provider(text)),
        Value::Array(values) => values.iter().find_map(|value| find(value, depth)),
        Value::Object(fields) => {
            // If `error` is an object, it is more specific than `message`; if it is a string, `message` is.
            let nested = fields.get("error").filter(|error| error.is_object());
            let named = FIELDS.iter().filter_map(|name| fields.get(*name));
            nested
                .into_iter()
                .chain(named)
                .find_map(|value| find(value, depth))
        }
        _ => None,
    }
}

/// Replaces a provider's JSON error inside a text by the reason in it.
fn from_provider(text: &str) -> String {
    let Some(start) = text.find('{') else {
        return text.to_owned();
    };
    let (before, sent) = text.split_at(start);
    let json = serde_json::Deserializer::from_str(sent).into_iter().next();
    let reason = match json {
        Some(Ok(json)) => find(&json, DEPTH_MAX),
        _ => in_python_literal(sent),
    };
    match reason {
        Some(reason) => [before.trim(), reason.trim()].join(" ").trim().to_owned(),
        None => text.to_owned(),
    }
}

/// The value of `message` in a Python dictionary literal.
fn in_python_literal(text: &str) -> Option<String> {
    let (_, after) = text.split_once("'message': ")?;
    let quote = after
        .chars()
        .next()
        .filter(|quote| ['\'', '"'].contains(quote))?;
    let mut message = String::new();
    let mut escaped = false;
    for character in after.chars().skip(1) {
        match character {
            _ if escaped => message.push(if character == 'n' { ' ' } else { character }),
            '\\' => {}
            end if end == quote => return Some(message),
            character => message.push(character),
        }
        escaped = character == '\\' && !escaped;
    }
    None
}

/// Collapses white space and removes control characters, because the text may be printed to a terminal.
fn one_line(text: &str) -> String {
    let spaced = text.replace(char::is_whitespace, " ");
    let shown: String = spaced.chars().filter(|c| !c.is_control()).collect();
    let words: Vec<&str> = shown.split(' ').filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

fn bounded(text: &str) -> String {
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reason_is_found_in_message_and_in_every_known_data_field() {
        let untrusted = "Cannot enable privileged approval modes in an untrusted folder";
        let overloaded =
            json!({"type": "error", "error": {"type": "overloaded", "message": "Overloaded"}});
        for (message, data, expected) in [
            ("Internal error", json!({"details": untrusted}), untrusted),
            ("Internal error", json!(untrusted), untrusted),
            ("Internal error", json!({"message": untrusted}), untrusted),
            ("Internal error", json!({"error": untrusted}), untrusted),
            ("Internal error", overloaded.clone(), "Overloaded"),
            (
                "Internal error",
                json!({"details": overloaded.to_string()}),
                "Overloaded",
            ),
            (
                "Internal error",
                json!({"errors": [{"message": "no key"}]}),
                "no key",
            ),
            ("Internal error", Value::Null, "Internal error"),
            ("Internal error", json!({"code": 7}), "Internal error"),
            (
                "Internal error: no key",
                json!({"details": "no key"}),
                "no key",
            ),
            ("Internal error.", json!({"details": "no key"}), "no key"),
            (
                "Invalid params",
                json!({"details": "no such mode"}),
                "Invalid params: no such mode",
            ),
            (
                "Invalid params.",
                json!("no such mode"),
                "Invalid params: no such mode",
            ),
            (
                "no such mode: x",
                json!({"details": "no such mode"}),
                "no such mode: x",
            ),
            (
                "rate limit",
                json!({"details": "429 rate limit reached"}),
                "429 rate limit reached",
            ),
            ("Overloaded", json!({"details": ""}), "Overloaded"),
            (
                "Internal errors occur",
                Value::Null,
                "Internal errors occur",
            ),
            (
                "",
                json!({"error": "invalid_grant", "message": "The token has expired"}),
                "The token has expired",
            ),
            (
                "",
                json!({"message": "Bad request", "error": {"message": "no such model"}}),
                "no such model",
            ),
        ] {
            let reason = in_words(message, Some(&data));
            assert_eq!(reason, expected, "{message} {data}");
        }
        assert_eq!(in_words("Internal error", None), "Internal error");
        assert_eq!(in_words("", None), "Internal error");
    }

    /// The error was recorded from fast-agent.
    #[test]
    fn provider_error_printed_by_python_is_reduced_to_its_message() {
        let details = "Error code: 400 - {'type': 'error', 'error': {'type': 'invalid_request_error', 'message': 'stub bad request', 'code': 'bad'}}";
        let data = json!({"details": details});
        assert_eq!(
            in_words("Internal error", Some(&data)),
            "Error code: 400 - stub bad request"
        );
        let quoted = json!(r#"{'message': "it's \"full\"", 'code': 1}"#);
        assert_eq!(in_words("Internal error", Some(&quoted)), r#"it's "full""#);
        for odd in ["{'message': 'no end", "{'message': 7}", "{'message': "] {
            assert_eq!(in_words("Internal error", Some(&json!(odd))), odd.trim());
        }
    }

    #[test]
    fn reason_is_one_bounded_line_without_control_characters() {
        let data = json!({"details": "first\r\n  second\u{1b}\u{7}\u{9b}\tthird"});
        assert_eq!(
            in_words("Internal error", Some(&data)),
            "first second third"
        );
        let long = in_words("Internal error", Some(&json!("ä".repeat(5000))));
        assert_eq!(long.chars().count(), CHARS_MAX + 1);
        let mut deep = json!("hidden");
        for _ in 0..100 {
            deep = json!({"error": deep});
        }
        assert_eq!(in_words("Internal error", Some(&deep)), "Internal error");
    }
}
