//! Inputs of a session's state.

use jiff::Timestamp;
use serde_json::{Map, Value};
use wire::{AttachProblem, PermissionOption, PermissionPolicy, QuestionAction, QueuedMessage};

use super::offer::ConfigChoice;
use agents::TerminalOutput;
use agents::elicitation::Elicitation;
use conversation::{ToolCallPatch, Update};
use store::transcript::Chosen;

/// An event for a session.
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
    /// Cancels the running turn; with a request id, only if the turn was started by that request.
    Cancel {
        only: Option<String>,
    },
    /// A client opened the session, so its agent should open it, too.
    ClientOpened,
    /// The user retries opening the session. An attempt in progress began before the user fixed the problem, for
    /// example by signing in, so another attempt follows if it fails.
    TryAgain,
    /// The agent has opened the session.
    Attached {
        answer: Value,
        takes_images: bool,
        /// Config choices that were sent again afterwards, with the agent's answers.
        chosen: Vec<(ConfigChoice, Value)>,
    },
    AttachFailed(AttachProblem),
    Update(Update),
    /// Output or exit of a terminal that the agent created.
    Terminal(TerminalOutput),
    /// The answer to the prompt of this turn.
    Answered {
        turn: u64,
        result: Result<Value, String>,
    },
    /// The agent process was ended because it was idle; requests since its last event have not reached it.
    AgentAsleep,
    AgentLost {
        reason: String,
    },
    PermissionRequested {
        permission_id: String,
        patch: Box<ToolCallPatch>,
        options: Vec<PermissionOption>,
        /// Whether the request needs the user's answer under any approval policy.
        guarded: bool,
    },
    PermissionAnswered {
        permission_id: String,
        option_id: String,
    },
    /// The agent sent an elicitation.
    ElicitationRequested {
        question_id: String,
        asked: Box<Elicitation>,
    },
    ElicitationAnswered {
        question_id: String,
        action: QuestionAction,
        content: Option<Map<String, Value>>,
    },
    /// The agent withdrew an elicitation.
    ElicitationWithdrawn {
        question_id: String,
    },
    /// The agent reports that the user has completed a URL elicitation.
    Visited {
        elicitation_id: String,
    },
    SetPolicy(PermissionPolicy),
    /// The agent accepted a config choice.
    ChoiceAccepted {
        choice: ConfigChoice,
        answer: Value,
    },
    /// No agent event has arrived since this time, and the silence limit has passed.
    Quiet {
        since: Timestamp,
    },
    /// The agent has not answered a cancel in time.
    CancelUnanswered,
    /// The server stops, or the session is deleted.
    Stop {
        deleted: bool,
    },
}

/// The state of a session when its task starts.
#[derive(Debug)]
pub(crate) struct InitialState {
    /// Number of entries.
    pub(crate) total: u64,
    pub(crate) titled: bool,
    pub(crate) failed: bool,
    pub(crate) policy: PermissionPolicy,
    pub(crate) chosen: Chosen,
    pub(crate) queue: Vec<QueuedMessage>,
    pub(crate) accepted: Vec<String>,
    pub(crate) restarts_when_quiet: bool,
}
