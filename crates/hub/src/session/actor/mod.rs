//! The task of one session: everything that happens to it happens here, one thing after the other.
//!
//! What to do is decided in `state`; here it is done. The agent is never awaited: requests run in
//! tasks of their own and their answers come back through a queue. Text that is waiting is merged
//! before it gets a number, so a flood costs few writes and few messages, and nothing waits for a clock.

mod audience;
mod choosing;
mod command;
mod conversation;
mod guarded;
mod guest;
mod record;
mod refusal;
mod settling;

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

use self::audience::Audience;
use self::choosing::Wish;
use self::command::refuse;
pub(crate) use self::command::{Command, Subscribe};
pub use self::command::{Done, Page, Shown};
use self::conversation::Conversation;
use self::guarded::{Guarded, Waiting};
use self::guest::{Replay, pictures};
use self::record::Record;
use self::settling::Settling;
use super::feed::{Feed, SessionEvent};
use super::index::{Index, SessionMeta};
use super::state::{Choice, Effect, Input, Known, Now, Refused, State};
use super::title::UNTITLED;
use crate::error::HubError;
use crate::events::Origin;
use agents::{
    AgentError, AgentKind, AgentSession, Answer, Host, HostSetup, Routed, TerminalOutput,
};
use store::transcript::{Found, Header, Note, Transcript};
use store::{Audit, Uploads};

/// Requests that may wait for the task.
const COMMANDS_MAX: usize = 256;
/// What the agent may say ahead of the task.
pub(super) const FROM_AGENT_MAX: usize = 1024;
/// What is heard of it at once: other sessions have their turn in between.
const HEARD_AT_ONCE: usize = 64;
const OWN_MAX: usize = 64;
/// What commands may say ahead of the task; each may be long.
pub(super) const TERMINALS_MAX: usize = 4;
/// How long an agent may take to answer a cancel before it counts as crashed.
const CANCEL_DEADLINE: Duration = Duration::from_secs(10);
/// How far back request ids are read from the transcript.
const REQUEST_IDS: u64 = 200;

/// What a session is started with.
pub(crate) struct Setup {
    pub(crate) meta: Arc<SessionMeta>,
    pub(crate) path: PathBuf,
    pub(crate) boot_id: Arc<str>,
    /// Missing when the catalog no longer has it.
    pub(crate) kind: Option<AgentKind>,
    pub(crate) index: Arc<Index>,
    pub(crate) host: HostSetup,
    pub(crate) audit: Audit,
    pub(crate) uploads: Uploads,
    pub(crate) policy: PermissionPolicy,
    pub(crate) quiet_after: Duration,
    pub(crate) restarts_when_quiet: bool,
}

/// A session that its agent has just opened.
pub(crate) struct Fresh {
    pub(crate) transcript: Transcript,
    pub(crate) agent: AgentSession,
    pub(crate) answer: Value,
    pub(crate) inbox: mpsc::Sender<Routed>,
    pub(crate) from_agent: mpsc::Receiver<Routed>,
}

/// What the task's own helpers report.
enum Own {
    Input(Input),
    AttachFailed {
        attempt: u64,
        error: HubError,
    },
    /// The agent wants to write what a person has to agree to.
    Guarded(Guarded),
    /// What became of a wish, with the agent's answer.
    Chose {
        connection: u64,
        wish: Wish,
        answer: Result<Value, AgentError>,
    },
    /// The agent has the session open, and was told again what had been chosen in it.
    Restored {
        session: AgentSession,
        answer: Value,
        chosen: Vec<(Choice, Value)>,
    },
}

pub(crate) fn spawn(setup: Setup, fresh: Option<Fresh>) -> mpsc::Sender<Command> {
    let (commands, waiting) = mpsc::channel(COMMANDS_MAX);
    tokio::spawn(run(setup, fresh, waiting));
    commands
}

async fn run(setup: Setup, fresh: Option<Fresh>, mut commands: mpsc::Receiver<Command>) {
    let mut actor = match fresh {
        Some(fresh) => Actor::fresh(setup, fresh, commands),
        None => match read(setup.path.clone(), setup.meta.header()).await {
            Ok(read) => Actor::load(setup, read, commands).await,
            Err(reason) => {
                tracing::error!(reason, "a transcript could not be read");
                while let Some(command) = commands.recv().await {
                    refuse(command, &reason);
                }
                return;
            }
        },
    };
    actor.run().await;
}

type Read = (Transcript, Found, Vec<ChatEntry>);

/// Reads the transcript and its last entries. A transcript that was removed by hand begins again.
async fn read(path: PathBuf, header: Header) -> Result<Read, String> {
    let read = tokio::task::spawn_blocking(move || {
        let (transcript, found) = match Transcript::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                tracing::warn!(
                    session = header.session,
                    "its transcript is missing; a new one begins"
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
        Err(_) => Err("reading it failed".to_owned()),
    }
}

struct Actor {
    setup: Setup,
    commands: mpsc::Receiver<Command>,
    /// What could not be done while the disk refused, and is done afterwards.
    put_off: VecDeque<Command>,
    state: State,
    conversation: Conversation,
    agent: Option<AgentSession>,
    inbox: mpsc::Sender<Routed>,
    from_agent: mpsc::Receiver<Routed>,
    /// Counts attempts to open the session. What belongs to an earlier one changes nothing.
    attempt: u64,
    /// The connection of the attempt under way, once it is known, or of the open session. What belongs to another one
    /// changes nothing.
    link: Option<u64>,
    /// What the agent says while it says everything again.
    replay: Replay,
    /// The session was loaded, and more of its replay may follow.
    settling: Option<Settling>,
    /// The id of the agent's connection, while it is told again what had been chosen.
    restoring: Option<u64>,
    /// What is to be chosen once the agent has the session open.
    wishes: Vec<Wish>,
    questions: HashMap<String, (Waiting, String)>,
    next_question: u64,
    /// What is not about permission, each with the task that waits for the agent to change its mind.
    asked: HashMap<String, (Answer, AbortHandle)>,
    /// Opened when the agent first asks for something.
    host: Option<Host>,
    terminals: mpsc::Receiver<TerminalOutput>,
    own: mpsc::Sender<Own>,
    from_own: mpsc::Receiver<Own>,
    /// Whose request is being carried out.
    origin: Origin,
    info_changed: bool,
    shown: Option<SessionState>,
    active: Option<Timestamp>,
    last_heard: Instant,
    last_heard_at: Timestamp,
    quiet_told: bool,
    cancel_deadline: Option<Instant>,
}

impl Actor {
    fn fresh(setup: Setup, fresh: Fresh, commands: mpsc::Receiver<Command>) -> Self {
        let channel = (fresh.inbox, fresh.from_agent);
        let read = (fresh.transcript, Found::default(), vec![]);
        let mut actor = Self::new(setup, read, commands, channel);
        let takes_images = fresh.agent.takes_images();
        actor.link = Some(fresh.agent.connection_id());
        actor.agent = Some(fresh.agent);
        let answer = fresh.answer;
        let _ = actor.state.step(
            Input::Attached {
                answer,
                takes_images,
                chosen: vec![],
            },
            Now::read(),
        );
        actor
    }

    /// Goes on with what was read, and ends a turn that was cut short.
    async fn load(setup: Setup, mut read: Read, commands: mpsc::Receiver<Command>) -> Self {
        let (_, found, _) = &mut read;
        let interrupted = std::mem::take(&mut found.interrupted);
        let leftover = interrupted || !found.in_flight.is_empty();
        let mut actor = Self::new(setup, read, commands, mpsc::channel(FROM_AGENT_MAX));
        if interrupted {
            let total = actor.conversation.interrupt();
            actor.state.renumber(total);
            actor.state.interrupted();
            actor.tell();
        }
        if leftover {
            actor.conversation.close_questions();
            actor.conversation.fold().await;
        }
        actor
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
        let state = State::new(Known {
            total: record.total(),
            titled: setup.meta.title != UNTITLED,
            failed: failed.unwrap_or(false),
            policy: note.policy.unwrap_or(setup.policy),
            chosen: note.chosen.clone().unwrap_or_default(),
            accepted: accepted.collect(),
            queue,
            restarts_when_quiet: setup.restarts_when_quiet,
        });
        let (own, from_own) = mpsc::channel(OWN_MAX);
        let (output, terminals) = mpsc::channel(TERMINALS_MAX);
        setup.host.output = output;
        let audience = Audience::new(setup.meta.id.as_str().into(), setup.boot_id.clone());
        Self {
            setup,
            commands,
            put_off: VecDeque::new(),
            state,
            conversation: Conversation::new(record, audience),
            agent: None,
            inbox,
            from_agent,
            attempt: 0,
            link: None,
            replay: Replay::default(),
            settling: None,
            restoring: None,
            wishes: vec![],
            questions: HashMap::new(),
            next_question: 1,
            asked: HashMap::new(),
            host: None,
            terminals,
            own,
            from_own,
            origin: Origin::default(),
            info_changed: false,
            shown: None,
            active: None,
            last_heard: Instant::now(),
            last_heard_at: Timestamp::now(),
            quiet_told: false,
            cancel_deadline: None,
        }
    }

    async fn run(&mut self) {
        let mut said = Vec::new();
        loop {
            let timer = self.next_timer();
            tokio::select! {
                command = next_command(&mut self.put_off, &mut self.commands) => match command {
                    Some(Command::Stop { for_good, reply }) => {
                        self.stop(for_good).await;
                        if let Some(agent) = self.agent.take_if(|_| for_good) {
                            tokio::spawn(async move { agent.close().await });
                        }
                        let _ = reply.send(());
                        return;
                    }
                    Some(command) => self.command(command).await,
                    None => return self.stop(false).await,
                },
                count = self.from_agent.recv_many(&mut said, HEARD_AT_ONCE) => {
                    if count > 0 {
                        self.heard(&mut said).await;
                    }
                    if count == HEARD_AT_ONCE {
                        tokio::task::yield_now().await;
                    }
                }
                Some(output) = self.terminals.recv() => self.step(Input::Terminal(output)).await,
                Some(own) = self.from_own.recv() => self.own(own).await,
                () = due(timer) => self.timer().await,
            }
            self.commit().await;
            self.conversation.record.shorten().await;
            self.tell();
        }
    }

    fn agent_name(&self) -> String {
        match &self.setup.kind {
            Some(kind) => kind.name().to_owned(),
            None => self.setup.meta.cli_type.clone(),
        }
    }

    async fn own(&mut self, own: Own) {
        match own {
            Own::Input(input) => self.step(input).await,
            Own::AttachFailed { attempt, error } if attempt == self.attempt => {
                self.attach_failed(error).await;
            }
            Own::AttachFailed { .. } => {}
            Own::Guarded(wanted) => self.ask_to_write(wanted).await,
            Own::Chose {
                connection,
                wish,
                answer,
            } => self.chose(connection, wish, answer).await,
            Own::Restored {
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
                    self.step(Input::Watched).await;
                }
                let _ = reply.send(subscribed);
            }
            Command::Unsubscribe { connection } => {
                self.conversation.audience.leave(connection);
            }
            Command::Page {
                before,
                limit,
                reply,
            } => drop(reply.send(self.conversation.page(before, limit).await)),
            Command::Info { reply } => drop(reply.send(Ok(self.state.info()))),
            Command::Questions { reply } => drop(reply.send(Ok(self.state.questions()))),
            Command::Act {
                input,
                origin,
                reply,
            } => drop(reply.send(self.act(input, origin).await)),
            Command::Choose { choice, reply } => self.choose(Wish { choice, reply }).await,
            Command::Titled { title, reply } => {
                let note = Note {
                    title: Some(title),
                    ..Note::default()
                };
                self.state.titled();
                let noted = self.conversation.record.save(note).await;
                let _ = reply.send(noted.map_err(|error| HubError::Write(Arc::new(error))));
            }
            Command::Archived(archived) => {
                let note = Note {
                    archived: Some(archived),
                    ..Note::default()
                };
                self.conversation.save(note).await;
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
        match self.keep_first(effects).await {
            Ok(rest) => self.carry_out(rest).await,
            Err(error) => {
                self.state = before;
                self.conversation.drop_pending();
                self.origin = Origin::default();
                return Err(HubError::Write(Arc::new(error)));
            }
        }
        self.commit().await;
        self.origin = Origin::default();
        Ok(if begins { Done::Begun } else { Done::Noted })
    }

    async fn step(&mut self, input: Input) {
        // Only what people ask can be refused.
        if let Ok(effects) = self.state.step(input, Now::read()) {
            self.carry_out(effects).await;
        }
    }

    async fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            if let Effect::Change(change) = effect {
                self.conversation.pend(change);
                continue;
            }
            // What was decided before is shown before.
            if !matches!(effect, Effect::Info | Effect::Origin) {
                self.commit().await;
            }
            match effect {
                Effect::Change(_) => {}
                Effect::Amend { entry_id, update } => {
                    let held = self.conversation.amend(&entry_id, *update).await;
                    self.state.hold(held);
                }
                Effect::Origin => self.conversation.answers(self.origin.clone()),
                Effect::TurnBegins => self.conversation.turn_begins(),
                Effect::Complete(entry_id) => self.conversation.complete(entry_id),
                Effect::Cancelled(entry_id) => self.conversation.cancelled(entry_id),
                Effect::Fold => self.conversation.fold().await,
                Effect::Info => self.info_changed = true,
                Effect::Title(title) => self.title(title).await,
                Effect::Touch => {
                    self.active = Some(Timestamp::now());
                    self.info_changed = true;
                }
                Effect::SaveQueue => self.conversation.save(self.queue_note()).await,
                Effect::SavePolicy => self.conversation.save(self.policy_note()).await,
                Effect::SaveChosen => self.conversation.save(self.chosen_note()).await,
                Effect::Attach => self.attach(),
                Effect::Prompt { turn, message } => {
                    self.last_heard = Instant::now();
                    self.last_heard_at = Timestamp::now();
                    self.quiet_told = false;
                    let pictures = pictures(self.setup.uploads.clone(), message.images).await;
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
                    self.answer_permission(&permission_id, option_id, by_policy);
                }
                Effect::AnswerQuestion {
                    question_id,
                    outcome,
                    answers,
                } => self.answer_question(&question_id, outcome, answers.as_ref()),
                Effect::RestartAgent => {
                    if let Some(kind) = self.setup.kind.clone() {
                        let session = &self.setup.meta.id;
                        tracing::warn!(
                            session,
                            "an agent went on and on, or would not stop, and is ended"
                        );
                        tokio::spawn(async move { kind.kill().await });
                    }
                }
            }
        }
    }

    /// Tells those who watch, and those who list, what has changed beside the conversation.
    fn tell(&mut self) {
        if std::mem::take(&mut self.info_changed) {
            let info = Box::new(self.state.info());
            self.conversation.show(SessionEvent::Info(info));
        }
        let state = self.state.shown();
        let active = self.active.take();
        if active.is_some() || self.shown.unwrap_or(SessionState::Idle) != state {
            self.setup.index.note(&self.setup.meta, state, active);
        }
        self.shown = Some(state);
    }

    async fn subscribe(&mut self, feed: Feed, how: Subscribe) -> Result<Shown, HubError> {
        let mut shown = Shown {
            resumed: false,
            seq: self.conversation.audience.seq(),
        };
        match how {
            Subscribe::Open {
                after,
                tail,
                origin,
            } => {
                let info = self.state.info();
                let open = self.conversation.open(&feed, after, tail, info, origin);
                shown = open.await?;
                self.conversation.audience.join(feed);
            }
            Subscribe::Follow if self.conversation.audience.has(feed.connection()) => {}
            Subscribe::Follow => self.conversation.audience.join(feed),
        }
        Ok(shown)
    }

    async fn title(&mut self, title: String) {
        let note = Note {
            title: Some(title.clone()),
            ..Note::default()
        };
        self.conversation.save(note).await;
        let index = self.setup.index.clone();
        index.note_title(&self.setup.meta, title);
        // The index has a queue of its own; the turn does not wait for it.
        tokio::spawn(async move {
            if let Err(error) = index.catch_up().await {
                tracing::error!(%error, "could not save a title");
            }
        });
    }

    fn next_timer(&self) -> Option<Instant> {
        let working = self.state.phase() == Some(TurnPhase::Working);
        let asked = !self.questions.is_empty() || !self.asked.is_empty();
        let listening = working && !self.quiet_told && !asked;
        let quiet = listening.then(|| self.last_heard + self.setup.quiet_after);
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
        } else if now >= self.last_heard + self.setup.quiet_after {
            self.quiet_told = true;
            let since = self.last_heard_at;
            self.step(Input::Quiet { since }).await;
        }
    }

    async fn stop(&mut self, for_good: bool) {
        self.step(Input::Stop { for_good }).await;
        self.commit().await;
        if let Some(host) = self.host.take() {
            host.close().await;
        }
        if !self.conversation.record.in_flight().is_empty() {
            self.conversation.fold().await;
        }
        self.tell();
    }
}

async fn next_command(
    put_off: &mut VecDeque<Command>,
    commands: &mut mpsc::Receiver<Command>,
) -> Option<Command> {
    match put_off.pop_front() {
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
