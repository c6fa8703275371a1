//! How a turn speaks: everything it says is written down first, then sent.
//!
//! Invariant: the history holds what the client has seen, in the same order.

use std::time::Duration;

use agent_client_protocol_schema::v1 as acp;
use serde_json::Value;

use crate::acp::ClientLink;
use crate::history::{History, Record, TurnEnd};
use crate::store::{StoreError, Writer};
use crate::turn::Stop;

/// Between two pieces of a text of ours, so that it can be read as it comes.
const PIECE_PAUSE: Duration = Duration::from_millis(12);
const PIECE_WORDS: usize = 4;
/// What a client is shown of a tool's output; the model gets all of it.
const SHOWN_BYTES_MAX: usize = 16 * 1024;

pub(crate) struct Voice {
    pub(crate) link: ClientLink,
    writer: Box<dyn Writer>,
    /// Everything said in this session, this turn included.
    pub(crate) history: History,
    turn: usize,
    message: usize,
    speaking: Speaking,
    calls: usize,
    /// A tool call that has begun and not ended.
    open_call: Option<acp::ToolCall>,
    /// A terminal of the client that runs for us.
    open_terminal: Option<acp::TerminalId>,
}

#[derive(PartialEq, Clone, Copy)]
enum Speaking {
    Nothing,
    Text,
    Thought,
}

/// How a tool call ended, for the model and for the client.
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

impl Voice {
    pub(crate) fn new(link: ClientLink, writer: Box<dyn Writer>, history: History) -> Self {
        Self {
            link,
            writer,
            turn: history.turns() + 1,
            history,
            message: 0,
            speaking: Speaking::Nothing,
            calls: 0,
            open_call: None,
            open_terminal: None,
        }
    }

    /// Writes down what the user said, to stay. The client knows it already.
    pub(crate) fn hear(&mut self, prompt: &[acp::ContentBlock]) -> Result<(), StoreError> {
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

    /// Says something that belongs to the conversation.
    pub(crate) async fn tell(&mut self, update: acp::SessionUpdate) -> Result<(), Stop> {
        self.write(Record::update(update.clone()))?;
        Ok(self.link.update(&update).await?)
    }

    /// Says something that need not be remembered.
    pub(crate) async fn mention(&self, update: acp::SessionUpdate) -> Result<(), Stop> {
        Ok(self.link.update(&update).await?)
    }

    fn speak(&mut self, speaking: Speaking) {
        if self.speaking != speaking {
            self.message += 1;
            self.speaking = speaking;
        }
    }

    pub(crate) async fn say(&mut self, text: &str) -> Result<(), Stop> {
        self.speak(Speaking::Text);
        let chunk = self.chunk(text.into());
        self.tell(acp::SessionUpdate::AgentMessageChunk(chunk))
            .await
    }

    pub(crate) async fn think(&mut self, text: &str) -> Result<(), Stop> {
        self.speak(Speaking::Thought);
        let chunk = self.chunk(text.into());
        self.tell(acp::SessionUpdate::AgentThoughtChunk(chunk))
            .await
    }

    /// Says a text that is there all at once, a few words at a time.
    pub(crate) async fn read_aloud(&mut self, text: &str) -> Result<(), Stop> {
        self.speaking = Speaking::Nothing;
        for piece in pieces(text) {
            self.say(piece).await?;
            tokio::time::sleep(PIECE_PAUSE).await;
        }
        Ok(())
    }

    pub(crate) async fn show_plan(&mut self, entries: Vec<acp::PlanEntry>) -> Result<(), Stop> {
        self.tell(acp::SessionUpdate::Plan(acp::Plan::new(entries)))
            .await
    }

    pub(crate) async fn begin_call(
        &mut self,
        tool: &str,
        title: String,
        kind: acp::ToolKind,
        input: Value,
    ) -> Result<(), Stop> {
        self.speaking = Speaking::Nothing;
        self.calls += 1;
        let id = acp::ToolCallId::new(format!("call_{}_{}", self.turn, self.calls));
        let call = acp::ToolCall::new(id, title)
            .name(tool.to_owned())
            .kind(kind)
            .status(acp::ToolCallStatus::Pending)
            .raw_input(input);
        self.open_call = Some(call.clone());
        self.tell(acp::SessionUpdate::ToolCall(call)).await
    }

    /// Changes the call that has begun.
    pub(crate) async fn change_call(
        &mut self,
        fields: acp::ToolCallUpdateFields,
    ) -> Result<(), Stop> {
        match &mut self.open_call {
            Some(call) => {
                call.update(fields.clone());
                let change = acp::ToolCallUpdate::new(call.tool_call_id.clone(), fields);
                self.tell(acp::SessionUpdate::ToolCallUpdate(change)).await
            }
            None => Ok(()),
        }
    }

    /// Shows what a running call has put out so far.
    pub(crate) async fn show_progress(&self, text: &str) -> Result<(), Stop> {
        let Some(call) = &self.open_call else {
            return Ok(());
        };
        let fields = acp::ToolCallUpdateFields::new().content(vec![shown(text)]);
        let change = acp::ToolCallUpdate::new(call.tool_call_id.clone(), fields);
        self.mention(acp::SessionUpdate::ToolCallUpdate(change))
            .await
    }

    /// Ends the call that has begun. `show` replaces its content with the outcome.
    pub(crate) async fn end_call(&mut self, outcome: &Outcome, show: bool) -> Result<(), Stop> {
        let status = match outcome.ok {
            true => acp::ToolCallStatus::Completed,
            false => acp::ToolCallStatus::Failed,
        };
        let mut fields = acp::ToolCallUpdateFields::new()
            .status(status)
            .raw_output(Value::from(outcome.text.clone()));
        if show {
            fields = fields.content(vec![shown(&outcome.text)]);
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

    /// Leaves nothing half done: the turn was stopped in the middle of something.
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

/// A tool's output as a client should show it: as it is, not as markdown.
fn shown(text: &str) -> acp::ToolCallContent {
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

/// A few words each, never across the end of a line.
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
    fn a_text_falls_into_pieces_of_a_few_words_and_none_is_lost() {
        let text = "One two three four five\nsix — sieben, acht neun zehn elf.\n\nEnde";
        let all: Vec<_> = pieces(text).collect();
        assert_eq!(all.concat(), text);
        assert_eq!(all[..2], ["One two three four ", "five\n"]);
    }

    #[test]
    fn output_with_fences_in_it_stays_inside_its_own() {
        let acp::ToolCallContent::Content(content) = shown("a\n```rust\n```\n") else {
            panic!()
        };
        let acp::ContentBlock::Text(text) = content.content else {
            panic!()
        };
        assert_eq!(text.text, "````\na\n```rust\n```\n````");
    }

    #[test]
    fn long_output_is_cut_between_characters() {
        let acp::ToolCallContent::Content(content) = shown(&"ä".repeat(SHOWN_BYTES_MAX)) else {
            panic!()
        };
        let acp::ContentBlock::Text(text) = content.content else {
            panic!()
        };
        assert!(text.text.contains("more bytes"));
        assert!(text.text.len() < SHOWN_BYTES_MAX + 100);
    }
}
