//! A session's transcript as text, JSON, Markdown or a self-contained HTML page.

use std::fmt::Write as _;

use anyhow::Context;
use serde_json::{Value, json};

use super::link::Link;
use crate::cli::ExportFormat;

/// All messages of a session, untruncated, oldest first.
pub(super) async fn all_messages(link: &mut Link, key: &str) -> anyhow::Result<Vec<Value>> {
    let mut messages: Vec<Value> = vec![];
    let mut before = Value::Null;
    loop {
        let params = json!({"sessionKey": key, "limit": 500, "before": before});
        let page = link.call("chat.history", params).await?;
        let mut older = page["messages"].as_array().context("messages")?.clone();
        for message in &mut older {
            if message["cut"] == true {
                let params = json!({"sessionKey": key, "number": message["number"]});
                let whole = link.call("chat.message", params).await?;
                *message = whole["message"].clone();
            }
        }
        messages.splice(0..0, older);
        match page["cursor"].as_u64() {
            Some(cursor) => before = json!(cursor),
            None => return Ok(messages),
        }
    }
}

pub(super) fn as_json(messages: &[Value]) -> String {
    format!("{:#}\n", json!(messages))
}

pub(super) fn as_text(messages: &[Value]) -> String {
    let mut text = String::new();
    for message in messages {
        let (who, content) = role_and_content(message);
        let _ = write!(text, "{who}:\n{}\n\n", content.trim_end());
    }
    text
}

pub(super) fn as_file(format: ExportFormat, session: &Value, messages: &[Value]) -> String {
    let title = session["label"].as_str().unwrap_or("New Session");
    match format {
        ExportFormat::Json => {
            let whole = json!({"session": session, "messages": messages});
            format!("{whole:#}\n")
        }
        ExportFormat::Md => {
            let mut text = format!("# {title}\n");
            for message in messages {
                let (who, content) = role_and_content(message);
                let body = match message["role"] == "tool_result" {
                    true => fenced(content),
                    false => content.trim_end().to_owned(),
                };
                let _ = write!(text, "\n## {who}\n\n{body}\n");
            }
            text
        }
        ExportFormat::Html => page(title, messages),
    }
}

fn role_and_content(message: &Value) -> (&str, &str) {
    let who = match message["role"].as_str().unwrap_or_default() {
        "user" => "You",
        "tool_result" => message["toolName"].as_str().unwrap_or("Tool"),
        _ => "Agent",
    };
    (who, message["content"].as_str().unwrap_or_default())
}

/// The text as a code block, with a fence longer than any in the text.
fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat((longest + 1).max(3));
    format!("{fence}\n{}\n{fence}", text.trim_end())
}

/// The transcript as an HTML page without scripts or external resources.
fn page(title: &str, messages: &[Value]) -> String {
    const STYLE: &str = "body{max-width:46rem;margin:2rem auto;padding:0 1rem;font:16px/1.6 system-ui,sans-serif;\
color-scheme:light dark}h2{font-size:.85rem;opacity:.7;margin:2rem 0 .5rem}pre{overflow:auto;padding:1rem;\
background:color-mix(in srgb,currentColor 6%,transparent);border-radius:6px}table{border-collapse:collapse}\
td,th{border:1px solid;padding:.25rem .5rem}";
    let mut body = String::new();
    for message in messages {
        let (who, content) = role_and_content(message);
        let html = match message["role"].as_str() {
            Some("assistant") => render::html(content),
            _ => format!("<pre>{}</pre>", escaped(content)),
        };
        let _ = write!(body, "<h2>{}</h2>\n{html}\n", escaped(who));
    }
    let title = escaped(title);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"content-security-policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n<style>{STYLE}</style>\n\
         <h1>{title}</h1>\n{body}</html>\n"
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
