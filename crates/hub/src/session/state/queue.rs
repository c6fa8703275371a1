//! Messages that wait for the turn before them, and which requests were accepted.
//!
//! Invariant: a request id that was accepted is never accepted again.

use std::collections::VecDeque;

use wire::{ErrorCode, QueuedMessage};

use super::inputs::Refused;

/// Request ids that are remembered.
const ACCEPTED_MAX: usize = 1000;
/// Messages that may wait.
const QUEUE_MAX: usize = 100;

#[derive(Debug, Clone)]
pub(super) struct Queue {
    waiting: VecDeque<QueuedMessage>,
    /// True until the user resumes the queue.
    held: bool,
    accepted: VecDeque<String>,
}

impl Queue {
    /// What waits from before is held: much may have happened since.
    pub(super) fn new(waiting: Vec<QueuedMessage>, accepted: Vec<String>) -> Self {
        // One that became a turn just before the end of the process was not taken out any more.
        let sent = |message: &QueuedMessage| {
            let id = message.request_id.as_ref();
            id.is_some_and(|id| accepted.contains(id))
        };
        let waiting: VecDeque<_> = waiting
            .into_iter()
            .filter(|message| !sent(message))
            .collect();
        let ids = waiting
            .iter()
            .filter_map(|queued| queued.request_id.clone());
        let ids: Vec<String> = ids.collect();
        Self {
            held: !waiting.is_empty(),
            waiting,
            accepted: accepted.into_iter().chain(ids).collect(),
        }
    }

    pub(super) fn has_accepted(&self, request_id: &str) -> bool {
        self.accepted.iter().any(|accepted| accepted == request_id)
    }

    pub(super) fn accept(&mut self, request_id: String) {
        self.accepted.push_back(request_id);
        if self.accepted.len() > ACCEPTED_MAX {
            self.accepted.pop_front();
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= QUEUE_MAX
    }

    pub(super) fn push(&mut self, message: QueuedMessage) {
        self.waiting.push_back(message);
    }

    pub(super) fn edit(&mut self, queue_id: &str, content: String) -> Result<(), Refused> {
        self.find(queue_id)?.content = content;
        Ok(())
    }

    pub(super) fn remove(&mut self, queue_id: &str) -> Result<(), Refused> {
        self.find(queue_id)?;
        self.waiting.retain(|message| message.queue_id != queue_id);
        self.held &= !self.waiting.is_empty();
        Ok(())
    }

    /// Pauses what waits. An empty queue is not paused.
    pub(super) fn hold(&mut self) {
        self.held = !self.waiting.is_empty();
    }

    pub(super) fn release(&mut self) {
        self.held = false;
    }

    /// What waits belongs to no request any more: those have ended. True if anything waits.
    pub(super) fn disown(&mut self) -> bool {
        for message in &mut self.waiting {
            message.request_id = None;
        }
        !self.waiting.is_empty()
    }

    pub(super) fn is_held(&self) -> bool {
        self.held
    }

    /// The next one, if it may go.
    pub(super) fn next(&mut self) -> Option<QueuedMessage> {
        match self.held {
            true => None,
            false => self.waiting.pop_front(),
        }
    }

    pub(super) fn waiting(&self) -> Vec<QueuedMessage> {
        self.waiting.iter().cloned().collect()
    }

    fn find(&mut self, queue_id: &str) -> Result<&mut QueuedMessage, Refused> {
        self.waiting
            .iter_mut()
            .find(|message| message.queue_id == queue_id)
            .ok_or_else(|| {
                Refused::new(
                    ErrorCode::SessionBusy,
                    "That message is no longer waiting: it was sent or removed.",
                )
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(id: &str) -> QueuedMessage {
        QueuedMessage {
            queue_id: format!("q-{id}"),
            content: id.to_owned(),
            images: vec![],
            request_id: Some(id.to_owned()),
        }
    }

    #[test]
    fn what_waited_before_is_held_and_what_was_sent_is_not_there_twice() {
        let mut queue = Queue::new(vec![message("sent"), message("waits")], vec!["sent".into()]);
        assert_eq!(queue.waiting(), [message("waits")]);
        assert_eq!(queue.next(), None);
        assert!(queue.has_accepted("sent") && queue.has_accepted("waits"));
        queue.release();
        assert_eq!(queue.next(), Some(message("waits")));
    }
}
