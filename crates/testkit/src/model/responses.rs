//! OpenAI's Responses API: parses Codex's requests and writes the responses.

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};

use super::messages::joined_text;
use super::scenario::{Answer, ModelRequest, Speech, Work, decide};
use super::speech::{Event, Exchange, fresh_id, stream_of};
use super::{RequestLog, refusal};

pub(super) async fn answer(State(log): State<RequestLog>, Json(request): Json<Value>) -> Response {
    let asked = parse(&request);
    let exchange = Exchange::new(&asked.prompt, &request["model"], asked.aside);
    log.add(exchange.clone());
    match decide(&asked, |_| 1) {
        Answer::Refused(status) => {
            let kind = match status {
                429 => "rate_limit_exceeded",
                500.. => "server_error",
                _ => "invalid_request_error",
            };
            refusal(status, kind, "the prompt told the stand-in model to refuse")
        }
        Answer::Spoken(speech) => {
            log.meet(speech.meet).await;
            stream_of(events(&request, &speech), speech.cut, exchange)
        }
    }
}

fn parse(request: &Value) -> ModelRequest {
    let mut asked = ModelRequest {
        aside: !request["text"]["format"].is_null(),
        ..ModelRequest::default()
    };
    for item in request["input"].as_array().into_iter().flatten() {
        if item["type"]
            .as_str()
            .is_some_and(|kind| kind.ends_with("_output"))
        {
            asked.results.push(result(&item["output"]));
            continue;
        }
        let parts = || item["content"].as_array().into_iter().flatten();
        let text = joined_text(parts().filter_map(|part| part["text"].as_str()));
        match (item["role"].as_str(), text) {
            (Some("assistant"), text) => asked.since.extend(text),
            (Some("user"), Some(text)) => {
                let pictures = parts().filter(|part| part["type"] == "input_image");
                asked.add_prompt(text, pictures.count());
            }
            _ => {}
        }
    }
    asked
}

/// Whether the model must call tools by JavaScript: for newer models Codex lists its tools inside the input.
fn wants_scripts(request: &Value) -> bool {
    let items = request["input"].as_array();
    items.is_some_and(|items| items.iter().any(|item| item["type"] == "additional_tools"))
}

/// The text of a tool's output, which is a string or a list of parts.
fn result(output: &Value) -> String {
    if let Some(text) = output.as_str() {
        return text.to_owned();
    }
    let parts = output.as_array().into_iter().flatten();
    let texts = parts.filter_map(|part| part["text"].as_str());
    texts.collect::<Vec<_>>().join("\n")
}

/// The finished item of a tool call. The input of patches and scripts is plain text, all other input is JSON.
fn call(work: &Work, scripts: bool) -> Value {
    let plain = |name: &str, input: String| {
        json!({"id": fresh_id("ctc"), "type": "custom_tool_call", "status": "completed", "call_id": fresh_id("call"),
            "name": name, "input": input})
    };
    let patch = match work {
        Work::Run { command, ask } => {
            let mut arguments = json!({"cmd": command});
            if *ask {
                arguments["sandbox_permissions"] = "require_escalated".into();
                arguments["justification"] = "It was asked for.".into();
            }
            if scripts {
                let script = format!("text((await tools.exec_command({arguments})).output)");
                return plain("exec", script);
            }
            return json!({"id": fresh_id("fc"), "type": "function_call", "status": "completed", "call_id": fresh_id("call"),
                "name": "exec_command", "arguments": arguments.to_string()});
        }
        Work::Question { text, choices } => {
            let options = choices
                .iter()
                .map(|choice| json!({"label": choice, "description": format!("To {choice}")}));
            let options: Vec<Value> = options.collect();
            let question =
                json!({"id": "choice", "header": "A choice", "question": text, "options": options});
            let arguments = json!({"questions": [question]});
            return json!({"id": fresh_id("fc"), "type": "function_call", "status": "completed", "call_id": fresh_id("call"),
                "name": "request_user_input", "arguments": arguments.to_string()});
        }
        Work::Write { path, text } => format!("*** Add File: {path}\n+{text}"),
        Work::Edit { path, old, new } => format!("*** Update File: {path}\n@@\n-{old}\n+{new}\n"),
    };
    let patch = format!("*** Begin Patch\n{patch}*** End Patch\n");
    match scripts {
        true => plain(
            "exec",
            format!("text(await tools.apply_patch({}))", Value::from(patch)),
        ),
        false => plain("apply_patch", patch),
    }
}

fn events(request: &Value, speech: &Speech) -> Vec<Event> {
    let mut output = vec![];
    let response = json!({"id": fresh_id("resp"), "object": "response", "created_at": 0, "model": request["model"],
        "status": "in_progress", "output": []});
    let mut events = vec![Event::new(
        json!({"type": "response.created", "response": response}),
    )];
    if let Some(thought) = &speech.thought {
        let item = json!({"id": fresh_id("rs"), "type": "reasoning", "summary": []});
        let part = |kind: &str, more: Value| part_event(kind, &item, 0, "summary_index", more);
        events.push(of_item("added", &item, 0));
        events.push(Event::new(part(
            "response.reasoning_summary_part.added",
            json!({"part": {"type": "summary_text", "text": ""}}),
        )));
        events.push(Event::new(part(
            "response.reasoning_summary_text.delta",
            json!({"delta": thought}),
        )));
        events.push(Event::new(part(
            "response.reasoning_summary_text.done",
            json!({"text": thought}),
        )));
        let mut done = item.clone();
        done["summary"] = json!([{"type": "summary_text", "text": thought}]);
        events.push(of_item("done", &done, 0));
        output.push(done);
    }
    let at = output.len();
    let mut item = json!({"id": fresh_id("msg"), "type": "message", "role": "assistant", "status": "in_progress", "content": []});
    events.push(of_item("added", &item, at));
    let part = |kind: &str, more: Value| part_event(kind, &item, at, "content_index", more);
    let empty = json!({"part": {"type": "output_text", "text": "", "annotations": []}});
    events.push(Event::new(part("response.content_part.added", empty)));
    for piece in &speech.pieces {
        let delta = part("response.output_text.delta", json!({"delta": piece}));
        events.push(Event::with_text(delta, piece, speech.pace));
    }
    if speech.cut {
        return events;
    }
    let text = speech.pieces.concat();
    let done = part("response.output_text.done", json!({"text": text}));
    events.push(Event::new(done));
    item["status"] = "completed".into();
    item["content"] = json!([{"type": "output_text", "text": text, "annotations": []}]);
    events.push(of_item("done", &item, at));
    output.push(item);
    if let Some(work) = speech.work.as_ref() {
        let call = call(work, wants_scripts(request));
        events.push(of_item("added", &call, output.len()));
        events.push(of_item("done", &call, output.len()));
        output.push(call);
    }
    let mut response = response;
    response["status"] = "completed".into();
    response["output"] = output.into();
    response["usage"] = json!({"input_tokens": 100, "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 42, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 142});
    events.push(Event::new(
        json!({"type": "response.completed", "response": response}),
    ));
    for (number, event) in events.iter_mut().enumerate() {
        event.number(number);
    }
    events
}

/// The event that an item was `added` or is `done`.
fn of_item(what: &str, item: &Value, at: usize) -> Event {
    let kind = format!("response.output_item.{what}");
    Event::new(json!({"type": kind, "output_index": at, "item": item}))
}

/// The data of an event about the first part of an item.
fn part_event(kind: &str, item: &Value, at: usize, part: &str, more: Value) -> Value {
    let mut data = json!({"type": kind, "item_id": item["id"], "output_index": at, part: 0});
    for (name, value) in more.as_object().into_iter().flatten() {
        data[name] = value.clone();
    }
    data
}
