//! Builds a model's context: system prompt, tools and the conversation so far. Pure.

use std::path::Path;

use agent_client_protocol_schema::v1 as acp;
use genai::chat::{ChatMessage, ContentPart, MessageContent, Tool, ToolCall, ToolResponse};
use serde_json::{Value, json};

use crate::history::History;
use crate::personas::Persona;
use crate::store::Mode;
use crate::tools::{self, update_plan};

/// Estimated bytes per token. A third of the context is reserved for tools and the answer.
const BYTES_PER_TOKEN: u64 = 4;

const ABOUT: &str = "\
You are a coding assistant inside Liminal Builder, working in one project folder together with its owner.

- Look before you answer: list, read and search the project with your tools instead of guessing.
- For work of several steps show a plan with update_plan, and keep its state current.
- Change files with edit_file in small, exact steps. The owner may refuse an edit or a command; then respect that and \
go another way.
- Paths are relative to the project. You cannot leave it.
- Answer briefly, in markdown, in the language of the owner. Say what you did and what you did not verify.";

pub(super) fn system(persona: &Persona, cwd: &Path, mode: Mode) -> String {
    let mut text = format!("{ABOUT}\n\nThe project is in {}.", cwd.display());
    if mode == Mode::Plan {
        text.push_str(
            "\n\nThe session is in plan mode: read and search, then propose a plan. Writing and running are refused.",
        );
    }
    if !persona.prompt.is_empty() {
        text.push_str(&format!(
            "\n\nYou are {}.\n\n{}",
            persona.name, persona.prompt
        ));
    }
    text
}

pub(super) fn tools() -> Vec<Tool> {
    let tool = |offered: tools::Offered| {
        Tool::new(offered.name)
            .with_description(offered.description)
            .with_schema(offered.schema)
    };
    tools::offered().into_iter().map(tool).collect()
}

/// Returns the conversation as chat messages, without its oldest turns if it exceeds the context.
pub(super) fn messages(history: &History, context_tokens: u64) -> Vec<ChatMessage> {
    let size_max = context_tokens.saturating_mul(BYTES_PER_TOKEN) / 3 * 2;
    let mut messages = Vec::new();
    // Start of each turn. The conversation may be cut only there, so that every tool result keeps its
    // call.
    let mut begins = Vec::new();
    let mut in_user_message = false;
    let mut plans = 0;
    for update in history.replay() {
        match update {
            acp::SessionUpdate::UserMessageChunk(chunk) => {
                if !in_user_message {
                    begins.push(messages.len());
                }
                in_user_message = true;
                messages.push(ChatMessage::user(MessageContent::from_parts(vec![
                    content_part(chunk.content),
                ])));
                continue;
            }
            acp::SessionUpdate::AgentMessageChunk(chunk) => {
                if let acp::ContentBlock::Text(text) = chunk.content
                    && !text.text.trim().is_empty()
                {
                    messages.push(ChatMessage::assistant(text.text));
                }
            }
            acp::SessionUpdate::ToolCall(call) => {
                let output = match call.raw_output {
                    Some(Value::String(text)) => text,
                    Some(other) => other.to_string(),
                    None => String::new(),
                };
                let name = call.name.unwrap_or(call.title);
                let input = call.raw_input.unwrap_or_default();
                push_call(
                    &mut messages,
                    call.tool_call_id.to_string(),
                    name,
                    input,
                    output,
                );
            }
            acp::SessionUpdate::Plan(plan) => {
                plans += 1;
                let entries = serde_json::to_value(&plan.entries).unwrap_or_default();
                push_call(
                    &mut messages,
                    format!("plan_{plans}"),
                    update_plan::NAME.to_owned(),
                    json!({ "entries": entries }),
                    update_plan::SHOWN.to_owned(),
                );
            }
            _ => {}
        }
        in_user_message = false;
    }
    let mut size = 0;
    let mut kept = messages.len();
    for begin in begins.into_iter().rev() {
        size += messages[begin..kept]
            .iter()
            .map(ChatMessage::size)
            .sum::<usize>() as u64;
        // The running turn is kept whatever its size.
        if size > size_max && kept < messages.len() {
            break;
        }
        kept = begin;
    }
    messages.split_off(kept)
}

fn push_call(
    messages: &mut Vec<ChatMessage>,
    id: String,
    name: String,
    input: Value,
    output: String,
) {
    // Providers require an object, even if the model sent something else.
    let input = match input {
        Value::Object(_) => input,
        other => json!({ "invalid": other }),
    };
    let output = match output.is_empty() {
        true => "(nothing)".to_owned(),
        false => output,
    };
    let call = ToolCall {
        call_id: id.clone(),
        fn_name: name.clone(),
        fn_arguments: input,
        thought_signatures: None,
    };
    messages.push(ChatMessage::assistant(vec![call]));
    messages.push(ToolResponse::new(id, output).with_fn_name(name).into());
}

fn content_part(block: acp::ContentBlock) -> ContentPart {
    match block {
        acp::ContentBlock::Text(text) => ContentPart::from_text(text.text),
        acp::ContentBlock::Image(image) => {
            ContentPart::from_binary_base64(image.mime_type, image.data, None)
        }
        acp::ContentBlock::ResourceLink(link) => {
            ContentPart::from_text(format!("[{}]({})", link.name, link.uri))
        }
        acp::ContentBlock::Resource(resource) => match resource.resource {
            acp::EmbeddedResourceResource::TextResourceContents(text) => {
                ContentPart::from_text(format!("{}:\n\n{}", text.uri, text.text))
            }
            other => ContentPart::from_text(format!(
                "(an attachment that cannot be read: {})",
                match other {
                    acp::EmbeddedResourceResource::BlobResourceContents(blob) => blob.uri,
                    _ => String::new(),
                }
            )),
        },
        _ => ContentPart::from_text("(an attachment of a kind that cannot be read)"),
    }
}

#[cfg(test)]
mod tests {
    use genai::chat::ChatRole;

    use super::*;
    use crate::history::{Record, TurnEnd};

    fn chunk(text: &str) -> acp::ContentChunk {
        acp::ContentChunk::new(text.into())
    }

    fn turn(user: &str, agent: &str) -> [Record; 3] {
        [
            Record::update(acp::SessionUpdate::UserMessageChunk(chunk(user))),
            Record::update(acp::SessionUpdate::AgentMessageChunk(chunk(agent))),
            Record::turn_end(TurnEnd::Done),
        ]
    }

    fn roles_and_texts(history: &History, tokens: u64) -> Vec<(ChatRole, String)> {
        let messages = messages(history, tokens).into_iter();
        messages
            .map(|message| {
                let text = message.content.joined_texts().unwrap_or_default();
                (message.role, text)
            })
            .collect()
    }

    #[test]
    fn earlier_turns_precede_the_current_prompt() {
        let mut history = History::default();
        history
            .records
            .extend(turn("My name is Alice.", "Hello Alice!"));
        let question = acp::SessionUpdate::UserMessageChunk(chunk("What is my name?"));
        history.records.push(Record::update(question));
        let text = |text: &str| text.to_owned();
        assert_eq!(
            roles_and_texts(&history, 1000),
            [
                (ChatRole::User, text("My name is Alice.")),
                (ChatRole::Assistant, text("Hello Alice!")),
                (ChatRole::User, text("What is my name?")),
            ]
        );
    }

    #[test]
    fn oldest_turns_are_dropped_when_context_is_full() {
        let mut history = History::default();
        for number in 0..10 {
            let long = format!("{number}{}", "x".repeat(400));
            history.records.extend(turn(&long, "ok"));
        }
        let kept = roles_and_texts(&history, 600);
        assert_eq!(kept.len(), 6, "1600 bytes hold three turns");
        assert!(kept[0].1.starts_with('7'));
        assert_eq!(
            roles_and_texts(&history, 1).len(),
            2,
            "the last turn is always kept"
        );
    }

    #[test]
    fn unfinished_tool_call_gets_a_result_and_object_input() {
        let call = acp::ToolCall::new("call_1_1", "Read a")
            .name("read_file".to_owned())
            .raw_input(json!("not an object"))
            .status(acp::ToolCallStatus::InProgress);
        let mut history = History::default();
        let user = acp::SessionUpdate::UserMessageChunk(chunk("go"));
        history.records.push(Record::update(user));
        history
            .records
            .push(Record::update(acp::SessionUpdate::ToolCall(call)));
        let messages = messages(&history, 1000);
        let calls = messages[1].content.tool_calls();
        assert_eq!(calls[0].fn_name, "read_file");
        assert!(calls[0].fn_arguments.is_object());
        let results = messages[2].content.tool_responses();
        assert_eq!(results[0].call_id, "call_1_1");
        assert_eq!(results[0].content, "interrupted");
    }
}
