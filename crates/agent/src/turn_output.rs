//! Output of a turn: every update is appended to the history first, then sent to the client.
//!
//! Invariant: the history contains what the client has seen, in the same order.

use std::time::Duration;

use agent_client_protocol_schema::v1 as acp;
use serde_json::Value;

use crate::acp::ClientLink;
use crate::history::{History, Record, TurnEnd};
use crate::store::{StoreError, Writer};
use crate::turn::Stop;

/// Pause between two pieces of a built-in text, so that it appears gradually like a model's answer.
const PIECE_PAUSE: Duration = Duration::from_millis(12);
const PIECE_WORDS: usize = 4;
/// Maximum tool output shown to the client. The model gets all of it.
const SHOWN_BYTES_MAX: usize = 16 * 1024;

/// Writes the updates of one turn to the history and to the client.
pub(crate) struct TurnOutput {
    pub(crate) link: ClientLink,
    writer: Box<dyn Writer>,
    /// The session's history, including this turn.
    pub(crate) history: History,
    turn: usize,
    message: usize,
    message_kind: MessageKind,
    calls: usize,
    /// The tool call that is running.
    open_call: Option<acp::ToolCall>,
    /// The client's terminal that runs a command for this turn.
    open_terminal: Option<acp::TerminalId>,
}

/// Kind of the agent message that is being streamed.
#[derive(PartialEq, Clone, Copy)]
enum MessageKind {
    Nothing,
    Text,
    Thought,
}

/// Result of a tool call, for the model and the client.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) ok: bool,
    pub(crate) text: String,
}

impl Outcome {
    pub(crate) fn done(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { ok: true, text }
    }

    pub(crate) fn failed(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { ok: false, text }
    }
}

impl TurnOutput {
    pub(crate) fn new(link: ClientLink, writer: Box<dyn Writer>, history: History) -> Self {
        Self {
            link,
            writer,
            turn: history.turns() + 1,
            history,
            message: 0,
            message_kind: MessageKind::Nothing,
            calls: 0,
            open_call: None,
            open_terminal: None,
        }
    }

    /// Writes the user's prompt durably to the history. The prompt is not sent to the client, which already has it.
    pub(crate) fn record_prompt(&mut self, prompt: &[acp::ContentBlock]) -> Result<(), StoreError> {
        if self.history.is_interrupted() {
            self.write(Record::turn_end(TurnEnd::Interrupted))?;
            self.turn += 1;
        }
        for block in prompt {
            let chunk = self.chunk(block.clone());
            self.write(Record::update(acp::SessionUpdate::UserMessageChunk(chunk)))?;
        }
        self.writer.sync()
    }

    pub(crate) fn end(&mut self, end: TurnEnd) -> Result<(), StoreError> {
        self.write(Record::turn_end(end))?;
        self.writer.sync()
    }

    fn write(&mut self, record: Record) -> Result<(), StoreError> {
        self.writer.append(&record)?;
        self.history.records.push(record);
        Ok(())
    }

    fn chunk(&self, content: acp::ContentBlock) -> acp::ContentChunk {
        let id = format!("{}.{}", self.turn, self.message);
        acp::ContentChunk::new(content).message_id(acp::MessageId::new(id))
    }

    /// Records an update in the history and sends it.
    pub(crate) async fn send(&mut self, update: acp::SessionUpdate) -> Result<(), Stop> {
        self.write(Record::update(update.clone()))?;
        Ok(self.link.update(&update).await?)
    }

    /// Sends an update without recording it.
    pub(crate) async fn send_unrecorded(&self, update: acp::SessionUpdate) -> Result<(), Stop> {
        Ok(self.link.update(&update).await?)
    }

    fn start_message(&mut self, message_kind: MessageKind) {
        if self.message_kind != message_kind {
            self.message += 1;
            self.message_kind = message_kind;
        }
    }

    pub(crate) async fn send_text(&mut self, text: &str) -> Result<(), Stop> {
        self.start_message(MessageKind::Text);
        let chunk = self.chunk(text.into());
        self.send(acp::SessionUpdate::AgentMessageChunk(chunk))
            .await
    }

    pub(crate) async fn send_thought(&mut self, text: &str) -> Result<(), Stop> {
        self.start_message(MessageKind::Thought);
        let chunk = self.chunk(text.into());
        self.send(acp::SessionUpdate::AgentThoughtChunk(chunk))
            .await
    }

    /// Sends a complete text a few words at a time.
    pub(crate) async fn stream_text(&mut self, text: &str) -> Result<(), Stop> {
        self.message_kind = MessageKind::Nothing;
        for piece in pieces(text) {
            self.send_text(piece).await?;
            tokio::time::sleep(PIECE_PAUSE).await;
        }
        Ok(())
    }

    pub(crate) async fn show_plan(&mut self, entries: Vec<acp::PlanEntry>) -> Result<(), Stop> {
        self.send(acp::SessionUpdate::Plan(acp::Plan::new(entries)))
            .await
    }

    pub(crate) async fn begin_call(
        &mut self,
        tool: &str,
        title: String,
        kind: acp::ToolKind,
        input: Value,
    ) -> Result<(), Stop> {
        self.message_kind = MessageKind::Nothing;
        self.calls += 1;
        let id = acp::ToolCallId::new(format!("call_{}_{}", self.turn, self.calls));
        let call = acp::ToolCall::new(id, title)
            .name(tool.to_owned())
            .kind(kind)
            .status(acp::ToolCallStatus::Pending)
            .raw_input(input);
        self.open_call = Some(call.clone());
        self.send(acp::SessionUpdate::ToolCall(call)).await
    }

    /// Updates the running tool call.
    pub(crate) async fn change_call(
        &mut self,
        fields: acp::ToolCallUpdateFields,
    ) -> Result<(), Stop> {
        match &mut self.open_call {
            Some(call) => {
                call.update(fields.clone());
                let change = acp::ToolCallUpdate::new(call.tool_call_id.clone(), fields);
                self.send(acp::SessionUpdate::ToolCallUpdate(change)).await
            }
            None => Ok(()),
        }
    }

    /// Sends the output that the running tool call has produced so far.
    pub(crate) async fn show_progress(&self, text: &str) -> Result<(), Stop> {
        let Some(call) = &self.open_call else {
            return Ok(());
        };
        let fields = acp::ToolCallUpdateFields::new().content(vec![fenced_output(text)]);
        let change = acp::ToolCallUpdate::new(call.tool_call_id.clone(), fields);
        self.send_unrecorded(acp::SessionUpdate::ToolCallUpdate(change))
            .await
    }

    /// Ends the running tool call. `show` replaces its content with the outcome.
    pub(crate) async fn end_call(&mut self, outcome: &Outcome, show: bool) -> Result<(), Stop> {
        let status = match outcome.ok {
            true => acp::ToolCallStatus::Completed,
            false => acp::ToolCallStatus::Failed,
        };
        let mut fields = acp::ToolCallUpdateFields::new()
            .status(status)
            .raw_output(Value::from(outcome.text.clone()));
        if show {
            fields = fields.content(vec![fenced_output(&outcome.text)]);
        }
        let ended = self.change_call(fields).await;
        self.open_call = None;
        ended
    }

    pub(crate) fn open_call(&self) -> Option<&acp::ToolCall> {
        self.open_call.as_ref()
    }

    pub(crate) fn set_terminal(&mut self, terminal: Option<acp::TerminalId>) {
        self.open_terminal = terminal;
    }

    /// Ends the running tool call and terminal of a turn that was stopped. `why` becomes the call's outcome.
    pub(crate) async fn abandon(&mut self, why: &str) -> Result<(), Stop> {
        if let Some(terminal) = self.open_terminal.take() {
            let session = self.link.acp_session();
            let kill = acp::KillTerminalRequest::new(session.clone(), terminal.clone());
            self.link.request_and_forget("terminal/kill", kill);
            let release = acp::ReleaseTerminalRequest::new(session, terminal);
            self.link.request_and_forget("terminal/release", release);
        }
        if self.open_call.is_some() {
            self.end_call(&Outcome::failed(why), false).await?;
        }
        Ok(())
    }
}

/// Wraps tool output in a code fence, so that the client does not render it as markdown.
fn fenced_output(text: &str) -> acp::ToolCallContent {
    let mut end = text.len().min(SHOWN_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let more = match text.len() - end {
        0 => String::new(),
        bytes => format!("\n… and {bytes} more bytes"),
    };
    let text = &text[..end];
    let longest = text
        .split(|c| c != '`')
        .map(str::len)
        .max()
        .unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    acp::ContentBlock::from(format!("{fence}\n{}{more}\n{fence}", text.trim_end())).into()
}

/// Splits a text into pieces of a few words, never across a line end.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut spaces = 0;
        let ends = |(_, c): &(usize, char)| {
            spaces += usize::from(*c == ' ');
            *c == '\n' || spaces == PIECE_WORDS
        };
        let end = rest.char_indices().find(ends);
        let end = end.map_or(rest.len(), |(place, c)| place + c.len_utf8());
        let (piece, more) = rest.split_at(end);
        rest = more;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_have_a_few_words_and_keep_all_text() {
        let text = "One two three four five\nsix — sieben, acht neun zehn elf.\n\nEnde";
        let all: Vec<_> = pieces(text).collect();
        assert_eq!(all.concat(), text);
        assert_eq!(all[..2], ["One two three four ", "five\n"]);
    }

    #[test]
    fn output_containing_fences_gets_a_longer_fence() {
        let acp::ToolCallContent::Content(content) = fenced_output("a\n```rust\n```\n") else {
            panic!()
        };
        let acp::ContentBlock::Text(text) = content.content else {
            panic!()
        };
        assert_eq!(text.text, "````\na\n```rust\n```\n````");
    }

    #[test]
    fn long_output_is_truncated_at_a_character_boundary() {
        let acp::ToolCallContent::Content(content) = fenced_output(&"ä".repeat(SHOWN_BYTES_MAX))
        else {
            panic!()
        };
        let acp::ContentBlock::Text(text) = content.content else {
            panic!()
        };
        assert!(text.text.contains("more bytes"));
        assert!(text.text.len() < SHOWN_BYTES_MAX + 100);
    }
}
