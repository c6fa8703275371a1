//! The agents people can talk to.

mod catalog;
pub mod from_acp;
pub mod keeper;

pub use catalog::{AgentEntry, Catalog, Launch};
