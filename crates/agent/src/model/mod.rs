//! Talking through a model: the loop of answers and tool calls.
//!
//! `genai` speaks the providers' protocols. What goes to the model is made from the history each
//! round, so that what the model knows and what the client has seen are the same.

mod context;
mod error;
mod model_ref;

use std::sync::OnceLock;
use std::time::Duration;

use agent_client_protocol_schema::v1 as acp;
pub(crate) use error::ModelError;
use futures_util::StreamExt;
use genai::chat::{ChatOptions, ChatRequest, ChatStreamEvent, StopReason, ToolCall};
pub use model_ref::ModelRef;

use crate::personas::Persona;
use crate::tools;
use crate::turn::{Stop, Turn};

/// Answers of the model within one turn.
const ROUNDS_MAX: usize = 100;
/// How often one answer is asked for.
const ATTEMPTS_MAX: u32 = 3;
/// A provider that asks for more patience than this is reported instead.
const WAIT_MAX: Duration = Duration::from_secs(30);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// Models think for a while before the first word, and between two.
const SILENCE_MAX: Duration = Duration::from_secs(300);

/// One answer.
struct Reply {
    calls: Vec<ToolCall>,
    reason: acp::StopReason,
    tokens: Option<u64>,
}

/// Runs a turn to its end.
pub(crate) async fn converse(
    turn: &mut Turn,
    model: &ModelRef,
    persona: &Persona,
) -> Result<acp::StopReason, Stop> {
    let system = context::system(persona, turn.roots.cwd(), turn.meta.mode);
    for _ in 0..ROUNDS_MAX {
        let messages = context::messages(&turn.voice.history, model.context_tokens());
        let request = ChatRequest::new(messages)
            .with_system(system.clone())
            .with_tools(context::tools());
        let reply = patiently(turn, model, request).await?;
        if let Some(tokens) = reply.tokens {
            let usage = acp::UsageUpdate::new(tokens, model.context_tokens());
            turn.voice
                .mention(acp::SessionUpdate::UsageUpdate(usage))
                .await?;
        }
        if reply.calls.is_empty() {
            return Ok(reply.reason);
        }
        for call in reply.calls {
            tools::run(turn, &call.fn_name, call.fn_arguments).await?;
        }
    }
    Ok(acp::StopReason::MaxTurnRequests)
}

/// Asks again where that can help and nothing has been said yet.
async fn patiently(turn: &mut Turn, model: &ModelRef, request: ChatRequest) -> Result<Reply, Stop> {
    let mut attempt = 1;
    loop {
        let mut said = false;
        let error = match ask(turn, model, request.clone(), &mut said).await {
            Err(Stop::Model(error)) => error,
            other => return other,
        };
        let wait = error.wait(attempt).filter(|wait| *wait <= WAIT_MAX);
        let Some(wait) = wait.filter(|_| !said && attempt < ATTEMPTS_MAX) else {
            return Err(error.into());
        };
        attempt += 1;
        let note = format!("{error} Trying again in {} s.\n", wait.as_secs());
        turn.voice.think(&note).await?;
        tokio::time::sleep(wait).await;
    }
}

async fn ask(
    turn: &mut Turn,
    model: &ModelRef,
    request: ChatRequest,
    said: &mut bool,
) -> Result<Reply, Stop> {
    let told = |error| Stop::Model(ModelError::new(model, error));
    let options = ChatOptions::default()
        .with_capture_usage(true)
        .with_capture_tool_calls(true)
        .with_stream_header_timeout(SILENCE_MAX)
        .with_stream_read_timeout(SILENCE_MAX);
    let answer = client(model)?
        .exec_chat_stream(model.target(), request, Some(&options))
        .await;
    let mut stream = answer.map_err(told)?.stream;
    while let Some(event) = stream.next().await {
        match event.map_err(told)? {
            ChatStreamEvent::Chunk(chunk) if !chunk.content.is_empty() => {
                *said = true;
                turn.voice.say(&chunk.content).await?;
            }
            ChatStreamEvent::ReasoningChunk(chunk) if !chunk.content.is_empty() => {
                *said = true;
                turn.voice.think(&chunk.content).await?;
            }
            ChatStreamEvent::End(end) => {
                let usage = end.captured_usage.as_ref();
                let tokens = usage.and_then(|usage| {
                    let sum = usage.prompt_tokens? + usage.completion_tokens.unwrap_or(0);
                    u64::try_from(usage.total_tokens.unwrap_or(sum)).ok()
                });
                let reason = match &end.captured_stop_reason {
                    Some(StopReason::MaxTokens(_)) => acp::StopReason::MaxTokens,
                    Some(StopReason::ContentFilter(_)) => acp::StopReason::Refusal,
                    _ => acp::StopReason::EndTurn,
                };
                return Ok(Reply {
                    calls: end.captured_into_tool_calls().unwrap_or_default(),
                    reason,
                    tokens,
                });
            }
            _ => {}
        }
    }
    // Every provider says when it is done; this one did not get to it.
    Err(ModelError::cut(model).into())
}

/// Made when it is first needed: an agent without a model should not pay for it.
fn client(model: &ModelRef) -> Result<&'static genai::Client, Stop> {
    static CLIENT: OnceLock<Result<genai::Client, String>> = OnceLock::new();
    let made = CLIENT.get_or_init(|| {
        // An error means that there is one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .user_agent(concat!("liminal-agent/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| error.to_string())?;
        genai::Client::builder()
            .with_reqwest(http)
            .build()
            .map_err(|error| error.to_string())
    });
    made.as_ref()
        .map_err(|reason| ModelError::unreachable(model, reason).into())
}
