//! `liminal send`: sends a message and streams the answer to standard output.

use std::io::{IsTerminal, Read};
use std::process::ExitCode;

use anyhow::{Context, bail};
use serde_json::{Value, json};

use super::link::Link;
use super::whole_key;
use crate::cli::SendArgs;
use crate::terminal::{self, note};

/// Exit codes. 0 means that the agent has answered.
const FAILED: u8 = 1;
const REFUSED: u8 = 3;
const CUT_SHORT: u8 = 4;
const INTERRUPTED: u8 = 130;
const MESSAGE_CHARS_MAX: usize = 32_000;
const TOO_LONG: &str =
    "A message may be at most 32,000 characters. Save the text in a file and send its path.";

/// The message from the arguments or standard input, checked for length.
pub(super) fn message(args: &SendArgs) -> anyhow::Result<String> {
    let (_, message) = words(args)?;
    let message = match message {
        None | Some("-") => from_stdin()?,
        Some(message) => message.to_owned(),
    };
    if message.trim().is_empty() {
        bail!("There is nothing in that message. Add a text in quotes, or pipe one in.");
    }
    if message.chars().count() > MESSAGE_CHARS_MAX {
        bail!(TOO_LONG);
    }
    Ok(message)
}

/// The session key and the message from the arguments; `None` where omitted.
fn words(args: &SendArgs) -> anyhow::Result<(Option<&str>, Option<&str>)> {
    let words: Vec<&str> = args.words.iter().map(String::as_str).collect();
    Ok(match (args.to_agent(), words.as_slice()) {
        (false, [key]) => (Some(key), None),
        (false, [key, message]) => (Some(key), Some(message)),
        (true, []) => (None, None),
        (true, [message]) => (None, Some(message)),
        (false, _) => bail!(
            "Specify to which session the message is sent: `liminal send KEY \"…\"` or `liminal send --agent A \"…\"`."
        ),
        (true, _) => bail!(
            "Put the message in quotes. A new session has no key yet: `liminal send --agent A \"…\"`."
        ),
    })
}

pub(super) async fn send(
    link: &mut Link,
    args: &SendArgs,
    message: String,
) -> anyhow::Result<ExitCode> {
    let (key, _) = words(args)?;
    let key = match key {
        Some(key) => whole_key(link, key).await?,
        None => {
            let mut params = json!({});
            if let Some(agent) = &args.agent {
                params["agentId"] = json!(agent);
            }
            if let Some(cwd) = &args.cwd {
                let cwd = std::path::absolute(cwd)?;
                let cwd = cwd.to_str();
                params["cwd"] = json!(cwd.context("The folder's name is not UTF-8.")?);
            }
            let created = link.call("sessions.create", params).await?;
            let key = created["sessionKey"].as_str().context("a session")?;
            note(&format!("session {key}"));
            key.to_owned()
        }
    };
    let params = json!({"sessionKey": key, "message": message});
    let sent = link.call("chat.send", params).await?;
    let run = sent["runId"].as_str().context("a run")?.to_owned();
    follow(link, &key, &run, args.json).await
}

fn from_stdin() -> anyhow::Result<String> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        bail!("The message is missing. Add one in quotes, or pipe one in.");
    }
    let mut bytes = vec![];
    // A pipe may never end; more bytes than this exceed the limit in any encoding.
    let most = 4 * MESSAGE_CHARS_MAX as u64;
    stdin.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        bail!(TOO_LONG);
    }
    let text = String::from_utf8(bytes)
        .context("Standard input is not UTF-8 text. Convert it and retry.")?;
    Ok(text.trim_end().to_owned())
}

async fn follow(link: &mut Link, key: &str, run: &str, json: bool) -> anyhow::Result<ExitCode> {
    let mut ended_line = true;
    let mut stopping = false;
    loop {
        let event = tokio::select! {
            event = link.event() => event?,
            pressed = tokio::signal::ctrl_c() => {
                pressed?;
                if std::mem::replace(&mut stopping, true) {
                    return Ok(INTERRUPTED.into());
                }
                note("stopping; press Ctrl+C again to quit immediately");
                link.call("chat.abort", json!({"runId": run})).await?;
                continue;
            }
        };
        let data = &event["data"];
        // Shown for any run of the session, as the user of this command may be the one who can answer.
        if event["event"] == "permissions.asked" && data["sessionKey"] == key {
            let title = data["title"].as_str().unwrap_or_default();
            note(&format!(
                "permission request: {title}; answer it in the browser"
            ));
        }
        if event["event"] == "questions.asked" && data["sessionKey"] == key {
            let message = data["message"].as_str().unwrap_or_default();
            note(&format!(
                "the agent asks: {message}; answer it in the browser"
            ));
        }
        if data["runId"] != run {
            continue;
        }
        if json {
            terminal::print(&format!("{event}\n"))?;
        }
        match event["event"].as_str().unwrap_or_default() {
            "chat.delta" if !json => {
                let text = data["text"].as_str().unwrap_or_default();
                terminal::print(text)?;
                ended_line = text.ends_with('\n') || (text.is_empty() && ended_line);
            }
            "chat.tool" if !json && data["status"] != "running" => {
                let name = data["toolName"].as_str().unwrap_or_default();
                note(&format!(
                    "{name} {}",
                    data["status"].as_str().unwrap_or_default()
                ));
            }
            end @ ("chat.final" | "chat.error") => {
                if !ended_line && !json {
                    terminal::print("\n")?;
                }
                return Ok(outcome(end, data).into());
            }
            _ => {}
        }
    }
}

fn outcome(end: &str, data: &Value) -> u8 {
    if end == "chat.error" {
        note(data["message"].as_str().unwrap_or("The run failed"));
        return FAILED;
    }
    match data["stopReason"].as_str().unwrap_or_default() {
        "cancelled" => INTERRUPTED,
        "refused" => {
            note("The agent refused to continue.");
            REFUSED
        }
        "max-tokens" | "max-turn-requests" => {
            note("A limit of the agent cut the answer short.");
            CUT_SHORT
        }
        _ => 0,
    }
}
