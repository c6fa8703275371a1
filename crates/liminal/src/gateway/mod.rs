//! The gateway: a WebSocket API for programs, with access to the same sessions as the browser. One task per connection.
//!
//! A client authenticates with its first frame, then sends requests: `methods` is the table of methods, `events` the
//! conversion of session events to gateway events. Requests are handled in the order they arrive, except those that
//! take long, for instance because they wait for an agent to start. So the response to `chat.send` is always sent before the run's first event.

mod chat;
mod events;
mod follow;
mod frame;
mod messages;
mod methods;
mod projects;
mod reference;
mod sessions;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::extract::ws::{Message, Utf8Bytes, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use hub::{FeedReader, Hub};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinSet;
use wire::gateway::{Auth, Frame, Problem, Request};

use self::events::Events;
use self::follow::Caller;
pub(crate) use self::reference::{reference, schema};
use crate::admission::{Admission, Refusal};
use crate::browser_keys::BrowserKeys;
use crate::connection_limit::{ConnectionLimit, Place};
use crate::http::ReceiveLimit;
use crate::open_connections::OpenConnections;
use crate::socket::{self, GOING_AWAY, NOT_ADMITTED, NOT_TEXT, TOO_SLOW};
use crate::stop::StopSignal;
use crate::strict_json;
use crate::token::{CurrentToken, Token};
use crate::token_bucket::TokenBucket;

/// Maximum concurrent unauthenticated connections; the oldest makes room for a new one.
pub(crate) const UNAUTHENTICATED_MAX: usize = 64;
const AUTH_DEADLINE: Duration = Duration::from_secs(5);
const AUTH_BYTES_MAX: usize = 4096;
/// Bytes allowed for frame headers and pings, in addition to the first frame.
const FRAMING_BYTES: usize = 1024;
/// Time limit for sending a frame; a client that does not read for longer is disconnected.
const SEND_DEADLINE: Duration = Duration::from_secs(20);
/// Maximum concurrent requests that take long.
const SLOW_REQUESTS_MAX: usize = 16;
/// Requests per second, and the burst.
const REQUESTS_PER_SECOND: f64 = 100.0;
const REQUEST_BURST: f64 = 200.0;
/// Delay before a rejection, so that rejecting a flood of requests costs little CPU time.
const REJECTION_DELAY: Duration = Duration::from_millis(1);

/// State shared by all gateway connections.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) hub: Hub,
    pub(crate) admission: Arc<Admission>,
    pub(crate) unauthenticated: ConnectionLimit,
    /// Working directory of sessions created without one.
    pub(crate) scratch: PathBuf,
    /// The file or folder with the built-in agent's personas.
    pub(crate) personas: PathBuf,
    /// The model of personas that do not set one.
    pub(crate) model: Option<String>,
    pub(crate) token: Arc<CurrentToken>,
    pub(crate) keys: Arc<BrowserKeys>,
    pub(crate) connections: OpenConnections,
    pub(crate) stop: StopSignal,
}

/// The connection is broken.
struct Disconnected;

/// Upgrades a request to an unauthenticated connection, which must authenticate with its first frame.
pub(crate) fn accept(
    upgrade: WebSocketUpgrade,
    receive_limit: ReceiveLimit,
    peer: SocketAddr,
    context: Context,
) -> Response {
    let place = context.unauthenticated.enter(peer);
    receive_limit.limit(AUTH_BYTES_MAX + FRAMING_BYTES);
    receive_limit.throttle();
    socket::bounded(upgrade).on_upgrade(move |socket| async move {
        let _ = serve(socket, context, receive_limit, place).await;
    })
}

async fn serve(
    mut socket: WebSocket,
    context: Context,
    receive_limit: ReceiveLimit,
    place: Place,
) -> Result<(), Disconnected> {
    // Before the client's token is checked, so that a rotation during the check closes the connection.
    let token = context.token.changes();
    let authenticated = tokio::select! {
        authenticated = authenticate(&mut socket, &context.admission) => authenticated?,
        () = receive_limit.exceeded() => Err("authentication required"),
        () = place.evicted() => Err("too many unauthenticated connections"),
    };
    if let Err(reason) = authenticated {
        let refused = Frame::Auth {
            r#type: "auth",
            ok: false,
            error: Some(reason),
        };
        send(&mut socket, &refused).await?;
        return close(&mut socket, NOT_ADMITTED, reason).await;
    }
    let Some(_open) = context.connections.enter() else {
        return close(&mut socket, GOING_AWAY, "the server is stopping").await;
    };
    drop(place);
    receive_limit.lift();
    let welcome = Frame::Auth {
        r#type: "auth",
        ok: true,
        error: None,
    };
    send(&mut socket, &welcome).await?;
    static NEXT_ID: AtomicU64 = AtomicU64::new(1 << 32);
    let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
    let (feed, sessions) = hub::feed(id);
    let hub = context.hub.clone();
    let connection = Connection {
        socket,
        stop: context.stop.clone(),
        token,
        events: Events::default(),
        slow: JoinSet::new(),
        bucket: TokenBucket::new(REQUESTS_PER_SECOND, REQUEST_BURST),
        caller: Caller::new(context, feed, id),
    };
    let ended = connection.run(sessions).await;
    hub.sessions().leave_all(id).await;
    ended
}

/// Reads and checks the first frame. The outer error means that the connection is broken.
async fn authenticate(
    socket: &mut WebSocket,
    admission: &Admission,
) -> Result<Result<(), &'static str>, Disconnected> {
    let first = match tokio::time::timeout(AUTH_DEADLINE, first_frame(socket)).await {
        Ok(Some(Ok(Message::Text(text)))) if text.len() <= AUTH_BYTES_MAX => text,
        Ok(Some(Ok(Message::Close(_)))) => {
            socket::answer_close(socket).await;
            return Err(Disconnected);
        }
        Ok(Some(Ok(_))) => return Ok(Err("authentication required")),
        Ok(Some(Err(broken))) => {
            let (code, reason) = socket::close_reason(broken);
            socket::close(socket, code, reason).await;
            return Err(Disconnected);
        }
        Ok(None) => return Err(Disconnected),
        Err(_) => return Ok(Err("authentication took too long")),
    };
    let Ok(Auth::Auth { token }) = strict_json::from_str(&first) else {
        return Ok(Err("authentication required"));
    };
    Ok(match admission.check_token(&token).await {
        Ok(()) => Ok(()),
        Err(Refusal::TooManyAttempts) => Err("too many attempts"),
        Err(_) => Err("invalid token"),
    })
}

/// The first frame other than a ping or pong.
async fn first_frame(socket: &mut WebSocket) -> Option<Result<Message, axum::Error>> {
    loop {
        match socket.recv().await {
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
            first => return first,
        }
    }
}

struct Connection {
    socket: WebSocket,
    stop: StopSignal,
    token: watch::Receiver<Token>,
    caller: Caller,
    events: Events,
    slow: JoinSet<Frame>,
    bucket: TokenBucket,
}

impl Connection {
    async fn run(mut self, mut sessions: FeedReader) -> Result<(), Disconnected> {
        loop {
            tokio::select! {
                () = self.stop.received() => {
                    return close(&mut self.socket, GOING_AWAY, "the server is stopping").await;
                }
                Ok(()) = self.token.changed() => {
                    // A connection that requested the rotation has received its response by now.
                    let reason = "the access token was rotated";
                    return close(&mut self.socket, NOT_ADMITTED, reason).await;
                }
                Some(ended) = self.slow.join_next() => {
                    if let Ok(frame) = ended {
                        send(&mut self.socket, &frame).await?;
                    }
                }
                message = self.socket.recv(), if self.slow.len() < SLOW_REQUESTS_MAX => match message {
                    Some(Ok(Message::Text(text))) => {
                        self.request(text).await?;
                        // Yields, so that a flood of requests does not delay other connections.
                        tokio::task::yield_now().await;
                    }
                    Some(Ok(Message::Binary(_))) => {
                        return close(&mut self.socket, NOT_TEXT, "binary frames are not supported").await;
                    }
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                    Some(Ok(Message::Close(_))) => {
                        socket::answer_close(&mut self.socket).await;
                        return Ok(());
                    }
                    None => return Ok(()),
                    Some(Err(broken)) => {
                        let (code, reason) = socket::close_reason(broken);
                        return close(&mut self.socket, code, reason).await;
                    }
                },
                fed = sessions.next() => match fed {
                    Ok(fed) => {
                        let Some(key) = self.caller.key_of(&fed.session_id) else { continue };
                        for (event, data) in self.events.of(&key, &fed) {
                            send(&mut self.socket, &Frame::Event { event, data }).await?;
                        }
                    }
                    Err(hub::TooSlow) => {
                        let reason = "too slow, please reconnect";
                        return close(&mut self.socket, TOO_SLOW, reason).await;
                    }
                },
            }
        }
    }

    async fn request(&mut self, text: Utf8Bytes) -> Result<(), Disconnected> {
        let request = socket::read(text, frame::parse).await.ok_or(Disconnected)?;
        if !self.bucket.take() {
            tokio::time::sleep(REJECTION_DELAY).await;
            let id = request.map_or(Value::Null, |request| request.id);
            let error = Problem::new(
                Problem::TOO_MANY,
                "Too many requests: send at most 100 per second.",
            );
            return send(&mut self.socket, &Frame::Error { id, error }).await;
        }
        let Request { id, method, params } = match request {
            Ok(request) => request,
            Err(answer) => return send(&mut self.socket, &answer).await,
        };
        let Some(method) = methods::find(&method) else {
            let message = format!("Unknown method: {}", frame::brief(&method));
            let error = Problem::new(Problem::UNKNOWN_METHOD, message);
            return send(&mut self.socket, &Frame::Error { id, error }).await;
        };
        let result = method.call(self.caller.clone(), params);
        let answer = async move {
            match result.await {
                Ok(result) => Frame::Result { id, result },
                Err(error) => Frame::Error { id, error },
            }
        };
        if method.is_slow {
            self.slow.spawn(answer);
            return Ok(());
        }
        send(&mut self.socket, &answer.await).await
    }
}

async fn send(socket: &mut WebSocket, frame: &Frame) -> Result<(), Disconnected> {
    let text = serde_json::to_string(frame).map_err(|_| Disconnected)?;
    let sending = socket.send(Message::Text(text.into()));
    match tokio::time::timeout(SEND_DEADLINE, sending).await {
        Ok(Ok(())) => Ok(()),
        _ => Err(Disconnected),
    }
}

async fn close(
    socket: &mut WebSocket,
    code: u16,
    reason: &'static str,
) -> Result<(), Disconnected> {
    socket::close(socket, code, reason).await;
    Ok(())
}
