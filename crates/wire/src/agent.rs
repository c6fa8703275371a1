use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// One agent of the catalog, as a person choosing between them sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct AgentSummary {
    /// The first half of a session's canonical id, such as `claude-code`.
    pub cli_type: String,
    pub name: String,
    /// Two letters for narrow places.
    pub badge: String,
    /// What it is, in a line.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub about: Option<String>,
    /// Whether a command to start it was found on this machine; one that fetches it first counts.
    pub found: bool,
    pub readiness: AgentReadiness,
    /// Why it is broken: its last words.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub problem: Option<String>,
    /// That this machine's Node is too old for it, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub node: Option<String>,
    pub status: AgentState,
    /// Its version, once it has said one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub version: Option<String>,
    /// The ways it knows to sign in, once it has said them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[ts(as = "Option<Vec<SignInMethod>>", optional)]
    pub sign_in: Vec<SignInMethod>,
    /// Whether it is of the list of agents that can be brought here, and not one that is always offered.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[ts(as = "Option<bool>", optional)]
    pub more: bool,
    /// The command that brings it here, also anew.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub install: Option<String>,
    /// What is missing to bring it here, and how to get that.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub cannot_install: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[ts(as = "Option<bool>", optional)]
    pub installing: bool,
}

/// Whether a session with an agent would start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, TS)]
#[serde(rename_all = "kebab-case")]
pub enum AgentReadiness {
    Ready,
    /// It said so when it was last asked for something.
    NeedsLogin,
    NotInstalled,
    /// It did not start when it was last tried.
    Broken,
}

/// How bringing an agent here goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "lowercase")]
pub enum InstallState {
    Running,
    Installed,
    Cancelled,
    Failed,
}

/// What an agent and everything it started take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase")]
pub struct AgentMemory {
    pub cli_type: String,
    /// Missing where this system does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "number")]
    pub bytes: Option<u64>,
    pub processes: u32,
}

/// One way to sign in with an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct SignInMethod {
    pub id: String,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub description: Option<String>,
    pub kind: SignInKind,
    /// What it runs in a terminal, where that is the way and the agent says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub command: Option<String>,
    /// What to set in the environment, where that is the way.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[ts(as = "Option<Vec<String>>", optional)]
    pub variables: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "kebab-case")]
pub enum SignInKind {
    /// The agent does it when it is asked to.
    Agent,
    /// In a terminal, with a command of the agent's.
    Terminal,
    /// By variables that it is started with.
    EnvVar,
}

/// What whoever signs in with an agent sees of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[serde(
    tag = "type",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
pub enum SignInShown {
    /// More of what the command writes.
    Output { text: String },
    /// A page the agent sends the person to.
    Link { message: String, url: String },
    /// The page is done with.
    LinkClosed,
}

/// Where one kind of agent is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "lowercase")]
pub enum AgentState {
    /// Not needed so far.
    Idle,
    Starting,
    Connected,
    Disconnected,
    Reconnecting,
}

/// What happens when an agent asks whether it may do something.
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

/// Who sent a message of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "lowercase")]
pub enum TrafficSide {
    Agent,
    /// We.
    Client,
}

/// One message between us and an agent, as it stood on the wire but for secrets and length.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct TrafficFrame {
    /// From 1, in the order of the wire, since it was switched on.
    #[ts(type = "number")]
    pub number: u64,
    /// Milliseconds since 1970.
    #[ts(type = "number")]
    pub at: i64,
    pub from: TrafficSide,
    /// What it is, such as `session/prompt` or `answer to session/prompt`.
    pub label: String,
    /// How long it was.
    pub bytes: u32,
    /// Whether something was cut out of its middle.
    pub cut: bool,
    /// JSON, unless it was cut as a whole.
    pub text: String,
}
