//! Conversion of agent updates to entries of a conversation. Pure: no clock, no files, no channels.
//!
//! Agents announce tool calls late, update them with fragments, send empty content at their end, and send updates after
//! the end of the turn; there is a rule for each of these.
//!
//! Invariant: at most one text entry is open, and entries are in the order in which they began.

use std::collections::HashMap;
use std::sync::Arc;

use wire::{
    Author, ChatEntry, JsonText, PlanItem, QuestionEntry, QueuedMessage, TerminalExit,
    ToolCallEntry, ToolContent, ToolKind, ToolStatus, TurnEntry,
};

use super::earlier::{AgentId, Earlier};
use super::update::{ToolCallPatch, Update};
use super::weight::{call_bytes, media_bytes, question_bytes};

/// Maximum kept output of a terminal inside a tool call; the oldest output is dropped first.
const TERMINAL_OUTPUT_MAX: usize = 1024 * 1024;
/// Estimated memory overhead of an entry, without its content.
const ENTRY_BYTES: usize = 512;

/// One change of the conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum EntryChange {
    /// A new entry, at the end.
    Begin(ChatEntry),
    /// More text for the open entry.
    Append { entry_id: String, text: String },
    /// More output of a terminal inside a tool call.
    AppendTerminal {
        entry_id: String,
        terminal_id: String,
        text: String,
    },
    /// The new state of an entry.
    Replace(ChatEntry),
    /// No more text will come for this entry.
    Finish { entry_id: String },
}

/// Folds updates into entries.
#[derive(Debug, Clone)]
pub struct Entries {
    next_entry: u64,
    open: Option<OpenText>,
    /// Tool calls by the agent's id: those of the running turn, or of the last one for late updates.
    tool_calls: HashMap<String, Arc<ToolCallEntry>>,
    /// Ids of messages that began since a turn last began or ended, with their entries.
    messages: Vec<(AgentId, String)>,
    earlier: Earlier,
    /// Output of terminals run by the server that no tool call refers to yet.
    terminals: HashMap<String, Terminal>,
    /// The id of the entry with the running turn's plan.
    plan: Option<String>,
    /// Whether a turn runs. Outside of a turn no output is appended: each change replaces the whole entry.
    in_turn: bool,
    /// Estimated bytes of all entries since the last turn began.
    held: usize,
}

#[derive(Debug, Clone, Default)]
struct Terminal {
    output: String,
    exit: Option<TerminalExit>,
}

#[derive(Debug, Clone)]
struct OpenText {
    entry_id: String,
    author: Author,
    message_id: Option<String>,
}

impl Entries {
    /// `entries` is the number of existing entries; new ones are numbered after them.
    pub fn after(entries: u64) -> Self {
        Self {
            next_entry: entries + 1,
            open: None,
            tool_calls: HashMap::new(),
            messages: vec![],
            earlier: Earlier::default(),
            terminals: HashMap::new(),
            plan: None,
            in_turn: false,
            held: 0,
        }
    }

    /// Estimated bytes of all entries since the last turn began, in their current state.
    pub fn held(&self) -> usize {
        self.held
    }

    /// The changes an update makes to the conversation. `now` is the timestamp of new entries.
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
                self.held += media_bytes(&block);
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
                self.held += title.len() + description.as_ref().map_or(0, String::len);
                let entry_id = self.next_id();
                changes.push(EntryChange::Begin(ChatEntry::Notice {
                    entry_id,
                    severity,
                    title,
                    description,
                }));
            }
            Update::Interruption => self.finish_text(&mut changes),
            Update::Session(_) | Update::Ignored | Update::Unknown { .. } => {}
        }
        changes
    }

    /// Begins a turn with the user's message.
    pub fn begin_turn(&mut self, message: &QueuedMessage, now: &str) -> Vec<EntryChange> {
        let mut changes = Vec::new();
        self.finish_text(&mut changes);
        self.plan = None;
        self.in_turn = true;
        self.remember_messages();
        let calls = self.tool_calls.drain();
        let mut calls: Vec<_> = calls
            .map(|(id, call)| (id, call.entry_id.clone()))
            .collect();
        calls.sort_by_key(|(_, entry_id)| entry_number(entry_id));
        for (id, entry_id) in calls {
            if let Some(id) = AgentId::call(&id) {
                self.earlier.remember(id, entry_id);
            }
        }
        self.terminals.clear();
        self.held = 0;
        changes.push(EntryChange::Begin(ChatEntry::User {
            entry_id: self.next_id(),
            content: message.content.clone(),
            timestamp: now.to_owned(),
            request_id: message.request_id.clone(),
            images: message.images.clone(),
        }));
        changes
    }

    /// The entry of an earlier turn that the update belongs to, if its id names one.
    pub fn earlier(&self, update: &Update) -> Option<String> {
        let id = match update {
            Update::Text {
                author, message_id, ..
            } => AgentId::message(*author, message_id.as_ref())?,
            Update::ToolCall(patch)
                if !patch.announces && !self.tool_calls.contains_key(&patch.tool_call_id) =>
            {
                AgentId::call(&patch.tool_call_id)?
            }
            _ => return None,
        };
        self.earlier.entry(&id).cloned()
    }

    /// Adds the bytes of a changed entry of an earlier turn to the estimate.
    pub fn hold(&mut self, bytes: usize) {
        self.held += bytes;
    }

    /// Moves the messages so far to the earlier turns.
    fn remember_messages(&mut self) {
        for (id, entry_id) in self.messages.drain(..) {
            self.earlier.remember(id, entry_id);
        }
    }

    /// Begins an entry for an elicitation, and sets the entry id in the elicitation.
    pub fn ask(&mut self, question: &mut QuestionEntry) -> Vec<EntryChange> {
        let mut changes = Vec::new();
        self.finish_text(&mut changes);
        question.entry_id = self.next_id();
        self.held += question_bytes(question);
        changes.push(EntryChange::Begin(ChatEntry::Question(question.clone())));
        changes
    }

    /// The entry that closes a turn.
    pub fn close_turn(&mut self, mut turn: TurnEntry) -> EntryChange {
        turn.entry_id = self.next_id();
        EntryChange::Begin(ChatEntry::Turn(turn))
    }

    /// Applies output of a terminal that the server runs for the agent.
    pub fn terminal(
        &mut self,
        terminal_id: &str,
        text: String,
        exit: Option<TerminalExit>,
    ) -> Vec<EntryChange> {
        let mut calls = self.tool_calls.values_mut();
        if let Some(shared) = calls.find(|call| shows_terminal(call, terminal_id)) {
            let call = Arc::make_mut(shared);
            let entry_id = call.entry_id.clone();
            let Some((output, known_exit)) = terminal_in(call, terminal_id) else {
                unreachable!("it was just found");
            };
            let mut changes = vec![];
            let before = output.len();
            output.push_str(&text);
            keep_end(output, TERMINAL_OUTPUT_MAX);
            self.held += output.len().saturating_sub(before);
            if self.in_turn && !text.is_empty() {
                changes.push(EntryChange::AppendTerminal {
                    entry_id,
                    terminal_id: terminal_id.to_owned(),
                    text,
                });
            }
            if exit.is_some() || !self.in_turn {
                *known_exit = exit.or(known_exit.take());
                changes.push(EntryChange::Replace(ChatEntry::ToolCall(shared.clone())));
            }
            return changes;
        }
        let waiting = self.terminals.entry(terminal_id.to_owned()).or_default();
        let before = waiting.output.len();
        waiting.output.push_str(&text);
        keep_end(&mut waiting.output, TERMINAL_OUTPUT_MAX);
        self.held += waiting.output.len().saturating_sub(before);
        waiting.exit = exit.or(waiting.exit.take());
        vec![]
    }

    /// Ends the turn: closes the open text, and marks running tool calls as failed.
    pub fn end_turn(&mut self) -> Vec<EntryChange> {
        let mut changes = Vec::new();
        self.finish_text(&mut changes);
        self.plan = None;
        self.in_turn = false;
        self.remember_messages();
        let mut stopped: Vec<&mut Arc<ToolCallEntry>> = self
            .tool_calls
            .values_mut()
            .filter(|call| call.status == ToolStatus::Running)
            .collect();
        stopped.sort_by_key(|call| entry_number(&call.entry_id));
        for shared in stopped {
            let call = Arc::make_mut(shared);
            call.status = ToolStatus::Error;
            call.error = Some("Stopped before it ended".to_owned());
            changes.push(EntryChange::Replace(ChatEntry::ToolCall(shared.clone())));
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
        // Some agents send empty chunks at the beginning of a message, or as a whole message.
        if text.is_empty() {
            return;
        }
        self.held += text.len();
        if let Some(open) = &self.open {
            // A missing id does not match an existing one: Codex reports an error after a cut answer as text without an
            // id.
            if open.author == author && open.message_id == message_id {
                changes.push(EntryChange::Append {
                    entry_id: open.entry_id.clone(),
                    text,
                });
                return;
            }
        }
        self.finish_text(changes);
        let entry_id = self.next_id();
        if let Some(id) = AgentId::message(author, message_id.as_ref()) {
            self.messages.push((id, entry_id.clone()));
        }
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
                request_id: None,
                images: vec![],
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
        if let Some(shared) = self.tool_calls.get_mut(&patch.tool_call_id) {
            let call = Arc::make_mut(shared);
            // Output alone does not end the open text, because it belongs to an earlier entry.
            if self.in_turn
                && let Some(text) = only_output(&patch, call)
            {
                let (output, _) = terminal_of(call);
                let before = output.len();
                output.push_str(&text);
                keep_end(output, TERMINAL_OUTPUT_MAX);
                self.held += output.len().saturating_sub(before);
                changes.push(EntryChange::AppendTerminal {
                    entry_id: call.entry_id.clone(),
                    terminal_id: terminal_id_of(call),
                    text,
                });
                return;
            }
            let before = call_bytes(call);
            apply_patch(call, patch);
            show_waiting(call, &mut self.terminals);
            self.held = (self.held + call_bytes(call)).saturating_sub(before);
            changes.push(EntryChange::Replace(ChatEntry::ToolCall(shared.clone())));
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
            answer: None,
        };
        apply_patch(&mut call, patch);
        show_waiting(&mut call, &mut self.terminals);
        self.held += call_bytes(&call);
        let call = Arc::new(call);
        self.tool_calls
            .insert(call.tool_call_id.clone(), call.clone());
        changes.push(EntryChange::Begin(ChatEntry::ToolCall(call)));
    }

    /// Records the user's answer to a permission request in the entry of its tool call.
    pub fn answered(&mut self, tool_call_id: &str, answer: String) -> Option<EntryChange> {
        let shared = self.tool_calls.get_mut(tool_call_id)?;
        Arc::make_mut(shared).answer = Some(answer);
        Some(EntryChange::Replace(ChatEntry::ToolCall(shared.clone())))
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
        self.held += ENTRY_BYTES;
        let id = format!("e{}", self.next_entry);
        self.next_entry += 1;
        id
    }
}

/// The number of an entry (from 1), which is part of its id.
pub fn entry_number(entry_id: &str) -> u64 {
    entry_id.trim_start_matches('e').parse().unwrap_or_default()
}

pub(super) fn apply_patch(call: &mut ToolCallEntry, patch: ToolCallPatch) {
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
    // Agents end a call with an empty list when there is nothing to add; it does not clear the content.
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
            text.or_else(|| Some("The tool call failed without an error message".to_owned())),
        ),
    };
}

/// Keeps the known output of terminals in new content, which refers to a terminal by its id only.
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

/// The terminal in a call's content, added if there is none.
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

/// The output in an update that brings a running call nothing but more output.
fn only_output(patch: &ToolCallPatch, call: &ToolCallEntry) -> Option<String> {
    let text = patch.terminal_output.clone()?;
    let shown = |part: &ToolContent| matches!(part, ToolContent::Terminal { .. });
    let status = patch.status.filter(|status| *status == call.status);
    let bare = ToolCallPatch {
        tool_call_id: patch.tool_call_id.clone(),
        status,
        terminal_output: Some(text.clone()),
        ..ToolCallPatch::default()
    };
    let running = call.status == ToolStatus::Running;
    (running && call.content.iter().any(shown) && *patch == bare).then_some(text)
}

fn terminal_id_of(call: &ToolCallEntry) -> String {
    let id = call.content.iter().find_map(|part| match part {
        ToolContent::Terminal { terminal_id, .. } => Some(terminal_id.clone()),
        _ => None,
    });
    id.unwrap_or_default()
}

fn shows_terminal(call: &ToolCallEntry, id: &str) -> bool {
    let is_it = |part: &ToolContent| matches!(part, ToolContent::Terminal { terminal_id, .. } if terminal_id == id);
    call.content.iter().any(is_it)
}

fn terminal_in<'a>(
    call: &'a mut ToolCallEntry,
    id: &str,
) -> Option<(&'a mut String, &'a mut Option<TerminalExit>)> {
    call.content.iter_mut().find_map(|part| match part {
        ToolContent::Terminal {
            terminal_id,
            output,
            exit,
        } if terminal_id == id => Some((output, exit)),
        _ => None,
    })
}

/// Moves waiting output into the terminals of a call that now refers to them.
fn show_waiting(call: &mut ToolCallEntry, terminals: &mut HashMap<String, Terminal>) {
    for part in &mut call.content {
        if let ToolContent::Terminal {
            terminal_id,
            output,
            exit,
        } = part
            && let Some(waiting) = terminals.remove(terminal_id)
        {
            output.push_str(&waiting.output);
            keep_end(output, TERMINAL_OUTPUT_MAX);
            *exit = waiting.exit.or(exit.take());
        }
    }
}

/// Applies an append to an entry, in the same way as a client of the stream does.
pub fn extend(entry: &mut ChatEntry, change: &EntryChange) {
    match (entry, change) {
        (
            ChatEntry::User { content, .. }
            | ChatEntry::Assistant { content, .. }
            | ChatEntry::Thinking { content, .. },
            EntryChange::Append { text, .. },
        ) => content.push_str(text),
        (
            ChatEntry::ToolCall(call),
            EntryChange::AppendTerminal {
                terminal_id, text, ..
            },
        ) => {
            if let Some((output, _)) = terminal_in(Arc::make_mut(call), terminal_id) {
                output.push_str(text);
                keep_end(output, TERMINAL_OUTPUT_MAX);
            }
        }
        _ => {}
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
    match parts.is_empty() {
        false => Some(parts.join("\n")),
        true => call.raw_output.as_ref().and_then(JsonText::as_text),
    }
}
