//! How much memory what an agent said takes, about: enough to know when it is too much.

use serde_json::Value;
use wire::{MediaBlock, ToolCallEntry, ToolContent};

pub(super) fn call_bytes(call: &ToolCallEntry) -> usize {
    let content: usize = call.content.iter().map(content_bytes).sum();
    let shown = [&call.result, &call.error].map(text_bytes);
    let raw = [&call.raw_input, &call.raw_output].map(|raw| raw.as_ref().map_or(0, json_bytes));
    let locations = call.locations.iter().map(|location| location.path.len());
    let names = call.name.len() + call.tool_call_id.len();
    content
        + names
        + shown.iter().sum::<usize>()
        + raw.iter().sum::<usize>()
        + locations.sum::<usize>()
}

pub(super) fn media_bytes(block: &MediaBlock) -> usize {
    match block {
        MediaBlock::Image { mime_type, data } | MediaBlock::Audio { mime_type, data } => {
            mime_type.len() + data.len()
        }
        MediaBlock::Resource {
            uri,
            mime_type,
            text,
        } => uri.len() + text_bytes(mime_type) + text_bytes(text),
        MediaBlock::Link {
            uri,
            name,
            description,
        } => uri.len() + name.len() + text_bytes(description),
    }
}

fn content_bytes(content: &ToolContent) -> usize {
    match content {
        ToolContent::Text { text } => text.len(),
        ToolContent::Media { block } => media_bytes(block),
        ToolContent::Diff {
            path,
            old_text,
            new_text,
        } => path.len() + text_bytes(old_text) + new_text.len(),
        ToolContent::Terminal { output, .. } => output.len(),
    }
}

fn text_bytes(text: &Option<String>) -> usize {
    text.as_ref().map_or(0, String::len)
}

fn json_bytes(value: &Value) -> usize {
    let inside = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(list) => list.iter().map(json_bytes).sum(),
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| key.len() + json_bytes(value))
            .sum(),
    };
    size_of::<Value>() + inside
}
