//! The messages of the browser's WebSocket (`/ws`).

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::{AgentSummary, ErrorCode, PermissionPolicy, Project};

/// A message from a browser, with the id its answer should carry.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct ClientFrame {
    #[serde(default)]
    #[ts(optional)]
    pub request_id: Option<String>,
    #[serde(flatten)]
    pub message: ClientMessage,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, TS)]
#[serde(tag = "type", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum ClientMessage {
    #[serde(rename = "project:list")]
    ProjectList {},
    #[serde(rename = "project:add")]
    ProjectAdd { path: String },
    #[serde(rename = "project:remove")]
    ProjectRemove { project_id: String },
    /// Undoes a removal: the project comes back where it was.
    #[serde(rename = "project:restore")]
    ProjectRestore { project_id: String },
    /// Asks which folders the typed path could become.
    #[serde(rename = "folder:complete")]
    FolderComplete { path: String },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[serde(tag = "type", rename_all_fields = "camelCase")]
pub enum ServerMessage {
    /// The first message on every connection.
    #[serde(rename = "hello")]
    Hello {
        /// New with every start of the server.
        boot_id: String,
        version: String,
        agents: Vec<AgentSummary>,
        permissions: PermissionPolicy,
        /// What a person should know about this start, such as a file that had to be set aside.
        notices: Vec<String>,
    },
    #[serde(rename = "project:list")]
    ProjectList {
        projects: Vec<Project>,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        request_id: Option<String>,
    },
    #[serde(rename = "project:added")]
    ProjectAdded {
        project: Project,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        request_id: Option<String>,
    },
    #[serde(rename = "project:removed")]
    ProjectRemoved {
        project_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        request_id: Option<String>,
    },
    #[serde(rename = "folder:completions")]
    FolderCompletions {
        /// The text that was asked about.
        path: String,
        folders: Vec<FolderSuggestion>,
        /// Whether there were more than we list.
        truncated: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        request_id: Option<String>,
    },
    #[serde(rename = "error")]
    Error {
        code: ErrorCode,
        message: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        request_id: Option<String>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct FolderSuggestion {
    pub name: String,
    /// What the input should hold when this one is chosen: in the typed style (`~` stays `~`), ending in `/`.
    pub path: String,
    /// Whether it is a project already.
    pub added: bool,
}
