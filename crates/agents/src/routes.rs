//! Dispatch of agent events to the sessions they belong to.
//!
//! Each agent has one task that reads its event queue and sends every event to the inbox of its session, in wire order.
//! Inboxes are bounded: a session that cannot keep up slows down its agent.
//!
//! Invariants: a session receives agent events only through its inbox; each event there names its connection, and
//! `Exited` or `Asleep` is the last event of a connection.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::agent_session::AgentSession;
use super::byte_budget::BudgetPermit;
use super::connection::AgentError;
use super::elicitation;
use super::event::{AgentEvent, Attach, Queued, Response, Routed, SessionResponse};
use super::inbound_limiter::Answer;
use super::pending_requests::Ticket;
use super::sign_in::{Attempts, Incoming};
use conversation::Update;

/// Maximum length of an agent's session id. Real ones have up to 40 characters.
const SESSION_ID_BYTES_MAX: usize = 512;

pub(super) type Inbox = mpsc::Sender<Routed>;

#[derive(Default)]
pub(super) struct Routes {
    /// By the agent's own session id.
    pub(super) sessions: HashMap<String, Route>,
    pub(super) expected: HashMap<Ticket, Expected>,
    pub(super) attempts: Attempts,
    /// When events of the agent were last dispatched, for any session.
    pub(super) last_event: Option<Instant>,
    /// Whether events are being dispatched right now.
    pub(super) dispatching: bool,
    /// The operation that the agent last refused without a sign-in.
    pub(super) locked: Option<Locked>,
}

/// An operation that requires a sign-in. Some agents open sessions without a sign-in and refuse only prompts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Locked {
    Session,
    Answer,
}

pub(super) struct Route {
    pub(super) inbox: Inbox,
    pub(super) connection: u64,
}

/// The request that a pending response belongs to.
pub(super) enum Expected {
    New {
        inbox: Inbox,
        session: AgentSession,
        reply: oneshot::Sender<Result<(AgentSession, Value), AgentError>>,
    },
    Attach {
        session: AgentSession,
        attempt: u64,
        how: Attach,
    },
    Prompt {
        connection: u64,
        session_id: String,
        turn: u64,
    },
}

/// Sends each event to its session until the queue ends, merging consecutive text updates.
pub(super) async fn dispatch(mut queue: mpsc::Receiver<Queued>, routes: Arc<Mutex<Routes>>) {
    let mut batch = Vec::new();
    // Merged before the inbox, whose bound counts events: a flood of chunks would fill it and wake the session for
    // each of them. What waits together is merged, so a single chunk is not delayed.
    let mut text: Option<Text> = None;
    while queue.recv_many(&mut batch, 512).await > 0 {
        lock(&routes).dispatching = true;
        for Queued { connection, event } in batch.drain(..) {
            let event = match event {
                AgentEvent::Update {
                    session_id,
                    update,
                    permit,
                } => {
                    let matches = |text: &&mut Text| {
                        text.connection == connection && text.session_id == session_id
                    };
                    let rest = match text.as_mut().filter(matches) {
                        Some(grown) => grown.update.merge(update),
                        None => Some(update),
                    };
                    match (rest, &mut text) {
                        (None, Some(grown)) => grown.permit.join(permit),
                        (None, None) => {}
                        (Some(update), _) => {
                            flush(&routes, &mut text).await;
                            text = Some(Text {
                                connection,
                                session_id,
                                update,
                                permit,
                            });
                        }
                    }
                    continue;
                }
                event => event,
            };
            flush(&routes, &mut text).await;
            match event {
                AgentEvent::Update { .. } => {}
                AgentEvent::Response(Response { ticket, result }) => {
                    let expected = lock(&routes).expected.remove(&ticket);
                    if let Some(expected) = expected {
                        answered(&routes, expected, result).await;
                    }
                }
                AgentEvent::Request {
                    method,
                    params,
                    answer,
                } => {
                    let session_id = params["sessionId"].as_str().unwrap_or_default().to_owned();
                    let request = AgentEvent::Request {
                        method,
                        params,
                        answer,
                    };
                    if let Some(AgentEvent::Request {
                        method,
                        params,
                        answer,
                    }) = deliver(&routes, connection, &session_id, request).await
                    {
                        unrouted_request(&routes, &method, &params, answer);
                    }
                }
                AgentEvent::Visited { elicitation_id } => {
                    let attempts = lock(&routes).attempts.clone();
                    let _ = attempts.pass(Incoming::Visited(elicitation_id.clone()));
                    // The notification names no session, so every session of the connection gets it.
                    for inbox in inboxes(&routes, connection) {
                        let elicitation_id = elicitation_id.clone();
                        let event = AgentEvent::Visited { elicitation_id };
                        let _ = inbox.send(Routed { connection, event }).await;
                    }
                }
                AgentEvent::Asleep => {
                    for inbox in take_routes(&routes, connection) {
                        let event = AgentEvent::Asleep;
                        let _ = inbox.send(Routed { connection, event }).await;
                    }
                }
                AgentEvent::Exited { reason } => {
                    for inbox in take_routes(&routes, connection) {
                        let reason = reason.clone();
                        let event = AgentEvent::Exited { reason };
                        let _ = inbox.send(Routed { connection, event }).await;
                    }
                }
            }
        }
        flush(&routes, &mut text).await;
        let mut routes = lock(&routes);
        routes.dispatching = false;
        routes.last_event = Some(Instant::now());
    }
}

/// A text update that may still be merged with the next one.
struct Text {
    connection: u64,
    session_id: String,
    update: Update,
    permit: BudgetPermit,
}

async fn flush(routes: &Mutex<Routes>, text: &mut Option<Text>) {
    if let Some(text) = text.take() {
        let session_id = text.session_id.clone();
        let update = AgentEvent::Update {
            session_id: text.session_id,
            update: text.update,
            permit: text.permit,
        };
        deliver(routes, text.connection, &session_id, update).await;
    }
}

/// Sends an event to its session. Returns the event if no session is routed to this connection.
async fn deliver(
    routes: &Mutex<Routes>,
    connection: u64,
    session_id: &str,
    event: AgentEvent<SessionResponse>,
) -> Option<AgentEvent<SessionResponse>> {
    let route = |routes: &Routes| {
        let route = routes.sessions.get(session_id)?;
        (route.connection == connection).then(|| route.inbox.clone())
    };
    let inbox = route(&lock(routes));
    match inbox {
        Some(inbox) => {
            let unsent = inbox.send(Routed { connection, event }).await.err();
            unsent.map(|unsent| unsent.0.event)
        }
        None => Some(event),
    }
}

async fn answered(routes: &Mutex<Routes>, expected: Expected, result: Result<Value, AgentError>) {
    note_lock(&mut lock(routes), &expected, &result);
    match expected {
        Expected::New {
            inbox,
            session,
            reply,
        } => {
            let mut routes = lock(routes);
            let opened = result.and_then(|value| {
                let id = value["sessionId"].as_str().unwrap_or_default();
                let problem = id_problem(id).or_else(|| {
                    let is_taken = routes.sessions.contains_key(id);
                    is_taken.then_some("another session has it")
                });
                match problem {
                    None => Ok((session.with_id(id), value)),
                    Some(problem) => Err(AgentError::Refused {
                        name: session.connection().name().to_owned(),
                        code: 0,
                        message: format!("its session id cannot be used: {problem}"),
                        data: None,
                    }),
                }
            });
            if let Ok((session, _)) = &opened {
                let connection = session.connection().id();
                let route = Route { inbox, connection };
                routes.sessions.insert(session.id().to_owned(), route);
            }
            drop(routes);
            let _ = reply.send(opened);
        }
        Expected::Attach {
            session,
            attempt,
            how,
        } => {
            let (connection, id) = (session.connection_id(), session.id().to_owned());
            let attached = SessionResponse::Attached {
                attempt,
                session,
                how,
                result,
            };
            deliver(routes, connection, &id, AgentEvent::Response(attached)).await;
        }
        Expected::Prompt {
            connection,
            session_id,
            turn,
        } => {
            let answered = AgentEvent::Response(SessionResponse::Prompt { turn, result });
            deliver(routes, connection, &session_id, answered).await;
        }
    }
}

/// Handles a request that names no known session. An elicitation without a session belongs to the sign-in in progress.
fn unrouted_request(routes: &Mutex<Routes>, method: &str, params: &Value, answer: Answer) {
    if method != "elicitation/create" || params["sessionId"].is_string() {
        return answer.refuse(-32602, "no such session");
    }
    let attempts = lock(routes).attempts.clone();
    match elicitation::read(params) {
        Ok(asked) => {
            let asked = Incoming::Elicitation(Box::new((asked, answer)));
            if let Err(Incoming::Elicitation(asked)) = attempts.pass(asked) {
                asked.1.refuse(-32602, "no sign-in is in progress");
            }
        }
        Err(reason) => answer.refuse(-32602, &reason),
    }
}

fn inboxes(routes: &Mutex<Routes>, connection: u64) -> Vec<Inbox> {
    let routes = lock(routes);
    let matches = |route: &&Route| route.connection == connection;
    let inbox = |route: &Route| route.inbox.clone();
    routes
        .sessions
        .values()
        .filter(matches)
        .map(inbox)
        .collect()
}

fn note_lock(routes: &mut Routes, expected: &Expected, result: &Result<Value, AgentError>) {
    let asked = match expected {
        Expected::Prompt { .. } => Locked::Answer,
        Expected::New { .. } | Expected::Attach { .. } => Locked::Session,
    };
    match result {
        Err(AgentError::SignInNeeded { .. }) => routes.locked = Some(asked),
        // An opened session does not prove that the agent would answer a prompt.
        Ok(_) if asked == Locked::Answer || routes.locked == Some(asked) => routes.locked = None,
        _ => {}
    }
}

/// Why the id of a new agent session cannot be used. It becomes part of ids on the wire and in files.
fn id_problem(id: &str) -> Option<&'static str> {
    if id.is_empty() {
        Some("it is missing")
    } else if id.len() > SESSION_ID_BYTES_MAX {
        Some("it is too long")
    } else if id.chars().any(char::is_control) {
        Some("it contains control characters")
    } else if id.contains(['/', '\\']) || [".", ".."].contains(&id) {
        Some("it looks like a path")
    } else {
        None
    }
}

fn take_routes(routes: &Mutex<Routes>, connection: u64) -> Vec<Inbox> {
    let mut routes = lock(routes);
    let ended = routes
        .sessions
        .extract_if(|_, route| route.connection == connection);
    ended.map(|(_, route)| route.inbox).collect()
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
