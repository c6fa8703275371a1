//! The browser's WebSocket: one connection is one task.
//!
//! The task reads requests (`frame`), has them carried out (`requests`) and forwards what the hub
//! publishes (`messages`, with `markup` beside the text). A browser that reads too slowly falls behind a bounded backlog and is closed
//! with 4008; on its next connection it starts from fresh lists, and each session where it was.

mod diffs;
mod finished_html;
mod frame;
mod markup;
mod messages;
mod requests;

use std::collections::{HashMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::extract::ws::{Message, Utf8Bytes, WebSocket, WebSocketUpgrade};
use axum::response::Response;
pub(crate) use finished_html::FinishedHtml;
use futures_util::SinkExt;
use hub::{Fed, Feed, FeedReader, Hub, Origin};
use markup::Markup;
use messages::error;
use requests::Queue;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::{self, JoinError, JoinSet};
use wire::{ClientFrame, ClientMessage, ErrorCode, PermissionPolicy, ServerMessage};

use crate::guests::Guests;
use crate::http::Allowance;
use crate::pace::Pace;
use crate::socket::{self, GOING_AWAY, NOT_ADMITTED, TOO_SLOW};
use crate::stop::StopSignal;
use crate::token::CurrentToken;

/// Requests of one browser that may be under way before we stop reading more.
const REQUESTS_MAX: usize = 16;
/// How fast a browser may talk; far more than any page of ours does. One that talks faster is read more slowly.
const MESSAGES_A_SECOND: f64 = 1000.0;
const MESSAGES_AT_ONCE: f64 = 2000.0;
/// What is sent together when it waits together.
const TOGETHER_BYTES_MAX: usize = 256 * 1024;
/// How long a browser may leave a message unread before it is taken for gone.
const SEND_DEADLINE: Duration = Duration::from_secs(20);

const RECONNECT: &str = "too slow, please reconnect";

/// What a connection needs to know.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) hub: Hub,
    pub(crate) permissions: PermissionPolicy,
    /// Whether somebody who opens the workspace finds an agent running.
    pub(crate) warm_start: bool,
    pub(crate) token: Arc<CurrentToken>,
    pub(crate) finished_html: FinishedHtml,
    pub(crate) guests: Guests,
    pub(crate) stop: StopSignal,
}

/// Upgrades an admitted request and starts the connection's task.
pub(crate) fn accept(
    upgrade: WebSocketUpgrade,
    wishes: Wishes,
    allowance: &Allowance,
    context: Context,
) -> Response {
    allowance.pace();
    socket::bounded(upgrade)
        .write_buffer_size(TOGETHER_BYTES_MAX)
        .on_upgrade(move |socket| async move {
            let _guest = context.guests.enter();
            let (connection, sessions) = Connection::new(socket, context, wishes);
            if let Err(gone) = connection.run(sessions).await {
                tracing::debug!(reason = gone.0, "browser is gone");
            }
        })
}

/// What a client asked for in the address it connected to.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wishes {
    /// Several messages may come in one frame.
    batches: bool,
    /// Text comes with its HTML.
    html: bool,
    /// The projects and the first sessions come without being asked for.
    lists: bool,
}

impl Wishes {
    pub(crate) fn of(query: Option<&str>) -> Self {
        let asked = |wish: &str| {
            query
                .unwrap_or_default()
                .split('&')
                .any(|part| part == wish)
        };
        Self {
            batches: asked("batch=1"),
            html: asked("html=1"),
            lists: asked("lists=1"),
        }
    }
}

struct Connection {
    id: u64,
    socket: WebSocket,
    context: Context,
    wishes: Wishes,
    markup: Markup,
    feed: Feed,
    /// Requests under way; each ends in an answer, or in an event that is the answer.
    requests: JoinSet<Option<ServerMessage>>,
    /// Of each: its queue, and which answer it owes, should it panic.
    under_way: HashMap<task::Id, (Queue, Option<String>)>,
    /// Requests that wait for the one before them in their queue. A queue with nothing under way is
    /// not in here.
    queues: HashMap<Queue, VecDeque<(ClientMessage, Origin)>>,
    next_request: u64,
    pace: Pace,
}

/// The socket can no longer be used.
struct Gone(&'static str);

impl Connection {
    fn new(socket: WebSocket, context: Context, wishes: Wishes) -> (Self, FeedReader) {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let (feed, reader) = hub::feed(id);
        let markup = Markup::new(context.finished_html.clone());
        let connection = Self {
            id,
            socket,
            context,
            wishes,
            markup,
            feed,
            requests: JoinSet::new(),
            under_way: HashMap::new(),
            queues: HashMap::new(),
            next_request: 0,
            pace: Pace::new(MESSAGES_A_SECOND, MESSAGES_AT_ONCE),
        };
        (connection, reader)
    }

    async fn run(mut self, mut sessions: FeedReader) -> Result<(), Gone> {
        // Before anything is listed, or a change between the list and the subscription would be lost.
        let mut events = self.context.hub.subscribe();
        let mut stop = self.context.stop.clone();
        let mut token = self.context.token.changes();
        self.greet().await?;
        if self.context.warm_start {
            self.context.hub.warm_last_agent().await;
        }
        loop {
            tokio::select! {
                () = stop.received() => {
                    return self.close(GOING_AWAY, "Liminal Builder is stopping").await;
                }
                Ok(()) = token.changed() => {
                    return self.close(NOT_ADMITTED, "the access token was changed").await;
                }
                event = events.recv() => match event {
                    Ok(event) => {
                        if let Some(message) = messages::of_event(event, self.id) {
                            self.send(message).await?;
                        }
                    }
                    Err(RecvError::Lagged(_)) => return self.close(TOO_SLOW, RECONNECT).await,
                    Err(RecvError::Closed) => return Ok(()),
                },
                fed = sessions.next() => match fed {
                    Ok(fed) => {
                        if self.pass_on(fed, &mut sessions).await?.is_break() {
                            return self.close(TOO_SLOW, RECONNECT).await;
                        }
                    }
                    Err(hub::TooSlow) => return self.close(TOO_SLOW, RECONNECT).await,
                },
                Some(ended) = self.requests.join_next_with_id() => self.answered(ended).await?,
                message = self.socket.recv(), if self.waiting() < REQUESTS_MAX => match message {
                    Some(Ok(Message::Text(text))) => {
                        self.receive(text).await?;
                        // There may be many more: what others are waiting for goes in between.
                        match self.pace.spend(1.0) {
                            Some(wait) => tokio::time::sleep(wait).await,
                            None => task::yield_now().await,
                        }
                    }
                    Some(Ok(Message::Binary(_))) => {
                        let reason = "Invalid request payload: only text frames are understood.".to_owned();
                        self.send(error(ErrorCode::InvalidMessage, reason, None)).await?;
                    }
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                    Some(Ok(Message::Close(_))) => {
                        socket::answer_close(&mut self.socket).await;
                        return Ok(());
                    }
                    None => return Ok(()),
                    Some(Err(broken)) => {
                        let (code, reason) = socket::why_broken(broken);
                        return self.close(code, reason).await;
                    }
                },
            }
        }
    }

    /// Says who we are, and with it, in one frame, whatever a page shows first.
    async fn greet(&mut self) -> Result<(), Gone> {
        let mut texts = vec![to_text(&self.hello())?];
        if self.wishes.lists {
            for list in requests::first_lists(&self.context.hub) {
                texts.push(to_text(&list)?);
            }
        }
        self.send_together(texts).await
    }

    fn hello(&self) -> ServerMessage {
        let hub = &self.context.hub;
        ServerMessage::Hello {
            boot_id: hub.boot_id().to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            agents: hub.agents().summaries(),
            permissions: self.context.permissions,
            notices: hub.notices(),
        }
    }

    fn waiting(&self) -> usize {
        let queued = self.queues.values().map(VecDeque::len);
        self.requests.len() + queued.sum::<usize>()
    }

    async fn receive(&mut self, text: Utf8Bytes) -> Result<(), Gone> {
        let read = socket::read(text, frame::parse).await;
        let ClientFrame {
            request_id,
            message,
        } = match read.ok_or(Gone("a frame could not be read"))? {
            Ok(frame) => frame,
            Err(invalid) => {
                let (code, message) = (ErrorCode::InvalidMessage, invalid.message);
                return self.send(error(code, message, invalid.request_id)).await;
            }
        };
        // Lists are made when they are sent: one made earlier could overwrite a change that overtook it.
        if let Some(list) = requests::list(&self.context.hub, &message, request_id.as_deref()) {
            return self.send(list).await;
        }
        self.next_request += 1;
        let queue = requests::queue_of(&message, self.next_request);
        let origin = Origin {
            connection: self.id,
            request_id,
        };
        match self.queues.get_mut(&queue) {
            Some(waiting) => waiting.push_back((message, origin)),
            None => {
                self.queues.insert(queue.clone(), VecDeque::new());
                self.begin(queue, message, origin);
            }
        }
        Ok(())
    }

    fn begin(&mut self, queue: Queue, message: ClientMessage, origin: Origin) {
        let owed = origin.request_id.clone();
        let (hub, feed) = (self.context.hub.clone(), self.feed.clone());
        let html = self.context.finished_html.clone();
        let html = self.wishes.html.then_some(html);
        let request = requests::carry_out(hub, message, feed, origin, html);
        let task = self.requests.spawn(request).id();
        self.under_way.insert(task, (queue, owed));
    }

    async fn answered(
        &mut self,
        ended: Result<(task::Id, Option<ServerMessage>), JoinError>,
    ) -> Result<(), Gone> {
        let id = ended.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
        let (queue, owed) = self.under_way.remove(&id).unzip();
        let answer = match ended {
            Ok((_, answer)) => answer,
            Err(_) => {
                let sorry = "Unexpected server error.".to_owned();
                Some(error(ErrorCode::InternalError, sorry, owed.flatten()))
            }
        };
        if let Some(queue) = queue {
            match self.queues.get_mut(&queue).and_then(VecDeque::pop_front) {
                Some((message, origin)) => self.begin(queue, message, origin),
                None => drop(self.queues.remove(&queue)),
            }
        }
        match answer {
            Some(answer) => self.send(answer).await,
            None => Ok(()),
        }
    }

    /// Sends what happened in sessions, and whatever else of it is waiting, together.
    async fn pass_on(
        &mut self,
        first: Fed,
        sessions: &mut FeedReader,
    ) -> Result<ControlFlow<()>, Gone> {
        let mut fed = Some(first);
        let mut texts = vec![];
        let mut bytes = 0;
        while let Some(next) = fed.take() {
            let boot_id = self.context.hub.boot_id();
            let mut message = messages::of_session(&next, self.id, boot_id);
            if self.wishes.html {
                self.markup.add(&next, &mut message);
            }
            let text = to_text(&message)?;
            bytes += text.len();
            texts.push(text);
            if bytes < TOGETHER_BYTES_MAX {
                match sessions.waiting() {
                    Some(Ok(more)) => fed = Some(more),
                    Some(Err(hub::TooSlow)) => return Ok(ControlFlow::Break(())),
                    None => {}
                }
            }
        }
        self.send_together(texts).await?;
        Ok(ControlFlow::Continue(()))
    }

    async fn send_together(&mut self, mut texts: Vec<String>) -> Result<(), Gone> {
        if self.wishes.batches && texts.len() > 1 {
            texts = vec![format!("[{}]", texts.join(","))];
        }
        let sending = async {
            for text in texts {
                self.socket.feed(Message::Text(text.into())).await?;
            }
            self.socket.flush().await
        };
        in_time(sending).await
    }

    async fn send(&mut self, message: ServerMessage) -> Result<(), Gone> {
        let text = to_text(&message)?;
        in_time(self.socket.send(Message::Text(text.into()))).await
    }

    async fn close(mut self, code: u16, reason: &'static str) -> Result<(), Gone> {
        match socket::close(&mut self.socket, code, reason).await {
            true => Ok(()),
            false => Err(Gone("it does not read")),
        }
    }
}

fn to_text(message: &ServerMessage) -> Result<String, Gone> {
    serde_json::to_string(message).map_err(|_| Gone("a message could not be serialised"))
}

async fn in_time(sending: impl Future<Output = Result<(), axum::Error>>) -> Result<(), Gone> {
    match tokio::time::timeout(SEND_DEADLINE, sending).await {
        Ok(sent) => sent.map_err(|_| Gone("broken connection")),
        Err(_) => Err(Gone("it does not read")),
    }
}
