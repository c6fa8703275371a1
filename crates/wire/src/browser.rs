//! The messages of the browser's WebSocket (`/ws`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::{
    AgentMemory, AgentState, AgentSummary, ChatEntry, ErrorCode, InstallState, PermissionPolicy,
    Position, Project, QuestionAction, SessionInfo, SessionListItem, SessionState, SignInShown,
    TrafficFrame,
};

/// A message from a browser, with the id its answer should carry.
#[derive(Debug, Clone, PartialEq, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct ClientFrame {
    #[serde(default)]
    #[ts(optional)]
    pub request_id: Option<String>,
    #[serde(flatten)]
    pub message: ClientMessage,
}

#[derive(Debug, Clone, PartialEq, Deserialize, TS)]
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
    /// Asks which files of a project fit part of a path.
    #[serde(rename = "project:files")]
    ProjectFiles {
        project_id: String,
        query: String,
        limit: u32,
    },
    #[serde(rename = "session:list")]
    SessionList {
        project_id: String,
        /// The archived ones instead of the others.
        #[serde(default)]
        #[ts(optional, as = "Option<bool>")]
        archived: bool,
    },
    #[serde(rename = "session:create")]
    SessionCreate {
        project_id: String,
        cli_type: String,
    },
    /// Asks for the conversation and everything that happens to it from now on.
    #[serde(rename = "session:open")]
    SessionOpen {
        session_id: String,
        /// What the browser has already.
        #[serde(default)]
        #[ts(optional)]
        after: Option<Position>,
        /// Only this many entries, from the end.
        #[serde(default)]
        #[ts(optional)]
        tail: Option<u32>,
    },
    /// Has the agent open the session once more, after it would not.
    #[serde(rename = "session:attach")]
    SessionAttach { session_id: String },
    /// Asks for entries before the one numbered `before`.
    #[serde(rename = "session:page")]
    SessionPage {
        session_id: String,
        #[ts(type = "number")]
        before: u64,
        limit: u32,
    },
    /// Nothing more of this session is wanted.
    #[serde(rename = "session:leave")]
    SessionLeave { session_id: String },
    #[serde(rename = "session:send")]
    SessionSend {
        session_id: String,
        content: String,
        /// Ids of uploaded pictures.
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
    /// Takes a deletion back.
    #[serde(rename = "session:restore")]
    SessionRestore { session_id: String },
    /// Starts the agent anew, whatever state it is in.
    #[serde(rename = "session:reconnect")]
    SessionReconnect { cli_type: String },
    #[serde(rename = "agent:list")]
    AgentList {},
    /// Brings an agent of the list to this machine. Told to everybody as `agent:install`.
    #[serde(rename = "agent:install")]
    AgentInstall { cli_type: String },
    #[serde(rename = "agent:install-cancel")]
    AgentInstallCancel { cli_type: String },
    /// Fetches the newest list of agents from the public registry.
    #[serde(rename = "agent:refresh")]
    AgentRefresh {},
    /// Asks what the running agents take.
    #[serde(rename = "agent:memory")]
    AgentMemory {},
    /// Signs in with an agent by one of its own methods.
    #[serde(rename = "agent:authenticate")]
    AgentAuthenticate { cli_type: String, method_id: String },
    /// Types into the terminal in which this window signs in.
    #[serde(rename = "agent:sign-in-type")]
    AgentSignInType { cli_type: String, text: String },
    /// Answers whether the person goes to the page the agent sent them to.
    #[serde(rename = "agent:sign-in-answer")]
    AgentSignInAnswer {
        cli_type: String,
        action: QuestionAction,
    },
    /// Gives it up.
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
    /// Sends what is waiting, after a turn that did not end well.
    #[serde(rename = "session:queue-resume")]
    SessionQueueResume { session_id: String },
    /// Answers a permission question with one of its options.
    #[serde(rename = "session:permit")]
    SessionPermit {
        session_id: String,
        permission_id: String,
        option_id: String,
    },
    /// Answers a question of the agent.
    #[serde(rename = "session:answer")]
    SessionAnswer {
        session_id: String,
        question_id: String,
        action: QuestionAction,
        /// What was filled in, by the names of the fields.
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
    /// Begins or ends keeping what goes between us and the agent for this session. Off unless asked for, and off again when
    /// nobody has read it for a minute.
    #[serde(rename = "session:traffic")]
    SessionTraffic { session_id: String, on: bool },
    /// Asks for what came after a frame.
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

#[derive(Debug, Clone, PartialEq, Serialize, TS)]
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
    #[serde(rename = "project:files")]
    ProjectFiles {
        project_id: String,
        query: String,
        /// Relative to the project, the best first.
        files: Vec<String>,
        /// Whether there may be more.
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
    /// The conversation as it is now; it replaces whatever the browser had.
    #[serde(rename = "session:history")]
    SessionHistory {
        session_id: String,
        entries: Vec<ChatEntry>,
        /// Entries as safe HTML, by their ids.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        #[ts(as = "Option<BTreeMap<String, Rendered>>", optional)]
        html: BTreeMap<String, Rendered>,
        /// The number of the first of these entries, from 0.
        #[ts(type = "number")]
        first: u64,
        /// How many there are in all.
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
    /// The browser has everything up to here; what follows comes after this.
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
    /// Older entries, as they were after the update numbered `seq`.
    #[serde(rename = "session:page")]
    SessionPage {
        session_id: String,
        entries: Vec<ChatEntry>,
        /// Entries as safe HTML, by their ids.
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
    /// A new entry, or one as it is now.
    #[serde(rename = "session:update")]
    SessionUpdate {
        session_id: String,
        entry: ChatEntry,
        /// It is new and stands at the end. One that is not may be older than what the browser has of the conversation.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        #[ts(as = "Option<bool>", optional)]
        begins: bool,
        /// The text as safe HTML, where there is any.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        html: Option<Box<Rendered>>,
        #[ts(type = "number")]
        seq: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        request_id: Option<String>,
    },
    /// More text for an entry.
    #[serde(rename = "session:chunk")]
    SessionChunk {
        session_id: String,
        entry_id: String,
        content: String,
        /// The text as safe HTML, where there is any.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        html: Option<Rendered>,
        /// Set for a tool call: the terminal inside it that has more output.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        terminal_id: Option<String>,
        #[ts(type = "number")]
        seq: u64,
    },
    /// The turn is over and this entry is final.
    #[serde(rename = "session:complete")]
    SessionComplete {
        session_id: String,
        entry_id: String,
        /// The text as safe HTML, where there is any.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        html: Option<Rendered>,
        #[ts(type = "number")]
        seq: u64,
    },
    /// The turn was cancelled while this entry was being written; it is final.
    #[serde(rename = "session:cancelled")]
    SessionCancelled {
        session_id: String,
        entry_id: String,
        /// The text as safe HTML, where there is any.
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
    /// For the mark in a list; to every browser.
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
    /// A request that has no other answer was carried out.
    #[serde(rename = "session:done")]
    SessionDone {
        session_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        request_id: Option<String>,
    },
    /// What was kept of what goes between us and the agent.
    #[serde(rename = "session:traffic")]
    SessionTraffic {
        session_id: String,
        on: bool,
        frames: Vec<TrafficFrame>,
        /// How many were dropped to make room, since it was switched on.
        #[ts(type = "number")]
        dropped: u64,
        /// Whether there is more to ask for at once.
        more: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        request_id: Option<String>,
    },
    #[serde(rename = "agent:status")]
    AgentStatus {
        cli_type: String,
        status: AgentState,
        /// Why it is not connected, when it should be.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        reason: Option<String>,
    },
    /// The agents as they are now: what a running one has said about itself is known only then.
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
        /// What the installer said since the last of these; everything so far in an answer.
        #[serde(skip_serializing_if = "String::is_empty")]
        #[ts(as = "Option<String>", optional)]
        output: String,
        /// Why it failed, and what to do.
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
        /// Agents of the list that were left out, each with why.
        left_out: Vec<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        request_id: Option<String>,
    },
    #[serde(rename = "agent:memory")]
    AgentMemory {
        /// Of those that run.
        agents: Vec<AgentMemory>,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        request_id: Option<String>,
    },
    /// Only to the window that signs in.
    #[serde(rename = "agent:sign-in")]
    AgentSignIn {
        cli_type: String,
        shown: SignInShown,
    },
    /// A request about an agent that has no other answer was carried out.
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
    /// What every user of the server should know; takes the place of the greeting's.
    #[serde(rename = "notices")]
    Notices { notices: Vec<String> },
    #[serde(rename = "error")]
    Error {
        code: ErrorCode,
        message: String,
        /// The session it is about, if it is about one.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        session_id: Option<String>,
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

/// Text as safe HTML while it grows. To be applied in order: the last tail goes, what is finished is
/// appended for good, the new tail after it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Rendered {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[ts(as = "Option<Vec<RenderedPart>>", optional)]
    pub finished: Vec<RenderedPart>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[ts(as = "Option<Vec<RenderedPart>>", optional)]
    pub tail: Vec<RenderedPart>,
    /// Of a tool call: its diffs in colours, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[ts(as = "Option<Vec<ColouredDiff>>", optional)]
    pub diffs: Vec<ColouredDiff>,
}

/// The lines of both texts as safe HTML, from the first that differs, and a few before it, to the last
/// that does, and a few after it. None where there is nothing to colour.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct ColouredDiff {
    /// The number, from 0, of the first of these lines in both texts.
    pub first: u32,
    pub old: Vec<String>,
    pub new: Vec<String>,
}

/// Markup for the element that is found by going from the text's own to its last child element,
/// `depth` times.
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
