//! Writes to sensitive paths: the user is asked with a permission request, and the write is carried out once if the
//! user allows it.

use std::path::PathBuf;

use serde_json::Value;
use wire::{PermissionOption, ToolContent, ToolKind, ToolStatus};

use super::{SessionTask, TaskReport};
use crate::session::state::Input;
use agents::Answer;
use conversation::{ToolCallPatch, Update};

pub(super) const ALLOW_WRITE: &str = "liminal-write";
const REJECT_WRITE: &str = "liminal-leave";
/// Maximum size of new content that the permission request shows.
const SHOWN_BYTES_MAX: usize = 64 * 1024;
const INVALID_PARAMS: i32 = -32602;

/// An open permission request, with its recipient.
pub(super) enum PendingPermission {
    /// The agent requested permission itself.
    Agent(Answer),
    /// The server requires permission for a write of the agent.
    Write {
        write: GuardedWrite,
        call_id: String,
    },
}

/// A write to a sensitive path that the agent requested.
pub(super) struct GuardedWrite {
    /// Path below the project, with symlinks resolved.
    pub(super) path: PathBuf,
    pub(super) params: Value,
    pub(super) answer: Answer,
}

impl SessionTask {
    pub(super) async fn request_write_permission(&mut self, write: GuardedWrite) {
        let permission_id = format!("p{}", self.next_permission);
        self.next_permission += 1;
        let call_id = format!("liminal-write-{permission_id}");
        let path = write.path.to_string_lossy().into_owned();
        let title = format!("Write {path}");
        let content = write.params["content"].as_str().unwrap_or_default();
        let content = match content.len() <= SHOWN_BYTES_MAX {
            true => ToolContent::Diff {
                path,
                old_text: None,
                new_text: content.to_owned(),
            },
            false => ToolContent::Text {
                text: format!("{} bytes, too large to show here.", content.len()),
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
            option(ALLOW_WRITE, "Write it", "allow_once"),
            option(REJECT_WRITE, "Leave it", "reject_once"),
        ];
        self.permission_requests.insert(
            permission_id.clone(),
            (PendingPermission::Write { write, call_id }, title),
        );
        self.step(Input::PermissionRequested {
            permission_id,
            patch: Box::new(patch),
            options,
            guarded: true,
        })
        .await;
    }

    pub(super) fn finish_write(&mut self, allowed: bool, write: GuardedWrite, call_id: String) {
        let (reports, host) = (self.reports.clone(), self.host.clone());
        let GuardedWrite {
            path,
            params,
            answer,
        } = write;
        tokio::spawn(async move {
            let written = match (allowed, host) {
                (true, Some(host)) => host
                    .write_agreed(params, path)
                    .await
                    .map_err(|refusal| (refusal.code, refusal.message)),
                _ => Err((
                    INVALID_PARAMS,
                    "the user did not allow the write".to_owned(),
                )),
            };
            let status = match written {
                Ok(_) => ToolStatus::Complete,
                Err(_) => ToolStatus::Error,
            };
            let patch = ToolCallPatch {
                status: Some(status),
                ..ToolCallPatch::new(&call_id)
            };
            // First, so that the tool call ends before the agent continues.
            let ended = Input::Update(Update::ToolCall(Box::new(patch)));
            let _ = reports.send(TaskReport::Input(ended)).await;
            match written {
                Ok(result) => answer.succeed(result),
                Err((code, message)) => answer.refuse(code, &message),
            }
        });
    }
}
