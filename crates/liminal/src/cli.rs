//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use agents::keeper::StoreId;
use clap::{Args, Parser, Subcommand, ValueEnum};
use wire::PermissionPolicy;

use crate::config::{GatewayPort, Host, Port, StallAction};

#[derive(Debug, Parser)]
#[command(
    name = "liminal",
    version,
    about = "One local workspace for all your coding agents.",
    long_about = "One local workspace for all your coding agents: projects and their sessions in a browser, with any \
agent that supports the Agent Client Protocol (ACP).\n\nWithout a command, `liminal` starts the server and opens your \
browser.",
    after_long_help = AFTER_HELP,
    disable_help_subcommand = true,
    max_term_width = 100
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) flags: Flags,
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Command {
    /// Start the server (the default command)
    Serve {
        /// Stop when standard input is closed (used by commands that start a server for one call)
        #[arg(long, hide = true)]
        while_stdin: bool,
    },
    /// Print the access token; create one if there is none
    Token {
        /// Replace the token; all open connections are closed and must authenticate with the new one
        #[arg(long)]
        rotate: bool,
    },
    /// Show the version, the data directory, ports, agents, and the source of each setting
    Doctor,
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
        matches!(command, Some(Self::Serve { while_stdin: true }))
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

#[derive(Debug, Default, Args)]
pub(crate) struct Flags {
    /// Data directory [env: LIMINAL_DATA_DIR] [default: ~/.liminal-builder]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Address to listen on [env: LIMINAL_HOST] [default: 127.0.0.1]
    #[arg(long, global = true, value_name = "ADDRESS")]
    pub(crate) host: Option<Host>,
    /// Port of the browser listener, 0 for any free port [env: LIMINAL_PORT] [default: 3000]
    #[arg(long, global = true, value_name = "PORT")]
    pub(crate) port: Option<Port>,
    /// Port of the gateway listener, or `off` [env: LIMINAL_GATEWAY_PORT] [default: 18789]
    #[arg(long, global = true, value_name = "PORT")]
    pub(crate) gateway_port: Option<GatewayPort>,
    /// Answer to permission requests of agents: `allow` or `ask` the user [env: LIMINAL_PERMISSIONS] [default: allow]
    #[arg(long, global = true, value_name = "POLICY")]
    pub(crate) permissions: Option<PermissionPolicy>,
    /// If an agent stops responding: `show` it or `restart` the agent [env: LIMINAL_STALL_ACTION] [default: show]
    #[arg(long, global = true, value_name = "ACTION")]
    pub(crate) stall_action: Option<StallAction>,
    /// Do not open a browser
    #[arg(long, global = true)]
    pub(crate) no_open: bool,
}

const AFTER_HELP: &str = "\
Examples:
  liminal                          Serve on http://127.0.0.1:3000 and open the browser
  liminal --port 0 --no-open       Serve on any free port; the first line on stdout contains the URL
  liminal --data-dir ./scratch     Use ./scratch as the data directory
  liminal agent                    Run the built-in agent, for an editor that starts ACP agents
  liminal send --agent assistant --cwd . \"…\"
                                   Send a message from a script; `liminal show KEY` prints the session
  liminal doctor                   Check settings, agents and required tools
  curl -H \"Authorization: Bearer $(liminal token)\" http://127.0.0.1:3000/auth

Environment:
  LIMINAL_DATA_DIR, LIMINAL_HOST, LIMINAL_PORT, LIMINAL_GATEWAY_PORT, LIMINAL_PERMISSIONS, LIMINAL_STALL_ACTION
                                   Same as the flags of these names
  LIMINAL_TOKEN                    Use this access token instead of the one in the data directory
  LIMINAL_OPEN                     Set to `false` to not open a browser
  LIMINAL_LOG                      Log filter for stderr, such as `debug` or `hub=debug,info` [default: info]
  CLAUDE_ACP_CMD, CODEX_ACP_CMD    Command lines that start these agents
  ACP_START_TIMEOUT_MS             Time limit for starting an agent [default: 15000]
  ACP_PROMPT_TIMEOUT_MS            Time without agent output after which the stall action applies [default: 30000]

Environment of the built-in agent:
  LIMINAL_AGENT_MODEL              Models as provider/model, separated by commas; providers are anthropic, openai and
                                   openai-compatible. Without a model, only slash commands work
  ANTHROPIC_API_KEY, OPENAI_API_KEY, ANTHROPIC_BASE_URL, OPENAI_BASE_URL
                                   API keys and base URLs of these providers
  LIMINAL_AGENT_BASE_URL, LIMINAL_AGENT_API_KEY
                                   The openai-compatible server [default: http://127.0.0.1:11434/v1, no key]
  LIMINAL_AGENT_SESSION_IDLE_DAYS  Days after which an unused session expires, 0 for never [default: 90]
  LIMINAL_AGENT_SESSION_MAX        Maximum number of sessions, 0 for no limit [default: 10000]

All settings except the token and the data directory can also be set in config.toml in the data directory.
A flag overrides the environment, the environment overrides the file, and the file overrides the default;
`liminal doctor` shows the source of each setting.";
