//! The start parameters of an agent: command, environment and the client capabilities announced to it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol_schema::v1 as acp;
use serde_json::Value;
use tokio::sync::mpsc;

use super::connection::{AgentError, Start, connect};
use super::keeper::Keepers;
use super::kinds::EVENTS_MAX;
use super::lifecycle::Backoff;
use super::{AgentEntry, Catalog};

/// Settings shared by all agents.
pub struct AgentSetup {
    pub catalog: Catalog,
    pub keepers: Keepers,
    /// The server's own environment, filtered by `environment` before an agent gets it.
    pub env: Vec<(OsString, OsString)>,
    /// Working directory of agent processes, unless the catalog entry names another one.
    pub home: PathBuf,
    pub start_timeout: Duration,
    pub backoff: Backoff,
    /// Idle time after which an agent process is ended; `None` keeps it running.
    pub sleeps_after: Option<Duration>,
}

/// Starts an agent, reads its name and version, and ends it. `None` if the agent does not report them.
pub async fn probe_version(
    entry: &AgentEntry,
    setup: &AgentSetup,
) -> Result<Option<String>, AgentError> {
    // No session is open, so the events are dropped.
    let (events, mut queue) = mpsc::channel(EVENTS_MAX);
    let ignored = tokio::spawn(async move { while queue.recv().await.is_some() {} });
    let connection = connect(start(entry, setup)?, events).await?;
    let info = connection.initialized().agent_info.clone();
    connection.close().await;
    ignored.abort();
    Ok(info.map(|info| format!("{} {}", info.title.unwrap_or(info.name), info.version)))
}

pub(super) fn start(entry: &AgentEntry, setup: &AgentSetup) -> Result<Start, AgentError> {
    let launch = setup.catalog.launch(entry).ok_or_else(|| {
        let reason = match (&entry.chosen, setup.catalog.install_command(entry)) {
            (Some(chosen), _) => format!("`{}` was not found", chosen.join(" ")),
            (None, Some(install)) => format!("to install it: {install}"),
            (None, None) => setup.catalog.cannot_install(entry).unwrap_or_default(),
        };
        AgentError::NotStarted {
            name: entry.name.clone(),
            reason,
        }
    })?;
    let fs = acp::FileSystemCapabilities::new()
        .read_text_file(true)
        .write_text_file(true);
    let mut meta = acp::Meta::new();
    meta.insert("terminal_output".to_owned(), Value::Bool(true));
    // The name of this capability from before it became part of ACP.
    meta.insert("terminal-auth".to_owned(), Value::Bool(true));
    let elicitation = acp::ElicitationCapabilities::new()
        .form(acp::ElicitationFormCapabilities::new())
        .url(acp::ElicitationUrlCapabilities::new());
    let boolean = acp::BooleanConfigOptionCapabilities::new();
    let session = acp::ClientSessionCapabilities::new()
        .notices(acp::NoticeCapabilities::new())
        .config_options(acp::SessionConfigOptionsCapabilities::new().boolean(boolean));
    let capabilities = acp::ClientCapabilities::new()
        .fs(fs)
        .terminal(true)
        .session(session)
        .auth(acp::AuthCapabilities::new().terminal(true))
        .elicitation(elicitation)
        .meta(meta);
    let mut env = environment(&setup.env);
    env.extend(
        entry
            .env
            .iter()
            .map(|(name, value)| (name.into(), value.into())),
    );
    Ok(Start {
        name: entry.name.clone(),
        launch,
        keepers: setup.keepers.clone(),
        env,
        cwd: entry.cwd.clone().unwrap_or_else(|| setup.home.clone()),
        timeout: setup.start_timeout,
        capabilities,
        tap: Arc::default(),
    })
}

/// The environment of agents: the server's, without its own settings (among them the token) and without the variables
/// that cargo sets for the program it runs.
pub fn environment(ours: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
    const CARGO_PREFIXES: [&str; 5] = [
        "CARGO_PKG_",
        "CARGO_MANIFEST_",
        "CARGO_BIN_",
        "CARGO_CRATE_",
        "CARGO_PRIMARY_",
    ];
    let is_passed_on = |name: &str| {
        let own = name.starts_with("LIMINAL_") && !name.starts_with("LIMINAL_AGENT_");
        !own && name != "CARGO" && !CARGO_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
    };
    ours.iter()
        .filter(|(name, _)| name.to_str().is_none_or(is_passed_on))
        .cloned()
        .collect()
}
