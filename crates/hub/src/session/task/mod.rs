//! The task of one session. It processes all inputs of the session one after the other.
//!
//! `state` decides; the task carries out the effects. It never waits for the agent: requests run in
//! separate tasks that report their results through a channel. Pending text is merged before it gets a
//! number, so a flood of text causes few writes and few events, without a debounce timer.

mod choices;
mod command;
mod link;
mod log;
mod permissions;
mod record;
mod refusal;
mod replay;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use wire::{ChatEntry, PermissionPolicy, SessionState, TurnPhase};

use crate::stream::Subscribers;
use self::choices::PendingChoice;
use self::command::refuse;
pub(crate) use self::command::{Command, Subscribe};
pub use self::command::{Done, Page, Shown};
use self::log::Log;
use self::permissions::{GuardedWrite, PendingPermission};
use self::link::{Replay, load_pictures};
use self::record::Record;
use self::replay::Settling;
use crate::stream::{Feed, SessionEvent};
use super::index::{Index, SessionMeta};
use super::state::{ConfigChoice, Effect, InitialState, Input, Now, Refused, State};
use super::title::UNTITLED;
use crate::error::HubError;
use crate::events::Origin;
use agents::{
    AgentError, AgentKind, AgentSession, Answer, Host, HostSetup, Routed, TerminalOutput,
};
use store::transcript::{Found, Header, Note, Transcript};
use store::{Audit, Uploads};

/// Maximum commands that wait for the task.
const COMMANDS_MAX: usize = 256;
/// Maximum agent events that wait for the task.
pub(super) const FROM_AGENT_MAX: usize = 1024;
/// Maximum agent events processed per wake-up, so that other sessions are not starved.
const AGENT_EVENTS_PER_WAKE: usize = 64;
/// Maximum reports of the session's subtasks that wait for it.
const TASK_REPORTS_MAX: usize = 64;
/// Maximum terminal outputs that wait for the task; each can be large.
pub(super) const TERMINALS_MAX: usize = 4;
/// Time after which the process of an agent that does not answer a cancel is ended.
const CANCEL_DEADLINE: Duration = Duration::from_secs(10);
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
    pub(crate) audit: Audit,
    pub(crate) uploads: Uploads,
    pub(crate) policy: PermissionPolicy,
    pub(crate) quiet_after: Duration,
    pub(crate) restarts_when_quiet: bool,
}

/// A session that the agent has just created.
pub(crate) struct Fresh {
    pub(crate) transcript: Transcript,
    pub(crate) agent: AgentSession,
    pub(crate) answer: Value,
    pub(crate) inbox: mpsc::Sender<Routed>,
    pub(crate) from_agent: mpsc::Receiver<Routed>,
}

/// Results of tasks that the task started.
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

pub(crate) fn spawn(setup: Setup, fresh: Option<Fresh>) -> mpsc::Sender<Command> {
    let (commands, waiting) = mpsc::channel(COMMANDS_MAX);
    tokio::spawn(run(setup, fresh, waiting));
    commands
}

async fn run(setup: Setup, fresh: Option<Fresh>, mut commands: mpsc::Receiver<Command>) {
    let mut task = match fresh {
        Some(fresh) => SessionTask::fresh(setup, fresh, commands),
        None => match read(setup.path.clone(), setup.meta.header()).await {
            Ok(read) => SessionTask::load(setup, read, commands).await,
            Err(reason) => {
                tracing::error!(reason, "could not open a transcript");
                while let Some(command) = commands.recv().await {
                    refuse(command, &reason);
                }
                return;
            }
        },
    };
    task.run().await;
}

type Read = (Transcript, Found, Vec<ChatEntry>);

/// Reads the transcript and its last entries. Replaces a missing transcript by an empty one.
async fn read(path: PathBuf, header: Header) -> Result<Read, String> {
    let read = tokio::task::spawn_blocking(move || {
        let (transcript, found) = match Transcript::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                tracing::warn!(
                    session = header.session,
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
    setup: Setup,
    commands: mpsc::Receiver<Command>,
    /// Commands that arrived while the disk could not be written, carried out afterwards.
    deferred: VecDeque<Command>,
    state: State,
    log: Log,
    agent: Option<AgentSession>,
    inbox: mpsc::Sender<Routed>,
    from_agent: mpsc::Receiver<Routed>,
    /// Number of the current attempt to open the session with the agent. Events of earlier attempts are ignored.
    attempt: u64,
    /// The agent connection of the open session, or of the current attempt once it is known. Events of other
    /// connections are ignored.
    agent_connection: Option<u64>,
    /// Entries that the agent has replayed so far.
    replay: Replay,
    /// Set after a load was answered, while more replay events may follow.
    settling: Option<Settling>,
    /// The agent connection to which earlier config choices are being sent again.
    restoring: Option<u64>,
    /// Config choices to send once the agent has the session open.
    pending_choices: Vec<PendingChoice>,
    /// Open permission requests with their titles, by permission id.
    permission_requests: HashMap<String, (PendingPermission, String)>,
    next_permission: u64,
    /// Open elicitations by question id, each with the task that waits for the agent to withdraw it.
    elicitations: HashMap<String, (Answer, AbortHandle)>,
    /// Opened with the agent's first file or terminal request.
    host: Option<Host>,
    terminals: mpsc::Receiver<TerminalOutput>,
    reports: mpsc::Sender<TaskReport>,
    from_tasks: mpsc::Receiver<TaskReport>,
    /// The request that is being carried out.
    origin: Origin,
    info_changed: bool,
    published_state: Option<SessionState>,
    /// Time of an activity that is not published yet.
    new_activity: Option<Timestamp>,
    last_event: Instant,
    last_event_at: Timestamp,
    /// Whether `Input::Quiet` was sent since the last event.
    quiet_reported: bool,
    cancel_deadline: Option<Instant>,
}

impl SessionTask {
    fn fresh(setup: Setup, fresh: Fresh, commands: mpsc::Receiver<Command>) -> Self {
        let channel = (fresh.inbox, fresh.from_agent);
        let read = (fresh.transcript, Found::default(), vec![]);
        let mut task = Self::new(setup, read, commands, channel);
        let takes_images = fresh.agent.takes_images();
        task.agent_connection = Some(fresh.agent.connection_id());
        task.agent = Some(fresh.agent);
        let answer = fresh.answer;
        let _ = task.state.step(
            Input::Attached {
                answer,
                takes_images,
                chosen: vec![],
            },
            Now::read(),
        );
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
            task.publish_info();
        }
        if has_live_log {
            task.log.close_elicitations();
            task.log.fold().await;
        }
        task
    }

    fn new(
        mut setup: Setup,
        (transcript, found, tail): Read,
        commands: mpsc::Receiver<Command>,
        (inbox, from_agent): (mpsc::Sender<Routed>, mpsc::Receiver<Routed>),
    ) -> Self {
        let record = Record::new(transcript, found);
        let note = record.note();
        let accepted = tail.iter().filter_map(|entry| match entry {
            ChatEntry::User { request_id, .. } => request_id.clone(),
            _ => None,
        });
        let queue = note.queue.clone().unwrap_or_default();
        let failed = tail.iter().rev().find_map(|entry| match entry {
            ChatEntry::Turn(turn) => Some(turn.outcome.is_failure()),
            _ => None,
        });
        let state = State::new(InitialState {
            total: record.total(),
            titled: setup.meta.title != UNTITLED,
            failed: failed.unwrap_or(false),
            policy: note.policy.unwrap_or(setup.policy),
            chosen: note.chosen.clone().unwrap_or_default(),
            accepted: accepted.collect(),
            queue,
            restarts_when_quiet: setup.restarts_when_quiet,
        });
        let (reports, from_tasks) = mpsc::channel(TASK_REPORTS_MAX);
        let (output, terminals) = mpsc::channel(TERMINALS_MAX);
        setup.host.output = output;
        let subscribers = Subscribers::new(setup.meta.id.as_str().into(), setup.boot_id.clone());
        Self {
            setup,
            commands,
            deferred: VecDeque::new(),
            state,
            log: Log::new(record, subscribers),
            agent: None,
            inbox,
            from_agent,
            attempt: 0,
            agent_connection: None,
            replay: Replay::default(),
            settling: None,
            restoring: None,
            pending_choices: vec![],
            permission_requests: HashMap::new(),
            next_permission: 1,
            elicitations: HashMap::new(),
            host: None,
            terminals,
            reports,
            from_tasks,
            origin: Origin::default(),
            info_changed: false,
            published_state: None,
            new_activity: None,
            last_event: Instant::now(),
            last_event_at: Timestamp::now(),
            quiet_reported: false,
            cancel_deadline: None,
        }
    }

    async fn run(&mut self) {
        let mut events = Vec::new();
        loop {
            let timer = self.next_timer();
            tokio::select! {
                command = next_command(&mut self.deferred, &mut self.commands) => match command {
                    Some(Command::Stop { deleted, reply }) => {
                        self.stop(deleted).await;
                        if let Some(agent) = self.agent.take_if(|_| deleted) {
                            tokio::spawn(async move { agent.close().await });
                        }
                        let _ = reply.send(());
                        return;
                    }
                    Some(command) => self.command(command).await,
                    None => return self.stop(false).await,
                },
                count = self.from_agent.recv_many(&mut events, AGENT_EVENTS_PER_WAKE) => {
                    if count > 0 {
                        self.agent_events(&mut events).await;
                    }
                    if count == AGENT_EVENTS_PER_WAKE {
                        tokio::task::yield_now().await;
                    }
                }
                Some(output) = self.terminals.recv() => self.step(Input::Terminal(output)).await,
                Some(report) = self.from_tasks.recv() => self.task_report(report).await,
                () = due(timer) => self.timer().await,
            }
            self.commit().await;
            self.log.record.shorten().await;
            self.publish_info();
        }
    }

    fn agent_name(&self) -> String {
        match &self.setup.kind {
            Some(kind) => kind.name().to_owned(),
            None => self.setup.meta.cli_type.clone(),
        }
    }

    async fn task_report(&mut self, report: TaskReport) {
        match report {
            TaskReport::Input(input) => self.step(input).await,
            TaskReport::AttachFailed { attempt, error } if attempt == self.attempt => {
                self.attach_failed(error).await;
            }
            TaskReport::AttachFailed { .. } => {}
            TaskReport::GuardedWrite(write) => self.request_write_permission(write).await,
            TaskReport::ChoiceAnswered {
                connection,
                pending,
                answer,
            } => self.choice_answered(connection, pending, answer).await,
            TaskReport::Restored {
                session,
                answer,
                chosen,
            } => self.restored(session, answer, chosen).await,
        }
    }

    async fn command(&mut self, command: Command) {
        match command {
            Command::Subscribe { feed, how, reply } => {
                let opens = matches!(how, Subscribe::Open { .. });
                let subscribed = self.subscribe(feed, how).await;
                if opens && subscribed.is_ok() {
                    self.step(Input::ClientOpened).await;
                }
                let _ = reply.send(subscribed);
            }
            Command::Unsubscribe { connection } => {
                self.log.subscribers.remove(connection);
            }
            Command::Page {
                before,
                limit,
                reply,
            } => drop(reply.send(self.log.page(before, limit).await)),
            Command::Info { reply } => drop(reply.send(Ok(self.state.info()))),
            Command::Elicitations { reply } => drop(reply.send(Ok(self.state.open_elicitations()))),
            Command::Act {
                input,
                origin,
                reply,
            } => drop(reply.send(self.act(input, origin).await)),
            Command::Choose { choice, reply } => self.choose(PendingChoice { choice, reply }).await,
            Command::Titled { title, reply } => {
                let note = Note {
                    title: Some(title),
                    ..Note::default()
                };
                self.state.titled();
                let noted = self.log.record.save(note).await;
                let _ = reply.send(noted.map_err(|error| HubError::Write(Arc::new(error))));
            }
            Command::Archived(archived) => {
                let note = Note {
                    archived: Some(archived),
                    ..Note::default()
                };
                self.log.save(note).await;
            }
            Command::Stop { reply, .. } => drop(reply.send(())),
        }
    }

    async fn act(&mut self, input: Input, origin: Origin) -> Result<Done, HubError> {
        let before = self.state.clone();
        let effects = self
            .state
            .step(input, Now::read())
            .map_err(|Refused { code, message }| HubError::SessionRefused { code, message })?;
        let begins = effects.contains(&Effect::TurnBegins);
        self.origin = origin;
        match self.persist_first(effects).await {
            Ok(rest) => self.carry_out(rest).await,
            Err(error) => {
                self.state = before;
                self.log.drop_pending();
                self.origin = Origin::default();
                return Err(HubError::Write(Arc::new(error)));
            }
        }
        self.commit().await;
        self.origin = Origin::default();
        Ok(if begins { Done::Begun } else { Done::Noted })
    }

    async fn step(&mut self, input: Input) {
        // Only requests of clients can be refused; no client waits for the result of an input here.
        if let Ok(effects) = self.state.step(input, Now::read()) {
            self.carry_out(effects).await;
        }
    }

    async fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            if let Effect::Change(change) = effect {
                self.log.queue_change(change);
                continue;
            }
            // Earlier changes are written and published before other effects are carried out.
            if !matches!(effect, Effect::Info | Effect::Origin) {
                self.commit().await;
            }
            match effect {
                Effect::Change(_) => {}
                Effect::Amend { entry_id, update } => {
                    let held = self.log.amend(&entry_id, *update).await;
                    self.state.hold(held);
                }
                Effect::Origin => self.log.answers(self.origin.clone()),
                Effect::TurnBegins => self.log.turn_begins(),
                Effect::Complete(entry_id) => self.log.complete(entry_id),
                Effect::Cancelled(entry_id) => self.log.cancelled(entry_id),
                Effect::Fold => self.log.fold().await,
                Effect::Info => self.info_changed = true,
                Effect::Title(title) => self.title(title).await,
                Effect::Touch => {
                    self.new_activity = Some(Timestamp::now());
                    self.info_changed = true;
                }
                Effect::SaveQueue => self.log.save(self.queue_note()).await,
                Effect::SavePolicy => self.log.save(self.policy_note()).await,
                Effect::SaveChosen => self.log.save(self.chosen_note()).await,
                Effect::Attach => self.attach(),
                Effect::Prompt { turn, message } => {
                    self.last_event = Instant::now();
                    self.last_event_at = Timestamp::now();
                    self.quiet_reported = false;
                    let pictures = load_pictures(self.setup.uploads.clone(), message.images).await;
                    if let Some(agent) = &self.agent {
                        agent.prompt(turn, &message.content, pictures);
                    }
                }
                Effect::CancelPrompt => {
                    if let Some(agent) = &self.agent {
                        agent.cancel();
                    }
                    self.cancel_deadline = Some(Instant::now() + CANCEL_DEADLINE);
                }
                Effect::AnswerPermission {
                    permission_id,
                    option_id,
                    by_policy,
                } => {
                    self.send_permission_answer(&permission_id, option_id, by_policy);
                }
                Effect::AnswerElicitation {
                    question_id,
                    outcome,
                    answers,
                } => self.send_elicitation_answer(&question_id, outcome, answers.as_ref()),
                Effect::KillAgent => {
                    if let Some(kind) = self.setup.kind.clone() {
                        let session = &self.setup.meta.id;
                        tracing::warn!(
                            session,
                            "ending an agent process that was quiet for too long or ignored a cancel"
                        );
                        tokio::spawn(async move { kind.kill().await });
                    }
                }
            }
        }
    }

    /// Publishes changes beside the conversation to subscribers and to the session list.
    fn publish_info(&mut self) {
        if std::mem::take(&mut self.info_changed) {
            let info = Box::new(self.state.info());
            self.log.publish(SessionEvent::Info(info));
        }
        let state = self.state.list_state();
        let active = self.new_activity.take();
        if active.is_some() || self.published_state.unwrap_or(SessionState::Idle) != state {
            self.setup.index.note(&self.setup.meta, state, active);
        }
        self.published_state = Some(state);
    }

    async fn subscribe(&mut self, feed: Feed, how: Subscribe) -> Result<Shown, HubError> {
        let mut shown = Shown {
            resumed: false,
            seq: self.log.subscribers.seq(),
        };
        match how {
            Subscribe::Open {
                after,
                tail,
                origin,
            } => {
                let info = self.state.info();
                let open = self.log.open(&feed, after, tail, info, origin);
                shown = open.await?;
                self.log.subscribers.add(feed);
            }
            Subscribe::Follow if self.log.subscribers.has(feed.connection()) => {}
            Subscribe::Follow => self.log.subscribers.add(feed),
        }
        Ok(shown)
    }

    async fn title(&mut self, title: String) {
        let note = Note {
            title: Some(title.clone()),
            ..Note::default()
        };
        self.log.save(note).await;
        let index = self.setup.index.clone();
        index.note_title(&self.setup.meta, title);
        // In a separate task, so that the turn does not wait for the index.
        tokio::spawn(async move {
            if let Err(error) = index.catch_up().await {
                tracing::error!(%error, "could not write a title to the session index");
            }
        });
    }

    fn next_timer(&self) -> Option<Instant> {
        let working = self.state.phase() == Some(TurnPhase::Working);
        let waits_for_user = !self.permission_requests.is_empty() || !self.elicitations.is_empty();
        let expects_events = working && !self.quiet_reported && !waits_for_user;
        let quiet = expects_events.then(|| self.last_event + self.setup.quiet_after);
        let settled = self.settling.as_ref().map(Settling::due);
        let timers = [settled, quiet, self.cancel_deadline];
        timers.into_iter().flatten().min()
    }

    async fn timer(&mut self) {
        let now = Instant::now();
        if self
            .settling
            .as_ref()
            .is_some_and(|settling| settling.due() <= now)
        {
            self.settle().await;
        } else if self.cancel_deadline.is_some_and(|deadline| deadline <= now) {
            self.cancel_deadline = None;
            self.step(Input::CancelUnanswered).await;
        } else if now >= self.last_event + self.setup.quiet_after {
            self.quiet_reported = true;
            let since = self.last_event_at;
            self.step(Input::Quiet { since }).await;
        }
    }

    async fn stop(&mut self, deleted: bool) {
        self.step(Input::Stop { deleted }).await;
        self.commit().await;
        if let Some(host) = self.host.take() {
            host.close().await;
        }
        if !self.log.record.in_flight().is_empty() {
            self.log.fold().await;
        }
        self.publish_info();
    }
}

async fn next_command(
    deferred: &mut VecDeque<Command>,
    commands: &mut mpsc::Receiver<Command>,
) -> Option<Command> {
    match deferred.pop_front() {
        Some(command) => Some(command),
        None => commands.recv().await,
    }
}

async fn due(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
