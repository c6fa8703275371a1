use wire::QueuedMessage;

use super::*;
use store::transcript::Chosen;

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
    let step = state.step(Input::ResumeQueue, Now::default()).unwrap();
    let Durable::TurnBegins(changes) = &step.durable else {
        panic!("no turn begins: {step:?}");
    };
    let is_written = |change: &EntryChange| matches!(change, EntryChange::Begin(ChatEntry::User { content, .. }) if content == "next");
    assert!(changes.iter().any(is_written), "{step:?}");
    let empty_queue = Effect::Log(LogEffect::Note(Note {
        queue: Some(vec![]),
        ..Note::default()
    }));
    assert!(step.then.contains(&empty_queue), "{step:?}");
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

fn send(state: &mut State, id: &str) -> Step {
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
    assert!(begun.begins_turn());
    state.step(awake(), now).unwrap();
    answer(&mut state, 1, "end_turn");
    assert_eq!(queue_of(&state), (vec!["q1".to_owned()], true));
    assert!(state.turn.is_none());
    let resumed = state.step(Input::ResumeQueue, now).unwrap();
    assert!(resumed.begins_turn());
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
    let prompt =
        |effect: &Effect| matches!(effect, Effect::Agent(AgentEffect::Prompt { turn: 1, .. }));
    assert!(sent.then.iter().any(prompt));
    let asleep = state.step(Input::AgentAsleep, now).unwrap();
    let info = || Effect::Summary(SummaryEffect::Info);
    let attach = Effect::Agent(AgentEffect::Attach);
    assert_eq!(asleep.then, [attach, info(), info()]);
    assert!(state.step(awake(), now).unwrap().then.iter().any(prompt));
    // A cancelled prompt is not sent again.
    state.step(Input::Cancel { only: None }, now).unwrap();
    let asleep = state.step(Input::AgentAsleep, now).unwrap();
    let cancelled = |effect: &Effect| matches!(effect, Effect::Log(LogEffect::Cancelled(_)));
    assert!(asleep.then.iter().any(cancelled) && !asleep.has_agent(&AgentEffect::Attach));
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

fn ends_as(step: &Step) -> Option<(TurnOutcome, &str)> {
    step.then.iter().find_map(|effect| match effect {
        Effect::Log(LogEffect::Change(EntryChange::Begin(ChatEntry::Turn(turn)))) => {
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
        let step = state.step(picture(quarter), now).unwrap();
        assert_eq!(step.then.len(), 1, "{step:.200?}");
    }
    let step = state.step(picture(quarter), now).unwrap();
    assert!(step.has_agent(&AgentEffect::Cancel), "{step:.200?}");
    // Later output is dropped, before the turn ends and after it.
    assert_eq!(state.step(picture(1), now).unwrap(), Step::default());
    let answered = Input::Answered {
        turn: 1,
        result: Ok(serde_json::json!({"stopReason": "cancelled"})),
    };
    let step = state.step(answered, now).unwrap();
    let (outcome, why) = ends_as(&step).unwrap();
    assert!(outcome == TurnOutcome::Failed && why.contains("128 MiB"));
    assert!(!step.has_agent(&AgentEffect::Kill));
    assert_eq!(state.step(picture(1), now).unwrap(), Step::default());
    let mut next = with_queued(None);
    std::mem::swap(&mut state.queue, &mut next.queue);
    state.step(Input::ResumeQueue, now).unwrap();
    assert_eq!(state.step(picture(1), now).unwrap().then.len(), 1);
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
    let step = state.step(text, now).unwrap();
    assert!(step.has_agent(&AgentEffect::Cancel), "{step:.200?}");
    let step = state.step(Input::CancelUnanswered, now).unwrap();
    assert_eq!(step.then, [Effect::Agent(AgentEffect::Kill)]);
    let reason = "Connection lost.".to_owned();
    let step = state.step(Input::AgentLost { reason }, now).unwrap();
    let (outcome, why) = ends_as(&step).unwrap();
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
    let step = state.step(text_update(" more"), now).unwrap();
    let Ok([Effect::Log(LogEffect::Amend { entry_id, update })]) = <[_; 1]>::try_from(step.then)
    else {
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
    let attempts = |step: Result<Step, Refused>| {
        let effects = step.unwrap().then;
        effects
            .iter()
            .filter(|effect| **effect == Effect::Agent(AgentEffect::Attach))
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
