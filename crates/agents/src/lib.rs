//! ACP agents: the catalog, installation, processes, connections and what agents may do on this machine.

mod agent_session;
mod byte_budget;
mod catalog;
mod connection;
pub mod elicitation;
mod error_reason;
mod event;
pub mod from_acp;
mod host;
mod inbound_limiter;
mod install;
pub mod keeper;
mod kinds;
mod lifecycle;
mod line_reader;
mod line_values;
mod memory;
mod pending_requests;
mod redact;
mod routes;
mod sign_in;
mod start;
mod stderr_tail;
mod wire_tap;

pub use agent_session::{AgentSession, Picture};
pub use byte_budget::BudgetPermit;
pub use catalog::{AgentEntry, Catalog, Launch};
pub use connection::{AgentError, Connection, Start, connect};
pub use event::{AgentEvent, Attach, FromAgent, Queued, Response, Routed, SessionResponse};
pub use host::{
    AuditWhat, Auditor, DecidedBy, Host, HostSetup, Refusal, TerminalOutput, would_write,
};
pub use inbound_limiter::Answer;
pub use install::{InstallOutcome, InstallProgress, InstallRefused, REGISTRY_URL, Refreshed};
pub use keeper::Keepers;
pub use kinds::{AgentKind, Agents, refresh};
pub use lifecycle::{AgentHandle, Backoff, LifecycleConfig, Publish, Status};
pub use line_reader::Oddities;
pub use pending_requests::Ticket;
pub use start::{AgentSetup, environment, probe_version};
pub use wire_tap::{Traffic, WireTap};
