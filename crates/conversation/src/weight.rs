//! Estimated memory use of an agent's output, accurate enough to enforce the limits per turn.

use std::mem::size_of;

use wire::{Location, MediaBlock, QuestionEntry, ToolCallEntry, ToolContent};

use crate::json_bytes::json_bytes;

/// Bytes of a tool call. `result` and `error` repeat the content and are not counted.
pub(super) fn call_bytes(call: &ToolCallEntry) -> usize {
    let content: usize = call.content.iter().map(content_bytes).sum();
    let locations: usize = call.locations.iter().map(location_bytes).sum();
    let raw = [&call.raw_input, &call.raw_output]
        .map(|raw| raw.as_ref().map_or(0, |raw| raw.get().len()));
    let names = call.name.len() + call.tool_call_id.len();
    content + locations + raw.iter().sum::<usize>() + names
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

pub(super) fn question_bytes(question: &QuestionEntry) -> usize {
    json_bytes(question)
}

fn content_bytes(content: &ToolContent) -> usize {
    let inside = match content {
        ToolContent::Text { text } => text.len(),
        ToolContent::Media { block } => media_bytes(block),
        ToolContent::Diff {
            path,
            old_text,
            new_text,
        } => path.len() + text_bytes(old_text) + new_text.len(),
        ToolContent::Terminal { output, .. } => output.len(),
    };
    size_of::<ToolContent>() + inside
}

fn location_bytes(location: &Location) -> usize {
    size_of::<Location>() + location.path.len()
}

fn text_bytes(text: &Option<String>) -> usize {
    text.as_ref().map_or(0, String::len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entries::Entries;
    use crate::update::{ToolCallPatch, Update};

    fn held_after(patches: &[ToolCallPatch]) -> usize {
        let mut entries = Entries::after(0);
        for patch in patches {
            entries.apply(Update::ToolCall(Box::new(patch.clone())), "now");
        }
        entries.held()
    }

    #[test]
    fn updated_tool_call_is_counted_with_its_current_content_only() {
        let text = |text: &str| ToolContent::Text {
            text: text.to_owned(),
        };
        let with = |content: Vec<ToolContent>| ToolCallPatch {
            content: Some(content),
            ..ToolCallPatch::new("t")
        };
        let (short, long) = (with(vec![text("x")]), with(vec![text(&"x".repeat(9000))]));
        let most = held_after(std::slice::from_ref(&long));
        assert!((9000..11_000).contains(&most), "{most}");
        assert_eq!(held_after(&[short.clone(), long.clone()]), most);
        assert_eq!(held_after(&[long, short.clone()]), held_after(&[short]));
    }

    #[test]
    fn many_empty_locations_are_counted_with_their_overhead() {
        let small = ToolCallPatch {
            locations: Some(vec![
                Location {
                    path: String::new(),
                    line: None
                };
                100
            ]),
            ..ToolCallPatch::new("t")
        };
        assert!(held_after(&[small]) > 3000);
    }
}
