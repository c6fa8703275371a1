//! The commands, modes and options that the agent offers in a session, and the user's choices among them.

use serde_json::Value;
use wire::{ContextUsage, Modes, SlashCommand};

use agents::from_acp;
use conversation::SessionChange;
use store::transcript::Chosen;

#[derive(Debug, Clone, Default)]
pub(super) struct Offer {
    pub(super) commands: Vec<SlashCommand>,
    pub(super) modes: Option<Modes>,
    pub(super) options: Vec<Value>,
    pub(super) usage: Option<ContextUsage>,
    pub(super) takes_images: bool,
    pub(super) chosen: Chosen,
}

/// A value that the user picked among the agent's modes or options.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ConfigChoice {
    Mode(String),
    Option { id: String, value: Value },
}

impl Offer {
    /// Takes over the offer from the agent's answer to opening the session.
    pub(super) fn attached(&mut self, answer: &Value, takes_images: bool) {
        self.takes_images = takes_images;
        self.modes = from_acp::modes(answer).or(self.modes.take());
        self.set_options(answer);
        let is_model = |option: &Value| option["category"] == "model";
        if !self.options.iter().any(is_model) {
            self.options.extend(from_acp::older_models(answer));
        }
    }

    /// The user's choices that differ from the settings in the agent's answer to opening the session.
    pub(super) fn choices_to_restore(&self, answer: &Value) -> Vec<ConfigChoice> {
        let mut fresh = Self::default();
        fresh.attached(answer, false);
        let current = fresh.modes.map(|modes| modes.current);
        let mode = self.chosen.mode.clone();
        let mode = mode.filter(|mode| current.is_some_and(|current| current != *mode));
        let other = |(id, value): &&(String, Value)| {
            let mut options = fresh.options.iter();
            options.any(|option| option["id"] == **id && option["currentValue"] != *value)
        };
        let options = self.chosen.options.iter().filter(other);
        let options = options.map(|(id, value)| ConfigChoice::Option {
            id: id.clone(),
            value: value.clone(),
        });
        mode.into_iter()
            .map(ConfigChoice::Mode)
            .chain(options)
            .collect()
    }

    /// Records a choice that the agent accepted, with its answer.
    pub(super) fn choice_accepted(&mut self, choice: &ConfigChoice, answer: &Value) {
        match choice {
            ConfigChoice::Mode(mode) => {
                self.set_mode(mode);
                self.chosen.mode = Some(mode.clone());
            }
            ConfigChoice::Option { id, value } => {
                self.set_options(answer);
                self.chosen.options.retain(|(chosen, _)| chosen != id);
                self.chosen.options.push((id.clone(), value.clone()));
            }
        }
    }

    /// Takes over the options from an answer: all of them, or the value of the model in an older form of the protocol.
    fn set_options(&mut self, answer: &Value) {
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

    fn set_mode(&mut self, mode: &str) {
        if let Some(modes) = &mut self.modes {
            mode.clone_into(&mut modes.current);
        }
    }

    pub(super) fn change(&mut self, change: SessionChange) {
        match change {
            SessionChange::Commands(commands) => self.commands = commands,
            SessionChange::Mode(mode) => self.set_mode(&mode),
            SessionChange::ConfigOptions(options) => self.options = options,
            SessionChange::Usage(usage) => self.usage = Some(usage),
            // A title comes from the first message or from the user, never from the agent.
            SessionChange::Title(_) => {}
            // Concerns the turn; handled in `State::update`.
            SessionChange::Failing => {}
        }
    }

    /// Replaces the user's choices by the values that the agent has set since. True if any choice changed.
    pub(super) fn sync_choices(&mut self) -> bool {
        let mut current = self.chosen.clone();
        if let (Some(mode), Some(modes)) = (&mut current.mode, &self.modes) {
            mode.clone_from(&modes.current);
        }
        for (id, value) in &mut current.options {
            if let Some(option) = self.options.iter().find(|option| option["id"] == **id) {
                value.clone_from(&option["currentValue"]);
            }
        }
        let changed = current != self.chosen;
        self.chosen = current;
        changed
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn opened(mode: &str, model: &str, effort: &str) -> Value {
        json!({
            "modes": {"currentModeId": mode, "availableModes": [{"id": "plan", "name": "Plan"}, {"id": "code", "name": "Code"}]},
            "configOptions": [
                {"id": "model", "category": "model", "currentValue": model},
                {"id": "effort", "currentValue": effort},
            ],
        })
    }

    #[test]
    fn only_choices_that_the_agent_lost_are_restored() {
        let mut offer = Offer::default();
        offer.attached(&opened("code", "small", "low"), false);
        assert_eq!(
            offer.choices_to_restore(&opened("plan", "large", "high")),
            []
        );
        let plan = ConfigChoice::Mode("plan".to_owned());
        let large = ConfigChoice::Option {
            id: "model".to_owned(),
            value: json!("large"),
        };
        offer.choice_accepted(&plan, &Value::Null);
        offer.choice_accepted(&large, &opened("plan", "large", "low"));
        assert_eq!(
            offer.choices_to_restore(&opened("plan", "large", "low")),
            []
        );
        let other = opened("code", "small", "high");
        assert_eq!(offer.choices_to_restore(&other), [plan, large.clone()]);
        assert_eq!(
            offer.choices_to_restore(&json!({})),
            [],
            "no longer offered"
        );
        // The agent changed the mode itself.
        offer.change(SessionChange::Mode("code".to_owned()));
        assert!(offer.sync_choices());
        assert!(!offer.sync_choices());
        assert_eq!(offer.choices_to_restore(&other), [large]);
    }
}
