//! What the agent offers in a session, as it last said, and what was chosen of it.

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

/// One of the things that an agent lets one choose.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Choice {
    Mode(String),
    Option { id: String, value: Value },
}

impl Offer {
    /// The agent has opened the session.
    pub(super) fn attached(&mut self, answer: &Value, takes_images: bool) {
        self.takes_images = takes_images;
        self.modes = from_acp::modes(answer).or(self.modes.take());
        self.options_are(answer);
        let is_model = |option: &Value| option["category"] == "model";
        if !self.options.iter().any(is_model) {
            self.options.extend(from_acp::older_models(answer));
        }
    }

    /// What is to be chosen again in a session that the agent has opened with this answer.
    pub(super) fn forgotten(&self, answer: &Value) -> Vec<Choice> {
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
        let options = options.map(|(id, value)| Choice::Option {
            id: id.clone(),
            value: value.clone(),
        });
        mode.into_iter().map(Choice::Mode).chain(options).collect()
    }

    /// The agent agreed.
    pub(super) fn chose(&mut self, choice: &Choice, answer: &Value) {
        match choice {
            Choice::Mode(mode) => {
                self.mode_is(mode);
                self.chosen.mode = Some(mode.clone());
            }
            Choice::Option { id, value } => {
                self.options_are(answer);
                self.chosen.options.retain(|(chosen, _)| chosen != id);
                self.chosen.options.push((id.clone(), value.clone()));
            }
        }
    }

    /// The answer has all of them, or, for one of an older form, that one's new value.
    fn options_are(&mut self, answer: &Value) {
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

    fn mode_is(&mut self, mode: &str) {
        if let Some(modes) = &mut self.modes {
            mode.clone_into(&mut modes.current);
        }
    }

    pub(super) fn change(&mut self, change: SessionChange) {
        match change {
            SessionChange::Commands(commands) => self.commands = commands,
            SessionChange::Mode(mode) => self.mode_is(&mode),
            SessionChange::ConfigOptions(options) => self.options = options,
            SessionChange::Usage(usage) => self.usage = Some(usage),
            // Titles are ours: from the first message, or from the person.
            SessionChange::Title(_) => {}
            // About the turn, not about what can be chosen.
            SessionChange::Failing => {}
        }
    }

    /// Takes over what the agent has changed of what was chosen; true if it has.
    pub(super) fn follow(&mut self) -> bool {
        let mut followed = self.chosen.clone();
        if let (Some(mode), Some(modes)) = (&mut followed.mode, &self.modes) {
            mode.clone_from(&modes.current);
        }
        for (id, value) in &mut followed.options {
            if let Some(option) = self.options.iter().find(|option| option["id"] == **id) {
                value.clone_from(&option["currentValue"]);
            }
        }
        let changed = followed != self.chosen;
        self.chosen = followed;
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
    fn what_was_chosen_is_chosen_again_where_the_agent_has_forgotten() {
        let mut offer = Offer::default();
        offer.attached(&opened("code", "small", "low"), false);
        assert_eq!(offer.forgotten(&opened("plan", "large", "high")), []);
        let plan = Choice::Mode("plan".to_owned());
        let large = Choice::Option {
            id: "model".to_owned(),
            value: json!("large"),
        };
        offer.chose(&plan, &Value::Null);
        offer.chose(&large, &opened("plan", "large", "low"));
        assert_eq!(offer.forgotten(&opened("plan", "large", "low")), []);
        let other = opened("code", "small", "high");
        assert_eq!(offer.forgotten(&other), [plan, large.clone()]);
        assert_eq!(offer.forgotten(&json!({})), [], "no longer offered");
        // The agent left the mode by itself.
        offer.change(SessionChange::Mode("code".to_owned()));
        assert!(offer.follow());
        assert!(!offer.follow());
        assert_eq!(offer.forgotten(&other), [large]);
    }
}
