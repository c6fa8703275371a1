//! A turn, from the message that begins it to its end.

use jiff::Timestamp;
use serde_json::Value;
use wire::{
    Attachment, ChatEntry, ErrorCode, QuestionOutcome, QueuedMessage, TurnEntry, TurnOutcome,
    TurnPhase,
};

use super::{Effect, Now, Refused, State, stamp};
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
    pub(super) fn send(
        &mut self,
        mut message: QueuedMessage,
        now: Now,
    ) -> Result<Vec<Effect>, Refused> {
        if let Some(request_id) = &message.request_id
            && self.queue.has_accepted(request_id)
        {
            return Ok(vec![]);
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
        let mut effects = vec![];
        if self.turn.is_some() {
            self.queue.push(message);
            effects.extend([Effect::SaveQueue, Effect::Info]);
        } else {
            self.begin_turn(message, now, &mut effects);
        }
        Ok(effects)
    }

    pub(super) fn begin_turn(
        &mut self,
        message: QueuedMessage,
        now: Now,
        effects: &mut Vec<Effect>,
    ) {
        effects.push(Effect::TurnBegins);
        let changes = self.entries.begin_turn(&message, &stamp(now.at));
        let mut last_entry = String::new();
        for change in changes {
            if let EntryChange::Begin(entry) = &change {
                entry.entry_id().clone_into(&mut last_entry);
                if matches!(entry, ChatEntry::User { .. }) {
                    effects.push(Effect::Origin);
                }
            }
            effects.push(Effect::Change(change));
        }
        if !self.titled && !message.content.trim().is_empty() {
            self.titled = true;
            effects.push(Effect::Title(title::derive(&message.content)));
        }
        effects.push(Effect::Touch);
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
            last_entry,
            failing: false,
            flood: None,
        });
        if attached {
            let turn = number;
            effects.push(Effect::Prompt { turn, message });
        } else {
            self.attach(effects);
        }
        effects.push(Effect::Info);
    }

    /// Cancels the turn and pauses the queue. A message sent after this to an empty queue is not paused.
    pub(super) fn cancel(&mut self, now: Now, effects: &mut Vec<Effect>) {
        if self.turn.is_some() {
            self.queue.hold();
        }
        match self.phase() {
            // The prompt was not sent yet.
            Some(TurnPhase::Starting) => {
                self.end_turn(TurnOutcome::Cancelled, None, None, now, effects);
            }
            Some(TurnPhase::Working) => {
                if let Some(turn) = &mut self.turn {
                    turn.phase = TurnPhase::Cancelling;
                }
                effects.push(Effect::CancelPrompt);
                self.cancel_permission_requests(effects);
                self.close_elicitations(QuestionOutcome::Cancelled, effects);
                effects.push(Effect::Info);
            }
            Some(TurnPhase::Cancelling) => effects.push(Effect::Info),
            None => {}
        }
    }

    pub(super) fn end_turn(
        &mut self,
        outcome: TurnOutcome,
        message: Option<String>,
        tokens: Option<u64>,
        now: Now,
        effects: &mut Vec<Effect>,
    ) {
        let Some(mut turn) = self.turn.take() else {
            return;
        };
        let (outcome, message) = match turn.flood.take() {
            Some(why) => (TurnOutcome::Failed, Some(why)),
            None => (outcome, message),
        };
        self.cancel_permission_requests(effects);
        self.close_elicitations(
            match outcome {
                TurnOutcome::Interrupted => QuestionOutcome::Interrupted,
                _ => QuestionOutcome::Cancelled,
            },
            effects,
        );
        effects.extend(self.entries.end_turn().into_iter().map(Effect::Change));
        let spent = now.elapsed.saturating_sub(turn.started.elapsed).as_millis();
        effects.push(Effect::Change(self.entries.close_turn(TurnEntry {
            entry_id: String::new(),
            outcome,
            message,
            duration_ms: u64::try_from(spent).ok(),
            tokens,
            timestamp: stamp(now.at),
        })));
        let last = turn.texts.pop().unwrap_or(turn.last_entry);
        effects.extend(turn.texts.into_iter().map(Effect::Complete));
        effects.push(match outcome {
            TurnOutcome::Cancelled => Effect::Cancelled(last),
            _ => Effect::Complete(last),
        });
        effects.extend([Effect::Fold, Effect::Touch]);
        self.failed = outcome.is_failure();
        // A cancel by the user or the server has paused the queue already.
        let agent_cancelled = outcome == TurnOutcome::Cancelled && turn.phase == TurnPhase::Working;
        if self.failed || agent_cancelled {
            self.queue.hold();
        } else {
            self.next_queued(now, effects);
        }
        effects.push(Effect::Info);
    }

    pub(super) fn next_queued(&mut self, now: Now, effects: &mut Vec<Effect>) {
        if let Some(message) = self.queue.next() {
            self.begin_turn(message, now, effects);
            // Saved after the turn began: if the server ends in between, the message is on disk twice, which is
            // detected by its request id; in the other order it would be lost.
            effects.push(Effect::SaveQueue);
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
