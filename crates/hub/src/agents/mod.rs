//! The agents people can talk to.

mod catalog;
pub mod from_acp;

pub use catalog::{AgentEntry, Catalog, Launch};
