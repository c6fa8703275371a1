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
    long_about = "One local workspace for all your coding agents: projects and their sessions in a browser, every agent \
that speaks the Agent Client Protocol behind it.\n\nWithout a command it serves the workspace and opens your browser.",
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
    /// Serve the workspace (what happens without a command)
    Serve {
        /// Only as long as standard input is open (for commands that start a server for themselves)
        #[arg(long, hide = true)]
        while_stdin: bool,
    },
    /// Print the access token, making one if there is none
    Token {
        /// Make a new one; everything that is connected has to come back with it
        #[arg(long)]
        rotate: bool,
    },
    /// Show versions, the data directory, ports, agents, and where each setting comes from
    Doctor,
    #[command(flatten)]
    Talk(Talk),
    /// What programs can do at the gateway
    Gateway {
        #[command(subcommand)]
        what: GatewayCommand,
    },
    /// Print completions for a shell
    Completions { shell: clap_complete::Shell },
    /// Print a man page
    Man {
        /// The command it is about
        command: Option<String>,
    },
    /// Be an agent for any ACP client, over standard input and output
    Agent,
    /// Keep an agent (started by the server itself)
    #[command(hide = true)]
    Keeper {
        /// The process whose end is ours
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
    /// The end of standard input is the end of a server that was started for one call.
    pub(crate) fn ends_with_stdin(command: Option<&Self>) -> bool {
        matches!(command, Some(Self::Serve { while_stdin: true }))
    }
}

/// Commands that talk to the running server, or to one that is started for them.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Talk {
    /// List the sessions there are
    Sessions {
        /// As JSON
        #[arg(long)]
        json: bool,
        /// Those that were put away
        #[arg(long)]
        archived: bool,
    },
    /// Print what was said in a session
    Show {
        /// The session's key, or how it begins
        key: String,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Send a message and print the answer as it comes
    #[command(
        after_help = "The exit code is 0 for an answer, 1 for a failure, 3 when the agent declines, 4 when a limit cut the \
answer short, and 130 after Ctrl+C. Without a message, or with `-`, it is read from standard input."
    )]
    Send(SendArgs),
    /// Write a session to standard output
    Export {
        /// The session's key, or how it begins
        key: String,
        #[arg(long, value_enum, default_value_t = ExportFormat::Md)]
        format: ExportFormat,
    },
    /// List who can answer: those that are ready, and those that could be installed
    Agents {
        /// As JSON
        #[arg(long)]
        json: bool,
        /// First take the newest list of agents: from the public ACP registry, another https address, or a file
        #[arg(long, value_name = "FROM", num_args = 0..=1, default_missing_value = agents::REGISTRY_URL)]
        refresh: Option<String>,
        /// Install this one, or bring it up to date
        #[arg(long, value_name = "AGENT", conflicts_with_all = ["json", "refresh"])]
        install: Option<String>,
    },
}

#[derive(Debug, Clone, Args)]
pub(crate) struct SendArgs {
    /// The session's key, or how it begins, and the message; only the message for a new session
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
    /// Whether a new session is wanted.
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
    /// Print the JSON Schema of every method
    Schema,
    /// Print the reference page
    Reference,
}

#[derive(Debug, Default, Args)]
pub(crate) struct Flags {
    /// Where everything is kept [env: LIMINAL_DATA_DIR] [default: ~/.liminal-builder]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Address to listen on [env: LIMINAL_HOST] [default: 127.0.0.1]
    #[arg(long, global = true, value_name = "ADDRESS")]
    pub(crate) host: Option<Host>,
    /// Port of the browser door, 0 for any free one [env: LIMINAL_PORT] [default: 3000]
    #[arg(long, global = true, value_name = "PORT")]
    pub(crate) port: Option<Port>,
    /// Port of the gateway door, or `off` [env: LIMINAL_GATEWAY_PORT] [default: 18789]
    #[arg(long, global = true, value_name = "PORT")]
    pub(crate) gateway_port: Option<GatewayPort>,
    /// What happens when an agent asks for permission: `allow` or `ask` [env: LIMINAL_PERMISSIONS] [default: allow]
    #[arg(long, global = true, value_name = "POLICY")]
    pub(crate) permissions: Option<PermissionPolicy>,
    /// What happens when an agent falls silent: `show` or `restart` [env: LIMINAL_STALL_ACTION] [default: show]
    #[arg(long, global = true, value_name = "ACTION")]
    pub(crate) stall_action: Option<StallAction>,
    /// Do not open a browser
    #[arg(long, global = true)]
    pub(crate) no_open: bool,
}

const AFTER_HELP: &str = "\
Examples:
  liminal                          Serve on http://127.0.0.1:3000 and open it
  liminal --port 0 --no-open       Serve on any free port; the first line on stdout has the address
  liminal --data-dir ./scratch     Keep everything of this run in ./scratch
  liminal agent                    Be the built-in agent, for an editor that starts ACP agents
  liminal send --agent assistant --cwd . \"…\"
                                   Ask an agent from a script; `liminal sessions` and `liminal show KEY` tell what became of it
  liminal doctor                   Find out what is set, what is found, and what is missing
  curl -H \"Authorization: Bearer $(liminal token)\" http://127.0.0.1:3000/auth

Environment:
  LIMINAL_DATA_DIR, LIMINAL_HOST, LIMINAL_PORT, LIMINAL_GATEWAY_PORT, LIMINAL_PERMISSIONS, LIMINAL_STALL_ACTION
                                   As the flags of the same name
  LIMINAL_TOKEN                    Use this access token instead of the one in the data directory
  LIMINAL_OPEN                     `false`: do not open a browser
  LIMINAL_LOG                      What to log on stderr, such as `debug` or `hub=debug,info` [default: info]
  CLAUDE_ACP_CMD, CODEX_ACP_CMD    Command lines that start these agents
  ACP_START_TIMEOUT_MS             How long an agent may take to start [default: 15000]
  ACP_PROMPT_TIMEOUT_MS            After how much silence a turn is shown as quiet [default: 30000]

Environment of the built-in agent:
  LIMINAL_AGENT_MODEL              Models as provider/model, separated by commas; the providers are anthropic, openai and
                                   openai-compatible. Without one it works by command
  ANTHROPIC_API_KEY, OPENAI_API_KEY, ANTHROPIC_BASE_URL, OPENAI_BASE_URL
                                   As everywhere
  LIMINAL_AGENT_BASE_URL, LIMINAL_AGENT_API_KEY
                                   The openai-compatible server [default: http://127.0.0.1:11434/v1, without a key]
  LIMINAL_AGENT_SESSION_IDLE_DAYS  After how long an unused session is moved aside, 0 for never [default: 90]
  LIMINAL_AGENT_SESSION_MAX        How many sessions are kept, 0 for any number [default: 10000]

Every other setting but the token and the data directory can also stand in config.toml there. A flag wins over the environment,
the environment over the file, the file over the default; `liminal doctor` shows which one won.";
