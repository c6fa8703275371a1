//! `web/types/wire.d.ts` matches the Rust types.

use std::path::Path;

use ts_rs::{Config, TS};

fn generated() -> String {
    let config = Config::default();
    let mut text =
        String::from("// Generated from crates/wire by `cargo xtask types`. Do not edit.\n");
    let mut declare = |declaration: String, docs: Option<String>| {
        text.push('\n');
        text.push_str(docs.as_deref().unwrap_or_default());
        text.push_str("export ");
        text.push_str(&declaration);
        text.push('\n');
    };
    macro_rules! declare {
        ($($name:ident),*) => { $(declare(wire::$name::decl(&config), wire::$name::docs());)* };
    }
    declare!(
        Identity,
        SignIn,
        SignedIn,
        ProofFrame,
        Project,
        AgentState,
        SignInKind,
        SignInMethod,
        SignInShown,
        AgentReadiness,
        AgentSummary,
        InstallState,
        AgentMemory,
        TrafficSide,
        TrafficFrame,
        PermissionPolicy,
        ErrorCode,
        FolderSuggestion,
        Author,
        MediaBlock,
        NoticeSeverity,
        PlanPriority,
        PlanStatus,
        PlanItem,
        Location,
        TerminalExit,
        ToolContent,
        ToolKind,
        ToolStatus,
        ToolCallEntry,
        TurnOutcome,
        TurnEntry,
        TextFormat,
        FieldOption,
        FieldInput,
        FormField,
        Ask,
        QuestionOutcome,
        QuestionEntry,
        QuestionAction,
        OpenQuestion,
        ChatEntry,
        SessionState,
        SessionListItem,
        TurnPhase,
        RunningTurn,
        AttachProblem,
        Attachment,
        QueuedMessage,
        PermissionOption,
        PermissionQuestion,
        SlashCommand,
        Mode,
        Modes,
        ContextUsage,
        SessionInfo,
        Position,
        RenderedPart,
        ColouredDiff,
        Rendered,
        ClientMessage,
        ClientFrame,
        ServerMessage
    );
    text
}

#[test]
fn browser_types_match_the_rust_types() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/types/wire.d.ts");
    let generated = generated();
    if std::env::var_os("UPDATE_TYPES").is_some() {
        std::fs::write(&path, &generated).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == generated,
        "web/types/wire.d.ts is out of date: run `cargo xtask types`\n{generated}"
    );
}
