//! The gateway: the same sessions as the browser's, for programs. One connection is one task.
//!
//! A program says who it is, then asks; `methods` is everything that can be asked, `events` what it hears of the
//! sessions it follows. Requests are carried out in the order in which they come, but for those that wait for an
//! agent to start. So the answer to a message always comes before the first word about it.

mod chat;
mod events;
mod follow;
mod frame;
mod messages;
mod methods;
mod projects;
mod reference;
mod sessions;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::extract::ws::{Message, Utf8Bytes, WebSocket, WebSocketUpgrade};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use hub::{FeedReader, Hub};
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use wire::gateway::{Auth, Frame, Problem, Request};

use self::events::Events;
use self::follow::Caller;
pub(crate) use self::reference::{reference, schema};
use crate::door::{Door, Refusal};
use crate::guests::Guests;
use crate::http::Allowance;
use crate::pace::Pace;
use crate::socket::{self, GOING_AWAY, NOT_ADMITTED, NOT_TEXT, TOO_SLOW};
use crate::stop::StopSignal;
use crate::strict_json;
use crate::token::{CurrentToken, Token};

/// Connections that have not said who they are yet, at a time.
pub(crate) const STRANGERS_MAX: usize = 16;
const AUTH_DEADLINE: Duration = Duration::from_secs(5);
const AUTH_BYTES_MAX: usize = 4096;
/// What frames are wrapped in, and pings beside them.
const FRAMING_BYTES: usize = 1024;
/// How long a program may leave a frame unread before it is taken for gone.
const SEND_DEADLINE: Duration = Duration::from_secs(20);
/// Requests that wait for an agent, at a time.
const SLOW_MAX: usize = 16;
/// Requests a second, and how many at once after a rest.
const RATE: f64 = 100.0;
const BURST: f64 = 200.0;
/// How long a refusal takes: saying no again and again must not become work.
const REFUSAL_PAUSE: Duration = Duration::from_millis(1);

/// What a connection needs to know.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) hub: Hub,
    pub(crate) door: Arc<Door>,
    pub(crate) strangers: Arc<Semaphore>,
    /// Where sessions work that were given no folder.
    pub(crate) scratch: PathBuf,
    /// The built-in agent's personas.
    pub(crate) personas: PathBuf,
    /// The model of those that name none.
    pub(crate) model: Option<String>,
    pub(crate) token: Arc<CurrentToken>,
    pub(crate) guests: Guests,
    pub(crate) stop: StopSignal,
}

/// The socket can no longer be used.
struct Gone;

/// Lets a stranger in, who then has to say who they are.
pub(crate) fn accept(
    upgrade: WebSocketUpgrade,
    allowance: Allowance,
    context: Context,
) -> Response {
    let Ok(place) = context.strangers.clone().try_acquire_owned() else {
        let full = "Too many connections have not said who they are yet. Try again in a moment.\n";
        return (StatusCode::SERVICE_UNAVAILABLE, full).into_response();
    };
    allowance.limit(AUTH_BYTES_MAX + FRAMING_BYTES);
    allowance.pace();
    socket::bounded(upgrade).on_upgrade(move |socket| async move {
        let _ = serve(socket, context, allowance, place).await;
    })
}

async fn serve(
    mut socket: WebSocket,
    context: Context,
    allowance: Allowance,
    place: OwnedSemaphorePermit,
) -> Result<(), Gone> {
    // Before it is shown: one that changes in between counts as changed.
    let token = context.token.changes();
    let known = tokio::select! {
        known = authenticate(&mut socket, &context.door) => known?,
        () = allowance.used_up() => Err("authentication required"),
    };
    if let Err(why) = known {
        let refused = Frame::Auth {
            r#type: "auth",
            ok: false,
            error: Some(why),
        };
        send(&mut socket, &refused).await?;
        return close(&mut socket, NOT_ADMITTED, why).await;
    }
    let Some(_guest) = context.guests.enter() else {
        return close(&mut socket, GOING_AWAY, "the server stops").await;
    };
    drop(place);
    allowance.lift();
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
        pace: Pace::new(RATE, BURST),
        caller: Caller::new(context, feed, id),
    };
    let ended = connection.run(sessions).await;
    hub.sessions().leave_all(id).await;
    ended
}

/// The outer error: nobody is there any more.
async fn authenticate(
    socket: &mut WebSocket,
    door: &Door,
) -> Result<Result<(), &'static str>, Gone> {
    let first = match tokio::time::timeout(AUTH_DEADLINE, first_frame(socket)).await {
        Ok(Some(Ok(Message::Text(text)))) if text.len() <= AUTH_BYTES_MAX => text,
        Ok(Some(Ok(Message::Close(_)))) => {
            socket::answer_close(socket).await;
            return Err(Gone);
        }
        Ok(Some(Ok(_))) => return Ok(Err("authentication required")),
        Ok(Some(Err(broken))) => {
            let (code, why) = socket::why_broken(broken);
            socket::close(socket, code, why).await;
            return Err(Gone);
        }
        Ok(None) => return Err(Gone),
        Err(_) => return Ok(Err("authentication took too long")),
    };
    let Ok(Auth::Auth { token }) = strict_json::from_str(&first) else {
        return Ok(Err("authentication required"));
    };
    Ok(match door.check_token(&token).await {
        Ok(()) => Ok(()),
        Err(Refusal::TooManyAttempts) => Err("too many attempts"),
        Err(_) => Err("invalid token"),
    })
}

/// The first that says something; whether we are there may be asked before.
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
    pace: Pace,
}

impl Connection {
    async fn run(mut self, mut sessions: FeedReader) -> Result<(), Gone> {
        loop {
            tokio::select! {
                () = self.stop.received() => {
                    return close(&mut self.socket, GOING_AWAY, "the server stops").await;
                }
                Ok(()) = self.token.changed() => {
                    // The answer to whoever asked for it comes first.
                    let why = "the access token was changed";
                    return close(&mut self.socket, NOT_ADMITTED, why).await;
                }
                Some(ended) = self.slow.join_next() => {
                    if let Ok(frame) = ended {
                        send(&mut self.socket, &frame).await?;
                    }
                }
                message = self.socket.recv(), if self.slow.len() < SLOW_MAX => match message {
                    Some(Ok(Message::Text(text))) => {
                        self.request(text).await?;
                        // There may be many more: what others are waiting for goes in between.
                        tokio::task::yield_now().await;
                    }
                    Some(Ok(Message::Binary(_))) => {
                        return close(&mut self.socket, NOT_TEXT, "frames are text").await;
                    }
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                    Some(Ok(Message::Close(_))) => {
                        socket::answer_close(&mut self.socket).await;
                        return Ok(());
                    }
                    None => return Ok(()),
                    Some(Err(broken)) => {
                        let (code, why) = socket::why_broken(broken);
                        return close(&mut self.socket, code, why).await;
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
                        let why = "too slow, please reconnect";
                        return close(&mut self.socket, TOO_SLOW, why).await;
                    }
                },
            }
        }
    }

    async fn request(&mut self, text: Utf8Bytes) -> Result<(), Gone> {
        let request = socket::read(text, frame::parse).await.ok_or(Gone)?;
        if !self.pace.take() {
            tokio::time::sleep(REFUSAL_PAUSE).await;
            let id = request.map_or(Value::Null, |request| request.id);
            let error = Problem::new(Problem::TOO_MANY, "Too many requests. Slow down a little.");
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
        let carried_out = method.call(self.caller.clone(), params);
        let answer = async move {
            match carried_out.await {
                Ok(result) => Frame::Result { id, result },
                Err(error) => Frame::Error { id, error },
            }
        };
        if method.waits {
            self.slow.spawn(answer);
            return Ok(());
        }
        send(&mut self.socket, &answer.await).await
    }
}

async fn send(socket: &mut WebSocket, frame: &Frame) -> Result<(), Gone> {
    let text = serde_json::to_string(frame).map_err(|_| Gone)?;
    let sending = socket.send(Message::Text(text.into()));
    match tokio::time::timeout(SEND_DEADLINE, sending).await {
        Ok(Ok(())) => Ok(()),
        _ => Err(Gone),
    }
}

async fn close(socket: &mut WebSocket, code: u16, why: &'static str) -> Result<(), Gone> {
    socket::close(socket, code, why).await;
    Ok(())
}
