//! Permission requests of the agent: answered by the approval policy or by the user.

use wire::{ErrorCode, PermissionOption, PermissionPolicy, PermissionQuestion, TurnPhase};

use super::{AgentEffect, Now, Refused, State, Step, stamp};
use conversation::{ToolCallPatch, Update};

impl State {
    pub(super) fn permission_requested(
        &mut self,
        permission_id: String,
        mut patch: ToolCallPatch,
        options: Vec<PermissionOption>,
        guarded: bool,
        now: Now,
        step: &mut Step,
    ) {
        let tool_call_id = patch.tool_call_id.clone();
        let title = patch.title.clone().unwrap_or_default();
        // A permission request is for a tool call of the current turn, never of an earlier one.
        patch.announces = true;
        self.update(Update::ToolCall(Box::new(patch)), now, step);
        if matches!(self.phase(), None | Some(TurnPhase::Cancelling)) {
            step.agent(AgentEffect::AnswerPermission {
                permission_id,
                option_id: None,
                by_policy: false,
            });
            return;
        }
        if self.policy == PermissionPolicy::Allow
            && !guarded
            && let Some(option) = narrowest_allowing_option(&options)
        {
            step.agent(AgentEffect::AnswerPermission {
                permission_id,
                option_id: Some(option.option_id.clone()),
                by_policy: true,
            });
            return;
        }
        self.permission_requests.push(PermissionQuestion {
            permission_id,
            tool_call_id,
            title,
            options,
            asked_at: stamp(now.at),
            guarded,
        });
        step.info();
    }

    pub(super) fn answer_permission(
        &mut self,
        permission_id: String,
        option_id: String,
        step: &mut Step,
    ) -> Result<(), Refused> {
        let open = self
            .permission_requests
            .iter()
            .position(|request| request.permission_id == permission_id);
        let chosen = open.and_then(|at| {
            let options = &self.permission_requests[at].options;
            let option = options
                .iter()
                .find(|option| option.option_id == option_id)?;
            Some((at, option.name.clone()))
        });
        let Some((at, name)) = chosen else {
            return Err(Refused::new(
                ErrorCode::SessionBusy,
                "Cannot answer the permission request: it was answered or cancelled already.",
            ));
        };
        let request = self.permission_requests.remove(at);
        let change = self.entries.answered(&request.tool_call_id, name);
        change.into_iter().for_each(|change| step.change(change));
        step.agent(AgentEffect::AnswerPermission {
            permission_id,
            option_id: Some(option_id),
            by_policy: false,
        });
        step.info();
        Ok(())
    }

    pub(super) fn cancel_permission_requests(&mut self, step: &mut Step) {
        for request in self.permission_requests.drain(..) {
            step.agent(AgentEffect::AnswerPermission {
                permission_id: request.permission_id,
                option_id: None,
                by_policy: false,
            });
        }
    }
}

fn narrowest_allowing_option(options: &[PermissionOption]) -> Option<&PermissionOption> {
    let of_kind = |kind: &str| options.iter().find(|option| option.kind == kind);
    of_kind("allow_once").or_else(|| of_kind("allow_always"))
}
