//! Settings: a flag overrides the environment, the environment `config.toml`, and the file the default.
//!
//! `table` lists all settings; `reference` describes them in the help and in docs/configuration.md; `agent_settings`
//! are those of the built-in agent, which runs in a process of its own.
//!
//! Loading settings neither creates nor changes files.

use std::fmt::{self, Display};
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use crate::cli::Flags;
use agents::Catalog;
use store::CleaningRules;

mod agent_settings;
mod reference;
mod table;
mod values;

pub(crate) use agent_settings::AgentSettings;
pub(crate) use reference::{environment_help, flag_help, reference};
pub(crate) use table::Settings;
use table::{File, table};
use values::{Count, Parsed};
pub(crate) use values::{GatewayPort, Host, LogFilter, Port, StallAction};

const DAY_SECONDS: u64 = 24 * 60 * 60;

#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error("{setting} is `{value}`: {reason}.")]
    Value {
        /// The variable, or the key with its file.
        setting: String,
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

/// All environment variables that are settings.
pub(crate) fn variables() -> impl Iterator<Item = &'static str> {
    table().into_iter().map(|row| row.variable)
}

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
        let settings = Self::choose(flags, env, file, data_dir, home)?;
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
}

impl Settings {
    pub(crate) fn cleaning_rules(&self) -> CleaningRules {
        let unless_zero = |count: Count| Some(count.0).filter(|count| *count > 0);
        CleaningRules {
            age: unless_zero(self.trash_days.value)
                .map(|days| Duration::from_secs(days * DAY_SECONDS)),
            bytes_max: unless_zero(self.trash_max_mb.value).map(|size| size << 20),
        }
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
        let value = text.parse().map_err(|reason: T::Err| ConfigError::Value {
            setting: variable.to_owned(),
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
