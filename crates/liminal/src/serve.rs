//! `liminal serve`: starts the hub and both listeners, and stops them in order within a time limit.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use agents::{AgentEntry, AgentSetup, Backoff, Catalog, Keepers};
use hub::{Hub, HubConfig, SessionRules};
use store::DataDir;
use tokio::io::AsyncReadExt;
use tokio::signal::unix::{SignalKind, signal};

use crate::admission::Admission;
use crate::browser_keys::BrowserKeys;
use crate::config::{Settings, Source, StallAction};
use crate::connection_limit::ConnectionLimit;
use crate::http::{self, App, Listening};
use crate::open_connections::OpenConnections;
use crate::token::{CurrentToken, Token};
use crate::{browser, gateway, open_browser, stop};

/// Exit code of a server started for one call when another process holds the data directory.
pub(crate) const DATA_DIR_TAKEN: u8 = 75;
/// Time limit for a started browser to load the file that contains the token. The file is deleted afterwards.
const BROWSER_START: Duration = Duration::from_secs(60);
/// Time after which a client that closed its connection no longer counts as connected.
const LEAVE_DEADLINE: Duration = Duration::from_millis(500);
/// Time limit for closing open connections at a stop.
const STOP_DEADLINE: Duration = Duration::from_millis(300);
/// Time limit for writing outstanding data to disk at a stop.
const STORE_DEADLINE: Duration = Duration::from_secs(3);
/// Time limit for connections, disk and agents together. Including the kill of remaining processes, a stop takes at
/// most 10 s.
const ORDERLY_DEADLINE: Duration = Duration::from_secs(8);

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct CannotListen(String);

pub(crate) async fn serve(settings: Settings, ends_with_stdin: bool) -> anyhow::Result<()> {
    let mut signals = Signals::listen()?;
    let dir = DataDir::prepare(&settings.data_dir.value)?;
    let hub = Hub::open(HubConfig {
        data_dir: dir.clone(),
        home: settings.home.clone(),
        agents: agent_setup(&settings)?,
        rules: SessionRules {
            policy: settings.permissions.value,
            quiet_after: settings.acp_prompt_timeout_ms.value.duration(),
            restarts_when_quiet: settings.stall_action.value == StallAction::Restart,
        },
        cleaning: settings.cleaning_rules(),
    })?;
    let token = Token::obtain(&dir, settings.token.as_deref())?;
    let saved_in = settings.token.is_none().then(|| dir.clone());
    let current = Arc::new(CurrentToken::new(token.clone(), saved_in));
    let mut notices = vec![];
    let keys = Arc::new(BrowserKeys::open(&dir, current.clone(), &mut notices)?);
    for notice in &notices {
        tracing::warn!("{notice}");
    }
    let requested = SocketAddr::new(settings.host.value.0, settings.port.value.0);
    let listening = http::listen(requested)
        .await
        .map_err(|error| cannot_listen(requested, "--port", &error))?;
    let address = listening.address;
    let url = format!("http://{}", browser_address(address));
    if let Err(error) = hub.announce(&url) {
        tracing::warn!(%error, "could not write the server's address: commands will not find it");
    }
    if !address.ip().is_loopback() {
        tracing::warn!(%address, "listening on a network address without encryption: others can read the traffic");
    }

    let (stop, stopping) = stop::channel();
    let connections = OpenConnections::default();
    let admission = Arc::new(Admission::new(
        address.ip(),
        address.port(),
        current.clone(),
        keys.clone(),
    ));
    let app = App {
        admission: admission.clone(),
        keys: keys.clone(),
        browser: browser::Context {
            hub: hub.clone(),
            permissions: settings.permissions.value,
            warm_start: settings.warm_start.value,
            token: current.clone(),
            keys: keys.clone(),
            notices: notices.into(),
            unproven: ConnectionLimit::new(browser::UNPROVEN_MAX),
            finished_html: browser::FinishedHtml::default(),
            connections: connections.clone(),
            stop: stopping.clone(),
        },
        gateway: gateway::Context {
            hub: hub.clone(),
            admission,
            unauthenticated: ConnectionLimit::new(gateway::UNAUTHENTICATED_MAX),
            scratch: dir.scratch_folder(),
            personas: agent::Directories::within(dir.path()).personas,
            model: settings.agent_model.value.value.clone(),
            token: current.clone(),
            keys: keys.clone(),
            connections: connections.clone(),
            stop: stopping.clone(),
        },
    };
    if let Some(listening) = listen_for_gateway(&settings).await? {
        let address = listening.address;
        tracing::info!(%address, "the gateway is listening");
        let gateway_app = App {
            admission: Arc::new(Admission::new(
                address.ip(),
                address.port(),
                current.clone(),
                keys.clone(),
            )),
            ..app.clone()
        };
        tokio::spawn(listening.serve(http::gateway_router(gateway_app), stopping.clone()));
    }
    let serving = tokio::spawn(listening.serve(http::router(app), stopping));
    let with_token = format!("{url}/#token={}", token.in_address());
    print_line(&format!("Liminal Builder is ready: {with_token}"));
    if settings.open.value && open_browser::is_wanted() {
        open_browser::open(&dir, &with_token);
        let dir = dir.clone();
        tokio::spawn(async move {
            tokio::time::sleep(BROWSER_START).await;
            open_browser::clean_up(&dir);
        });
    }

    tokio::select! {
        () = signals.next() => {}
        () = last_client_left(&connections), if ends_with_stdin => {}
    }
    tracing::info!("stopping");
    // A second signal ends the server at once.
    let agents_of = hub.clone();
    tokio::spawn(async move {
        signals.next().await;
        agents_of.agents().kill_processes();
        std::process::exit(130);
    });
    stop.request();
    open_browser::clean_up(&dir);
    let orderly = async {
        serving.await?;
        stop.wait(STOP_DEADLINE).await;
        let closing = async { tokio::join!(hub.close(), keys.close()) };
        let closed = tokio::time::timeout(STORE_DEADLINE, closing).await;
        // Also done when the disk hangs: no process that an agent started may outlive the server.
        hub.agents().shut_down().await;
        if closed.is_err() {
            tracing::error!("writing to disk timed out; unacknowledged changes are lost");
        }
        anyhow::Ok(())
    };
    let ended = tokio::time::timeout(ORDERLY_DEADLINE, orderly).await;
    hub.agents().end_processes().await;
    ended.unwrap_or_else(|_| {
        tracing::error!("the stop timed out; the agent processes were killed");
        Ok(())
    })
}

/// Opens the gateway's own port. If that is the default port and it is in use, the gateway remains available on the
/// browser's port only.
async fn listen_for_gateway(settings: &Settings) -> anyhow::Result<Option<Listening>> {
    let Some(port) = settings.gateway_port.value.0 else {
        return Ok(None);
    };
    let requested = SocketAddr::new(settings.host.value.0, port);
    match http::listen(requested).await {
        Ok(listening) => Ok(Some(listening)),
        Err(error) if settings.gateway_port.source == Source::Default => {
            tracing::warn!(%requested, %error, "the gateway's own port is disabled; use /gateway on the browser's port");
            Ok(None)
        }
        Err(error) => Err(cannot_listen(requested, "--gateway-port", &error).into()),
    }
}

pub(crate) fn agent_setup(settings: &Settings) -> io::Result<AgentSetup> {
    let home = settings.home.clone();
    Ok(AgentSetup {
        catalog: catalog(settings),
        keepers: Keepers::new(std::env::current_exe()?, &settings.data_dir.value),
        env: std::env::vars_os().collect(),
        home: home.unwrap_or_else(|| settings.data_dir.value.clone()),
        start_timeout: settings.acp_start_timeout_ms.value.duration(),
        backoff: Backoff::default(),
        sleeps_after: settings
            .acp_idle_timeout_ms
            .value
            .0
            .map(|time| time.duration()),
    })
}

fn catalog(settings: &Settings) -> Catalog {
    let known = Catalog::new(
        std::env::var_os("PATH").unwrap_or_default(),
        settings.claude_acp_cmd.value.words(),
        settings.codex_acp_cmd.value.words(),
    );
    let known = known.with_more(&settings.data_dir.value);
    let known = known.with(built_in(&settings.data_dir.value));
    settings.agents.iter().fold(known, |catalog, agent| {
        let mut entry = AgentEntry::with_command(
            &agent.id.to_string(),
            &agent.name(),
            &agent.badge(),
            agent.words(),
        );
        entry.env = agent.env.clone().into_iter().collect();
        entry.cwd = agent.cwd(settings.home.as_deref());
        catalog.with(entry)
    })
}

/// Catalog entry of the built-in agent.
fn built_in(data_dir: &Path) -> AgentEntry {
    let program = std::env::current_exe().unwrap_or_else(|_| "liminal".into());
    let words = [
        program.as_os_str(),
        "agent".as_ref(),
        "--data-dir".as_ref(),
        data_dir.as_ref(),
    ];
    let command = words.map(|word: &OsStr| word.to_string_lossy().into_owned());
    AgentEntry::with_command(Catalog::LIMINAL, "Liminal", "LB", command.to_vec())
}

/// Prints one line on stdout: the address, or a notice to the command that started the server.
fn print_line(line: &str) {
    let mut stdout = io::stdout().lock();
    // A closed stdout is no reason to stop serving.
    let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
}

/// An address a browser on this machine can connect to; replaces the unspecified address by loopback.
fn browser_address(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

fn cannot_listen(requested: SocketAddr, flag: &str, error: &io::Error) -> CannotListen {
    let (ip, port) = (requested.ip(), requested.port());
    CannotListen(match error.kind() {
        io::ErrorKind::AddrInUse => format!(
            "Port {port} on {ip} is taken. Stop the program that uses it, or choose another with {flag} (0 for any free port)."
        ),
        io::ErrorKind::PermissionDenied => {
            format!(
                "This user is not permitted to use port {port}. Choose one above 1023 with {flag}."
            )
        }
        io::ErrorKind::AddrNotAvailable => {
            format!(
                "{ip} is not an address of this machine. Choose another with --host, such as 127.0.0.1."
            )
        }
        _ => format!(
            "Could not listen on {requested}: {error}. Choose another address with --host and {flag}."
        ),
    })
}

/// Waits until standard input is closed, which includes a killed parent, and all connections are closed.
async fn last_client_left(connections: &OpenConnections) {
    let mut stdin = tokio::io::stdin();
    let mut ignored = [0; 64];
    while let Ok(1..) = stdin.read(&mut ignored).await {}
    // The command that started the server may still be disconnecting.
    if tokio::time::timeout(LEAVE_DEADLINE, connections.all_left())
        .await
        .is_err()
    {
        print_line("Other clients are still connected");
        connections.all_left().await;
    }
}

/// SIGINT and SIGTERM.
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
