//! The commands that are gateway clients: `liminal sessions`, `show`, `send`, `export`, `agents`, `clean`.
//!
//! They connect to the server that uses the data directory, or start one for the call. Standard output carries the
//! result; progress and errors go to standard error.

mod agents;
mod export;
mod link;
mod send;

use std::process::ExitCode;

use anyhow::{Context, bail};
use serde_json::{Value, json};
use store::{DataDir, FolderSize, address_of_server};
use unicode_width::UnicodeWidthStr;

use crate::cli::ClientCommand;
use crate::config::Settings;
use crate::terminal;
use crate::token::Token;
use link::Link;

/// Runs one of the client commands.
pub(crate) async fn run(command: &ClientCommand, settings: &Settings) -> anyhow::Result<ExitCode> {
    // The message is checked before a server is started or a session created.
    let message = match command {
        ClientCommand::Send(args) => send::message(args)?,
        _ => String::new(),
    };
    if let ClientCommand::Agents {
        install, refresh, ..
    } = command
    {
        if let Some(id) = install {
            return agents::install(settings, id).await;
        }
        if let Some(from) = refresh {
            agents::refresh(settings, from).await?;
        }
    }
    let mut link = Link::open(settings).await?;
    let done = execute(command, message, &mut link).await;
    link.close().await;
    done
}

pub(crate) use agents::memory;

/// Replaces the access token, through the running server if there is one.
pub(crate) async fn rotate_token(settings: &Settings) -> anyhow::Result<()> {
    if settings.token.is_some() {
        bail!(
            "The token is set by LIMINAL_TOKEN and cannot be rotated. Change that variable and restart the server."
        );
    }
    if address_of_server(&settings.data_dir.value).is_none() {
        let dir = DataDir::prepare(&settings.data_dir.value)?;
        Token::make(&dir)?;
        return Ok(());
    }
    let mut link = Link::open(settings).await?;
    link.call("token.rotate", json!({})).await?;
    Ok(())
}

async fn execute(
    command: &ClientCommand,
    message: String,
    link: &mut Link,
) -> anyhow::Result<ExitCode> {
    let text = match command {
        ClientCommand::Sessions { json, archived } => {
            let params = json!({"archived": archived});
            let list = link.call("sessions.list", params).await?;
            match json {
                true => format!("{:#}\n", list["sessions"]),
                false => sessions(&list["sessions"]),
            }
        }
        ClientCommand::Agents { json, .. } => {
            let list = link.call("agents.list", json!({})).await?;
            match json {
                true => format!("{:#}\n", list["agents"]),
                false => table(agents::rows(&list["agents"])),
            }
        }
        ClientCommand::Clean { dry_run } => {
            let cleaned = link.call("storage.clean", json!({"dryRun": dry_run}));
            cleaned_folders(&cleaned.await?["folders"], *dry_run)
        }
        ClientCommand::Browsers { json, end } => {
            let list = link.call("browsers.list", json!({})).await?;
            match (end, json) {
                (Some(prefix), _) => {
                    let id = whole_browser_id(&list["browsers"], prefix)?;
                    link.call("browsers.end", json!({"browserId": id})).await?;
                    String::new()
                }
                (None, true) => format!("{:#}\n", list["browsers"]),
                (None, false) => browsers(&list["browsers"]),
            }
        }
        ClientCommand::Show { key, json } => {
            let key = whole_key(link, key).await?;
            let messages = export::all_messages(link, &key).await?;
            match json {
                true => export::as_json(&messages),
                false => export::as_text(&messages),
            }
        }
        ClientCommand::Export { key, format } => {
            let key = whole_key(link, key).await?;
            let session = link
                .call("sessions.get", json!({"sessionKey": key}))
                .await?;
            let messages = export::all_messages(link, &key).await?;
            export::as_file(*format, &session["session"], &messages)
        }
        ClientCommand::Send(what) => return send::send(link, what, message).await,
    };
    terminal::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// The session key with this prefix; an error unless exactly one session has it.
async fn whole_key(link: &mut Link, prefix: &str) -> anyhow::Result<String> {
    let mut keys = vec![];
    for archived in [false, true] {
        let list = link
            .call("sessions.list", json!({"archived": archived}))
            .await?;
        let sessions = list["sessions"].as_array().context("a list of sessions")?;
        keys.extend(
            sessions
                .iter()
                .filter_map(|one| Some(one["key"].as_str()?.to_owned())),
        );
    }
    let wanted = prefix.to_lowercase();
    let mut fitting = keys
        .into_iter()
        .filter(|key| key.starts_with(&wanted) && !wanted.is_empty());
    match (fitting.next(), fitting.next()) {
        (Some(key), None) => Ok(key),
        (Some(_), Some(_)) => {
            bail!("More than one session key starts with `{prefix}`. Type more of the key.")
        }
        _ => bail!("No session key starts with `{prefix}`. Run `liminal sessions` for the list."),
    }
}

fn sessions(sessions: &Value) -> String {
    let rows = sessions.as_array().into_iter().flatten().map(|session| {
        [
            short(&session["key"]),
            word(&session["state"]),
            word(&session["agentId"]),
            age(session["updatedAt"].as_i64().unwrap_or_default()),
            session["label"]
                .as_str()
                .unwrap_or("New Session")
                .to_owned(),
        ]
    });
    match table(rows.collect()) {
        text if text.is_empty() => {
            "No sessions yet. Start one with `liminal send --agent assistant \"…\"`.\n".to_owned()
        }
        text => text,
    }
}

/// What was removed from each folder, and in all.
fn cleaned_folders(folders: &Value, dry_run: bool) -> String {
    let folders = folders.as_array().map_or(&[][..], Vec::as_slice);
    let size = |folder: &Value| FolderSize {
        entries: folder["entries"].as_u64().unwrap_or_default(),
        bytes: folder["bytes"].as_u64().unwrap_or_default(),
    };
    let rows = folders.iter().map(|folder| {
        let shown = terminal::folder_size(size(folder));
        [word(&folder["folder"]), shown]
    });
    let mut text = table(rows.collect());
    let mut all = FolderSize::default();
    for folder in folders {
        all.entries += size(folder).entries;
        all.bytes += size(folder).bytes;
    }
    let done = match dry_run {
        true => "Would remove",
        false => "Removed",
    };
    text.push_str(&format!("{done} {}.\n", terminal::folder_size(all)));
    text
}

/// The id of the browser with this prefix; an error unless exactly one browser has it.
fn whole_browser_id(browsers: &Value, prefix: &str) -> anyhow::Result<String> {
    let ids = browsers.as_array().into_iter().flatten();
    let ids = ids.filter_map(|one| one["browserId"].as_str());
    let mut fitting = ids.filter(|id| id.starts_with(prefix) && !prefix.is_empty());
    match (fitting.next(), fitting.next()) {
        (Some(id), None) => Ok(id.to_owned()),
        (Some(_), Some(_)) => {
            bail!("More than one browser has an id that starts with `{prefix}`. Type more of it.")
        }
        _ => bail!(
            "No browser has an id that starts with `{prefix}`. Run `liminal browsers` for the list."
        ),
    }
}

fn browsers(browsers: &Value) -> String {
    let rows = browsers.as_array().into_iter().flatten().map(|one| {
        [
            short(&one["browserId"]),
            word(&one["name"]),
            word(&one["address"]),
            format!("used {}", age(one["usedAt"].as_i64().unwrap_or_default())),
        ]
    });
    match table(rows.collect()) {
        text if text.is_empty() => {
            "No browser is signed in. Open the address that `liminal` prints.\n".to_owned()
        }
        text => text,
    }
}

/// Formats rows as a table; lines wider than the terminal are cut.
fn table<const N: usize>(rows: Vec<[String; N]>) -> String {
    let rows: Vec<_> = rows
        .into_iter()
        .map(|row| row.map(|cell| terminal::one_line(&cell)))
        .collect();
    let mut widths = [0; N];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.width());
        }
    }
    let columns = terminal::columns();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            let padding = " ".repeat(width - cell.width() + 2);
            line.extend([cell.as_str(), padding.as_str()]);
        }
        text.push_str(&terminal::cut(line.trim_end(), columns));
        text.push('\n');
    }
    text
}

fn short(key: &Value) -> String {
    key.as_str().unwrap_or_default().chars().take(8).collect()
}

fn word(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// `now`, `5m`, `3h`, `2d`.
fn age(updated: i64) -> String {
    let seconds = (jiff::Timestamp::now().as_millisecond() - updated) / 1000;
    match seconds {
        ..60 => "now".to_owned(),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}
