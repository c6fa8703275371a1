//! Open permission requests: those of the agent, and those of the server for writes to sensitive paths, which are
//! carried out once if the user allows them.

use std::collections::HashMap;
use std::path::PathBuf;

use serde_json::{Value, json};
use wire::{PermissionOption, ToolContent, ToolKind, ToolStatus};

use super::{AgentLink, INVALID_PARAMS};
use crate::session::state::Input;
use crate::session::task::TaskReport;
use agents::{Answer, AuditWhat, DecidedBy};
use conversation::{ToolCallPatch, Update};

const ALLOW_WRITE: &str = "liminal-write";
const REJECT_WRITE: &str = "liminal-leave";
/// Maximum size of new content that the permission request shows.
const SHOWN_BYTES_MAX: usize = 64 * 1024;

/// The open permission requests with their titles, by permission id.
#[derive(Default)]
pub(super) struct Permissions {
    open: HashMap<String, (Recipient, String)>,
    opened: u64,
}

/// The recipient of the answer to a permission request.
enum Recipient {
    /// The agent requested permission itself.
    Agent(Answer),
    /// The server requires permission for a write of the agent.
    Write {
        write: GuardedWrite,
        call_id: String,
    },
}

/// A write to a sensitive path that the agent requested.
pub(in crate::session::task) struct GuardedWrite {
    /// Path below the project, with symlinks resolved.
    pub(super) path: PathBuf,
    pub(super) params: Value,
    pub(super) answer: Answer,
}

impl Permissions {
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Adds a request of the agent. Returns its id.
    pub(super) fn open(&mut self, answer: Answer, title: String) -> String {
        let id = self.next_id();
        self.open
            .insert(id.clone(), (Recipient::Agent(answer), title));
        id
    }

    fn next_id(&mut self) -> String {
        self.opened += 1;
        format!("p{}", self.opened)
    }
}

impl AgentLink {
    /// Requests the user's permission for a write to a sensitive path.
    pub(in crate::session::task) fn request_write(&mut self, write: GuardedWrite) -> Input {
        let permission_id = self.permissions.next_id();
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
        let recipient = Recipient::Write { write, call_id };
        self.permissions
            .open
            .insert(permission_id.clone(), (recipient, title));
        Input::PermissionRequested {
            permission_id,
            patch: Box::new(patch),
            options,
            guarded: true,
        }
    }

    /// Records the decision in the audit log, and sends it to the recipient.
    pub(super) fn send_permission_answer(
        &mut self,
        permission_id: &str,
        option_id: Option<String>,
        by_policy: bool,
    ) {
        let Some((recipient, question)) = self.permissions.open.remove(permission_id) else {
            return;
        };
        let by = match (by_policy, &option_id) {
            (true, _) => DecidedBy::Policy,
            (false, Some(_)) => DecidedBy::Person,
            (false, None) => DecidedBy::Cancel,
        };
        let what = AuditWhat::Permission {
            question,
            chosen: option_id.clone(),
            by,
        };
        self.host_setup.audit.record(&self.meta.id, what);
        match recipient {
            Recipient::Agent(answer) => answer.succeed(match option_id {
                Some(id) => json!({"outcome": {"outcome": "selected", "optionId": id}}),
                None => json!({"outcome": {"outcome": "cancelled"}}),
            }),
            Recipient::Write { write, call_id } => {
                let allowed = option_id.is_some_and(|id| id == ALLOW_WRITE);
                self.finish_write(allowed, write, call_id);
            }
        }
    }

    fn finish_write(&mut self, allowed: bool, write: GuardedWrite, call_id: String) {
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
