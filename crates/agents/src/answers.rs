//! What an agent asks of us, and what it is answered, bounded.
//!
//! The protocol crate keeps whatever it is given to send until the agent has read it. So an agent may have asked only so
//! much at once, and one that does not read what it is answered is not heard on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{Agent, UntypedMessage};
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::room::Room;
use super::tickets::Held;

/// Requests of one agent that may be open at once, of those that wait for a person or a command; and of the others.
const OPEN_MAX: usize = 256;
/// Lines and bytes that may have gone through the crate since the agent last had read all that it was answered.
const UNREAD_LINES_MAX: usize = 64;
const UNREAD_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Goes the way of every answer and ends before the agent: what went before it is taken.
const TAKEN_METHOD: &str = "_liminal/taken";
/// Longer than any such line.
const TAKEN_BYTES_MAX: usize = 128;

/// Where one agent's requests come in.
pub(super) struct Desk {
    /// For those that end only when somebody else does something. One more is refused.
    waiting: Arc<Semaphore>,
    /// For those that end by themselves, if the agent reads on. One more has to wait, and all that the agent says behind it.
    working: Arc<Semaphore>,
    marks: AtomicU64,
    taken: watch::Receiver<u64>,
    line: Mutex<Line>,
}

/// What is inside the crate, and how much has been since the agent had read everything.
#[derive(Default)]
struct Line {
    room: Room,
    unread: usize,
    unread_bytes: usize,
}

impl Desk {
    /// The desk, and who tells it how far the agent has read.
    pub(super) fn new() -> (Arc<Self>, watch::Sender<u64>) {
        let (taken, seen) = watch::channel(0);
        let desk = Self {
            waiting: Arc::new(Semaphore::new(OPEN_MAX)),
            working: Arc::new(Semaphore::new(OPEN_MAX)),
            marks: AtomicU64::new(0),
            taken: seen,
            line: Mutex::default(),
        };
        (Arc::new(desk), taken)
    }

    /// A line is about to go through the crate. If it is a request, it takes up this room until it is answered.
    pub(super) fn passes(&self, bytes: usize, room: Room) {
        let mut line = self.lock();
        line.room = room;
        line.unread += 1;
        line.unread_bytes += bytes;
    }

    /// It has gone through, whatever it was. Waits, now and then, until the agent has read what it was answered: by us, or by
    /// the crate, which answers what is no request by itself.
    pub(super) async fn passed(&self, agent: &ConnectionTo<Agent>) {
        let full = {
            let mut line = self.lock();
            line.room = Room::default();
            let full = line.unread >= UNREAD_LINES_MAX || line.unread_bytes >= UNREAD_BYTES_MAX;
            if full {
                *line = Line::default();
            }
            full
        };
        if full {
            self.until_taken(agent).await;
        }
    }

    /// None if the agent waits for too much already; it is told so.
    pub(super) async fn receive(
        self: &Arc<Self>,
        method: &str,
        responder: Responder<Value>,
        agent: ConnectionTo<Agent>,
        owed: Option<Held>,
    ) -> Option<Answer> {
        let room = std::mem::take(&mut self.lock().room);
        let open = match waits_for_somebody(method) {
            true => self.waiting.clone().try_acquire_owned().ok(),
            false => self.working.clone().acquire_owned().await.ok(),
        };
        let too_many = open.is_none();
        let answer = Answer {
            responder: Box::new(responder),
            agent,
            desk: self.clone(),
            _owed: owed,
            _open: open,
            _room: room,
        };
        if too_many {
            answer.refuse(-32603, "too many requests are open already");
            return None;
        }
        Some(answer)
    }

    /// Until the agent has read all that it was told before, or never will.
    async fn until_taken(&self, agent: &ConnectionTo<Agent>) {
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

/// Whether a request ends only when a person answers or a command ends.
fn waits_for_somebody(method: &str) -> bool {
    matches!(
        method,
        "session/request_permission" | "elicitation/create" | "terminal/wait_for_exit"
    )
}

/// The mark, if a line is not for the agent but for us.
pub(super) fn mark(line: &str) -> Option<u64> {
    if line.len() > TAKEN_BYTES_MAX || !line.contains(TAKEN_METHOD) {
        return None;
    }
    let message: Value = serde_json::from_str(line).ok()?;
    let is_one = message["method"] == TAKEN_METHOD;
    message["params"]["mark"].as_u64().filter(|_| is_one)
}

/// The answer to an agent's request. Dropping it answers with an error.
pub struct Answer {
    responder: Box<Responder<Value>>,
    agent: ConnectionTo<Agent>,
    desk: Arc<Desk>,
    /// As long as it is owed, the agent has something to do.
    _owed: Option<Held>,
    _open: Option<OwnedSemaphorePermit>,
    _room: Room,
}

impl Answer {
    pub fn succeed(self, result: Value) {
        // An agent that is gone needs no answer.
        let _ = self.responder.respond(result);
    }

    /// Until the agent no longer wants it; for ever, if it always does.
    pub fn withdrawn(&self) -> impl Future<Output = ()> + Send + 'static {
        let cancellation = self.responder.cancellation();
        async move { cancellation.cancelled().await }
    }

    pub fn refuse(self, code: i32, message: &str) {
        let error = agent_client_protocol::Error::new(code, message);
        let _ = self.responder.respond_with_error(error);
    }

    /// Once it has been given: until the agent has read it, and all before it.
    pub fn taken(&self) -> impl Future<Output = ()> + Send + 'static {
        let (desk, agent) = (self.desk.clone(), self.agent.clone());
        async move { desk.until_taken(&agent).await }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_mark_is_kept_from_the_agent() {
        let line = r#"{"jsonrpc":"2.0","method":"_liminal/taken","params":{"mark":7}}"#;
        assert_eq!(mark(line), Some(7));
        let told = r#"{"jsonrpc":"2.0","id":1,"result":{"content":"_liminal/taken"}}"#;
        assert_eq!(mark(told), None);
    }
}
