//! The settings of the built-in agent: the environment, then the `agent_…` keys of `config.toml`.
//!
//! Not `Settings`: an editor starts the agent too, and an invalid setting of the server must not prevent that.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use super::{ConfigError, Environment, LogFilter, table};

const LOG: &str = "LIMINAL_AGENT_LOG";

pub(crate) struct AgentSettings<'a> {
    env: Environment<'a>,
    /// Keys and values of `config.toml`, by the variables that they stand for.
    file: BTreeMap<&'static str, (&'static str, String)>,
    /// Why `config.toml` was not read.
    pub(crate) problem: Option<String>,
}

impl<'a> AgentSettings<'a> {
    pub(crate) fn load(data_dir: &Path, env: Environment<'a>) -> Self {
        let (content, problem) = match read(&data_dir.join("config.toml")) {
            Ok(content) => (content, None),
            Err(reason) => (toml::Table::new(), Some(reason)),
        };
        let mut file = BTreeMap::new();
        for row in table().iter().filter(|row| row.is_of_agent()) {
            if let Some(key) = row.key
                && let Some(value) = content.get(key).and_then(as_text)
            {
                file.insert(row.variable, (key, value));
            }
        }
        Self { env, file, problem }
    }

    /// The value of a variable of the agent: that of the environment, or of `config.toml`.
    pub(crate) fn get(&self, variable: &str) -> Option<String> {
        let in_file = || self.file.get(variable).map(|(_, value)| value.clone());
        self.in_environment(variable).or_else(in_file)
    }

    pub(crate) fn log(&self) -> Result<LogFilter, ConfigError> {
        let Some(value) = self.get(LOG) else {
            return Ok(LogFilter::agent());
        };
        value
            .parse()
            .map_err(|reason| self.invalid(LOG, value, reason))
    }

    /// The error for a variable's value, with the place where the value is set.
    pub(crate) fn invalid(&self, variable: &str, value: String, reason: String) -> ConfigError {
        let setting = match (self.in_environment(variable), self.file.get(variable)) {
            (None, Some((key, _))) => format!("{key} in config.toml"),
            _ => variable.to_owned(),
        };
        ConfigError::Value {
            setting,
            value,
            reason,
        }
    }

    fn in_environment(&self, variable: &str) -> Option<String> {
        (self.env)(variable).filter(|value| !value.is_empty())
    }
}

fn read(path: &Path) -> Result<toml::Table, String> {
    match std::fs::read_to_string(path) {
        Ok(text) => text
            .parse()
            .map_err(|error: toml::de::Error| error.message().to_owned()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(toml::Table::new()),
        Err(error) => Err(error.to_string()),
    }
}

fn as_text(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        _ => None,
    }
}
