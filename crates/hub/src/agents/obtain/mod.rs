//! Agents that are not on this machine yet: which there are, how each is brought here, and whether it is.
//!
//! `listing` reads the list (ours, or a newer one in the format of the public ACP registry), `place` knows where one
//! stands once it is here, `install` brings it, `fetch` asks for a newer list, `archive` unpacks those that come as one, `node` knows what Node there is.
//!
//! Invariant: only what is in the list is ever brought, and nothing of the list is read as an option or as a path.

mod archive;
mod fetch;
mod install;
mod listing;
mod node;
mod place;

pub(super) use fetch::fetch;
pub use install::{Ended, News, NotInstalled};
pub(super) use install::{Installs, Plan, plan};
pub(super) use listing::Listed;
pub use listing::{REGISTRY_URL, Refreshed};
pub(super) use node::Node;
pub(super) use place::Shelf;
