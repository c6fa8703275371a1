//! Conversion of ACP messages, first of all `session/update`, to [`Update`] and types of `wire`. Pure.
//!
//! Only this module knows the format of these messages. `entries` decides how an update changes a conversation.

use agent_client_protocol_schema::v1 as acp;
use conversation::{SessionChange, ToolCallPatch, Update};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use wire::{
    Author, ContextUsage, JsonText, Location, MediaBlock, Mode, Modes, NoticeSeverity,
    PermissionOption, PlanItem, PlanPriority, PlanStatus, SlashCommand, TerminalExit, ToolContent,
    ToolKind, ToolStatus,
};

/// User messages that agents insert themselves when they replay a conversation.
const INTERRUPTION_TEXTS: [&str; 2] = [
    "[Request interrupted by user]",
    "[Request interrupted by user for tool use]",
];

/// Reads the `params` of a `session/update`: the session id and the update. An error means that the params are invalid;
/// an update of an unknown kind is not an error.
pub fn read(params: &str) -> Result<(String, Update), String> {
    match serde_json::from_str::<acp::SessionNotification>(params) {
        Ok(notification) => Ok((
            notification.session_id.0.to_string(),
            convert(notification.update),
        )),
        Err(error) => read_unknown(params).ok_or_else(|| error.to_string()),
    }
}

fn read_unknown(params: &str) -> Option<(String, Update)> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Envelope<'a> {
        session_id: String,
        #[serde(borrow)]
        update: &'a RawValue,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Kind {
        session_update: String,
    }
    let envelope: Envelope = serde_json::from_str(params).ok()?;
    let kind: Kind = serde_json::from_str(envelope.update.get()).ok()?;
    Some((
        envelope.session_id,
        Update::Unknown {
            kind: kind.session_update,
        },
    ))
}

fn convert(update: acp::SessionUpdate) -> Update {
    match update {
        acp::SessionUpdate::UserMessageChunk(chunk) => chunk_update(Author::User, chunk),
        acp::SessionUpdate::AgentMessageChunk(chunk) => chunk_update(Author::Assistant, chunk),
        acp::SessionUpdate::AgentThoughtChunk(chunk) => chunk_update(Author::Thinking, chunk),
        acp::SessionUpdate::ToolCall(call) => Update::ToolCall(Box::new(announced(call))),
        acp::SessionUpdate::ToolCallUpdate(update) => Update::ToolCall(Box::new(patch(update))),
        acp::SessionUpdate::Plan(plan) => {
            Update::Plan(plan.entries.into_iter().map(plan_item).collect())
        }
        acp::SessionUpdate::AvailableCommandsUpdate(update) => {
            let commands = update.available_commands.into_iter();
            Update::Session(SessionChange::Commands(commands.map(command).collect()))
        }
        acp::SessionUpdate::CurrentModeUpdate(update) => {
            Update::Session(SessionChange::Mode(update.current_mode_id.0.to_string()))
        }
        acp::SessionUpdate::ConfigOptionUpdate(update) => {
            let options = update.config_options.into_iter().map(serde_json::to_value);
            let options = options.filter_map(Result::ok).collect();
            Update::Session(SessionChange::ConfigOptions(options))
        }
        acp::SessionUpdate::UsageUpdate(usage) => {
            Update::Session(SessionChange::Usage(ContextUsage {
                used: usage.used,
                size: usage.size,
                cost: usage
                    .cost
                    .map(|cost| format!("{:.2} {}", cost.amount, cost.currency)),
            }))
        }
        acp::SessionUpdate::SessionInfoUpdate(info) => match info.title.value() {
            Some(title) => Update::Session(SessionChange::Title(title.clone())),
            None if reports_system_error(info.meta.as_ref()) => {
                Update::Session(SessionChange::Failing)
            }
            None => Update::Ignored,
        },
        acp::SessionUpdate::Notice(notice) => Update::Notice {
            severity: match notice.severity {
                acp::NoticeSeverity::Error => NoticeSeverity::Error,
                acp::NoticeSeverity::Warning => NoticeSeverity::Warning,
                _ => NoticeSeverity::Info,
            },
            title: notice.title,
            description: notice.description,
        },
        other => Update::Unknown {
            kind: kind_of(&other),
        },
    }
}

/// Whether Codex reports a failed turn. The response to the prompt reports success even then.
fn reports_system_error(meta: Option<&acp::Meta>) -> bool {
    let status = meta.and_then(|meta| meta.get("codex"));
    status.is_some_and(|codex| codex["threadStatus"]["type"] == "systemError")
}

/// The kind of an update, as the protocol names it.
fn kind_of(update: &acp::SessionUpdate) -> String {
    let kind = serde_json::to_value(update)
        .ok()
        .and_then(|value| Some(value.get("sessionUpdate")?.as_str()?.to_owned()));
    kind.unwrap_or_else(|| "unknown".to_owned())
}

fn chunk_update(author: Author, chunk: acp::ContentChunk) -> Update {
    let message_id = chunk.message_id.map(|id| id.0.to_string());
    match block(chunk.content) {
        Block::Text(text)
            if author == Author::User && INTERRUPTION_TEXTS.contains(&text.trim()) =>
        {
            Update::Interruption
        }
        Block::Text(text) => Update::Text {
            author,
            text,
            message_id,
        },
        Block::Media(block) => Update::Media { author, block },
        Block::Unknown => Update::Unknown {
            kind: "content of an unknown kind".to_owned(),
        },
    }
}

enum Block {
    Text(String),
    Media(MediaBlock),
    Unknown,
}

fn block(content: acp::ContentBlock) -> Block {
    Block::Media(match content {
        acp::ContentBlock::Text(text) => return Block::Text(text.text),
        acp::ContentBlock::Image(image) => MediaBlock::Image {
            mime_type: image.mime_type,
            data: image.data,
        },
        acp::ContentBlock::Audio(audio) => MediaBlock::Audio {
            mime_type: audio.mime_type,
            data: audio.data,
        },
        acp::ContentBlock::ResourceLink(link) => MediaBlock::Link {
            uri: link.uri,
            name: link.title.unwrap_or(link.name),
            description: link.description,
        },
        acp::ContentBlock::Resource(resource) => match resource.resource {
            acp::EmbeddedResourceResource::TextResourceContents(text) => MediaBlock::Resource {
                uri: text.uri,
                mime_type: text.mime_type,
                text: Some(text.text),
            },
            acp::EmbeddedResourceResource::BlobResourceContents(blob) => MediaBlock::Resource {
                uri: blob.uri,
                mime_type: blob.mime_type,
                text: None,
            },
            _ => return Block::Unknown,
        },
        _ => return Block::Unknown,
    })
}

fn announced(call: acp::ToolCall) -> ToolCallPatch {
    let fields = ToolCallPatch {
        tool_call_id: call.tool_call_id.0.to_string(),
        announces: true,
        title: Some(call.title),
        kind: Some(tool_kind(call.kind)),
        status: Some(tool_status(call.status)),
        content: Some(call.content.into_iter().filter_map(tool_content).collect()),
        locations: Some(call.locations.into_iter().map(location).collect()),
        raw_input: call.raw_input.as_ref().map(JsonText::from),
        raw_output: call.raw_output.as_ref().map(JsonText::from),
        ..ToolCallPatch::default()
    };
    with_terminal(fields, call.meta)
}

/// The patch in a `tool_call_update` or in the tool call of a permission request.
pub fn patch(update: acp::ToolCallUpdate) -> ToolCallPatch {
    let fields = ToolCallPatch {
        tool_call_id: update.tool_call_id.0.to_string(),
        title: update.fields.title,
        kind: update.fields.kind.map(tool_kind),
        status: update.fields.status.map(tool_status),
        content: update
            .fields
            .content
            .map(|content| content.into_iter().filter_map(tool_content).collect()),
        locations: update
            .fields
            .locations
            .map(|locations| locations.into_iter().map(location).collect()),
        raw_input: update.fields.raw_input.as_ref().map(JsonText::from),
        raw_output: update.fields.raw_output.as_ref().map(JsonText::from),
        ..ToolCallPatch::default()
    };
    with_terminal(fields, update.meta)
}

/// Adds the output of commands that an adapter runs itself, which it streams in `_meta`.
fn with_terminal(mut patch: ToolCallPatch, meta: Option<Map<String, Value>>) -> ToolCallPatch {
    let Some(meta) = meta else { return patch };
    let text = |of: &str, field: &str| Some(meta.get(of)?.get(field)?.as_str()?.to_owned());
    patch.terminal_output = text("terminal_output", "data");
    if let Some(exit) = meta.get("terminal_exit") {
        let code = exit
            .get("exit_code")
            .and_then(Value::as_i64)
            .and_then(|code| i32::try_from(code).ok());
        patch.terminal_exit = Some(TerminalExit {
            code,
            signal: text("terminal_exit", "signal"),
        });
    }
    patch
}

fn command(command: acp::AvailableCommand) -> SlashCommand {
    let hint = match command.input {
        Some(acp::AvailableCommandInput::Unstructured(input)) => Some(input.hint),
        _ => None,
    };
    SlashCommand {
        name: command.name,
        description: command.description,
        hint,
    }
}

/// The modes in the response to opening a session.
pub fn modes(answer: &Value) -> Option<Modes> {
    let state: acp::SessionModeState = serde_json::from_value(answer["modes"].clone()).ok()?;
    let mode = |mode: acp::SessionMode| Mode {
        id: mode.id.0.to_string(),
        name: mode.name,
        description: mode.description,
    };
    Some(Modes {
        current: state.current_mode_id.0.to_string(),
        available: state.available_modes.into_iter().map(mode).collect(),
    })
}

/// The id of the config option that represents models in the older format (`models`).
pub const OLDER_MODEL: &str = "_model";

/// The models in the older format in the response to opening a session, as a config option.
pub fn older_models(answer: &Value) -> Option<Value> {
    let models = &answer["models"];
    let current = models["currentModelId"].as_str()?;
    let option = |model: &Value| {
        let id = model["modelId"].as_str()?;
        let name = model["name"].as_str().unwrap_or(id);
        Some(json!({"value": id, "name": name, "description": model["description"]}))
    };
    let options = models["availableModels"].as_array()?.iter();
    let options: Vec<Value> = options.filter_map(option).collect();
    Some(json!({
        "id": OLDER_MODEL, "name": "Model", "category": "model", "type": "select",
        "currentValue": current, "options": options,
    }))
}

/// The tool call and the options of a permission request.
pub fn permission(params: &Value) -> Option<(ToolCallPatch, Vec<PermissionOption>)> {
    let call = serde_json::from_value(params["toolCall"].clone()).ok()?;
    let option = |option: &Value| {
        let text = |field: &str| Some(option[field].as_str()?.to_owned());
        Some(PermissionOption {
            option_id: text("optionId")?,
            name: text("name")?,
            kind: text("kind").unwrap_or_default(),
        })
    };
    let options = params["options"].as_array()?.iter().filter_map(option);
    Some((patch(call), options.collect()))
}

fn tool_kind(kind: acp::ToolKind) -> ToolKind {
    match kind {
        acp::ToolKind::Read => ToolKind::Read,
        acp::ToolKind::Edit => ToolKind::Edit,
        acp::ToolKind::Delete => ToolKind::Delete,
        acp::ToolKind::Move => ToolKind::Move,
        acp::ToolKind::Search => ToolKind::Search,
        acp::ToolKind::Execute => ToolKind::Execute,
        acp::ToolKind::Think => ToolKind::Think,
        acp::ToolKind::Fetch => ToolKind::Fetch,
        acp::ToolKind::SwitchMode => ToolKind::SwitchMode,
        _ => ToolKind::Other,
    }
}

fn tool_status(status: acp::ToolCallStatus) -> ToolStatus {
    match status {
        acp::ToolCallStatus::Completed => ToolStatus::Complete,
        acp::ToolCallStatus::Failed => ToolStatus::Error,
        _ => ToolStatus::Running,
    }
}

fn tool_content(content: acp::ToolCallContent) -> Option<ToolContent> {
    match content {
        acp::ToolCallContent::Content(content) => match block(content.content) {
            Block::Text(text) => Some(ToolContent::Text { text }),
            Block::Media(block) => Some(ToolContent::Media { block }),
            Block::Unknown => None,
        },
        acp::ToolCallContent::Diff(diff) => Some(ToolContent::Diff {
            path: diff.path.to_string_lossy().into_owned(),
            old_text: diff.old_text,
            new_text: diff.new_text,
        }),
        acp::ToolCallContent::Terminal(terminal) => Some(ToolContent::Terminal {
            terminal_id: terminal.terminal_id.0.to_string(),
            output: String::new(),
            exit: None,
        }),
        _ => None,
    }
}

fn location(location: acp::ToolCallLocation) -> Location {
    Location {
        path: location.path.to_string_lossy().into_owned(),
        line: location.line,
    }
}

fn plan_item(entry: acp::PlanEntry) -> PlanItem {
    PlanItem {
        content: entry.content,
        priority: match entry.priority {
            acp::PlanEntryPriority::High => PlanPriority::High,
            acp::PlanEntryPriority::Low => PlanPriority::Low,
            _ => PlanPriority::Medium,
        },
        status: match entry.status {
            acp::PlanEntryStatus::InProgress => PlanStatus::InProgress,
            acp::PlanEntryStatus::Completed => PlanStatus::Completed,
            _ => PlanStatus::Pending,
        },
    }
}
