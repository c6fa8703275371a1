//! What the agent may do only when it is let to.

use wire::{ErrorCode, PermissionOption, PermissionPolicy, PermissionQuestion, TurnPhase};

use super::{Effect, Now, Refused, State, stamp};
use conversation::{ToolCallPatch, Update};

impl State {
    pub(super) fn asked(
        &mut self,
        permission_id: String,
        mut patch: ToolCallPatch,
        options: Vec<PermissionOption>,
        guarded: bool,
        now: Now,
        effects: &mut Vec<Effect>,
    ) {
        let tool_call_id = patch.tool_call_id.clone();
        let title = patch.title.clone().unwrap_or_default();
        // What the agent wants to do now is no call of an earlier turn.
        patch.announces = true;
        self.update(Update::ToolCall(Box::new(patch)), now, effects);
        if matches!(self.phase(), None | Some(TurnPhase::Cancelling)) {
            effects.push(Effect::AnswerPermission {
                permission_id,
                option_id: None,
                by_policy: false,
            });
            return;
        }
        if self.policy == PermissionPolicy::Allow
            && !guarded
            && let Some(option) = least_that_allows(&options)
        {
            effects.push(Effect::AnswerPermission {
                permission_id,
                option_id: Some(option.option_id.clone()),
                by_policy: true,
            });
            return;
        }
        self.permissions.push(PermissionQuestion {
            permission_id,
            tool_call_id,
            title,
            options,
            asked_at: stamp(now.at),
            guarded,
        });
        effects.push(Effect::Info);
    }

    pub(super) fn permission_answered(
        &mut self,
        permission_id: String,
        option_id: String,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Refused> {
        let asked = self
            .permissions
            .iter()
            .position(|question| question.permission_id == permission_id);
        let chosen = asked.and_then(|at| {
            let options = &self.permissions[at].options;
            let option = options
                .iter()
                .find(|option| option.option_id == option_id)?;
            Some((at, option.name.clone()))
        });
        let Some((at, name)) = chosen else {
            return Err(Refused::new(
                ErrorCode::SessionBusy,
                "That question has been answered, or is no longer asked.",
            ));
        };
        let question = self.permissions.remove(at);
        let change = self.entries.answered(&question.tool_call_id, name);
        effects.extend(change.map(Effect::Change));
        effects.push(Effect::AnswerPermission {
            permission_id,
            option_id: Some(option_id),
            by_policy: false,
        });
        effects.push(Effect::Info);
        Ok(())
    }

    pub(super) fn drop_questions(&mut self, effects: &mut Vec<Effect>) {
        for question in self.permissions.drain(..) {
            effects.push(Effect::AnswerPermission {
                permission_id: question.permission_id,
                option_id: None,
                by_policy: false,
            });
        }
    }
}

fn least_that_allows(options: &[PermissionOption]) -> Option<&PermissionOption> {
    let of_kind = |kind: &str| options.iter().find(|option| option.kind == kind);
    of_kind("allow_once").or_else(|| of_kind("allow_always"))
}
