//! What can happen to a session, and what may follow from it.

use jiff::Timestamp;
use serde_json::{Map, Value};
use wire::{
    AttachProblem, ErrorCode, PermissionOption, PermissionPolicy, QuestionAction, QuestionOutcome,
    QueuedMessage,
};

use super::offer::Choice;
use agents::TerminalOutput;
use agents::elicitation::Asked;
use conversation::EntryChange;
use conversation::{ToolCallPatch, Update};
use store::transcript::Chosen;

/// What happens to a session.
#[derive(Debug)]
pub(crate) enum Input {
    Send(QueuedMessage),
    EditQueued {
        queue_id: String,
        content: String,
    },
    RemoveQueued {
        queue_id: String,
    },
    ResumeQueue,
    /// The turn that runs; with a request id, only if it came of that request.
    Cancel {
        only: Option<String>,
    },
    /// Somebody looks at it, so its agent should have it.
    Watched,
    /// The same, asked for by a person. What they did about it, such as signing in, is not in a try that is under way.
    TryAgain,
    /// The agent has it open; the value is its answer.
    Attached {
        answer: Value,
        takes_images: bool,
        /// What it was told again afterwards, with its answers.
        chosen: Vec<(Choice, Value)>,
    },
    AttachFailed(AttachProblem),
    Update(Update),
    /// A command that runs for the agent has more to show.
    Terminal(TerminalOutput),
    /// The answer to the prompt of this turn.
    Answered {
        turn: u64,
        result: Result<Value, String>,
    },
    /// What was asked of the agent since it was last heard has not reached it.
    AgentAsleep,
    AgentLost {
        reason: String,
    },
    PermissionAsked {
        permission_id: String,
        patch: Box<ToolCallPatch>,
        options: Vec<PermissionOption>,
        /// A person is asked, whatever the policy.
        guarded: bool,
    },
    PermissionAnswered {
        permission_id: String,
        option_id: String,
    },
    /// The agent asks the person something that is not about permission.
    QuestionAsked {
        question_id: String,
        asked: Box<Asked>,
    },
    QuestionAnswered {
        question_id: String,
        action: QuestionAction,
        content: Option<Map<String, Value>>,
    },
    /// The agent no longer wants to know.
    QuestionWithdrawn {
        question_id: String,
    },
    /// The person is done with a page, says the agent.
    Visited {
        elicitation_id: String,
    },
    SetPolicy(PermissionPolicy),
    /// The agent agreed; the value is its answer.
    Chose {
        choice: Choice,
        answer: Value,
    },
    /// The agent has said nothing for long, since then.
    Quiet {
        since: Timestamp,
    },
    /// A cancel was not answered.
    CancelUnanswered,
    /// The server stops.
    Stop {
        /// The session is deleted.
        for_good: bool,
    },
}

/// What is to be done about it.
#[derive(Debug, PartialEq)]
pub(crate) enum Effect {
    /// Number it, write it, show it.
    Change(EntryChange),
    /// An entry of an earlier turn changes, and is shown whole.
    Amend {
        entry_id: String,
        update: Box<Update>,
    },
    /// Where the sender's request id belongs to the next change.
    Origin,
    /// A turn begins; from now on a crash interrupts it.
    TurnBegins,
    /// These entries are final.
    Complete(String),
    Cancelled(String),
    /// Everything shown so far is finished.
    Fold,
    /// What is beside the conversation has changed.
    Info,
    Title(String),
    Touch,
    SaveQueue,
    SavePolicy,
    SaveChosen,
    Attach,
    Prompt {
        turn: u64,
        message: QueuedMessage,
    },
    CancelPrompt,
    /// `None` is the protocol's `cancelled`.
    AnswerPermission {
        permission_id: String,
        option_id: Option<String>,
        by_policy: bool,
    },
    AnswerQuestion {
        question_id: String,
        outcome: QuestionOutcome,
        answers: Option<Map<String, Value>>,
    },
    RestartAgent,
}

/// Why a request was refused; nothing has changed.
#[derive(Debug, PartialEq)]
pub(crate) struct Refused {
    pub(crate) code: ErrorCode,
    pub(crate) message: String,
}

/// What is known of a session when its actor starts.
#[derive(Debug)]
pub(crate) struct Known {
    /// How many entries there are.
    pub(crate) total: u64,
    pub(crate) titled: bool,
    pub(crate) failed: bool,
    pub(crate) policy: PermissionPolicy,
    pub(crate) chosen: Chosen,
    pub(crate) queue: Vec<QueuedMessage>,
    pub(crate) accepted: Vec<String>,
    pub(crate) restarts_when_quiet: bool,
}

impl Refused {
    pub(super) fn new(code: ErrorCode, message: &str) -> Self {
        Self {
            code,
            message: message.to_owned(),
        }
    }
}
