//! The decisions of a session, without side effects.
//!
//! `step` takes one input and returns effects for `task` to carry out, in order. No clock, no files,
//! no channels: a test is a list of inputs and the effects they should produce.
//!
//! Invariants: at most one turn is in flight, and each turn ends exactly once.

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
    QuestionEntry, QuestionOutcome, QueuedMessage, RunningTurn, SessionInfo, SessionState,
    TurnOutcome, TurnPhase,
};

pub(crate) use self::inputs::{Effect, InitialState, Input, Refused};
pub(crate) use self::now::Now;
pub(crate) use self::offer::ConfigChoice;
use self::offer::Offer;
use self::questions::Elicitations;
use self::queue::Queue;
use self::turn::{Turn, outcome, require_text};
use agents::TerminalOutput;
use conversation::{Entries, EntryChange};
use conversation::{SessionChange, Update};
use store::transcript::Chosen;

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
    /// Whether to try once more if the current attempt to open the session fails.
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

    pub(crate) fn step(&mut self, input: Input, now: Now) -> Result<Vec<Effect>, Refused> {
        let mut effects = vec![];
        match input {
            Input::Send(message) => return self.send(message, now),
            Input::EditQueued { queue_id, content } => {
                let content = require_text(content)?;
                self.queue.edit(&queue_id, content)?;
                effects.extend([Effect::SaveQueue, Effect::Info]);
            }
            Input::RemoveQueued { queue_id } => {
                self.queue.remove(&queue_id)?;
                effects.extend([Effect::SaveQueue, Effect::Info]);
            }
            Input::ResumeQueue => {
                self.queue.release();
                if self.turn.is_none() {
                    self.next_queued(now, &mut effects);
                }
                effects.push(Effect::Info);
            }
            Input::Cancel { only } => {
                let running = self.turn.as_ref();
                let running = running.and_then(|turn| turn.message.request_id.as_ref());
                if only.is_some() && only.as_ref() != running {
                    let message = "Cannot cancel the run: it has ended.";
                    return Err(Refused::new(ErrorCode::SessionBusy, message));
                }
                self.cancel(now, &mut effects);
            }
            Input::ClientOpened => self.attach(&mut effects),
            Input::TryAgain => {
                self.try_again = self.attachment == Attachment::Attaching;
                self.attach(&mut effects);
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
                self.attached(&mut effects);
            }
            Input::AttachFailed(problem) => {
                self.attachment = Attachment::Detached;
                if std::mem::take(&mut self.try_again) {
                    self.attach(&mut effects);
                } else if self.is_starting() {
                    let why = Some(problem.message);
                    self.end_turn(TurnOutcome::Failed, why, None, now, &mut effects);
                } else {
                    self.problem = Some(problem);
                }
                effects.push(Effect::Info);
            }
            Input::Update(update) => self.update(update, now, &mut effects),
            Input::Terminal(_) if self.is_flooded() => {}
            Input::Terminal(output) => {
                let TerminalOutput {
                    terminal_id,
                    text,
                    exit,
                } = output;
                let changes = self.entries.terminal(&terminal_id, text, exit);
                self.change(changes, &mut effects);
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
                    self.end_turn(outcome, message, tokens, now, &mut effects);
                }
            }
            Input::AgentAsleep => {
                self.attachment = Attachment::Detached;
                self.elicitations.forget_visits();
                match &mut self.turn {
                    Some(turn) if turn.phase == TurnPhase::Cancelling => {
                        self.end_turn(TurnOutcome::Cancelled, None, None, now, &mut effects);
                    }
                    Some(turn) => {
                        turn.phase = TurnPhase::Starting;
                        self.attach(&mut effects);
                    }
                    None => {}
                }
                effects.push(Effect::Info);
            }
            Input::AgentLost { reason } => {
                self.attachment = Attachment::Detached;
                self.elicitations.forget_visits();
                self.close_elicitations(QuestionOutcome::Interrupted, &mut effects);
                if self.turn.is_some() && !self.is_starting() {
                    let outcome = TurnOutcome::Interrupted;
                    self.end_turn(outcome, Some(reason), None, now, &mut effects);
                }
                effects.push(Effect::Info);
            }
            Input::PermissionRequested {
                permission_id,
                patch,
                options,
                guarded,
            } => self.permission_requested(
                permission_id,
                *patch,
                options,
                guarded,
                now,
                &mut effects,
            ),
            Input::PermissionAnswered {
                permission_id,
                option_id,
            } => self.answer_permission(permission_id, option_id, &mut effects)?,
            Input::ElicitationRequested { question_id, asked } => {
                self.elicitation_requested(question_id, *asked, now, &mut effects);
            }
            Input::ElicitationAnswered {
                question_id,
                action,
                content,
            } => self.answer_elicitation(&question_id, action, content, &mut effects)?,
            Input::ElicitationWithdrawn { question_id } => {
                let outcome = QuestionOutcome::Cancelled;
                self.close_elicitation(&question_id, outcome, None, &mut effects);
            }
            Input::Visited { elicitation_id } => {
                // A user who completed the URL without answering here has accepted.
                if let Some(question_id) = self.elicitations.open_with_acp_id(&elicitation_id) {
                    let outcome = QuestionOutcome::Accepted;
                    self.close_elicitation(&question_id, outcome, None, &mut effects);
                }
                let visited = self.elicitations.complete_visit(&elicitation_id);
                effects.extend(visited.map(Effect::Change));
            }
            Input::SetPolicy(policy) => {
                self.policy = policy;
                effects.extend([Effect::SavePolicy, Effect::Info]);
            }
            Input::ChoiceAccepted { choice, answer } => {
                self.offer.choice_accepted(&choice, &answer);
                effects.extend([Effect::SaveChosen, Effect::Info]);
            }
            Input::Quiet { since } => {
                if let Some(turn) = &mut self.turn {
                    turn.quiet_since = Some(since);
                    effects.push(Effect::Info);
                    if self.restarts_when_quiet && !self.is_waiting() {
                        effects.push(Effect::KillAgent);
                    }
                }
            }
            Input::CancelUnanswered => {
                if self.phase() == Some(TurnPhase::Cancelling) {
                    effects.push(Effect::KillAgent);
                }
            }
            Input::Stop { deleted } => {
                self.close_elicitations(QuestionOutcome::Interrupted, &mut effects);
                if self.turn.is_some() {
                    let why = match deleted {
                        true => "The session was deleted",
                        false => "Liminal Builder was stopped",
                    };
                    let (outcome, why) = (TurnOutcome::Interrupted, Some(why.to_owned()));
                    self.end_turn(outcome, why, None, now, &mut effects);
                }
                if deleted && self.queue.disown() {
                    effects.extend([Effect::SaveQueue, Effect::Info]);
                }
            }
        }
        self.stop_if_too_much_is_held(now, &mut effects);
        Ok(effects)
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

    pub(crate) fn policy(&self) -> PermissionPolicy {
        self.policy
    }

    pub(crate) fn chosen(&self) -> &Chosen {
        &self.offer.chosen
    }

    /// The user's choices that differ from the settings in the agent's answer to opening the session.
    pub(crate) fn choices_to_restore(&self, answer: &Value) -> Vec<ConfigChoice> {
        self.offer.choices_to_restore(answer)
    }

    pub(crate) fn queue(&self) -> Vec<QueuedMessage> {
        self.queue.waiting()
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
            queue: self.queue(),
            queue_held: self.queue.is_held(),
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

    /// Counts memory held for an entry of an earlier turn until it is written.
    pub(crate) fn hold(&mut self, bytes: usize) {
        self.entries.hold(bytes);
    }

    fn is_starting(&self) -> bool {
        self.phase() == Some(TurnPhase::Starting)
    }

    fn attach(&mut self, effects: &mut Vec<Effect>) {
        if self.attachment == Attachment::Detached {
            self.attachment = Attachment::Attaching;
            self.problem = None;
            effects.extend([Effect::Attach, Effect::Info]);
        }
    }

    fn attached(&mut self, effects: &mut Vec<Effect>) {
        self.attachment = Attachment::Attached;
        self.try_again = false;
        if let Some(turn) = &mut self.turn
            && turn.phase == TurnPhase::Starting
        {
            turn.phase = TurnPhase::Working;
            effects.push(Effect::Prompt {
                turn: turn.number,
                message: turn.message.clone(),
            });
        }
        effects.push(Effect::Info);
    }

    fn update(&mut self, update: Update, now: Now, effects: &mut Vec<Effect>) {
        if let Some(turn) = &mut self.turn
            && turn.quiet_since.take().is_some()
        {
            effects.push(Effect::Info);
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
                    effects.push(Effect::SaveChosen);
                }
                effects.push(Effect::Info);
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
                self.stop_flood(why, now, effects);
            }
            update => match self.entries.earlier(&update) {
                Some(entry_id) => {
                    let update = Box::new(update);
                    effects.push(Effect::Amend { entry_id, update });
                }
                None => {
                    let changes = self.entries.apply(update, &stamp(now.at));
                    self.change(changes, effects);
                }
            },
        }
    }

    /// Stops a turn whose entries take too much memory; they are held until it ends.
    fn stop_if_too_much_is_held(&mut self, now: Now, effects: &mut Vec<Effect>) {
        if self.entries.held() > TURN_HELD_MAX {
            let most = TURN_HELD_MAX / 1024 / 1024;
            let why = format!("The turn was stopped: it took more than {most} MiB of memory");
            self.stop_flood(why, now, effects);
        }
    }

    /// Cancels a turn with too much output. The process, and with it the agent's other sessions, is ended only if the
    /// agent ignores the cancel.
    fn stop_flood(&mut self, why: String, now: Now, effects: &mut Vec<Effect>) {
        if let Some(turn) = &mut self.turn
            && turn.flood.is_none()
        {
            turn.flood = Some(why);
            self.cancel(now, effects);
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

    fn change(&mut self, changes: Vec<EntryChange>, effects: &mut Vec<Effect>) {
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
            effects.push(Effect::Change(change));
        }
    }
}

/// Formats a timestamp with milliseconds, as in all files.
pub(crate) fn stamp(at: Timestamp) -> String {
    format!("{:.3}", at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_queued(request_id: Option<&str>) -> State {
        let queued = QueuedMessage {
            queue_id: "q1".to_owned(),
            content: "next".to_owned(),
            images: vec![],
            request_id: request_id.map(str::to_owned),
        };
        State::new(InitialState {
            total: 0,
            titled: true,
            failed: false,
            policy: PermissionPolicy::Ask,
            queue: vec![queued],
            accepted: vec![],
            chosen: Chosen::default(),
            restarts_when_quiet: false,
        })
    }

    #[test]
    fn queued_message_leaves_the_queue_only_after_it_is_written_as_sent() {
        let mut state = with_queued(None);
        let effects = state.step(Input::ResumeQueue, Now::default());
        let effects = effects.unwrap();
        let written = effects.iter().position(|effect| {
            matches!(effect, Effect::Change(EntryChange::Begin(ChatEntry::User { content, .. })) if content == "next")
        });
        let left = effects
            .iter()
            .position(|effect| *effect == Effect::SaveQueue);
        assert!(written.is_some() && written < left, "{effects:?}");
    }

    #[test]
    fn cancel_of_one_run_does_not_cancel_the_next() {
        let mut state = with_queued(Some("second"));
        let now = Now::default();
        state.step(Input::ResumeQueue, now).unwrap();
        for (only, cancels) in [(Some("first"), false), (Some("second"), true)] {
            let only = only.map(str::to_owned);
            let cancelled = state.step(Input::Cancel { only }, now);
            assert_eq!(cancelled.is_ok(), cancels, "{cancelled:?}");
        }
    }

    fn send(state: &mut State, id: &str) -> Vec<Effect> {
        let message = QueuedMessage {
            queue_id: id.to_owned(),
            content: id.to_owned(),
            images: vec![],
            request_id: None,
        };
        state.step(Input::Send(message), Now::default()).unwrap()
    }

    fn answer(state: &mut State, turn: u64, reason: &str) {
        let result = Ok(serde_json::json!({"stopReason": reason}));
        let answered = Input::Answered { turn, result };
        state.step(answered, Now::default()).unwrap();
    }

    fn queue_of(state: &State) -> (Vec<String>, bool) {
        let info = state.info();
        let ids = info.queue.into_iter().map(|queued| queued.queue_id);
        (ids.collect(), info.queue_held)
    }

    #[test]
    fn cancelled_turn_pauses_the_queue_whatever_the_agent_answers() {
        let now = Now::default();
        for reason in ["cancelled", "end_turn"] {
            let mut state = attached();
            state.step(Input::ResumeQueue, now).unwrap();
            send(&mut state, "q2");
            state.step(Input::Cancel { only: None }, now).unwrap();
            answer(&mut state, 1, reason);
            assert_eq!(queue_of(&state), (vec!["q2".to_owned()], true), "{reason}");
            assert!(state.turn.is_none(), "{reason}");
        }
    }

    #[test]
    fn turn_cancelled_before_its_prompt_is_sent_pauses_the_queue() {
        let now = Now::default();
        let mut state = with_queued(None);
        state.step(Input::ResumeQueue, now).unwrap();
        send(&mut state, "q2");
        assert_eq!(state.phase(), Some(TurnPhase::Starting));
        state.step(Input::Cancel { only: None }, now).unwrap();
        assert_eq!(queue_of(&state), (vec!["q2".to_owned()], true));
        assert!(state.turn.is_none());
    }

    #[test]
    fn turn_that_the_agent_cancels_on_its_own_pauses_the_queue() {
        let mut state = attached();
        state.step(Input::ResumeQueue, Now::default()).unwrap();
        send(&mut state, "q2");
        answer(&mut state, 1, "cancelled");
        assert_eq!(queue_of(&state), (vec!["q2".to_owned()], true));
    }

    #[test]
    fn new_message_begins_a_turn_and_leaves_a_paused_queue_paused() {
        let now = Now::default();
        let mut state = with_queued(None);
        let begun = send(&mut state, "new");
        assert!(begun.contains(&Effect::TurnBegins));
        state.step(awake(), now).unwrap();
        answer(&mut state, 1, "end_turn");
        assert_eq!(queue_of(&state), (vec!["q1".to_owned()], true));
        assert!(state.turn.is_none());
        let resumed = state.step(Input::ResumeQueue, now).unwrap();
        assert!(resumed.contains(&Effect::TurnBegins));
        assert_eq!(queue_of(&state), (vec![], false));
    }

    #[test]
    fn message_sent_after_a_cancel_with_an_empty_queue_is_sent_next() {
        let now = Now::default();
        let mut state = attached();
        state.step(Input::ResumeQueue, now).unwrap();
        state.step(Input::Cancel { only: None }, now).unwrap();
        send(&mut state, "next");
        answer(&mut state, 1, "cancelled");
        assert_eq!(queue_of(&state), (vec![], false));
        let turn = state.turn.as_ref().unwrap();
        assert_eq!(turn.message.queue_id, "next");
    }

    fn awake() -> Input {
        Input::Attached {
            answer: Value::Null,
            takes_images: false,
            chosen: vec![],
        }
    }

    #[test]
    fn prompt_to_a_sleeping_agent_is_sent_again_after_it_wakes() {
        let now = Now::default();
        let mut state = attached();
        let sent = state.step(Input::ResumeQueue, now).unwrap();
        let prompt = |effect: &Effect| matches!(effect, Effect::Prompt { turn: 1, .. });
        assert!(sent.iter().any(prompt));
        let asleep = state.step(Input::AgentAsleep, now).unwrap();
        assert_eq!(asleep, [Effect::Attach, Effect::Info, Effect::Info]);
        assert!(state.step(awake(), now).unwrap().iter().any(prompt));
        // A cancelled prompt is not sent again.
        state.step(Input::Cancel { only: None }, now).unwrap();
        let asleep = state.step(Input::AgentAsleep, now).unwrap();
        let cancelled = |effect: &Effect| matches!(effect, Effect::Cancelled(_));
        assert!(asleep.iter().any(cancelled) && !asleep.contains(&Effect::Attach));
    }

    fn attached() -> State {
        let mut state = with_queued(None);
        state.step(awake(), Now::default()).unwrap();
        state
    }

    fn picture(bytes: usize) -> Input {
        let block = wire::MediaBlock::Image {
            mime_type: "image/png".to_owned(),
            data: "x".repeat(bytes),
        };
        let author = Author::Assistant;
        Input::Update(Update::Media { author, block })
    }

    fn ends_as(effects: &[Effect]) -> Option<(TurnOutcome, &str)> {
        effects.iter().find_map(|effect| match effect {
            Effect::Change(EntryChange::Begin(ChatEntry::Turn(turn))) => {
                Some((turn.outcome, turn.message.as_deref().unwrap_or_default()))
            }
            _ => None,
        })
    }

    #[test]
    fn oversized_turn_is_cancelled_and_the_next_turn_is_kept() {
        let now = Now::default();
        let mut state = attached();
        state.step(Input::ResumeQueue, now).unwrap();
        let quarter = TURN_HELD_MAX / 4;
        for _ in 0..3 {
            let effects = state.step(picture(quarter), now).unwrap();
            assert_eq!(effects.len(), 1, "{effects:.200?}");
        }
        let effects = state.step(picture(quarter), now).unwrap();
        assert!(effects.contains(&Effect::CancelPrompt), "{effects:.200?}");
        // Later output is dropped, before the turn ends and after it.
        assert_eq!(state.step(picture(1), now).unwrap(), []);
        let answered = Input::Answered {
            turn: 1,
            result: Ok(serde_json::json!({"stopReason": "cancelled"})),
        };
        let effects = state.step(answered, now).unwrap();
        let (outcome, why) = ends_as(&effects).unwrap();
        assert!(outcome == TurnOutcome::Failed && why.contains("128 MiB"));
        assert!(!effects.contains(&Effect::KillAgent));
        assert_eq!(state.step(picture(1), now).unwrap(), []);
        let mut next = with_queued(None);
        std::mem::swap(&mut state.queue, &mut next.queue);
        state.step(Input::ResumeQueue, now).unwrap();
        assert_eq!(state.step(picture(1), now).unwrap().len(), 1);
    }

    #[test]
    fn agent_that_floods_and_ignores_the_cancel_is_killed_with_a_reason() {
        let now = Now::default();
        let mut state = attached();
        state.step(Input::ResumeQueue, now).unwrap();
        let text = Input::Update(Update::Text {
            author: Author::Assistant,
            text: "x".repeat(TURN_TEXT_MAX + 1),
            message_id: None,
        });
        let effects = state.step(text, now).unwrap();
        assert!(effects.contains(&Effect::CancelPrompt), "{effects:.200?}");
        let effects = state.step(Input::CancelUnanswered, now).unwrap();
        assert_eq!(effects, [Effect::KillAgent]);
        let reason = "Connection lost.".to_owned();
        let effects = state.step(Input::AgentLost { reason }, now).unwrap();
        let (outcome, why) = ends_as(&effects).unwrap();
        assert!(outcome == TurnOutcome::Failed && why.contains("16 MiB"));
    }

    #[test]
    fn late_text_of_an_earlier_turn_amends_its_entry_only() {
        let now = Now::default();
        let mut state = attached();
        let text_update = |text: &str| {
            Input::Update(Update::Text {
                author: Author::Assistant,
                text: text.to_owned(),
                message_id: Some("m1".to_owned()),
            })
        };
        let mut next = with_queued(None);
        state.step(Input::ResumeQueue, now).unwrap();
        state.step(text_update("one"), now).unwrap();
        let result = Ok(serde_json::json!({"stopReason": "end_turn"}));
        state
            .step(Input::Answered { turn: 1, result }, now)
            .unwrap();
        std::mem::swap(&mut state.queue, &mut next.queue);
        state.step(Input::ResumeQueue, now).unwrap();
        let effects = state.step(text_update(" more"), now).unwrap();
        let Ok([Effect::Amend { entry_id, update }]) = <[_; 1]>::try_from(effects) else {
            panic!("another entry changes");
        };
        assert_eq!(entry_id, "e2");
        assert!(matches!(*update, Update::Text { text, .. } if text == " more"));
    }

    #[test]
    fn retry_during_an_attempt_starts_another_attempt_when_it_fails() {
        let now = Now::default();
        let mut state = with_queued(None);
        let failed = || {
            Input::AttachFailed(AttachProblem {
                code: ErrorCode::SignInNeeded,
                message: "Sign in first.".to_owned(),
            })
        };
        let attempts = |effects: Result<Vec<Effect>, Refused>| {
            let effects = effects.unwrap();
            effects
                .iter()
                .filter(|effect| **effect == Effect::Attach)
                .count()
        };
        assert_eq!(attempts(state.step(Input::ClientOpened, now)), 1);
        assert_eq!(attempts(state.step(Input::TryAgain, now)), 0);
        assert_eq!(attempts(state.step(failed(), now)), 1);
        assert_eq!(attempts(state.step(failed(), now)), 0);
        assert!(state.info().problem.is_some());
        // A client that opens the session during an attempt does not cause another one.
        assert_eq!(attempts(state.step(Input::TryAgain, now)), 1);
        assert_eq!(attempts(state.step(Input::ClientOpened, now)), 0);
        assert_eq!(attempts(state.step(failed(), now)), 0);
    }
}
