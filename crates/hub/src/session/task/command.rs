//! Commands that the APIs send to a session's task, and their results.

use tokio::sync::oneshot;
use wire::{ChatEntry, Position, QuestionEntry, SessionInfo};

use crate::error::HubError;
use crate::events::Origin;
use crate::session::state::{ConfigChoice, Input};
use crate::stream::Feed;

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
    /// Number of the last event so far; later events have higher numbers.
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

/// A page of older entries, in their state after event `seq`.
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

/// How a command is handled while the log is stalled.
#[derive(Debug, PartialEq)]
pub(super) enum WhenStalled {
    /// Carried out at once: the command only reads, or must not wait.
    Serve,
    /// Refused with the disk's error.
    Refuse,
    /// Carried out once the disk can be written.
    Defer,
}

impl Command {
    pub(super) fn when_stalled(&self) -> WhenStalled {
        match self {
            Self::Subscribe { .. }
            | Self::Unsubscribe { .. }
            | Self::Page { .. }
            | Self::Info { .. }
            | Self::Elicitations { .. }
            | Self::Act {
                input: Input::Cancel { only: None },
                ..
            } => WhenStalled::Serve,
            Self::Act { .. } | Self::Choose { .. } | Self::Titled { .. } => WhenStalled::Refuse,
            Self::Archived(_) | Self::Stop { .. } => WhenStalled::Defer,
        }
    }

    pub(super) fn refuse(self, error: impl FnOnce() -> HubError) {
        match self {
            Self::Subscribe { reply, .. } => drop(reply.send(Err(error()))),
            Self::Page { reply, .. } => drop(reply.send(Err(error()))),
            Self::Act { reply, .. } | Self::Choose { reply, .. } => drop(reply.send(Err(error()))),
            Self::Info { reply } => drop(reply.send(Err(error()))),
            Self::Elicitations { reply } => drop(reply.send(Err(error()))),
            Self::Titled { reply, .. } => drop(reply.send(Err(error()))),
            Self::Stop { reply, .. } => drop(reply.send(())),
            Self::Unsubscribe { .. } | Self::Archived(_) => {}
        }
    }
}
