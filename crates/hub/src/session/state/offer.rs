//! What the agent offers in a session, as it last said.

use serde_json::Value;
use wire::{ContextUsage, Modes, SlashCommand};

use crate::agents::from_acp::{self, SessionChange};

#[derive(Debug, Default)]
pub(super) struct Offer {
    pub(super) commands: Vec<SlashCommand>,
    pub(super) modes: Option<Modes>,
    pub(super) options: Vec<Value>,
    pub(super) usage: Option<ContextUsage>,
    pub(super) takes_images: bool,
}

impl Offer {
    /// The agent has opened the session.
    pub(super) fn attached(&mut self, answer: &Value, takes_images: bool) {
        self.takes_images = takes_images;
        self.modes = from_acp::modes(answer).or(self.modes.take());
        self.options_set(answer);
        let is_model = |option: &Value| option["category"] == "model";
        if !self.options.iter().any(is_model) {
            self.options.extend(from_acp::older_models(answer));
        }
    }

    /// The answer has all of them, or, for one of an older form, that one's new value.
    pub(super) fn options_set(&mut self, answer: &Value) {
        for option in &mut self.options {
            if let Some(value) = answer.get(from_acp::OLDER_MODEL)
                && option["id"] == from_acp::OLDER_MODEL
            {
                option["currentValue"] = value.clone();
            }
        }
        if let Value::Array(options) = &answer["configOptions"] {
            self.options.clone_from(options);
        }
    }

    pub(super) fn mode_set(&mut self, mode: String) {
        if let Some(modes) = &mut self.modes {
            modes.current = mode;
        }
    }

    pub(super) fn change(&mut self, change: SessionChange) {
        match change {
            SessionChange::Commands(commands) => self.commands = commands,
            SessionChange::Mode(mode) => self.mode_set(mode),
            SessionChange::ConfigOptions(options) => self.options = options,
            SessionChange::Usage(usage) => self.usage = Some(usage),
            // Titles are ours: from the first message, or from the person.
            SessionChange::Title(_) => {}
            // About the turn, not about what can be chosen.
            SessionChange::Failing => {}
        }
    }
}
