//! A model server on loopback that replaces a provider, so that real agents can be tested end to end:
//! prompt, stream, tools, errors.
//!
//! It implements Anthropic's Messages API (`POST /v1/messages`) and OpenAI's Responses API
//! (`POST /v1/responses`), streamed. The prompt controls the response: the last line of the prompt that
//! begins with one of these words decides.
//!
//! | words | response |
//! |---|---|
//! | `say TEXT` | the text |
//! | `markdown` | a page of markdown: headings, code, a table, a list |
//! | `think TEXT` | the text as a thought, then a short message |
//! | `run COMMAND` | a tool call that runs the command, then the last line of its output |
//! | `ask COMMAND` | the same, with a request for the user's approval if the agent's tool has one |
//! | `write PATH TEXT` | a tool call that creates a file with one line |
//! | `edit PATH OLD => NEW` | a tool call that replaces a text in a file |
//! | `question TEXT \| A \| B` | a tool call that lets the user choose, then the tool's result |
//! | `slow COUNT` | that many numbered words, 20 per second |
//! | `meet COUNT` | waits until that many `meet` requests are pending, then answers them all |
//! | `refuse STATUS` | that HTTP status, with the provider's error format |
//! | `cut` | half a sentence, then the connection is dropped |
//! | `recall` | every earlier prompt and response that the request contains |
//! | `look` | the number of images in the prompt |
//! | anything else | the prompt itself |
//!
//! Side requests of an agent, such as for a session title, are always answered with [`TITLE`]. Claude Code's
//! have no tools or ask for a suggestion of the user's next message; Codex's contain an output schema.
//! `GET /said` lists all exchanges, so that a test can compare what a page shows with what was sent.

mod messages;
mod responses;
mod scenario;
mod speech;

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;

pub use scenario::{MARKDOWN, TITLE};
use speech::Exchange;

/// Maximum request size; images are inside the request.
const REQUEST_MAX: usize = 64 << 20;
/// Maximum number of exchanges kept for `/said`.
const EXCHANGES_MAX: usize = 4096;

/// A running stand-in model. It stops when the value is dropped.
pub struct StandInModel {
    address: SocketAddr,
    log: RequestLog,
    task: tokio::task::JoinHandle<()>,
}

impl StandInModel {
    /// Starts on the given port, or on any free port if it is 0.
    pub async fn start(port: u16) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let address = listener.local_addr()?;
        let log = RequestLog::default();
        let routes = Router::new()
            .route("/v1/messages", post(messages::answer))
            .route("/v1/messages/count_tokens", post(messages::count_tokens))
            .route("/v1/responses", post(responses::answer))
            .route("/said", get(said))
            .layer(DefaultBodyLimit::max(REQUEST_MAX))
            .with_state(log.clone());
        let task = tokio::spawn(async move {
            let _ = axum::serve(listener, routes).await;
        });
        Ok(Self { address, log, task })
    }

    /// The value for `ANTHROPIC_BASE_URL`; OpenAI's base URL has `/v1` appended.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All exchanges except side requests: the prompt, and the response text sent so far.
    pub fn said(&self) -> Vec<(String, String)> {
        let said = self.log.list();
        let main = said.iter().filter(|said| !said.aside);
        main.map(|said| (said.prompt.clone(), said.text()))
            .collect()
    }

    /// Runs until the process ends.
    pub async fn serve(mut self) {
        let _ = (&mut self.task).await;
    }
}

impl Drop for StandInModel {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The newest [`EXCHANGES_MAX`] exchanges.
#[derive(Clone, Default)]
struct RequestLog {
    list: Arc<Mutex<VecDeque<Exchange>>>,
    /// Number of `meet` requests received.
    met: Arc<watch::Sender<usize>>,
}

impl RequestLog {
    fn add(&self, said: Exchange) {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        if list.len() == EXCHANGES_MAX {
            list.pop_front();
        }
        list.push_back(said);
    }

    fn list(&self) -> Vec<Exchange> {
        let list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        list.iter().cloned().collect()
    }

    /// Waits until the group of `count` requests that this one belongs to is complete.
    async fn meet(&self, count: usize) {
        if count == 0 {
            return;
        }
        let mut place = 0;
        self.met.send_modify(|met| {
            *met += 1;
            place = *met;
        });
        let complete = place.next_multiple_of(count);
        let mut met = self.met.subscribe();
        let _ = met.wait_for(|met| *met >= complete).await;
    }
}

async fn said(State(log): State<RequestLog>) -> Json<Value> {
    let list = log.list();
    Json(list.iter().map(Exchange::to_json).collect())
}

/// An error response in the format that both providers share.
fn refusal(status: u16, kind: &str, message: &str) -> Response {
    let body = json!({"type": "error", "error": {"type": kind, "code": kind, "message": message}});
    let mut response = Response::new(body.to_string().into());
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
    let headers = response.headers_mut();
    headers.insert(
        "content-type",
        axum::http::HeaderValue::from_static("application/json"),
    );
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn post_request(model: &StandInModel, path: &str, request: Value) -> crate::HttpResponse {
        let head = [
            format!("POST {path} HTTP/1.1"),
            format!("Host: {}", model.address),
            "Content-Type: application/json".to_owned(),
        ];
        crate::http(model.address, &head, &request.to_string())
            .await
            .unwrap()
    }

    fn message(prompt: &str) -> Value {
        let content = json!([{"type": "text", "text": prompt}]);
        let messages = json!([{"role": "user", "content": content}]);
        json!({"model": "m", "stream": true, "tools": [{"name": "Bash"}], "messages": messages})
    }

    fn input(prompt: &str) -> Value {
        let content = json!([{"type": "input_text", "text": prompt}]);
        json!({"model": "m", "stream": true, "input": [{"type": "message", "role": "user", "content": content}]})
    }

    #[tokio::test]
    async fn both_protocols_send_the_same_text() {
        let model = StandInModel::start(0).await.unwrap();
        for (path, request, end) in [
            ("/v1/messages", message("say Hello."), "message_stop"),
            ("/v1/responses", input("say Hello."), "response.completed"),
        ] {
            let answer = post_request(&model, path, request).await;
            assert_eq!(answer.status, 200, "{path}");
            assert!(answer.text().contains(end), "{}", answer.text());
        }
        let one = ("say Hello.".to_owned(), "Hello.".to_owned());
        assert_eq!(model.said(), [one.clone(), one]);
    }

    #[tokio::test]
    async fn cut_response_has_no_end_and_refusal_has_its_status() {
        let model = StandInModel::start(0).await.unwrap();
        for (path, ask) in [
            ("/v1/messages", message as fn(&str) -> Value),
            ("/v1/responses", input),
        ] {
            let cut = post_request(&model, path, ask("cut")).await.text();
            assert!(cut.contains("not be"), "{cut}");
            assert!(!cut.ends_with("0\r\n\r\n"), "{cut}");
            assert_eq!(
                post_request(&model, path, ask("refuse 429")).await.status,
                429
            );
        }
    }

    #[tokio::test]
    async fn meet_requests_are_answered_together() {
        let model = StandInModel::start(0).await.unwrap();
        let first = post_request(&model, "/v1/messages", message("meet 2"));
        let mut first = std::pin::pin!(first);
        let alone = tokio::time::timeout(std::time::Duration::from_millis(200), &mut first).await;
        assert!(
            alone.is_err(),
            "the first request was answered before the second arrived"
        );
        let second = post_request(&model, "/v1/responses", input("meet 2")).await;
        assert_eq!((first.await.status, second.status), (200, 200));
    }
}
