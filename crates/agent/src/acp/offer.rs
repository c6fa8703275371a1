//! The agent's offer to the client: capabilities, modes, config options and commands.

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1 as acp;

use crate::commands;
use crate::settings::Settings;
use crate::store::{Meta, Mode};

pub(super) const MODEL_OPTION: &str = "model";
pub(super) const PERSONA_OPTION: &str = "persona";

pub(super) fn initialize(settings: &Settings) -> acp::InitializeResponse {
    let sessions = acp::SessionCapabilities::new()
        .list(acp::SessionListCapabilities::new())
        .resume(acp::SessionResumeCapabilities::new())
        .close(acp::SessionCloseCapabilities::new())
        .additional_directories(acp::SessionAdditionalDirectoriesCapabilities::new());
    let prompts = acp::PromptCapabilities::new()
        // Images need a model.
        .image(!settings.models.is_empty())
        .embedded_context(true);
    let capabilities = acp::AgentCapabilities::new()
        .load_session(true)
        .prompt_capabilities(prompts)
        .session_capabilities(sessions);
    let ours = acp::Implementation::new("liminal-agent", env!("CARGO_PKG_VERSION"))
        .title("Liminal Agent".to_owned());
    // Always version 1, the only supported version, even if the client asks for a newer one.
    acp::InitializeResponse::new(ProtocolVersion::V1)
        .agent_capabilities(capabilities)
        .agent_info(ours)
}

const MODES: [(Mode, &str, &str, &str); 3] = [
    (
        Mode::Ask,
        "ask",
        "Ask",
        "Asks before it writes a file or runs a command.",
    ),
    (
        Mode::Auto,
        "auto",
        "Auto",
        "Writes and runs without asking.",
    ),
    (
        Mode::Plan,
        "plan",
        "Plan",
        "Reads and plans; writes nothing and runs nothing.",
    ),
];

pub(super) fn modes(meta: &Meta) -> acp::SessionModeState {
    let offered = MODES.map(|(_, id, name, description)| {
        acp::SessionMode::new(id, name).description(description.to_owned())
    });
    acp::SessionModeState::new(mode_id(meta.mode), offered.to_vec())
}

pub(super) fn mode_id(mode: Mode) -> &'static str {
    match mode {
        Mode::Ask => "ask",
        Mode::Auto => "auto",
        Mode::Plan => "plan",
    }
}

pub(super) fn mode(id: &str) -> Option<Mode> {
    let found = MODES.iter().find(|(_, name, ..)| *name == id);
    found.map(|(mode, ..)| *mode)
}

/// Config options of a session. An option with a single value is omitted.
pub(super) fn config_options(meta: &Meta, settings: &Settings) -> Vec<acp::SessionConfigOption> {
    let mut options = Vec::new();
    let persona = settings.persona(meta.persona.as_deref());
    if let Some(model) = settings.model(meta.model.as_deref(), persona)
        && settings.models.len() > 1
    {
        let values: Vec<_> = settings
            .models
            .iter()
            .map(|model| acp::SessionConfigSelectOption::new(model.to_string(), model.to_string()))
            .collect();
        options.push(
            acp::SessionConfigOption::select(MODEL_OPTION, "Model", model.to_string(), values)
                .category(acp::SessionConfigOptionCategory::Model),
        );
    }
    if settings.personas.len() > 1 {
        let values: Vec<_> = settings
            .personas
            .iter()
            .map(|persona| {
                acp::SessionConfigSelectOption::new(persona.name.clone(), persona.name.clone())
                    .description(persona.description.clone())
            })
            .collect();
        options.push(
            acp::SessionConfigOption::select(
                PERSONA_OPTION,
                "Persona",
                persona.name.clone(),
                values,
            )
            .category(acp::SessionConfigOptionCategory::Other(
                "persona".to_owned(),
            )),
        );
    }
    options
}

pub(super) fn commands() -> acp::SessionUpdate {
    let offered = commands::OFFERED
        .iter()
        .map(|command| {
            let offered = acp::AvailableCommand::new(command.name, command.description);
            match command.hint {
                "" => offered,
                hint => offered.input(acp::AvailableCommandInput::Unstructured(
                    acp::UnstructuredCommandInput::new(hint),
                )),
            }
        })
        .collect();
    acp::SessionUpdate::AvailableCommandsUpdate(acp::AvailableCommandsUpdate::new(offered))
}

/// Notice for a client that passes MCP servers, which the agent validates but does not use.
pub(super) fn mcp_notice() -> acp::SessionUpdate {
    let notice = acp::Notice::new(acp::NoticeSeverity::Warning, "MCP servers are not used")
        .description("This agent uses only its built-in tools.".to_owned());
    acp::SessionUpdate::Notice(notice)
}
