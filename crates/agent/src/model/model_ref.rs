//! Which model, as `provider/model`, and where it is found.

use std::fmt::{self, Display};

use genai::adapter::AdapterKind;
use genai::resolver::{AuthData, Endpoint};
use genai::{ModelIden, ServiceTarget};

use crate::settings::Environment;

const ANTHROPIC_URL: &str = "https://api.anthropic.com";
const OPENAI_URL: &str = "https://api.openai.com/v1";
/// Where Ollama listens.
const LOCAL_URL: &str = "http://127.0.0.1:11434/v1";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Provider {
    Anthropic,
    OpenAi,
    Compatible,
}

/// A model that can be used: we know its provider, and have the key it needs.
#[derive(Clone, PartialEq, Eq)]
pub struct ModelRef {
    pub(super) provider: Provider,
    name: String,
    url: String,
    key: String,
}

// By hand: the key must not end up in a log.
impl fmt::Debug for ModelRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ModelRef({self} at {})", self.url)
    }
}

impl Display for ModelRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let provider = match self.provider {
            Provider::Anthropic => "anthropic",
            Provider::OpenAi => "openai",
            Provider::Compatible => "openai-compatible",
        };
        write!(f, "{provider}/{}", self.name)
    }
}

impl ModelRef {
    /// Says what is missing if it cannot be used.
    pub fn parse(text: &str, env: Environment) -> Result<Self, String> {
        let (provider, name) = text
            .split_once('/')
            .filter(|(_, name)| !name.is_empty())
            .ok_or_else(|| {
                "a model is named as provider/model, such as anthropic/claude-sonnet-4-5".to_owned()
            })?;
        let needed = |variable: &str| env(variable).ok_or_else(|| format!("{variable} is not set"));
        let url =
            |variable: &str, default: &str| env(variable).unwrap_or_else(|| default.to_owned());
        let (provider, url, key) = match provider {
            "anthropic" => (
                Provider::Anthropic,
                url("ANTHROPIC_BASE_URL", ANTHROPIC_URL),
                needed("ANTHROPIC_API_KEY")?,
            ),
            "openai" => (
                Provider::OpenAi,
                url("OPENAI_BASE_URL", OPENAI_URL),
                needed("OPENAI_API_KEY")?,
            ),
            // A key goes only to the server it was meant for.
            "openai-compatible" => match (env("LIMINAL_AGENT_BASE_URL"), env("OPENAI_BASE_URL")) {
                (None, Some(url)) => (
                    Provider::Compatible,
                    url,
                    env("OPENAI_API_KEY").unwrap_or_default(),
                ),
                (ours, _) => (
                    Provider::Compatible,
                    ours.unwrap_or_else(|| LOCAL_URL.to_owned()),
                    env("LIMINAL_AGENT_API_KEY").unwrap_or_default(),
                ),
            },
            other => {
                return Err(format!(
                    "the provider `{other}` is not known; there are anthropic, openai and openai-compatible"
                ));
            }
        };
        if !url.starts_with("http://") && !url.starts_with("https://") {
            return Err(format!("`{url}` is no address of a server"));
        }
        Ok(Self {
            provider,
            name: name.to_owned(),
            url: endpoint(provider, &url),
            key,
        })
    }

    /// How messages call the other side.
    pub(super) fn whose(&self) -> String {
        match self.provider {
            Provider::Anthropic => "Anthropic".to_owned(),
            Provider::OpenAi => "OpenAI".to_owned(),
            Provider::Compatible => format!("The model server at {}", self.url),
        }
    }

    pub(super) fn key_variable(&self) -> &'static str {
        match self.provider {
            Provider::Anthropic => "ANTHROPIC_API_KEY",
            Provider::OpenAi => "OPENAI_API_KEY",
            Provider::Compatible => "LIMINAL_AGENT_API_KEY",
        }
    }

    /// How much it can take in; what is usual, as no provider says it.
    pub(super) fn context_tokens(&self) -> u64 {
        match self.provider {
            Provider::Anthropic => 200_000,
            Provider::OpenAi => 128_000,
            Provider::Compatible => 32_000,
        }
    }

    pub(super) fn target(&self) -> ServiceTarget {
        let kind = match self.provider {
            Provider::Anthropic => AdapterKind::Anthropic,
            Provider::OpenAi | Provider::Compatible => AdapterKind::OpenAI,
        };
        ServiceTarget {
            endpoint: Endpoint::from_owned(self.url.clone()),
            auth: AuthData::from_single(self.key.clone()),
            model: ModelIden::new(kind, self.name.clone()),
        }
    }
}

/// As `genai` wants it: with the version, and a slash behind it.
fn endpoint(provider: Provider, url: &str) -> String {
    let url = url.trim_end_matches('/');
    match provider {
        Provider::Anthropic if !url.ends_with("/v1") => format!("{url}/v1/"),
        _ => format!("{url}/"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str, set: &[(&str, &str)]) -> Result<ModelRef, String> {
        ModelRef::parse(text, &|name| {
            let found = set.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn a_reference_names_provider_model_and_server() {
        let model = parsed("anthropic/claude-x", &[("ANTHROPIC_API_KEY", "k")]).unwrap();
        assert_eq!(model.url, "https://api.anthropic.com/v1/");
        assert_eq!(model.to_string(), "anthropic/claude-x");
        let model = parsed(
            "openai/gpt-x",
            &[("OPENAI_API_KEY", "k"), ("OPENAI_BASE_URL", "http://h/v1/")],
        );
        assert_eq!(model.unwrap().url, "http://h/v1/");
        let model = parsed("openai-compatible/org/name:7b", &[]).unwrap();
        assert_eq!(model.url, "http://127.0.0.1:11434/v1/");
        assert_eq!(model.name, "org/name:7b");
    }

    #[test]
    fn what_is_missing_is_named() {
        assert!(
            parsed("anthropic/x", &[])
                .unwrap_err()
                .contains("ANTHROPIC_API_KEY")
        );
        assert!(
            parsed("openai/x", &[])
                .unwrap_err()
                .contains("OPENAI_API_KEY")
        );
        assert!(
            parsed("claude", &[])
                .unwrap_err()
                .contains("provider/model")
        );
        assert!(
            parsed("anthropic/", &[])
                .unwrap_err()
                .contains("provider/model")
        );
        assert!(parsed("acme/x", &[]).unwrap_err().contains("acme"));
        let ftp = [("LIMINAL_AGENT_BASE_URL", "ftp://h")];
        assert!(
            parsed("openai-compatible/x", &ftp)
                .unwrap_err()
                .contains("no address")
        );
    }

    #[test]
    fn a_key_goes_only_to_the_server_it_was_meant_for() {
        let set = [
            ("OPENAI_API_KEY", "secret"),
            ("LIMINAL_AGENT_BASE_URL", "http://other/v1"),
        ];
        assert_eq!(parsed("openai-compatible/x", &set).unwrap().key, "");
        let set = [
            ("OPENAI_API_KEY", "secret"),
            ("OPENAI_BASE_URL", "http://mine/v1"),
        ];
        assert_eq!(parsed("openai-compatible/x", &set).unwrap().key, "secret");
    }

    #[test]
    fn the_key_is_never_shown() {
        let model = parsed("anthropic/claude-x", &[("ANTHROPIC_API_KEY", "secret")]).unwrap();
        assert!(!format!("{model:?} {model}").contains("secret"));
    }
}
