//! A turn, from the message that begins it to its end.

use jiff::Timestamp;
use serde_json::Value;
use wire::{
    Attachment, ErrorCode, QuestionOutcome, QueuedMessage, TurnEntry, TurnOutcome, TurnPhase,
};

use super::{AgentEffect, Durable, LogEffect, Now, Refused, State, Step, SummaryEffect, stamp};
use crate::session::title;
use conversation::EntryChange;

#[derive(Debug, Clone)]
pub(super) struct Turn {
    pub(super) number: u64,
    pub(super) message: QueuedMessage,
    pub(super) started: Now,
    pub(super) phase: TurnPhase,
    pub(super) quiet_since: Option<Timestamp>,
    /// The text entries of this turn that the agent wrote.
    pub(super) texts: Vec<String>,
    /// The entry to report as final if there are no text entries.
    pub(super) last_entry: String,
    /// The agent reported a failure before it answered the prompt.
    pub(super) failing: bool,
    /// Why the turn is being stopped, if it had too much output. Further output is ignored.
    pub(super) flood: Option<String>,
}

impl State {
    pub(super) fn send(&mut self, mut message: QueuedMessage, now: Now) -> Result<Step, Refused> {
        if let Some(request_id) = &message.request_id
            && self.queue.has_accepted(request_id)
        {
            return Ok(Step::default());
        }
        if message.images.is_empty() {
            message.content = require_text(message.content)?;
        }
        if self.turn.is_some() && self.queue.is_full() {
            return Err(Refused::new(
                ErrorCode::SessionBusy,
                "Cannot queue the message: 100 messages are queued already. Wait until some are sent, or remove some.",
            ));
        }
        if let Some(request_id) = &message.request_id {
            self.queue.accept(request_id.clone());
        }
        let mut step = Step::default();
        if self.turn.is_some() {
            self.queue.push(message);
            step.durable = Durable::Note(self.queue_note());
            step.info();
        } else {
            self.begin_turn(message, now, &mut step);
        }
        Ok(step)
    }

    pub(super) fn begin_turn(&mut self, message: QueuedMessage, now: Now, step: &mut Step) {
        let changes = self.entries.begin_turn(&message, &stamp(now.at));
        let begun = changes.iter().rev().find_map(|change| match change {
            EntryChange::Begin(entry) => Some(entry.entry_id().to_owned()),
            _ => None,
        });
        step.begin_turn(changes);
        if !self.titled && !message.content.trim().is_empty() {
            self.titled = true;
            step.summary(SummaryEffect::Title(title::derive(&message.content)));
        }
        step.summary(SummaryEffect::Touch);
        let number = self.next_number;
        self.next_number += 1;
        self.failed = false;
        self.text_bytes = 0;
        let attached = self.attachment == Attachment::Attached;
        let phase = match attached {
            true => TurnPhase::Working,
            false => TurnPhase::Starting,
        };
        self.turn = Some(Turn {
            number,
            message: message.clone(),
            started: now,
            phase,
            quiet_since: None,
            texts: vec![],
            last_entry: begun.unwrap_or_default(),
            failing: false,
            flood: None,
        });
        if attached {
            let turn = number;
            step.agent(AgentEffect::Prompt { turn, message });
        } else {
            self.attach(step);
        }
        step.info();
    }

    /// Cancels the turn and pauses the queue. A message sent after this to an empty queue is not paused.
    pub(super) fn cancel(&mut self, now: Now, step: &mut Step) {
        if self.turn.is_some() {
            self.queue.pause();
        }
        match self.phase() {
            // The prompt was not sent yet.
            Some(TurnPhase::Starting) => {
                self.end_turn(TurnOutcome::Cancelled, None, None, now, step);
            }
            Some(TurnPhase::Working) => {
                if let Some(turn) = &mut self.turn {
                    turn.phase = TurnPhase::Cancelling;
                }
                step.agent(AgentEffect::Cancel);
                self.cancel_permission_requests(step);
                self.close_elicitations(QuestionOutcome::Cancelled, step);
                step.info();
            }
            Some(TurnPhase::Cancelling) => step.info(),
            None => {}
        }
    }

    pub(super) fn end_turn(
        &mut self,
        outcome: TurnOutcome,
        message: Option<String>,
        tokens: Option<u64>,
        now: Now,
        step: &mut Step,
    ) {
        let Some(mut turn) = self.turn.take() else {
            return;
        };
        let (outcome, message) = match turn.flood.take() {
            Some(why) => (TurnOutcome::Failed, Some(why)),
            None => (outcome, message),
        };
        self.cancel_permission_requests(step);
        self.close_elicitations(
            match outcome {
                TurnOutcome::Interrupted => QuestionOutcome::Interrupted,
                _ => QuestionOutcome::Cancelled,
            },
            step,
        );
        for change in self.entries.end_turn() {
            step.change(change);
        }
        let spent = now.elapsed.saturating_sub(turn.started.elapsed).as_millis();
        step.change(self.entries.close_turn(TurnEntry {
            entry_id: String::new(),
            outcome,
            message,
            duration_ms: u64::try_from(spent).ok(),
            tokens,
            timestamp: stamp(now.at),
        }));
        let last = turn.texts.pop().unwrap_or(turn.last_entry);
        for text in turn.texts {
            step.log(LogEffect::Complete(text));
        }
        step.log(match outcome {
            TurnOutcome::Cancelled => LogEffect::Cancelled(last),
            _ => LogEffect::Complete(last),
        });
        step.log(LogEffect::Fold);
        step.summary(SummaryEffect::Touch);
        self.failed = outcome.is_failure();
        // A cancel by the user or the server has paused the queue already.
        let agent_cancelled = outcome == TurnOutcome::Cancelled && turn.phase == TurnPhase::Working;
        if self.failed || agent_cancelled {
            self.queue.pause();
        } else {
            self.next_queued(now, step);
        }
        step.info();
    }

    pub(super) fn next_queued(&mut self, now: Now, step: &mut Step) {
        if let Some(message) = self.queue.next() {
            self.begin_turn(message, now, step);
            // Saved after the turn began: if the server ends in between, the message is on disk twice, which is
            // detected by its request id; in the other order it would be lost.
            step.log(LogEffect::Note(self.queue_note()));
        }
    }
}

pub(super) fn require_text(content: String) -> Result<String, Refused> {
    match content.trim().is_empty() {
        true => Err(Refused::new(
            ErrorCode::InvalidMessage,
            "Cannot send the message: it is empty. Type some text or add a picture.",
        )),
        false => Ok(content),
    }
}

/// The outcome of a turn from the agent's answer to the prompt, with message and tokens. An unknown stop reason is
/// shown to the user.
pub(super) fn outcome(result: Result<Value, String>) -> (TurnOutcome, Option<String>, Option<u64>) {
    let answer = match result {
        Ok(answer) => answer,
        Err(message) => return (TurnOutcome::Failed, Some(message), None),
    };
    let tokens = answer["usage"]["totalTokens"].as_u64();
    match answer["stopReason"].as_str().unwrap_or_default() {
        "end_turn" => (TurnOutcome::Ended, None, tokens),
        "cancelled" => (TurnOutcome::Cancelled, None, tokens),
        "refusal" => (TurnOutcome::Refused, None, tokens),
        "max_tokens" => (TurnOutcome::MaxTokens, None, tokens),
        "max_turn_requests" => (TurnOutcome::MaxTurnRequests, None, tokens),
        other => (TurnOutcome::Other, Some(other.to_owned()), tokens),
    }
}
