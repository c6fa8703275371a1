//! The HTTP routes of both listeners, with admission before and security headers after each.

mod body;
mod headers;
mod listen;
mod receive_limit;

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{DefaultBodyLimit, FromRequest, Path, Request, State, WebSocketUpgrade};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue,
    RETRY_AFTER, SET_COOKIE, WWW_AUTHENTICATE,
};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use axum::{Extension, Json, Router};
use serde::Deserialize;
use store::{NotTaken, PICTURE_BYTES_MAX};

use crate::admission::{Admission, Refusal};
use crate::browser::ConnectionOptions;
use crate::connection_limit::PlaceOf;
use crate::{assets, browser, gateway};

pub(crate) use headers::{Hashes, content_security_policy, portlet_security_policy};
use listen::ConnectionDeadline;
pub(crate) use listen::{Listening, listen};
pub(crate) use receive_limit::ReceiveLimit;

/// Maximum size of a login request: the client is not authenticated yet.
const LOGIN_BODY_MAX: usize = 4096;
/// Time limit for the body of a login.
const LOGIN_DEADLINE: Duration = Duration::from_secs(5);

/// Time limit for receiving an image.
const UPLOAD_DEADLINE: Duration = Duration::from_secs(60);
/// Time limit for saving it and sending the response.
const UPLOAD_ANSWER_DEADLINE: Duration = Duration::from_secs(10);

/// State shared by all handlers.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) admission: Arc<Admission>,
    pub(crate) browser: browser::Context,
    pub(crate) gateway: gateway::Context,
}

pub(crate) fn router(app: App) -> Router {
    Router::new()
        .route("/", get(home))
        .route("/portlet.html", get(portlet))
        .route("/health", get(health))
        .route("/auth", get(auth))
        .route(
            "/login",
            post(login).layer(DefaultBodyLimit::max(LOGIN_BODY_MAX)),
        )
        .route("/ws", any(socket))
        .route("/gateway", any(programs))
        .route(
            "/uploads",
            post(upload).layer(DefaultBodyLimit::max(PICTURE_BYTES_MAX)),
        )
        .route("/uploads/{id}", get(picture))
        .fallback(get(file))
        .layer(middleware::from_fn_with_state(app.clone(), guard))
        .with_state(app)
}

/// The routes of the gateway's own listener.
pub(crate) fn gateway_router(app: App) -> Router {
    Router::new()
        .route("/", any(programs))
        .route("/health", get(health))
        .layer(middleware::from_fn_with_state(app.clone(), guard))
        .with_state(app)
}

/// Applies admission before routing and security headers after it, to every response.
async fn guard(
    State(app): State<App>,
    Extension(place): Extension<PlaceOf>,
    request: Request,
    next: Next,
) -> Response {
    if app.admission.has_cookie(request.headers()) {
        place.authenticated();
    }
    let mut response = match app.admission.admit(request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    };
    headers::protect(response.headers_mut());
    response
}

/// The workspace for a browser with a valid cookie, otherwise the login page.
async fn home(State(app): State<App>, headers: HeaderMap) -> Response {
    if app.admission.has_cookie(&headers) {
        return assets::page("index.html", StatusCode::OK, &headers);
    }
    let mut response = assets::page("login.html", StatusCode::UNAUTHORIZED, &headers);
    response
        .headers_mut()
        .insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

/// The page of a session. It is empty until the workspace that embeds it sends it data.
async fn portlet(headers: HeaderMap) -> Response {
    assets::portlet(&headers)
}

async fn health() -> Response {
    Json(serde_json::json!({ "status": "ok" })).into_response()
}

/// Responds with 204 if the client is authenticated, otherwise with 401.
async fn auth(State(app): State<App>, headers: HeaderMap) -> Result<StatusCode, Refusal> {
    app.admission.admit_reader(&headers).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize)]
struct Login {
    token: String,
}

/// Exchanges the token for a cookie.
async fn login(State(app): State<App>, request: Request) -> Result<Response, Response> {
    // Before any of the body is read.
    app.admission
        .admit_change(request.headers())
        .map_err(IntoResponse::into_response)?;
    let kind = request.headers().get(CONTENT_TYPE);
    if !kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/json")) {
        return Err(StatusCode::UNSUPPORTED_MEDIA_TYPE.into_response());
    }
    let request = body::whole(request, LOGIN_BODY_MAX, LOGIN_DEADLINE).await?;
    let read = Json::<Login>::from_request(request, &()).await;
    let Json(login) = read.map_err(IntoResponse::into_response)?;
    app.admission
        .check_token(&login.token)
        .await
        .map_err(IntoResponse::into_response)?;
    let cookie = HeaderValue::from_str(&app.admission.cookie())
        .map_err(|_| Refusal::Unauthorized.into_response())?;
    let mut response = StatusCode::NO_CONTENT.into_response();
    response.headers_mut().insert(SET_COOKIE, cookie);
    Ok(response)
}

async fn socket(
    State(app): State<App>,
    Extension(receive_limit): Extension<ReceiveLimit>,
    uri: Uri,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Refusal> {
    // Before the upgrade is checked: an unauthenticated client only learns that it is not authenticated.
    app.admission.admit_socket(&headers).await?;
    Ok(match upgrade {
        Ok(upgrade) => browser::accept(
            upgrade,
            ConnectionOptions::from_query(uri.query()),
            &receive_limit,
            app.browser,
        ),
        Err(rejection) => rejection.into_response(),
    })
}

/// A gateway client authenticates in its first frame; a page of another origin is rejected before the upgrade.
async fn programs(
    State(app): State<App>,
    Extension(receive_limit): Extension<ReceiveLimit>,
    Extension(place): Extension<PlaceOf>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Refusal> {
    app.admission.admit_program(&headers)?;
    let mut response = match upgrade {
        Ok(upgrade) => gateway::accept(upgrade, receive_limit, place.peer(), app.gateway),
        Err(rejection) => rejection.into_response(),
    };
    // A rejected client frees its connection for the next one immediately.
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        let headers = response.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(response)
}

/// Saves an image and responds with its id.
async fn upload(
    State(app): State<App>,
    Extension(place): Extension<PlaceOf>,
    Extension(connection): Extension<ConnectionDeadline>,
    request: Request,
) -> Result<Response, Response> {
    let headers = request.headers();
    let admitted = match headers.contains_key(AUTHORIZATION) {
        true => app.admission.admit_reader(headers).await,
        false if app.admission.has_cookie(headers) => app.admission.admit_change(headers),
        false => Err(Refusal::Unauthorized),
    };
    admitted.map_err(IntoResponse::into_response)?;
    place.authenticated();
    connection.extend(UPLOAD_DEADLINE + UPLOAD_ANSWER_DEADLINE);
    let request = body::whole(request, PICTURE_BYTES_MAX, UPLOAD_DEADLINE).await?;
    let read = Bytes::from_request(request, &()).await;
    let bytes = read.map_err(IntoResponse::into_response)?;
    let uploads = app.browser.hub.uploads().clone();
    let saved = tokio::task::spawn_blocking(move || uploads.save(&bytes)).await;
    match saved {
        Ok(Ok(id)) => Ok(Json(serde_json::json!({ "id": id, "imageId": id })).into_response()),
        Ok(Err(problem)) => {
            let status = match problem {
                NotTaken::NotAPicture => StatusCode::UNSUPPORTED_MEDIA_TYPE,
                NotTaken::TooBig => StatusCode::PAYLOAD_TOO_LARGE,
                NotTaken::Write(_) => StatusCode::INSUFFICIENT_STORAGE,
            };
            Err((status, format!("{problem}\n")).into_response())
        }
        Err(_) => Err(StatusCode::INTERNAL_SERVER_ERROR.into_response()),
    }
}

/// An image by its id, a random UUID. Knowing the id is sufficient to read the image.
async fn picture(State(app): State<App>, Path(id): Path<String>) -> Response {
    let uploads = app.browser.hub.uploads().clone();
    let loaded = tokio::task::spawn_blocking(move || uploads.load(&id)).await;
    let Ok(Some(upload)) = loaded else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let headers = [
        (CONTENT_TYPE, upload.mime_type),
        (CACHE_CONTROL, "private, max-age=31536000, immutable"),
        (CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"),
    ];
    (headers, upload.bytes).into_response()
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
