//! Settings: a flag overrides the environment, the environment `config.toml`, and the file the default.
//!
//! Loading settings neither creates nor changes files.

use std::fmt::{self, Display};
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use agents::Catalog;
use serde::Deserialize;
use wire::PermissionPolicy;

use crate::cli::Flags;

mod values;

use values::Parsed;
pub(crate) use values::{
    AgentTable, CommandLine, GatewayPort, Host, IdleTimeout, Milliseconds, Port, StallAction,
};

#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error("{variable} is `{value}`: {reason}.")]
    Environment {
        variable: &'static str,
        value: String,
        reason: String,
    },
    #[error("{}, line {line}: {reason}. Correct that line, or remove it to use the default.", path.display())]
    File {
        path: PathBuf,
        line: usize,
        reason: String,
    },
    #[error("Cannot read {}: {source}. Make it readable, or remove it.", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error(
        "There is no home directory for the data directory. Choose one with --data-dir or LIMINAL_DATA_DIR."
    )]
    NoHome,
    #[error(
        "config.toml defines the agent id `{0}` twice, or it is the id of a built-in agent. Choose another id."
    )]
    AgentTwice(String),
    #[error(
        "The browser and gateway listeners are both set to port {0}. Change one with --port or --gateway-port."
    )]
    SamePort(u16),
}

/// The source of a setting's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Flag,
    Environment(&'static str),
    File,
    Default,
}

impl Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("flag"),
            Self::Environment(variable) => f.write_str(variable),
            Self::File => f.write_str("config.toml"),
            Self::Default => f.write_str("default"),
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Setting<T> {
    pub(crate) value: T,
    pub(crate) source: Source,
}

// No `Debug` outside tests: it contains the token.
#[cfg_attr(test, derive(Debug))]
pub(crate) struct Settings {
    pub(crate) data_dir: Setting<PathBuf>,
    pub(crate) host: Setting<Host>,
    pub(crate) port: Setting<Port>,
    pub(crate) gateway_port: Setting<GatewayPort>,
    pub(crate) permissions: Setting<PermissionPolicy>,
    pub(crate) stall_action: Setting<StallAction>,
    pub(crate) open: Setting<bool>,
    pub(crate) claude_acp_cmd: Setting<CommandLine>,
    pub(crate) codex_acp_cmd: Setting<CommandLine>,
    pub(crate) acp_start_timeout_ms: Setting<Milliseconds>,
    pub(crate) acp_prompt_timeout_ms: Setting<Milliseconds>,
    pub(crate) acp_idle_timeout_ms: Setting<IdleTimeout>,
    pub(crate) warm_start: Setting<bool>,
    /// Agents that `config.toml` adds to the catalog.
    pub(crate) agents: Vec<AgentTable>,
    pub(crate) token: Option<String>,
    pub(crate) home: Option<PathBuf>,
}

/// `config.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    host: Option<Parsed<Host>>,
    port: Option<Parsed<Port>>,
    gateway_port: Option<Parsed<GatewayPort>>,
    permissions: Option<Parsed<PermissionPolicy>>,
    stall_action: Option<Parsed<StallAction>>,
    open: Option<bool>,
    claude_acp_cmd: Option<Parsed<CommandLine>>,
    codex_acp_cmd: Option<Parsed<CommandLine>>,
    acp_start_timeout_ms: Option<Parsed<Milliseconds>>,
    acp_prompt_timeout_ms: Option<Parsed<Milliseconds>>,
    acp_idle_timeout_ms: Option<Parsed<IdleTimeout>>,
    warm_start: Option<bool>,
    #[serde(default)]
    agents: Vec<AgentTable>,
}

/// All environment variables that are settings.
pub(crate) const VARIABLES: [&str; 15] = [
    "LIMINAL_DATA_DIR",
    "LIMINAL_HOST",
    "LIMINAL_PORT",
    "LIMINAL_GATEWAY_PORT",
    "LIMINAL_PERMISSIONS",
    "LIMINAL_STALL_ACTION",
    "LIMINAL_OPEN",
    "LIMINAL_TOKEN",
    "LIMINAL_LOG",
    "CLAUDE_ACP_CMD",
    "CODEX_ACP_CMD",
    "ACP_START_TIMEOUT_MS",
    "ACP_PROMPT_TIMEOUT_MS",
    "ACP_IDLE_TIMEOUT_MS",
    "LIMINAL_WARM_START",
];

/// Looks up an environment variable, in the process or in a test.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

impl Settings {
    pub(crate) fn load(
        flags: &Flags,
        home: Option<PathBuf>,
        env: Environment,
    ) -> Result<Self, ConfigError> {
        // Shells and service files clear a variable by setting it to the empty string.
        let env = |variable: &str| env(variable).filter(|value| !value.is_empty());
        let data_dir = data_dir(flags, home.as_deref(), &env)?;
        let file = read_file(&data_dir.value.join("config.toml"))?;
        let env: Environment = &env;
        let settings = Self {
            host: pick(
                flags.host,
                env,
                "LIMINAL_HOST",
                file.host,
                Host(Ipv4Addr::LOCALHOST.into()),
            )?,
            port: pick(flags.port, env, "LIMINAL_PORT", file.port, Port(3000))?,
            gateway_port: pick(
                flags.gateway_port,
                env,
                "LIMINAL_GATEWAY_PORT",
                file.gateway_port,
                GatewayPort(Some(18789)),
            )?,
            permissions: pick(
                flags.permissions,
                env,
                "LIMINAL_PERMISSIONS",
                file.permissions,
                PermissionPolicy::Allow,
            )?,
            stall_action: pick(
                flags.stall_action,
                env,
                "LIMINAL_STALL_ACTION",
                file.stall_action,
                StallAction::Show,
            )?,
            open: pick(
                flags.no_open.then_some(false),
                env,
                "LIMINAL_OPEN",
                file.open.map(Parsed),
                true,
            )?,
            claude_acp_cmd: pick(
                None,
                env,
                "CLAUDE_ACP_CMD",
                file.claude_acp_cmd,
                CommandLine::default(),
            )?,
            codex_acp_cmd: pick(
                None,
                env,
                "CODEX_ACP_CMD",
                file.codex_acp_cmd,
                CommandLine::default(),
            )?,
            acp_start_timeout_ms: pick(
                None,
                env,
                "ACP_START_TIMEOUT_MS",
                file.acp_start_timeout_ms,
                Milliseconds(15_000),
            )?,
            acp_prompt_timeout_ms: pick(
                None,
                env,
                "ACP_PROMPT_TIMEOUT_MS",
                file.acp_prompt_timeout_ms,
                Milliseconds(30_000),
            )?,
            acp_idle_timeout_ms: pick(
                None,
                env,
                "ACP_IDLE_TIMEOUT_MS",
                file.acp_idle_timeout_ms,
                IdleTimeout(Some(Milliseconds(30 * 60_000))),
            )?,
            warm_start: pick(
                None,
                env,
                "LIMINAL_WARM_START",
                file.warm_start.map(Parsed),
                true,
            )?,
            agents: file.agents,
            token: env("LIMINAL_TOKEN"),
            data_dir,
            home,
        };
        let Port(port) = settings.port.value;
        if port != 0 && settings.gateway_port.value == GatewayPort(Some(port)) {
            return Err(ConfigError::SamePort(port));
        }
        let mut ids = vec![Catalog::CLAUDE_CODE, Catalog::CODEX, Catalog::LIMINAL];
        for agent in &settings.agents {
            if ids.contains(&agent.id.0.as_str()) {
                return Err(ConfigError::AgentTwice(agent.id.0.clone()));
            }
            ids.push(&agent.id.0);
        }
        Ok(settings)
    }

    /// The settings as name, value and source, for `liminal doctor`. Without the token.
    pub(crate) fn rows(&self) -> Vec<(&'static str, String, Source)> {
        fn row<T: Display>(
            name: &'static str,
            setting: &Setting<T>,
        ) -> (&'static str, String, Source) {
            (name, setting.value.to_string(), setting.source)
        }
        vec![
            (
                "data_dir",
                self.data_dir.value.display().to_string(),
                self.data_dir.source,
            ),
            row("host", &self.host),
            row("port", &self.port),
            row("gateway_port", &self.gateway_port),
            row("permissions", &self.permissions),
            row("stall_action", &self.stall_action),
            row("open", &self.open),
            row("claude_acp_cmd", &self.claude_acp_cmd),
            row("codex_acp_cmd", &self.codex_acp_cmd),
            row("acp_start_timeout_ms", &self.acp_start_timeout_ms),
            row("acp_prompt_timeout_ms", &self.acp_prompt_timeout_ms),
            row("acp_idle_timeout_ms", &self.acp_idle_timeout_ms),
            row("warm_start", &self.warm_start),
        ]
    }
}

fn pick<T: FromStr<Err: Display>>(
    flag: Option<T>,
    env: Environment,
    variable: &'static str,
    file: Option<Parsed<T>>,
    default: T,
) -> Result<Setting<T>, ConfigError> {
    if let Some(value) = flag {
        return Ok(Setting {
            value,
            source: Source::Flag,
        });
    }
    if let Some(text) = env(variable) {
        let value = text
            .parse()
            .map_err(|reason: T::Err| ConfigError::Environment {
                variable,
                value: text.clone(),
                reason: reason.to_string(),
            })?;
        return Ok(Setting {
            value,
            source: Source::Environment(variable),
        });
    }
    Ok(match file {
        Some(Parsed(value)) => Setting {
            value,
            source: Source::File,
        },
        None => Setting {
            value: default,
            source: Source::Default,
        },
    })
}

pub(crate) fn data_dir(
    flags: &Flags,
    home: Option<&Path>,
    env: Environment,
) -> Result<Setting<PathBuf>, ConfigError> {
    let (typed, source) = match (&flags.data_dir, env("LIMINAL_DATA_DIR")) {
        (Some(path), _) => (path.clone(), Source::Flag),
        (None, Some(path)) => (path.into(), Source::Environment("LIMINAL_DATA_DIR")),
        (None, None) => (
            home.ok_or(ConfigError::NoHome)?.join(".liminal-builder"),
            Source::Default,
        ),
    };
    // Service files and .env files do not expand `~`; a directory of that name is never intended.
    let expanded = match (typed.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => typed,
    };
    let value = std::path::absolute(&expanded).unwrap_or(expanded);
    Ok(Setting { value, source })
}

fn read_file(path: &Path) -> Result<File, ConfigError> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(File::default());
        }
        // Opening the data directory reports an unreadable directory with a better message.
        Err(_)
            if path
                .parent()
                .is_some_and(|folder| folder.read_dir().is_err()) =>
        {
            return Ok(File::default());
        }
        Err(source) => {
            return Err(ConfigError::Read {
                path: path.to_owned(),
                source,
            });
        }
    };
    toml::from_str(&text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start).min(text.len());
        ConfigError::File {
            path: path.to_owned(),
            line: text.as_bytes()[..start]
                .iter()
                .filter(|byte| **byte == b'\n')
                .count()
                + 1,
            reason: error.message().trim_end_matches('.').replace('\n', ", "),
        }
    })
}

#[cfg(test)]
mod tests;
