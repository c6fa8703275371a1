//! A recording with the expectation at each moment, and the power cuts to check.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::Result;
use serde_json::Value;
use testkit::ServerSetup;

use crate::power_cut::crash_models::{Cut, Model};
use crate::power_cut::disk::{Change, Step};
use crate::power_cut::expected::Expected;
use crate::power_cut::messages::Message;
use crate::power_cut::random::Random;
use crate::power_cut::recording::Recording;
use crate::power_cut::state::State;

/// The search stops after this many rounds without a new state.
const POOR_ROUNDS: usize = 6;

pub(crate) struct Replay {
    pub(crate) name: &'static str,
    /// The home directory of the recorded servers.
    pub(crate) setup: ServerSetup,
    pub(crate) recording: Recording,
    /// By number of steps: the expectation before each request that follows, and the one after all of them.
    expected: Vec<Vec<Arc<Expected>>>,
    pub(crate) eventually: Arc<Expected>,
    /// Numbers of steps after which the server acknowledged something.
    acknowledged: Vec<usize>,
    /// Numbers of steps after which power is cut.
    moments: Vec<usize>,
    ignores_syncs: bool,
}

/// A state to start a server in, and the expectations at all moments that can leave this state.
pub(crate) struct Case {
    pub(crate) steps: usize,
    pub(crate) model: Model,
    pub(crate) choice: usize,
    pub(crate) expected: Vec<Arc<Expected>>,
}

impl Replay {
    /// Builds a replay; `before` is the expectation at the beginning of the recording.
    pub(crate) fn new(
        name: &'static str,
        setup: ServerSetup,
        recording: Recording,
        before: Expected,
    ) -> Result<Self> {
        let mut now = before;
        let mut expected = vec![];
        let mut acknowledged = vec![];
        let mut messages = recording.messages.iter().peekable();
        for steps in 0..=recording.disk.steps.len() {
            if let Some(last) = steps.checked_sub(1) {
                for line in audited(&recording, recording.disk.steps[last]) {
                    now.audit(&line);
                }
            }
            let mut moments = vec![];
            let mut is_acknowledged = false;
            while let Some((_, said)) = messages.next_if(|(at, _)| *at == steps) {
                if matches!(said, Message::Asked(..)) {
                    moments.push(Arc::new(now.clone()));
                }
                is_acknowledged |= acknowledges(said);
                now.take(said)?;
            }
            moments.push(Arc::new(now.clone()));
            expected.push(moments);
            if is_acknowledged {
                acknowledged.push(steps);
            }
        }
        Ok(Self {
            name,
            setup,
            recording,
            moments: (1..expected.len()).collect(),
            expected,
            eventually: Arc::new(now),
            acknowledged,
            ignores_syncs: false,
        })
    }

    /// Restricts the cuts to a range of steps.
    pub(crate) fn between(mut self, first: usize, last: usize) -> Self {
        self.moments.retain(|steps| (first..=last).contains(steps));
        self.acknowledged
            .retain(|steps| (first..=last).contains(steps));
        self
    }

    /// Treats every sync as if it had no effect.
    pub(crate) fn ignoring_syncs(mut self) -> Self {
        self.ignores_syncs = true;
        self
    }

    pub(crate) fn cut(&self, steps: usize, model: Model) -> Cut<'_> {
        Cut::new(&self.recording.disk, steps, model, self.ignores_syncs)
    }

    pub(crate) fn state(&self, case: &Case, seed: u64) -> State {
        let cut = self.cut(case.steps, case.model);
        cut.state(&cut.choice(case.choice, seed))
    }

    /// Returns up to `count` distinct states, half of them right after an acknowledgement, and the number of states
    /// tried.
    pub(crate) fn cases(&self, count: usize, seed: u64) -> (Vec<Case>, usize) {
        let mut random = Random::new(seed);
        let mut found: HashMap<u64, Case> = HashMap::new();
        let mut made = 0;
        for (moments, wanted) in [(&self.acknowledged, count / 2), (&self.moments, count)] {
            let models = |steps: &usize| Model::ALL.map(|model| (*steps, model));
            let mut pairs: Vec<(usize, Model)> = moments.iter().flat_map(models).collect();
            let (mut choice, mut poor) = (0, 0);
            while found.len() < wanted && poor < POOR_ROUNDS {
                let before = found.len();
                random.shuffle(&mut pairs);
                for (steps, model) in &pairs {
                    if found.len() == wanted {
                        break;
                    }
                    let case = Case {
                        steps: *steps,
                        model: *model,
                        choice,
                        expected: vec![],
                    };
                    made += 1;
                    let digest = self.state(&case, seed).digest();
                    let known = found.entry(digest).or_insert(case);
                    known.expected.extend(self.expected[*steps].iter().cloned());
                }
                poor = if found.len() == before { poor + 1 } else { 0 };
                choice += 1;
            }
        }
        let mut cases: Vec<Case> = found.into_values().collect();
        for case in &mut cases {
            case.expected.sort_by_key(Arc::as_ptr);
            case.expected.dedup_by(|one, other| Arc::ptr_eq(one, other));
        }
        cases.sort_by_key(|case| (case.steps, case.model, case.choice));
        (cases, made)
    }

    /// Describes the moment of a case and the files in its state, for a report.
    pub(crate) fn describe(&self, case: &Case, seed: u64) -> String {
        let steps = &self.recording.disk.steps[..case.steps];
        let last = steps.len().saturating_sub(6);
        let done: Vec<String> = steps[last..]
            .iter()
            .map(|step| self.recording.disk.describe(*step))
            .collect();
        let pending = self.cut(case.steps, case.model).pending();
        let shown = self
            .recording
            .messages
            .iter()
            .filter(|(at, _)| *at <= case.steps);
        let shown: Vec<String> = shown.map(|(_, message)| brief(message)).collect();
        let shown = &shown[shown.len().saturating_sub(4)..];
        format!(
            "{} after {} of {} steps, {:?}, choice {} of seed {seed}\n  done: {}\n  not durable: {}\n  shown: {}\n  files:{}",
            self.name,
            case.steps,
            self.recording.disk.steps.len(),
            case.model,
            case.choice,
            done.join("; "),
            pending.join("; "),
            shown.join(" | "),
            self.state(case, seed).describe(),
        )
    }

    /// The expectation after this number of steps.
    pub(crate) fn expected_at(&self, steps: usize) -> &Expected {
        let last = self.expected.get(steps).and_then(|moments| moments.last());
        last.unwrap_or(&self.eventually)
    }
}

/// Lines that a step wrote to the audit.
fn audited(recording: &Recording, step: Step) -> Vec<String> {
    let Step::Done(number) = step else {
        return vec![];
    };
    let operation = &recording.disk.operations[number];
    match &operation.change {
        Change::Write { bytes, .. }
            if [" audit.jsonl", " audit.refused.jsonl"]
                .iter()
                .any(|name| operation.call.ends_with(name)) =>
        {
            let text = String::from_utf8_lossy(bytes);
            text.lines().map(str::to_owned).collect()
        }
        _ => vec![],
    }
}

fn acknowledges(message: &Message) -> bool {
    const ANSWERS: [&str; 8] = [
        "project:added",
        "session:created",
        "session:archived",
        "session:unarchived",
        "session:deleted",
        "session:title-updated",
        "session:complete",
        "session:cancelled",
    ];
    match message {
        Message::Ready(_) | Message::Kept(_) => true,
        Message::Asked(..) => false,
        Message::Shown(_, message) => {
            let queue = message["info"]["queue"].as_array();
            let is_answer = message["type"]
                .as_str()
                .is_some_and(|kind| ANSWERS.contains(&kind));
            let entry = &message["entry"]["type"];
            is_answer
                || entry == "turn"
                || entry == "user"
                || queue.is_some_and(|queue| !queue.is_empty())
                || message["event"] == "chat.final"
                || message["result"].is_object()
        }
    }
}

fn brief(message: &Message) -> String {
    let kind = |message: &Value| {
        let words = ["type", "method", "event"];
        let kind = words.iter().find_map(|word| message[word].as_str());
        let entry = message["entry"]["type"].as_str().unwrap_or_default();
        format!("{} {entry}", kind.unwrap_or("answer"))
    };
    match message {
        Message::Ready(_) => "ready".to_owned(),
        Message::Kept(_) => "picture kept".to_owned(),
        Message::Asked(_, message) => format!("asked {}", kind(message)),
        Message::Shown(_, message) => format!("shown {}", kind(message)),
    }
}
