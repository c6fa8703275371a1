//! An answer on its way out: one server-sent event after the other, and what of it was really sent.

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

const BEFORE_CUT: Duration = Duration::from_millis(50);

/// One answer, growing while it is sent.
#[derive(Clone)]
pub(super) struct Said {
    pub(super) prompt: String,
    /// Which model the agent thinks it speaks to.
    model: String,
    pub(super) aside: bool,
    text: Arc<Mutex<String>>,
}

impl Said {
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

/// One event of a stream.
pub(super) struct Event {
    data: Value,
    /// What of the answer's text it carries.
    text: String,
    after: Duration,
}

impl Event {
    /// Its name is the type of its data, in both protocols.
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

    /// Its place in the stream.
    pub(super) fn number(&mut self, number: usize) {
        self.data["sequence_number"] = number.into();
    }
}

/// An answer that is not streamed.
pub(super) fn whole(answer: &Value, cut: bool, said: &Said) -> Response {
    if cut {
        return stream_of(vec![], true, said.clone());
    }
    let texts = answer["content"].as_array().into_iter().flatten();
    for text in texts.filter_map(|part| part["text"].as_str()) {
        said.add(text);
    }
    axum::Json(answer).into_response()
}

/// One that no other answer has, in this process or an earlier one: agents remember them.
pub(super) fn fresh_id(kind: &str) -> String {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let number = LAST.fetch_add(1, Ordering::Relaxed);
    let now = jiff::Timestamp::now().as_microsecond();
    format!("{kind}_{now:x}{number:04x}")
}

/// The events one after the other. A cut stream ends without an end.
pub(super) fn stream_of(events: Vec<Event>, cut: bool, said: Said) -> Response {
    let state = (VecDeque::from(events), said);
    let body = stream::unfold(state, move |(mut events, said)| async move {
        let Some(event) = events.pop_front() else {
            if !cut {
                return None;
            }
            // What was said before the end gets through.
            tokio::time::sleep(BEFORE_CUT).await;
            return Some((Err(io::Error::other("cut")), (events, said)));
        };
        if !event.after.is_zero() {
            tokio::time::sleep(event.after).await;
        }
        said.add(&event.text);
        let name = event.data["type"].as_str().unwrap_or_default();
        let text = format!("event: {name}\ndata: {}\n\n", event.data);
        Some((Ok(text), (events, said)))
    });
    let mut response = Response::new(Body::from_stream(body));
    let kind = HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert("content-type", kind);
    response
}
