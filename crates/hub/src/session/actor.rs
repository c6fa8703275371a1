//! The task of one session: it alone numbers, writes and shows, in that order.
//!
//! What to do is decided in `state`; here it is done. The agent is never awaited: requests run in
//! tasks of their own and their answers come back through a queue. Text that is waiting is merged
//! before it gets a number, so a flood costs few writes and few messages, and nothing waits for a clock.
//!
//! Invariant: whoever watches has been shown nothing that is not written down.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use wire::{
    ChatEntry, PermissionPolicy, Position, SessionState, TurnEntry, TurnOutcome, TurnPhase,
};

use super::feed::{Feed, SessionEvent};
use super::index::{Index, SessionMeta};
use super::reconcile::{Reconciled, reconcile};
use super::state::{Effect, Input, Known, Refused, State, stamp};
use super::title::UNTITLED;
use crate::agents::entries::{Entries, EntryChange, entry_number, extend};
use crate::agents::from_acp::{self, Update};
use crate::agents::{
    AgentKind, AgentSession, Answer, Attach, AuditWhat, DecidedBy, FromAgent, Host, HostSetup,
    Picture, TerminalOutput,
};
use crate::error::HubError;
use crate::events::Origin;
use crate::store::Uploads;
use crate::store::transcript::{Found, Note, Transcript};

/// Requests that may wait for the task.
const COMMANDS_MAX: usize = 256;
/// What the agent may say ahead of the task.
pub(super) const FROM_AGENT_MAX: usize = 1024;
const OWN_MAX: usize = 64;
/// What commands may say ahead of the task.
pub(super) const TERMINALS_MAX: usize = 64;
/// Events kept for those who come back.
const RECENT_BYTES_MAX: usize = 128 * 1024;
/// How long an agent may take to answer a cancel before it counts as crashed.
const CANCEL_DEADLINE: Duration = Duration::from_secs(10);
const WRITE_AGAIN: Duration = Duration::from_secs(1);
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
    pub(crate) inbox: mpsc::Sender<FromAgent>,
    pub(crate) from_agent: mpsc::Receiver<FromAgent>,
}

/// What a door wants of a session.
pub(crate) enum Command {
    Subscribe {
        feed: Feed,
        how: Subscribe,
        reply: oneshot::Sender<Result<(), HubError>>,
    },
    Unsubscribe {
        connection: u64,
    },
    Page {
        before: u64,
        limit: u32,
        reply: oneshot::Sender<Result<Page, HubError>>,
    },
    Act {
        input: Input,
        origin: Origin,
        reply: oneshot::Sender<Result<Done, HubError>>,
    },
    SetMode {
        mode_id: String,
        reply: oneshot::Sender<Result<Done, HubError>>,
    },
    SetOption {
        option_id: String,
        value: Value,
        reply: oneshot::Sender<Result<Done, HubError>>,
    },
    /// The person chose a title.
    Titled {
        title: String,
        reply: oneshot::Sender<Result<(), HubError>>,
    },
    Archived(bool),
    Stop {
        /// The session is deleted: the agent may forget it, too.
        for_good: bool,
        reply: oneshot::Sender<()>,
    },
}

#[derive(Debug)]
pub(crate) enum Subscribe {
    /// With everything so far, or what is new since then, first.
    Open {
        after: Option<Position>,
        tail: Option<u32>,
        origin: Origin,
    },
    /// From now on, for one who knows what there is.
    Follow,
}

/// Older entries.
#[derive(Debug)]
pub struct Page {
    pub entries: Vec<ChatEntry>,
    pub first: u64,
    pub total: u64,
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done {
    /// A turn has begun; the sender's entry is the answer.
    Begun,
    /// It waits its turn, was accepted before, or there is nothing more to say.
    Noted,
}

/// What the task's own helpers report.
enum Own {
    Input(Input),
    Acted {
        input: Result<Input, HubError>,
        reply: oneshot::Sender<Result<Done, HubError>>,
    },
}

pub(crate) fn spawn(setup: Setup, fresh: Option<Fresh>) -> mpsc::Sender<Command> {
    let (commands, waiting) = mpsc::channel(COMMANDS_MAX);
    tokio::spawn(run(setup, fresh, waiting));
    commands
}

async fn run(setup: Setup, fresh: Option<Fresh>, mut commands: mpsc::Receiver<Command>) {
    let begun = match fresh {
        Some(fresh) => Ok(Actor::fresh(setup, fresh)),
        None => Actor::load(setup).await,
    };
    match begun {
        Ok(mut actor) => actor.run(&mut commands).await,
        Err(reason) => {
            tracing::error!(reason, "a transcript could not be read");
            while let Some(command) = commands.recv().await {
                refuse(command, &reason);
            }
        }
    }
}

/// Says the same to everybody.
fn refuse(command: Command, reason: &str) {
    let error = || HubError::SessionUnreadable(reason.to_owned());
    match command {
        Command::Subscribe { reply, .. } => drop(reply.send(Err(error()))),
        Command::Page { reply, .. } => drop(reply.send(Err(error()))),
        Command::Act { reply, .. }
        | Command::SetMode { reply, .. }
        | Command::SetOption { reply, .. } => drop(reply.send(Err(error()))),
        Command::Titled { reply, .. } => drop(reply.send(Err(error()))),
        Command::Stop { reply, .. } => drop(reply.send(())),
        Command::Unsubscribe { .. } | Command::Archived(_) => {}
    }
}

struct Actor {
    setup: Setup,
    session_id: Arc<str>,
    state: State,
    /// Away only while a blocking task has it.
    transcript: Option<Transcript>,
    /// Entries that are not in the transcript yet, or not as they are now.
    in_flight: BTreeMap<u64, ChatEntry>,
    pending: Vec<EntryChange>,
    /// Whether a turn begins with what is pending.
    turn_begins: bool,
    seq: u64,
    recent: VecDeque<Arc<SessionEvent>>,
    recent_bytes: usize,
    feeds: Vec<Feed>,
    agent: Option<AgentSession>,
    inbox: mpsc::Sender<FromAgent>,
    from_agent: mpsc::Receiver<FromAgent>,
    /// What the agent says while it says everything again.
    replay: Replay,
    questions: HashMap<String, (Answer, String)>,
    next_question: u64,
    /// Opened when the agent first asks for something.
    host: Option<Host>,
    terminals: mpsc::Receiver<TerminalOutput>,
    own: mpsc::Sender<Own>,
    from_own: mpsc::Receiver<Own>,
    /// All that was ever noted about the session.
    note: Note,
    origin: Origin,
    /// The next user's entry answers this request.
    answers: Option<Origin>,
    info_changed: bool,
    shown: Option<SessionState>,
    active: Option<Timestamp>,
    last_heard: Instant,
    last_heard_at: Timestamp,
    quiet_told: bool,
    cancel_deadline: Option<Instant>,
}

struct Replay {
    fold: Entries,
    entries: BTreeMap<u64, ChatEntry>,
}

impl Default for Replay {
    fn default() -> Self {
        Self {
            fold: Entries::after(0),
            entries: BTreeMap::new(),
        }
    }
}

impl Actor {
    fn fresh(setup: Setup, fresh: Fresh) -> Self {
        let channel = (fresh.inbox, fresh.from_agent);
        let mut actor = Self::new(setup, fresh.transcript, Found::default(), vec![], channel);
        let takes_images = fresh.agent.takes_images();
        actor.agent = Some(fresh.agent);
        let answer = fresh.answer;
        let _ = actor.state.step(
            Input::Attached {
                answer,
                takes_images,
            },
            Timestamp::now(),
        );
        actor
    }

    /// Reads the transcript, and ends a turn that was cut short.
    async fn load(setup: Setup) -> Result<Self, String> {
        let path = setup.path.clone();
        let read = tokio::task::spawn_blocking(move || {
            let (transcript, found) = Transcript::open(&path)?;
            let total = transcript.total();
            let mut tail = transcript.read(total.saturating_sub(REQUEST_IDS), total)?;
            tail.extend(found.in_flight.values().cloned());
            std::io::Result::Ok((transcript, found, tail))
        });
        let (transcript, mut found, tail) = match read.await {
            Ok(read) => read.map_err(|error| error.to_string())?,
            Err(_) => return Err("reading it failed".to_owned()),
        };
        let interrupted = std::mem::take(&mut found.interrupted);
        let leftover = !found.in_flight.is_empty();
        let channel = mpsc::channel(FROM_AGENT_MAX);
        let mut actor = Self::new(setup, transcript, found, tail, channel);
        if interrupted {
            actor.interrupt();
        }
        if leftover {
            actor.fold().await;
        }
        Ok(actor)
    }

    fn new(
        mut setup: Setup,
        transcript: Transcript,
        found: Found,
        tail: Vec<ChatEntry>,
        (inbox, from_agent): (mpsc::Sender<FromAgent>, mpsc::Receiver<FromAgent>),
    ) -> Self {
        let (in_flight, note) = (found.in_flight, found.note);
        let last_in_flight = in_flight.last_key_value().map_or(0, |(number, _)| *number);
        let accepted = tail.iter().filter_map(|entry| match entry {
            ChatEntry::User { request_id, .. } => request_id.clone(),
            _ => None,
        });
        let queue = note.queue.clone().unwrap_or_default();
        let waiting = queue.iter().filter_map(|queued| queued.request_id.clone());
        let failed = tail.iter().rev().find_map(|entry| match entry {
            ChatEntry::Turn(turn) => Some(turn.outcome.is_failure()),
            _ => None,
        });
        let state = State::new(Known {
            total: transcript.total().max(last_in_flight),
            titled: setup.meta.title != UNTITLED,
            failed: failed.unwrap_or(false),
            policy: note.policy.unwrap_or(setup.policy),
            accepted: accepted.chain(waiting).collect(),
            queue,
            restarts_when_quiet: setup.restarts_when_quiet,
        });
        let (own, from_own) = mpsc::channel(OWN_MAX);
        let (output, terminals) = mpsc::channel(TERMINALS_MAX);
        setup.host.output = output;
        Self {
            session_id: setup.meta.id.as_str().into(),
            setup,
            state,
            transcript: Some(transcript),
            in_flight,
            pending: vec![],
            turn_begins: false,
            seq: 0,
            recent: VecDeque::new(),
            recent_bytes: 0,
            feeds: vec![],
            agent: None,
            inbox,
            from_agent,
            replay: Replay::default(),
            questions: HashMap::new(),
            next_question: 1,
            host: None,
            terminals,
            own,
            from_own,
            note,
            origin: Origin::default(),
            answers: None,
            info_changed: false,
            shown: None,
            active: None,
            last_heard: Instant::now(),
            last_heard_at: Timestamp::now(),
            quiet_told: false,
            cancel_deadline: None,
        }
    }

    /// The server died in the middle of a turn. Said once: afterwards the turn has an end.
    fn interrupt(&mut self) {
        let number = self.total() + 1;
        let entry = ChatEntry::Turn(TurnEntry {
            entry_id: format!("e{number}"),
            outcome: TurnOutcome::Interrupted,
            message: Some("Liminal Builder ended before the turn did".to_owned()),
            duration_ms: None,
            tokens: None,
            timestamp: stamp(Timestamp::now()),
        });
        for entry in self.in_flight.values_mut() {
            if let ChatEntry::ToolCall(call) = entry
                && call.status == wire::ToolStatus::Running
            {
                call.status = wire::ToolStatus::Error;
                call.error = Some("Stopped before it ended".to_owned());
            }
        }
        self.in_flight.insert(number, entry);
        let total = self.total();
        self.state.renumber(total);
        self.state.interrupted();
        self.tell();
    }

    async fn run(&mut self, commands: &mut mpsc::Receiver<Command>) {
        let mut said = Vec::new();
        loop {
            let timer = self.next_timer();
            tokio::select! {
                command = commands.recv() => match command {
                    Some(Command::Stop { for_good, reply }) => {
                        self.stop().await;
                        if let Some(agent) = self.agent.take_if(|_| for_good) {
                            tokio::spawn(async move { agent.close().await });
                        }
                        let _ = reply.send(());
                        return;
                    }
                    Some(command) => self.command(command).await,
                    None => return self.stop().await,
                },
                count = self.from_agent.recv_many(&mut said, FROM_AGENT_MAX) => {
                    if count > 0 {
                        self.heard(&mut said).await;
                    }
                }
                Some(output) = self.terminals.recv() => self.step(Input::Terminal(output)).await,
                Some(own) = self.from_own.recv() => self.own(own).await,
                () = due(timer) => self.timer().await,
            }
            self.commit().await;
            self.tell();
        }
    }

    async fn heard(&mut self, said: &mut Vec<FromAgent>) {
        self.last_heard = Instant::now();
        self.last_heard_at = Timestamp::now();
        self.quiet_told = false;
        // Text that may still grow.
        let mut text: Option<Update> = None;
        for said in said.drain(..) {
            let said = match said {
                FromAgent::Update(update) => {
                    let rest = match &mut text {
                        Some(grown) => grown.merge(update),
                        None => Some(update),
                    };
                    if let Some(update) = rest
                        && let Some(whole) = text.replace(update)
                    {
                        self.update(whole).await;
                    }
                    continue;
                }
                said => said,
            };
            if let Some(whole) = text.take() {
                self.update(whole).await;
            }
            self.agent_said(said).await;
        }
        if let Some(whole) = text {
            self.update(whole).await;
        }
    }

    async fn update(&mut self, update: Update) {
        if self.state.is_attaching() && !matches!(update, Update::Session(_)) {
            let now = stamp(self.last_heard_at);
            for change in self.replay.fold.apply(update, &now) {
                keep(&mut self.replay.entries, &change);
            }
            return;
        }
        self.step(Input::Update(update)).await;
    }

    async fn agent_said(&mut self, said: FromAgent) {
        match said {
            FromAgent::Update(update) => self.update(update).await,
            FromAgent::Attached {
                session,
                how,
                result,
            } => {
                let replay = std::mem::take(&mut self.replay);
                match result {
                    Ok(answer) => {
                        if how == Attach::Load {
                            self.adopt(replay.entries.into_values().collect()).await;
                        }
                        let takes_images = session.takes_images();
                        self.agent = Some(session);
                        self.step(Input::Attached {
                            answer,
                            takes_images,
                        })
                        .await;
                    }
                    Err(error) => {
                        let message = error.to_string();
                        self.step(Input::AttachFailed { message }).await;
                    }
                }
            }
            FromAgent::Answered { turn, result } => {
                self.cancel_deadline = None;
                let lost = matches!(result, Err(crate::agents::AgentError::Lost { .. }));
                // What ended it is told by the end of the process, which follows.
                if !lost {
                    let result = result.map_err(|error| error.to_string());
                    self.step(Input::Answered { turn, result }).await;
                }
            }
            FromAgent::Request {
                method,
                params,
                answer,
            } => self.request(&method, params, answer).await,
            FromAgent::Lost { reason } => {
                self.agent = None;
                self.cancel_deadline = None;
                self.replay = Replay::default();
                let name = self.agent_name();
                let reason = match reason.is_empty() {
                    true => format!("Connection to {name} lost."),
                    false => format!("Connection to {name} lost ({reason})."),
                };
                self.step(Input::AgentLost { reason }).await;
            }
        }
    }

    fn agent_name(&self) -> String {
        match &self.setup.kind {
            Some(kind) => kind.name().to_owned(),
            None => self.setup.meta.cli_type.clone(),
        }
    }

    async fn request(&mut self, method: &str, params: Value, answer: Answer) {
        match method {
            "session/request_permission" => match from_acp::permission(&params) {
                Some((patch, options)) => {
                    let permission_id = format!("p{}", self.next_question);
                    self.next_question += 1;
                    let title = patch.title.clone().unwrap_or_default();
                    self.questions
                        .insert(permission_id.clone(), (answer, title));
                    self.step(Input::PermissionAsked {
                        permission_id,
                        patch: Box::new(patch),
                        options,
                    })
                    .await;
                }
                None => answer.refuse(-32602, "not a permission request"),
            },
            _ => self.serve(method.to_owned(), params, answer),
        }
    }

    /// Files and commands, in a task of their own: a command may take an hour.
    fn serve(&mut self, method: String, params: Value, answer: Answer) {
        let host = match &self.host {
            Some(host) => Ok(host.clone()),
            None => Host::open(self.setup.host.clone()),
        };
        match host {
            Ok(host) => {
                self.host = Some(host.clone());
                tokio::spawn(async move {
                    match host.serve(&method, params).await {
                        Ok(result) => answer.succeed(result),
                        Err(refusal) => answer.refuse(refusal.code, &refusal.message),
                    }
                });
            }
            Err(error) => {
                answer.refuse(
                    -32603,
                    &format!("the project's folder cannot be used: {error}"),
                );
            }
        }
    }

    async fn own(&mut self, own: Own) {
        match own {
            Own::Input(input) => self.step(input).await,
            Own::Acted { input, reply } => match input {
                Ok(input) => {
                    self.step(input).await;
                    let _ = reply.send(Ok(Done::Noted));
                }
                Err(error) => drop(reply.send(Err(error))),
            },
        }
    }

    async fn command(&mut self, command: Command) {
        match command {
            Command::Subscribe { feed, how, reply } => {
                let subscribed = self.subscribe(feed, how).await;
                let _ = reply.send(subscribed);
            }
            Command::Unsubscribe { connection } => {
                self.feeds.retain(|feed| feed.connection() != connection);
            }
            Command::Page {
                before,
                limit,
                reply,
            } => drop(reply.send(self.page(before, limit).await)),
            Command::Act {
                input,
                origin,
                reply,
            } => drop(reply.send(self.act(input, origin).await)),
            Command::SetMode { mode_id, reply } => {
                self.ask_agent(reply, async move |agent| {
                    agent.set_mode(&mode_id).await?;
                    Ok(Input::ModeSet(mode_id))
                });
            }
            Command::SetOption {
                option_id,
                value,
                reply,
            } => self.ask_agent(reply, async move |agent| {
                let answer = agent.set_option(&option_id, value).await?;
                Ok(Input::OptionsSet(answer))
            }),
            Command::Titled { title, reply } => {
                let note = Note {
                    title: Some(title),
                    ..Note::default()
                };
                self.state.titled();
                self.note.update(note.clone());
                let noted = self.on_disk(|transcript| transcript.note(note)).await;
                let _ = reply.send(noted.map_err(|error| HubError::Write(Arc::new(error))));
            }
            Command::Archived(archived) => {
                let note = Note {
                    archived: Some(archived),
                    ..Note::default()
                };
                self.save(note).await;
            }
            Command::Stop { reply, .. } => drop(reply.send(())),
        }
    }

    fn ask_agent<F>(
        &self,
        reply: oneshot::Sender<Result<Done, HubError>>,
        ask: impl FnOnce(AgentSession) -> F + Send + 'static,
    ) where
        F: Future<Output = Result<Input, crate::agents::AgentError>> + Send,
    {
        let Some(agent) = self.agent.clone() else {
            let message = format!("{} does not have this session open yet.", self.agent_name());
            let code = wire::ErrorCode::AgentUnavailable;
            let _ = reply.send(Err(HubError::SessionRefused { code, message }));
            return;
        };
        let own = self.own.clone();
        tokio::spawn(async move {
            let input = ask(agent).await.map_err(HubError::Agent);
            let _ = own.send(Own::Acted { input, reply }).await;
        });
    }

    async fn act(&mut self, input: Input, origin: Origin) -> Result<Done, HubError> {
        let effects = self
            .state
            .step(input, Timestamp::now())
            .map_err(|Refused { code, message }| HubError::SessionRefused { code, message })?;
        let begins = effects.contains(&Effect::TurnBegins);
        self.origin = origin;
        self.carry_out(effects).await;
        self.commit().await;
        self.origin = Origin::default();
        Ok(if begins { Done::Begun } else { Done::Noted })
    }

    async fn step(&mut self, input: Input) {
        // Only what people ask can be refused.
        if let Ok(effects) = self.state.step(input, Timestamp::now()) {
            self.carry_out(effects).await;
        }
    }

    async fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            if let Effect::Change(change) = effect {
                self.pend(change);
                continue;
            }
            // What was decided before is shown before.
            if !matches!(effect, Effect::Info | Effect::Origin) {
                self.commit().await;
            }
            match effect {
                Effect::Change(_) => {}
                Effect::Origin => self.answers = Some(self.origin.clone()),
                Effect::TurnBegins => self.turn_begins = true,
                Effect::Complete(entry_id) => {
                    let seq = self.next_seq();
                    self.show(SessionEvent::Complete { seq, entry_id });
                }
                Effect::Cancelled(entry_id) => {
                    let seq = self.next_seq();
                    self.show(SessionEvent::Cancelled { seq, entry_id });
                }
                Effect::Fold => self.fold().await,
                Effect::Info => self.info_changed = true,
                Effect::Title(title) => self.title(title).await,
                Effect::Touch => {
                    self.active = Some(Timestamp::now());
                    self.info_changed = true;
                }
                Effect::SaveQueue => {
                    let queue = Some(self.state.queue());
                    let note = Note {
                        queue,
                        ..Note::default()
                    };
                    self.save(note).await;
                }
                Effect::SavePolicy => {
                    let policy = Some(self.state.policy());
                    let note = Note {
                        policy,
                        ..Note::default()
                    };
                    self.save(note).await;
                }
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
                    if let Some((answer, question)) = self.questions.remove(&permission_id) {
                        let by = match (by_policy, &option_id) {
                            (true, _) => DecidedBy::Policy,
                            (false, Some(_)) => DecidedBy::Person,
                            (false, None) => DecidedBy::Cancel,
                        };
                        let what = AuditWhat::Permission {
                            question,
                            chosen: option_id.clone(),
                            by,
                        };
                        self.setup.host.audit.record(&self.session_id, what);
                        answer.succeed(match option_id {
                            Some(id) => {
                                json!({"outcome": {"outcome": "selected", "optionId": id}})
                            }
                            None => json!({"outcome": {"outcome": "cancelled"}}),
                        });
                    }
                }
                Effect::RestartAgent => {
                    if let Some(kind) = self.setup.kind.clone() {
                        tokio::spawn(async move { kind.kill().await });
                    }
                }
            }
        }
    }

    /// Merges with what is waiting to be shown, if it is more of the same text.
    fn pend(&mut self, change: EntryChange) {
        if let (
            Some(EntryChange::Append { entry_id, text }),
            EntryChange::Append {
                entry_id: next,
                text: more,
            },
        ) = (self.pending.last_mut(), &change)
            && entry_id == next
        {
            text.push_str(more);
            return;
        }
        self.pending.push(change);
    }

    /// Writes what is pending, then shows it.
    async fn commit(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let turn = self.turn_begins.then_some(true);
        let mut told = false;
        loop {
            let written = match &mut self.transcript {
                Some(transcript) => transcript.write_live(&self.pending, turn),
                None => return,
            };
            let Err(error) = written else { break };
            tracing::error!(%error, session = &*self.session_id, "could not write what was said");
            if !std::mem::replace(&mut told, true) {
                self.show(SessionEvent::StoreTrouble(format!(
                    "What is said cannot be saved, so it is held back until it can: {error}"
                )));
            }
            tokio::time::sleep(WRITE_AGAIN).await;
        }
        if std::mem::take(&mut self.turn_begins) {
            // What a person has sent survives more than the end of this process.
            if let Err(error) = self.on_disk(|transcript| transcript.sync_live()).await {
                tracing::error!(%error, "could not sync");
            }
        }
        for change in std::mem::take(&mut self.pending) {
            keep(&mut self.in_flight, &change);
            self.show_change(change);
        }
    }

    fn show_change(&mut self, change: EntryChange) {
        let event = match change {
            EntryChange::Begin(entry) | EntryChange::Replace(entry) => {
                let is_users = matches!(entry, ChatEntry::User { .. });
                let origin = self.answers.take_if(|_| is_users).unwrap_or_default();
                SessionEvent::Update {
                    seq: self.next_seq(),
                    entry,
                    origin,
                }
            }
            EntryChange::Append { entry_id, text } => SessionEvent::Chunk {
                seq: self.next_seq(),
                entry_id,
                content: text,
                terminal_id: None,
            },
            EntryChange::AppendTerminal {
                entry_id,
                terminal_id,
                text,
            } => SessionEvent::Chunk {
                seq: self.next_seq(),
                entry_id,
                content: text,
                terminal_id: Some(terminal_id),
            },
            EntryChange::Finish { .. } => return,
        };
        self.show(event);
    }

    fn next_seq(&mut self) -> u64 {
        self.seq += 1;
        self.seq
    }

    fn show(&mut self, event: SessionEvent) {
        let event = Arc::new(event);
        if event.seq().is_some() {
            self.recent_bytes += event.bytes();
            self.recent.push_back(event.clone());
            while self.recent_bytes > RECENT_BYTES_MAX {
                match self.recent.pop_front() {
                    Some(old) => self.recent_bytes -= old.bytes(),
                    None => break,
                }
            }
        }
        let id = &self.session_id;
        self.feeds.retain(|feed| feed.push(id, &event));
    }

    /// Tells those who watch, and those who list, what has changed beside the conversation.
    fn tell(&mut self) {
        if std::mem::take(&mut self.info_changed) {
            let info = Box::new(self.state.info());
            self.show(SessionEvent::Info(info));
        }
        let state = self.state.shown();
        let active = self.active.take();
        if active.is_some() || self.shown.unwrap_or(SessionState::Idle) != state {
            self.setup.index.note(&self.setup.meta, state, active);
        }
        self.shown = Some(state);
    }

    async fn subscribe(&mut self, feed: Feed, how: Subscribe) -> Result<(), HubError> {
        let connection = feed.connection();
        if let Subscribe::Open {
            after,
            tail,
            origin,
        } = how
        {
            self.open(&feed, after, tail, origin).await?;
            self.feeds.retain(|feed| feed.connection() != connection);
            self.feeds.push(feed);
            self.step(Input::Watched).await;
        } else if self
            .feeds
            .iter()
            .all(|feed| feed.connection() != connection)
        {
            self.feeds.push(feed);
        }
        Ok(())
    }

    async fn open(
        &mut self,
        feed: &Feed,
        after: Option<Position>,
        tail: Option<u32>,
        origin: Origin,
    ) -> Result<(), HubError> {
        let info = Box::new(self.state.info());
        if let Some(after) = after
            && let Some(missed) = self.since(&after)
        {
            let resumed = SessionEvent::Resumed {
                seq: after.seq,
                texts: self.texts_before(&missed),
                info,
                origin,
            };
            feed.push(&self.session_id, &Arc::new(resumed));
            for event in missed {
                feed.push(&self.session_id, &event);
            }
            return Ok(());
        }
        let total = self.total();
        let first = tail.map_or(0, |tail| total.saturating_sub(u64::from(tail)));
        let entries = self.entries(first, total).await?;
        let history = SessionEvent::History {
            entries,
            first,
            total,
            seq: self.seq,
            info,
            origin,
        };
        feed.push(&self.session_id, &Arc::new(history));
        Ok(())
    }

    /// What one who knows everything up to there has missed, if we still have it.
    fn since(&self, after: &Position) -> Option<Vec<Arc<SessionEvent>>> {
        if after.boot_id != *self.setup.boot_id || after.seq > self.seq {
            return None;
        }
        let missed: Vec<_> = self
            .recent
            .iter()
            .filter(|event| event.seq().is_some_and(|seq| seq > after.seq))
            .cloned()
            .collect();
        (missed.len() as u64 == self.seq - after.seq).then_some(missed)
    }

    /// The texts of entries in flight as they were before these events.
    fn texts_before(&self, missed: &[Arc<SessionEvent>]) -> Vec<(String, String)> {
        let mut texts: Vec<(String, String)> = vec![];
        for entry in self.in_flight.values() {
            let (ChatEntry::Assistant { content, .. } | ChatEntry::Thinking { content, .. }) =
                entry
            else {
                continue;
            };
            let mut later = 0;
            let mut begun = false;
            for event in missed {
                match &**event {
                    SessionEvent::Update { entry: began, .. } => {
                        begun |= began.entry_id() == entry.entry_id();
                    }
                    SessionEvent::Chunk {
                        entry_id, content, ..
                    } if entry_id == entry.entry_id() => later += content.len(),
                    _ => {}
                }
            }
            if !begun {
                let before = content.len() - later;
                texts.push((entry.entry_id().to_owned(), content[..before].to_owned()));
            }
        }
        texts
    }

    async fn page(&mut self, before: u64, limit: u32) -> Result<Page, HubError> {
        let total = self.total();
        let before = before.min(total);
        let first = before.saturating_sub(u64::from(limit));
        let entries = self.entries(first, before).await?;
        Ok(Page {
            entries,
            first,
            total,
        })
    }

    fn total(&self) -> u64 {
        let written = self.transcript.as_ref().map_or(0, Transcript::total);
        let last = self.in_flight.last_key_value();
        written.max(last.map_or(0, |(number, _)| *number))
    }

    /// Entries `from..to`, counted from 0, as they are now.
    async fn entries(&mut self, from: u64, to: u64) -> Result<Vec<ChatEntry>, HubError> {
        let written = self.transcript.as_ref().map_or(0, Transcript::total);
        let read = match from < written {
            true => {
                self.on_disk(move |transcript| transcript.read(from, to))
                    .await
            }
            false => Ok(vec![]),
        };
        let mut entries = read.map_err(|error| HubError::SessionUnreadable(error.to_string()))?;
        for (number, entry) in self.in_flight.range(from + 1..=to) {
            let index = (number - 1 - from) as usize;
            match entries.get_mut(index) {
                Some(known) => *known = entry.clone(),
                None => entries.push(entry.clone()),
            }
        }
        Ok(entries)
    }

    /// Moves what is finished into the transcript. After an error it stays where it is, and is moved later.
    async fn fold(&mut self) {
        let mut entries = std::mem::take(&mut self.in_flight);
        let folded = self
            .on_disk(move |transcript| {
                let folded = transcript.fold(&entries);
                if folded.is_ok() {
                    entries.clear();
                }
                (folded, entries)
            })
            .await;
        let (folded, unfolded) = folded;
        self.in_flight = unfolded;
        if let Err(error) = folded {
            tracing::error!(%error, session = &*self.session_id, "could not finish a turn on disk");
        }
    }

    async fn save(&mut self, note: Note) {
        self.note.update(note.clone());
        if let Err(error) = self.on_disk(|transcript| transcript.note(note)).await {
            tracing::error!(%error, session = &*self.session_id, "could not write");
            self.show(SessionEvent::StoreTrouble(format!(
                "The change could not be saved: {error}"
            )));
        }
    }

    /// Disks can be slow: the runtime's threads do not wait for them.
    async fn on_disk<R: Send + 'static>(
        &mut self,
        act: impl FnOnce(&mut Transcript) -> R + Send + 'static,
    ) -> R {
        let Some(mut transcript) = self.transcript.take() else {
            unreachable!("only one thing at a time is done with it, and it is always put back");
        };
        let acted = tokio::task::spawn_blocking(move || {
            let result = act(&mut transcript);
            (transcript, result)
        });
        match acted.await {
            Ok((transcript, result)) => {
                self.transcript = Some(transcript);
                result
            }
            Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
        }
    }

    async fn title(&mut self, title: String) {
        let note = Note {
            title: Some(title.clone()),
            ..Note::default()
        };
        self.save(note).await;
        let index = self.setup.index.clone();
        index.note_title(&self.setup.meta, title);
        // The index has a queue of its own; the turn does not wait for it.
        tokio::spawn(async move {
            if let Err(error) = index.catch_up().await {
                tracing::error!(%error, "could not save a title");
            }
        });
    }

    fn attach(&mut self) {
        let Some(kind) = self.setup.kind.clone() else {
            let message = HubError::AgentUnknown(self.setup.meta.cli_type.clone()).to_string();
            let own = self.own.clone();
            tokio::spawn(async move {
                let _ = own.send(Own::Input(Input::AttachFailed { message })).await;
            });
            return;
        };
        self.replay = Replay::default();
        let (own, inbox, meta) = (
            self.own.clone(),
            self.inbox.clone(),
            self.setup.meta.clone(),
        );
        let since = meta.last_active_at.parse().unwrap_or_default();
        let since = self.active_at().unwrap_or(since);
        tokio::spawn(async move {
            let id = meta.agent_session_id();
            let cwd = meta.project_path.as_ref();
            if let Err(error) = kind.attach(id, cwd, since, inbox).await {
                let message = error.to_string();
                let _ = own.send(Own::Input(Input::AttachFailed { message })).await;
            }
        });
    }

    /// When something last happened here, as far as this run knows.
    fn active_at(&self) -> Option<Timestamp> {
        (self.seq > 0).then_some(self.last_heard_at)
    }

    /// Holds what the agent said again against what we have.
    async fn adopt(&mut self, replay: Vec<ChatEntry>) {
        let total = self.total();
        let Ok(entries) = self.entries(0, total).await else {
            return;
        };
        // What waits to be sent is not part of what the agent can know.
        let sending = self.state.phase() == Some(TurnPhase::Starting);
        let mut ours: Vec<(u64, String)> = entries
            .iter()
            .filter_map(|entry| match entry {
                ChatEntry::User {
                    content, entry_id, ..
                } => Some((entry_number(entry_id), content.clone())),
                _ => None,
            })
            .collect();
        let unsent = if sending { ours.pop() } else { None };
        let texts: Vec<String> = ours.into_iter().map(|(_, text)| text).collect();
        let (kept, new) = match reconcile(&texts, replay) {
            Reconciled::Same => return,
            Reconciled::More(more) => {
                let end = unsent.as_ref().map_or(total, |(number, _)| number - 1);
                (entries[..end as usize].to_vec(), more)
            }
            Reconciled::Other(theirs) => (vec![], theirs),
        };
        let waiting = unsent.map(|(number, _)| entries[number as usize - 1..].to_vec());
        let all = kept
            .into_iter()
            .chain(new)
            .chain(waiting.into_iter().flatten());
        let all: BTreeMap<u64, ChatEntry> = all
            .zip(1..)
            .map(|(mut entry, number)| {
                entry.set_entry_id(format!("e{number}"));
                (number, entry)
            })
            .collect();
        let last = all.len() as u64;
        let header = self.setup.meta.header();
        let note = self.note.clone();
        let replaced = self
            .on_disk(move |transcript| transcript.replace(&header, note, &all))
            .await;
        match replaced {
            Ok(()) => {
                self.in_flight.clear();
                self.state.renumber(last);
                self.recent.clear();
                self.recent_bytes = 0;
                self.show_everything().await;
            }
            Err(error) => tracing::error!(%error, "could not take over what the agent knows"),
        }
    }

    /// Everything is different: whoever watches starts over.
    async fn show_everything(&mut self) {
        let total = self.total();
        // The numbers go on, so that nobody mistakes what follows for what they have.
        self.seq += 1;
        const TAIL: u64 = 200;
        let first = total.saturating_sub(TAIL);
        let Ok(entries) = self.entries(first, total).await else {
            return;
        };
        self.show(SessionEvent::History {
            entries,
            first,
            total,
            seq: self.seq,
            info: Box::new(self.state.info()),
            origin: Origin::default(),
        });
    }

    fn next_timer(&self) -> Option<Instant> {
        let working = self.state.phase() == Some(TurnPhase::Working);
        let listening = working && !self.quiet_told && self.questions.is_empty();
        let quiet = listening.then(|| self.last_heard + self.setup.quiet_after);
        [quiet, self.cancel_deadline].into_iter().flatten().min()
    }

    async fn timer(&mut self) {
        let now = Instant::now();
        if self.cancel_deadline.is_some_and(|deadline| deadline <= now) {
            self.cancel_deadline = None;
            self.step(Input::CancelUnanswered).await;
        } else if now >= self.last_heard + self.setup.quiet_after {
            self.quiet_told = true;
            let since = self.last_heard_at;
            self.step(Input::Quiet { since }).await;
        }
    }

    async fn stop(&mut self) {
        self.step(Input::Stop).await;
        self.commit().await;
        if let Some(host) = self.host.take() {
            host.close().await;
        }
        if !self.in_flight.is_empty() {
            self.fold().await;
        }
        self.tell();
    }
}

/// Puts a change where it belongs.
fn keep(entries: &mut BTreeMap<u64, ChatEntry>, change: &EntryChange) {
    match change {
        EntryChange::Begin(entry) | EntryChange::Replace(entry) => {
            entries.insert(entry_number(entry.entry_id()), entry.clone());
        }
        EntryChange::Append { entry_id, .. } | EntryChange::AppendTerminal { entry_id, .. } => {
            if let Some(entry) = entries.get_mut(&entry_number(entry_id)) {
                extend(entry, change);
            }
        }
        EntryChange::Finish { .. } => {}
    }
}

/// One that is gone meanwhile is left out: the words still count.
async fn pictures(uploads: Uploads, ids: Vec<String>) -> Vec<Picture> {
    if ids.is_empty() {
        return vec![];
    }
    let loaded = tokio::task::spawn_blocking(move || {
        let picture = |id: &String| {
            let upload = uploads.load(id)?;
            Some(Picture {
                mime_type: upload.mime_type.to_owned(),
                data: BASE64_STANDARD.encode(upload.bytes),
            })
        };
        ids.iter().filter_map(picture).collect()
    });
    loaded.await.unwrap_or_default()
}

async fn due(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
