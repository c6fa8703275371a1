//! The stream of a session's events: numbered by the session's task, kept for a while, sent to every subscriber.
//!
//! `subscribers` is the session's side, `feed` the queue to one connection.

mod feed;
mod subscribers;

pub use feed::{Feed, FeedReader, QueuedEvent, SessionEvent, TooSlow, feed};
pub(crate) use subscribers::{Subscribers, texts_before};
