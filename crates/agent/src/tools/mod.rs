//! The agent's tools, used by both the model and the slash commands.
//!
//! If the client supports them, its file and terminal methods are used, so that an editor sees the changes and the
//! agent sees unsaved text. Otherwise the agent accesses files and runs commands itself. In both cases paths must be
//! inside the session's directories, and writing files and running commands need permission.

mod edit_file;
mod list_files;
mod paths;
mod read_file;
mod run_command;
mod search;
pub(crate) mod update_plan;

use agent_client_protocol_schema::v1 as acp;
pub(crate) use paths::Roots;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::store::Mode;
use crate::turn::{Stop, Turn};
use crate::turn_output::Outcome;

/// A tool as described to the model.
pub(crate) struct Offered {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) schema: Value,
}

pub(crate) fn offered() -> Vec<Offered> {
    vec![
        list_files::offered(),
        read_file::offered(),
        search::offered(),
        edit_file::offered(),
        run_command::offered(),
        update_plan::offered(),
    ]
}

/// Runs a tool by its name and returns its outcome.
pub(crate) async fn run(turn: &mut Turn, name: &str, input: Value) -> Result<Outcome, Stop> {
    match name {
        list_files::NAME => list_files::run(turn, input).await,
        read_file::NAME => read_file::run(turn, input).await,
        search::NAME => search::run(turn, input).await,
        edit_file::NAME => edit_file::run(turn, input).await,
        run_command::NAME => run_command::run(turn, input).await,
        update_plan::NAME => update_plan::run(turn, input).await,
        _ => {
            let outcome = Outcome::failed(format!("There is no tool `{name}`."));
            refuse(turn, name, acp::ToolKind::Other, input, &outcome).await?;
            Ok(outcome)
        }
    }
}

/// Starts a tool call. If the input is invalid, the call is ended as failed and the outcome returned.
async fn begin<T: DeserializeOwned>(
    turn: &mut Turn,
    name: &str,
    kind: acp::ToolKind,
    input: Value,
    title: impl FnOnce(&T) -> String,
) -> Result<Result<T, Outcome>, Stop> {
    match serde_json::from_value::<T>(input.clone()) {
        Ok(parsed) => {
            turn.output
                .begin_call(name, title(&parsed), kind, input)
                .await?;
            Ok(Ok(parsed))
        }
        Err(error) => {
            let outcome = Outcome::failed(format!("Invalid input: {error}"));
            refuse(turn, name, kind, input, &outcome).await?;
            Ok(Err(outcome))
        }
    }
}

async fn refuse(
    turn: &mut Turn,
    name: &str,
    kind: acp::ToolKind,
    input: Value,
    outcome: &Outcome,
) -> Result<(), Stop> {
    turn.output
        .begin_call(name, name.to_owned(), kind, input)
        .await?;
    turn.output.end_call(outcome, true).await
}

/// Marks the tool call as in progress, with the file it works on.
async fn mark_in_progress(turn: &mut Turn, path: Option<&std::path::Path>) -> Result<(), Stop> {
    let mut fields = acp::ToolCallUpdateFields::new().status(acp::ToolCallStatus::InProgress);
    if let Some(path) = path {
        fields = fields.locations(vec![acp::ToolCallLocation::new(path)]);
    }
    turn.output.change_call(fields).await
}

const ALLOW_ONCE: &str = "allow_once";
const ALLOW_ALWAYS: &str = "allow_always";
const REJECT_ONCE: &str = "reject_once";

/// Asks for permission for the running tool call. Returns `None` if it may continue, otherwise the
/// failed outcome.
async fn permission(turn: &mut Turn, tool: &str) -> Result<Option<Outcome>, Stop> {
    match turn.meta.mode {
        Mode::Auto => return Ok(None),
        Mode::Plan => {
            let why =
                "This session is in plan mode: writing files and running commands is not allowed.";
            return Ok(Some(Outcome::failed(why)));
        }
        Mode::Ask if turn.session.allows(tool) => return Ok(None),
        Mode::Ask => {}
    }
    let Some(call) = turn.output.open_call().cloned() else {
        return Ok(Some(Outcome::failed("There is no tool call to approve.")));
    };
    let option = |id: &str, name: &str, kind| acp::PermissionOption::new(id.to_owned(), name, kind);
    let options = vec![
        option(ALLOW_ONCE, "Allow", acp::PermissionOptionKind::AllowOnce),
        option(
            ALLOW_ALWAYS,
            "Allow for this session",
            acp::PermissionOptionKind::AllowAlways,
        ),
        option(REJECT_ONCE, "Reject", acp::PermissionOptionKind::RejectOnce),
    ];
    let link = &turn.output.link;
    // The request repeats the whole tool call, because some clients show nothing else.
    let fields = acp::ToolCallUpdateFields::new()
        .title(call.title)
        .kind(call.kind)
        .status(acp::ToolCallStatus::Pending)
        .content(call.content)
        .locations(call.locations)
        .raw_input(call.raw_input);
    let tool_call = acp::ToolCallUpdate::new(call.tool_call_id, fields);
    let request = acp::RequestPermissionRequest::new(link.acp_session(), tool_call, options);
    let answer: Result<acp::RequestPermissionResponse, _> =
        link.request("session/request_permission", request).await;
    let outcome = match answer {
        Ok(answer) => answer.outcome,
        Err(error) => {
            let why = format!("The client could not ask for permission: {}", error.message);
            return Ok(Some(Outcome::failed(why)));
        }
    };
    match outcome {
        acp::RequestPermissionOutcome::Selected(chosen) => match &*chosen.option_id.0 {
            ALLOW_ONCE => Ok(None),
            ALLOW_ALWAYS => {
                turn.session.allow_always(tool);
                Ok(None)
            }
            _ => Ok(Some(Outcome::failed("The user rejected this."))),
        },
        _ => Err(Stop::Cancelled),
    }
}

fn schema(properties: Value, required: &[&str]) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}
