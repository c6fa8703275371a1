//! Dispatches the client's requests and implements each method.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::Client;
use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol_schema::v1 as acp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::errors::{self, invalid_params};
use super::{Call, ClientLink, offer};
use crate::registry::{Registry, Session, SessionConfig};
use crate::session_id::{SessionId, SessionIdError};
use crate::settings::Settings;
use crate::store::StoreError;
use crate::turn;

type Answer = Result<Value, acp::Error>;

/// Handles the requests of one client.
pub(super) struct Dispatcher {
    shared: Arc<Shared>,
    capabilities: acp::ClientCapabilities,
    tasks: JoinSet<()>,
}

/// State shared by all request tasks.
struct Shared {
    registry: Arc<Registry>,
    settings: Arc<Settings>,
    rpc: ConnectionTo<Client>,
    outbox: mpsc::Sender<String>,
}

impl Dispatcher {
    pub(super) fn new(
        registry: Arc<Registry>,
        settings: Arc<Settings>,
        rpc: ConnectionTo<Client>,
        outbox: mpsc::Sender<String>,
    ) -> Self {
        let shared = Shared {
            registry,
            settings,
            rpc,
            outbox,
        };
        Self {
            shared: Arc::new(shared),
            capabilities: acp::ClientCapabilities::default(),
            tasks: JoinSet::new(),
        }
    }

    /// Answers a quick request directly and starts a task for a slow one.
    pub(super) fn receive(&mut self, call: Call) {
        while self.tasks.try_join_next().is_some() {}
        let Call {
            method,
            params,
            responder,
        } = call;
        let Some(responder) = responder else {
            if method == "session/cancel"
                && let Err(error) = self.shared.cancel(&params)
            {
                tracing::warn!(%error, "received a cancellation for an unknown session");
            }
            return;
        };
        let shared = self.shared.clone();
        match method.as_str() {
            "initialize" => answer(responder, self.initialize(params)),
            "session/set_mode" => answer(responder, shared.set_mode(params)),
            "session/set_config_option" => answer(responder, shared.set_config_option(params)),
            "session/close" => answer(responder, shared.close(&params)),
            // A notification in ACP, but a client that sends it as a request gets a response.
            "session/cancel" => answer(responder, shared.cancel(&params)),
            "session/prompt" => self.prompt(params, responder),
            "session/new" => {
                let mcp = names_mcp_servers(&params);
                self.spawn_setup(responder, mcp, move || shared.new_session(params));
            }
            "session/list" => drop(
                self.tasks
                    .spawn_blocking(move || answer(responder, shared.list(params))),
            ),
            "session/resume" => {
                let mcp = names_mcp_servers(&params);
                self.spawn_setup(responder, mcp, move || shared.resume(params));
            }
            "session/load" => {
                let capabilities = self.capabilities.clone();
                self.tasks
                    .spawn(async move { shared.load(params, capabilities, responder).await });
            }
            _ => answer(responder, Err(errors::method_not_found(&method))),
        }
    }

    /// Cancels every turn and waits up to `timeout` until they have recorded their end.
    pub(super) async fn close(mut self, timeout: Duration) {
        self.shared.registry.close_all();
        let all = async { while self.tasks.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(timeout, all).await;
    }

    fn initialize(&mut self, params: Value) -> Answer {
        let request: acp::InitializeRequest = parse(params)?;
        self.capabilities = request.client_capabilities;
        to_value(offer::initialize(&self.shared.settings))
    }

    fn prompt(&mut self, params: Value, responder: Responder<Value>) {
        let shared = self.shared.clone();
        let begun = session_id(&params).and_then(|id| {
            let request: acp::PromptRequest = parse(params)?;
            let session = shared.open(id)?;
            let running = session.start_turn();
            let running = running.ok_or_else(|| errors::turn_is_running(id))?;
            Ok((request, session, running))
        });
        let (request, session, running) = match begun {
            Ok(begun) => begun,
            Err(error) => return answer(responder, Err(error)),
        };
        let link = shared.link(session.id, self.capabilities.clone());
        self.tasks.spawn(async move {
            let id = session.id;
            let turn = turn::Start {
                registry: shared.registry.clone(),
                settings: shared.settings.clone(),
                session,
                link,
                cancel: running.cancel.clone(),
            };
            let ended = turn::run(turn, request.prompt).await;
            drop(running);
            let ended = ended.map_err(|error| error.for_client(id, &shared.registry));
            answer(responder, ended.and_then(to_value));
        });
    }

    /// Creates or resumes a session, answers, and then announces the commands.
    fn spawn_setup(
        &mut self,
        responder: Responder<Value>,
        mcp: bool,
        make: impl FnOnce() -> Result<(SessionId, Value), acp::Error> + Send + 'static,
    ) {
        let shared = self.shared.clone();
        let capabilities = self.capabilities.clone();
        self.tasks.spawn_blocking(move || match make() {
            Ok((id, value)) => {
                answer(responder, Ok(value));
                send_session_updates(&shared.link(id, capabilities), mcp);
            }
            Err(error) => answer(responder, Err(error)),
        });
    }
}

impl Shared {
    fn link(&self, id: SessionId, capabilities: acp::ClientCapabilities) -> ClientLink {
        ClientLink::new(id, capabilities, self.rpc.clone(), self.outbox.clone())
    }

    fn store_error(&self, id: Option<SessionId>) -> impl Fn(StoreError) -> acp::Error {
        move |error| errors::store_error(&error, id, &self.registry)
    }

    fn open(&self, id: SessionId) -> Result<Arc<Session>, acp::Error> {
        self.registry
            .open_session(id)
            .map_err(self.store_error(Some(id)))
    }

    fn new_session(&self, params: Value) -> Result<(SessionId, Value), acp::Error> {
        let request: acp::NewSessionRequest = parse_setup(params)?;
        let config = SessionConfig {
            cwd: request.cwd,
            additional_directories: request.additional_directories,
            persona: None,
            model: None,
        };
        let session = self.registry.create_session(config);
        let session = session.map_err(self.store_error(None))?;
        let meta = session.meta();
        let response = acp::NewSessionResponse::new(session.id.to_string())
            .modes(offer::modes(&meta))
            .config_options(offer::config_options(&meta, &self.settings));
        Ok((session.id, to_value(response)?))
    }

    /// Opens a session and sets its working directories to the client's.
    fn reopen(
        &self,
        id: SessionId,
        cwd: std::path::PathBuf,
        more: Vec<std::path::PathBuf>,
    ) -> Result<Arc<Session>, acp::Error> {
        let session = self.open(id)?;
        let moved = self.registry.change(&session, |meta| {
            meta.cwd = cwd;
            meta.additional_directories = more;
        });
        moved.map_err(self.store_error(Some(id)))?;
        Ok(session)
    }

    fn resume(&self, params: Value) -> Result<(SessionId, Value), acp::Error> {
        let id = session_id(&params)?;
        let request: acp::ResumeSessionRequest = parse_setup(params)?;
        let session = self.reopen(id, request.cwd, request.additional_directories)?;
        let meta = session.meta();
        let response = acp::ResumeSessionResponse::new()
            .modes(offer::modes(&meta))
            .config_options(offer::config_options(&meta, &self.settings));
        Ok((id, to_value(response)?))
    }

    /// Replays the whole conversation, then answers.
    async fn load(
        self: Arc<Self>,
        params: Value,
        capabilities: acp::ClientCapabilities,
        responder: Responder<Value>,
    ) {
        let shared = self.clone();
        let mcp = names_mcp_servers(&params);
        let read = tokio::task::spawn_blocking(move || {
            let id = session_id(&params)?;
            let request: acp::LoadSessionRequest = parse_setup(params)?;
            let session = shared.reopen(id, request.cwd, request.additional_directories)?;
            let history = shared.registry.store().read_history(id);
            Ok((session, history.map_err(shared.store_error(Some(id)))?))
        });
        let (session, history) = match read.await {
            Ok(Ok(read)) => read,
            Ok(Err(error)) => return answer(responder, Err(error)),
            Err(_) => return answer(responder, Err(acp::Error::internal_error())),
        };
        let link = self.link(session.id, capabilities);
        for update in history.replay() {
            if link.update(&update).await.is_err() {
                return;
            }
        }
        let meta = session.meta();
        let mut response = acp::LoadSessionResponse::new()
            .modes(offer::modes(&meta))
            .config_options(offer::config_options(&meta, &self.settings));
        if history.unreadable > 0 {
            tracing::warn!(session = %session.id, lines = history.unreadable, "the history has unreadable lines");
            let note = json!({ "liminal/unreadableLines": history.unreadable });
            response = response.meta(note.as_object().cloned());
        }
        answer(responder, to_value(response));
        send_session_updates(&link, mcp);
    }

    fn list(&self, params: Value) -> Answer {
        let request: acp::ListSessionsRequest = parse(params)?;
        let after = request.cursor.as_deref().map(SessionId::parse).transpose();
        let after = after.map_err(|_| {
            invalid_params("Invalid cursor. Use the `nextCursor` of an earlier response.")
        })?;
        if let Some(cwd) = request.cwd.as_ref().filter(|cwd| !cwd.is_absolute()) {
            return Err(invalid_params(format!(
                "cwd must be an absolute path: {}",
                cwd.display()
            )));
        }
        let page = self.registry.list(after, request.cwd.as_ref());
        let page = page.map_err(self.store_error(None))?;
        let sessions = page
            .sessions
            .into_iter()
            .map(|meta| {
                acp::SessionInfo::new(meta.session_id.to_string(), meta.cwd)
                    .additional_directories(meta.additional_directories)
                    .title(meta.title)
                    .updated_at(meta.last_used_at.to_string())
            })
            .collect();
        let mut response = acp::ListSessionsResponse::new(sessions);
        response.next_cursor = page.next.map(String::from);
        if !page.damaged.is_empty() {
            let report = |(id, reason): &(SessionId, String)| {
                tracing::warn!(session = %id, reason, "cannot read a session");
                json!({ "sessionId": id, "reason": reason })
            };
            let damaged: Vec<_> = page.damaged.iter().map(report).collect();
            let note = json!({ "liminal/damagedSessions": damaged });
            response = response.meta(note.as_object().cloned());
        }
        to_value(response)
    }

    fn close(&self, params: &Value) -> Answer {
        let id = session_id(params)?;
        if self.registry.close_session(id).is_none() {
            // A session that is not open must at least exist.
            let exists = self.registry.store().read_meta(id);
            exists.map_err(self.store_error(Some(id)))?;
        }
        to_value(acp::CloseSessionResponse::new())
    }

    fn cancel(&self, params: &Value) -> Answer {
        let id = session_id(params)?;
        match self.registry.get_session(id) {
            Some(session) => session.cancel(),
            None => drop(
                self.registry
                    .store()
                    .read_meta(id)
                    .map_err(self.store_error(Some(id)))?,
            ),
        }
        Ok(json!({}))
    }

    fn set_mode(&self, params: Value) -> Answer {
        let id = session_id(&params)?;
        let request: acp::SetSessionModeRequest = parse(params)?;
        let mode = offer::mode(&request.mode_id.0).ok_or_else(|| {
            invalid_params(format!(
                "Unknown mode `{}`. Use `ask`, `auto` or `plan`.",
                request.mode_id
            ))
        })?;
        let session = self.open(id)?;
        let changed = self.registry.change(&session, |meta| meta.mode = mode);
        changed.map_err(self.store_error(Some(id)))?;
        to_value(acp::SetSessionModeResponse::new())
    }

    fn set_config_option(&self, params: Value) -> Answer {
        let id = session_id(&params)?;
        let request: acp::SetSessionConfigOptionRequest = parse(params)?;
        let value = match &request.value {
            acp::SessionConfigOptionValue::ValueId { value } => value.to_string(),
            _ => {
                return Err(invalid_params(
                    "The value must be one of the offered values.",
                ));
            }
        };
        let settings = &self.settings;
        let known = match &*request.config_id.0 {
            offer::MODEL_OPTION => settings
                .models
                .iter()
                .any(|model| model.to_string() == value),
            offer::PERSONA_OPTION => settings
                .personas
                .iter()
                .any(|persona| persona.name == value),
            other => return Err(invalid_params(format!("Unknown config option `{other}`."))),
        };
        if !known {
            return Err(invalid_params(format!(
                "`{value}` is not one of the offered values."
            )));
        }
        let session = self.open(id)?;
        let changed = self
            .registry
            .change(&session, |meta| match &*request.config_id.0 {
                offer::MODEL_OPTION => meta.model = Some(value),
                _ => meta.persona = Some(value),
            });
        let meta = changed.map_err(self.store_error(Some(id)))?;
        let options = offer::config_options(&meta, settings);
        to_value(acp::SetSessionConfigOptionResponse::new(options))
    }
}

/// Sends the updates that follow the response to a session setup.
fn send_session_updates(link: &ClientLink, mcp: bool) {
    link.update_after_answer(offer::commands());
    if mcp {
        link.update_after_answer(offer::mcp_notice());
    }
}

fn names_mcp_servers(params: &Value) -> bool {
    let servers = params["mcpServers"].as_array();
    servers.is_some_and(|servers| !servers.is_empty())
}

fn answer(responder: Responder<Value>, answer: Answer) {
    // Fails only if the client has disconnected.
    let _ = responder.respond_with_result(answer.map_err(Into::into));
}

fn to_value(response: impl Serialize) -> Answer {
    serde_json::to_value(response).map_err(acp::Error::into_internal_error)
}

fn parse<T: DeserializeOwned>(params: Value) -> Result<T, acp::Error> {
    serde_json::from_value(params)
        .map_err(|error| invalid_params(format!("Invalid params: {error}")))
}

/// Returns the session id of a request. Checked before all other parameters, so that an invalid id
/// always gives the same error.
fn session_id(params: &Value) -> Result<SessionId, acp::Error> {
    let provided = &params["sessionId"];
    let parsed = match provided {
        Value::Null => Err(SessionIdError::Empty),
        Value::String(text) => Registry::validate_session_id(text),
        _ => Err(SessionIdError::MissingPrefix),
    };
    parsed.map_err(|error| errors::invalid_session_id(error, provided))
}

/// Like `parse`, for requests with working directories and MCP servers, which it validates first.
fn parse_setup<T: DeserializeOwned>(params: Value) -> Result<T, acp::Error> {
    let cwd = params["cwd"].as_str().unwrap_or_default().to_owned();
    directory("cwd", &cwd)?;
    for more in params["additionalDirectories"]
        .as_array()
        .into_iter()
        .flatten()
    {
        directory("additionalDirectories", more.as_str().unwrap_or_default())?;
    }
    let servers = &params["mcpServers"];
    if !servers.is_null() && !servers.is_array() {
        return Err(invalid_params("mcpServers must be a list."));
    }
    for (number, server) in servers.as_array().into_iter().flatten().enumerate() {
        mcp_server(server)
            .map_err(|reason| invalid_params(format!("mcpServers[{number}]: {reason}")))?;
    }
    parse(params)
}

fn directory(field: &str, path: &str) -> Result<(), acp::Error> {
    let refuse = |reason: &str| {
        let message = format!("{field} {reason}: `{path}`");
        Err(invalid_params(message).data(json!({ "path": path })))
    };
    if !Path::new(path).is_absolute() {
        return refuse("must be an absolute path");
    }
    match std::fs::metadata(path) {
        Ok(data) if data.is_dir() => Ok(()),
        Ok(_) => refuse("is not a directory"),
        Err(_) => refuse("does not exist"),
    }
}

fn mcp_server(server: &Value) -> Result<(), String> {
    let parsed: acp::McpServer =
        serde_json::from_value(server.clone()).map_err(|error| error.to_string())?;
    match parsed {
        acp::McpServer::Stdio(server) if server.name.is_empty() => Err("it has no name".to_owned()),
        acp::McpServer::Stdio(server) if server.command.as_os_str().is_empty() => {
            Err("it has no command".to_owned())
        }
        acp::McpServer::Stdio(_) => Ok(()),
        _ => {
            Err("only servers over stdio are supported, as the agent's capabilities say".to_owned())
        }
    }
}
