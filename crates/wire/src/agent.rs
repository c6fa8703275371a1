use std::fmt;
use std::str::FromStr;

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
    /// Whether a command to start it was found on this machine.
    pub found: bool,
    pub status: AgentState,
    /// Its version, once it has said one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub version: Option<String>,
    /// The ways it knows to sign in, once it has said them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[ts(as = "Option<Vec<SignInMethod>>", optional)]
    pub sign_in: Vec<SignInMethod>,
    /// What to type to install it, when it was not found and we know.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub install: Option<String>,
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
