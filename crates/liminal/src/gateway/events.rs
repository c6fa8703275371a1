//! What programs hear of the sessions they follow. Pure: what happened goes in, events come out.
//!
//! Invariant: each run that is heard of ends with exactly one `chat.final` or `chat.error`.

use std::collections::HashMap;
use std::sync::Arc;

use conversation::entry_number;
use hub::{Fed, SessionEvent};
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
    sessions: HashMap<Arc<str>, Heard>,
}

/// What is known of a session, to tell what comes next apart.
#[derive(Default)]
struct Heard {
    run: Option<String>,
    waiting: Vec<String>,
    asked: Vec<String>,
    /// The number of the entry with which the last run began.
    began: u64,
    /// How texts that may grow are told, by entry.
    growing: HashMap<String, &'static str>,
}

impl Events {
    pub(super) fn of(&mut self, key: &str, fed: &Fed) -> Vec<Event> {
        let heard = self.sessions.entry(fed.session_id.clone()).or_default();
        heard.hear(key, &fed.event)
    }
}

impl Heard {
    fn hear(&mut self, key: &str, event: &SessionEvent) -> Vec<Event> {
        match event {
            SessionEvent::History { entries, info, .. } => {
                for entry in entries {
                    self.note(entry);
                }
                self.know(key, info);
                vec![]
            }
            SessionEvent::Resumed { texts, info, .. } => {
                for entry in texts {
                    self.note(entry);
                }
                self.know(key, info);
                vec![]
            }
            SessionEvent::Update {
                seq,
                entry,
                begins: false,
                ..
            } => self.changed(key, *seq, entry),
            SessionEvent::Update { seq, entry, .. } => self.said(key, *seq, entry),
            SessionEvent::Chunk {
                seq,
                entry_id,
                content,
                terminal_id: None,
            } => match self.growing.get(entry_id) {
                Some(event) => vec![self.event(event, key, *seq, json!({"text": content}))],
                None => vec![],
            },
            SessionEvent::Info(info) => self.told(key, info),
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

    fn note(&mut self, entry: &ChatEntry) {
        let event = match entry {
            ChatEntry::User { entry_id, .. } => {
                self.began = entry_number(entry_id);
                return;
            }
            ChatEntry::Assistant { .. } => "chat.delta",
            ChatEntry::Thinking { .. } => "chat.thinking",
            _ => return,
        };
        self.growing.insert(entry.entry_id().to_owned(), event);
    }

    /// Takes over how things are, without a word about it.
    fn know(&mut self, key: &str, info: &SessionInfo) {
        let of = |request_id: &Option<String>| request_id.as_ref().map(|id| run_id(key, id));
        self.run = info.turn.as_ref().and_then(|turn| of(&turn.request_id));
        self.waiting = info
            .queue
            .iter()
            .filter_map(|queued| of(&queued.request_id))
            .collect();
        self.asked = info
            .permissions
            .iter()
            .map(|asked| asked.permission_id.clone())
            .collect();
    }

    fn said(&mut self, key: &str, seq: u64, entry: &ChatEntry) -> Vec<Event> {
        match entry {
            ChatEntry::User {
                content,
                request_id,
                ..
            } => {
                self.growing.clear();
                self.note(entry);
                self.run = request_id.as_ref().map(|id| run_id(key, id));
                let run = self.run.clone();
                self.waiting.retain(|waiting| Some(waiting) != run.as_ref());
                vec![self.event("chat.user", key, seq, json!({"text": content}))]
            }
            ChatEntry::Assistant { content, .. } | ChatEntry::Thinking { content, .. } => {
                let known = self.growing.contains_key(entry.entry_id());
                self.note(entry);
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
                let ended = self.ended(key, seq, turn);
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

    /// An entry is shown whole once more, maybe one of a run that has ended: that run gets no more events.
    fn changed(&mut self, key: &str, seq: u64, entry: &ChatEntry) -> Vec<Event> {
        match entry {
            // It grew after its end. Clients that want it read the history.
            ChatEntry::Assistant { .. } | ChatEntry::Thinking { .. } => vec![],
            ChatEntry::ToolCall(call) if entry_number(&call.entry_id) < self.began => {
                vec![Self::default().event("chat.tool", key, seq, tool(call))]
            }
            _ => self.said(key, seq, entry),
        }
    }

    fn ended(&self, key: &str, seq: u64, turn: &TurnEntry) -> Event {
        if turn.outcome.is_failure() {
            let interrupted = turn.outcome == TurnOutcome::Interrupted;
            let message = turn.message.as_deref().unwrap_or(match interrupted {
                true => "It was interrupted",
                false => "It failed",
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

    /// Runs that left the queue without running, and questions that are new.
    fn told(&mut self, key: &str, info: &SessionInfo) -> Vec<Event> {
        let (run, waiting) = (self.run.clone(), std::mem::take(&mut self.waiting));
        let asked = std::mem::take(&mut self.asked);
        self.know(key, info);
        // The entry that begins or ends a run says so itself.
        let now = std::mem::replace(&mut self.run, run);
        let mut events: Vec<Event> = waiting
            .into_iter()
            .filter(|run| !self.waiting.contains(run) && now.as_ref() != Some(run))
            .map(|run| {
                let message = "It was taken back before its turn came";
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
