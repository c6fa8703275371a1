//! A stand-in for model providers on loopback: it implements both protocols, answers with the responses
//! scripted by the test, and keeps the requests it received.

use std::collections::VecDeque;
use std::fmt::Write;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

#[derive(Clone)]
pub(crate) enum Say {
    /// Chunks of text, then a regular end.
    Text(&'static [&'static str]),
    /// A thought, then text.
    Thought(&'static str, &'static str),
    /// Some text, then tool calls.
    Tools(&'static str, Vec<(&'static str, Value)>),
    /// An HTTP error: status, `Retry-After` header, message.
    Status(u16, Option<&'static str>, &'static str),
    /// A text, then the connection is dropped.
    Cut(&'static str),
    /// A text, then no further output.
    Hang(&'static str),
}

/// One received request.
#[derive(Clone)]
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) headers: String,
    pub(crate) body: Value,
}

pub(crate) struct ModelServer {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl ModelServer {
    pub(crate) async fn start(script: Vec<Say>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let script = Arc::new(Mutex::new(VecDeque::from(script)));
        let keep = asked.clone();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(serve(socket, script.clone(), keep.clone()));
            }
        });
        Self { url, asked }
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

async fn serve(
    socket: TcpStream,
    script: Arc<Mutex<VecDeque<Say>>>,
    asked: Arc<Mutex<Vec<Asked>>>,
) {
    let mut socket = BufReader::new(socket);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if socket.read_line(&mut head).await.unwrap_or(0) == 0 {
            return;
        }
    }
    let header = |name: &str| {
        let mut lines = head.lines();
        lines.find_map(|line| {
            line.to_lowercase()
                .strip_prefix(&format!("{name}: "))
                .map(str::to_owned)
        })
    };
    let length = header("content-length").unwrap().parse().unwrap();
    let mut body = vec![0; length];
    socket.read_exact(&mut body).await.unwrap();
    let path = head.split(' ').nth(1).unwrap().to_owned();
    let anthropic = path.ends_with("/messages");
    asked.lock().unwrap().push(Asked {
        path,
        body: serde_json::from_slice(&body).unwrap(),
        headers: head.to_lowercase(),
    });
    let say = script.lock().unwrap().pop_front();
    let say = say.unwrap_or(Say::Status(500, None, "the script has no more responses"));
    if let Say::Status(status, retry_after, message) = say {
        let body = json!({"type": "error", "error": {"type": "some_error", "message": message}})
            .to_string();
        let retry = retry_after
            .map(|wait| format!("retry-after: {wait}\r\n"))
            .unwrap_or_default();
        let answer = format!(
            "HTTP/1.1 {status} Whatever\r\ncontent-type: application/json\r\n{retry}content-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        );
        let _ = socket.write_all(answer.as_bytes()).await;
        return;
    }
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n";
    let _ = socket.write_all(head.as_bytes()).await;
    let events = if anthropic {
        anthropic_events(&say)
    } else {
        openai_events(&say)
    };
    for event in events {
        let chunk = format!("{:x}\r\n{event}\r\n", event.len());
        if socket.write_all(chunk.as_bytes()).await.is_err() {
            return;
        }
        let _ = socket.flush().await;
    }
    match say {
        Say::Hang(_) => std::future::pending().await,
        Say::Cut(_) => {}
        _ => drop(socket.write_all(b"0\r\n\r\n").await),
    }
}

fn event(kind: &str, mut data: Value) -> String {
    data["type"] = json!(kind);
    format!("event: {kind}\ndata: {data}\n\n")
}

fn anthropic_events(say: &Say) -> Vec<String> {
    let usage = json!({"input_tokens": 90, "output_tokens": 1});
    let message =
        json!({"id": "m", "role": "assistant", "content": [], "model": "stand-in", "usage": usage});
    let mut events = vec![event("message_start", json!({ "message": message }))];
    let mut index = 0;
    let mut block = |events: &mut Vec<String>, begin: Value, deltas: Vec<Value>, ends: bool| {
        events.push(event(
            "content_block_start",
            json!({"index": index, "content_block": begin}),
        ));
        for delta in deltas {
            events.push(event(
                "content_block_delta",
                json!({"index": index, "delta": delta}),
            ));
        }
        if ends {
            events.push(event("content_block_stop", json!({ "index": index })));
        }
        index += 1;
    };
    let text = |piece: &&str| json!({"type": "text_delta", "text": piece});
    let empty = json!({"type": "text", "text": ""});
    let mut reason = "end_turn";
    match say {
        Say::Text(pieces) => block(&mut events, empty, pieces.iter().map(text).collect(), true),
        Say::Cut(piece) | Say::Hang(piece) => {
            block(&mut events, empty, vec![text(piece)], false);
            return events;
        }
        Say::Thought(thought, piece) => {
            let thought = json!({"type": "thinking_delta", "thinking": thought});
            block(
                &mut events,
                json!({"type": "thinking", "thinking": ""}),
                vec![thought],
                true,
            );
            block(&mut events, empty, vec![text(piece)], true);
        }
        Say::Tools(piece, calls) => {
            block(&mut events, empty, vec![text(piece)], true);
            for (number, (name, input)) in calls.iter().enumerate() {
                let begin = json!({"type": "tool_use", "id": format!("toolu_{number}"), "name": name, "input": {}});
                // In two halves, as real providers send it.
                let input = input.to_string();
                let (one, other) = input.split_at(input.len() / 2);
                let delta = |part: &str| json!({"type": "input_json_delta", "partial_json": part});
                block(&mut events, begin, vec![delta(one), delta(other)], true);
            }
            reason = "tool_use";
        }
        Say::Status(..) => {}
    }
    let delta = json!({"delta": {"stop_reason": reason}, "usage": {"output_tokens": 10}});
    events.push(event("message_delta", delta));
    events.push(event("message_stop", json!({})));
    events
}

fn openai_events(say: &Say) -> Vec<String> {
    let data = |value: Value| format!("data: {value}\n\n");
    let choice = |delta: Value, reason: Value| {
        let choices = json!([{"index": 0, "delta": delta, "finish_reason": reason}]);
        data(
            json!({"id": "c", "object": "chat.completion.chunk", "model": "stand-in", "choices": choices}),
        )
    };
    let text = |piece: &&str| choice(json!({ "content": piece }), Value::Null);
    let mut events = vec![];
    let mut reason = "stop";
    match say {
        Say::Text(pieces) => events.extend(pieces.iter().map(text)),
        Say::Cut(piece) | Say::Hang(piece) => return vec![text(piece)],
        Say::Thought(thought, piece) => {
            events.push(choice(json!({ "reasoning_content": thought }), Value::Null));
            events.push(text(piece));
        }
        Say::Tools(piece, calls) => {
            events.push(text(piece));
            for (index, (name, input)) in calls.iter().enumerate() {
                let input = input.to_string();
                let (one, other) = input.split_at(input.len() / 2);
                let call = json!([{"index": index, "id": format!("call_{index}"), "type": "function", "function": {"name": name, "arguments": one}}]);
                events.push(choice(json!({ "tool_calls": call }), Value::Null));
                let more = json!([{"index": index, "function": {"arguments": other}}]);
                events.push(choice(json!({ "tool_calls": more }), Value::Null));
            }
            reason = "tool_calls";
        }
        Say::Status(..) => {}
    }
    events.push(choice(json!({}), json!(reason)));
    let usage = json!({"prompt_tokens": 90, "completion_tokens": 10, "total_tokens": 100});
    events.push(data(json!({"id": "c", "object": "chat.completion.chunk", "model": "stand-in", "choices": [], "usage": usage})));
    events.push("data: [DONE]\n\n".to_owned());
    let mut all = String::new();
    for event in &events {
        let _ = write!(all, "{event}");
    }
    assert!(all.contains("[DONE]"));
    events
}
