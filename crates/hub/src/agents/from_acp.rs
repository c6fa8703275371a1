//! From what an agent says to what a conversation shows.
//!
//! `read` turns the text of a `session/update` into an [`Update`]; [`Entries`] folds updates into
//! entries. Both are pure: no clock, no files, no channels. Real agents announce tool calls late, patch
//! them with fragments, wipe what they showed, and go on after the end; each of those has a rule here.
//!
//! Invariant: at most one text entry is open, and entries stand in the order in which they began.

use std::collections::HashMap;

use agent_client_protocol_schema::v1 as acp;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use wire::{
    Author, ChatEntry, Location, MediaBlock, NoticeSeverity, PlanItem, PlanPriority, PlanStatus,
    TerminalExit, ToolCallEntry, ToolContent, ToolKind, ToolStatus,
};

/// What a terminal inside a tool call keeps of its output; the oldest goes first.
const TERMINAL_OUTPUT_MAX: usize = 1024 * 1024;

/// One thing an agent said about a session.
#[derive(Debug, Clone, PartialEq)]
pub enum Update {
    Text {
        author: Author,
        text: String,
        message_id: Option<String>,
    },
    Media {
        author: Author,
        block: MediaBlock,
    },
    ToolCall(Box<ToolCallPatch>),
    Plan(Vec<PlanItem>),
    Notice {
        severity: NoticeSeverity,
        title: String,
        description: Option<String>,
    },
    /// About the session rather than in the conversation.
    Session(SessionChange),
    /// One we know and have no use for.
    Ignored,
    /// A kind of update we do not know.
    Unknown {
        kind: String,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub enum SessionChange {
    Commands(Vec<acp::AvailableCommand>),
    Mode(String),
    ConfigOptions(Vec<acp::SessionConfigOption>),
    Usage {
        used: u64,
        size: u64,
        cost: Option<acp::Cost>,
    },
    Title(String),
}

/// What an announcement or an update says of a tool call. Missing means unchanged.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolCallPatch {
    pub tool_call_id: String,
    pub title: Option<String>,
    pub kind: Option<ToolKind>,
    pub status: Option<ToolStatus>,
    pub content: Option<Vec<ToolContent>>,
    pub locations: Option<Vec<Location>>,
    pub raw_input: Option<Value>,
    pub raw_output: Option<Value>,
    pub terminal_output: Option<String>,
    pub terminal_exit: Option<TerminalExit>,
}

/// How the conversation changes.
#[derive(Debug, Clone, PartialEq)]
pub enum EntryChange {
    /// A new entry, at the end.
    Begin(ChatEntry),
    /// More text for the open entry.
    Append { entry_id: String, text: String },
    /// An entry as it is now.
    Replace(ChatEntry),
    /// No more text will come for this entry.
    Finish { entry_id: String },
}

/// Reads the `params` of a `session/update`: whose it is, and what it says. `Err` says why it is
/// not even an update of an unknown kind.
pub fn read(params: &str) -> Result<(String, Update), String> {
    match serde_json::from_str::<acp::SessionNotification>(params) {
        Ok(notification) => Ok((
            notification.session_id.0.to_string(),
            update(notification.update),
        )),
        Err(error) => read_unknown(params).ok_or_else(|| error.to_string()),
    }
}

fn read_unknown(params: &str) -> Option<(String, Update)> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Envelope<'a> {
        session_id: String,
        #[serde(borrow)]
        update: &'a RawValue,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Kind {
        session_update: String,
    }
    let envelope: Envelope = serde_json::from_str(params).ok()?;
    let kind: Kind = serde_json::from_str(envelope.update.get()).ok()?;
    Some((
        envelope.session_id,
        Update::Unknown {
            kind: kind.session_update,
        },
    ))
}

fn update(said: acp::SessionUpdate) -> Update {
    match said {
        acp::SessionUpdate::UserMessageChunk(chunk) => chunk_update(Author::User, chunk),
        acp::SessionUpdate::AgentMessageChunk(chunk) => chunk_update(Author::Assistant, chunk),
        acp::SessionUpdate::AgentThoughtChunk(chunk) => chunk_update(Author::Thinking, chunk),
        acp::SessionUpdate::ToolCall(call) => Update::ToolCall(Box::new(announced(call))),
        acp::SessionUpdate::ToolCallUpdate(update) => Update::ToolCall(Box::new(patch(update))),
        acp::SessionUpdate::Plan(plan) => {
            Update::Plan(plan.entries.into_iter().map(plan_item).collect())
        }
        acp::SessionUpdate::AvailableCommandsUpdate(update) => {
            Update::Session(SessionChange::Commands(update.available_commands))
        }
        acp::SessionUpdate::CurrentModeUpdate(update) => {
            Update::Session(SessionChange::Mode(update.current_mode_id.0.to_string()))
        }
        acp::SessionUpdate::ConfigOptionUpdate(update) => {
            Update::Session(SessionChange::ConfigOptions(update.config_options))
        }
        acp::SessionUpdate::UsageUpdate(usage) => Update::Session(SessionChange::Usage {
            used: usage.used,
            size: usage.size,
            cost: usage.cost,
        }),
        acp::SessionUpdate::SessionInfoUpdate(info) => match info.title.value() {
            Some(title) => Update::Session(SessionChange::Title(title.clone())),
            None => Update::Ignored,
        },
        acp::SessionUpdate::Notice(notice) => Update::Notice {
            severity: match notice.severity {
                acp::NoticeSeverity::Error => NoticeSeverity::Error,
                acp::NoticeSeverity::Warning => NoticeSeverity::Warning,
                _ => NoticeSeverity::Info,
            },
            title: notice.title,
            description: notice.description,
        },
        other => Update::Unknown {
            kind: kind_of(&other),
        },
    }
}

/// The name of an update that the schema knows and we have no use for.
fn kind_of(update: &acp::SessionUpdate) -> String {
    let kind = serde_json::to_value(update)
        .ok()
        .and_then(|value| Some(value.get("sessionUpdate")?.as_str()?.to_owned()));
    kind.unwrap_or_else(|| "unknown".to_owned())
}

fn chunk_update(author: Author, chunk: acp::ContentChunk) -> Update {
    let message_id = chunk.message_id.map(|id| id.0.to_string());
    match block(chunk.content) {
        Block::Text(text) => Update::Text {
            author,
            text,
            message_id,
        },
        Block::Media(block) => Update::Media { author, block },
        Block::Unknown => Update::Unknown {
            kind: "content of an unknown kind".to_owned(),
        },
    }
}

enum Block {
    Text(String),
    Media(MediaBlock),
    Unknown,
}

fn block(content: acp::ContentBlock) -> Block {
    Block::Media(match content {
        acp::ContentBlock::Text(text) => return Block::Text(text.text),
        acp::ContentBlock::Image(image) => MediaBlock::Image {
            mime_type: image.mime_type,
            data: image.data,
        },
        acp::ContentBlock::Audio(audio) => MediaBlock::Audio {
            mime_type: audio.mime_type,
            data: audio.data,
        },
        acp::ContentBlock::ResourceLink(link) => MediaBlock::Link {
            uri: link.uri,
            name: link.title.unwrap_or(link.name),
            description: link.description,
        },
        acp::ContentBlock::Resource(resource) => match resource.resource {
            acp::EmbeddedResourceResource::TextResourceContents(text) => MediaBlock::Resource {
                uri: text.uri,
                mime_type: text.mime_type,
                text: Some(text.text),
            },
            acp::EmbeddedResourceResource::BlobResourceContents(blob) => MediaBlock::Resource {
                uri: blob.uri,
                mime_type: blob.mime_type,
                text: None,
            },
            _ => return Block::Unknown,
        },
        _ => return Block::Unknown,
    })
}

fn announced(call: acp::ToolCall) -> ToolCallPatch {
    let fields = ToolCallPatch {
        tool_call_id: call.tool_call_id.0.to_string(),
        title: Some(call.title),
        kind: Some(tool_kind(call.kind)),
        status: Some(tool_status(call.status)),
        content: Some(call.content.into_iter().filter_map(tool_content).collect()),
        locations: Some(call.locations.into_iter().map(location).collect()),
        raw_input: call.raw_input,
        raw_output: call.raw_output,
        ..ToolCallPatch::default()
    };
    with_terminal(fields, call.meta)
}

/// What a `tool_call_update`, or the tool call of a permission request, says.
pub fn patch(update: acp::ToolCallUpdate) -> ToolCallPatch {
    let fields = ToolCallPatch {
        tool_call_id: update.tool_call_id.0.to_string(),
        title: update.fields.title,
        kind: update.fields.kind.map(tool_kind),
        status: update.fields.status.map(tool_status),
        content: update
            .fields
            .content
            .map(|content| content.into_iter().filter_map(tool_content).collect()),
        locations: update
            .fields
            .locations
            .map(|locations| locations.into_iter().map(location).collect()),
        raw_input: update.fields.raw_input,
        raw_output: update.fields.raw_output,
        ..ToolCallPatch::default()
    };
    with_terminal(fields, update.meta)
}

/// Adapters run commands themselves and stream their output beside the update, in `_meta`.
fn with_terminal(mut patch: ToolCallPatch, meta: Option<Map<String, Value>>) -> ToolCallPatch {
    let Some(meta) = meta else { return patch };
    let text = |of: &str, field: &str| Some(meta.get(of)?.get(field)?.as_str()?.to_owned());
    patch.terminal_output = text("terminal_output", "data");
    if let Some(exit) = meta.get("terminal_exit") {
        let code = exit
            .get("exit_code")
            .and_then(Value::as_i64)
            .and_then(|code| i32::try_from(code).ok());
        patch.terminal_exit = Some(TerminalExit {
            code,
            signal: text("terminal_exit", "signal"),
        });
    }
    patch
}

fn tool_kind(kind: acp::ToolKind) -> ToolKind {
    match kind {
        acp::ToolKind::Read => ToolKind::Read,
        acp::ToolKind::Edit => ToolKind::Edit,
        acp::ToolKind::Delete => ToolKind::Delete,
        acp::ToolKind::Move => ToolKind::Move,
        acp::ToolKind::Search => ToolKind::Search,
        acp::ToolKind::Execute => ToolKind::Execute,
        acp::ToolKind::Think => ToolKind::Think,
        acp::ToolKind::Fetch => ToolKind::Fetch,
        acp::ToolKind::SwitchMode => ToolKind::SwitchMode,
        _ => ToolKind::Other,
    }
}

fn tool_status(status: acp::ToolCallStatus) -> ToolStatus {
    match status {
        acp::ToolCallStatus::Completed => ToolStatus::Complete,
        acp::ToolCallStatus::Failed => ToolStatus::Error,
        _ => ToolStatus::Running,
    }
}

fn tool_content(content: acp::ToolCallContent) -> Option<ToolContent> {
    match content {
        acp::ToolCallContent::Content(content) => match block(content.content) {
            Block::Text(text) => Some(ToolContent::Text { text }),
            Block::Media(block) => Some(ToolContent::Media { block }),
            Block::Unknown => None,
        },
        acp::ToolCallContent::Diff(diff) => Some(ToolContent::Diff {
            path: diff.path.to_string_lossy().into_owned(),
            old_text: diff.old_text,
            new_text: diff.new_text,
        }),
        acp::ToolCallContent::Terminal(terminal) => Some(ToolContent::Terminal {
            terminal_id: terminal.terminal_id.0.to_string(),
            output: String::new(),
            exit: None,
        }),
        _ => None,
    }
}

fn location(location: acp::ToolCallLocation) -> Location {
    Location {
        path: location.path.to_string_lossy().into_owned(),
        line: location.line,
    }
}

fn plan_item(entry: acp::PlanEntry) -> PlanItem {
    PlanItem {
        content: entry.content,
        priority: match entry.priority {
            acp::PlanEntryPriority::High => PlanPriority::High,
            acp::PlanEntryPriority::Low => PlanPriority::Low,
            _ => PlanPriority::Medium,
        },
        status: match entry.status {
            acp::PlanEntryStatus::InProgress => PlanStatus::InProgress,
            acp::PlanEntryStatus::Completed => PlanStatus::Completed,
            _ => PlanStatus::Pending,
        },
    }
}

/// Folds updates into entries.
#[derive(Debug)]
pub struct Entries {
    next_entry: u64,
    open: Option<OpenText>,
    /// By the agent's id, those of the running turn and, for stragglers, of earlier ones.
    tool_calls: HashMap<String, ToolCallEntry>,
    /// The plan of the running turn.
    plan: Option<String>,
}

#[derive(Debug)]
struct OpenText {
    entry_id: String,
    author: Author,
    message_id: Option<String>,
}

impl Entries {
    /// `entries` is how many the conversation has already; new ones are numbered after them.
    pub fn after(entries: u64) -> Self {
        Self {
            next_entry: entries + 1,
            open: None,
            tool_calls: HashMap::new(),
            plan: None,
        }
    }

    /// How an update changes the conversation. `now` is the time for entries that carry one.
    pub fn apply(&mut self, update: Update, now: &str) -> Vec<EntryChange> {
        let mut changes = Vec::new();
        match update {
            Update::Text {
                author,
                text,
                message_id,
            } => self.text(author, text, message_id, now, &mut changes),
            Update::Media { author, block } => {
                self.finish_text(&mut changes);
                let (entry_id, timestamp) = (self.next_id(), now.to_owned());
                changes.push(EntryChange::Begin(ChatEntry::Media {
                    entry_id,
                    author,
                    block,
                    timestamp,
                }));
            }
            Update::ToolCall(patch) => self.tool_call(*patch, &mut changes),
            Update::Plan(items) => self.plan(items, &mut changes),
            Update::Notice {
                severity,
                title,
                description,
            } => {
                self.finish_text(&mut changes);
                let entry_id = self.next_id();
                changes.push(EntryChange::Begin(ChatEntry::Notice {
                    entry_id,
                    severity,
                    title,
                    description,
                }));
            }
            Update::Session(_) | Update::Ignored | Update::Unknown { .. } => {}
        }
        changes
    }

    /// The turn is over: nothing stays open. A tool call that never ended did not succeed.
    pub fn end_turn(&mut self) -> Vec<EntryChange> {
        let mut changes = Vec::new();
        self.finish_text(&mut changes);
        self.plan = None;
        let mut stopped: Vec<&mut ToolCallEntry> = self
            .tool_calls
            .values_mut()
            .filter(|call| call.status == ToolStatus::Running)
            .collect();
        stopped.sort_by_key(|call| entry_number(&call.entry_id));
        for call in stopped {
            call.status = ToolStatus::Error;
            call.error = Some("Stopped before it ended".to_owned());
            changes.push(EntryChange::Replace(ChatEntry::ToolCall(call.clone())));
        }
        changes
    }

    fn text(
        &mut self,
        author: Author,
        text: String,
        message_id: Option<String>,
        now: &str,
        changes: &mut Vec<EntryChange>,
    ) {
        if let Some(open) = &mut self.open {
            let same_message =
                open.message_id.is_none() || message_id.is_none() || open.message_id == message_id;
            if open.author == author && same_message {
                open.message_id = open.message_id.take().or(message_id);
                changes.push(EntryChange::Append {
                    entry_id: open.entry_id.clone(),
                    text,
                });
                return;
            }
        }
        self.finish_text(changes);
        let entry_id = self.next_id();
        self.open = Some(OpenText {
            entry_id: entry_id.clone(),
            author,
            message_id,
        });
        let (content, timestamp) = (text, now.to_owned());
        changes.push(EntryChange::Begin(match author {
            Author::User => ChatEntry::User {
                entry_id,
                content,
                timestamp,
            },
            Author::Assistant => ChatEntry::Assistant {
                entry_id,
                content,
                timestamp,
            },
            Author::Thinking => ChatEntry::Thinking { entry_id, content },
        }));
    }

    fn tool_call(&mut self, patch: ToolCallPatch, changes: &mut Vec<EntryChange>) {
        if let Some(call) = self.tool_calls.get_mut(&patch.tool_call_id) {
            // Whatever is being said meanwhile goes on: this belongs to something above it.
            apply_patch(call, patch);
            changes.push(EntryChange::Replace(ChatEntry::ToolCall(call.clone())));
            return;
        }
        // Text first, or the call would overtake the words that announced it.
        self.finish_text(changes);
        let mut call = ToolCallEntry {
            entry_id: self.next_id(),
            tool_call_id: patch.tool_call_id.clone(),
            name: "Tool call".to_owned(),
            kind: ToolKind::Other,
            status: ToolStatus::Running,
            result: None,
            error: None,
            content: vec![],
            locations: vec![],
            raw_input: None,
            raw_output: None,
        };
        apply_patch(&mut call, patch);
        self.tool_calls
            .insert(call.tool_call_id.clone(), call.clone());
        changes.push(EntryChange::Begin(ChatEntry::ToolCall(call)));
    }

    fn plan(&mut self, items: Vec<PlanItem>, changes: &mut Vec<EntryChange>) {
        if let Some(entry_id) = self.plan.clone() {
            changes.push(EntryChange::Replace(ChatEntry::Plan { entry_id, items }));
            return;
        }
        self.finish_text(changes);
        let entry_id = self.next_id();
        self.plan = Some(entry_id.clone());
        changes.push(EntryChange::Begin(ChatEntry::Plan { entry_id, items }));
    }

    fn finish_text(&mut self, changes: &mut Vec<EntryChange>) {
        if let Some(open) = self.open.take() {
            changes.push(EntryChange::Finish {
                entry_id: open.entry_id,
            });
        }
    }

    fn next_id(&mut self) -> String {
        let id = format!("e{}", self.next_entry);
        self.next_entry += 1;
        id
    }
}

fn entry_number(entry_id: &str) -> u64 {
    entry_id.trim_start_matches('e').parse().unwrap_or_default()
}

fn apply_patch(call: &mut ToolCallEntry, patch: ToolCallPatch) {
    if let Some(title) = patch.title.filter(|title| !title.is_empty()) {
        call.name = title;
    }
    call.kind = patch.kind.unwrap_or(call.kind);
    call.status = patch.status.unwrap_or(call.status);
    call.locations = patch
        .locations
        .filter(|locations| !locations.is_empty())
        .unwrap_or(std::mem::take(&mut call.locations));
    call.raw_input = patch.raw_input.or(call.raw_input.take());
    call.raw_output = patch.raw_output.or(call.raw_output.take());
    // An empty list at the end means "nothing more to add", not "take back what was shown".
    if let Some(content) = patch.content.filter(|content| !content.is_empty()) {
        call.content = with_known_terminals(content, &call.content);
    }
    if patch.terminal_output.is_some() || patch.terminal_exit.is_some() {
        let (output, exit) = terminal_of(call);
        output.push_str(patch.terminal_output.as_deref().unwrap_or_default());
        keep_end(output, TERMINAL_OUTPUT_MAX);
        *exit = patch.terminal_exit.or(exit.take());
    }
    let text = shown_text(call);
    (call.result, call.error) = match call.status {
        ToolStatus::Running => (None, None),
        ToolStatus::Complete => (text, None),
        ToolStatus::Error => (
            None,
            text.or_else(|| Some("It failed without saying why".to_owned())),
        ),
    };
}

/// New content refers to a terminal by id only; what we know of its output stays with it.
fn with_known_terminals(mut content: Vec<ToolContent>, before: &[ToolContent]) -> Vec<ToolContent> {
    for part in &mut content {
        let ToolContent::Terminal { terminal_id, .. } = part else {
            continue;
        };
        let same = |old: &&ToolContent| matches!(old, ToolContent::Terminal { terminal_id: id, .. } if id == terminal_id);
        if let Some(known) = before.iter().find(same) {
            *part = known.clone();
        }
    }
    content
}

/// The terminal of a call, put in if it has none.
fn terminal_of(call: &mut ToolCallEntry) -> (&mut String, &mut Option<TerminalExit>) {
    let is_terminal = |part: &ToolContent| matches!(part, ToolContent::Terminal { .. });
    let at = call
        .content
        .iter()
        .position(is_terminal)
        .unwrap_or_else(|| {
            let terminal_id = call.tool_call_id.clone();
            call.content.push(ToolContent::Terminal {
                terminal_id,
                output: String::new(),
                exit: None,
            });
            call.content.len() - 1
        });
    match &mut call.content[at] {
        ToolContent::Terminal { output, exit, .. } => (output, exit),
        _ => unreachable!("`position` found a terminal, or one was just pushed"),
    }
}

fn keep_end(text: &mut String, max: usize) {
    if text.len() > max {
        let cut = text.ceil_char_boundary(text.len() - max);
        text.drain(..cut);
    }
}

fn shown_text(call: &ToolCallEntry) -> Option<String> {
    let parts: Vec<&str> = call
        .content
        .iter()
        .filter_map(|part| match part {
            ToolContent::Text { text } => Some(text.as_str()),
            ToolContent::Terminal { output, .. } if !output.is_empty() => Some(output.as_str()),
            _ => None,
        })
        .collect();
    match (parts.is_empty(), &call.raw_output) {
        (false, _) => Some(parts.join("\n")),
        (true, Some(Value::String(text))) => Some(text.clone()),
        (true, _) => None,
    }
}
