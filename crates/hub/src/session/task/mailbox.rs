//! The mailbox of a session's task: commands, agent events, terminal output and reports of subtasks, one at a time.
//!
//! Invariant: while the log is stalled, only commands are received and at most `COMMANDS_MAX` of them are deferred; the
//! agent's events stay where they are, which slows the agent down.

use std::collections::VecDeque;

use tokio::sync::mpsc;

use super::{Command, TaskReport};
use agents::{Routed, TerminalOutput};

/// Maximum commands that wait for the task.
pub(super) const COMMANDS_MAX: usize = 256;
/// Maximum agent events that wait for the task.
pub(crate) const FROM_AGENT_MAX: usize = 1024;
/// Maximum terminal outputs that wait for the task; each can be large.
pub(crate) const TERMINALS_MAX: usize = 4;
/// Maximum reports of the session's subtasks that wait for it.
pub(super) const TASK_REPORTS_MAX: usize = 64;
/// Maximum agent events received per wake-up, so that other sessions are not starved.
pub(super) const AGENT_EVENTS_PER_WAKE: usize = 64;

pub(super) enum Message {
    Command(Command),
    /// Agent events are ready for `next_event`.
    AgentEvents,
    Terminal(TerminalOutput),
    Report(TaskReport),
    /// No handle to the session is left.
    Closed,
}

pub(super) struct Mailbox {
    commands: mpsc::Receiver<Command>,
    closed: bool,
    /// Messages that arrived while the log was stalled.
    deferred: VecDeque<Message>,
    agent: mpsc::Receiver<Routed>,
    received: Vec<Routed>,
    events: VecDeque<Routed>,
    terminals: mpsc::Receiver<TerminalOutput>,
    reports: mpsc::Receiver<TaskReport>,
}

impl Mailbox {
    pub(super) fn new(
        commands: mpsc::Receiver<Command>,
        agent: mpsc::Receiver<Routed>,
        terminals: mpsc::Receiver<TerminalOutput>,
        reports: mpsc::Receiver<TaskReport>,
    ) -> Self {
        Self {
            commands,
            closed: false,
            deferred: VecDeque::new(),
            agent,
            received: vec![],
            events: VecDeque::new(),
            terminals,
            reports,
        }
    }

    /// The next message. Cancel safe.
    pub(super) async fn next(&mut self, stalled: bool) -> Message {
        if !stalled {
            if let Some(message) = self.deferred.pop_front() {
                return message;
            }
            if !self.events.is_empty() {
                return Message::AgentEvents;
            }
        }
        let listens = !self.closed && (!stalled || self.deferred.len() < COMMANDS_MAX);
        tokio::select! {
            command = self.commands.recv(), if listens => match command {
                Some(command) => Message::Command(command),
                None => {
                    self.closed = true;
                    Message::Closed
                }
            },
            _ = self.agent.recv_many(&mut self.received, AGENT_EVENTS_PER_WAKE), if !stalled => {
                self.events.extend(self.received.drain(..));
                Message::AgentEvents
            }
            Some(output) = self.terminals.recv(), if !stalled => Message::Terminal(output),
            Some(report) = self.reports.recv(), if !stalled => Message::Report(report),
            else => std::future::pending().await,
        }
    }

    /// Keeps a message until the log is no longer stalled.
    pub(super) fn defer(&mut self, message: Message) {
        self.deferred.push_back(message);
    }

    pub(super) fn next_event(&mut self) -> Option<Routed> {
        self.events.pop_front()
    }

    pub(super) fn has_agent_events(&self) -> bool {
        !self.events.is_empty() || !self.agent.is_empty()
    }
}
