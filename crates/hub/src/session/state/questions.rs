//! What the agent has asked the person, until it is answered or nobody wants to know any more, and what follows from it.

use serde_json::{Map, Value};
use wire::{
    Ask, ChatEntry, ErrorCode, OpenQuestion, QuestionAction, QuestionEntry, QuestionOutcome,
    TurnPhase,
};

use super::inputs::{Effect, Refused};
use super::{Now, State, stamp};
use agents::elicitation;
use conversation::EntryChange;

/// What a list shows of a question; the entry has all of it.
const SHOWN_CHARS: usize = 500;
/// Visits that we remember for the agent to say that they are over.
const VISITS_MAX: usize = 16;

#[derive(Debug, Clone, Default)]
pub(super) struct Questions {
    open: Vec<Open>,
    /// Pages the person went to, the agent still waits for.
    visits: Vec<Open>,
}

#[derive(Debug, Clone)]
struct Open {
    entry: QuestionEntry,
    elicitation_id: Option<String>,
}

impl Questions {
    pub(super) fn push(&mut self, entry: QuestionEntry, elicitation_id: Option<String>) {
        self.open.push(Open {
            entry,
            elicitation_id,
        });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn find(&self, question_id: &str) -> Option<&QuestionEntry> {
        let mut entries = self.open.iter().map(|asked| &asked.entry);
        entries.find(|entry| entry.question_id == question_id)
    }

    pub(super) fn all(&self) -> Vec<QuestionEntry> {
        self.open.iter().map(|asked| asked.entry.clone()).collect()
    }

    pub(super) fn shown(&self) -> Vec<OpenQuestion> {
        let shown = |Open { entry, .. }: &Open| OpenQuestion {
            question_id: entry.question_id.clone(),
            entry_id: entry.entry_id.clone(),
            message: entry.message.chars().take(SHOWN_CHARS).collect(),
            asked_at: entry.timestamp.clone(),
        };
        self.open.iter().map(shown).collect()
    }

    /// Ends one question; `None` if it is not open.
    pub(super) fn close(
        &mut self,
        question_id: &str,
        outcome: QuestionOutcome,
        answers: Option<Map<String, Value>>,
    ) -> Option<QuestionEntry> {
        let is_it = |asked: &Open| asked.entry.question_id == question_id;
        let at = self.open.iter().position(is_it)?;
        let mut asked = self.open.remove(at);
        asked.entry.outcome = Some(outcome);
        asked.entry.answers = answers;
        let entry = asked.entry.clone();
        if outcome == QuestionOutcome::Accepted && asked.elicitation_id.is_some() {
            self.visits.push(asked);
            let forgotten = self.visits.len().saturating_sub(VISITS_MAX);
            self.visits.drain(..forgotten);
        }
        Some(entry)
    }

    /// Ends all of them.
    pub(super) fn close_all(&mut self, outcome: QuestionOutcome) -> Vec<QuestionEntry> {
        let ids: Vec<String> = self.all().into_iter().map(|it| it.question_id).collect();
        ids.iter()
            .filter_map(|id| self.close(id, outcome, None))
            .collect()
    }

    /// The id of the open question that this visit was asked for by.
    pub(super) fn asked_as(&self, elicitation_id: &str) -> Option<String> {
        let is_it = |asked: &&Open| asked.elicitation_id.as_deref() == Some(elicitation_id);
        self.open
            .iter()
            .find(is_it)
            .map(|asked| asked.entry.question_id.clone())
    }

    /// The agent says that the person is done there.
    pub(super) fn visited(&mut self, elicitation_id: &str) -> Option<EntryChange> {
        let is_it = |asked: &Open| asked.elicitation_id.as_deref() == Some(elicitation_id);
        let at = self.visits.iter().position(is_it)?;
        let mut entry = self.visits.remove(at).entry;
        if let Ask::Link { finished, .. } = &mut entry.ask {
            *finished = true;
        }
        Some(EntryChange::Replace(ChatEntry::Question(entry)))
    }

    /// Nobody will say of a visit that it is over.
    pub(super) fn forget_visits(&mut self) {
        self.visits.clear();
    }
}

impl State {
    pub(super) fn question(
        &mut self,
        question_id: String,
        asked: elicitation::Asked,
        now: Now,
        effects: &mut Vec<Effect>,
    ) {
        // While the agent tells everything again, what is asked has no place; while it stops, no use. Nor has one more after
        // far too many.
        if self.is_flooded() || self.is_attaching() || self.phase() == Some(TurnPhase::Cancelling) {
            effects.push(Effect::AnswerQuestion {
                question_id,
                outcome: QuestionOutcome::Cancelled,
                answers: None,
            });
            return;
        }
        let mut entry = QuestionEntry {
            entry_id: String::new(),
            question_id,
            message: asked.message,
            ask: asked.ask,
            outcome: None,
            answers: None,
            timestamp: stamp(now.at),
        };
        let changes = self.entries.ask(&mut entry);
        self.change(changes, effects);
        self.questions.push(entry, asked.elicitation_id);
        effects.push(Effect::Info);
    }

    pub(super) fn answer_question(
        &mut self,
        question_id: &str,
        action: QuestionAction,
        content: Option<Map<String, Value>>,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Refused> {
        let Some(question) = self.questions.find(question_id) else {
            return Err(Refused::new(
                ErrorCode::SessionBusy,
                "That question has been answered, or is no longer asked.",
            ));
        };
        let (outcome, answers) = match (action, &question.ask) {
            (QuestionAction::Accept, Ask::Form { fields, .. }) => {
                let checked = elicitation::check(fields, content.unwrap_or_default());
                let invalid =
                    |reason: String| Refused::new(ErrorCode::InvalidMessage, reason.as_str());
                (QuestionOutcome::Accepted, Some(checked.map_err(invalid)?))
            }
            (QuestionAction::Accept, Ask::Link { .. }) => (QuestionOutcome::Accepted, None),
            (QuestionAction::Decline, _) => (QuestionOutcome::Declined, None),
            (QuestionAction::Cancel, _) => (QuestionOutcome::Cancelled, None),
        };
        self.close_question(question_id, outcome, answers, effects);
        Ok(())
    }

    pub(super) fn close_question(
        &mut self,
        question_id: &str,
        outcome: QuestionOutcome,
        answers: Option<Map<String, Value>>,
        effects: &mut Vec<Effect>,
    ) {
        let closed = self.questions.close(question_id, outcome, answers);
        effects.extend(closed.into_iter().flat_map(told_to_all));
    }

    pub(super) fn close_questions(&mut self, outcome: QuestionOutcome, effects: &mut Vec<Effect>) {
        let closed = self.questions.close_all(outcome);
        effects.extend(closed.into_iter().flat_map(told_to_all));
    }
}

/// First to those who watch, then to the agent.
fn told_to_all(closed: QuestionEntry) -> [Effect; 3] {
    let answer = Effect::AnswerQuestion {
        question_id: closed.question_id.clone(),
        outcome: closed.outcome.unwrap_or(QuestionOutcome::Cancelled),
        answers: closed.answers.clone(),
    };
    let change = EntryChange::Replace(ChatEntry::Question(closed));
    [Effect::Change(change), answer, Effect::Info]
}
