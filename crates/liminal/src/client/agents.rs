//! `liminal agents`: lists, refreshes and installs agents, and reads the memory use of running ones.
//!
//! The agent list and installed agents are in the data directory, where a running server finds them without a restart.

use std::io::Write as _;
use std::process::ExitCode;

use agents::{self, Agents, InstallOutcome, InstallProgress};
use anyhow::bail;
use serde_json::{Value, json};
use store::{DataDir, address_of_server};
use tokio::sync::mpsc;

use super::link::Link;
use super::word;
use crate::config::Settings;
use crate::serve;

/// Rows of the agent table, agents that are not installed last, otherwise in catalog order.
pub(super) fn rows(agents: &Value) -> Vec<[String; 4]> {
    let mut agents: Vec<&Value> = agents.as_array().into_iter().flatten().collect();
    agents.sort_by_key(|agent| agent["state"] == "not-installed");
    agents.into_iter().map(row).collect()
}

fn row(agent: &Value) -> [String; 4] {
    let state = match agent["state"].as_str() {
        Some("needs-login") => "needs login",
        Some("not-installed") => "not installed",
        Some("broken") => "broken",
        _ => "ready",
    };
    let first = |key: &str| agent[key].as_str().filter(|text| !text.is_empty());
    let about = match state {
        "not installed" => first("install").or(first("problem")),
        _ => first("problem").or(first("model")).or(first("description")),
    };
    let about = about
        .unwrap_or_default()
        .lines()
        .collect::<Vec<_>>()
        .join("; ");
    [
        word(&agent["id"]),
        word(&agent["name"]),
        state.to_owned(),
        about,
    ]
}

pub(super) async fn refresh(settings: &Settings, from: &str) -> anyhow::Result<()> {
    DataDir::prepare(&settings.data_dir.value)?;
    let setup = serve::agent_setup(settings)?;
    let refreshed = match agents::refresh(&setup.catalog, from).await {
        Ok(refreshed) => refreshed,
        Err(reason) => bail!("{reason}"),
    };
    let mut stderr = std::io::stderr();
    let agents = match refreshed.agents {
        1 => "1 agent".to_owned(),
        count => format!("{count} agents"),
    };
    let _ = writeln!(stderr, "Updated the agent list: {agents}.");
    for agent in refreshed.left_out {
        let _ = writeln!(stderr, "Left out: {agent}");
    }
    Ok(())
}

/// Installs an agent, with the installer's output on standard error.
pub(super) async fn install(settings: &Settings, id: &str) -> anyhow::Result<ExitCode> {
    DataDir::prepare(&settings.data_dir.value)?;
    let agents = Agents::new(serve::agent_setup(settings)?, |_, _, _| {});
    let (sender, mut receiver) = mpsc::unbounded_channel();
    agents.install(id, move |news| drop(sender.send(news)))?;
    let mut stderr = std::io::stderr();
    while let Some(news) = receiver.recv().await {
        match news {
            InstallProgress::Output(text) => drop(stderr.write_all(text.as_bytes())),
            InstallProgress::Ended(InstallOutcome::Installed) => break,
            InstallProgress::Ended(InstallOutcome::Cancelled) => return Ok(ExitCode::FAILURE),
            InstallProgress::Ended(InstallOutcome::Failed(why)) => bail!("{why}"),
        }
    }
    let _ = writeln!(stderr, "{id} is installed.");
    Ok(ExitCode::SUCCESS)
}

/// Memory use of the running server's agents, one line each.
pub(crate) async fn memory(settings: &Settings) -> anyhow::Result<Vec<String>> {
    if address_of_server(&settings.data_dir.value).is_none() {
        return Ok(vec![]);
    }
    let mut link = Link::open(settings).await?;
    let list = link.call("agents.memory", json!({})).await;
    link.close().await;
    let list = list?;
    let line = |agent: &Value| {
        let memory = match agent["bytes"].as_u64() {
            Some(bytes) => format!("{} MiB", bytes / 1024 / 1024),
            None => "unknown".to_owned(),
        };
        let count = agent["processes"].as_u64().unwrap_or_default();
        let processes = if count == 1 { "process" } else { "processes" };
        format!(
            "{:<14} {memory} in {count} {processes}",
            word(&agent["cliType"])
        )
    };
    let agents = list["agents"].as_array();
    Ok(agents.into_iter().flatten().map(line).collect())
}
