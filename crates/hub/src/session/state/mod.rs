//! The decisions of a session, without side effects.
//!
//! `step` takes one input and the time, and returns a [`Step`] for `task` to carry out. No clock, no files,
//! no channels: a test is a list of inputs and the steps they should produce.
//!
//! Invariants: at most one turn is in flight, and each turn ends exactly once.

mod effects;
mod inputs;
mod now;
mod offer;
mod permissions;
mod questions;
mod queue;
mod turn;

use jiff::Timestamp;
use serde_json::Value;
use wire::{
    AttachProblem, Attachment, Author, ChatEntry, ErrorCode, PermissionPolicy, PermissionQuestion,
    QuestionEntry, QuestionOutcome, RunningTurn, SessionInfo, SessionState, TurnOutcome, TurnPhase,
};

pub(crate) use self::effects::{
    AgentEffect, Durable, Effect, LogEffect, Refused, Step, SummaryEffect,
};
pub(crate) use self::inputs::{InitialState, Input};
pub(crate) use self::now::Now;
pub(crate) use self::offer::ConfigChoice;
use self::offer::Offer;
use self::questions::Elicitations;
use self::queue::Queue;
use self::turn::{Turn, outcome, require_text};
use agents::TerminalOutput;
use conversation::{Entries, EntryChange};
use conversation::{SessionChange, Update};
use store::transcript::Note;

/// Maximum text of one turn. An agent that sends more is assumed to be in a loop.
const TURN_TEXT_MAX: usize = 16 * 1024 * 1024;
/// Maximum size of a turn, pictures and tool output included; a turn is in memory until it ends.
const TURN_HELD_MAX: usize = 128 * 1024 * 1024;

#[derive(Debug, Clone)]
pub(crate) struct State {
    entries: Entries,
    turn: Option<Turn>,
    next_number: u64,
    attachment: Attachment,
    problem: Option<AttachProblem>,
    /// Whether another attempt to open the session follows if the current one fails.
    try_again: bool,
    queue: Queue,
    permission_requests: Vec<PermissionQuestion>,
    elicitations: Elicitations,
    policy: PermissionPolicy,
    restarts_when_quiet: bool,
    titled: bool,
    failed: bool,
    /// Text received since the last turn began.
    text_bytes: usize,
    offer: Offer,
}

impl State {
    pub(crate) fn new(initial: InitialState) -> Self {
        Self {
            entries: Entries::after(initial.total),
            turn: None,
            next_number: 1,
            attachment: Attachment::Detached,
            problem: None,
            try_again: false,
            queue: Queue::new(initial.queue, initial.accepted),
            permission_requests: vec![],
            elicitations: Elicitations::default(),
            policy: initial.policy,
            restarts_when_quiet: initial.restarts_when_quiet,
            titled: initial.titled,
            failed: initial.failed,
            text_bytes: 0,
            offer: Offer {
                chosen: initial.chosen,
                ..Offer::default()
            },
        }
    }

    pub(crate) fn step(&mut self, input: Input, now: Now) -> Result<Step, Refused> {
        let mut step = Step::default();
        match input {
            Input::Send(message) => return self.send(message, now),
            Input::EditQueued { queue_id, content } => {
                let content = require_text(content)?;
                self.queue.edit(&queue_id, content)?;
                step.durable = Durable::Note(self.queue_note());
                step.info();
            }
            Input::RemoveQueued { queue_id } => {
                self.queue.remove(&queue_id)?;
                step.durable = Durable::Note(self.queue_note());
                step.info();
            }
            Input::ResumeQueue => {
                self.queue.resume();
                if self.turn.is_none() {
                    self.next_queued(now, &mut step);
                }
                step.info();
            }
            Input::Cancel { only } => {
                let running = self.turn.as_ref();
                let running = running.and_then(|turn| turn.message.request_id.as_ref());
                if only.is_some() && only.as_ref() != running {
                    let message = "Cannot cancel the run: it has ended.";
                    return Err(Refused::new(ErrorCode::SessionBusy, message));
                }
                self.cancel(now, &mut step);
            }
            Input::ClientOpened => self.attach(&mut step),
            Input::TryAgain => {
                self.try_again = self.attachment == Attachment::Attaching;
                self.attach(&mut step);
            }
            Input::Attached {
                answer,
                takes_images,
                chosen,
            } => {
                self.offer.attached(&answer, takes_images);
                for (choice, answer) in chosen {
                    self.offer.choice_accepted(&choice, &answer);
                }
                self.attached(&mut step);
            }
            Input::AttachFailed(problem) => {
                self.attachment = Attachment::Detached;
                if std::mem::take(&mut self.try_again) {
                    self.attach(&mut step);
                } else if self.is_starting() {
                    let why = Some(problem.message);
                    self.end_turn(TurnOutcome::Failed, why, None, now, &mut step);
                } else {
                    self.problem = Some(problem);
                }
                step.info();
            }
            Input::Update(update) => self.update(update, now, &mut step),
            Input::Terminal(_) if self.is_flooded() => {}
            Input::Terminal(output) => {
                let TerminalOutput {
                    terminal_id,
                    text,
                    exit,
                } = output;
                let changes = self.entries.terminal(&terminal_id, text, exit);
                self.change(changes, &mut step);
            }
            Input::Answered { turn, result } => {
                if let Some(running) = &self.turn
                    && running.number == turn
                {
                    let (outcome, message, tokens) = match outcome(result) {
                        (TurnOutcome::Ended, ..) if running.failing => {
                            (TurnOutcome::Failed, None, None)
                        }
                        ended => ended,
                    };
                    self.end_turn(outcome, message, tokens, now, &mut step);
                }
            }
            Input::AgentAsleep => {
                self.attachment = Attachment::Detached;
                self.elicitations.forget_visits();
                match &mut self.turn {
                    Some(turn) if turn.phase == TurnPhase::Cancelling => {
                        self.end_turn(TurnOutcome::Cancelled, None, None, now, &mut step);
                    }
                    Some(turn) => {
                        turn.phase = TurnPhase::Starting;
                        self.attach(&mut step);
                    }
                    None => {}
                }
                step.info();
            }
            Input::AgentLost { reason } => {
                self.attachment = Attachment::Detached;
                self.elicitations.forget_visits();
                self.close_elicitations(QuestionOutcome::Interrupted, &mut step);
                if self.turn.is_some() && !self.is_starting() {
                    let outcome = TurnOutcome::Interrupted;
                    self.end_turn(outcome, Some(reason), None, now, &mut step);
                }
                step.info();
            }
            Input::PermissionRequested {
                permission_id,
                patch,
                options,
                guarded,
            } => self.permission_requested(permission_id, *patch, options, guarded, now, &mut step),
            Input::PermissionAnswered {
                permission_id,
                option_id,
            } => self.answer_permission(permission_id, option_id, &mut step)?,
            Input::ElicitationRequested { question_id, asked } => {
                self.elicitation_requested(question_id, *asked, now, &mut step);
            }
            Input::ElicitationAnswered {
                question_id,
                action,
                content,
            } => self.answer_elicitation(&question_id, action, content, &mut step)?,
            Input::ElicitationWithdrawn { question_id } => {
                let outcome = QuestionOutcome::Cancelled;
                self.close_elicitation(&question_id, outcome, None, &mut step);
            }
            Input::Visited { elicitation_id } => {
                // Completing the URL counts as accepting the elicitation, if the user has not answered it here.
                if let Some(question_id) = self.elicitations.open_with_acp_id(&elicitation_id) {
                    let outcome = QuestionOutcome::Accepted;
                    self.close_elicitation(&question_id, outcome, None, &mut step);
                }
                let visited = self.elicitations.complete_visit(&elicitation_id);
                visited.into_iter().for_each(|change| step.change(change));
            }
            Input::SetPolicy(policy) => {
                self.policy = policy;
                step.durable = Durable::Note(Note {
                    policy: Some(policy),
                    ..Note::default()
                });
                step.info();
            }
            Input::ChoiceAccepted { choice, answer } => {
                self.offer.choice_accepted(&choice, &answer);
                step.log(LogEffect::Note(self.choices_note()));
                step.info();
            }
            Input::Quiet { since } => {
                if let Some(turn) = &mut self.turn {
                    turn.quiet_since = Some(since);
                    step.info();
                    if self.restarts_when_quiet && !self.is_waiting() {
                        step.agent(AgentEffect::Kill);
                    }
                }
            }
            Input::CancelUnanswered => {
                if self.phase() == Some(TurnPhase::Cancelling) {
                    step.agent(AgentEffect::Kill);
                }
            }
            Input::Stop { deleted } => {
                self.close_elicitations(QuestionOutcome::Interrupted, &mut step);
                if self.turn.is_some() {
                    let why = match deleted {
                        true => "The session was deleted",
                        false => "Liminal Builder was stopped",
                    };
                    let (outcome, why) = (TurnOutcome::Interrupted, Some(why.to_owned()));
                    self.end_turn(outcome, why, None, now, &mut step);
                }
                if deleted && self.queue.drop_request_ids() {
                    step.log(LogEffect::Note(self.queue_note()));
                    step.info();
                }
            }
        }
        self.stop_if_too_much_is_held(now, &mut step);
        Ok(step)
    }

    pub(crate) fn phase(&self) -> Option<TurnPhase> {
        self.turn.as_ref().map(|turn| turn.phase)
    }

    pub(crate) fn is_attaching(&self) -> bool {
        self.attachment == Attachment::Attaching
    }

    pub(crate) fn is_detached(&self) -> bool {
        self.attachment == Attachment::Detached
    }

    /// The user's choices that differ from the settings in the agent's answer to opening the session.
    pub(crate) fn choices_to_restore(&self, answer: &Value) -> Vec<ConfigChoice> {
        self.offer.choices_to_restore(answer)
    }

    /// The state shown in the session list.
    pub(crate) fn list_state(&self) -> SessionState {
        match (&self.turn, self.is_waiting()) {
            (_, true) => SessionState::Waiting,
            (Some(_), false) => SessionState::Running,
            (None, false) if self.failed => SessionState::Failed,
            (None, false) => SessionState::Idle,
        }
    }

    fn is_waiting(&self) -> bool {
        !self.permission_requests.is_empty() || !self.elicitations.is_empty()
    }

    /// The open elicitations, with all their fields.
    pub(crate) fn open_elicitations(&self) -> Vec<QuestionEntry> {
        self.elicitations.all()
    }

    pub(crate) fn info(&self) -> SessionInfo {
        SessionInfo {
            state: self.list_state(),
            turn: self.turn.as_ref().map(|turn| RunningTurn {
                started_at: stamp(turn.started.at),
                request_id: turn.message.request_id.clone(),
                phase: turn.phase,
                quiet_since: turn.quiet_since.map(stamp),
            }),
            attachment: self.attachment,
            problem: self.problem.clone(),
            policy: self.policy,
            queue: self.queue.waiting(),
            queue_held: self.queue.is_paused(),
            permissions: self.permission_requests.clone(),
            questions: self.elicitations.summaries(),
            commands: self.offer.commands.clone(),
            modes: self.offer.modes.clone(),
            options: self.offer.options.clone(),
            usage: self.offer.usage.clone(),
            takes_images: self.offer.takes_images,
        }
    }

    /// Records that the user chose a title, so none is derived from the first message.
    pub(crate) fn titled(&mut self) {
        self.titled = true;
    }

    /// Records that the last turn was interrupted by the end of an earlier server process.
    pub(crate) fn interrupted(&mut self) {
        self.failed = true;
    }

    /// Continues the numbering of entries after `total`.
    pub(crate) fn renumber(&mut self, total: u64) {
        self.entries = Entries::after(total);
        self.elicitations.forget_visits();
    }

    /// Adds the size of an entry of an earlier turn that is held in memory until it is written.
    pub(crate) fn hold(&mut self, bytes: usize) {
        self.entries.hold(bytes);
    }

    fn queue_note(&self) -> Note {
        Note {
            queue: Some(self.queue.waiting()),
            ..Note::default()
        }
    }

    fn choices_note(&self) -> Note {
        Note {
            chosen: Some(self.offer.chosen.clone()),
            ..Note::default()
        }
    }

    /// Whether a turn runs whose prompt was not sent to the agent yet.
    pub(crate) fn has_unsent_prompt(&self) -> bool {
        self.is_starting()
    }

    fn is_starting(&self) -> bool {
        self.phase() == Some(TurnPhase::Starting)
    }

    fn attach(&mut self, step: &mut Step) {
        if self.attachment == Attachment::Detached {
            self.attachment = Attachment::Attaching;
            self.problem = None;
            step.agent(AgentEffect::Attach);
            step.info();
        }
    }

    fn attached(&mut self, step: &mut Step) {
        self.attachment = Attachment::Attached;
        self.try_again = false;
        if let Some(turn) = &mut self.turn
            && turn.phase == TurnPhase::Starting
        {
            turn.phase = TurnPhase::Working;
            step.agent(AgentEffect::Prompt {
                turn: turn.number,
                message: turn.message.clone(),
            });
        }
        step.info();
    }

    fn update(&mut self, update: Update, now: Now, step: &mut Step) {
        if let Some(turn) = &mut self.turn
            && turn.quiet_since.take().is_some()
        {
            step.info();
        }
        match update {
            Update::Session(SessionChange::Failing) => {
                if let Some(turn) = &mut self.turn {
                    turn.failing = true;
                }
            }
            Update::Session(change) => {
                self.offer.change(change);
                // While it opens the session, an agent reports its initial settings, which are not choices.
                if self.attachment == Attachment::Attached && self.offer.sync_choices() {
                    step.log(LogEffect::Note(self.choices_note()));
                }
                step.info();
            }
            // Some agents send the prompt back as a message of the user.
            Update::Text {
                author: Author::User,
                ..
            }
            | Update::Media {
                author: Author::User,
                ..
            }
            | Update::Interruption => {}
            _ if self.is_flooded() => {}
            Update::Text { text, .. } if self.is_too_much(text.len()) => {
                let most = TURN_TEXT_MAX / 1024 / 1024;
                let why =
                    format!("The turn was stopped: the agent sent more than {most} MiB of text");
                self.stop_flood(why, now, step);
            }
            update => match self.entries.earlier(&update) {
                Some(entry_id) => {
                    let update = Box::new(update);
                    step.log(LogEffect::Amend { entry_id, update });
                }
                None => {
                    let changes = self.entries.apply(update, &stamp(now.at));
                    self.change(changes, step);
                }
            },
        }
    }

    /// Stops a turn whose entries exceed `TURN_HELD_MAX`: they stay in memory until the turn ends.
    fn stop_if_too_much_is_held(&mut self, now: Now, step: &mut Step) {
        if self.entries.held() > TURN_HELD_MAX {
            let most = TURN_HELD_MAX / 1024 / 1024;
            let why = format!("The turn was stopped: it took more than {most} MiB of memory");
            self.stop_flood(why, now, step);
        }
    }

    /// Cancels a turn with too much output. The process, and with it the agent's other sessions, is ended only if the
    /// agent ignores the cancel.
    fn stop_flood(&mut self, why: String, now: Now, step: &mut Step) {
        if let Some(turn) = &mut self.turn
            && turn.flood.is_none()
        {
            turn.flood = Some(why);
            self.cancel(now, step);
        }
    }

    /// Whether further output is ignored because there was too much of it.
    fn is_flooded(&self) -> bool {
        match &self.turn {
            Some(turn) => turn.flood.is_some(),
            None => self.entries.held() > TURN_HELD_MAX,
        }
    }

    fn is_too_much(&mut self, more: usize) -> bool {
        self.text_bytes = self.text_bytes.saturating_add(more);
        self.text_bytes > TURN_TEXT_MAX
    }

    fn change(&mut self, changes: Vec<EntryChange>, step: &mut Step) {
        for change in changes {
            if let (Some(turn), EntryChange::Begin(entry)) = (&mut self.turn, &change) {
                entry.entry_id().clone_into(&mut turn.last_entry);
                if matches!(
                    entry,
                    ChatEntry::Assistant { .. } | ChatEntry::Thinking { .. }
                ) {
                    turn.texts.push(entry.entry_id().to_owned());
                }
            }
            step.change(change);
        }
    }
}

/// Formats a timestamp with milliseconds, as in all files.
pub(crate) fn stamp(at: Timestamp) -> String {
    format!("{:.3}", at)
}

#[cfg(test)]
mod tests;
