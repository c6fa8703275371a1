//! `liminal doctor`: reports settings, the data directory, tools and agents, and how to fix what is missing.
//!
//! It changes nothing: a missing data directory is not created. Installed agents are started to read their version, and
//! stopped.

use std::fmt::Write as _;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use agents::{self, AgentEntry, AgentSetup, Catalog};
use store::{self, CleanedFolder, Holding};

use crate::config::Settings;
use crate::token::Token;
use crate::{client, serve, terminal};

/// Time limit for `--version` of a tool.
const TOOL_DEADLINE: Duration = Duration::from_secs(3);

/// Time limit for an agent to report its version.
const AGENT_DEADLINE: Duration = Duration::from_secs(10);

pub(crate) struct Report {
    pub(crate) text: String,
    /// Whether a server can start with these settings.
    pub(crate) healthy: bool,
}

pub(crate) fn report(settings: &Settings) -> Report {
    let mut text = format!("Liminal Builder {}\n", env!("CARGO_PKG_VERSION"));
    let data_dir = &settings.data_dir.value;
    let holding = store::inspect(data_dir);
    let token = Token::look(data_dir, settings.token.as_deref());
    let mut problems = hub::store_problems(data_dir);
    problems.extend(token.as_ref().err().cloned());
    let healthy = problems.is_empty() && !matches!(holding, Holding::Unusable(_));

    let mut lines = vec![data_directory(data_dir, &holding)];
    lines.extend(problems);
    lines.extend(store::check_audit(data_dir));
    section(&mut text, "Data directory", lines);
    if let Holding::Free | Holding::Held(_) = &holding {
        section(
            &mut text,
            "Unused and deleted (liminal clean)",
            storage(data_dir),
        );
    }
    section(&mut text, "Listeners", listeners(settings, &holding));
    section(
        &mut text,
        "Token",
        [token.map_or_else(|_| "not valid, see above".to_owned(), str::to_owned)],
    );
    section(&mut text, "Tools", tools());
    section(&mut text, "Agents", agents(settings));
    if let Holding::Held(_) = &holding {
        section(&mut text, "Memory", memory(settings));
    }
    let lines = settings.rows().into_iter().map(|(name, value, source)| {
        let value = match value.as_str() {
            "" => "(not set)",
            value => value,
        };
        format!("{name:<24} {:<21} {value}", source.to_string())
    });
    section(
        &mut text,
        "Settings (precedence: flag, environment, config.toml, default)",
        lines,
    );
    Report { text, healthy }
}

fn section(text: &mut String, title: &str, lines: impl IntoIterator<Item = String>) {
    let _ = writeln!(text, "\n{title}");
    for line in lines {
        let _ = writeln!(text, "  {line}");
    }
}

fn data_directory(path: &Path, holding: &Holding) -> String {
    let shown = path.display();
    match holding {
        Holding::Missing => format!("{shown}  does not exist yet; the first start creates it"),
        Holding::Unusable(problem) => problem.clone(),
        Holding::Free => format!("{shown}  {}, not in use", privacy(path)),
        Holding::Held(holder) => format!("{shown}  {}, in use by{holder}", privacy(path)),
    }
}

fn privacy(path: &Path) -> &'static str {
    match path
        .metadata()
        .map(|metadata| metadata.permissions().mode() & 0o077)
    {
        Ok(0) => "private",
        _ => "readable by others (the next start makes it private)",
    }
}

/// Sizes of the folders that are cleaned.
fn storage(data_dir: &Path) -> Vec<String> {
    let line = |folder: CleanedFolder| {
        let size = store::folder_size(data_dir, folder);
        format!("{:<14} {}", folder.name(), terminal::folder_size(size))
    };
    CleanedFolder::ALL.into_iter().map(line).collect()
}

fn listeners(settings: &Settings, holding: &Holding) -> Vec<String> {
    let host = settings.host.value.0;
    let mut lines = vec![format!(
        "browser  {}",
        listener(SocketAddr::new(host, settings.port.value.0), holding)
    )];
    lines.push(match settings.gateway_port.value.0 {
        Some(port) => format!(
            "gateway  {}",
            listener(SocketAddr::new(host, port), holding)
        ),
        None => "gateway  off".to_owned(),
    });
    lines
}

fn listener(address: SocketAddr, holding: &Holding) -> String {
    if address.port() == 0 {
        return format!("{}  any free port", address.ip());
    }
    match (TcpListener::bind(address), holding) {
        (Ok(_), _) => format!("{address}  free"),
        (Err(_), Holding::Held(holder)) if holder.ends_with(&format!(":{})", address.port())) => {
            format!("{address}  served by{holder}")
        }
        (Err(error), _) => format!(
            "{address}  not available: {error}; choose another with a flag (see `liminal --help`)"
        ),
    }
}

/// The installed tools with their versions, determined in parallel.
fn tools() -> Vec<String> {
    std::thread::scope(|scope| {
        let tools = ["node", "npx"].map(|name| scope.spawn(move || tool(name)));
        tools
            .into_iter()
            .filter_map(|tool| tool.join().ok())
            .collect()
    })
}

fn tool(name: &str) -> String {
    match version(name) {
        Ok(Some(version)) => format!("{name:<6} {version}"),
        Ok(None) => format!("{name:<6} found, but `{name} --version` fails"),
        Err(_) => {
            format!(
                "{name:<6} not found; install Node.js to use agents distributed as npm packages"
            )
        }
    }
}

/// The output of `--version`; `None` if the program fails or exceeds the time limit.
fn version(program: &str) -> io::Result<Option<String>> {
    let mut command = Command::new(program);
    command
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn()?;
    let deadline = Instant::now() + TOOL_DEADLINE;
    while child.try_wait()?.is_none() {
        if Instant::now() > deadline {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.chars().filter(|c| !c.is_control()).take(40).collect();
    Ok(output.status.success().then_some(version))
}

/// Memory use of the running server's agents, one line each.
fn memory(settings: &Settings) -> Vec<String> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().map_err(anyhow::Error::from);
    match runtime.and_then(|runtime| runtime.block_on(client::memory(settings))) {
        Ok(lines) if lines.is_empty() => vec!["no agent is running".to_owned()],
        Ok(lines) => lines,
        Err(error) => vec![format!("cannot be read from the server: {error}")],
    }
}

/// One line for each agent; installed agents are started in parallel to read their versions.
fn agents(settings: &Settings) -> Vec<String> {
    let setup = match serve::agent_setup(settings) {
        Ok(setup) => setup,
        Err(error) => return vec![format!("cannot be checked: {error}")],
    };
    let setup = AgentSetup {
        start_timeout: setup.start_timeout.min(AGENT_DEADLINE),
        ..setup
    };
    let lines = async {
        setup.catalog.check_node_version().await;
        let summaries = setup.catalog.summaries();
        let (shown, more): (Vec<_>, Vec<_>) = summaries
            .into_iter()
            .partition(|agent| !agent.more || agent.found);
        let entries: Vec<AgentEntry> = shown
            .iter()
            .filter_map(|agent| setup.catalog.entry(&agent.cli_type))
            .collect();
        let checks = entries.iter().map(|entry| agent(entry, &setup));
        let mut lines = futures_util::future::join_all(checks).await;
        if !more.is_empty() {
            let count = more.len();
            lines.push(format!(
                "and {count} more that can be installed: liminal agents"
            ));
        }
        lines
    };
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    match runtime.enable_all().build() {
        Ok(runtime) => runtime.block_on(lines),
        Err(error) => vec![format!("cannot be checked: {error}")],
    }
}

async fn agent(entry: &AgentEntry, setup: &AgentSetup) -> String {
    let launch = setup.catalog.launch(entry);
    let install = setup.catalog.install_command(entry);
    let state = match (launch, &entry.chosen, install) {
        (Some(launch), ..) => {
            let program = launch.program.display().to_string();
            let command = [&[program], launch.args.as_slice()].concat().join(" ");
            // The built-in agent has this program's version. Starting an npx agent might download it, and `doctor`
            // must not change the machine.
            let known = entry.cli_type == Catalog::LIMINAL || launch.may_fetch();
            let version = match known {
                true => String::new(),
                false => reported_version(entry, setup).await,
            };
            format!("found: {command}{version}")
        }
        (None, Some(chosen), _) => {
            let chosen = chosen.join(" ");
            format!("not found: its configured command `{chosen}`")
        }
        (None, None, Some(install)) => format!("not found; install it: {install}"),
        (None, None, None) => match setup.catalog.cannot_install(entry) {
            Some(missing) => return format!("{:<14} not found; {missing}", entry.name),
            None => "not found".to_owned(),
        },
    };
    let node = setup.catalog.node_trouble(entry);
    let node = node.map_or(String::new(), |words| {
        format!("\n  {:<14} but: {words}", "")
    });
    format!("{:<14} {state}{node}", entry.name)
}

/// The version that an agent reports, or why it could not be started.
async fn reported_version(entry: &AgentEntry, setup: &AgentSetup) -> String {
    match agents::probe_version(entry, setup).await {
        Ok(Some(version)) => format!("  ({version})"),
        Ok(None) => String::new(),
        Err(error) => format!("\n  {:<14} but: {error}", ""),
    }
}
