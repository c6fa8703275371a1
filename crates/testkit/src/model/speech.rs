//! Streams a response as server-sent events and records how much of it was sent.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderValue;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::{Value, json};

const DELAY_BEFORE_CUT: Duration = Duration::from_millis(50);

/// One prompt and its response, which grows while it is sent.
#[derive(Clone)]
pub(super) struct Exchange {
    pub(super) prompt: String,
    /// The model name in the agent's request.
    model: String,
    pub(super) aside: bool,
    text: Arc<Mutex<String>>,
}

impl Exchange {
    pub(super) fn new(prompt: &str, model: &Value, aside: bool) -> Self {
        Self {
            prompt: prompt.to_owned(),
            model: model.as_str().unwrap_or_default().to_owned(),
            aside,
            text: Arc::default(),
        }
    }

    pub(super) fn text(&self) -> String {
        let text = self.text.lock();
        text.unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn to_json(&self) -> Value {
        json!({"prompt": self.prompt, "text": self.text(), "model": self.model, "aside": self.aside})
    }

    fn add(&self, piece: &str) {
        let mut text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        text.push_str(piece);
    }
}

/// One server-sent event.
pub(super) struct Event {
    data: Value,
    /// The part of the response text that this event carries.
    text: String,
    after: Duration,
}

impl Event {
    /// In both protocols the event's name is the `type` of its data.
    pub(super) fn new(data: Value) -> Self {
        Self {
            data,
            text: String::new(),
            after: Duration::ZERO,
        }
    }

    pub(super) fn with_text(data: Value, text: &str, after: Duration) -> Self {
        Self {
            data,
            text: text.to_owned(),
            after,
        }
    }

    /// Sets the event's position in the stream.
    pub(super) fn number(&mut self, number: usize) {
        self.data["sequence_number"] = number.into();
    }
}

/// A response that is not streamed.
pub(super) fn whole(answer: &Value, cut: bool, exchange: &Exchange) -> Response {
    if cut {
        return stream_of(vec![], true, exchange.clone());
    }
    let texts = answer["content"].as_array().into_iter().flatten();
    for text in texts.filter_map(|part| part["text"].as_str()) {
        exchange.add(text);
    }
    axum::Json(answer).into_response()
}

/// An id unique among all processes, because agents store ids.
pub(super) fn fresh_id(kind: &str) -> String {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let number = LAST.fetch_add(1, Ordering::Relaxed);
    let now = jiff::Timestamp::now().as_microsecond();
    format!("{kind}_{now:x}{number:04x}")
}

/// Sends the events in order. A cut stream ends with an error instead of a regular end.
pub(super) fn stream_of(events: Vec<Event>, cut: bool, exchange: Exchange) -> Response {
    let state = (VecDeque::from(events), exchange);
    let body = stream::unfold(state, move |(mut events, exchange)| async move {
        let Some(event) = events.pop_front() else {
            if !cut {
                return None;
            }
            // Give the client time to receive what was sent before the error.
            tokio::time::sleep(DELAY_BEFORE_CUT).await;
            return Some((Err(io::Error::other("cut")), (events, exchange)));
        };
        if !event.after.is_zero() {
            tokio::time::sleep(event.after).await;
        }
        exchange.add(&event.text);
        let name = event.data["type"].as_str().unwrap_or_default();
        let text = format!("event: {name}\ndata: {}\n\n", event.data);
        Some((Ok(text), (events, exchange)))
    });
    let mut response = Response::new(Body::from_stream(body));
    let kind = HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert("content-type", kind);
    response
}
