//! Requests and updates that the agent sends to the client, for one session.

use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::{Client, UntypedMessage};
use agent_client_protocol_schema::v1 as acp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::{mpsc, oneshot};

use crate::session_id::SessionId;

#[derive(Clone)]
pub(crate) struct ClientLink {
    pub(crate) session: SessionId,
    pub(crate) capabilities: acp::ClientCapabilities,
    rpc: ConnectionTo<Client>,
    outbox: mpsc::Sender<String>,
}

/// The client has disconnected.
#[derive(Debug)]
pub(crate) struct Disconnected;

#[derive(Serialize)]
struct Notification<'a> {
    jsonrpc: &'static str,
    method: &'static str,
    params: Params<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Params<'a> {
    session_id: SessionId,
    update: &'a acp::SessionUpdate,
}

impl ClientLink {
    pub(super) fn new(
        session: SessionId,
        capabilities: acp::ClientCapabilities,
        rpc: ConnectionTo<Client>,
        outbox: mpsc::Sender<String>,
    ) -> Self {
        Self {
            session,
            capabilities,
            rpc,
            outbox,
        }
    }

    pub(crate) fn acp_session(&self) -> acp::SessionId {
        acp::SessionId::new(self.session.to_string())
    }

    /// Sends an update and waits while the client reads slowly. It bypasses the protocol crate's
    /// unbounded queue and may overtake a response sent just before; see `update_after_answer`.
    pub(crate) async fn update(&self, update: &acp::SessionUpdate) -> Result<(), Disconnected> {
        let line = serde_json::to_string(&Notification {
            jsonrpc: "2.0",
            method: "session/update",
            params: Params {
                session_id: self.session,
                update,
            },
        });
        match line {
            Ok(line) => self.outbox.send(line).await.map_err(|_| Disconnected),
            Err(error) => {
                tracing::error!(%error, "could not serialize an update");
                Ok(())
            }
        }
    }

    /// Sends an update that must not overtake a response sent before it.
    pub(super) fn update_after_answer(&self, update: acp::SessionUpdate) {
        let notification = acp::SessionNotification::new(self.acp_session(), update);
        // Fails only if the client has disconnected.
        let _ = self.rpc.send_notification(notification);
    }

    pub(crate) async fn request<T: DeserializeOwned>(
        &self,
        method: &str,
        params: impl Serialize,
    ) -> Result<T, acp::Error> {
        let (answer, answered) = oneshot::channel();
        let message = UntypedMessage::new(method, params)?;
        self.rpc
            .prepare_request(message)
            .on_receiving_result(async move |result| {
                let _ = answer.send(result);
                Ok(())
            })?;
        let answer = answered
            .await
            .map_err(|_| acp::Error::new(-32603, "the client has disconnected"))??;
        serde_json::from_value(answer).map_err(|error| {
            acp::Error::new(-32603, format!("invalid response from the client: {error}"))
        })
    }

    /// Sends a request and ignores the response.
    pub(crate) fn request_and_forget(&self, method: &str, params: impl Serialize) {
        let sent = UntypedMessage::new(method, params).and_then(|message| {
            self.rpc
                .prepare_request(message)
                .on_receiving_result(async |_| Ok(()))
        });
        if let Err(error) = sent {
            tracing::debug!(method, %error, "could not send a request to the client");
        }
    }
}
