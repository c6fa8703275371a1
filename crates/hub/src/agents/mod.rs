//! The agents people can talk to.

mod catalog;

pub use catalog::{AgentEntry, Catalog, Launch};
