//! A session's transcript as a list of messages with a role, for gateway clients.

use hub::HubError;
use sha2::{Digest, Sha256};
use wire::gateway::{Limit, Message, Messages, Problem, Role};
use wire::{ChatEntry, ToolCallEntry, ToolContent};

use super::follow::{Caller, problem};
use super::sessions::milliseconds;

/// Transcript entries read at once.
const PAGE: u32 = 200;
/// Maximum pages searched backwards for the start of a run.
const LOOK_BACK_PAGES: usize = 10;
/// Maximum size of a page of messages.
const PAGE_BYTES_MAX: usize = 512 * 1024;
/// Maximum size of one message in a page; `chat.message` returns it whole.
const MESSAGE_BYTES_MAX: usize = 64 * 1024;

/// The newest messages before number `before`, at most `limit` and `PAGE_BYTES_MAX`.
pub(super) async fn page(
    caller: &Caller,
    id: &str,
    key: &str,
    before: Option<u64>,
    limit: Limit,
) -> Result<Messages, Problem> {
    let mut messages: Vec<Message> = vec![];
    let mut bytes = 0;
    let mut at = before.unwrap_or(u64::MAX);
    'pages: while at > 0 {
        let page = caller.hub().sessions().page(id, at, PAGE).await;
        let page = page.map_err(problem)?;
        let context = run_before(caller, id, key, &page.entries, page.first).await?;
        let found = of_entries(&page.entries, page.first, key, context);
        for mut message in found.into_iter().rev() {
            cut(&mut message);
            bytes += message.content.len();
            if messages.len() == limit.0 as usize
                || (bytes > PAGE_BYTES_MAX && !messages.is_empty())
            {
                break 'pages;
            }
            at = message.number - 1;
            messages.push(message);
        }
        at = page.first;
    }
    messages.reverse();
    // Older entries may exist that are not messages: then the next page is empty.
    let cursor = (at > 0).then_some(at);
    Ok(Messages { messages, cursor })
}

/// The message with this number, untruncated.
pub(super) async fn by_number(
    caller: &Caller,
    id: &str,
    key: &str,
    number: u64,
) -> Result<Message, Problem> {
    let none = || Problem::new(Problem::NOT_FOUND, "No message has this number");
    let page = caller.hub().sessions().page(id, number, 1).await;
    let page = match page {
        Ok(page) => page,
        Err(HubError::SessionNotFound) => return Err(none()),
        Err(error) => return Err(problem(error)),
    };
    let context = run_before(caller, id, key, &page.entries, page.first).await?;
    let messages = of_entries(&page.entries, page.first, key, context);
    let found = messages
        .into_iter()
        .find(|message| message.number == number);
    found.ok_or_else(none)
}

/// The run and the time that apply to the first entry of a page.
#[derive(Default)]
struct RunContext {
    run: Option<String>,
    /// Timestamp of the last message before the page.
    last: i64,
}

/// Determines the run that the first of these entries belongs to.
async fn run_before(
    caller: &Caller,
    id: &str,
    key: &str,
    entries: &[ChatEntry],
    first: u64,
) -> Result<RunContext, Problem> {
    let mut context = RunContext::default();
    let mut at = first;
    if let Some(ChatEntry::User { .. }) = entries.first() {
        return Ok(context);
    }
    for _ in 0..LOOK_BACK_PAGES {
        if at == 0 {
            break;
        }
        let page = caller.hub().sessions().page(id, at, PAGE).await;
        let page = page.map_err(problem)?;
        at = page.first;
        for entry in page.entries.iter().rev() {
            let (ChatEntry::User { timestamp, .. } | ChatEntry::Assistant { timestamp, .. }) =
                entry
            else {
                continue;
            };
            if context.last == 0 {
                context.last = milliseconds(timestamp);
            }
            if let ChatEntry::User { request_id, .. } = entry {
                context.run = request_id.as_ref().map(|id| run_id(key, id));
                return Ok(context);
            }
        }
    }
    Ok(context)
}

fn of_entries(entries: &[ChatEntry], first: u64, key: &str, context: RunContext) -> Vec<Message> {
    let RunContext { mut run, mut last } = context;
    let mut messages = vec![];
    for (entry, number) in entries.iter().zip(first + 1..) {
        let (role, content, timestamp, tool_name) = match entry {
            ChatEntry::User {
                content,
                timestamp,
                request_id,
                ..
            } => {
                run = request_id.as_ref().map(|id| run_id(key, id));
                (Role::User, content.clone(), Some(timestamp), None)
            }
            ChatEntry::Assistant {
                content, timestamp, ..
            } => (Role::Assistant, content.clone(), Some(timestamp), None),
            ChatEntry::ToolCall(call) => {
                let name = Some(call.name.clone());
                (Role::ToolResult, tool_text(call), None, name)
            }
            _ => continue,
        };
        last = timestamp.map_or(last, |stamp| milliseconds(stamp));
        messages.push(Message {
            role,
            content,
            timestamp: last,
            run_id: run.clone(),
            tool_name,
            number,
            cut: false,
        });
    }
    messages
}

/// The result of a tool call as text.
pub(super) fn tool_text(call: &ToolCallEntry) -> String {
    if let Some(text) = call.error.as_ref().or(call.result.as_ref()) {
        return text.clone();
    }
    let texts = call.content.iter().map(|content| match content {
        ToolContent::Text { text } => text.clone(),
        ToolContent::Diff { path, .. } => format!("changed {path}"),
        ToolContent::Terminal { output, .. } => output.clone(),
        ToolContent::Media { .. } => String::new(),
    });
    texts
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}

fn cut(message: &mut Message) {
    if message.content.len() <= MESSAGE_BYTES_MAX {
        return;
    }
    let end = message.content.floor_char_boundary(MESSAGE_BYTES_MAX);
    message.content.truncate(end);
    message.cut = true;
}

/// The run id of a prompt, from its request id. Request ids of gateway clients are run ids already (UUIDs).
pub(super) fn run_id(key: &str, request_id: &str) -> String {
    match uuid::Uuid::parse_str(request_id) {
        Ok(id) => id.to_string(),
        Err(_) => derived_run_id(key, request_id),
    }
}

/// A UUID derived from a session key and a text: the same for the same input.
pub(super) fn derived_run_id(key: &str, text: &str) -> String {
    let hash = Sha256::new()
        .chain_update(key)
        .chain_update([0])
        .chain_update(text);
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.finalize()[..16]);
    let id = uuid::Builder::from_random_bytes(bytes).into_uuid();
    id.to_string()
}
