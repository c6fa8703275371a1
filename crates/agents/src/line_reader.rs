//! The line reader and the line writer between an agent's pipes and the protocol crate.
//!
//! Invariant: lines are bounded in length, and events leave in the order in which the agent wrote its lines.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use acp_lines::{Barrier, Closed, LineBuffer, MARK_METHOD};
use agent_client_protocol::Agent;
use agent_client_protocol::v1::ConnectionTo;
use futures_channel::mpsc as lines;
use futures_util::StreamExt;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::{AsyncWriteExt, BufWriter};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::{mpsc, watch};
use wire::TrafficSide;

use super::byte_budget::{BudgetPermit, ByteBudget};
use super::event::{AgentEvent, Queued};
use super::from_acp;
use super::inbound_limiter::{self, InboundLimiter};
use super::line_values::line_values;
use super::wire_tap::WireTap;
use conversation::Update;

/// Maximum length of a line from an agent. Lines of half a megabyte are normal.
const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;
const WRITE_BYTES: usize = 64 * 1024;
/// Maximum bytes read after the keeper has ended: the largest pipe buffer an unprivileged user can get.
const LEFT_IN_PIPE_MAX: usize = 1024 * 1024;
/// Maximum wait for output after the keeper has ended. A pipe still open then is held by an unrelated process.
const LEFT_DEADLINE: Duration = Duration::from_secs(1);
/// Maximum JSON values in a line, because a parsed value takes much more memory than its text.
const LINE_VALUES_MAX: usize = 1_000_000;
/// Lines up to this size are not checked against `LINE_VALUES_MAX`: they cannot exceed it.
const WIDE_BYTES: usize = 1024 * 1024;
/// The prefix with which most agents write a `session/update`. Such a line needs no separate parse of its envelope.
const UPDATE_PREFIX: &[u8] = br#"{"jsonrpc":"2.0","method":"session/update","params":"#;

/// Counters of agent messages that the server could not use. Only the first of each kind is logged.
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
                "ignoring a message of the agent; further ones of this kind are only counted"
            );
        }
    }
}

/// Reads the agent's lines. Updates go straight to the event queue, all other lines through the crate.
pub(super) struct LineReader {
    connection: u64,
    events: mpsc::Sender<Queued>,
    barrier: Barrier,
    oddities: Arc<Oddities>,
    tap: Arc<WireTap>,
    ended: Arc<AtomicBool>,
    budget: ByteBudget,
    limiter: Arc<InboundLimiter>,
    /// Updates parsed from the last read, sent together.
    parsed: Vec<Queued>,
}

/// Receives the notifications that the crate dispatches, among them the markers.
#[derive(Clone)]
pub(super) struct Dispatched {
    dispatched: acp_lines::Dispatched,
    limiter: Arc<InboundLimiter>,
    oddities: Arc<Oddities>,
}

impl Dispatched {
    pub(super) async fn notice(&self, method: &str, params: &Value, agent: &ConnectionTo<Agent>) {
        match acp_lines::Dispatched::mark(method, params) {
            Some(mark) => {
                self.limiter.end_line(agent).await;
                self.dispatched.reached(mark);
            }
            None => Oddities::count(
                &self.oddities.unknown_notifications,
                "unknown notification",
                method,
            ),
        }
    }
}

impl LineReader {
    /// The reader, the lines that go through the crate, and the handler of the notifications that the crate dispatches.
    /// Only handlers inside the crate may hold the latter: once they are gone, waiting for a marker must fail.
    pub(super) fn new(
        connection: u64,
        events: mpsc::Sender<Queued>,
        oddities: Arc<Oddities>,
        tap: Arc<WireTap>,
        limiter: Arc<InboundLimiter>,
    ) -> (Self, lines::Receiver<String>, Dispatched) {
        let (barrier, from_agent, dispatched) = acp_lines::barrier();
        let on_dispatched = Dispatched {
            dispatched,
            limiter: limiter.clone(),
            oddities: oddities.clone(),
        };
        (
            Self {
                connection,
                events,
                barrier,
                oddities,
                tap,
                ended: Arc::default(),
                budget: ByteBudget::default(),
                limiter,
                parsed: Vec::new(),
            },
            from_agent,
            on_dispatched,
        )
    }

    /// Becomes true when the agent's output has ended, before the crate notices it.
    pub(super) fn ended(&self) -> Arc<AtomicBool> {
        self.ended.clone()
    }

    /// Reads until the agent's output ends, at the latest shortly after its keeper has ended, even if another process
    /// holds the pipe. Returns the reason if a line broke a limit.
    pub(super) async fn read_lines<T>(
        mut self,
        stdout: ChildStdout,
        keeper: impl Future<Output = T>,
    ) -> Option<String> {
        let violation = self.read(stdout, keeper).await;
        self.ended.store(true, Ordering::Release);
        violation
    }

    async fn read<T>(
        &mut self,
        mut stdout: ChildStdout,
        keeper: impl Future<Output = T>,
    ) -> Option<String> {
        let mut buffer = LineBuffer::default();
        let mut keeper = std::pin::pin!(keeper);
        // Bytes that may still be read; set when the keeper has ended.
        let mut left = None;
        loop {
            let read = tokio::select! {
                read = buffer.read(&mut stdout) => read,
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
            while let Some(line) = buffer.next_line() {
                if line.len() > WIDE_BYTES && line_values(&line) > LINE_VALUES_MAX {
                    return Some(format!(
                        "it sent a line of more than {LINE_VALUES_MAX} values"
                    ));
                }
                if self.pass(line.trim_end_matches('\r')).await.is_err() {
                    return None;
                }
            }
            if self.flush().await.is_err() {
                return None;
            }
            if buffer.unfinished_bytes() > LINE_BYTES_MAX {
                return Some(format!(
                    "it sent a line of more than {} MiB",
                    LINE_BYTES_MAX / 1024 / 1024
                ));
            }
        }
    }

    async fn pass(&mut self, line: &str) -> Result<(), Closed> {
        self.tap.line(TrafficSide::Agent, line);
        let mut permit = BudgetPermit::default();
        if ByteBudget::applies_to(line.len()) {
            // Parsed updates hold permits; they must be sent before waiting for another, or the wait would never end.
            self.flush().await?;
            permit = self.budget.acquire(line.len()).await;
        }
        if let Some((session_id, update)) = parse_update_line(line) {
            self.update(session_id, update, permit);
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
                    Ok((session_id, update)) => self.update(session_id, update, permit),
                    Err(error) => {
                        Oddities::count(&self.oddities.malformed_lines, "malformed update", &error);
                    }
                }
                Ok(())
            }
            // A marker from the agent would open the barrier too early.
            (Some(MARK_METHOD), _) | (None, None) => {
                Oddities::count(
                    &self.oddities.malformed_lines,
                    "malformed line",
                    "neither a request nor an answer",
                );
                Ok(())
            }
            _ => self.through_the_crate(line, permit).await,
        }
    }

    fn update(&mut self, session_id: String, update: Update, permit: BudgetPermit) {
        match update {
            Update::Unknown { kind } => {
                Oddities::count(&self.oddities.unknown_updates, "unknown update", &kind);
            }
            Update::Ignored => {}
            update => self.parsed.push(Queued {
                connection: self.connection,
                event: AgentEvent::Update {
                    session_id,
                    update,
                    permit,
                },
            }),
        }
    }

    /// Sends the parsed updates, waiting for capacity in the event queue.
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

    /// Passes a line to the crate and waits until the crate has dispatched it, so that no later line overtakes it in
    /// the event queue.
    async fn through_the_crate(&mut self, line: &str, permit: BudgetPermit) -> Result<(), Closed> {
        self.flush().await?;
        self.limiter.begin_line(line.len(), permit);
        self.barrier.pass(line.to_owned()).await
    }
}

/// The update in a line that begins with `UPDATE_PREFIX`.
fn parse_update_line(line: &str) -> Option<(String, Update)> {
    let params = line
        .as_bytes()
        .strip_prefix(UPDATE_PREFIX)?
        .strip_suffix(b"}")?;
    let params = &line[UPDATE_PREFIX.len()..UPDATE_PREFIX.len() + params.len()];
    from_acp::read(params).ok()
}

/// Writes queued lines to the agent and flushes when the queue is empty. Returning closes the agent's input: at the end
/// of the queue, or when `stop` becomes true.
pub(super) async fn write_lines(
    stdin: ChildStdin,
    mut to_agent: lines::Receiver<String>,
    mut stop: watch::Receiver<bool>,
    tap: Arc<WireTap>,
    delivered: watch::Sender<u64>,
) {
    let mut stdin = BufWriter::with_capacity(WRITE_BYTES, stdin);
    loop {
        let line = tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return,
            line = to_agent.next() => line,
        };
        let Some(mut line) = line else { return };
        loop {
            let mark = inbound_limiter::mark(&line);
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
                delivered.send_modify(|seen| *seen = mark.max(*seen));
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
