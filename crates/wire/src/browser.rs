//! Messages of the browser API, on the WebSocket `/ws`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::{
    AgentMemory, AgentState, AgentSummary, ChatEntry, ErrorCode, InstallState, PermissionPolicy,
    Position, Project, QuestionAction, SessionInfo, SessionListItem, SessionState, SignInShown,
    TrafficFrame,
};

/// A message from a browser with the id that its response repeats.
#[derive(Debug, Clone, PartialEq, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct ClientFrame {
    #[serde(default)]
    #[ts(optional)]
    pub request_id: Option<String>,
    #[serde(flatten)]
    pub message: ClientMessage,
}

/// A request of the browser API.
#[derive(Debug, Clone, PartialEq, Deserialize, TS)]
#[serde(tag = "type", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum ClientMessage {
    #[serde(rename = "project:list")]
    ProjectList {},
    #[serde(rename = "project:add")]
    ProjectAdd { path: String },
    #[serde(rename = "project:remove")]
    ProjectRemove { project_id: String },
    /// Undoes a removal. The project returns to its previous place in the list.
    #[serde(rename = "project:restore")]
    ProjectRestore { project_id: String },
    /// Requests completions for a typed folder path.
    #[serde(rename = "folder:complete")]
    FolderComplete { path: String },
    /// Requests the files of a project that match part of a path.
    #[serde(rename = "project:files")]
    ProjectFiles {
        project_id: String,
        query: String,
        limit: u32,
    },
    #[serde(rename = "session:list")]
    SessionList {
        project_id: String,
        /// Whether to list the archived sessions instead of the others.
        #[serde(default)]
        #[ts(optional, as = "Option<bool>")]
        archived: bool,
    },
    #[serde(rename = "session:create")]
    SessionCreate {
        project_id: String,
        cli_type: String,
    },
    /// Opens a session: requests its transcript and subscribes to its changes.
    #[serde(rename = "session:open")]
    SessionOpen {
        session_id: String,
        /// Position up to which the browser has the session already.
        #[serde(default)]
        #[ts(optional)]
        after: Option<Position>,
        /// Number of newest entries to send; all if missing.
        #[serde(default)]
        #[ts(optional)]
        tail: Option<u32>,
    },
    /// Makes the agent open the session again after an earlier attempt failed.
    #[serde(rename = "session:attach")]
    SessionAttach { session_id: String },
    /// Requests up to `limit` entries before the entry number `before`.
    #[serde(rename = "session:page")]
    SessionPage {
        session_id: String,
        #[ts(type = "number")]
        before: u64,
        limit: u32,
    },
    /// Unsubscribes from a session.
    #[serde(rename = "session:leave")]
    SessionLeave { session_id: String },
    #[serde(rename = "session:send")]
    SessionSend {
        session_id: String,
        content: String,
        /// Ids of uploaded images.
        #[serde(default)]
        #[ts(optional, as = "Option<Vec<String>>")]
        images: Vec<String>,
    },
    #[serde(rename = "session:cancel")]
    SessionCancel { session_id: String },
    #[serde(rename = "session:archive")]
    SessionArchive { session_id: String },
    #[serde(rename = "session:unarchive")]
    SessionUnarchive { session_id: String },
    #[serde(rename = "session:rename")]
    SessionRename { session_id: String, title: String },
    /// Moves the session to the trash folder.
    #[serde(rename = "session:delete")]
    SessionDelete { session_id: String },
    /// Undoes a deletion.
    #[serde(rename = "session:restore")]
    SessionRestore { session_id: String },
    /// Restarts the agent, whatever state it is in.
    #[serde(rename = "session:reconnect")]
    SessionReconnect { cli_type: String },
    #[serde(rename = "agent:list")]
    AgentList {},
    /// Installs an agent of the list. All browsers receive the progress as `agent:install`.
    #[serde(rename = "agent:install")]
    AgentInstall { cli_type: String },
    #[serde(rename = "agent:install-cancel")]
    AgentInstallCancel { cli_type: String },
    /// Fetches the newest list of agents from the public registry.
    #[serde(rename = "agent:refresh")]
    AgentRefresh {},
    /// Requests the memory use of the running agents.
    #[serde(rename = "agent:memory")]
    AgentMemory {},
    /// Signs in with an agent using one of its methods.
    #[serde(rename = "agent:authenticate")]
    AgentAuthenticate { cli_type: String, method_id: String },
    /// Sends input to the terminal of this window's sign-in.
    #[serde(rename = "agent:sign-in-type")]
    AgentSignInType { cli_type: String, text: String },
    /// Answers the agent's request to open a sign-in page.
    #[serde(rename = "agent:sign-in-answer")]
    AgentSignInAnswer {
        cli_type: String,
        action: QuestionAction,
    },
    /// Cancels the sign-in.
    #[serde(rename = "agent:sign-in-stop")]
    AgentSignInStop { cli_type: String },
    #[serde(rename = "session:queue-edit")]
    SessionQueueEdit {
        session_id: String,
        queue_id: String,
        content: String,
    },
    #[serde(rename = "session:queue-remove")]
    SessionQueueRemove {
        session_id: String,
        queue_id: String,
    },
    /// Resumes the queue after a turn that failed or was cancelled.
    #[serde(rename = "session:queue-resume")]
    SessionQueueResume { session_id: String },
    /// Answers a permission request with one of its options.
    #[serde(rename = "session:permit")]
    SessionPermit {
        session_id: String,
        permission_id: String,
        option_id: String,
    },
    /// Answers an elicitation of the agent.
    #[serde(rename = "session:answer")]
    SessionAnswer {
        session_id: String,
        question_id: String,
        action: QuestionAction,
        /// Submitted values by field name.
        #[serde(default)]
        #[ts(
            optional,
            type = "Record<string, string | number | boolean | Array<string>>"
        )]
        content: Option<serde_json::Map<String, serde_json::Value>>,
    },
    #[serde(rename = "session:policy")]
    SessionPolicy {
        session_id: String,
        policy: PermissionPolicy,
    },
    /// Turns recording of the session's protocol messages on or off. Off by default, and turned off again
    /// after a minute without a read.
    #[serde(rename = "session:traffic")]
    SessionTraffic { session_id: String, on: bool },
    /// Requests the recorded messages after a frame number.
    #[serde(rename = "session:traffic-read")]
    SessionTrafficRead {
        session_id: String,
        #[ts(type = "number")]
        after: u64,
    },
    #[serde(rename = "session:set-mode")]
    SessionSetMode { session_id: String, mode_id: String },
    #[serde(rename = "session:set-option")]
    SessionSetOption {
        session_id: String,
        option_id: String,
        #[ts(type = "string | boolean")]
        value: serde_json::Value,
    },
}

/// A response or event of the browser API.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
#[serde(tag = "type", rename_all_fields = "camelCase")]
pub enum ServerMessage {
    /// First message on every connection.
    #[serde(rename = "hello")]
    Hello {
        /// Changes with every start of the server.
        boot_id: String,
        version: String,
        agents: Vec<AgentSummary>,
        permissions: PermissionPolicy,
        /// Messages to the user about this start, such as a file that was set aside.
        notices: Vec<String>,
        /// Admits this browser's uploads and pictures until the server ends. Missing for a client with the token.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        pass: Option<String>,
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
        /// The requested path.
        path: String,
        folders: Vec<FolderSuggestion>,
        /// Whether further folders were omitted.
        truncated: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        request_id: Option<String>,
    },
    #[serde(rename = "project:files")]
    ProjectFiles {
        project_id: String,
        query: String,
        /// Paths relative to the project, best match first.
        files: Vec<String>,
        /// Whether further files may match.
        truncated: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        request_id: Option<String>,
    },
    #[serde(rename = "session:list")]
    SessionList {
        project_id: String,
        archived: bool,
        sessions: Vec<SessionListItem>,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        request_id: Option<String>,
    },
    #[serde(rename = "session:created")]
    SessionCreated {
        session_id: String,
        project_id: String,
        session: SessionListItem,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        request_id: Option<String>,
    },
    /// Current transcript of a session. Replaces what the browser has of it.
    #[serde(rename = "session:history")]
    SessionHistory {
        session_id: String,
        entries: Vec<ChatEntry>,
        /// Safe HTML of the entries by entry id.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        #[ts(as = "Option<BTreeMap<String, Rendered>>", optional)]
        html: BTreeMap<String, Rendered>,
        /// Number of the first of these entries, counted from 0.
        #[ts(type = "number")]
        first: u64,
        /// Number of all entries of the session.
        #[ts(type = "number")]
        total: u64,
        #[ts(type = "number")]
        seq: u64,
        boot_id: String,
        info: Box<SessionInfo>,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        request_id: Option<String>,
    },
    /// The browser has everything up to `seq`; the updates after it follow.
    #[serde(rename = "session:resumed")]
    SessionResumed {
        session_id: String,
        #[ts(type = "number")]
        seq: u64,
        info: Box<SessionInfo>,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        request_id: Option<String>,
    },
    /// Older entries in their state after update `seq`.
    #[serde(rename = "session:page")]
    SessionPage {
        session_id: String,
        entries: Vec<ChatEntry>,
        /// Safe HTML of the entries by entry id.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        #[ts(as = "Option<BTreeMap<String, Rendered>>", optional)]
        html: BTreeMap<String, Rendered>,
        #[ts(type = "number")]
        first: u64,
        #[ts(type = "number")]
        total: u64,
        #[ts(type = "number")]
        seq: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        request_id: Option<String>,
    },
    /// A new entry, or the current state of an existing one.
    #[serde(rename = "session:update")]
    SessionUpdate {
        session_id: String,
        entry: ChatEntry,
        /// Whether the entry is new and belongs at the end. Otherwise it may be older than the entries that the
        /// browser has.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        #[ts(as = "Option<bool>", optional)]
        begins: bool,
        /// Safe HTML of the text, if it has any.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        html: Option<Box<Rendered>>,
        #[ts(type = "number")]
        seq: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        request_id: Option<String>,
    },
    /// Text appended to an entry.
    #[serde(rename = "session:chunk")]
    SessionChunk {
        session_id: String,
        entry_id: String,
        content: String,
        /// Safe HTML of the text, if it has any.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        html: Option<Rendered>,
        /// For a tool call: the terminal inside it that has further output.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        terminal_id: Option<String>,
        #[ts(type = "number")]
        seq: u64,
    },
    /// The turn has ended and this entry is final.
    #[serde(rename = "session:complete")]
    SessionComplete {
        session_id: String,
        entry_id: String,
        /// Safe HTML of the text, if it has any.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        html: Option<Rendered>,
        #[ts(type = "number")]
        seq: u64,
    },
    /// The turn was cancelled while this entry was streamed; it is final.
    #[serde(rename = "session:cancelled")]
    SessionCancelled {
        session_id: String,
        entry_id: String,
        /// Safe HTML of the text, if it has any.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        html: Option<Rendered>,
        #[ts(type = "number")]
        seq: u64,
    },
    #[serde(rename = "session:info")]
    SessionInfo {
        session_id: String,
        info: Box<SessionInfo>,
    },
    /// State of a session for the mark in lists. Sent to all browsers.
    #[serde(rename = "session:state")]
    SessionState {
        session_id: String,
        project_id: String,
        state: SessionState,
        last_active_at: String,
    },
    #[serde(rename = "session:archived")]
    SessionArchived {
        session_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        request_id: Option<String>,
    },
    #[serde(rename = "session:unarchived")]
    SessionUnarchived {
        session_id: String,
        session: SessionListItem,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        request_id: Option<String>,
    },
    #[serde(rename = "session:deleted")]
    SessionDeleted {
        session_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        request_id: Option<String>,
    },
    #[serde(rename = "session:title-updated")]
    SessionTitleUpdated {
        session_id: String,
        title: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        request_id: Option<String>,
    },
    /// A session request without a response of its own has succeeded.
    #[serde(rename = "session:done")]
    SessionDone {
        session_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        request_id: Option<String>,
    },
    /// Recorded protocol messages of a session.
    #[serde(rename = "session:traffic")]
    SessionTraffic {
        session_id: String,
        on: bool,
        frames: Vec<TrafficFrame>,
        /// Number of messages dropped for lack of space since recording was turned on.
        #[ts(type = "number")]
        dropped: u64,
        /// Whether more messages can be requested immediately.
        more: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        request_id: Option<String>,
    },
    #[serde(rename = "agent:status")]
    AgentStatus {
        cli_type: String,
        status: AgentState,
        /// The reason why the agent is not connected, if it should be.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        reason: Option<String>,
    },
    /// Current list of agents. Some properties are known only after an agent has been started.
    #[serde(rename = "agent:list")]
    AgentList {
        agents: Vec<AgentSummary>,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        request_id: Option<String>,
    },
    #[serde(rename = "agent:install")]
    AgentInstall {
        cli_type: String,
        state: InstallState,
        /// Installer output since the previous message; in a response, all output so far.
        #[serde(skip_serializing_if = "String::is_empty")]
        #[ts(as = "Option<String>", optional)]
        output: String,
        /// Why the installation failed, and what to do.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        message: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        request_id: Option<String>,
    },
    #[serde(rename = "agent:refreshed")]
    AgentRefreshed {
        agents: u32,
        /// Agents of the list that were left out, each with the reason.
        left_out: Vec<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        request_id: Option<String>,
    },
    #[serde(rename = "agent:memory")]
    AgentMemory {
        /// Memory use of the running agents.
        agents: Vec<AgentMemory>,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        request_id: Option<String>,
    },
    /// Progress of a sign-in. Sent only to the window that started it.
    #[serde(rename = "agent:sign-in")]
    AgentSignIn {
        cli_type: String,
        shown: SignInShown,
    },
    /// An agent request without a response of its own has succeeded.
    #[serde(rename = "agent:done")]
    AgentDone {
        cli_type: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        request_id: Option<String>,
    },
    #[serde(rename = "agent:authenticated")]
    AgentAuthenticated {
        cli_type: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        request_id: Option<String>,
    },
    /// Messages for all users of the server. Replaces the notices of the greeting.
    #[serde(rename = "notices")]
    Notices { notices: Vec<String> },
    #[serde(rename = "error")]
    Error {
        code: ErrorCode,
        message: String,
        /// The session that the error concerns, if any.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        session_id: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        request_id: Option<String>,
    },
}

/// A folder that completes a typed path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct FolderSuggestion {
    pub name: String,
    /// Input text when this folder is chosen: in the typed style (`~` stays `~`), ending in `/`.
    pub path: String,
    /// Whether the folder is already a project.
    pub added: bool,
}

/// Safe HTML of a text that may still grow. To apply it, remove the previous tail, append `finished`
/// permanently, then append the new `tail`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Rendered {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[ts(as = "Option<Vec<RenderedPart>>", optional)]
    pub finished: Vec<RenderedPart>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[ts(as = "Option<Vec<RenderedPart>>", optional)]
    pub tail: Vec<RenderedPart>,
    /// For a tool call: its highlighted diffs in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[ts(as = "Option<Vec<ColouredDiff>>", optional)]
    pub diffs: Vec<ColouredDiff>,
}

/// Changed lines of both texts as safe HTML, with a few lines of context. Empty if there is nothing to
/// highlight.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct ColouredDiff {
    /// Number of the first of these lines in both texts, counted from 0.
    pub first: u32,
    pub old: Vec<String>,
    pub new: Vec<String>,
}

/// Markup to append to an element. To find it, start at the text's element and descend to the last child
/// element `depth` times.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct RenderedPart {
    #[serde(skip_serializing_if = "is_zero")]
    #[ts(as = "Option<u32>", optional)]
    pub depth: u32,
    pub html: String,
}

fn is_zero(depth: &u32) -> bool {
    *depth == 0
}
