//! Open elicitations: forms and URLs that the agent wants the user to complete.

use std::collections::HashMap;

use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use uuid::Uuid;
use wire::QuestionOutcome;

use super::{INTERNAL_ERROR, INVALID_PARAMS};
use crate::session::state::Input;
use crate::session::task::TaskReport;
use agents::{Answer, elicitation};

/// Maximum open elicitations per session.
const ELICITATIONS_MAX: usize = 16;

/// By question id, each with the subtask that waits for the agent to withdraw it.
#[derive(Default)]
pub(super) struct Elicitations(HashMap<String, (Answer, AbortHandle)>);

impl Elicitations {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Opens an elicitation, or refuses it.
    pub(super) fn open(
        &mut self,
        params: &Value,
        answer: Answer,
        reports: &mpsc::Sender<TaskReport>,
    ) -> Option<Input> {
        if self.0.len() >= ELICITATIONS_MAX {
            let message = "too many elicitations are open in this session";
            answer.refuse(INTERNAL_ERROR, message);
            return None;
        }
        let asked = match elicitation::read(params) {
            Ok(asked) => Box::new(asked),
            Err(reason) => {
                answer.refuse(INVALID_PARAMS, &reason);
                return None;
            }
        };
        let question_id = Uuid::new_v4().to_string();
        let (reports, id, withdrawn) = (reports.clone(), question_id.clone(), answer.withdrawn());
        let waiting = tokio::spawn(async move {
            withdrawn.await;
            let withdrawn = Input::ElicitationWithdrawn { question_id: id };
            let _ = reports.send(TaskReport::Input(withdrawn)).await;
        });
        let open = (answer, waiting.abort_handle());
        self.0.insert(question_id.clone(), open);
        Some(Input::ElicitationRequested { question_id, asked })
    }

    pub(super) fn answer(
        &mut self,
        question_id: &str,
        outcome: QuestionOutcome,
        answers: Option<&Map<String, Value>>,
    ) {
        if let Some((answer, waiting)) = self.0.remove(question_id) {
            waiting.abort();
            answer.succeed(elicitation::answer(outcome, answers));
        }
    }
}
