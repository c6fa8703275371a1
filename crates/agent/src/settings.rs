//! Settings of the agent, from its directories and the environment.

use std::path::PathBuf;

use crate::model::ModelRef;
use crate::personas::{self, Persona};
use crate::registry::ExpiryPolicy;

const IDLE_DAYS: u32 = 90;
const MAX_SESSIONS: usize = 10_000;

/// Paths that the agent uses.
#[derive(Debug, Clone)]
pub struct Directories {
    /// The session store.
    pub store: PathBuf,
    /// The file of personas.
    pub personas: PathBuf,
}

impl Directories {
    /// The paths inside a data directory.
    pub fn within(data_dir: &std::path::Path) -> Self {
        Self {
            store: data_dir.join("agent"),
            personas: data_dir.join("workspace/AGENTS.md"),
        }
    }
}

/// A setting with an invalid value, and why it is invalid.
#[derive(Debug, thiserror::Error)]
#[error("{variable} is `{value}`: {reason}.")]
pub struct SettingError {
    pub variable: &'static str,
    pub value: String,
    pub reason: String,
}

/// Lookup of an environment variable, which tests can replace.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Settings of the agent, from its personas and the environment.
#[derive(Debug)]
pub struct Settings {
    pub personas: Vec<Persona>,
    /// Models the user can choose from, the preferred one first. Empty if none is configured.
    pub models: Vec<ModelRef>,
    pub policy: ExpiryPolicy,
}

impl Settings {
    /// Reads the settings from the files in these directories and from the environment.
    pub fn load(directories: &Directories, env: Environment) -> Result<Self, SettingError> {
        // An empty variable counts as unset, because shells and service files clear variables this way.
        let env = &|variable: &str| env(variable).filter(|value| !value.is_empty());
        let personas = personas::read(&directories.personas);
        let listed = env("LIMINAL_AGENT_MODEL").unwrap_or_default();
        let mut models: Vec<ModelRef> = Vec::new();
        for name in listed
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty())
        {
            let model = ModelRef::parse(name, env).map_err(|reason| SettingError {
                variable: "LIMINAL_AGENT_MODEL",
                value: listed.clone(),
                reason,
            })?;
            models.push(model);
        }
        for name in personas
            .iter()
            .filter_map(|persona| persona.model.as_deref())
        {
            match ModelRef::parse(name, env) {
                Ok(model) => models.push(model),
                // A persona whose model has no key must not prevent the start.
                Err(reason) => {
                    tracing::warn!(model = name, reason, "cannot use the model of a persona")
                }
            }
        }
        let mut seen = std::collections::HashSet::new();
        models.retain(|model| seen.insert(model.to_string()));
        Ok(Self {
            personas,
            models,
            policy: ExpiryPolicy {
                idle_days: number(env, "LIMINAL_AGENT_SESSION_IDLE_DAYS", IDLE_DAYS)?,
                max_sessions: number(env, "LIMINAL_AGENT_SESSION_MAX", MAX_SESSIONS)?,
            },
        })
    }

    pub(crate) fn persona(&self, name: Option<&str>) -> &Persona {
        let named = |persona: &&Persona| Some(persona.name.as_str()) == name;
        // `personas::read` never returns an empty list.
        self.personas
            .iter()
            .find(named)
            .unwrap_or(&self.personas[0])
    }

    /// The model of a session: its own choice, else its persona's, else the first.
    pub(crate) fn model(&self, chosen: Option<&str>, persona: &Persona) -> Option<&ModelRef> {
        let named = |name: &str| self.models.iter().find(|model| model.to_string() == name);
        chosen
            .and_then(named)
            .or_else(|| persona.model.as_deref().and_then(named))
            .or_else(|| self.models.first())
    }
}

fn number<T: std::str::FromStr>(
    env: Environment,
    variable: &'static str,
    default: T,
) -> Result<T, SettingError> {
    let Some(value) = env(variable) else {
        return Ok(default);
    };
    value.trim().parse().map_err(|_| SettingError {
        variable,
        value,
        reason: "it must be a whole number, or 0 for no limit".to_owned(),
    })
}
