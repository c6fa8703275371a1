//! A model that answers on loopback in the place of a provider, so that real agents can be driven
//! whole: prompt, stream, tools, errors.
//!
//! It speaks Anthropic's Messages (`POST /v1/messages`) and OpenAI's Responses (`POST /v1/responses`),
//! streamed. What it does is written in the last prompt: the last line that begins with one of these
//! words decides.
//!
//! | words | what it does |
//! |---|---|
//! | `say TEXT` | says the text |
//! | `markdown` | says a page of markdown: headings, code, a table, a list |
//! | `think TEXT` | thinks the text, then says that it has |
//! | `run COMMAND` | runs it, then says what the last line of its output was |
//! | `ask COMMAND` | the same, with the person's leave asked for where the agent lets a model ask |
//! | `write PATH TEXT` | makes a file of one line |
//! | `edit PATH OLD => NEW` | changes a text in a file |
//! | `question TEXT \| A \| B` | has the person choose, then says what the tool said about it |
//! | `slow COUNT` | says that many numbered words, 20 in a second |
//! | `meet COUNT` | waits until that many requests have said so, then answers them all |
//! | `refuse STATUS` | answers with that HTTP status, as the provider would |
//! | `cut` | says half a sentence and hangs up |
//! | `recall` | says every earlier prompt it was handed, and what it was handed as its own answers |
//! | `look` | says how many pictures came with the prompt |
//! | anything else | says what was said |
//!
//! An agent's asides, such as the wish for a title, are answered with [`TITLE`] and with none of the
//! above: Claude Code's have no tools, or ask what the person might say next; Codex's want a schema. `GET /said` lists what was said, and to which prompt: what a
//! screen should show is compared with that.

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
use speech::Said;

/// Pictures come inside a request.
const REQUEST_MAX: usize = 64 << 20;
/// What is remembered of what was said.
const SAID_MAX: usize = 4096;

/// A running one. It ends with the value.
pub struct StandInModel {
    address: SocketAddr,
    heard: Heard,
    task: tokio::task::JoinHandle<()>,
}

impl StandInModel {
    /// On the given port, or on any that is free if that is 0.
    pub async fn start(port: u16) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let address = listener.local_addr()?;
        let heard = Heard::default();
        let routes = Router::new()
            .route("/v1/messages", post(messages::answer))
            .route("/v1/messages/count_tokens", post(messages::count_tokens))
            .route("/v1/responses", post(responses::answer))
            .route("/said", get(said))
            .layer(DefaultBodyLimit::max(REQUEST_MAX))
            .with_state(heard.clone());
        let task = tokio::spawn(async move {
            let _ = axum::serve(listener, routes).await;
        });
        Ok(Self {
            address,
            heard,
            task,
        })
    }

    /// For `ANTHROPIC_BASE_URL`; with `/v1` for providers in OpenAI's way.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What was said so far: the prompt and the words, as far as they were sent.
    pub fn said(&self) -> Vec<(String, String)> {
        let said = self.heard.list();
        let whole = said.iter().filter(|said| !said.aside);
        whole
            .map(|said| (said.prompt.clone(), said.text()))
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

/// What was asked and said so far, the newest [`SAID_MAX`] of it.
#[derive(Clone, Default)]
struct Heard {
    list: Arc<Mutex<VecDeque<Said>>>,
    /// How many came to meet others.
    met: Arc<watch::Sender<usize>>,
}

impl Heard {
    fn add(&self, said: Said) {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        if list.len() == SAID_MAX {
            list.pop_front();
        }
        list.push_back(said);
    }

    fn list(&self) -> Vec<Said> {
        let list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        list.iter().cloned().collect()
    }

    /// Returns when a multiple of `count` has come.
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

async fn said(State(heard): State<Heard>) -> Json<Value> {
    let list = heard.list();
    Json(list.iter().map(Said::to_json).collect())
}

/// A provider's no, in the shape that both kinds use.
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

    async fn asked(model: &StandInModel, path: &str, request: Value) -> crate::HttpResponse {
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
    async fn both_protocols_say_the_same() {
        let model = StandInModel::start(0).await.unwrap();
        for (path, request, end) in [
            ("/v1/messages", message("say Hello."), "message_stop"),
            ("/v1/responses", input("say Hello."), "response.completed"),
        ] {
            let answer = asked(&model, path, request).await;
            assert_eq!(answer.status, 200, "{path}");
            assert!(answer.text().contains(end), "{}", answer.text());
        }
        let one = ("say Hello.".to_owned(), "Hello.".to_owned());
        assert_eq!(model.said(), [one.clone(), one]);
    }

    #[tokio::test]
    async fn a_cut_answer_has_no_end_and_a_refusal_its_status() {
        let model = StandInModel::start(0).await.unwrap();
        for (path, ask) in [
            ("/v1/messages", message as fn(&str) -> Value),
            ("/v1/responses", input),
        ] {
            let cut = asked(&model, path, ask("cut")).await.text();
            assert!(cut.contains("not be"), "{cut}");
            assert!(!cut.ends_with("0\r\n\r\n"), "{cut}");
            assert_eq!(asked(&model, path, ask("refuse 429")).await.status, 429);
        }
    }

    #[tokio::test]
    async fn those_who_meet_are_answered_together() {
        let model = StandInModel::start(0).await.unwrap();
        let first = asked(&model, "/v1/messages", message("meet 2"));
        let mut first = std::pin::pin!(first);
        let alone = tokio::time::timeout(std::time::Duration::from_millis(200), &mut first).await;
        assert!(alone.is_err(), "it did not wait");
        let second = asked(&model, "/v1/responses", input("meet 2")).await;
        assert_eq!((first.await.status, second.status), (200, 200));
    }
}
