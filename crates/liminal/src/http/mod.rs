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
    CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue,
    RETRY_AFTER, USER_AGENT, WWW_AUTHENTICATE,
};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{any, get, post};
use axum::{Extension, Json, Router};
use store::{NotTaken, PICTURE_BYTES_MAX};
use wire::SignIn;

use crate::admission::{Admission, Refusal, SocketClient};
use crate::browser::ConnectionOptions;
use crate::browser_keys::BrowserKeys;
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
    pub(crate) keys: Arc<BrowserKeys>,
    pub(crate) browser: browser::Context,
    pub(crate) gateway: gateway::Context,
}

pub(crate) fn router(app: App) -> Router {
    Router::new()
        .route("/", get(home))
        .route("/portlet.html", get(portlet))
        .route("/health", get(health))
        .route("/auth", get(auth))
        .route("/identity", get(identity))
        .route(
            "/login",
            get(login_page)
                .post(login)
                .layer(DefaultBodyLimit::max(LOGIN_BODY_MAX)),
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

/// Sent by a browser with a request for the script of a service worker.
const SERVICE_WORKER: HeaderName = HeaderName::from_static("service-worker");
/// Replaces the service worker of another program that answered at this address, removes itself and reloads its pages.
/// The server's own pages use no service worker.
const REMOVE_SERVICE_WORKER: &str = "addEventListener('install', () => skipWaiting());
addEventListener('activate', (event) => event.waitUntil((async () => {
  await registration.unregister();
  for (const page of await clients.matchAll({ type: 'window' })) page.navigate(page.url);
})()));
";

/// Applies admission before routing and security headers after it, to every response.
async fn guard(State(app): State<App>, request: Request, next: Next) -> Response {
    let mut response = match app.admission.admit(request.uri(), request.headers()) {
        Ok(()) if request.headers().contains_key(SERVICE_WORKER) => remove_service_worker(),
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    };
    headers::protect(response.headers_mut());
    response
}

fn remove_service_worker() -> Response {
    tracing::warn!(
        "a browser has a service worker of another program at this address; it is removed"
    );
    let headers = [
        (CONTENT_TYPE, "text/javascript; charset=utf-8"),
        (CACHE_CONTROL, "no-store"),
    ];
    (headers, REMOVE_SERVICE_WORKER).into_response()
}

/// The workspace. It contains no user data until the browser has proven its key on the page's WebSocket.
async fn home(State(app): State<App>, headers: HeaderMap) -> Response {
    page(&app, "index.html", "/", &headers)
}

async fn login_page(State(app): State<App>, headers: HeaderMap) -> Response {
    page(&app, "login.html", "/login", &headers)
}

fn page(app: &App, file: &str, path: &str, headers: &HeaderMap) -> Response {
    match app.admission.instead_of_localhost(headers) {
        // The browser keeps the fragment, and with it the token.
        Some(origin) => Redirect::temporary(&format!("{origin}{path}")).into_response(),
        None => assets::page(file, headers),
    }
}

/// The page of a session. It is empty until the workspace that embeds it sends it data.
async fn portlet(headers: HeaderMap) -> Response {
    assets::portlet(&headers)
}

async fn health() -> Response {
    Json(serde_json::json!({ "status": "ok" })).into_response()
}

/// Responds with 204 to a program with the token, otherwise with 401.
async fn auth(State(app): State<App>, headers: HeaderMap) -> Result<StatusCode, Refusal> {
    app.admission.admit_program_with_token(&headers).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Proves to a page which server this is, and tells it whether the server knows the browser.
async fn identity(
    State(app): State<App>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Response> {
    if app.admission.address_of_page(&headers).is_none() {
        return Err(Refusal::Host.into_response());
    }
    let named = app.admission.named_browser(&uri, &headers);
    let named = named.ok_or_else(|| StatusCode::BAD_REQUEST.into_response())?;
    let identity = app.keys.identify(&named.host, &named.browser, &named.nonce);
    Ok(([(CACHE_CONTROL, "no-store")], Json(identity)).into_response())
}

/// Registers a browser that proves knowledge of the token.
async fn login(State(app): State<App>, request: Request) -> Result<Response, Response> {
    // Before any of the body is read.
    let headers = request.headers();
    app.admission
        .admit_change(headers)
        .map_err(IntoResponse::into_response)?;
    let host = app.admission.address_of_page(headers);
    let host = host
        .ok_or_else(|| Refusal::Host.into_response())?
        .to_owned();
    let agent = headers
        .get(USER_AGENT)
        .and_then(|value| value.to_str().ok());
    let agent = agent.unwrap_or_default().to_owned();
    let kind = headers.get(CONTENT_TYPE);
    if !kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/json")) {
        return Err(StatusCode::UNSUPPORTED_MEDIA_TYPE.into_response());
    }
    let request = body::whole(request, LOGIN_BODY_MAX, LOGIN_DEADLINE).await?;
    let read = Json::<SignIn>::from_request(request, &()).await;
    let Json(sign_in) = read.map_err(IntoResponse::into_response)?;
    let outdated = || {
        let why = "This sign-in is invalid or too old. Reload the page and sign in again.\n";
        (StatusCode::CONFLICT, why).into_response()
    };
    if !app.keys.can_sign_in(&sign_in) {
        return Err(outdated());
    }
    app.admission
        .check_sign_in(&sign_in, &host)
        .await
        .map_err(IntoResponse::into_response)?;
    match app.keys.sign_in(sign_in, &host, &agent).await {
        Ok(Some(signed_in)) => Ok(([(CACHE_CONTROL, "no-store")], Json(signed_in)).into_response()),
        Ok(None) => Err(outdated()),
        Err(error) => {
            tracing::error!(%error, "could not register a browser");
            let why = format!(
                "The browser could not be registered: {error}. Make the data directory writable and sign in again.\n"
            );
            Err((StatusCode::INSUFFICIENT_STORAGE, why).into_response())
        }
    }
}

async fn socket(
    State(app): State<App>,
    Extension(receive_limit): Extension<ReceiveLimit>,
    Extension(place): Extension<PlaceOf>,
    uri: Uri,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Refusal> {
    // Before the upgrade is checked: an unauthenticated client only learns that it is not authenticated.
    let client = app.admission.admit_socket(&uri, &headers).await?;
    let options = ConnectionOptions::from_query(uri.query());
    Ok(match (upgrade, client) {
        (Ok(upgrade), SocketClient::Program) => {
            browser::accept(upgrade, options, &receive_limit, app.browser)
        }
        (Ok(upgrade), SocketClient::Page(named)) => browser::accept_page(
            upgrade,
            options,
            named,
            receive_limit,
            place.peer(),
            app.browser,
        ),
        (Err(rejection), _) => rejection.into_response(),
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
    app.gateway.unauthenticated.turn().await;
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
    let admitted = app.admission.admit_upload(request.uri(), request.headers());
    admitted.await.map_err(IntoResponse::into_response)?;
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

/// An image by its id, a random UUID. The id alone is not sufficient to read the image: a page sends it to whichever
/// program answers.
async fn picture(
    State(app): State<App>,
    Path(id): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    if let Err(refusal) = app.admission.admit_reader(&uri, &headers).await {
        return refusal.into_response();
    }
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
