//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use agents::keeper::StoreId;
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use wire::PermissionPolicy;

use crate::config::{GatewayPort, Host, Port, StallAction, environment_help, flag_help};

#[derive(Debug, Parser)]
#[command(
    name = "liminal",
    version,
    about = "One local workspace for all your coding agents.",
    long_about = "One local workspace for all your coding agents: projects and their sessions in a browser, with any \
agent that supports the Agent Client Protocol (ACP).\n\nWithout a command, `liminal` starts the server and opens your \
browser.",
    after_long_help = after_help(),
    disable_help_subcommand = true,
    max_term_width = 100
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[arg(long, global = true, value_name = "DIR", help = flag_help("--data-dir"))]
    data_dir: Option<PathBuf>,
    #[command(flatten)]
    server: ServeFlags,
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Command {
    /// Start the server (the default command)
    Serve {
        #[command(flatten)]
        flags: ServeFlags,
        /// Stop when standard input is closed (used by commands that start a server for one call)
        #[arg(long, hide = true)]
        while_stdin: bool,
    },
    /// Print the access token; create one if there is none
    Token {
        /// Replace the token; all connections are closed, all browsers signed out
        #[arg(long)]
        rotate: bool,
    },
    /// Show the version, the data directory, ports, agents, and the source of each setting
    Doctor {
        #[command(flatten)]
        flags: ListenFlags,
    },
    /// Describe all settings and the keys of config.toml
    Config,
    #[command(flatten)]
    Client(ClientCommand),
    /// Describe the gateway, the WebSocket API for programs
    Gateway {
        #[command(subcommand)]
        what: GatewayCommand,
    },
    /// Print completions for a shell
    Completions { shell: clap_complete::Shell },
    /// Print a man page
    Man {
        /// The command to describe; `liminal` itself if omitted
        command: Option<String>,
    },
    /// Run the built-in agent for an ACP client, over standard input and output
    Agent,
    /// Supervise one agent process (started by the server)
    #[command(hide = true)]
    Keeper {
        /// Process id of the server; the keeper ends when that process ends
        #[arg(long)]
        parent: u32,
        /// Identifies the server's data directory
        #[arg(long)]
        store: Option<StoreId>,
        #[arg(last = true)]
        command: Vec<OsString>,
    },
}

impl Command {
    /// Whether the server stops when its standard input is closed, as one started for a single call does.
    pub(crate) fn ends_with_stdin(command: Option<&Self>) -> bool {
        matches!(
            command,
            Some(Self::Serve {
                while_stdin: true,
                ..
            })
        )
    }
}

/// Commands that connect to the running server, or to one started for this call.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum ClientCommand {
    /// List sessions
    Sessions {
        /// Print as JSON
        #[arg(long)]
        json: bool,
        /// List archived sessions instead
        #[arg(long)]
        archived: bool,
    },
    /// Print the transcript of a session
    Show {
        /// The session key, or a unique prefix of it
        key: String,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Send a message and stream the answer
    #[command(
        after_help = "Exit codes: 0 for an answer, 1 for a failure, 3 if the agent refused, 4 if a limit cut the \
answer short, 130 after Ctrl+C. Without a message, or with `-`, the message is read from standard input."
    )]
    Send(SendArgs),
    /// Write a session to standard output
    Export {
        /// The session key, or a unique prefix of it
        key: String,
        #[arg(long, value_enum, default_value_t = ExportFormat::Md)]
        format: ExportFormat,
    },
    /// List the browsers that are signed in, or sign one out
    Browsers {
        /// Print as JSON
        #[arg(long)]
        json: bool,
        /// Sign this browser out and disconnect it; an id, or a unique prefix of it
        #[arg(long, value_name = "ID", conflicts_with = "json")]
        end: Option<String>,
    },
    /// List agents: those that are ready, and those that can be installed
    Agents {
        /// Print as JSON
        #[arg(long)]
        json: bool,
        /// First update the agent list: from the public ACP registry, another https URL, or a file
        #[arg(long, value_name = "FROM", num_args = 0..=1, default_missing_value = agents::REGISTRY_URL)]
        refresh: Option<String>,
        /// Install or update this agent
        #[arg(long, value_name = "AGENT", conflicts_with_all = ["json", "refresh"])]
        install: Option<String>,
    },
    /// Remove files that no session can show: replaced transcripts, unused pictures, expired sessions
    #[command(
        after_help = "Deleted sessions stay as long as they can be restored (trash_days), and everything stays for a \
day after its last change. The server does the same daily, by age and size; see `liminal config`."
    )]
    Clean {
        /// Show what would be removed, and remove nothing
        #[arg(long)]
        dry_run: bool,
    },
}

#[derive(Debug, Clone, Args)]
pub(crate) struct SendArgs {
    /// The session key (or a unique prefix) and the message; only the message for a new session
    #[arg(value_name = "KEY MESSAGE", num_args = 0..=2)]
    pub(crate) words: Vec<String>,
    /// Start a new session with this agent
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    /// Start a new session in this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Print every event as a line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl SendArgs {
    /// Whether the message goes to a new session.
    pub(crate) fn to_agent(&self) -> bool {
        self.agent.is_some() || self.cwd.is_some()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    Md,
    Json,
    Html,
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum GatewayCommand {
    /// Print the JSON Schema of all methods
    Schema,
    /// Print the reference page as Markdown
    Reference,
}

/// All flags that are settings.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flags {
    pub(crate) data_dir: Option<PathBuf>,
    pub(crate) listen: ListenFlags,
    pub(crate) permissions: Option<PermissionPolicy>,
    pub(crate) stall_action: Option<StallAction>,
    pub(crate) no_open: bool,
}

/// Flags of the commands that start or check the listeners.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ListenFlags {
    #[arg(long, value_name = "ADDRESS", help = flag_help("--host"))]
    pub(crate) host: Option<Host>,
    #[arg(long, value_name = "PORT", help = flag_help("--port"))]
    pub(crate) port: Option<Port>,
    #[arg(long, value_name = "PORT", help = flag_help("--gateway-port"))]
    pub(crate) gateway_port: Option<GatewayPort>,
}

/// Flags of the server.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ServeFlags {
    #[command(flatten)]
    listen: ListenFlags,
    #[arg(long, value_name = "POLICY", help = flag_help("--permissions"))]
    permissions: Option<PermissionPolicy>,
    #[arg(long, value_name = "ACTION", help = flag_help("--stall-action"))]
    stall_action: Option<StallAction>,
    /// Do not open a browser
    #[arg(long)]
    no_open: bool,
}

impl ServeFlags {
    /// These flags, and those of `others` that are not among them.
    fn or(self, others: Self) -> Self {
        Self {
            listen: ListenFlags {
                host: self.listen.host.or(others.listen.host),
                port: self.listen.port.or(others.listen.port),
                gateway_port: self.listen.gateway_port.or(others.listen.gateway_port),
            },
            permissions: self.permissions.or(others.permissions),
            stall_action: self.stall_action.or(others.stall_action),
            no_open: self.no_open || others.no_open,
        }
    }

    /// The first of these flags that was given.
    fn first(&self) -> Option<&'static str> {
        let flags = [
            ("--host", self.listen.host.is_some()),
            ("--port", self.listen.port.is_some()),
            ("--gateway-port", self.listen.gateway_port.is_some()),
            ("--permissions", self.permissions.is_some()),
            ("--stall-action", self.stall_action.is_some()),
            ("--no-open", self.no_open),
        ];
        let given = flags.into_iter().find(|(_, given)| *given);
        given.map(|(flag, _)| flag)
    }
}

impl Cli {
    /// The flags before and after the command.
    pub(crate) fn flags(&self) -> Result<Flags, clap::Error> {
        let before = self.server.clone();
        let server = match &self.command {
            None => before,
            Some(Command::Serve { flags, .. }) => flags.clone().or(before),
            Some(Command::Doctor { flags }) => {
                let listen = flags.clone();
                let checked = ServeFlags {
                    listen,
                    ..ServeFlags::default()
                };
                checked.or(before)
            }
            // It would have no effect.
            Some(_) if before.first().is_some() => {
                let flag = before.first().unwrap_or_default();
                let message = format!(
                    "{flag} is a flag of `liminal serve`. Remove it, or use `liminal serve`."
                );
                return Err(Self::command().error(ErrorKind::ArgumentConflict, message));
            }
            Some(_) => before,
        };
        Ok(Flags {
            data_dir: self.data_dir.clone(),
            listen: server.listen,
            permissions: server.permissions,
            stall_action: server.stall_action,
            no_open: server.no_open,
        })
    }
}

/// The end of `--help`.
fn after_help() -> String {
    format!("{EXAMPLES}\n\n{}", environment_help())
}

const EXAMPLES: &str = "\
Examples:
  liminal                          Serve on http://127.0.0.1:3000 and open the browser
  liminal --port 0 --no-open       Serve on any free port; the first line on stdout contains the URL
  liminal --data-dir ./scratch     Use ./scratch as the data directory
  liminal agent                    Run the built-in agent, for an editor that starts ACP agents
  liminal send --agent assistant --cwd . \"…\"
                                   Send a message from a script; `liminal show KEY` prints the session
  liminal doctor                   Check settings, agents and required tools
  curl -H \"Authorization: Bearer $(liminal token)\" http://127.0.0.1:3000/auth";
