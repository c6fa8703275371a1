//! A model reference, written as `provider/model`, with its server and key.

use std::fmt::{self, Display};

use genai::adapter::AdapterKind;
use genai::resolver::{AuthData, Endpoint};
use genai::{ModelIden, ServiceTarget};

use crate::settings::Environment;

const ANTHROPIC_URL: &str = "https://api.anthropic.com";
const OPENAI_URL: &str = "https://api.openai.com/v1";
/// Default address of Ollama.
const LOCAL_URL: &str = "http://127.0.0.1:11434/v1";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Provider {
    Anthropic,
    OpenAi,
    Compatible,
}

/// A usable model: its provider is known and its API key is set.
#[derive(Clone, PartialEq, Eq)]
pub struct ModelRef {
    pub(super) provider: Provider,
    name: String,
    url: String,
    key: String,
}

// Not derived, because a derived `Debug` would write the key to the log.
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
    /// Parses `provider/model` and reads the key and URL from the environment. The error says what is
    /// missing.
    pub fn parse(text: &str, env: Environment) -> Result<Self, String> {
        let (provider, name) = text
            .split_once('/')
            .filter(|(_, name)| !name.is_empty())
            .ok_or_else(|| {
                "expected provider/model, such as anthropic/claude-sonnet-4-5".to_owned()
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
            // A key is sent only to the server it was configured for.
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
                    "unknown provider `{other}`; use anthropic, openai or openai-compatible"
                ));
            }
        };
        if !url.starts_with("http://") && !url.starts_with("https://") {
            return Err(format!("`{url}` is not an http:// or https:// URL"));
        }
        Ok(Self {
            provider,
            name: name.to_owned(),
            url: endpoint(provider, &url),
            key,
        })
    }

    /// Name of the provider in messages to the user.
    pub(super) fn provider_name(&self) -> String {
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

    /// Assumed context size, since providers do not report it.
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

/// Formats a URL as `genai` expects it: with the API version and a trailing slash.
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
    fn model_reference_gives_provider_model_and_server() {
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
    fn parse_error_names_what_is_missing() {
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
                .contains("not an http://")
        );
    }

    #[test]
    fn key_is_sent_only_to_its_configured_server() {
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
    fn key_is_not_in_debug_or_display_output() {
        let model = parsed("anthropic/claude-x", &[("ANTHROPIC_API_KEY", "secret")]).unwrap();
        assert!(!format!("{model:?} {model}").contains("secret"));
    }
}
