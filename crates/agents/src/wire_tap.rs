//! Recording of a session's ACP traffic in both directions while a client watches it.
//!
//! When no session is watched, each line costs one load of a flag. The lines of a watched session are kept in a ring
//! buffer, with secrets redacted and long strings shortened. Watching ends when no client reads the ring for a minute.
//!
//! Invariant: at most `WATCHED_MAX` sessions per agent are watched, each with at most `RING_BYTES_MAX` of frames.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use wire::{TrafficFrame, TrafficSide};

use super::redact::redact;

const RING_BYTES_MAX: usize = 1024 * 1024;
const RING_FRAMES_MAX: usize = 2000;
const WATCHED_MAX: usize = 8;
/// Maximum remembered requests without a response.
const REQUESTS_MAX: usize = 512;
/// Maximum length of a string inside a frame, and of a whole frame.
const TEXT_BYTES_MAX: usize = 4 * 1024;
const FRAME_BYTES_MAX: usize = 32 * 1024;
/// Maximum bytes of frames returned by one `read`.
const READ_BYTES_MAX: usize = 256 * 1024;
/// Time without a `read` after which watching ends. A watching client reads several times a second.
const UNREAD_MAX: Duration = Duration::from_secs(60);

/// Records the traffic of the sessions that have recording enabled, in bounded memory.
#[derive(Default)]
pub struct WireTap {
    on: AtomicBool,
    watched: Mutex<Watched>,
}

#[derive(Default)]
struct Watched {
    sessions: HashMap<String, Ring>,
    /// Pending requests by direction (true: sent by the agent) and request id, with their session and method.
    requests: HashMap<(bool, String), (String, String)>,
}

struct Ring {
    frames: VecDeque<TrafficFrame>,
    bytes: usize,
    next: u64,
    read: Instant,
}

/// New frames of a watched session.
#[derive(Debug, Default)]
pub struct Traffic {
    pub frames: Vec<TrafficFrame>,
    /// Frames dropped from the ring since watching began.
    pub dropped: u64,
    /// Whether another `read` would return more frames now.
    pub more: bool,
}

impl WireTap {
    /// Starts or stops watching an agent session. False if too many are watched already.
    pub fn watch(&self, session_id: &str, on: bool) -> bool {
        let mut watched = self.lock();
        if !on {
            watched.sessions.remove(session_id);
        } else if !watched.sessions.contains_key(session_id) {
            watched.forget_unread();
            if watched.sessions.len() >= WATCHED_MAX {
                return false;
            }
            watched.sessions.insert(session_id.to_owned(), Ring::new());
        }
        self.update_flag(&watched);
        true
    }

    /// The frames after number `after`; `None` if the session is not watched.
    pub fn read(&self, session_id: &str, after: u64) -> Option<Traffic> {
        let mut watched = self.lock();
        let ring = watched.sessions.get_mut(session_id)?;
        ring.read = Instant::now();
        Some(ring.after(after))
    }

    /// Records a line if its session is watched.
    pub(super) fn line(&self, from: TrafficSide, line: &str) {
        if self.on.load(Ordering::Relaxed) {
            self.keep(from, line);
        }
    }

    fn keep(&self, from: TrafficSide, line: &str) {
        let Ok(message) = serde_json::from_str::<Value>(line) else {
            return;
        };
        let mut watched = self.lock();
        watched.forget_unread();
        watched.keep(from, message, line.len());
        self.update_flag(&watched);
    }

    fn update_flag(&self, watched: &Watched) {
        self.on
            .store(!watched.sessions.is_empty(), Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watched {
    fn forget_unread(&mut self) {
        self.sessions
            .retain(|_, ring| ring.read.elapsed() < UNREAD_MAX);
    }

    fn keep(&mut self, from: TrafficSide, message: Value, bytes: usize) {
        let by_agent = from == TrafficSide::Agent;
        let id = message.get("id").map(Value::to_string);
        let method = message["method"].as_str().map(str::to_owned);
        let (session_id, label) = match (method, id) {
            (Some(method), id) => {
                let Some(session_id) = message["params"]["sessionId"].as_str() else {
                    return;
                };
                let session_id = session_id.to_owned();
                if let Some(id) = id.filter(|_| self.sessions.contains_key(&session_id)) {
                    if self.requests.len() >= REQUESTS_MAX {
                        self.requests.clear();
                    }
                    self.requests
                        .insert((by_agent, id), (session_id.clone(), method.clone()));
                }
                let kind = message["params"]["update"]["sessionUpdate"].as_str();
                let label = kind.map_or(method.clone(), |kind| format!("{method} {kind}"));
                (session_id, label)
            }
            (None, Some(id)) => {
                let Some((session_id, method)) = self.requests.remove(&(!by_agent, id)) else {
                    return;
                };
                let how = if message.get("error").is_some() {
                    "error"
                } else {
                    "answer"
                };
                (session_id, format!("{how} to {method}"))
            }
            (None, None) => return,
        };
        let Some(ring) = self.sessions.get_mut(&session_id) else {
            return;
        };
        let (text, cut) = shown(message);
        ring.push(TrafficFrame {
            number: ring.next,
            at: jiff::Timestamp::now().as_millisecond(),
            from,
            label: label.chars().take(120).collect(),
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
            cut,
            text,
        });
    }
}

impl Ring {
    fn new() -> Self {
        Self {
            frames: VecDeque::new(),
            bytes: 0,
            next: 1,
            read: Instant::now(),
        }
    }

    fn push(&mut self, frame: TrafficFrame) {
        self.next += 1;
        self.bytes += frame.text.len();
        self.frames.push_back(frame);
        while self.bytes > RING_BYTES_MAX || self.frames.len() > RING_FRAMES_MAX {
            let Some(oldest) = self.frames.pop_front() else {
                return;
            };
            self.bytes -= oldest.text.len();
        }
    }

    fn after(&self, after: u64) -> Traffic {
        let first = self.frames.front().map_or(self.next, |frame| frame.number);
        let mut bytes = 0;
        let new = self.frames.iter().filter(|frame| frame.number > after);
        let fits = |frame: &&TrafficFrame| {
            bytes += frame.text.len();
            bytes <= READ_BYTES_MAX
        };
        let frames: Vec<TrafficFrame> = new.take_while(fits).cloned().collect();
        let last = frames.last().map_or(after, |frame| frame.number);
        Traffic {
            frames,
            dropped: first - 1,
            more: last + 1 < self.next,
        }
    }
}

/// The text of a frame, redacted and shortened, and whether it was shortened.
fn shown(message: Value) -> (String, bool) {
    let mut cut = false;
    // Redacted before it is shortened, because a part of an API key would not be recognised.
    let text = shorten(redact(message), &mut cut).to_string();
    match middle_cut(&text, FRAME_BYTES_MAX) {
        Some(short) => (short, true),
        None => (text, cut),
    }
}

fn shorten(value: Value, cut: &mut bool) -> Value {
    match value {
        Value::String(text) => match middle_cut(&text, TEXT_BYTES_MAX) {
            Some(short) => {
                *cut = true;
                short.into()
            }
            None => text.into(),
        },
        Value::Array(values) => values
            .into_iter()
            .map(|value| shorten(value, cut))
            .collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| (name, shorten(value, cut)))
            .collect(),
        other => other,
    }
}

/// The beginning and the end of a text longer than `max`, with the number of bytes left out.
fn middle_cut(text: &str, max: usize) -> Option<String> {
    if text.len() <= max {
        return None;
    }
    let begin = text.floor_char_boundary(max * 2 / 3);
    let end = text.ceil_char_boundary(text.len() - max / 4);
    let missing = end - begin;
    Some(format!(
        "{} …[{missing} of {} bytes cut]… {}",
        &text[..begin],
        text.len(),
        &text[end..]
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const AGENT: TrafficSide = TrafficSide::Agent;
    const CLIENT: TrafficSide = TrafficSide::Client;

    fn labels(tap: &WireTap) -> Vec<String> {
        let traffic = tap.read("s", 0).unwrap();
        traffic
            .frames
            .into_iter()
            .map(|frame| frame.label)
            .collect()
    }

    fn update(session_id: &str, text: &str) -> String {
        let update = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}});
        json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": session_id, "update": update}}).to_string()
    }

    #[test]
    fn watched_session_records_its_requests_responses_and_updates_only() {
        let tap = WireTap::default();
        tap.line(AGENT, &update("s", "before"));
        assert!(tap.read("s", 0).is_none());
        assert!(tap.watch("s", true));
        let prompt = json!({"id": "p1", "method": "session/prompt", "params": {"sessionId": "s"}});
        tap.line(CLIENT, &prompt.to_string());
        tap.line(AGENT, &update("s", "one"));
        tap.line(AGENT, &update("other", "unwatched"));
        let ask = json!({"id": 1, "method": "fs/read_text_file", "params": {"sessionId": "s"}});
        tap.line(AGENT, &ask.to_string());
        tap.line(
            CLIENT,
            &json!({"id": 1, "error": {"code": 1, "message": "no"}}).to_string(),
        );
        tap.line(AGENT, &json!({"id": 1, "result": "not to us"}).to_string());
        tap.line(AGENT, &json!({"id": "p1", "result": {}}).to_string());
        tap.line(AGENT, "not JSON");
        let seen = [
            "session/prompt",
            "session/update agent_message_chunk",
            "fs/read_text_file",
            "error to fs/read_text_file",
            "answer to session/prompt",
        ];
        assert_eq!(labels(&tap), seen);
        tap.watch("s", false);
        assert!(tap.read("s", 0).is_none());
        assert!(!tap.on.load(Ordering::Relaxed));
    }

    #[test]
    fn ring_is_bounded_in_frames_and_bytes_and_counts_dropped_frames() {
        let tap = WireTap::default();
        tap.watch("s", true);
        for n in 0..RING_FRAMES_MAX + 10 {
            tap.line(AGENT, &update("s", &n.to_string()));
        }
        assert_eq!(tap.read("s", 0).unwrap().dropped, 10);
        let text = "x ".repeat(TEXT_BYTES_MAX / 2);
        for _ in 0..500 {
            tap.line(AGENT, &update("s", &text));
        }
        let bytes = tap.lock().sessions["s"].bytes;
        assert!(bytes <= RING_BYTES_MAX, "{bytes}");
        let (mut after, mut read) = (0, 0);
        loop {
            let traffic = tap.read("s", after).unwrap();
            let size: usize = traffic.frames.iter().map(|frame| frame.text.len()).sum();
            assert!(size <= READ_BYTES_MAX);
            read += traffic.frames.len();
            after = traffic.frames.last().map_or(after, |frame| frame.number);
            if !traffic.more {
                break;
            }
        }
        assert_eq!(read, tap.lock().sessions["s"].frames.len());
    }

    #[test]
    fn long_text_is_cut_in_the_middle_and_secrets_are_redacted_first() {
        let tap = WireTap::default();
        tap.watch("s", true);
        let key = format!("sk-{}", "abcdefghijkl".repeat(3));
        tap.line(
            AGENT,
            &update("s", &format!("begin {} end {key}", "é".repeat(50_000))),
        );
        let frame = tap.read("s", 0).unwrap().frames.remove(0);
        assert!(frame.cut && frame.text.len() < 2 * TEXT_BYTES_MAX && frame.bytes > 100_000);
        assert!(frame.text.contains("bytes cut]… ") && frame.text.contains("begin"));
        assert!(!frame.text.contains("abcdefghijkl"), "{}", frame.text);
        let many: Vec<String> = (0..20_000).map(|n| n.to_string()).collect();
        let list = json!({"method": "x", "params": {"sessionId": "s", "many": many}});
        tap.line(AGENT, &list.to_string());
        let frame = tap.read("s", 1).unwrap().frames.remove(0);
        assert!(frame.cut && frame.text.len() < 2 * FRAME_BYTES_MAX);
    }

    #[test]
    fn watched_sessions_are_limited_and_unread_ones_make_room() {
        let tap = WireTap::default();
        for n in 0..WATCHED_MAX {
            assert!(tap.watch(&n.to_string(), true));
        }
        assert!(!tap.watch("one more", true));
        let long_ago = Instant::now().checked_sub(UNREAD_MAX * 2).unwrap();
        tap.lock().sessions.get_mut("0").unwrap().read = long_ago;
        assert!(tap.watch("one more", true));
    }
}
