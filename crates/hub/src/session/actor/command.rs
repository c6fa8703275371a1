//! What a door may want of a session, and what it gets for an answer.

use tokio::sync::oneshot;
use wire::{ChatEntry, Position, QuestionEntry, SessionInfo};

use crate::error::HubError;
use crate::events::Origin;
use crate::session::feed::Feed;
use crate::session::state::{Choice, Input};

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
    Questions {
        reply: oneshot::Sender<Result<Vec<QuestionEntry>, HubError>>,
    },
    Act {
        input: Input,
        origin: Origin,
        reply: oneshot::Sender<Result<Done, HubError>>,
    },
    /// One of the things the agent lets one choose.
    Choose {
        choice: Choice,
        reply: oneshot::Sender<Result<Done, HubError>>,
    },
    /// The person chose a title.
    Titled {
        title: String,
        reply: oneshot::Sender<Result<(), HubError>>,
    },
    Archived(bool),
    Stop {
        /// The session is deleted: the agent may forget it, too.
        for_good: bool,
        reply: oneshot::Sender<()>,
    },
}

/// How far one who was shown a session has come with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown {
    /// Whether it goes on right after what was known.
    pub resumed: bool,
    /// What follows has higher numbers.
    pub seq: u64,
}

#[derive(Debug)]
pub(crate) enum Subscribe {
    /// With everything so far, or what is new since then, first.
    Open {
        after: Option<Position>,
        tail: Option<u32>,
        origin: Origin,
    },
    /// From now on, for one who knows what there is.
    Follow,
}

/// Older entries, as they were after the event numbered `seq`.
#[derive(Debug)]
pub struct Page {
    pub entries: Vec<ChatEntry>,
    pub first: u64,
    pub total: u64,
    pub seq: u64,
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done {
    /// A turn has begun; the sender's entry is the answer.
    Begun,
    /// It waits its turn, was accepted before, or there is nothing more to say.
    Noted,
}

/// Says the same to everybody.
pub(super) fn refuse(command: Command, reason: &str) {
    let error = || HubError::SessionUnreadable(reason.to_owned());
    match command {
        Command::Subscribe { reply, .. } => drop(reply.send(Err(error()))),
        Command::Page { reply, .. } => drop(reply.send(Err(error()))),
        Command::Act { reply, .. } | Command::Choose { reply, .. } => {
            drop(reply.send(Err(error())))
        }
        Command::Info { reply } => drop(reply.send(Err(error()))),
        Command::Questions { reply } => drop(reply.send(Err(error()))),
        Command::Titled { reply, .. } => drop(reply.send(Err(error()))),
        Command::Stop { reply, .. } => drop(reply.send(())),
        Command::Unsubscribe { .. } | Command::Archived(_) => {}
    }
}
