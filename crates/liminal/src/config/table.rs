//! The table of settings: the fields of `Settings`, the keys of `config.toml`, the environment variables, the help
//! texts and docs/configuration.md come from it.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use serde::Deserialize;
use wire::PermissionPolicy;

use super::values::{
    AgentTable, CommandLine, Count, GatewayPort, Host, IdleTimeout, LogFilter, Milliseconds,
    Parsed, Port, Secret, StallAction, Text,
};
use super::{ConfigError, Environment, Setting, Source, pick};
use crate::cli::Flags;

/// A setting as the help and the documentation describe it.
pub(crate) struct Row {
    /// Its key in `config.toml`.
    pub(crate) key: Option<&'static str>,
    pub(crate) variable: &'static str,
    pub(crate) flag: Option<&'static str>,
    /// The values that it accepts.
    pub(crate) values: &'static str,
    pub(crate) default: String,
    pub(crate) about: &'static str,
}

impl Row {
    /// Whether the built-in agent reads it.
    pub(crate) fn is_of_agent(&self) -> bool {
        let ours = self.variable.starts_with("LIMINAL_") || self.variable.contains("ACP_");
        self.variable.starts_with("LIMINAL_AGENT_") || !ours
    }
}

/// The settings that cannot be in `config.toml`: it is in the data directory, and the others are secrets that programs
/// read from the environment by convention.
fn environment_only() -> Vec<Row> {
    let row = |variable, flag, values, default: &str, about| Row {
        key: None,
        variable,
        flag,
        values,
        default: default.to_owned(),
        about,
    };
    vec![
        row(
            "LIMINAL_DATA_DIR",
            Some("--data-dir"),
            "a path; `~` is the home directory",
            "~/.liminal-builder",
            "Data directory",
        ),
        row(
            "LIMINAL_TOKEN",
            None,
            "8 to 512 visible ASCII characters without spaces",
            "",
            "Use this access token instead of the one in the data directory",
        ),
        row(
            "ANTHROPIC_API_KEY",
            None,
            "text",
            "",
            "API key for models of anthropic",
        ),
        row(
            "OPENAI_API_KEY",
            None,
            "text",
            "",
            "API key for models of openai",
        ),
        row(
            "ANTHROPIC_BASE_URL",
            None,
            "a URL",
            "",
            "Base URL of the anthropic API",
        ),
        row(
            "OPENAI_BASE_URL",
            None,
            "a URL",
            "",
            "Base URL of the openai API",
        ),
    ]
}

macro_rules! settings {
    ($(
        $name:ident: $type:ty {
            variable: $variable:literal,
            flag: $flag:expr,
            values: $values:literal,
            default: $default:expr,
            about: $about:literal,
        }
    )+) => {
        // No `Debug` outside tests: it contains the token.
        #[cfg_attr(test, derive(Debug))]
        pub(crate) struct Settings {
            pub(crate) data_dir: Setting<PathBuf>,
            $(pub(crate) $name: Setting<$type>,)+
            /// Agents that `config.toml` adds to the catalog.
            pub(crate) agents: Vec<AgentTable>,
            pub(crate) token: Option<String>,
            pub(crate) home: Option<PathBuf>,
        }

        /// `config.toml`.
        #[derive(Debug, Default, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct File {
            $($name: Option<Parsed<$type>>,)+
            #[serde(default)]
            agents: Vec<AgentTable>,
        }

        impl Settings {
            /// Each setting from its flag, its variable, the file or its default, in this order.
            pub(super) fn choose(
                flags: &Flags,
                env: Environment,
                file: File,
                data_dir: Setting<PathBuf>,
                home: Option<PathBuf>,
            ) -> Result<Self, ConfigError> {
                Ok(Self {
                    $($name: {
                        let flag: Flag<$type> = $flag;
                        pick((flag.value)(flags), env, $variable, file.$name, $default)?
                    },)+
                    agents: file.agents,
                    token: env("LIMINAL_TOKEN"),
                    data_dir,
                    home,
                })
            }

            /// The settings as name, value and source, for `liminal doctor`. Without the token.
            pub(crate) fn rows(&self) -> Vec<(&'static str, String, Source)> {
                let data_dir = self.data_dir.value.display().to_string();
                vec![
                    ("data_dir", data_dir, self.data_dir.source),
                    $((stringify!($name), self.$name.value.to_string(), self.$name.source),)+
                ]
            }
        }

        /// All settings.
        pub(crate) fn table() -> Vec<Row> {
            let mut rows = vec![];
            $(
                let flag: Flag<$type> = $flag;
                let default: $type = $default;
                rows.push(Row {
                    key: Some(stringify!($name)),
                    variable: $variable,
                    flag: flag.name,
                    values: $values,
                    default: default.to_string(),
                    about: $about,
                });
            )+
            rows.extend(environment_only());
            rows
        }
    };
}

/// A command line flag, and its value among the flags given.
struct Flag<T> {
    name: Option<&'static str>,
    value: fn(&Flags) -> Option<T>,
}

impl<T> Flag<T> {
    const fn new(name: &'static str, value: fn(&Flags) -> Option<T>) -> Self {
        Self {
            name: Some(name),
            value,
        }
    }

    const fn none() -> Self {
        Self {
            name: None,
            value: |_| None,
        }
    }
}

settings! {
    host: Host {
        variable: "LIMINAL_HOST",
        flag: Flag::new("--host", |flags| flags.listen.host),
        values: "an IP address or `localhost`",
        default: Host(Ipv4Addr::LOCALHOST.into()),
        about: "Address to listen on",
    }
    port: Port {
        variable: "LIMINAL_PORT",
        flag: Flag::new("--port", |flags| flags.listen.port),
        values: "0 to 65535",
        default: Port(3000),
        about: "Port of the browser listener, 0 for any free port",
    }
    gateway_port: GatewayPort {
        variable: "LIMINAL_GATEWAY_PORT",
        flag: Flag::new("--gateway-port", |flags| flags.listen.gateway_port),
        values: "0 to 65535, or `off`",
        default: GatewayPort(Some(18789)),
        about: "Port of the gateway listener, or `off`",
    }
    permissions: PermissionPolicy {
        variable: "LIMINAL_PERMISSIONS",
        flag: Flag::new("--permissions", |flags| flags.permissions),
        values: "`allow` or `ask`",
        default: PermissionPolicy::Allow,
        about: "Answer to permission requests of agents: `allow` or `ask` the user",
    }
    stall_action: StallAction {
        variable: "LIMINAL_STALL_ACTION",
        flag: Flag::new("--stall-action", |flags| flags.stall_action),
        values: "`show` or `restart`",
        default: StallAction::Show,
        about: "If an agent stops responding: `show` it or `restart` the agent",
    }
    open: bool {
        variable: "LIMINAL_OPEN",
        flag: Flag::new("--no-open", |flags| flags.no_open.then_some(false)),
        values: "`true` or `false`",
        default: true,
        about: "Open a browser when the server starts",
    }
    warm_start: bool {
        variable: "LIMINAL_WARM_START",
        flag: Flag::none(),
        values: "`true` or `false`",
        default: true,
        about: "Start the agent used last when a browser connects, before it is needed",
    }
    log: LogFilter {
        variable: "LIMINAL_LOG",
        flag: Flag::none(),
        values: "a level or a filter",
        default: LogFilter::server(),
        about: "Log filter for stderr, such as `debug` or `hub=debug,info`",
    }
    claude_acp_cmd: CommandLine {
        variable: "CLAUDE_ACP_CMD",
        flag: Flag::none(),
        values: "a command line",
        default: CommandLine::default(),
        about: "Command line that starts Claude Code",
    }
    codex_acp_cmd: CommandLine {
        variable: "CODEX_ACP_CMD",
        flag: Flag::none(),
        values: "a command line",
        default: CommandLine::default(),
        about: "Command line that starts Codex",
    }
    acp_start_timeout_ms: Milliseconds {
        variable: "ACP_START_TIMEOUT_MS",
        flag: Flag::none(),
        values: "milliseconds above 0",
        default: Milliseconds(15_000),
        about: "Time limit for starting an agent",
    }
    acp_prompt_timeout_ms: Milliseconds {
        variable: "ACP_PROMPT_TIMEOUT_MS",
        flag: Flag::none(),
        values: "milliseconds above 0",
        default: Milliseconds(30_000),
        about: "Time without agent output after which the stall action applies",
    }
    acp_idle_timeout_ms: IdleTimeout {
        variable: "ACP_IDLE_TIMEOUT_MS",
        flag: Flag::none(),
        values: "milliseconds, or `off`",
        default: IdleTimeout(Some(Milliseconds(30 * 60_000))),
        about: "Time after which an idle agent process is stopped, or `off`",
    }
    trash_days: Count {
        variable: "LIMINAL_TRASH_DAYS",
        flag: Flag::none(),
        values: "a number of days",
        default: Count(30),
        about: "Days after which deleted sessions, unused pictures and expired sessions of the built-in agent are \
                removed, 0 for never",
    }
    trash_max_mb: Count {
        variable: "LIMINAL_TRASH_MAX_MB",
        flag: Flag::none(),
        values: "a number of MiB",
        default: Count(1024),
        about: "MiB of them that are kept, except deleted sessions that can be restored, 0 for no limit",
    }
    agent_model: Text {
        variable: "LIMINAL_AGENT_MODEL",
        flag: Flag::none(),
        values: "`provider/model`, separated by commas",
        default: Text::shown_as(""),
        about: "Models as provider/model, separated by commas; providers are anthropic, openai and openai-compatible. \
                Without a model, only slash commands work",
    }
    agent_base_url: Text {
        variable: "LIMINAL_AGENT_BASE_URL",
        flag: Flag::none(),
        values: "a URL",
        default: Text::shown_as("OPENAI_BASE_URL, or http://127.0.0.1:11434/v1"),
        about: "Base URL of the openai-compatible server",
    }
    agent_api_key: Secret {
        variable: "LIMINAL_AGENT_API_KEY",
        flag: Flag::none(),
        values: "text",
        default: Secret::default(),
        about: "API key of the openai-compatible server",
    }
    agent_session_idle_days: Count {
        variable: "LIMINAL_AGENT_SESSION_IDLE_DAYS",
        flag: Flag::none(),
        values: "a number of days",
        default: Count(90),
        about: "Days after which an unused session of the built-in agent expires, 0 for never",
    }
    agent_session_max: Count {
        variable: "LIMINAL_AGENT_SESSION_MAX",
        flag: Flag::none(),
        values: "a number",
        default: Count(10_000),
        about: "Maximum number of sessions of the built-in agent, 0 for no limit",
    }
    agent_log: LogFilter {
        variable: "LIMINAL_AGENT_LOG",
        flag: Flag::none(),
        values: "a level or a filter",
        default: LogFilter::agent(),
        about: "Log filter of the built-in agent",
    }
}
