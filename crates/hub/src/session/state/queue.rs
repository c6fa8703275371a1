//! The queue of messages that wait for the running turn, and the ids of accepted requests.
//!
//! Invariant: a request id that was accepted is never accepted again.

use std::collections::VecDeque;

use wire::{ErrorCode, QueuedMessage};

use super::Refused;

/// Maximum accepted request ids that are remembered.
const ACCEPTED_MAX: usize = 1000;
/// Maximum queued messages.
const QUEUE_MAX: usize = 100;

#[derive(Debug, Clone)]
pub(super) struct Queue {
    waiting: VecDeque<QueuedMessage>,
    /// Whether the queue is paused until the user resumes it.
    paused: bool,
    accepted: VecDeque<String>,
}

impl Queue {
    /// Restores the queue, paused if it is not empty: the user may no longer want the messages.
    pub(super) fn new(waiting: Vec<QueuedMessage>, accepted: Vec<String>) -> Self {
        // A message that began a turn just before the server ended is still in the saved queue.
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
            paused: !waiting.is_empty(),
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
        self.paused &= !self.waiting.is_empty();
        Ok(())
    }

    /// Pauses the queue unless it is empty.
    pub(super) fn pause(&mut self) {
        self.paused = !self.waiting.is_empty();
    }

    pub(super) fn resume(&mut self) {
        self.paused = false;
    }

    /// Removes the request ids from the queued messages, because their runs have ended. True if the queue is not empty.
    pub(super) fn drop_request_ids(&mut self) -> bool {
        for message in &mut self.waiting {
            message.request_id = None;
        }
        !self.waiting.is_empty()
    }

    pub(super) fn is_paused(&self) -> bool {
        self.paused
    }

    /// Takes the next message unless the queue is paused.
    pub(super) fn next(&mut self) -> Option<QueuedMessage> {
        match self.paused {
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
                    "Cannot change the queued message: it was sent or removed already.",
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
    fn restored_queue_is_paused_and_omits_sent_messages() {
        let mut queue = Queue::new(vec![message("sent"), message("waits")], vec!["sent".into()]);
        assert_eq!(queue.waiting(), [message("waits")]);
        assert_eq!(queue.next(), None);
        assert!(queue.has_accepted("sent") && queue.has_accepted("waits"));
        queue.resume();
        assert_eq!(queue.next(), Some(message("waits")));
    }
}
