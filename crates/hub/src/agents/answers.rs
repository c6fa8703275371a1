//! What an agent asks of us, and what it is answered, bounded.
//!
//! The protocol crate keeps whatever it is given to send until the agent has read it. So an agent may have asked only so
//! much at once, one that does not read what it is answered is not heard on, and an answer that may be long waits for a
//! turn, which lasts until the agent has taken the answer.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{Agent, UntypedMessage};
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::room::Room;
use super::tickets::Held;

/// Requests of one agent that may be open at once.
const OPEN_MAX: usize = 256;
/// Long answers that may be on their way to it at once.
const LONG_MAX: usize = 2;
/// After so many requests it is not heard on until it has read what it was answered.
const UNREAD_MAX: u64 = 64;
/// Goes the way of every answer and ends before the agent: what went before it is taken.
const TAKEN_METHOD: &str = "_liminal/taken";
/// Longer than any such line.
const TAKEN_BYTES_MAX: usize = 128;

/// Where one agent's requests come in.
pub(super) struct Desk {
    open: Arc<Semaphore>,
    long: Arc<Semaphore>,
    asked: AtomicU64,
    marks: AtomicU64,
    taken: watch::Receiver<u64>,
    /// Of the request that is inside the crate.
    room: Mutex<Room>,
}

impl Desk {
    /// The desk, and who tells it how far the agent has read.
    pub(super) fn new() -> (Arc<Self>, watch::Sender<u64>) {
        let (taken, seen) = watch::channel(0);
        let desk = Self {
            open: Arc::new(Semaphore::new(OPEN_MAX)),
            long: Arc::new(Semaphore::new(LONG_MAX)),
            asked: AtomicU64::new(0),
            marks: AtomicU64::new(0),
            taken: seen,
            room: Mutex::default(),
        };
        (Arc::new(desk), taken)
    }

    /// What the next request takes up until it is answered.
    pub(super) fn bring(&self, room: Room) {
        *self.room.lock().unwrap_or_else(PoisonError::into_inner) = room;
    }

    /// None if the agent has asked too much already; it is told so.
    pub(super) async fn receive(
        self: &Arc<Self>,
        responder: Responder<Value>,
        agent: ConnectionTo<Agent>,
        owed: Option<Held>,
    ) -> Option<Answer> {
        let room = std::mem::take(&mut *self.room.lock().unwrap_or_else(PoisonError::into_inner));
        if self.asked.fetch_add(1, Ordering::Relaxed) % UNREAD_MAX == UNREAD_MAX - 1 {
            self.until_taken(&agent).await;
        }
        let open = self.open.clone().try_acquire_owned();
        let too_many = open.is_err();
        let answer = Answer {
            responder: Box::new(responder),
            agent,
            desk: self.clone(),
            _owed: owed,
            _open: open.ok(),
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

    /// Waits until something long may be said.
    pub fn long_turn(&self) -> impl Future<Output = LongTurn> + Send + 'static {
        let (desk, agent) = (self.desk.clone(), self.agent.clone());
        async move {
            LongTurn {
                _turn: desk.long.clone().acquire_owned().await.ok(),
                desk,
                agent,
            }
        }
    }
}

/// The right to say something long.
pub struct LongTurn {
    _turn: Option<OwnedSemaphorePermit>,
    desk: Arc<Desk>,
    agent: ConnectionTo<Agent>,
}

impl LongTurn {
    /// It has been said; others have their turn when the agent has taken it.
    pub async fn end(self) {
        self.desk.until_taken(&self.agent).await;
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
