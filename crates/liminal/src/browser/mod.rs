//! The browser's WebSocket: one connection is one task.
//!
//! The task reads requests, answers them, and forwards what the hub publishes. It keeps no queue of
//! its own: a browser that reads too slowly falls behind the hub's bounded backlog and is closed
//! with 4008, and on its next connection it starts from fresh lists.

mod frame;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use hub::{Event, Hub, HubError, Origin, What};
use tokio::sync::broadcast::error::RecvError;
use tokio::task::{self, JoinError, JoinSet};
use wire::{ClientFrame, ClientMessage, ErrorCode, PermissionPolicy, ServerMessage};

use crate::stop::StopSignal;

const FRAME_BYTES_MAX: usize = 1024 * 1024;
/// Most messages are small, and there may be many windows.
const BUFFER_BYTES: usize = 8 * 1024;
/// Requests of one browser that may be under way before we stop reading more.
const REQUESTS_MAX: usize = 16;
/// How long a browser may leave a message unread before it is taken for gone.
const SEND_DEADLINE: Duration = Duration::from_secs(20);

const CLOSE_GOING_AWAY: u16 = 1001;
const CLOSE_PROTOCOL_ERROR: u16 = 1002;
const CLOSE_NOT_TEXT: u16 = 1007;
const CLOSE_TOO_BIG: u16 = 1009;
const CLOSE_TOO_SLOW: u16 = 4008;

/// What a connection needs to know.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) hub: Hub,
    pub(crate) boot_id: Arc<str>,
    pub(crate) permissions: PermissionPolicy,
    pub(crate) stop: StopSignal,
}

/// Upgrades an admitted request and starts the connection's task.
pub(crate) fn accept(upgrade: WebSocketUpgrade, context: Context) -> Response {
    upgrade
        .max_message_size(FRAME_BYTES_MAX)
        .max_frame_size(FRAME_BYTES_MAX)
        .read_buffer_size(BUFFER_BYTES)
        .write_buffer_size(0)
        .on_upgrade(|socket| async move {
            let connection = Connection::new(socket, context);
            if let Err(gone) = connection.run().await {
                tracing::debug!(reason = gone.0, "browser is gone");
            }
        })
}

struct Connection {
    id: u64,
    socket: WebSocket,
    context: Context,
    /// Requests under way; each ends in an answer, or in an event that is the answer.
    requests: JoinSet<Option<ServerMessage>>,
    /// Which answer each owes, should it panic.
    request_ids: HashMap<task::Id, Option<String>>,
    /// The one among them that changes something. The next waits for it: one window's changes are
    /// carried out in the order in which it sent them.
    changing: Option<task::Id>,
    waiting_changes: VecDeque<(ClientMessage, Origin)>,
}

/// The socket can no longer be used.
struct Gone(&'static str);

impl Connection {
    fn new(socket: WebSocket, context: Context) -> Self {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        Self {
            id,
            socket,
            context,
            requests: JoinSet::new(),
            request_ids: HashMap::new(),
            changing: None,
            waiting_changes: VecDeque::new(),
        }
    }

    async fn run(mut self) -> Result<(), Gone> {
        // Before anything is listed, or a change between the list and the subscription would be lost.
        let mut events = self.context.hub.subscribe();
        let mut stop = self.context.stop.clone();
        self.send(self.hello()).await?;
        loop {
            tokio::select! {
                () = stop.received() => {
                    return self.close(CLOSE_GOING_AWAY, "Liminal Builder is stopping").await;
                }
                event = events.recv() => match event {
                    Ok(event) => self.send(to_message(event, self.id)).await?,
                    Err(RecvError::Lagged(_)) => return self.close(CLOSE_TOO_SLOW, "too slow, please reconnect").await,
                    Err(RecvError::Closed) => return Ok(()),
                },
                Some(ended) = self.requests.join_next_with_id() => {
                    let id = ended.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
                    let request_id = self.request_ids.remove(&id).flatten();
                    let answer = match ended {
                        Ok((_, answer)) => answer,
                        Err(_) => {
                            let sorry = "Unexpected server error.".to_owned();
                            Some(error(ErrorCode::InternalError, sorry, request_id))
                        }
                    };
                    if self.changing == Some(id) {
                        self.changing = None;
                        self.start_next_change();
                    }
                    if let Some(answer) = answer {
                        self.send(answer).await?;
                    }
                }
                message = self.socket.recv(), if self.requests.len() + self.waiting_changes.len() < REQUESTS_MAX => match message {
                    Some(Ok(Message::Text(text))) => self.receive(&text).await?,
                    Some(Ok(Message::Binary(_))) => {
                        let reason = "Invalid request payload: only text frames are understood.".to_owned();
                        self.send(error(ErrorCode::InvalidMessage, reason, None)).await?;
                    }
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                    Some(Ok(Message::Close(_))) | None => return Ok(()),
                    Some(Err(broken)) => {
                        let (code, reason) = why_broken(broken);
                        return self.close(code, reason).await;
                    }
                },
            }
        }
    }

    fn hello(&self) -> ServerMessage {
        ServerMessage::Hello {
            boot_id: self.context.boot_id.to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            agents: self.context.hub.agents().summaries(),
            permissions: self.context.permissions,
            notices: self.context.hub.notices().to_vec(),
        }
    }

    async fn receive(&mut self, text: &str) -> Result<(), Gone> {
        let ClientFrame {
            request_id,
            message,
        } = match frame::parse(text) {
            Ok(frame) => frame,
            Err(invalid) => {
                let answer = error(
                    ErrorCode::InvalidMessage,
                    invalid.message,
                    invalid.request_id,
                );
                return self.send(answer).await;
            }
        };
        let hub = self.context.hub.clone();
        match message {
            ClientMessage::ProjectList {} => {
                let projects = hub.projects().list();
                self.send(ServerMessage::ProjectList {
                    projects,
                    request_id,
                })
                .await?;
            }
            // The disk may be slow; the socket goes on meanwhile.
            ClientMessage::FolderComplete { path } => {
                let owed = request_id.clone();
                let task = self.requests.spawn(async move {
                    let found = hub.complete_folder(&path).await;
                    let (folders, truncated) = (found.folders, found.truncated);
                    Some(ServerMessage::FolderCompletions {
                        path,
                        folders,
                        truncated,
                        request_id,
                    })
                });
                self.request_ids.insert(task.id(), owed);
            }
            ClientMessage::ProjectAdd { .. }
            | ClientMessage::ProjectRemove { .. }
            | ClientMessage::ProjectRestore { .. } => {
                let origin = Origin {
                    connection: self.id,
                    request_id,
                };
                self.waiting_changes.push_back((message, origin));
                self.start_next_change();
            }
        }
        Ok(())
    }

    fn start_next_change(&mut self) {
        if self.changing.is_none()
            && let Some((message, origin)) = self.waiting_changes.pop_front()
        {
            let owed = origin.request_id.clone();
            let change = change(self.context.hub.clone(), message, origin);
            let task = self.requests.spawn(change).id();
            self.request_ids.insert(task, owed);
            self.changing = Some(task);
        }
    }

    async fn send(&mut self, message: ServerMessage) -> Result<(), Gone> {
        let text = serde_json::to_string(&message)
            .map_err(|_| Gone("a message could not be serialised"))?;
        match tokio::time::timeout(SEND_DEADLINE, self.socket.send(Message::Text(text.into())))
            .await
        {
            Ok(sent) => sent.map_err(|_| Gone("broken connection")),
            Err(_) => Err(Gone("it does not read")),
        }
    }

    async fn close(mut self, code: u16, reason: &'static str) -> Result<(), Gone> {
        let frame = CloseFrame {
            code,
            reason: reason.into(),
        };
        let closing = self.socket.send(Message::Close(Some(frame)));
        match tokio::time::timeout(Duration::from_millis(200), closing).await {
            Ok(_) => Ok(()),
            Err(_) => Err(Gone("it does not read")),
        }
    }
}

/// What to tell a browser whose frames cannot be read on from here.
fn why_broken(error: axum::Error) -> (u16, &'static str) {
    match error.into_inner().downcast_ref() {
        Some(tungstenite::Error::Capacity(_)) => {
            (CLOSE_TOO_BIG, "a message may have 1 MiB at most")
        }
        Some(tungstenite::Error::Utf8(_)) => (CLOSE_NOT_TEXT, "that is not UTF-8"),
        _ => (CLOSE_PROTOCOL_ERROR, "that is not the WebSocket protocol"),
    }
}

/// Carries out one change. `None` when it succeeded: the hub's event is the answer.
async fn change(hub: Hub, message: ClientMessage, origin: Origin) -> Option<ServerMessage> {
    let request_id = origin.request_id.clone();
    let done = match message {
        ClientMessage::ProjectAdd { path } => hub.add_project(&path, origin).await.map(drop),
        ClientMessage::ProjectRemove { project_id } => {
            hub.projects().remove(&project_id, origin).await
        }
        ClientMessage::ProjectRestore { project_id } => {
            hub.projects().restore(&project_id, origin).await.map(drop)
        }
        ClientMessage::ProjectList {} | ClientMessage::FolderComplete { .. } => Ok(()),
    };
    done.err()
        .map(|problem: HubError| error(problem.code(), problem.to_string(), request_id))
}

/// A change as the browser is told of it. Only the one who asked for it sees the request id.
fn to_message(event: Event, connection: u64) -> ServerMessage {
    let request_id = event
        .origin
        .request_id
        .filter(|_| event.origin.connection == connection);
    match event.what {
        What::ProjectAdded(project) => ServerMessage::ProjectAdded {
            project,
            request_id,
        },
        What::ProjectRemoved { project_id } => ServerMessage::ProjectRemoved {
            project_id,
            request_id,
        },
    }
}

fn error(code: ErrorCode, message: String, request_id: Option<String>) -> ServerMessage {
    ServerMessage::Error {
        code,
        message,
        request_id,
    }
}
