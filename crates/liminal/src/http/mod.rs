//! The browser door over HTTP: which address answers with what, and the headers on every answer.

mod headers;
mod listen;

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{DefaultBodyLimit, FromRequest, Request, State, WebSocketUpgrade};
use axum::http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER, SET_COOKIE, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use axum::{Json, Router};
use serde::Deserialize;

use crate::door::{Door, Refusal};
use crate::{assets, browser};

pub(crate) use headers::content_security_policy;
pub(crate) use listen::listen;

/// Nobody who has not shown the token may make us hold more than this.
const LOGIN_BODY_MAX: usize = 4096;
/// How long the few bytes of a login may take.
const LOGIN_DEADLINE: Duration = Duration::from_secs(5);

/// What every handler can reach.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) door: Arc<Door>,
    pub(crate) browser: browser::Context,
}

pub(crate) fn router(app: App) -> Router {
    Router::new()
        .route("/", get(home))
        .route("/health", get(health))
        .route("/auth", get(auth))
        .route(
            "/login",
            post(login).layer(DefaultBodyLimit::max(LOGIN_BODY_MAX)),
        )
        .route("/ws", any(socket))
        .fallback(get(file))
        .layer(middleware::from_fn_with_state(app.clone(), guard))
        .with_state(app)
}

/// Checks before routing, headers after it. Nothing is answered without both.
async fn guard(State(app): State<App>, request: Request, next: Next) -> Response {
    let mut response = match app.door.admit(request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    };
    headers::protect(response.headers_mut());
    response
}

/// The workspace for a browser that has the cookie, the login page for any other.
async fn home(State(app): State<App>, headers: HeaderMap) -> Response {
    if app.door.has_cookie(&headers) {
        return assets::page("index.html", StatusCode::OK, &headers);
    }
    let mut response = assets::page("login.html", StatusCode::UNAUTHORIZED, &headers);
    response
        .headers_mut()
        .insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

async fn health() -> Response {
    Json(serde_json::json!({ "status": "ok" })).into_response()
}

/// Whether the caller is known: 204 or 401.
async fn auth(State(app): State<App>, headers: HeaderMap) -> Result<StatusCode, Refusal> {
    app.door.admit_reader(&headers).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize)]
struct Login {
    token: String,
}

/// Exchanges the token for the cookie.
async fn login(State(app): State<App>, request: Request) -> Result<Response, Response> {
    // Before a byte of the body is read.
    app.door
        .admit_change(request.headers())
        .map_err(IntoResponse::into_response)?;
    let reading = tokio::time::timeout(LOGIN_DEADLINE, Json::<Login>::from_request(request, &()));
    let Json(login) = match reading.await {
        Ok(read) => read.map_err(IntoResponse::into_response)?,
        Err(_) => return Err(StatusCode::REQUEST_TIMEOUT.into_response()),
    };
    app.door
        .check_token(&login.token)
        .await
        .map_err(IntoResponse::into_response)?;
    let cookie = HeaderValue::from_str(&app.door.cookie())
        .map_err(|_| Refusal::Unauthorized.into_response())?;
    let mut response = StatusCode::NO_CONTENT.into_response();
    response.headers_mut().insert(SET_COOKIE, cookie);
    Ok(response)
}

async fn socket(
    State(app): State<App>,
    uri: Uri,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Refusal> {
    // Before the upgrade is judged: a stranger learns nothing but that they are one.
    app.door.admit_socket(&headers).await?;
    Ok(match upgrade {
        Ok(upgrade) => browser::accept(upgrade, uri.query() == Some("batch=1"), app.browser),
        Err(rejection) => rejection.into_response(),
    })
}

async fn file(request: Request<Body>) -> Response {
    assets::file(request.uri().path(), request.headers())
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = (self.status(), format!("{}\n", self.message())).into_response();
        let headers = response.headers_mut();
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static("text/plain; charset=utf-8"),
        );
        match self {
            Self::Unauthorized => {
                drop(headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer")))
            }
            Self::TooManyAttempts => {
                drop(headers.insert(RETRY_AFTER, HeaderValue::from_static("4")))
            }
            Self::Host | Self::TokenInQuery | Self::Origin => {}
        }
        response
    }
}
