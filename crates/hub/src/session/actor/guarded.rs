//! A write that a person has to agree to: asked in the conversation like an agent's own question, and carried out, once,
//! if the answer is yes.

use std::path::PathBuf;

use serde_json::Value;
use wire::{PermissionOption, ToolContent, ToolKind, ToolStatus};

use super::{Actor, Own};
use crate::session::state::Input;
use agents::Answer;
use conversation::{ToolCallPatch, Update};

pub(super) const AGREE: &str = "liminal-write";
const REFUSE: &str = "liminal-leave";
/// What is shown of the new content.
const SHOWN_BYTES_MAX: usize = 64 * 1024;
const INVALID_PARAMS: i32 = -32602;

/// Who waits for the answer to a permission question.
pub(super) enum Waiting {
    /// The agent, which asked.
    Agent(Answer),
    /// The agent, which did not ask, and its write.
    Write { wanted: Guarded, call_id: String },
}

/// What an agent wants to write.
pub(super) struct Guarded {
    /// Below the project, with every link followed.
    pub(super) path: PathBuf,
    pub(super) params: Value,
    pub(super) answer: Answer,
}

impl Actor {
    pub(super) async fn ask_to_write(&mut self, wanted: Guarded) {
        let permission_id = format!("p{}", self.next_question);
        self.next_question += 1;
        let call_id = format!("liminal-write-{permission_id}");
        let path = wanted.path.to_string_lossy().into_owned();
        let title = format!("Write {path}");
        let content = wanted.params["content"].as_str().unwrap_or_default();
        let content = match content.len() <= SHOWN_BYTES_MAX {
            true => ToolContent::Diff {
                path,
                old_text: None,
                new_text: content.to_owned(),
            },
            false => ToolContent::Text {
                text: format!("{} bytes, too much to show here.", content.len()),
            },
        };
        let patch = ToolCallPatch {
            title: Some(title.clone()),
            kind: Some(ToolKind::Edit),
            status: Some(ToolStatus::Running),
            content: Some(vec![content]),
            ..ToolCallPatch::new(&call_id)
        };
        let option = |id: &str, name: &str, kind: &str| PermissionOption {
            option_id: id.to_owned(),
            name: name.to_owned(),
            kind: kind.to_owned(),
        };
        let options = vec![
            option(AGREE, "Write it", "allow_once"),
            option(REFUSE, "Leave it", "reject_once"),
        ];
        self.questions.insert(
            permission_id.clone(),
            (Waiting::Write { wanted, call_id }, title),
        );
        self.step(Input::PermissionAsked {
            permission_id,
            patch: Box::new(patch),
            options,
            guarded: true,
        })
        .await;
    }

    pub(super) fn write_if(&mut self, agreed: bool, wanted: Guarded, call_id: String) {
        let (own, host) = (self.own.clone(), self.host.clone());
        let Guarded {
            path,
            params,
            answer,
        } = wanted;
        tokio::spawn(async move {
            let written = match (agreed, host) {
                (true, Some(host)) => host
                    .write_agreed(params, path)
                    .await
                    .map_err(|refusal| (refusal.code, refusal.message)),
                _ => Err((INVALID_PARAMS, "the person did not agree to it".to_owned())),
            };
            let status = match written {
                Ok(_) => ToolStatus::Complete,
                Err(_) => ToolStatus::Error,
            };
            let patch = ToolCallPatch {
                status: Some(status),
                ..ToolCallPatch::new(&call_id)
            };
            // Before the agent goes on with it.
            let ended = Input::Update(Update::ToolCall(Box::new(patch)));
            let _ = own.send(Own::Input(ended)).await;
            match written {
                Ok(result) => answer.succeed(result),
                Err((code, message)) => answer.refuse(code, &message),
            }
        });
    }
}
