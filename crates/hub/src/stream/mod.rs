//! The stream of a session's events: numbered by the session's task, kept for a while, sent to every subscriber.
//!
//! `subscribers` is the side of the session, `feed` the way to one connection.

mod feed;
mod subscribers;

pub use feed::{Fed, Feed, FeedReader, SessionEvent, TooSlow, feed};
pub(crate) use subscribers::{Subscribers, texts_before};
