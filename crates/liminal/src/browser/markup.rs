//! The HTML of agent output, sent with the text to browsers that request it.
//!
//! Each connection keeps an incremental rendering of each unfinished text, so that the cost of a chunk depends on its
//! own size only. Finished texts are rendered once for all connections (`finished_html`); `diffs` highlights file
//! changes. Sessions without an open view and clients that want plain text cause no rendering.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use hub::{QueuedEvent, SessionEvent};
use render::{Delta, Live, Part};
use wire::{ChatEntry, Rendered, RenderedPart, ServerMessage};

use super::{FinishedHtml, diffs};

/// The renderings of one connection.
pub(super) struct Markup {
    finished: FinishedHtml,
    /// Renderings of unfinished texts, by session and entry.
    live: HashMap<(Arc<str>, String), Live>,
}

impl Markup {
    pub(super) fn new(finished: FinishedHtml) -> Self {
        Self {
            finished,
            live: HashMap::new(),
        }
    }

    /// Adds the HTML of an event to the message that reports it.
    pub(super) fn add(&mut self, fed: &QueuedEvent, message: &mut ServerMessage) {
        let key = |entry_id: &str| (fed.session_id.clone(), entry_id.to_owned());
        match (&*fed.event, message) {
            (
                SessionEvent::History { entries, info, .. },
                ServerMessage::SessionHistory { html, .. },
            ) => {
                self.live
                    .retain(|(session, _), _| *session != fed.session_id);
                // Only the last text of a running turn is unfinished.
                let growing = entries.iter().rev().find(|entry| text_of(entry).is_some());
                let growing = growing.filter(|_| info.turn.is_some());
                for entry in entries {
                    let rendered = match text_of(entry) {
                        Some(text) if growing.is_some_and(|last| std::ptr::eq(last, entry)) => {
                            Some(self.begin(key(entry.entry_id()), text))
                        }
                        _ => of_entry(&self.finished, entry),
                    };
                    let id = entry.entry_id().to_owned();
                    html.extend(rendered.map(|rendered| (id, rendered)));
                }
            }
            (SessionEvent::Resumed { texts, .. }, _) => {
                for entry in texts {
                    if let Some(text) = text_of(entry) {
                        self.begin(key(entry.entry_id()), text);
                    }
                }
            }
            (
                SessionEvent::Update { entry, begins, .. },
                ServerMessage::SessionUpdate { html, .. },
            ) => {
                // A finished text that changes is sent whole; no completion follows.
                let rendered = match text_of(entry).filter(|_| *begins) {
                    Some(text) => Some(self.begin(key(entry.entry_id()), text)),
                    None => of_entry(&self.finished, entry),
                };
                *html = rendered.map(Box::new);
            }
            (
                SessionEvent::Chunk {
                    entry_id,
                    content,
                    terminal_id: None,
                    ..
                },
                ServerMessage::SessionChunk { html, .. },
            ) => {
                if let Some(live) = self.live.get_mut(&key(entry_id)) {
                    live.push(content);
                    *html = Some(rendered(live.flush()));
                }
            }
            (
                SessionEvent::Complete { entry_id, .. },
                ServerMessage::SessionComplete { html, .. },
            ) => *html = self.end(key(entry_id)),
            (
                SessionEvent::Cancelled { entry_id, .. },
                ServerMessage::SessionCancelled { html, .. },
            ) => *html = self.end(key(entry_id)),
            _ => {}
        }
    }

    fn begin(&mut self, key: (Arc<str>, String), text: &str) -> Rendered {
        let mut live = Live::new();
        live.push(text);
        let delta = live.flush();
        self.live.insert(key, live);
        rendered(delta)
    }

    fn end(&mut self, key: (Arc<str>, String)) -> Option<Rendered> {
        let mut live = self.live.remove(&key)?;
        Some(Rendered {
            finished: parts(live.finish()),
            ..Rendered::default()
        })
    }
}

/// The HTML of finished entries, by entry id.
pub(super) fn of_entries(
    finished: &FinishedHtml,
    entries: &[ChatEntry],
) -> BTreeMap<String, Rendered> {
    let entry = |entry: &ChatEntry| {
        let rendered = of_entry(finished, entry)?;
        Some((entry.entry_id().to_owned(), rendered))
    };
    entries.iter().filter_map(entry).collect()
}

fn of_entry(finished: &FinishedHtml, entry: &ChatEntry) -> Option<Rendered> {
    if let Some(text) = text_of(entry) {
        return Some(whole(finished, text));
    }
    let diffs = diffs::of_entry(entry);
    (!diffs.is_empty()).then(|| Rendered {
        diffs,
        ..Rendered::default()
    })
}

/// The text of an agent's entry. User messages are not rendered.
fn text_of(entry: &ChatEntry) -> Option<&str> {
    match entry {
        ChatEntry::Assistant { content, .. } | ChatEntry::Thinking { content, .. } => Some(content),
        _ => None,
    }
}

fn whole(finished: &FinishedHtml, text: &str) -> Rendered {
    let html = finished.of(text).to_string();
    Rendered {
        finished: vec![RenderedPart { depth: 0, html }],
        ..Rendered::default()
    }
}

fn rendered(delta: Delta) -> Rendered {
    Rendered {
        finished: parts(delta.finished),
        tail: parts(delta.tail),
        ..Rendered::default()
    }
}

fn parts(parts: Vec<Part>) -> Vec<RenderedPart> {
    let part = |part: Part| RenderedPart {
        depth: part.depth as u32,
        html: part.html,
    };
    parts.into_iter().map(part).collect()
}
