//! All types that cross a process boundary, and nothing else.
//!
//! The TypeScript declarations in `web/types/wire.d.ts` are generated from these types, and a test fails
//! if they are out of date.

mod agent;
mod browser;
mod entry;
mod error_code;
pub mod gateway;
mod json_text;
mod project;
mod question;
mod session;
mod sign_in;

pub use agent::{
    AgentMemory, AgentReadiness, AgentState, AgentSummary, InstallState, PermissionPolicy,
    SignInKind, SignInMethod, SignInShown, TrafficFrame, TrafficSide,
};
pub use browser::{
    ClientFrame, ClientMessage, ColouredDiff, FolderSuggestion, Rendered, RenderedPart,
    ServerMessage,
};
pub use entry::{
    Author, ChatEntry, Location, MediaBlock, NoticeSeverity, PlanItem, PlanPriority, PlanStatus,
    TerminalExit, ToolCallEntry, ToolContent, ToolKind, ToolStatus, TurnEntry, TurnOutcome,
};
pub use error_code::ErrorCode;
pub use json_text::JsonText;
pub use project::Project;
pub use question::{
    Ask, FieldInput, FieldOption, FormField, OpenQuestion, QuestionAction, QuestionEntry,
    QuestionOutcome, TextFormat,
};
pub use session::{
    AttachProblem, Attachment, ContextUsage, Mode, Modes, PermissionOption, PermissionQuestion,
    Position, QueuedMessage, RunningTurn, SessionInfo, SessionListItem, SessionState, SlashCommand,
    TurnPhase,
};
pub use sign_in::{Identity, ProofFrame, SignIn, SignedIn};
