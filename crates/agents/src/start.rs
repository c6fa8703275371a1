//! How an agent is started: with which command, in which environment, and what it is told of us.

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

/// What every agent is started with.
pub struct AgentSetup {
    pub catalog: Catalog,
    pub keepers: Keepers,
    /// Our own environment; agents get what of it is theirs.
    pub env: Vec<(OsString, OsString)>,
    /// Where processes are started.
    pub home: PathBuf,
    pub start_timeout: Duration,
    pub backoff: Backoff,
    /// How long an agent is kept with nothing to do, if not for ever.
    pub sleeps_after: Option<Duration>,
}

/// Starts an agent, asks it who it is, and ends it. `None` when it does not say.
pub async fn look_at(entry: &AgentEntry, setup: &AgentSetup) -> Result<Option<String>, AgentError> {
    // Whatever it says besides is nobody's.
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
    // As it was written before it was part of the protocol.
    meta.insert("terminal-auth".to_owned(), Value::Bool(true));
    let elicitation = acp::ElicitationCapabilities::new()
        .form(acp::ElicitationFormCapabilities::new())
        .url(acp::ElicitationUrlCapabilities::new());
    let capabilities = acp::ClientCapabilities::new()
        .fs(fs)
        .terminal(true)
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

/// What of our environment is an agent's business: all of it but our own settings, the token among
/// them, and what cargo adds for the program it runs.
pub fn environment(ours: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
    const CARGOS: [&str; 5] = [
        "CARGO_PKG_",
        "CARGO_MANIFEST_",
        "CARGO_BIN_",
        "CARGO_CRATE_",
        "CARGO_PRIMARY_",
    ];
    let theirs = |name: &str| {
        let own = name.starts_with("LIMINAL_") && !name.starts_with("LIMINAL_AGENT_");
        !own && name != "CARGO" && !CARGOS.iter().any(|prefix| name.starts_with(prefix))
    };
    ours.iter()
        .filter(|(name, _)| name.to_str().is_none_or(theirs))
        .cloned()
        .collect()
}
