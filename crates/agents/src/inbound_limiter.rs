//! Limits on the requests of one agent and on the responses it has not read.
//!
//! The protocol crate queues outgoing messages without a bound until the agent reads them. So the number of pending
//! requests is limited, and input of an agent that does not read its responses is no longer read.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{Agent, UntypedMessage};
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::byte_budget::BudgetPermit;
use super::pending_requests::PendingGuard;

/// Maximum pending requests per agent, counted separately for long requests (see `is_long`) and for all others.
const OPEN_MAX: usize = 256;
/// Maximum lines and bytes of agent input that pass the crate before the agent must have read all its responses.
const UNREAD_LINES_MAX: usize = 64;
const UNREAD_BYTES_MAX: usize = 4 * 1024 * 1024;
/// A marker queued behind the responses and removed by the line writer: all lines before it were written to the agent.
const TAKEN_METHOD: &str = "_liminal/taken";
/// Upper bound for the length of a marker line.
const TAKEN_BYTES_MAX: usize = 128;

/// Limits the pending requests and unread responses of one agent.
pub(super) struct InboundLimiter {
    /// Slots for long requests. A request without a free slot is refused.
    long: Arc<Semaphore>,
    /// Slots for all other requests. A request without a free slot waits, and so does the agent input behind it.
    short: Arc<Semaphore>,
    marks: AtomicU64,
    taken: watch::Receiver<u64>,
    line: Mutex<Line>,
}

/// The line inside the crate, and the amount of input since the agent last had read all its responses.
#[derive(Default)]
struct Line {
    permit: BudgetPermit,
    unread: usize,
    unread_bytes: usize,
}

impl InboundLimiter {
    /// The limiter, and the sender by which the line writer reports the last marker it reached.
    pub(super) fn new() -> (Arc<Self>, watch::Sender<u64>) {
        let (taken, seen) = watch::channel(0);
        let limiter = Self {
            long: Arc::new(Semaphore::new(OPEN_MAX)),
            short: Arc::new(Semaphore::new(OPEN_MAX)),
            marks: AtomicU64::new(0),
            taken: seen,
            line: Mutex::default(),
        };
        (Arc::new(limiter), taken)
    }

    /// Announces the next line for the crate. If it is a request, its answer holds the byte budget permit.
    pub(super) fn begin_line(&self, bytes: usize, permit: BudgetPermit) {
        let mut line = self.lock();
        line.permit = permit;
        line.unread += 1;
        line.unread_bytes += bytes;
    }

    /// Ends the announced line. At the limit of unread lines, waits until the agent has read all responses, both those
    /// of the server and those that the crate sends to invalid messages.
    pub(super) async fn end_line(&self, agent: &ConnectionTo<Agent>) {
        let full = {
            let mut line = self.lock();
            line.permit = BudgetPermit::default();
            let full = line.unread >= UNREAD_LINES_MAX || line.unread_bytes >= UNREAD_BYTES_MAX;
            if full {
                *line = Line::default();
            }
            full
        };
        if full {
            self.until_delivered(agent).await;
        }
    }

    /// Admits a request. `None` if the agent has too many pending requests; the request is then refused.
    pub(super) async fn receive(
        self: &Arc<Self>,
        method: &str,
        responder: Responder<Value>,
        agent: ConnectionTo<Agent>,
        pending: Option<PendingGuard>,
    ) -> Option<Answer> {
        let permit = std::mem::take(&mut self.lock().permit);
        let open = match is_long(method) {
            true => self.long.clone().try_acquire_owned().ok(),
            false => self.short.clone().acquire_owned().await.ok(),
        };
        let too_many = open.is_none();
        let answer = Answer {
            responder: Box::new(responder),
            agent,
            limiter: self.clone(),
            _pending: pending,
            _open: open,
            _permit: permit,
        };
        if too_many {
            answer.refuse(-32603, "too many pending requests");
            return None;
        }
        Some(answer)
    }

    /// Waits until all lines queued so far are written to the agent, or the connection has ended.
    async fn until_delivered(&self, agent: &ConnectionTo<Agent>) {
        let mark = self.marks.fetch_add(1, Ordering::Relaxed) + 1;
        let sent = UntypedMessage::new(TAKEN_METHOD, json!({"mark": mark}))
            .and_then(|message| agent.send_notification(message));
        if sent.is_ok() {
            let _ = self.taken.clone().wait_for(|seen| *seen >= mark).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a request ends only when the user answers or a command exits.
fn is_long(method: &str) -> bool {
    matches!(
        method,
        "session/request_permission" | "elicitation/create" | "terminal/wait_for_exit"
    )
}

/// The marker number, if an outgoing line is a delivery marker and not meant for the agent.
pub(super) fn mark(line: &str) -> Option<u64> {
    if line.len() > TAKEN_BYTES_MAX || !line.contains(TAKEN_METHOD) {
        return None;
    }
    let message: Value = serde_json::from_str(line).ok()?;
    let is_one = message["method"] == TAKEN_METHOD;
    message["params"]["mark"].as_u64().filter(|_| is_one)
}

/// The response to an agent's request. Dropping it responds with an error.
pub struct Answer {
    responder: Box<Responder<Value>>,
    agent: ConnectionTo<Agent>,
    limiter: Arc<InboundLimiter>,
    /// Keeps the agent from being idle while the request is pending.
    _pending: Option<PendingGuard>,
    _open: Option<OwnedSemaphorePermit>,
    _permit: BudgetPermit,
}

impl Answer {
    /// Responds with a result.
    pub fn succeed(self, result: Value) {
        // An agent that has exited needs no response.
        let _ = self.responder.respond(result);
    }

    /// Resolves when the agent cancels the request; never if it does not.
    pub fn withdrawn(&self) -> impl Future<Output = ()> + Send + 'static {
        let cancellation = self.responder.cancellation();
        async move { cancellation.cancelled().await }
    }

    /// Responds with an error.
    pub fn refuse(self, code: i32, message: &str) {
        let error = agent_client_protocol::Error::new(code, message);
        let _ = self.responder.respond_with_error(error);
    }

    /// Resolves when the response and all lines before it are written to the agent. To be awaited after responding.
    pub fn delivered(&self) -> impl Future<Output = ()> + Send + 'static {
        let (limiter, agent) = (self.limiter.clone(), self.agent.clone());
        async move { limiter.until_delivered(&agent).await }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_marker_is_recognised_and_no_text_that_contains_its_name() {
        let line = r#"{"jsonrpc":"2.0","method":"_liminal/taken","params":{"mark":7}}"#;
        assert_eq!(mark(line), Some(7));
        let quoted = r#"{"jsonrpc":"2.0","id":1,"result":{"content":"_liminal/taken"}}"#;
        assert_eq!(mark(quoted), None);
    }
}
