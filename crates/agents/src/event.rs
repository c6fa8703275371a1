//! Events of agents, on their way from a connection to the sessions they belong to.
//!
//! There is one type for both halves of the way. Only a response differs: the connection knows the ticket of the
//! request, and the agent's task (`routes`) turns that into what the session asked for.

use serde_json::Value;

use super::agent_session::AgentSession;
use super::byte_budget::BudgetPermit;
use super::connection::AgentError;
use super::inbound_limiter::Answer;
use super::pending_requests::Ticket;
use conversation::Update;

/// An event with the connection it came over. Events of one connection are in wire order.
pub struct FromAgent<R> {
    /// Id of the connection. A session ignores events of connections it no longer uses.
    pub connection: u64,
    pub event: AgentEvent<R>,
}

/// An event in the queue of an agent.
pub type Queued = FromAgent<Response>;

/// An event in the inbox of a session.
pub type Routed = FromAgent<SessionResponse>;

/// An event of an agent. `R` is what a response is to the receiver.
pub enum AgentEvent<R> {
    Update {
        /// The agent's own session id.
        session_id: String,
        update: Update,
        permit: BudgetPermit,
    },
    Response(R),
    /// A request of the agent.
    Request {
        method: String,
        params: Value,
        answer: Answer,
    },
    /// The user has completed the URL of an elicitation (`elicitation/complete`), possibly one of another session.
    Visited {
        elicitation_id: String,
    },
    /// The idle agent process is being ended. Requests sent since its last event have not reached it.
    Asleep,
    /// The agent process has ended. This is the last event of its connection.
    Exited {
        reason: String,
    },
}

/// The response to a request sent with `Connection::send`.
pub struct Response {
    pub ticket: Ticket,
    pub result: Result<Value, AgentError>,
}

/// What a session's own requests lead to.
pub enum SessionResponse {
    /// The request to open the session is about to be sent, for this attempt.
    Opening { attempt: u64 },
    /// The agent has opened the session, or refused to.
    Attached {
        attempt: u64,
        session: AgentSession,
        how: Attach,
        result: Result<Value, AgentError>,
    },
    /// The response to a prompt.
    Prompt {
        turn: u64,
        result: Result<Value, AgentError>,
    },
}

/// How an agent reopens a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attach {
    /// The agent continues the session without replaying it.
    Resume,
    /// The agent first replays the whole conversation.
    Load,
}

impl Queued {
    pub(super) fn response(
        connection: u64,
        ticket: Ticket,
        result: Result<Value, AgentError>,
    ) -> Self {
        let event = AgentEvent::Response(Response { ticket, result });
        Self { connection, event }
    }
}
