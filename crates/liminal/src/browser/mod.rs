//! The browser's WebSocket. One task per connection.
//!
//! A page first proves its browser's key (`proof`). Then the task parses requests (`frame`), executes them (`requests`) and forwards events of the hub (`messages`, with HTML
//! from `markup`). The connection of a browser that exceeds the bounded backlog by reading too slowly is closed with
//! 4008; on its next connection it gets new lists, and each session resumes at its last event.

mod diffs;
mod finished_html;
mod frame;
mod markup;
mod messages;
mod proof;
mod requests;

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::extract::ws::{Message, Utf8Bytes, WebSocket, WebSocketUpgrade};
use axum::response::Response;
pub(crate) use finished_html::FinishedHtml;
use futures_util::SinkExt;
use hub::{Feed, FeedReader, Hub, Origin, QueuedEvent};
use markup::Markup;
use messages::error;
use requests::Queue;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;
use tokio::task::{self, JoinError, JoinSet};
use wire::{ClientFrame, ClientMessage, ErrorCode, PermissionPolicy, ServerMessage};

use crate::admission::NamedBrowser;
use crate::browser_keys::BrowserKeys;
use crate::connection_limit::ConnectionLimit;
use crate::http::ReceiveLimit;
use crate::open_connections::OpenConnections;
use crate::socket::{self, GOING_AWAY, NOT_ADMITTED, TOO_SLOW};
use crate::stop::StopSignal;
use crate::token::{CurrentToken, Token};
use crate::token_bucket::TokenBucket;

/// Maximum pages that have not proven their browser's key yet. Only a client that knows a browser's id can be one.
pub(crate) const UNPROVEN_MAX: usize = 64;
/// Maximum pending requests of one connection; at the limit, no further ones are read.
const REQUESTS_MAX: usize = 16;
/// Maximum rate of messages, far above that of the server's own pages. Faster connections are throttled.
const MESSAGES_PER_SECOND: f64 = 1000.0;
const MESSAGE_BURST: f64 = 2000.0;
/// Maximum size of the waiting messages that are sent as one frame.
const BATCH_BYTES_MAX: usize = 256 * 1024;
/// Time limit for sending a message; a browser that does not read for longer is disconnected.
const SEND_DEADLINE: Duration = Duration::from_secs(20);

const RECONNECT: &str = "too slow, please reconnect";

/// State shared by all browser connections.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) hub: Hub,
    pub(crate) permissions: PermissionPolicy,
    /// Whether opening the workspace starts the agent that was used last.
    pub(crate) warm_start: bool,
    pub(crate) token: Arc<CurrentToken>,
    pub(crate) keys: Arc<BrowserKeys>,
    /// Messages to the user about this start, in addition to those of the hub.
    pub(crate) notices: Arc<[String]>,
    /// Limits pages that have not proven their key yet.
    pub(crate) unproven: ConnectionLimit,
    pub(crate) finished_html: FinishedHtml,
    pub(crate) connections: OpenConnections,
    pub(crate) stop: StopSignal,
}

/// What ends a connection's authorization. Subscribed to before the client is checked, so that nothing is missed.
struct Authorization {
    token: watch::Receiver<Token>,
    keys: watch::Receiver<()>,
    /// The browser whose page is connected; `None` for a client with the token.
    browser: Option<String>,
}

impl Authorization {
    fn new(context: &Context, browser: Option<String>) -> Self {
        Self {
            token: context.token.changes(),
            keys: context.keys.changes(),
            browser,
        }
    }

    /// Waits until the authorization has ended and returns the reason.
    async fn ended(&mut self, keys: &BrowserKeys) -> &'static str {
        loop {
            tokio::select! {
                Ok(()) = self.token.changed() => return "the access token was rotated",
                Ok(()) = self.keys.changed() => {
                    let gone = |browser: &String| !keys.is_signed_in(browser);
                    if self.browser.as_ref().is_some_and(gone) {
                        return "this browser was signed out";
                    }
                }
                else => std::future::pending().await,
            }
        }
    }
}

/// Upgrades the request of a client with the token and starts the connection's task.
pub(crate) fn accept(
    upgrade: WebSocketUpgrade,
    options: ConnectionOptions,
    receive_limit: &ReceiveLimit,
    context: Context,
) -> Response {
    receive_limit.throttle();
    let authorization = Authorization::new(&context, None);
    socket::bounded(upgrade)
        .write_buffer_size(BATCH_BYTES_MAX)
        .on_upgrade(move |socket| serve(socket, context, options, authorization))
}

/// Upgrades the request of a page, which must prove its browser's key before anything else.
pub(crate) fn accept_page(
    upgrade: WebSocketUpgrade,
    options: ConnectionOptions,
    named: NamedBrowser,
    receive_limit: ReceiveLimit,
    peer: SocketAddr,
    context: Context,
) -> Response {
    let place = context.unproven.enter(peer);
    proof::limit(&receive_limit);
    receive_limit.throttle();
    let authorization = Authorization::new(&context, Some(named.browser.clone()));
    socket::bounded(upgrade)
        .write_buffer_size(BATCH_BYTES_MAX)
        .on_upgrade(move |mut socket| async move {
            let proven = tokio::select! {
                proven = proof::demand(&mut socket, &context.keys, &named, &receive_limit) => proven,
                // The page connects again.
                () = place.evicted() => {
                    socket::close(&mut socket, GOING_AWAY, "too many pages connect").await;
                    return;
                }
            };
            drop(place);
            match proven {
                Ok(()) => {
                    receive_limit.lift();
                    let keys = context.keys.clone();
                    tokio::spawn(async move { keys.write_old_times().await });
                    serve(socket, context, options, authorization).await;
                }
                Err(reason) => {
                    tracing::debug!(reason, "a page was not admitted");
                    socket::close(&mut socket, NOT_ADMITTED, reason).await;
                }
            }
        })
}

async fn serve(
    socket: WebSocket,
    context: Context,
    options: ConnectionOptions,
    authorization: Authorization,
) {
    let _open = context.connections.enter();
    let (connection, sessions) = Connection::new(socket, context, options, &authorization);
    if let Err(disconnected) = connection.run(sessions, authorization).await {
        tracing::debug!(reason = disconnected.0, "browser connection lost");
    }
}

/// Options a client sets in the query string of the WebSocket's address.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ConnectionOptions {
    /// Several messages may be sent in one frame.
    batches: bool,
    /// Text is sent with its HTML.
    html: bool,
    /// The lists of projects and first sessions are sent with the greeting.
    lists: bool,
}

impl ConnectionOptions {
    pub(crate) fn from_query(query: Option<&str>) -> Self {
        let is_set = |option: &str| {
            query
                .unwrap_or_default()
                .split('&')
                .any(|part| part == option)
        };
        Self {
            batches: is_set("batch=1"),
            html: is_set("html=1"),
            lists: is_set("lists=1"),
        }
    }
}

struct Connection {
    id: u64,
    /// Admits the page's uploads and pictures.
    pass: Option<String>,
    socket: WebSocket,
    context: Context,
    options: ConnectionOptions,
    markup: Markup,
    feed: Feed,
    /// Running requests. Each returns its response, or `None` if an event is the response.
    requests: JoinSet<Option<ServerMessage>>,
    /// Queue and request id of each running request; the id is needed for the error response if it panics.
    running: HashMap<task::Id, (Queue, Option<String>)>,
    /// Requests that wait for an earlier one of their queue. A queue without a running request has no key here.
    queues: HashMap<Queue, VecDeque<(ClientMessage, Origin)>>,
    next_request: u64,
    bucket: TokenBucket,
}

/// The connection is broken; contains the reason.
struct Disconnected(&'static str);

impl Connection {
    fn new(
        socket: WebSocket,
        context: Context,
        options: ConnectionOptions,
        authorization: &Authorization,
    ) -> (Self, FeedReader) {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let (feed, reader) = hub::feed(id);
        let markup = Markup::new(context.finished_html.clone());
        let pass = |browser: &String| context.keys.pass(browser);
        let connection = Self {
            id,
            pass: authorization.browser.as_ref().map(pass),
            socket,
            context,
            options,
            markup,
            feed,
            requests: JoinSet::new(),
            running: HashMap::new(),
            queues: HashMap::new(),
            next_request: 0,
            bucket: TokenBucket::new(MESSAGES_PER_SECOND, MESSAGE_BURST),
        };
        (connection, reader)
    }

    async fn run(
        mut self,
        mut sessions: FeedReader,
        mut authorization: Authorization,
    ) -> Result<(), Disconnected> {
        // Before anything is listed, or a change between the list and the subscription would be lost.
        let mut events = self.context.hub.subscribe();
        let mut stop = self.context.stop.clone();
        let keys = self.context.keys.clone();
        self.greet().await?;
        if self.context.warm_start {
            self.context.hub.warm_last_agent().await;
        }
        loop {
            tokio::select! {
                () = stop.received() => {
                    return self.close(GOING_AWAY, "Liminal Builder is stopping").await;
                }
                reason = authorization.ended(&keys) => return self.close(NOT_ADMITTED, reason).await,
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
                        if self.forward(fed, &mut sessions).await?.is_break() {
                            return self.close(TOO_SLOW, RECONNECT).await;
                        }
                    }
                    Err(hub::TooSlow) => return self.close(TOO_SLOW, RECONNECT).await,
                },
                Some(ended) = self.requests.join_next_with_id() => self.request_ended(ended).await?,
                message = self.socket.recv(), if self.pending_requests() < REQUESTS_MAX => match message {
                    Some(Ok(Message::Text(text))) => {
                        self.receive(text).await?;
                        // Yields, so that a flood of messages does not delay other connections.
                        match self.bucket.spend(1.0) {
                            Some(wait) => tokio::time::sleep(wait).await,
                            None => task::yield_now().await,
                        }
                    }
                    Some(Ok(Message::Binary(_))) => {
                        let reason = "Invalid request payload: binary frames are not supported.".to_owned();
                        self.send(error(ErrorCode::InvalidMessage, reason, None)).await?;
                    }
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                    Some(Ok(Message::Close(_))) => {
                        socket::answer_close(&mut self.socket).await;
                        return Ok(());
                    }
                    None => return Ok(()),
                    Some(Err(broken)) => {
                        let (code, reason) = socket::close_reason(broken);
                        return self.close(code, reason).await;
                    }
                },
            }
        }
    }

    /// Sends the greeting and, in the same frame, the lists a page shows first.
    async fn greet(&mut self) -> Result<(), Disconnected> {
        let mut texts = vec![to_text(&self.hello())?];
        if self.options.lists {
            for list in requests::first_lists(&self.context.hub) {
                texts.push(to_text(&list)?);
            }
        }
        self.send_batch(texts).await
    }

    fn hello(&self) -> ServerMessage {
        let hub = &self.context.hub;
        ServerMessage::Hello {
            boot_id: hub.boot_id().to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            agents: hub.agents().summaries(),
            permissions: self.context.permissions,
            notices: [self.context.notices.to_vec(), hub.notices()].concat(),
            pass: self.pass.clone(),
        }
    }

    fn pending_requests(&self) -> usize {
        let queued = self.queues.values().map(VecDeque::len);
        self.requests.len() + queued.sum::<usize>()
    }

    async fn receive(&mut self, text: Utf8Bytes) -> Result<(), Disconnected> {
        let read = socket::read(text, frame::parse).await;
        let ClientFrame {
            request_id,
            message,
        } = match read.ok_or(Disconnected("parsing a frame panicked"))? {
            Ok(frame) => frame,
            Err(invalid) => {
                let (code, message) = (ErrorCode::InvalidMessage, invalid.message);
                return self.send(error(code, message, invalid.request_id)).await;
            }
        };
        // A list is built when it is sent: one built earlier could overwrite a change sent in between.
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
        let request_id = origin.request_id.clone();
        let (hub, feed) = (self.context.hub.clone(), self.feed.clone());
        let html = self.context.finished_html.clone();
        let html = self.options.html.then_some(html);
        let request = requests::execute(hub, message, feed, origin, html);
        let task = self.requests.spawn(request).id();
        self.running.insert(task, (queue, request_id));
    }

    async fn request_ended(
        &mut self,
        ended: Result<(task::Id, Option<ServerMessage>), JoinError>,
    ) -> Result<(), Disconnected> {
        let id = ended.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
        let (queue, request_id) = self.running.remove(&id).unzip();
        let answer = match ended {
            Ok((_, answer)) => answer,
            Err(_) => {
                let message = "Unexpected server error.".to_owned();
                Some(error(
                    ErrorCode::InternalError,
                    message,
                    request_id.flatten(),
                ))
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

    /// Sends a session event and all waiting ones, up to the maximum batch size, as one batch.
    async fn forward(
        &mut self,
        first: QueuedEvent,
        sessions: &mut FeedReader,
    ) -> Result<ControlFlow<()>, Disconnected> {
        let mut fed = Some(first);
        let mut texts = vec![];
        let mut bytes = 0;
        while let Some(next) = fed.take() {
            let boot_id = self.context.hub.boot_id();
            let mut message = messages::of_session(&next, self.id, boot_id);
            if self.options.html {
                self.markup.add(&next, &mut message);
            }
            let text = to_text(&message)?;
            bytes += text.len();
            texts.push(text);
            if bytes < BATCH_BYTES_MAX {
                match sessions.waiting() {
                    Some(Ok(more)) => fed = Some(more),
                    Some(Err(hub::TooSlow)) => return Ok(ControlFlow::Break(())),
                    None => {}
                }
            }
        }
        self.send_batch(texts).await?;
        Ok(ControlFlow::Continue(()))
    }

    async fn send_batch(&mut self, mut texts: Vec<String>) -> Result<(), Disconnected> {
        if self.options.batches && texts.len() > 1 {
            texts = vec![format!("[{}]", texts.join(","))];
        }
        let sending = async {
            for text in texts {
                self.socket.feed(Message::Text(text.into())).await?;
            }
            self.socket.flush().await
        };
        with_deadline(sending).await
    }

    async fn send(&mut self, message: ServerMessage) -> Result<(), Disconnected> {
        let text = to_text(&message)?;
        with_deadline(self.socket.send(Message::Text(text.into()))).await
    }

    async fn close(mut self, code: u16, reason: &'static str) -> Result<(), Disconnected> {
        match socket::close(&mut self.socket, code, reason).await {
            true => Ok(()),
            false => Err(Disconnected("the browser does not read")),
        }
    }
}

fn to_text(message: &ServerMessage) -> Result<String, Disconnected> {
    serde_json::to_string(message).map_err(|_| Disconnected("a message could not be serialised"))
}

async fn with_deadline(
    sending: impl Future<Output = Result<(), axum::Error>>,
) -> Result<(), Disconnected> {
    match tokio::time::timeout(SEND_DEADLINE, sending).await {
        Ok(sent) => sent.map_err(|_| Disconnected("broken connection")),
        Err(_) => Err(Disconnected("the browser does not read")),
    }
}
