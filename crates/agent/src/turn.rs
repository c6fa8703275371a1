//! One turn, from the prompt to the stop reason.

use std::sync::Arc;

use agent_client_protocol_schema::v1 as acp;
use jiff::Timestamp;

use crate::acp::{ClientLink, Disconnected};
use crate::cancel::Cancel;
use crate::commands;
use crate::history::TurnEnd;
use crate::model::{self, ModelError};
use crate::registry::{Registry, Session};
use crate::session_id::SessionId;
use crate::settings::Settings;
use crate::store::{Meta, State, StoreError};
use crate::tools::Roots;
use crate::turn_output::TurnOutput;

const TITLE_CHARS_MAX: usize = 60;

/// Inputs of a new turn.
pub(crate) struct Start {
    pub(crate) registry: Arc<Registry>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) session: Arc<Session>,
    pub(crate) link: ClientLink,
    pub(crate) cancel: Cancel,
}

/// A running turn.
pub(crate) struct Turn {
    pub(crate) settings: Arc<Settings>,
    pub(crate) session: Arc<Session>,
    pub(crate) meta: Meta,
    pub(crate) roots: Roots,
    pub(crate) output: TurnOutput,
}

/// Reason that ends a turn early.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The user cancelled the turn, or the client disconnected.
    Cancelled,
    Store(StoreError),
    Model(ModelError),
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<ModelError> for Stop {
    fn from(error: ModelError) -> Self {
        Self::Model(error)
    }
}

impl From<Disconnected> for Stop {
    fn from(_: Disconnected) -> Self {
        Self::Cancelled
    }
}

impl Stop {
    pub(crate) fn for_client(&self, id: SessionId, registry: &Registry) -> acp::Error {
        match self {
            Self::Cancelled => acp::Error::request_cancelled(),
            Self::Store(error) => crate::acp::store_error(error, Some(id), registry),
            Self::Model(error) => error.for_client(),
        }
    }
}

/// Runs the turn to its end.
pub(crate) async fn run(
    start: Start,
    prompt: Vec<acp::ContentBlock>,
) -> Result<acp::PromptResponse, Stop> {
    let cancel = start.cancel.clone();
    let (mut turn, prompt) = begin(start, prompt).await?;
    let ended = tokio::select! {
        // A cancellation that is already set must win over work that completes immediately.
        biased;
        () = cancel.cancelled() => Err(Stop::Cancelled),
        ended = turn.work(&prompt) => ended,
    };
    let (end, why) = match &ended {
        Ok(_) => (TurnEnd::Done, ""),
        Err(Stop::Cancelled) => (TurnEnd::Cancelled, "cancelled"),
        Err(Stop::Store(_) | Stop::Model(_)) => (TurnEnd::Failed, "failed"),
    };
    // Failing to write or send the end does not change how the turn ended.
    let _ = turn.output.abandon(why).await;
    if let Err(error) = turn.output.end(end) {
        tracing::warn!(session = %turn.session.id, %error, "could not write the end of the turn to the history");
    }
    match ended {
        Ok(reason) => Ok(acp::PromptResponse::new(reason)),
        Err(Stop::Cancelled) => Ok(acp::PromptResponse::new(acp::StopReason::Cancelled)),
        Err(stop) => Err(stop),
    }
}

/// Writes the prompt to the history before anything else happens in the turn.
async fn begin(
    start: Start,
    prompt: Vec<acp::ContentBlock>,
) -> Result<(Turn, Vec<acp::ContentBlock>), Stop> {
    let begun = tokio::task::spawn_blocking(move || {
        let (id, store) = (start.session.id, start.registry.store().clone());
        let writer = store.open_history(id)?;
        let history = store.read_history(id)?;
        let mut output = TurnOutput::new(start.link, writer, history);
        output.record_prompt(&prompt)?;
        let untitled = start.session.meta().title.is_none();
        let meta = start.registry.change(&start.session, |meta| {
            meta.state = State::Active;
            meta.last_used_at = Timestamp::now();
            meta.turns += 1;
            if meta.title.is_none() {
                meta.title = title(&text_of(&prompt));
            }
        })?;
        let roots = Roots::new(&meta.cwd, &meta.additional_directories);
        let turn = Turn {
            settings: start.settings,
            session: start.session,
            meta,
            roots,
            output,
        };
        Ok::<_, StoreError>((turn, prompt, untitled))
    });
    let (turn, prompt, untitled) = match begun.await {
        Ok(begun) => begun?,
        Err(error) => return Err(StoreError::Io(std::io::Error::other(error)).into()),
    };
    if let Some(title) = turn.meta.title.clone().filter(|_| untitled) {
        let update = acp::SessionInfoUpdate::new().title(title);
        turn.output
            .send_unrecorded(acp::SessionUpdate::SessionInfoUpdate(update))
            .await?;
    }
    Ok((turn, prompt))
}

impl Turn {
    async fn work(&mut self, prompt: &[acp::ContentBlock]) -> Result<acp::StopReason, Stop> {
        let text = text_of(prompt);
        if let Some(command) = commands::parse(&text) {
            commands::run(self, command).await?;
            return Ok(acp::StopReason::EndTurn);
        }
        let settings = self.settings.clone();
        let persona = settings.persona(self.meta.persona.as_deref());
        match settings.model(self.meta.model.as_deref(), persona) {
            Some(model) => model::converse(self, model, persona).await,
            None => {
                commands::answer_without_model(self, &text).await?;
                Ok(acp::StopReason::EndTurn)
            }
        }
    }
}

/// Text of the prompt without its attachments.
fn text_of(prompt: &[acp::ContentBlock]) -> String {
    let text = |block: &acp::ContentBlock| match block {
        acp::ContentBlock::Text(text) => Some(text.text.clone()),
        _ => None,
    };
    let texts: Vec<_> = prompt.iter().filter_map(text).collect();
    texts.join("\n")
}

fn title(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    let mut title: String = line.chars().take(TITLE_CHARS_MAX).collect();
    if title.len() < line.len() {
        title.push('…');
    }
    Some(title)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn title_is_the_truncated_first_line() {
        assert_eq!(title("\n  Fix it \nplease"), Some("Fix it".to_owned()));
        assert_eq!(title("  \n"), None);
        let long = title(&"ä".repeat(100)).unwrap();
        assert_eq!(long, format!("{}…", "ä".repeat(TITLE_CHARS_MAX)));
    }
}
