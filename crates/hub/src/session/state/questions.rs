//! What the agent has asked the person, until it is answered or nobody wants to know any more.

use wire::{Ask, OpenQuestion, QuestionEntry, QuestionOutcome};

use crate::agents::entries::EntryChange;

/// What a list shows of a question; the entry has all of it.
const SHOWN_CHARS: usize = 500;
/// Visits that we remember for the agent to say that they are over.
const VISITS_MAX: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Questions {
    open: Vec<Asked>,
    /// Pages the person went to, the agent still waits for.
    visits: Vec<Asked>,
}

#[derive(Debug)]
struct Asked {
    entry: QuestionEntry,
    elicitation_id: Option<String>,
}

impl Questions {
    pub(super) fn push(&mut self, entry: QuestionEntry, elicitation_id: Option<String>) {
        self.open.push(Asked {
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
        let shown = |Asked { entry, .. }: &Asked| OpenQuestion {
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
        answers: Option<serde_json::Map<String, serde_json::Value>>,
    ) -> Option<QuestionEntry> {
        let is_it = |asked: &Asked| asked.entry.question_id == question_id;
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
        let is_it = |asked: &&Asked| asked.elicitation_id.as_deref() == Some(elicitation_id);
        self.open
            .iter()
            .find(is_it)
            .map(|asked| asked.entry.question_id.clone())
    }

    /// The agent says that the person is done there.
    pub(super) fn visited(&mut self, elicitation_id: &str) -> Option<EntryChange> {
        let is_it = |asked: &Asked| asked.elicitation_id.as_deref() == Some(elicitation_id);
        let at = self.visits.iter().position(is_it)?;
        let mut entry = self.visits.remove(at).entry;
        if let Ask::Link { finished, .. } = &mut entry.ask {
            *finished = true;
        }
        Some(EntryChange::Replace(wire::ChatEntry::Question(entry)))
    }

    /// Nobody will say of a visit that it is over.
    pub(super) fn forget_visits(&mut self) {
        self.visits.clear();
    }
}
