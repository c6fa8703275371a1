//! Between the agent's pipes and the protocol crate: lines, bounded and in order.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use agent_client_protocol::Agent;
use agent_client_protocol::v1::ConnectionTo;
use futures_channel::mpsc as lines;
use futures_util::{SinkExt, StreamExt};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufWriter};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::{mpsc, watch};
use wire::TrafficSide;

use super::answers::{self, Desk};
use super::connection::AgentEvent;
use super::from_acp;
use super::line_values::line_values;
use super::room::{Room, Rooms};
use super::wire_tap::WireTap;
use conversation::Update;

/// The longest line an agent may send. Lines of half a megabyte are normal.
const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;
const READ_BYTES: usize = 64 * 1024;
/// What may still lie in the agent's output when its keeper has ended: the largest pipe an ordinary user gets.
const LEFT_IN_PIPE_MAX: usize = 1024 * 1024;
/// How long a pipe whose keeper has ended may stay open without more in it. Then a process that is none of the agent's
/// holds it.
const LEFT_DEADLINE: Duration = Duration::from_secs(1);
/// The most values that a line may hold: each takes much more room than its text. What is shorter than this holds fewer.
const LINE_VALUES_MAX: usize = 1_000_000;
const WIDE_BYTES: usize = 1024 * 1024;
/// A line that comes after another to find out when that one has been dispatched. No agent can send
/// one: the gate lets none through.
const MARK_METHOD: &str = "_liminal/dispatched";
/// How most agents begin an update; such a line is read in one go.
const UPDATE_BEGINS: &[u8] = br#"{"jsonrpc":"2.0","method":"session/update","params":"#;

/// What an agent sent that we could not use. Each kind is logged once and counted ever after.
#[derive(Debug, Default)]
pub struct Oddities {
    pub malformed_lines: AtomicU64,
    pub unknown_updates: AtomicU64,
    pub unknown_notifications: AtomicU64,
}

impl Oddities {
    fn count(counter: &AtomicU64, what: &str, detail: &str) {
        if counter.fetch_add(1, Ordering::Relaxed) == 0 {
            let detail: String = detail
                .chars()
                .filter(|c| !c.is_control())
                .take(200)
                .collect();
            tracing::warn!(
                what,
                detail,
                "an agent sent something we do not understand; more of it is only counted"
            );
        }
    }
}

/// Reads the agent's lines and sends each on its road.
pub(super) struct Gate {
    connection: u64,
    events: mpsc::Sender<AgentEvent>,
    to_crate: lines::Sender<String>,
    passed: Passed,
    dispatched: watch::Receiver<u64>,
    oddities: Arc<Oddities>,
    tap: Arc<WireTap>,
    ended: Arc<AtomicBool>,
    marks: u64,
    rooms: Rooms,
    desk: Arc<Desk>,
    /// Updates of the bytes just read, sent on together.
    parsed: Vec<AgentEvent>,
}

/// Told of every notification that has come out of the crate.
#[derive(Clone)]
pub(super) struct Passed {
    dispatched: watch::Sender<u64>,
    desk: Arc<Desk>,
    oddities: Arc<Oddities>,
}

impl Passed {
    pub(super) async fn notice(&self, method: &str, params: &Value, agent: &ConnectionTo<Agent>) {
        match (method, params["mark"].as_u64()) {
            (MARK_METHOD, Some(mark)) => {
                self.desk.passed(agent).await;
                self.dispatched.send_replace(mark);
            }
            _ => Oddities::count(
                &self.oddities.unknown_notifications,
                "unknown notification",
                method,
            ),
        }
    }
}

/// The next lines could not be received: nobody is there to take them.
struct Closed;

impl Gate {
    /// The gate, and the lines that go through the crate.
    pub(super) fn new(
        connection: u64,
        events: mpsc::Sender<AgentEvent>,
        oddities: Arc<Oddities>,
        tap: Arc<WireTap>,
        desk: Arc<Desk>,
    ) -> (Self, lines::Receiver<String>) {
        let (to_crate, from_agent) = lines::channel(2);
        let (mark, dispatched) = watch::channel(0);
        let passed = Passed {
            dispatched: mark,
            desk: desk.clone(),
            oddities: oddities.clone(),
        };
        (
            Self {
                connection,
                events,
                to_crate,
                passed,
                dispatched,
                oddities,
                tap,
                ended: Arc::default(),
                marks: 0,
                rooms: Rooms::default(),
                desk,
                parsed: Vec::new(),
            },
            from_agent,
        )
    }

    /// True once the agent's output has ended, before the crate learns of it.
    pub(super) fn ended(&self) -> Arc<AtomicBool> {
        self.ended.clone()
    }

    pub(super) fn passed(&self) -> Passed {
        self.passed.clone()
    }

    /// Until the end of the agent's output, which follows the end of its keeper whatever holds the pipe. Says what was
    /// wrong with it, if that is why it ended.
    pub(super) async fn read_lines<T>(
        mut self,
        stdout: ChildStdout,
        keeper: impl Future<Output = T>,
    ) -> Option<String> {
        let trouble = self.read(stdout, keeper).await;
        self.ended.store(true, Ordering::Release);
        trouble
    }

    async fn read<T>(
        &mut self,
        mut stdout: ChildStdout,
        keeper: impl Future<Output = T>,
    ) -> Option<String> {
        // Only the handlers inside the crate may hold this: with them gone, no mark will ever come back.
        let (detached, _) = watch::channel(0);
        self.passed.dispatched = detached;
        let mut buffer = Vec::with_capacity(READ_BYTES);
        let mut searched = 0;
        let mut keeper = std::pin::pin!(keeper);
        // Known once the keeper has ended.
        let mut left = None;
        loop {
            buffer.reserve(READ_BYTES);
            let read = tokio::select! {
                read = stdout.read_buf(&mut buffer) => read,
                _ = &mut keeper, if left.is_none() => {
                    left = Some(LEFT_IN_PIPE_MAX);
                    continue;
                }
                () = tokio::time::sleep(LEFT_DEADLINE), if left.is_some() => return None,
            };
            match (read, &mut left) {
                (Ok(0) | Err(_), _) | (_, Some(0)) => return None,
                (Ok(count), Some(left)) => *left = left.saturating_sub(count),
                (Ok(_), None) => {}
            }
            let mut begin = 0;
            while let Some(length) = memchr::memchr(b'\n', &buffer[begin.max(searched)..]) {
                let end = begin.max(searched) + length;
                searched = 0;
                let line = String::from_utf8_lossy(&buffer[begin..end]);
                if line.len() > WIDE_BYTES && line_values(&line) > LINE_VALUES_MAX {
                    return Some(format!(
                        "it sent a line of more than {LINE_VALUES_MAX} values"
                    ));
                }
                if self.pass(line.trim_end_matches('\r')).await.is_err() {
                    return None;
                }
                begin = end + 1;
            }
            if self.flush().await.is_err() {
                return None;
            }
            buffer.drain(..begin);
            searched = buffer.len();
            if buffer.len() > LINE_BYTES_MAX {
                return Some(format!(
                    "it sent a line of more than {} MiB",
                    LINE_BYTES_MAX / 1024 / 1024
                ));
            }
            // One huge line must not keep its memory for the rest of a long life.
            if buffer.is_empty() && buffer.capacity() > 16 * READ_BYTES {
                buffer = Vec::with_capacity(READ_BYTES);
            }
        }
    }

    async fn pass(&mut self, line: &str) -> Result<(), Closed> {
        self.tap.line(TrafficSide::Agent, line);
        let mut room = Room::default();
        if Rooms::are_needed(line.len()) {
            // What holds room must be on its way before more is waited for.
            self.flush().await?;
            room = self.rooms.take(line.len()).await;
        }
        if let Some((session_id, update)) = short_road(line) {
            self.update(session_id, update, room);
            return Ok(());
        }
        #[derive(Deserialize)]
        struct Envelope<'a> {
            #[serde(borrow, default)]
            method: Option<Cow<'a, str>>,
            #[serde(borrow, default)]
            id: Option<&'a RawValue>,
            #[serde(borrow, default)]
            params: Option<&'a RawValue>,
        }
        let envelope: Envelope = match serde_json::from_str(line) {
            Ok(envelope) => envelope,
            Err(_) if line.trim().is_empty() => return Ok(()),
            Err(error) => {
                Oddities::count(
                    &self.oddities.malformed_lines,
                    "malformed line",
                    &error.to_string(),
                );
                return Ok(());
            }
        };
        match (envelope.method.as_deref(), envelope.id) {
            (Some("session/update"), None) => {
                match from_acp::read(envelope.params.map_or("null", RawValue::get)) {
                    Ok((session_id, update)) => self.update(session_id, update, room),
                    Err(error) => {
                        Oddities::count(&self.oddities.malformed_lines, "malformed update", &error);
                    }
                }
                Ok(())
            }
            (Some(MARK_METHOD), _) | (None, None) => {
                Oddities::count(
                    &self.oddities.malformed_lines,
                    "malformed line",
                    "neither a request nor an answer",
                );
                Ok(())
            }
            _ => self.through_the_crate(line, room).await,
        }
    }

    fn update(&mut self, session_id: String, update: Update, room: Room) {
        match update {
            Update::Unknown { kind } => {
                Oddities::count(&self.oddities.unknown_updates, "unknown update", &kind);
            }
            Update::Ignored => {}
            update => self.parsed.push(AgentEvent::Update {
                connection: self.connection,
                session_id,
                update,
                room,
            }),
        }
    }

    /// Sends on what has been parsed, as fast as whoever listens takes it.
    async fn flush(&mut self) -> Result<(), Closed> {
        while !self.parsed.is_empty() {
            let count = self.parsed.len().min(self.events.max_capacity());
            let permits = self.events.reserve_many(count).await.map_err(|_| Closed)?;
            for (permit, event) in permits.zip(self.parsed.drain(..count)) {
                permit.send(event);
            }
        }
        Ok(())
    }

    /// Hands a line to the crate and waits until it has been dealt with, so that what comes after it
    /// on the wire comes after it in the queue.
    async fn through_the_crate(&mut self, line: &str, room: Room) -> Result<(), Closed> {
        self.flush().await?;
        self.desk.passes(line.len(), room);
        self.marks += 1;
        let mark = self.marks;
        let marker =
            format!(r#"{{"jsonrpc":"2.0","method":"{MARK_METHOD}","params":{{"mark":{mark}}}}}"#);
        self.to_crate
            .send(line.to_owned())
            .await
            .map_err(|_| Closed)?;
        self.to_crate.send(marker).await.map_err(|_| Closed)?;
        self.dispatched
            .wait_for(|seen| *seen >= mark)
            .await
            .map_err(|_| Closed)?;
        Ok(())
    }
}

/// An update, if the line is one and begins as most do.
fn short_road(line: &str) -> Option<(String, Update)> {
    let params = line
        .as_bytes()
        .strip_prefix(UPDATE_BEGINS)?
        .strip_suffix(b"}")?;
    let params = &line[UPDATE_BEGINS.len()..UPDATE_BEGINS.len() + params.len()];
    from_acp::read(params).ok()
}

/// Writes what is waiting together, and flushes when nothing more is. Closes the agent's input at
/// the end, or as soon as it is asked to.
pub(super) async fn write_lines(
    stdin: ChildStdin,
    mut to_agent: lines::Receiver<String>,
    mut stop: watch::Receiver<bool>,
    tap: Arc<WireTap>,
    taken: watch::Sender<u64>,
) {
    let mut stdin = BufWriter::with_capacity(READ_BYTES, stdin);
    loop {
        let line = tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return,
            line = to_agent.next() => line,
        };
        let Some(mut line) = line else { return };
        loop {
            let mark = answers::mark(&line);
            let written = async {
                if mark.is_some() {
                    return stdin.flush().await;
                }
                tap.line(TrafficSide::Client, &line);
                stdin.write_all(line.as_bytes()).await?;
                stdin.write_all(b"\n").await
            };
            if written.await.is_err() {
                return;
            }
            if let Some(mark) = mark {
                taken.send_modify(|seen| *seen = mark.max(*seen));
            }
            match to_agent.try_recv() {
                Ok(next) => line = next,
                Err(_) => break,
            }
        }
        if stdin.flush().await.is_err() {
            return;
        }
    }
}
