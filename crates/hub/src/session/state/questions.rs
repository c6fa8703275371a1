//! Elicitations of the agent, from the request until they are answered, cancelled or withdrawn. On the wire they are
//! called questions.

use serde_json::{Map, Value};
use wire::{
    Ask, ChatEntry, ErrorCode, OpenQuestion, QuestionAction, QuestionEntry, QuestionOutcome,
    TurnPhase,
};

use super::{AgentEffect, Now, Refused, State, Step, stamp};
use agents::elicitation;
use conversation::EntryChange;

/// Maximum characters of the message in `SessionInfo`; the entry has the whole message.
const SHOWN_CHARS: usize = 500;
/// Maximum accepted URL elicitations whose completion the agent can still report.
const VISITS_MAX: usize = 16;

#[derive(Debug, Clone, Default)]
pub(super) struct Elicitations {
    open: Vec<Open>,
    /// Accepted URL elicitations whose completion the agent has not reported.
    visits: Vec<Open>,
}

#[derive(Debug, Clone)]
struct Open {
    entry: QuestionEntry,
    /// The agent's id, if it is a URL elicitation.
    elicitation_id: Option<String>,
}

impl Elicitations {
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
        let mut entries = self.open.iter().map(|open| &open.entry);
        entries.find(|entry| entry.question_id == question_id)
    }

    pub(super) fn all(&self) -> Vec<QuestionEntry> {
        self.open.iter().map(|open| open.entry.clone()).collect()
    }

    pub(super) fn summaries(&self) -> Vec<OpenQuestion> {
        let summary = |Open { entry, .. }: &Open| OpenQuestion {
            question_id: entry.question_id.clone(),
            entry_id: entry.entry_id.clone(),
            message: entry.message.chars().take(SHOWN_CHARS).collect(),
            asked_at: entry.timestamp.clone(),
        };
        self.open.iter().map(summary).collect()
    }

    /// Closes an elicitation; `None` if it is not open.
    pub(super) fn close(
        &mut self,
        question_id: &str,
        outcome: QuestionOutcome,
        answers: Option<Map<String, Value>>,
    ) -> Option<QuestionEntry> {
        let is_it = |open: &Open| open.entry.question_id == question_id;
        let at = self.open.iter().position(is_it)?;
        let mut asked = self.open.remove(at);
        asked.entry.outcome = Some(outcome);
        asked.entry.answers = answers;
        let entry = asked.entry.clone();
        if outcome == QuestionOutcome::Accepted && asked.elicitation_id.is_some() {
            self.visits.push(asked);
            let excess = self.visits.len().saturating_sub(VISITS_MAX);
            self.visits.drain(..excess);
        }
        Some(entry)
    }

    /// Closes all open elicitations.
    pub(super) fn close_all(&mut self, outcome: QuestionOutcome) -> Vec<QuestionEntry> {
        let ids: Vec<String> = self.all().into_iter().map(|it| it.question_id).collect();
        ids.iter()
            .filter_map(|id| self.close(id, outcome, None))
            .collect()
    }

    /// The question id of the open elicitation with this id of the agent.
    pub(super) fn open_with_acp_id(&self, elicitation_id: &str) -> Option<String> {
        let is_it = |open: &&Open| open.elicitation_id.as_deref() == Some(elicitation_id);
        self.open
            .iter()
            .find(is_it)
            .map(|open| open.entry.question_id.clone())
    }

    /// Marks an accepted URL elicitation as completed.
    pub(super) fn complete_visit(&mut self, elicitation_id: &str) -> Option<EntryChange> {
        let is_it = |open: &Open| open.elicitation_id.as_deref() == Some(elicitation_id);
        let at = self.visits.iter().position(is_it)?;
        let mut entry = self.visits.remove(at).entry;
        if let Ask::Link { finished, .. } = &mut entry.ask {
            *finished = true;
        }
        Some(EntryChange::Replace(ChatEntry::Question(entry)))
    }

    /// Forgets accepted URL elicitations: the agent process that would report their completion has ended.
    pub(super) fn forget_visits(&mut self) {
        self.visits.clear();
    }
}

impl State {
    pub(super) fn elicitation_requested(
        &mut self,
        question_id: String,
        asked: elicitation::Elicitation,
        now: Now,
        step: &mut Step,
    ) {
        // Cancelled at once during a replay, after a flood of output, and while the turn is being cancelled.
        if self.is_flooded() || self.is_attaching() || self.phase() == Some(TurnPhase::Cancelling) {
            step.agent(AgentEffect::AnswerElicitation {
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
        self.change(changes, step);
        self.elicitations.push(entry, asked.elicitation_id);
        step.info();
    }

    pub(super) fn answer_elicitation(
        &mut self,
        question_id: &str,
        action: QuestionAction,
        content: Option<Map<String, Value>>,
        step: &mut Step,
    ) -> Result<(), Refused> {
        let Some(question) = self.elicitations.find(question_id) else {
            return Err(Refused::new(
                ErrorCode::SessionBusy,
                "Cannot answer the question: it was answered or cancelled already.",
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
        self.close_elicitation(question_id, outcome, answers, step);
        Ok(())
    }

    pub(super) fn close_elicitation(
        &mut self,
        question_id: &str,
        outcome: QuestionOutcome,
        answers: Option<Map<String, Value>>,
        step: &mut Step,
    ) {
        let closed = self.elicitations.close(question_id, outcome, answers);
        closed.into_iter().for_each(|closed| announce(closed, step));
    }

    pub(super) fn close_elicitations(&mut self, outcome: QuestionOutcome, step: &mut Step) {
        let closed = self.elicitations.close_all(outcome);
        closed.into_iter().for_each(|closed| announce(closed, step));
    }
}

/// Reports a closed elicitation: to subscribers first, then to the agent.
fn announce(closed: QuestionEntry, step: &mut Step) {
    let answer = AgentEffect::AnswerElicitation {
        question_id: closed.question_id.clone(),
        outcome: closed.outcome.unwrap_or(QuestionOutcome::Cancelled),
        answers: closed.answers.clone(),
    };
    let change = EntryChange::Replace(ChatEntry::Question(closed));
    step.change(change);
    step.agent(answer);
    step.info();
}
