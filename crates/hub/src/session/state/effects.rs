//! Effects: the actions that a session's task carries out after an input.
//!
//! Invariant: changes that must be durable before a request is accepted come first and have a type of their own
//! (`Durable`). All other effects follow in order and can no longer be refused.

use serde_json::{Map, Value};
use wire::{ErrorCode, QuestionOutcome, QueuedMessage};

use conversation::{EntryChange, Update};
use store::transcript::Note;

/// The result of an input.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Step {
    pub(crate) durable: Durable,
    pub(crate) then: Vec<Effect>,
}

/// A change that must be on disk before a request is accepted. If the write fails, the request is refused and changes
/// nothing.
#[derive(Debug, Default, PartialEq)]
pub(crate) enum Durable {
    #[default]
    Nothing,
    /// A turn begins with these entries; from now on a crash interrupts it.
    TurnBegins(Vec<EntryChange>),
    Note(Note),
}

/// An action for the task to carry out.
#[derive(Debug, PartialEq)]
pub(crate) enum Effect {
    Log(LogEffect),
    Agent(AgentEffect),
    Summary(SummaryEffect),
}

/// An action on the conversation and its subscribers.
#[derive(Debug, PartialEq)]
pub(crate) enum LogEffect {
    /// Write, number and publish a change.
    Change(EntryChange),
    /// As `Durable::TurnBegins`, for a turn that follows other effects.
    TurnBegins(Vec<EntryChange>),
    /// Change an entry of an earlier turn and publish the whole entry.
    Amend {
        entry_id: String,
        update: Box<Update>,
    },
    /// Publish that an entry is final.
    Complete(String),
    Cancelled(String),
    /// Move the finished entries from the live log to the transcript.
    Fold,
    Note(Note),
}

/// An action on the agent.
#[derive(Debug, PartialEq)]
pub(crate) enum AgentEffect {
    /// Open the session with the agent.
    Attach,
    Prompt {
        turn: u64,
        message: QueuedMessage,
    },
    /// Cancel the prompt.
    Cancel,
    /// `None` is the protocol's `cancelled`.
    AnswerPermission {
        permission_id: String,
        option_id: Option<String>,
        by_policy: bool,
    },
    AnswerElicitation {
        question_id: String,
        outcome: QuestionOutcome,
        answers: Option<Map<String, Value>>,
    },
    /// End the agent process.
    Kill,
}

/// An action on the session's summary in lists and headers.
#[derive(Debug, PartialEq)]
pub(crate) enum SummaryEffect {
    /// Publish `SessionInfo`.
    Info,
    Title(String),
    /// Set the time of the last activity to now.
    Touch,
}

/// Reason for refusing a request; the state is unchanged.
#[derive(Debug, PartialEq)]
pub(crate) struct Refused {
    pub(crate) code: ErrorCode,
    pub(crate) message: String,
}

impl Refused {
    pub(super) fn new(code: ErrorCode, message: &str) -> Self {
        Self {
            code,
            message: message.to_owned(),
        }
    }
}

impl Step {
    /// Begins a turn: durable before the request is accepted, unless other effects come first.
    pub(super) fn begin_turn(&mut self, changes: Vec<EntryChange>) {
        match self.durable == Durable::Nothing && self.then.is_empty() {
            true => self.durable = Durable::TurnBegins(changes),
            false => self.log(LogEffect::TurnBegins(changes)),
        }
    }

    pub(super) fn log(&mut self, effect: LogEffect) {
        self.then.push(Effect::Log(effect));
    }

    pub(super) fn agent(&mut self, effect: AgentEffect) {
        self.then.push(Effect::Agent(effect));
    }

    pub(super) fn summary(&mut self, effect: SummaryEffect) {
        self.then.push(Effect::Summary(effect));
    }

    pub(super) fn change(&mut self, change: EntryChange) {
        self.log(LogEffect::Change(change));
    }

    pub(super) fn info(&mut self) {
        self.summary(SummaryEffect::Info);
    }
}

#[cfg(test)]
impl Step {
    pub(super) fn begins_turn(&self) -> bool {
        matches!(self.durable, Durable::TurnBegins(_))
    }

    pub(super) fn has_agent(&self, effect: &AgentEffect) -> bool {
        let is_it = |it: &Effect| matches!(it, Effect::Agent(agent) if agent == effect);
        self.then.iter().any(is_it)
    }
}
