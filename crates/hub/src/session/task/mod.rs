//! The task of one session. It processes all inputs of the session one after the other.
//!
//! `state` decides; the task carries out the effects in order, through its parts: `log` (the conversation and its
//! subscribers), `link` (the agent), `summary` (lists and headers), `timers`. `mailbox` receives all messages. The task
//! never waits for the agent: requests run in subtasks that report their results to the mailbox.
//!
//! Invariants: effects are carried out in the order of the inputs that caused them. While the log is stalled, effects
//! wait; reads and cancels do not.

mod agent_events;
mod command;
mod link;
mod log;
mod mailbox;
mod record;
mod summary;
mod timers;

use std::collections::VecDeque;
use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use wire::{ChatEntry, PermissionPolicy, TurnPhase};

use self::command::WhenStalled;
pub(crate) use self::command::{Command, Subscribe};
pub use self::command::{Done, Page, Shown};
use self::link::{AgentLink, GuardedWrite, PendingChoice};
use self::log::Log;
use self::mailbox::{COMMANDS_MAX, Mailbox, Message, TASK_REPORTS_MAX};
pub(crate) use self::mailbox::{FROM_AGENT_MAX, TERMINALS_MAX};
use self::record::Record;
use self::summary::Summary;
use self::timers::Timers;
use super::index::{Index, SessionMeta, trash};
use super::state::{
    AgentEffect, ConfigChoice, Durable, Effect, InitialState, Input, LogEffect, Now, Refused,
    State, Step, SummaryEffect,
};
use super::title::UNTITLED;
use crate::error::HubError;
use crate::events::Origin;
use crate::stream::Subscribers;
use agents::{
    AgentError, AgentKind, AgentSession, BudgetPermit, HostSetup, Routed, TerminalOutput,
};
use store::transcript::{Found, Header, Note, Transcript};
use store::{Audit, Uploads};

/// Number of latest entries from which accepted request ids are read at start.
const REQUEST_IDS: u64 = 200;

/// Everything a task needs to start.
pub(crate) struct Setup {
    pub(crate) meta: Arc<SessionMeta>,
    pub(crate) path: PathBuf,
    pub(crate) boot_id: Arc<str>,
    /// `None` if the catalog no longer has this agent.
    pub(crate) kind: Option<AgentKind>,
    pub(crate) index: Arc<Index>,
    pub(crate) host: HostSetup,
    /// Output of the terminals that `host` opens.
    pub(crate) terminals: mpsc::Receiver<TerminalOutput>,
    pub(crate) audit: Audit,
    pub(crate) uploads: Uploads,
    pub(crate) policy: PermissionPolicy,
    pub(crate) quiet_after: Duration,
    pub(crate) restarts_when_quiet: bool,
}

/// A session that the agent has just created.
pub(crate) struct NewSession {
    pub(crate) transcript: Transcript,
    pub(crate) agent: AgentSession,
    pub(crate) answer: Value,
    pub(crate) inbox: mpsc::Sender<Routed>,
    pub(crate) from_agent: mpsc::Receiver<Routed>,
}

/// Results of subtasks.
enum TaskReport {
    Input(Input),
    AttachFailed {
        attempt: u64,
        error: HubError,
    },
    /// The agent requests a write to a sensitive path.
    GuardedWrite(GuardedWrite),
    /// The agent's answer to a config choice.
    ChoiceAnswered {
        connection: u64,
        pending: PendingChoice,
        answer: Result<Value, AgentError>,
    },
    /// The agent has opened the session and has answered the config choices that were sent to it again.
    Restored {
        session: AgentSession,
        answer: Value,
        chosen: Vec<(ConfigChoice, Value)>,
    },
}

pub(crate) fn spawn(setup: Setup, fresh: Option<NewSession>) -> mpsc::Sender<Command> {
    let (commands, waiting) = mpsc::channel(COMMANDS_MAX);
    tokio::spawn(run(setup, fresh, waiting));
    commands
}

async fn run(setup: Setup, fresh: Option<NewSession>, mut commands: mpsc::Receiver<Command>) {
    let task = match fresh {
        Some(fresh) => SessionTask::fresh(setup, fresh, commands),
        None => {
            let Some((read, waiting)) = read_or_refuse(&setup, &mut commands).await else {
                return;
            };
            let mut task = SessionTask::load(setup, read, commands).await;
            if let Some(command) = waiting {
                task.mailbox.defer(Message::Command(command));
            }
            task
        }
    };
    task.run().await;
}

/// Reads the transcript. While that fails, each command is refused after another attempt, so that the user can retry
/// once the cause is removed. Returns the command that led to the successful attempt, too.
async fn read_or_refuse(
    setup: &Setup,
    commands: &mut mpsc::Receiver<Command>,
) -> Option<(Read, Option<Command>)> {
    let mut waiting: Option<Command> = None;
    loop {
        match read(setup.path.clone(), setup.meta.header()).await {
            Ok(read) => return Some((read, waiting)),
            Err(reason) => {
                tracing::error!(reason, "could not open a transcript");
                if let Some(command) = waiting.take() {
                    command.refuse(|| HubError::SessionUnreadable(reason));
                }
                waiting = Some(commands.recv().await?);
            }
        }
    }
}

type Read = (Transcript, Found, Vec<ChatEntry>);

/// Reads the transcript and its last entries. Replaces a missing transcript by an empty one.
async fn read(path: PathBuf, header: Header) -> Result<Read, String> {
    let read = tokio::task::spawn_blocking(move || {
        let (transcript, found) = match Transcript::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                tracing::warn!(
                    session = header.identity.id,
                    "transcript is missing; created an empty one"
                );
                (Transcript::create(&path, &header)?, Found::default())
            }
            opened => opened?,
        };
        let total = transcript.total();
        let mut tail = transcript.read(total.saturating_sub(REQUEST_IDS), total)?;
        tail.extend(found.in_flight.values().cloned());
        std::io::Result::Ok((transcript, found, tail))
    });
    match read.await {
        Ok(read) => read.map_err(|error| error.to_string()),
        Err(_) => Err("the reading task failed".to_owned()),
    }
}

struct SessionTask {
    meta: Arc<SessionMeta>,
    path: PathBuf,
    state: State,
    log: Log,
    link: AgentLink,
    timers: Timers,
    mailbox: Mailbox,
    summary: Summary,
    /// Effects and answers of accepted inputs that are not carried out yet. Empty unless the log is stalled.
    work: VecDeque<Work>,
    /// Byte budget of agent events that are not written yet.
    permits: Vec<BudgetPermit>,
}

/// One effect or answer of an accepted input.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are effects, and a box for each would cost more than the room"
)]
enum Work {
    Effect(Effect),
    /// Answer a request: everything that followed from it is written.
    Answer(oneshot::Sender<Result<Done, HubError>>, Done),
    /// End the task.
    Stop {
        deleted: bool,
        reply: Option<oneshot::Sender<()>>,
    },
}

impl SessionTask {
    fn fresh(setup: Setup, fresh: NewSession, commands: mpsc::Receiver<Command>) -> Self {
        let read = (fresh.transcript, Found::default(), vec![]);
        let mut task = Self::new(setup, read, commands, (fresh.inbox, fresh.from_agent));
        let attached = task.link.open(fresh.agent, fresh.answer, vec![]);
        // No client has subscribed yet, so the effects can be dropped.
        let _ = task.state.step(attached, Now::read());
        task
    }

    /// Starts from a transcript on disk, and ends a turn that was interrupted.
    async fn load(setup: Setup, mut read: Read, commands: mpsc::Receiver<Command>) -> Self {
        let (_, found, _) = &mut read;
        let interrupted = std::mem::take(&mut found.interrupted);
        let has_live_log = interrupted || !found.in_flight.is_empty();
        let mut task = Self::new(setup, read, commands, mpsc::channel(FROM_AGENT_MAX));
        if interrupted {
            let total = task.log.interrupt();
            task.state.renumber(total);
            task.state.interrupted();
            task.summary.publish(&task.state, &mut task.log);
        }
        if has_live_log {
            task.log.close_elicitations();
            task.log.fold().await;
        }
        task
    }

    fn new(
        setup: Setup,
        (transcript, found, tail): Read,
        commands: mpsc::Receiver<Command>,
        (inbox, from_agent): (mpsc::Sender<Routed>, mpsc::Receiver<Routed>),
    ) -> Self {
        let record = Record::new(transcript, found);
        let meta = setup.meta;
        let state = State::new(initial_state(
            &record,
            &tail,
            &meta,
            setup.policy,
            setup.restarts_when_quiet,
        ));
        let subscribers = Subscribers::new(meta.id.as_str().into(), setup.boot_id);
        let (reports, from_tasks) = mpsc::channel(TASK_REPORTS_MAX);
        Self {
            state,
            log: Log::new(record, subscribers, setup.audit),
            link: AgentLink::new(
                meta.clone(),
                setup.kind,
                setup.uploads,
                inbox,
                reports,
                setup.host,
            ),
            timers: Timers::new(setup.quiet_after),
            mailbox: Mailbox::new(commands, from_agent, setup.terminals, from_tasks),
            summary: Summary::new(meta.clone(), setup.index),
            work: VecDeque::new(),
            permits: vec![],
            path: setup.path,
            meta,
        }
    }

    async fn run(mut self) {
        loop {
            let stalled = self.log.is_stalled();
            let timer = self.next_timer();
            tokio::select! {
                message = self.mailbox.next(stalled) => self.receive(message).await,
                () = due(timer) => self.timer().await,
            }
            if self.finish().await.is_break() {
                return;
            }
        }
    }

    async fn receive(&mut self, message: Message) {
        match message {
            Message::Command(command) => self.command(command).await,
            Message::AgentEvents => self.agent_events().await,
            Message::Terminal(output) => self.step(Input::Terminal(output)).await,
            Message::Report(report) => self.report(report).await,
            Message::Closed if self.log.is_stalled() => self.mailbox.defer(Message::Closed),
            Message::Closed => self.stop(false, None).await,
        }
    }

    async fn report(&mut self, report: TaskReport) {
        match report {
            TaskReport::Input(input) => self.step(input).await,
            TaskReport::AttachFailed { attempt, error } => {
                if self.link.is_current_attempt(attempt) {
                    self.attach_failed(error).await;
                }
            }
            TaskReport::GuardedWrite(write) => {
                let requested = self.link.request_write(write);
                self.step(requested).await;
            }
            TaskReport::ChoiceAnswered {
                connection,
                pending,
                answer,
            } => self.choice_answered(connection, pending, answer).await,
            TaskReport::Restored {
                session,
                answer,
                chosen,
            } => {
                if self.link.end_restore(session.connection_id()) {
                    self.opened(session, answer, chosen).await;
                }
            }
        }
    }

    async fn command(&mut self, command: Command) {
        if let Some(error) = self.log.stalled() {
            match command.when_stalled() {
                WhenStalled::Serve => {}
                WhenStalled::Refuse => return command.refuse(|| HubError::Write(error)),
                WhenStalled::Defer => return self.mailbox.defer(Message::Command(command)),
            }
        }
        match command {
            Command::Subscribe { feed, how, reply } => {
                let opens = matches!(how, Subscribe::Open { .. });
                let subscribed = self.log.subscribe(feed, how, self.state.info()).await;
                if opens && subscribed.is_ok() {
                    self.step(Input::ClientOpened).await;
                }
                let _ = reply.send(subscribed);
            }
            Command::Unsubscribe { connection } => self.log.unsubscribe(connection),
            Command::Page {
                before,
                limit,
                reply,
            } => drop(reply.send(self.log.page(before, limit).await)),
            Command::Info { reply } => drop(reply.send(Ok(self.state.info()))),
            Command::Elicitations { reply } => drop(reply.send(Ok(self.state.open_elicitations()))),
            Command::Act { input, reply, .. } if self.log.is_stalled() => {
                // While the log is stalled, a cancel is the only input that is served: it reaches the agent at once,
                // and the end of the turn is written later.
                self.link.cancel();
                self.step(input).await;
                let _ = reply.send(Ok(Done::Noted));
            }
            Command::Act {
                input,
                origin,
                reply,
            } => self.act(input, origin, reply).await,
            Command::Choose { choice, reply } => self.choose(PendingChoice { choice, reply }).await,
            Command::Titled { title, reply } => {
                let note = Note {
                    title: Some(title),
                    ..Note::default()
                };
                self.state.titled();
                let noted = self.log.save_now(note).await;
                let _ = reply.send(noted.map_err(|error| HubError::Write(Arc::new(error))));
            }
            Command::Archived(archived) => {
                let note = Note {
                    archived: Some(archived),
                    ..Note::default()
                };
                self.log.save(note).await;
            }
            Command::Stop { deleted, reply } => self.stop(deleted, Some(reply)).await,
        }
    }

    /// Carries out a client's request, or refuses it without any effect.
    async fn act(
        &mut self,
        input: Input,
        origin: Origin,
        reply: oneshot::Sender<Result<Done, HubError>>,
    ) {
        let before = self.state.clone();
        let step = match self.state.step(input, Now::read()) {
            Ok(step) => step,
            Err(Refused { code, message }) => {
                let _ = reply.send(Err(HubError::SessionRefused { code, message }));
                return;
            }
        };
        let (done, written) = match step.durable {
            Durable::Nothing => (Done::Noted, Ok(())),
            Durable::Note(note) => (Done::Noted, self.log.save_now(note).await),
            Durable::TurnBegins(changes) => {
                (Done::Begun, self.log.begin_turn(changes, origin).await)
            }
        };
        if let Err(error) = written {
            self.state = before;
            let _ = reply.send(Err(HubError::Write(Arc::new(error))));
            return;
        }
        self.work.extend(step.then.into_iter().map(Work::Effect));
        self.work.push_back(Work::Answer(reply, done));
        let _ = self.carry_out().await;
    }

    /// Handles an input that cannot be refused.
    async fn step(&mut self, input: Input) {
        // Only requests of clients can be refused; no client waits for the result of an input here.
        let Ok(Step { durable, then }) = self.state.step(input, Now::read()) else {
            return;
        };
        let first = match durable {
            Durable::Nothing => None,
            Durable::TurnBegins(changes) => Some(LogEffect::TurnBegins(changes)),
            Durable::Note(note) => Some(LogEffect::Note(note)),
        };
        let effects = first.map(Effect::Log).into_iter().chain(then);
        self.work.extend(effects.map(Work::Effect));
        let _ = self.carry_out().await;
    }

    async fn stop(&mut self, deleted: bool, reply: Option<oneshot::Sender<()>>) {
        self.step(Input::Stop { deleted }).await;
        self.work.push_back(Work::Stop { deleted, reply });
    }

    /// Ends the handling of a message: carries out the remaining work, then writes and publishes its changes.
    async fn finish(&mut self) -> ControlFlow<()> {
        let was_stalled = self.log.is_stalled();
        self.carry_out().await?;
        if !self.may_write() || !self.log.commit().await {
            return ControlFlow::Continue(());
        }
        if was_stalled {
            self.timers.restart_after_stall();
        }
        self.permits.clear();
        self.log.shorten().await;
        self.summary.publish(&self.state, &mut self.log);
        ControlFlow::Continue(())
    }

    /// Whether the log is not stalled, or its next attempt to write is due.
    fn may_write(&self) -> bool {
        self.log.retry_at().is_none_or(|at| at <= Instant::now())
    }

    /// Carries out waiting work until none is left or the log stalls.
    async fn carry_out(&mut self) -> ControlFlow<()> {
        while let Some(work) = self.work.pop_front() {
            // Changes are collected, so that few writes and few events follow from many. They are written and
            // published before anything else happens.
            let collects = matches!(
                work,
                Work::Effect(
                    Effect::Log(LogEffect::Change(_)) | Effect::Summary(SummaryEffect::Info)
                )
            );
            let stalls = self.log.is_stalled() && !self.may_write();
            if stalls || (!collects && !self.log.commit().await) {
                self.work.push_front(work);
                return ControlFlow::Continue(());
            }
            self.perform(work).await?;
        }
        ControlFlow::Continue(())
    }

    async fn perform(&mut self, work: Work) -> ControlFlow<()> {
        match work {
            Work::Effect(Effect::Log(effect)) => self.perform_log(effect).await,
            Work::Effect(Effect::Agent(effect)) => {
                match &effect {
                    AgentEffect::Prompt { .. } => self.timers.restart_silence(),
                    AgentEffect::Cancel => self.timers.cancel_sent(),
                    AgentEffect::Attach => self.timers.prompt_ended(),
                    _ => {}
                }
                let since = self.active_since();
                self.link.perform(effect, since).await;
            }
            Work::Effect(Effect::Summary(effect)) => {
                self.summary.perform(effect, &mut self.log).await;
            }
            Work::Answer(reply, done) => drop(reply.send(Ok(done))),
            Work::Stop { deleted, reply } => {
                self.link.close(deleted).await;
                self.log.fold_rest().await;
                self.summary.publish(&self.state, &mut self.log);
                if let Some(reply) = reply {
                    let _ = reply.send(());
                }
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }

    async fn perform_log(&mut self, effect: LogEffect) {
        match effect {
            LogEffect::Change(change) => self.log.change(change),
            LogEffect::TurnBegins(changes) => self.log.turn_follows(changes),
            LogEffect::Amend { entry_id, update } => {
                let held = self.log.amend(&entry_id, *update).await;
                self.state.hold(held);
            }
            LogEffect::Complete(entry_id) => self.log.complete(entry_id),
            LogEffect::Cancelled(entry_id) => self.log.cancelled(entry_id),
            LogEffect::Fold => self.log.fold().await,
            LogEffect::Note(note) => self.log.save(note).await,
        }
    }

    /// Time of the agent's last event, if the session was active since the server started.
    fn active_since(&self) -> Option<Timestamp> {
        let is_active = self.log.has_published();
        is_active.then(|| self.timers.last_event_at())
    }

    fn expects_events(&self) -> bool {
        self.state.phase() == Some(TurnPhase::Working) && !self.link.waits_for_user()
    }

    fn next_timer(&self) -> Option<Instant> {
        // While the log is stalled, the agent's events are not read, so nothing is known about its silence.
        if let Some(retry_at) = self.log.retry_at() {
            return Some(retry_at);
        }
        let timer = self.timers.next(self.expects_events());
        [timer, self.link.settle_at()].into_iter().flatten().min()
    }

    async fn timer(&mut self) {
        // `finish` tries to write again after each message and timer.
        if self.log.is_stalled() {
            return;
        }
        let events_wait = self.mailbox.has_agent_events();
        if let Some(loaded) = self.link.settle(events_wait) {
            self.finish_load(loaded).await;
        } else if let Some(input) = self.timers.due(self.expects_events()) {
            self.step(input).await;
        }
    }

    /// The file that keeps a conversation which the agent's replay replaces.
    fn path_of_replaced(&self) -> PathBuf {
        let folder = self.path.parent().map(trash).unwrap_or_default();
        let now = Timestamp::now().as_millisecond();
        folder.join(format!("{}.before-{now}.jsonl", self.meta.key))
    }
}

/// The state of a session as it is on disk.
fn initial_state(
    record: &Record,
    tail: &[ChatEntry],
    meta: &SessionMeta,
    policy: PermissionPolicy,
    restarts_when_quiet: bool,
) -> InitialState {
    let accepted = tail.iter().filter_map(|entry| match entry {
        ChatEntry::User { request_id, .. } => request_id.clone(),
        _ => None,
    });
    let failed = tail.iter().rev().find_map(|entry| match entry {
        ChatEntry::Turn(turn) => Some(turn.outcome.is_failure()),
        _ => None,
    });
    let note = record.note();
    InitialState {
        total: record.total(),
        titled: meta.title != UNTITLED,
        failed: failed.unwrap_or(false),
        policy: note.policy.unwrap_or(policy),
        chosen: note.chosen.clone().unwrap_or_default(),
        accepted: accepted.collect(),
        queue: note.queue.clone().unwrap_or_default(),
        restarts_when_quiet,
    }
}

async fn due(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
