//! An agent session: a session the agent has open under its own id.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::connection::{AgentError, Connection};
use super::event::Queued;
use super::from_acp::OLDER_MODEL;
use super::routes::{Expected, Routes, lock};

/// A picture attached to a prompt.
pub struct Picture {
    pub mime_type: String,
    /// Base64.
    pub data: String,
}

/// A handle of an agent session, for prompts and settings. Clones share it.
#[derive(Clone)]
pub struct AgentSession {
    id: String,
    connection: Connection,
    events: mpsc::Sender<Queued>,
    routes: Arc<Mutex<Routes>>,
}

impl AgentSession {
    pub(super) fn new(
        id: String,
        connection: Connection,
        events: mpsc::Sender<Queued>,
        routes: Arc<Mutex<Routes>>,
    ) -> Self {
        Self {
            id,
            connection,
            events,
            routes,
        }
    }

    /// The same session under the id the agent has given it.
    pub(super) fn with_id(self, id: &str) -> Self {
        let id = id.to_owned();
        Self { id, ..self }
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Unique for each agent process.
    pub fn connection_id(&self) -> u64 {
        self.connection.id()
    }

    /// Whether the agent process was ended for being idle. It accepts no more requests.
    pub fn is_asleep(&self) -> bool {
        self.connection.is_retired()
    }

    /// When events of the agent were last dispatched, for this session or another one; now, if events are waiting.
    pub fn last_event(&self) -> Option<Instant> {
        let routes = lock(&self.routes);
        let waiting = self.events.capacity() < self.events.max_capacity();
        match routes.dispatching || waiting {
            true => Some(Instant::now()),
            false => routes.last_event,
        }
    }

    /// The agent's own id of the session.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Whether the agent accepts images in prompts.
    pub fn takes_images(&self) -> bool {
        let capabilities = &self.connection.initialized().agent_capabilities;
        capabilities.prompt_capabilities.image
    }

    /// Sends a prompt. The response arrives in the inbox after all events the agent sent before it. If the agent is
    /// asleep, nothing is sent; the inbox gets `Asleep` instead.
    pub fn prompt(&self, turn: u64, text: &str, pictures: Vec<Picture>) {
        let pictures = pictures.into_iter().map(
            |picture| json!({"type": "image", "mimeType": picture.mime_type, "data": picture.data}),
        );
        let text = (!text.is_empty()).then(|| json!({"type": "text", "text": text}));
        let blocks: Vec<Value> = text.into_iter().chain(pictures).collect();
        let mut routes = lock(&self.routes);
        let params = json!({"sessionId": self.id, "prompt": blocks});
        let Some(ticket) = self.connection.send(&self.events, "session/prompt", params) else {
            return;
        };
        let expected = Expected::Prompt {
            connection: self.connection.id(),
            session_id: self.id.clone(),
            turn,
        };
        routes.expected.insert(ticket, expected);
    }

    /// Asks the agent to stop the running turn, without waiting.
    pub fn cancel(&self) {
        self.connection
            .notify("session/cancel", json!({"sessionId": self.id}));
    }

    /// Changes the mode of the session.
    pub async fn set_mode(&self, mode_id: &str) -> Result<(), AgentError> {
        let params = json!({"sessionId": self.id, "modeId": mode_id});
        self.connection
            .request("session/set_mode", params)
            .await
            .map(drop)
    }

    /// Changes a configuration option and returns the options as they are afterwards.
    pub async fn set_option(&self, option_id: &str, value: Value) -> Result<Value, AgentError> {
        if option_id == OLDER_MODEL {
            let params = json!({"sessionId": self.id, "modelId": value});
            self.connection.request("session/set_model", params).await?;
            return Ok(json!({OLDER_MODEL: value}));
        }
        let mut params = json!({"sessionId": self.id, "configId": option_id, "value": value});
        if value.is_boolean() {
            params["type"] = json!("boolean");
        }
        self.connection
            .request("session/set_config_option", params)
            .await
    }

    /// Closes the session at the agent, if the agent supports that.
    pub async fn close(&self) {
        lock(&self.routes).sessions.remove(&self.id);
        let capabilities = &self.connection.initialized().agent_capabilities;
        if capabilities.session_capabilities.close.is_some() {
            let params = json!({"sessionId": self.id});
            let _ = self.connection.request("session/close", params).await;
        }
    }
}
