//! Agents that are not on this machine yet: which there are, how each is brought here, and whether it is.
//!
//! `listing` reads the list (ours, or a newer one in the format of the public ACP registry) and `fetch` asks for a newer
//! one, `place` knows where an agent stands once it is here, `plan` says what would be run and `install` runs it, `archive`
//! checks those that come as one, `node` knows what Node there is.
//!
//! Invariant: only what is in the list is ever brought, and nothing of the list is read as an option or as a path.

mod archive;
mod fetch;
mod install;
mod listing;
mod node;
mod place;
mod plan;

pub(super) use fetch::fetch;
pub(super) use install::Installs;
pub use install::{Ended, News, NotInstalled};
pub(super) use listing::Listed;
pub use listing::{REGISTRY_URL, Refreshed};
pub(super) use node::Node;
pub(super) use place::Shelf;
pub(super) use plan::{Plan, plan};
