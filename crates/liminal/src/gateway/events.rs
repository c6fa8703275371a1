//! Converts session events to gateway events. Pure, without I/O.
//!
//! Invariant: each run that a client receives events of ends with exactly one `chat.final` or `chat.error`.

use std::collections::HashMap;
use std::sync::Arc;

use conversation::entry_number;
use hub::{QueuedEvent, SessionEvent};
use serde_json::{Value, json};
use wire::{ChatEntry, SessionInfo, ToolCallEntry, TurnEntry, TurnOutcome};

use super::messages::{run_id, tool_text};

type Event = (&'static str, Value);

fn tool(call: &ToolCallEntry) -> Value {
    json!({
        "toolCallId": call.tool_call_id,
        "toolName": call.name,
        "kind": call.kind,
        "status": call.status,
        "content": tool_text(call),
    })
}

#[derive(Default)]
pub(super) struct Events {
    sessions: HashMap<Arc<str>, FollowedSession>,
}

/// State of one subscribed session, needed to convert its next event.
#[derive(Default)]
struct FollowedSession {
    run: Option<String>,
    queued: Vec<String>,
    open_permissions: Vec<String>,
    /// Number of the entry that started the last run.
    run_first_entry: u64,
    /// The event name for chunks of an unfinished text, by entry id.
    unfinished_texts: HashMap<String, &'static str>,
}

impl Events {
    pub(super) fn of(&mut self, key: &str, fed: &QueuedEvent) -> Vec<Event> {
        let session = self.sessions.entry(fed.session_id.clone()).or_default();
        session.convert(key, &fed.event)
    }
}

impl FollowedSession {
    fn convert(&mut self, key: &str, event: &SessionEvent) -> Vec<Event> {
        match event {
            SessionEvent::History { entries, info, .. } => {
                for entry in entries {
                    self.remember(entry);
                }
                self.set_state(key, info);
                vec![]
            }
            SessionEvent::Resumed { texts, info, .. } => {
                for entry in texts {
                    self.remember(entry);
                }
                self.set_state(key, info);
                vec![]
            }
            SessionEvent::Update {
                seq,
                entry,
                begins: false,
                ..
            } => self.entry_changed(key, *seq, entry),
            SessionEvent::Update { seq, entry, .. } => self.entry_added(key, *seq, entry),
            SessionEvent::Chunk {
                seq,
                entry_id,
                content,
                terminal_id: None,
            } => match self.unfinished_texts.get(entry_id) {
                Some(event) => vec![self.event(event, key, *seq, json!({"text": content}))],
                None => vec![],
            },
            SessionEvent::Info(info) => self.info_changed(key, info),
            SessionEvent::StoreTrouble(message) => {
                vec![(
                    "server.trouble",
                    json!({"sessionKey": key, "message": message}),
                )]
            }
            SessionEvent::Chunk { .. }
            | SessionEvent::Complete { .. }
            | SessionEvent::Cancelled { .. } => vec![],
        }
    }

    fn remember(&mut self, entry: &ChatEntry) {
        let event = match entry {
            ChatEntry::User { entry_id, .. } => {
                self.run_first_entry = entry_number(entry_id);
                return;
            }
            ChatEntry::Assistant { .. } => "chat.delta",
            ChatEntry::Thinking { .. } => "chat.thinking",
            _ => return,
        };
        self.unfinished_texts
            .insert(entry.entry_id().to_owned(), event);
    }

    /// Takes over the session's state without sending events.
    fn set_state(&mut self, key: &str, info: &SessionInfo) {
        let of = |request_id: &Option<String>| request_id.as_ref().map(|id| run_id(key, id));
        self.run = info.turn.as_ref().and_then(|turn| of(&turn.request_id));
        self.queued = info
            .queue
            .iter()
            .filter_map(|queued| of(&queued.request_id))
            .collect();
        self.open_permissions = info
            .permissions
            .iter()
            .map(|asked| asked.permission_id.clone())
            .collect();
    }

    fn entry_added(&mut self, key: &str, seq: u64, entry: &ChatEntry) -> Vec<Event> {
        match entry {
            ChatEntry::User {
                content,
                request_id,
                ..
            } => {
                self.unfinished_texts.clear();
                self.remember(entry);
                self.run = request_id.as_ref().map(|id| run_id(key, id));
                let run = self.run.clone();
                self.queued.retain(|waiting| Some(waiting) != run.as_ref());
                vec![self.event("chat.user", key, seq, json!({"text": content}))]
            }
            ChatEntry::Assistant { content, .. } | ChatEntry::Thinking { content, .. } => {
                let known = self.unfinished_texts.contains_key(entry.entry_id());
                self.remember(entry);
                let event = match entry {
                    ChatEntry::Assistant { .. } => "chat.delta",
                    _ => "chat.thinking",
                };
                match known || content.is_empty() {
                    true => vec![],
                    false => vec![self.event(event, key, seq, json!({"text": content}))],
                }
            }
            ChatEntry::ToolCall(call) => vec![self.event("chat.tool", key, seq, tool(call))],
            ChatEntry::Plan { items, .. } => {
                vec![self.event("chat.plan", key, seq, json!({"items": items}))]
            }
            ChatEntry::Turn(turn) => {
                let ended = self.turn_ended(key, seq, turn);
                self.run = None;
                vec![ended]
            }
            ChatEntry::Question(question) => {
                let data = json!({
                    "questionId": question.question_id,
                    "message": question.message,
                    "ask": question.ask,
                    "outcome": question.outcome,
                });
                let event = match question.outcome {
                    None => "questions.asked",
                    Some(_) => "questions.closed",
                };
                vec![self.event(event, key, seq, data)]
            }
            ChatEntry::Media { .. } | ChatEntry::Notice { .. } => vec![],
        }
    }

    /// Events for a changed entry. If its run has ended, the event has no run id: an ended run gets no more events.
    fn entry_changed(&mut self, key: &str, seq: u64, entry: &ChatEntry) -> Vec<Event> {
        match entry {
            // A finished text has changed. Clients can read it with `chat.history`.
            ChatEntry::Assistant { .. } | ChatEntry::Thinking { .. } => vec![],
            ChatEntry::ToolCall(call) if entry_number(&call.entry_id) < self.run_first_entry => {
                vec![Self::default().event("chat.tool", key, seq, tool(call))]
            }
            _ => self.entry_added(key, seq, entry),
        }
    }

    fn turn_ended(&self, key: &str, seq: u64, turn: &TurnEntry) -> Event {
        if turn.outcome.is_failure() {
            let interrupted = turn.outcome == TurnOutcome::Interrupted;
            let message = turn.message.as_deref().unwrap_or(match interrupted {
                true => "The run was interrupted",
                false => "The run failed",
            });
            let data = json!({"message": message, "outcome": turn.outcome});
            return self.event("chat.error", key, seq, data);
        }
        let mut data = json!({"stopReason": turn.outcome});
        if let Some(tokens) = turn.tokens {
            data["usage"] = json!({"totalTokens": tokens});
        }
        if let Some(message) = &turn.message {
            data["message"] = json!(message);
        }
        self.event("chat.final", key, seq, data)
    }

    /// Events for runs removed from the queue and for new permission requests.
    fn info_changed(&mut self, key: &str, info: &SessionInfo) -> Vec<Event> {
        let (run, waiting) = (self.run.clone(), std::mem::take(&mut self.queued));
        let asked = std::mem::take(&mut self.open_permissions);
        self.set_state(key, info);
        // The entry that starts or ends a run sets the run.
        let now = std::mem::replace(&mut self.run, run);
        let mut events: Vec<Event> = waiting
            .into_iter()
            .filter(|run| !self.queued.contains(run) && now.as_ref() != Some(run))
            .map(|run| {
                let message = "The message was removed from the queue";
                let data = json!({"sessionKey": key, "runId": run, "message": message, "outcome": "cancelled"});
                ("chat.error", data)
            })
            .collect();
        for question in &info.permissions {
            if !asked.contains(&question.permission_id) {
                let data = json!({
                    "sessionKey": key,
                    "runId": self.run,
                    "permissionId": question.permission_id,
                    "title": question.title,
                    "options": question.options,
                });
                events.push(("permissions.asked", data));
            }
        }
        events
    }

    fn event(&self, event: &'static str, key: &str, seq: u64, mut data: Value) -> Event {
        data["sessionKey"] = json!(key);
        data["runId"] = json!(self.run);
        data["seq"] = json!(seq);
        (event, data)
    }
}
