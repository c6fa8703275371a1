//! Anthropic's Messages API: parses Claude Code's requests and writes the responses.

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};

use super::scenario::{Answer, ModelRequest, Speech, Work, decide};
use super::speech::{Event, Exchange, fresh_id, stream_of, whole};
use super::{RequestLog, refusal};

/// Start of the request in which Claude Code asks for a suggestion of the user's next message.
const SUGGESTION_PREFIX: &str = "[SUGGESTION MODE";

pub(super) async fn count_tokens() -> Json<Value> {
    Json(json!({"input_tokens": 100}))
}

pub(super) async fn answer(State(log): State<RequestLog>, Json(request): Json<Value>) -> Response {
    let asked = parse(&request);
    let exchange = Exchange::new(&asked.prompt, &request["model"], asked.aside);
    log.add(exchange.clone());
    match decide(&asked, |work| calls(work).len()) {
        Answer::Refused(status) => {
            let kind = match status {
                429 => "rate_limit_error",
                529 => "overloaded_error",
                500.. => "api_error",
                _ => "invalid_request_error",
            };
            refusal(status, kind, "the prompt told the stand-in model to refuse")
        }
        Answer::Spoken(speech) => {
            log.meet(speech.meet).await;
            if request["stream"] != true {
                return whole(
                    &message(&request, &speech.pieces.concat()),
                    speech.cut,
                    &exchange,
                );
            }
            let events = events(&request, &speech, asked.results.len());
            stream_of(events, speech.cut, exchange)
        }
    }
}

fn parse(request: &Value) -> ModelRequest {
    let mut asked = ModelRequest {
        aside: request["tools"].as_array().is_none_or(Vec::is_empty),
        ..ModelRequest::default()
    };
    for message in request["messages"].as_array().into_iter().flatten() {
        // Agents pass extra context under roles of their own.
        let Some(role @ ("user" | "assistant")) = message["role"].as_str() else {
            continue;
        };
        let blocks = blocks(&message["content"]);
        let texts = blocks.iter().filter(|block| block["type"] == "text");
        let texts = texts.filter_map(|block| block["text"].as_str());
        let text = joined_text(texts);
        if role == "assistant" {
            asked.since.extend(text);
            continue;
        }
        let results = blocks.iter().filter(|block| block["type"] == "tool_result");
        asked.results.extend(results.map(result));
        if let Some(text) = text {
            asked.aside |= text.starts_with(SUGGESTION_PREFIX);
            let pictures = blocks.iter().filter(|block| block["type"] == "image");
            asked.add_prompt(text, pictures.count());
        }
    }
    asked
}

/// Content is a list of blocks, or a string that stands for one text block.
fn blocks(content: &Value) -> Vec<Value> {
    match content {
        Value::Array(list) => list.clone(),
        Value::String(text) => vec![json!({"type": "text", "text": text})],
        _ => vec![],
    }
}

/// The text of a message, without the context that agents add in brackets; `None` if nothing is left.
pub(super) fn joined_text<'text>(texts: impl Iterator<Item = &'text str>) -> Option<String> {
    let texts: Vec<&str> = texts
        .filter(|text| {
            !text.trim_start().starts_with(['<', '[']) || text.starts_with(SUGGESTION_PREFIX)
        })
        .collect();
    Some(texts.join("\n")).filter(|text| !text.trim().is_empty())
}

fn result(block: &Value) -> String {
    let parts = blocks(&block["content"]);
    let texts = parts.iter().filter_map(|part| part["text"].as_str());
    texts.collect::<Vec<_>>().join("\n")
}

/// The tool calls for a piece of work. Claude Code edits a file only after it has read it.
fn calls(work: &Work) -> Vec<(&'static str, Value)> {
    match work {
        Work::Run { command, .. } => {
            vec![("Bash", json!({"command": command, "description": "Run it"}))]
        }
        Work::Write { path, text } => {
            vec![("Write", json!({"file_path": path, "content": text}))]
        }
        Work::Edit { path, old, new } => vec![
            ("Read", json!({"file_path": path})),
            (
                "Edit",
                json!({"file_path": path, "old_string": old, "new_string": new}),
            ),
        ],
        Work::Question { text, choices } => {
            let options = choices
                .iter()
                .map(|choice| json!({"label": choice, "description": format!("To {choice}")}));
            let options: Vec<Value> = options.collect();
            let question = json!({"question": text, "header": "A choice", "options": options, "multiSelect": false});
            vec![("AskUserQuestion", json!({"questions": [question]}))]
        }
    }
}

/// A response object; for the start of a stream its content is empty.
fn message(request: &Value, text: &str) -> Value {
    let content = match text {
        "" => json!([]),
        text => json!([{"type": "text", "text": text}]),
    };
    json!({
        "id": fresh_id("msg"), "type": "message", "role": "assistant", "model": request["model"],
        "content": content, "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": 100, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 1},
    })
}

fn events(request: &Value, speech: &Speech, step: usize) -> Vec<Event> {
    let start = json!({"type": "message_start", "message": message(request, "")});
    let mut events = vec![Event::new(start)];
    let mut index = 0;
    if let Some(thought) = &speech.thought {
        let delta = |delta: Value| {
            Event::new(json!({"type": "content_block_delta", "index": index, "delta": delta}))
        };
        events.push(Event::new(
            json!({"type": "content_block_start", "index": index,
            "content_block": {"type": "thinking", "thinking": "", "signature": ""}}),
        ));
        events.push(delta(
            json!({"type": "thinking_delta", "thinking": thought}),
        ));
        events.push(delta(
            json!({"type": "signature_delta", "signature": "c3RhbmQtaW4="}),
        ));
        events.push(stop(index));
        index += 1;
    }
    events.push(Event::new(
        json!({"type": "content_block_start", "index": index,
        "content_block": {"type": "text", "text": ""}}),
    ));
    for piece in &speech.pieces {
        let delta = json!({"type": "content_block_delta", "index": index,
            "delta": {"type": "text_delta", "text": piece}});
        events.push(Event::with_text(delta, piece, speech.pace));
    }
    if speech.cut {
        return events;
    }
    events.push(stop(index));
    let call = speech
        .work
        .as_ref()
        .map(calls)
        .and_then(|calls| calls.into_iter().nth(step));
    let reason = if call.is_some() {
        "tool_use"
    } else {
        "end_turn"
    };
    if let Some((name, input)) = call {
        index += 1;
        events.push(Event::new(json!({"type": "content_block_start", "index": index,
            "content_block": {"type": "tool_use", "id": fresh_id("toolu"), "name": name, "input": {}}})));
        events.push(Event::new(
            json!({"type": "content_block_delta", "index": index,
            "delta": {"type": "input_json_delta", "partial_json": input.to_string()}}),
        ));
        events.push(stop(index));
    }
    events.push(Event::new(json!({"type": "message_delta",
        "delta": {"stop_reason": reason, "stop_sequence": null}, "usage": {"output_tokens": 42}})));
    events.push(Event::new(json!({"type": "message_stop"})));
    events
}

fn stop(index: usize) -> Event {
    Event::new(json!({"type": "content_block_stop", "index": index}))
}
