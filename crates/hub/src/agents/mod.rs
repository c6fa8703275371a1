//! The agents people can talk to.

mod catalog;
mod connection;
pub mod entries;
pub mod from_acp;
mod gate;
mod host;
pub mod keeper;
mod kinds;
mod lifecycle;
mod stderr_tail;

pub use catalog::{AgentEntry, Catalog, Launch};
pub use connection::{AgentError, AgentEvent, Answer, Connection, Start, Ticket, connect};
pub use gate::Oddities;
pub use host::{Audit, AuditWhat, DecidedBy, Host, HostSetup, Refusal, TerminalOutput};
pub use kinds::{
    AgentKind, AgentSession, AgentSetup, Agents, Attach, FromAgent, Picture, environment, look_at,
};
pub use lifecycle::{AgentHandle, Backoff, Life, Publish, Status};
