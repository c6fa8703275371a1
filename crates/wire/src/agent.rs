use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// One agent of the catalog, as shown to the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct AgentSummary {
    /// Agent id, the part of a session id before the colon, such as `claude-code`.
    pub cli_type: String,
    pub name: String,
    /// Two-letter abbreviation for narrow layouts.
    pub badge: String,
    /// One-line description.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub about: Option<String>,
    /// Whether a command that starts the agent was found on this machine, including one that downloads it
    /// first.
    pub found: bool,
    pub readiness: AgentReadiness,
    /// Why the agent is `broken`: the last lines of the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub problem: Option<String>,
    /// Message if this machine's Node.js is too old for the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub node: Option<String>,
    pub status: AgentState,
    /// Version that the agent reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub version: Option<String>,
    /// Sign-in methods that the agent reported.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[ts(as = "Option<Vec<SignInMethod>>", optional)]
    pub sign_in: Vec<SignInMethod>,
    /// Whether the agent comes from the list of installable agents rather than the built-in catalog.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[ts(as = "Option<bool>", optional)]
    pub more: bool,
    /// Command that installs or reinstalls the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub install: Option<String>,
    /// Why the agent cannot be installed here, and what to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub cannot_install: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[ts(as = "Option<bool>", optional)]
    pub installing: bool,
}

/// Whether a session with the agent can start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, TS)]
#[serde(rename_all = "kebab-case")]
pub enum AgentReadiness {
    Ready,
    /// The agent's last response required a sign-in.
    NeedsLogin,
    NotInstalled,
    /// The last attempt to start the agent failed.
    Broken,
}

/// State of an agent installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "lowercase")]
pub enum InstallState {
    Running,
    Installed,
    Cancelled,
    Failed,
}

/// Memory use of an agent process and its descendants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase")]
pub struct AgentMemory {
    pub cli_type: String,
    /// Missing if the system does not report it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "number")]
    pub bytes: Option<u64>,
    pub processes: u32,
}

/// One sign-in method of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct SignInMethod {
    pub id: String,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub description: Option<String>,
    pub kind: SignInKind,
    /// Command that a `terminal` method runs, if the agent reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub command: Option<String>,
    /// Environment variables that an `env-var` method needs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[ts(as = "Option<Vec<String>>", optional)]
    pub variables: Vec<String>,
}

/// Where a sign-in takes place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "kebab-case")]
pub enum SignInKind {
    /// The agent handles the sign-in itself.
    Agent,
    /// The user signs in with a command of the agent in a terminal.
    Terminal,
    /// The agent is started with credentials in environment variables.
    EnvVar,
}

/// Progress of a sign-in, for the window in which the user signs in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[serde(
    tag = "type",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
/// Progress of a sign-in.
pub enum SignInShown {
    /// Further output of the sign-in command.
    Output { text: String },
    /// A page that the agent asks the user to open.
    Link { message: String, url: String },
    /// The agent no longer needs the page of the last `Link`.
    LinkClosed,
}

/// Connection state of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "lowercase")]
pub enum AgentState {
    /// Not started yet.
    Idle,
    Starting,
    Connected,
    Disconnected,
    Reconnecting,
}

/// Approval policy: how permission requests of an agent are answered by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "lowercase")]
pub enum PermissionPolicy {
    Allow,
    Ask,
}

impl FromStr for PermissionPolicy {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "allow" => Ok(Self::Allow),
            "ask" => Ok(Self::Ask),
            _ => Err("it must be `allow` or `ask`"),
        }
    }
}

impl fmt::Display for PermissionPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
        })
    }
}

/// Sender of a protocol message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "lowercase")]
pub enum TrafficSide {
    Agent,
    /// This server, which is the agent's ACP client.
    Client,
}

/// One protocol message between the server and an agent, with secrets removed and long content cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct TrafficFrame {
    /// Sequence number from 1 since recording was turned on, in wire order.
    #[ts(type = "number")]
    pub number: u64,
    /// Unix time in milliseconds.
    #[ts(type = "number")]
    pub at: i64,
    pub from: TrafficSide,
    /// Type of the message, such as `session/prompt` or `answer to session/prompt`.
    pub label: String,
    /// Original length in bytes.
    pub bytes: u32,
    /// Whether content was cut out.
    pub cut: bool,
    /// The message as JSON. Not valid JSON if the text as a whole had to be cut.
    pub text: String,
}
