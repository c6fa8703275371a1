//! Runs a turn with a language model: the loop of answers and tool calls.
//!
//! `genai` implements the providers' protocols. Each request is built from the history, so the model
//! gets exactly what the client has seen.

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

/// Maximum model requests per turn.
const ROUNDS_MAX: usize = 100;
/// Maximum attempts per model request.
const ATTEMPTS_MAX: u32 = 3;
/// Longest retry delay. If the provider asks for more, the turn fails with its error.
const RETRY_DELAY_MAX: Duration = Duration::from_secs(30);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum time without data from the model, which may pause before and during an answer.
const IDLE_TIMEOUT: Duration = Duration::from_secs(300);

/// A complete model response.
struct Reply {
    calls: Vec<ToolCall>,
    reason: acp::StopReason,
    tokens: Option<u64>,
}

/// Runs a turn to its end and returns the stop reason.
pub(crate) async fn converse(
    turn: &mut Turn,
    model: &ModelRef,
    persona: &Persona,
) -> Result<acp::StopReason, Stop> {
    let system = context::system(persona, turn.roots.cwd(), turn.meta.mode);
    for _ in 0..ROUNDS_MAX {
        let messages = context::messages(&turn.output.history, model.context_tokens());
        let request = ChatRequest::new(messages)
            .with_system(system.clone())
            .with_tools(context::tools());
        let reply = ask_with_retries(turn, model, request).await?;
        if let Some(tokens) = reply.tokens {
            let usage = acp::UsageUpdate::new(tokens, model.context_tokens());
            turn.output
                .send_unrecorded(acp::SessionUpdate::UsageUpdate(usage))
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

/// Requests an answer, with retries while nothing of it has been sent to the client.
async fn ask_with_retries(
    turn: &mut Turn,
    model: &ModelRef,
    request: ChatRequest,
) -> Result<Reply, Stop> {
    let mut attempt = 1;
    loop {
        let mut sent_any = false;
        let error = match ask(turn, model, request.clone(), &mut sent_any).await {
            Err(Stop::Model(error)) => error,
            other => return other,
        };
        let wait = error.wait(attempt).filter(|wait| *wait <= RETRY_DELAY_MAX);
        let Some(wait) = wait.filter(|_| !sent_any && attempt < ATTEMPTS_MAX) else {
            return Err(error.into());
        };
        attempt += 1;
        let note = format!("{error} Retrying in {} s.\n", wait.as_secs());
        turn.output.send_thought(&note).await?;
        tokio::time::sleep(wait).await;
    }
}

async fn ask(
    turn: &mut Turn,
    model: &ModelRef,
    request: ChatRequest,
    sent_any: &mut bool,
) -> Result<Reply, Stop> {
    let model_error = |error| Stop::Model(ModelError::new(model, error));
    let options = ChatOptions::default()
        .with_capture_usage(true)
        .with_capture_tool_calls(true)
        .with_stream_header_timeout(IDLE_TIMEOUT)
        .with_stream_read_timeout(IDLE_TIMEOUT);
    let answer = client(model)?
        .exec_chat_stream(model.target(), request, Some(&options))
        .await;
    let mut stream = answer.map_err(model_error)?.stream;
    while let Some(event) = stream.next().await {
        match event.map_err(model_error)? {
            ChatStreamEvent::Chunk(chunk) if !chunk.content.is_empty() => {
                *sent_any = true;
                turn.output.send_text(&chunk.content).await?;
            }
            ChatStreamEvent::ReasoningChunk(chunk) if !chunk.content.is_empty() => {
                *sent_any = true;
                turn.output.send_thought(&chunk.content).await?;
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
    // The stream ended without the end event that every provider sends.
    Err(ModelError::cut_off(model).into())
}

/// Returns the shared HTTP client, created on first use so that an agent without a model does not pay
/// for it.
fn client(model: &ModelRef) -> Result<&'static genai::Client, Stop> {
    static CLIENT: OnceLock<Result<genai::Client, String>> = OnceLock::new();
    let made = CLIENT.get_or_init(|| {
        // An error means that a default provider is already installed.
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
