//! Installation of agents: the list of available agents, and the installed ones in the data directory.
//!
//! `listing` reads a list in the format of the public ACP registry (the shipped one, or a newer one that `fetch` has
//! downloaded); `agent_store` finds installed agents; `plan` determines the commands of an installation and `installs`
//! runs them; `archive` verifies downloaded archives; `node` determines the version of Node.
//!
//! Invariant: only listed agents are installed, and no value of the list can act as a command-line option or leave its
//! directory.

mod agent_store;
mod archive;
mod fetch;
mod installs;
mod listing;
mod node;
mod plan;

pub(super) use agent_store::AgentStore;
pub(super) use fetch::fetch;
pub(super) use installs::Installs;
pub use installs::{InstallOutcome, InstallProgress, InstallRefused};
pub(super) use listing::Listed;
pub use listing::{REGISTRY_URL, Refreshed};
pub(super) use node::Node;
pub(super) use plan::{Plan, plan};
