//! The types of settings, with parsing, display and the message for an invalid value.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Deserializer};
use tracing_subscriber::filter::{LevelFilter, Targets};

/// One `[[agents]]` table of `config.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentTable {
    #[serde(deserialize_with = "parsed")]
    pub(crate) id: AgentId,
    name: Option<String>,
    badge: Option<String>,
    #[serde(deserialize_with = "parsed")]
    command: AgentCommand,
    #[serde(default)]
    pub(crate) args: Vec<String>,
    #[serde(default)]
    pub(crate) env: BTreeMap<String, String>,
    /// Working directory of the agent process; the home directory if not set.
    #[serde(default, deserialize_with = "parsed_if_any")]
    cwd: Option<Folder>,
}

/// A key of `[[agents]]`, for the documentation.
pub(crate) struct AgentKey {
    pub(crate) key: &'static str,
    pub(crate) values: &'static str,
    /// `None` for a required key.
    pub(crate) default: Option<&'static str>,
    pub(crate) about: &'static str,
}

/// The fields of `AgentTable`.
pub(crate) const AGENT_KEYS: [AgentKey; 7] = [
    AgentKey {
        key: "id",
        values: "1 to 32 lower-case letters, digits or hyphens",
        default: None,
        about: "Identifies the agent, also as the first part of its sessions' ids; different from every other agent's",
    },
    AgentKey {
        key: "name",
        values: "text",
        default: Some("the id"),
        about: "Name in the agent list",
    },
    AgentKey {
        key: "badge",
        values: "up to 3 letters or digits",
        default: Some("two letters of the name"),
        about: "Mark of its sessions",
    },
    AgentKey {
        key: "command",
        values: "a command line, or the path of an existing file",
        default: None,
        about: "Starts the agent, which must speak ACP over standard input and output. It is split into words like in \
                a shell, but no shell runs it",
    },
    AgentKey {
        key: "args",
        values: "array of text",
        default: Some("none"),
        about: "More arguments, after those in `command`; not split",
    },
    AgentKey {
        key: "env",
        values: "table of text",
        default: Some("none"),
        about: "Environment variables, in addition to the server's",
    },
    AgentKey {
        key: "cwd",
        values: "an absolute path, or one that starts with `~/`",
        default: Some("the home directory"),
        about: "Working directory of the agent process",
    },
];

/// The words of an agent's command line.
#[derive(Debug, Clone)]
struct AgentCommand(Vec<String>);

impl FromStr for AgentCommand {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // A path may contain spaces and quotes.
        if Path::new(text).is_absolute() && Path::new(text).is_file() {
            return Ok(Self(vec![text.to_owned()]));
        }
        text.parse().map(|CommandLine(words)| Self(words))
    }
}

/// An absolute path, or one that starts with `~`.
#[derive(Debug, Clone)]
struct Folder(PathBuf);

impl FromStr for Folder {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let path = PathBuf::from(text);
        match path.is_absolute() || path.starts_with("~") {
            true => Ok(Self(path)),
            false => Err("it must be an absolute path or start with `~/`"),
        }
    }
}

impl AgentTable {
    pub(crate) fn cwd(&self, home: Option<&Path>) -> Option<PathBuf> {
        let Folder(path) = self.cwd.as_ref()?;
        Some(match (path.strip_prefix("~"), home) {
            (Ok(rest), Some(home)) => home.join(rest),
            _ => path.clone(),
        })
    }

    /// The program and all its arguments.
    pub(crate) fn words(&self) -> Vec<String> {
        [self.command.0.as_slice(), self.args.as_slice()].concat()
    }

    pub(crate) fn name(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.id.0.clone())
    }

    /// The configured badge, at most three characters, or the first two letters of the name.
    pub(crate) fn badge(&self) -> String {
        let chosen = self.badge.as_ref().filter(|badge| !badge.trim().is_empty());
        let source = chosen
            .cloned()
            .unwrap_or_else(|| self.name().to_uppercase());
        source
            .chars()
            .filter(|c| c.is_alphanumeric())
            .take(if chosen.is_some() { 3 } else { 2 })
            .collect()
    }
}

fn parsed<'de, D: Deserializer<'de>, T: FromStr<Err: Display>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Parsed::deserialize(deserializer)?.0)
}

fn parsed_if_any<'de, D: Deserializer<'de>, T: FromStr<Err: Display>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Ok(Some(Parsed::deserialize(deserializer)?.0))
}

/// The id of an agent, which is the part of a session id before the colon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentId(pub(super) String);

impl FromStr for AgentId {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fits = (1..=32).contains(&text.len());
        let plain = text
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
        match fits && plain {
            true => Ok(Self(text.to_owned())),
            false => Err("it must be 1 to 32 lower-case letters, digits or hyphens"),
        }
    }
}

impl Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A value of `config.toml` written as a string, a number or a boolean.
#[derive(Debug)]
pub(super) struct Parsed<T>(pub(super) T);

impl<'de, T: FromStr<Err: Display>> Deserialize<'de> for Parsed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected a string, a number or a boolean")]
        enum Scalar {
            Text(String),
            Number(i64),
            Boolean(bool),
        }
        let text = match Scalar::deserialize(deserializer)? {
            Scalar::Text(text) => text,
            Scalar::Number(number) => number.to_string(),
            Scalar::Boolean(boolean) => boolean.to_string(),
        };
        text.parse()
            .map(Self)
            .map_err(|reason| serde::de::Error::custom(format!("`{text}` is not valid, {reason}")))
    }
}

/// The IP address to listen on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Host(pub(crate) IpAddr);

impl FromStr for Host {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "localhost" => Ok(Self(Ipv4Addr::LOCALHOST.into())),
            _ => text
                .parse()
                .map(Self)
                .map_err(|_| "it must be an IP address or `localhost`"),
        }
    }
}

impl Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A port; 0 stands for any free port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Port(pub(crate) u16);

impl FromStr for Port {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse()
            .map(Self)
            .map_err(|_| "it must be a port from 0 to 65535")
    }
}

impl Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A port, or `None` for `off`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GatewayPort(pub(crate) Option<u16>);

impl FromStr for GatewayPort {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "off" => Ok(Self(None)),
            _ => text
                .parse()
                .map(|port| Self(Some(port)))
                .map_err(|_| "it must be a port from 0 to 65535, or `off`"),
        }
    }
}

impl Display for GatewayPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(port) => port.fmt(f),
            None => f.write_str("off"),
        }
    }
}

/// What happens to a turn whose agent has sent nothing for `acp_prompt_timeout_ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StallAction {
    Show,
    Restart,
}

impl FromStr for StallAction {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "show" => Ok(Self::Show),
            "restart" => Ok(Self::Restart),
            _ => Err("it must be `show` or `restart`"),
        }
    }
}

impl Display for StallAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Show => "show",
            Self::Restart => "restart",
        })
    }
}

/// A command line split into words as a shell does; empty if not set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CommandLine(Vec<String>);

impl CommandLine {
    pub(crate) fn words(&self) -> Option<Vec<String>> {
        (!self.0.is_empty()).then(|| self.0.clone())
    }
}

impl FromStr for CommandLine {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match shlex::split(text) {
            Some(words) if !words.is_empty() => Ok(Self(words)),
            Some(_) => Err("it contains no command"),
            None => Err("it has an unclosed quote"),
        }
    }
}

impl Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [] => f.write_str("(search PATH)"),
            words => f.write_str(&words.join(" ")),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Milliseconds(pub(crate) u64);

impl Milliseconds {
    pub(crate) fn duration(self) -> std::time::Duration {
        std::time::Duration::from_millis(self.0)
    }
}

impl FromStr for Milliseconds {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse() {
            Ok(number) if number > 0 => Ok(Self(number)),
            _ => Err("it must be a number of milliseconds above 0"),
        }
    }
}

impl Display for Milliseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How long an idle agent process is kept; `None` (`off`) for no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IdleTimeout(pub(crate) Option<Milliseconds>);

impl FromStr for IdleTimeout {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "off" | "0" => Ok(Self(None)),
            text => match text.parse() {
                Ok(time) => Ok(Self(Some(time))),
                Err(_) => Err("it must be a number of milliseconds or `off`"),
            },
        }
    }
}

impl Display for IdleTimeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(time) => time.fmt(f),
            None => f.write_str("off"),
        }
    }
}

/// A number, 0 included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Count(pub(crate) u64);

impl FromStr for Count {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number: Result<u32, _> = text.trim().parse();
        number
            .map(|number| Self(number.into()))
            .map_err(|_| "it must be a whole number from 0 to 4294967295")
    }
}

impl Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A text that the built-in agent interprets; not set, it is shown as the words that describe the default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) value: Option<String>,
    shown_as: &'static str,
}

impl Text {
    pub(super) const fn shown_as(shown_as: &'static str) -> Self {
        Self {
            value: None,
            shown_as,
        }
    }
}

impl FromStr for Text {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self {
            value: Some(text.to_owned()),
            shown_as: "",
        })
    }
}

impl Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.value.as_deref().unwrap_or(self.shown_as))
    }
}

/// A text that is never shown. The built-in agent reads it by itself.
#[derive(Clone, Default)]
pub(crate) struct Secret {
    is_set: bool,
}

impl FromStr for Secret {
    type Err = std::convert::Infallible;

    fn from_str(_: &str) -> Result<Self, Self::Err> {
        Ok(Self { is_set: true })
    }
}

impl Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_set { "(set)" } else { "" })
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

/// Which events are logged.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LogFilter {
    pub(crate) targets: Targets,
    text: String,
}

impl LogFilter {
    pub(super) fn server() -> Self {
        Self::new("info", Targets::new().with_default(LevelFilter::INFO))
    }

    pub(super) fn agent() -> Self {
        // The constant is valid: a unit test parses it.
        let targets = agent::LOG_DEFAULT.parse().unwrap_or_default();
        Self::new(agent::LOG_DEFAULT, targets)
    }

    fn new(text: &str, targets: Targets) -> Self {
        Self {
            targets,
            text: text.to_owned(),
        }
    }
}

impl FromStr for LogFilter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse() {
            Ok(targets) => Ok(Self::new(text, targets)),
            Err(reason) => Err(format!(
                "{reason}; use a level such as `debug`, or a filter such as `hub=debug,info`"
            )),
        }
    }
}

impl Display for LogFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
