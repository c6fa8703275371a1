//! Redaction of likely secrets in ACP messages before they are shown. Pure.
//!
//! When in doubt, a value is redacted: a missing value can be looked up elsewhere, but a secret that was copied into an
//! issue cannot be taken back. Numbers are kept, so that token counts stay visible.

use serde_json::Value;

pub(super) const REDACTED: &str = "‹redacted›";

/// Parts of the names of secret fields, in lower case and without separators.
const SECRET_NAME_PARTS: [&str; 11] = [
    "token",
    "secret",
    "password",
    "passwd",
    "apikey",
    "authorization",
    "cookie",
    "credential",
    "privatekey",
    "accesskey",
    "passphrase",
];
/// Prefixes of the API keys of well-known services.
const KEY_PREFIXES: [&str; 20] = [
    "sk-",
    "sk_",
    "pk_",
    "rk_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xoxa-",
    "AKIA",
    "ASIA",
    "AIza",
    "ya29.",
    "npm_",
    "hf_",
];
const KEY_LENGTH_MIN: usize = 16;
const VALUE_LENGTH_MIN: usize = 4;

pub(super) fn redact(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(scrub(&text)),
        Value::Array(values) => values.into_iter().map(redact).collect(),
        Value::Object(fields) => {
            // The protocol's format of environment variables and headers.
            let named =
                fields.len() >= 2 && fields.contains_key("name") && fields.contains_key("value");
            let secret = named && fields["name"].as_str().is_some_and(is_secret_name);
            let field = |(name, value): (String, Value)| {
                let all = ["env", "environment", "headers"].contains(&name.to_lowercase().as_str());
                let value = match value {
                    value if all => hide_values(value),
                    Value::String(_) if is_secret_name(&name) || (secret && name == "value") => {
                        REDACTED.into()
                    }
                    value => redact(value),
                };
                (name, value)
            };
            fields.into_iter().map(field).collect()
        }
        other => other,
    }
}

/// Redacts all values of environment variables and headers, and keeps their names.
fn hide_values(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let hide = |(name, value): (String, Value)| match (name.as_str(), value) {
                ("name", value @ Value::String(_)) => (name, value),
                (_, Value::String(_)) => (name, REDACTED.into()),
                (_, value) => (name, hide_values(value)),
            };
            fields.into_iter().map(hide).collect()
        }
        Value::Array(values) => values.into_iter().map(hide_values).collect(),
        Value::String(_) => REDACTED.into(),
        other => other,
    }
}

fn is_secret_name(name: &str) -> bool {
    let plain: String = name
        .chars()
        .filter(|c| !"-_. ".contains(*c))
        .collect::<String>()
        .to_lowercase();
    SECRET_NAME_PARTS
        .iter()
        .any(|secret| plain.contains(secret))
}

/// Redacts API keys in a text, and values that follow the name of a secret.
fn scrub(text: &str) -> String {
    if let (Some(from), Some(to)) = (text.find("-----BEGIN"), text.rfind("PRIVATE KEY-----"))
        && from < to
    {
        let to = to + "PRIVATE KEY-----".len();
        let (before, after) = (scrub(&text[..from]), scrub(&text[to..]));
        return format!("{before}{REDACTED}{after}");
    }
    let mut clean = String::with_capacity(text.len());
    let mut before = "";
    let mut joined = false;
    let mut rest = text;
    while !rest.is_empty() {
        let word = &rest[..rest.find(|c| !is_word(c)).unwrap_or(rest.len())];
        rest = &rest[word.len()..];
        let between = &rest[..rest.find(is_word).unwrap_or(rest.len())];
        rest = &rest[between.len()..];
        if word.is_empty() {
            clean.push_str(between);
            continue;
        }
        let announced = joined && is_secret_name(before) && word.len() >= VALUE_LENGTH_MIN;
        let scheme = ["bearer", "basic"].contains(&word.to_lowercase().as_str());
        let after_scheme =
            ["bearer", "basic"].contains(&before.to_lowercase().as_str()) && word.len() >= 8;
        let secret = (announced && !scheme) || after_scheme || is_key(word);
        clean.push_str(if secret { REDACTED } else { word });
        clean.push_str(between);
        before = word;
        // `KEY=value`, `key: value`, `"key": "value"`
        joined = between.contains(['=', ':']) && between.len() <= 5;
    }
    clean
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || "_-.+/~".contains(c)
}

fn is_key(word: &str) -> bool {
    let long = word.len() >= KEY_LENGTH_MIN;
    let token = word.starts_with("eyJ") && word.matches('.').count() == 2;
    long && (token || KEY_PREFIXES.iter().any(|begins| word.starts_with(begins)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_in_a_message_are_redacted_and_other_values_are_kept() {
        let key = &format!("sk-{}", "abcdefghijkl".repeat(3));
        let token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-def";
        let message = json!({
            "authorization": "Bearer abc", "apiKey": "abc", "access_token": "abc", "refreshToken": "x",
            "usage": {"inputTokens": 12, "maxTokens": 4000},
            "env": [{"name": "HOME", "value": "/home/me"}], "headers": {"X-Any": "v"},
            "list": [{"name": "API_KEY", "value": "v"}, {"name": "title", "value": "stays"}],
            "command": format!("curl -H 'Authorization: Bearer {token}' https://x?token=abcd1234&page=2"),
            "args": ["ANTHROPIC_API_KEY=abcdef", "--password", "PATH=/bin", format!("use {key}, please")],
            "text": "The password is not here. A token: is a word. sk-short stays.",
            "pem": "a -----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY----- b",
        });
        let clean = redact(message);
        let text = clean.to_string();
        for secret in [
            key, token, "abcd1234", "abcdef", "/home/me", "\"abc\"", "MII", "\"v\"",
        ] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
        for kept in [
            "HOME",
            "X-Any",
            "stays",
            "page=2",
            "PATH=/bin",
            "12",
            "4000",
            "is a word",
            "sk-short",
            "please",
        ] {
            assert!(text.contains(kept), "{kept} not in {text}");
        }
        assert_eq!(clean["pem"], format!("a {REDACTED} b"));
    }

    #[test]
    fn text_without_secrets_is_unchanged() {
        for text in [
            "",
            "fn main() { let token = 1; }",
            "src/agents/redact.rs:12",
            "añb — “quoted” …",
            "a=b&c=d\n\n- x",
        ] {
            assert_eq!(redact(json!(text)), json!(text));
        }
    }
}
