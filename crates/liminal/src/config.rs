//! Settings: a flag wins over the environment, the environment over `config.toml`, the file over the default.
//!
//! Nothing here creates or changes anything on disk.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use hub::agents::Catalog;
use serde::{Deserialize, Deserializer};
use wire::PermissionPolicy;

use crate::cli::Flags;

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
    #[error("{} could not be read: {source}. Make it readable, or remove it.", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error(
        "There is no home directory for the data. Choose a place with --data-dir or LIMINAL_DATA_DIR."
    )]
    NoHome,
    #[error(
        "config.toml describes the agent `{0}` twice, or one that is always there. Choose another id."
    )]
    AgentTwice(String),
    #[error(
        "The browser door and the gateway door both want port {0}. Choose another with --port or --gateway-port."
    )]
    SamePort(u16),
}

/// Where a setting's value comes from.
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

// No `Debug` outside tests: it holds the token.
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
    /// More agents than those we know, from `config.toml`.
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
    #[serde(default)]
    agents: Vec<AgentTable>,
}

/// Every variable that is a setting.
pub(crate) const VARIABLES: [&str; 13] = [
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
];

/// The process environment, or a test's.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

impl Settings {
    pub(crate) fn load(
        flags: &Flags,
        home: Option<PathBuf>,
        env: Environment,
    ) -> Result<Self, ConfigError> {
        // An empty variable is an unset one: that is how shells and service files clear them.
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
            agents: file.agents,
            token: env("LIMINAL_TOKEN"),
            data_dir,
            home,
        };
        let Port(port) = settings.port.value;
        if port != 0 && settings.gateway_port.value == GatewayPort(Some(port)) {
            return Err(ConfigError::SamePort(port));
        }
        let mut ids = vec![Catalog::CLAUDE_CODE, Catalog::CODEX, "liminal"];
        for agent in &settings.agents {
            if ids.contains(&agent.id.0.as_str()) {
                return Err(ConfigError::AgentTwice(agent.id.0.clone()));
            }
            ids.push(&agent.id.0);
        }
        Ok(settings)
    }

    /// Each setting as a row for a person: name, value, source. Never the token.
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

fn data_dir(
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
    // Service files and .env files do not expand `~`; a directory of that name is never meant.
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
        // A directory that cannot be looked into has a better message of its own.
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

/// One `[[agents]]` of the file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentTable {
    #[serde(deserialize_with = "parsed")]
    pub(crate) id: AgentId,
    name: Option<String>,
    badge: Option<String>,
    pub(crate) command: String,
    #[serde(default)]
    pub(crate) args: Vec<String>,
    #[serde(default)]
    pub(crate) env: BTreeMap<String, String>,
}

impl AgentTable {
    pub(crate) fn name(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.id.0.clone())
    }

    /// Two letters of its name, unless it has chosen its own.
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

/// What stands before the colon of a session's id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentId(String);

impl FromStr for AgentId {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fits = (1..=32).contains(&text.len());
        let plain = text
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
        match fits && plain {
            true => Ok(Self(text.to_owned())),
            false => Err("it must be 1 to 32 small letters, digits or hyphens"),
        }
    }
}

impl Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A value of the file that is written as text, or as a number where that is natural.
#[derive(Debug)]
struct Parsed<T>(T);

impl<'de, T: FromStr<Err: Display>> Deserialize<'de> for Parsed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a text or a number is expected here")]
        enum TextOrNumber {
            Text(String),
            Number(i64),
        }
        let text = match TextOrNumber::deserialize(deserializer)? {
            TextOrNumber::Text(text) => text,
            TextOrNumber::Number(number) => number.to_string(),
        };
        text.parse().map(Self).map_err(|reason| {
            serde::de::Error::custom(format!("`{text}` is not usable here, {reason}"))
        })
    }
}

/// An address to listen on.
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

/// A port; 0 is any free one.
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

/// What happens to a turn whose agent has said nothing for a while.
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

/// A command line split into words as a shell would; empty when none was set.
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
            Some(_) => Err("it has no command"),
            None => Err("it has a quote that is never closed"),
        }
    }
}

impl Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [] => f.write_str("(look on PATH)"),
            words => f.write_str(&words.join(" ")),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Milliseconds(pub(crate) u64);

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

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use clap::Parser;

    use super::*;
    use crate::cli::Cli;

    struct Machine {
        home: tempfile::TempDir,
        env: HashMap<&'static str, &'static str>,
    }

    impl Machine {
        fn new() -> Self {
            Self {
                home: tempfile::tempdir().unwrap(),
                env: HashMap::new(),
            }
        }

        fn file(self, text: &str) -> Self {
            let dir = self.home.path().join(".liminal-builder");
            std::fs::create_dir_all(&dir).unwrap();
            std::fs::write(dir.join("config.toml"), text).unwrap();
            self
        }

        fn env(mut self, variable: &'static str, value: &'static str) -> Self {
            self.env.insert(variable, value);
            self
        }

        fn load(&self, args: &[&str]) -> Result<Settings, String> {
            let cli = Cli::try_parse_from([&["liminal"], args].concat())
                .map_err(|error| error.to_string())?;
            let env = |variable: &str| self.env.get(variable).map(|value| (*value).to_owned());
            Settings::load(&cli.flags, Some(self.home.path().to_owned()), &env)
                .map_err(|error| error.to_string())
        }
    }

    #[test]
    fn flag_beats_environment_beats_file_beats_default() {
        let port = |machine: Machine, args: &[&str]| {
            let port = machine.load(args).unwrap().port;
            (port.value.0, port.source)
        };
        let env = Source::Environment("LIMINAL_PORT");
        assert_eq!(port(Machine::new(), &[]), (3000, Source::Default));
        assert_eq!(
            port(Machine::new().file("port = 1"), &[]),
            (1, Source::File)
        );
        assert_eq!(
            port(
                Machine::new().file("port = 1").env("LIMINAL_PORT", "2"),
                &[]
            ),
            (2, env)
        );
        assert_eq!(
            port(
                Machine::new().file("port = 1").env("LIMINAL_PORT", "2"),
                &["--port", "3"]
            ),
            (3, Source::Flag)
        );
    }

    #[test]
    fn an_empty_variable_counts_as_unset() {
        assert_eq!(
            Machine::new()
                .env("LIMINAL_PORT", "")
                .load(&[])
                .unwrap()
                .port
                .source,
            Source::Default
        );
    }

    #[test]
    fn flags_may_stand_before_and_after_the_command() {
        for args in [["--port", "7", "serve"], ["serve", "--port", "7"]] {
            assert_eq!(Machine::new().load(&args).unwrap().port.value.0, 7);
        }
    }

    #[test]
    fn a_tilde_nobody_expanded_means_home() {
        let machine = Machine::new().env("LIMINAL_DATA_DIR", "~/elsewhere");
        assert_eq!(
            machine.load(&[]).unwrap().data_dir.value,
            machine.home.path().join("elsewhere")
        );
    }

    #[test]
    fn a_bad_line_is_named_with_its_number_and_reason() {
        let cases = [
            (
                "port = 1\nprot = 2\n",
                "line 2: unknown field `prot`, expected one of",
            ),
            (
                "\n\nport = \"x\"",
                "line 3: `x` is not usable here, it must be a port from 0 to 65535",
            ),
            (
                "port = 70000",
                "line 1: `70000` is not usable here, it must be a port from 0 to 65535",
            ),
            (
                "permissions = \"maybe\"",
                "line 1: `maybe` is not usable here, it must be `allow` or `ask`",
            ),
            (
                "host = \"example.org\"",
                "line 1: `example.org` is not usable here, it must be an IP address",
            ),
            (
                "gateway_port = \"on\"",
                "line 1: `on` is not usable here, it must be a port from 0 to 65535, or `off`",
            ),
            ("acp_start_timeout_ms = 0", "line 1: `0` is not usable here"),
            ("host = ", "line 1: "),
            ("port = 1\nport = 2", "line 2: duplicate key"),
        ];
        for (text, expected) in cases {
            let error = Machine::new().file(text).load(&[]).unwrap_err();
            assert!(error.contains(expected), "{text:?} gave {error}");
            assert!(
                error.ends_with("Correct that line, or remove it to use the default."),
                "{error}"
            );
            assert!(!error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn a_bad_variable_is_named_with_its_value() {
        let error = Machine::new()
            .env("LIMINAL_STALL_ACTION", "explode")
            .load(&[])
            .unwrap_err();
        assert_eq!(
            error,
            "LIMINAL_STALL_ACTION is `explode`: it must be `show` or `restart`."
        );
        let error = Machine::new()
            .env("CLAUDE_ACP_CMD", "run 'this")
            .load(&[])
            .unwrap_err();
        assert_eq!(
            error,
            "CLAUDE_ACP_CMD is `run 'this`: it has a quote that is never closed."
        );
    }

    #[test]
    fn a_command_line_is_split_like_a_shell_would() {
        let settings = Machine::new()
            .env("CODEX_ACP_CMD", "'/my tools/codex' --flag")
            .load(&[])
            .unwrap();
        assert_eq!(
            settings.codex_acp_cmd.value.words().unwrap(),
            ["/my tools/codex", "--flag"]
        );
    }

    #[test]
    fn more_agents_are_described_in_tables() {
        let file = "port = 1\n[[agents]]\nid = \"gemini\"\nname = \"Gemini CLI\"\ncommand = \"gemini\"\n\
            args = [\"--acp\"]\nenv = { KEY = \"v\" }\n[[agents]]\nid = \"own\"\nbadge = \"Own!\"\ncommand = \"own\"\n";
        let agents = Machine::new().file(file).load(&[]).unwrap().agents;
        let shown: Vec<_> = agents
            .iter()
            .map(|agent| (agent.name(), agent.badge()))
            .collect();
        assert_eq!(
            shown,
            [
                ("Gemini CLI".into(), "GE".into()),
                ("own".into(), "Own".into())
            ]
        );
        assert_eq!(
            (agents[0].args.as_slice(), agents[0].env["KEY"].as_str()),
            (["--acp".to_owned()].as_slice(), "v")
        );
    }

    #[test]
    fn an_agent_described_badly_or_twice_is_refused() {
        for (table, expected) in [
            (
                "id = \"Ge mini\"\ncommand = \"x\"",
                "line 2: `Ge mini` is not usable here, it must be 1 to 32 small letters",
            ),
            ("id = \"a\"", "line 1: missing field `command`"),
            (
                "id = \"a\"\ncommand = \"x\"\ncolour = 1",
                "line 4: unknown field `colour`",
            ),
            (
                "id = \"codex\"\ncommand = \"x\"",
                "describes the agent `codex` twice, or one that is always there",
            ),
            (
                "id = \"a\"\ncommand = \"x\"\n[[agents]]\nid = \"a\"\ncommand = \"y\"",
                "describes the agent `a` twice",
            ),
        ] {
            let error = Machine::new()
                .file(&format!("[[agents]]\n{table}"))
                .load(&[])
                .unwrap_err();
            assert!(error.contains(expected), "{table}: {error}");
        }
    }

    #[test]
    fn both_doors_on_one_port_are_refused() {
        let error = Machine::new()
            .load(&["--port", "5000", "--gateway-port", "5000"])
            .unwrap_err();
        assert!(error.contains("both want port 5000"), "{error}");
        assert!(
            Machine::new()
                .load(&["--port", "0", "--gateway-port", "0"])
                .is_ok()
        );
    }

    #[test]
    fn the_token_is_not_among_the_rows() {
        let settings = Machine::new()
            .env("LIMINAL_TOKEN", "canary-canary")
            .load(&[])
            .unwrap();
        assert_eq!(settings.token.as_deref(), Some("canary-canary"));
        assert!(
            settings
                .rows()
                .iter()
                .all(|(_, value, _)| !value.contains("canary"))
        );
    }
}
