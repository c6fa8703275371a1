//! Commands that the APIs send to a session's task, and their results.

use tokio::sync::oneshot;
use wire::{ChatEntry, Position, QuestionEntry, SessionInfo};

use crate::error::HubError;
use crate::events::Origin;
use crate::stream::Feed;
use crate::session::state::{ConfigChoice, Input};

pub(crate) enum Command {
    Subscribe {
        feed: Feed,
        how: Subscribe,
        reply: oneshot::Sender<Result<Shown, HubError>>,
    },
    Unsubscribe {
        connection: u64,
    },
    Page {
        before: u64,
        limit: u32,
        reply: oneshot::Sender<Result<Page, HubError>>,
    },
    Info {
        reply: oneshot::Sender<Result<SessionInfo, HubError>>,
    },
    Elicitations {
        reply: oneshot::Sender<Result<Vec<QuestionEntry>, HubError>>,
    },
    Act {
        input: Input,
        origin: Origin,
        reply: oneshot::Sender<Result<Done, HubError>>,
    },
    /// Sends a config choice to the agent.
    Choose {
        choice: ConfigChoice,
        reply: oneshot::Sender<Result<Done, HubError>>,
    },
    /// The user chose a title.
    Titled {
        title: String,
        reply: oneshot::Sender<Result<(), HubError>>,
    },
    Archived(bool),
    Stop {
        /// The session is deleted, so the agent closes it, too.
        deleted: bool,
        reply: oneshot::Sender<()>,
    },
}

/// Result of a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown {
    /// Whether the stream continues right after the subscriber's position.
    pub resumed: bool,
    /// Later events have higher numbers.
    pub seq: u64,
}

#[derive(Debug)]
pub(crate) enum Subscribe {
    /// Sends a snapshot first, or the events after `after` if they are still kept.
    Open {
        after: Option<Position>,
        tail: Option<u32>,
        origin: Origin,
    },
    /// Sends later events only, for a subscriber that already has the conversation.
    Follow,
}

/// Older entries, as of event `seq`.
#[derive(Debug)]
pub struct Page {
    pub entries: Vec<ChatEntry>,
    pub first: u64,
    pub total: u64,
    pub seq: u64,
}

/// Result of an accepted request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done {
    /// A turn has begun; the user's entry carries the request id and is the response.
    Begun,
    /// The request was carried out, queued, or had been accepted before.
    Noted,
}

/// Answers a command with the error that the transcript is not readable.
pub(super) fn refuse(command: Command, reason: &str) {
    let error = || HubError::SessionUnreadable(reason.to_owned());
    match command {
        Command::Subscribe { reply, .. } => drop(reply.send(Err(error()))),
        Command::Page { reply, .. } => drop(reply.send(Err(error()))),
        Command::Act { reply, .. } | Command::Choose { reply, .. } => {
            drop(reply.send(Err(error())))
        }
        Command::Info { reply } => drop(reply.send(Err(error()))),
        Command::Elicitations { reply } => drop(reply.send(Err(error()))),
        Command::Titled { reply, .. } => drop(reply.send(Err(error()))),
        Command::Stop { reply, .. } => drop(reply.send(())),
        Command::Unsubscribe { .. } | Command::Archived(_) => {}
    }
}
