//! The summary of a session in lists and headers: title, state, time of the last activity.

use std::sync::Arc;

use jiff::Timestamp;
use wire::SessionState;

use super::log::Log;
use crate::session::index::{Index, SessionMeta};
use crate::session::state::{State, SummaryEffect};
use crate::stream::SessionEvent;
use store::transcript::Note;

pub(super) struct Summary {
    meta: Arc<SessionMeta>,
    index: Arc<Index>,
    /// The state last published to the session list.
    shown: Option<SessionState>,
    info_changed: bool,
    /// Time of an activity that is not published yet.
    active: Option<Timestamp>,
}

impl Summary {
    pub(super) fn new(meta: Arc<SessionMeta>, index: Arc<Index>) -> Self {
        Self {
            meta,
            index,
            shown: None,
            info_changed: false,
            active: None,
        }
    }

    pub(super) async fn perform(&mut self, effect: SummaryEffect, log: &mut Log) {
        match effect {
            SummaryEffect::Info => self.info_changed = true,
            SummaryEffect::Title(title) => self.title(title, log).await,
            SummaryEffect::Touch => {
                self.active = Some(Timestamp::now());
                self.info_changed = true;
            }
        }
    }

    /// Publishes what has changed, to subscribers and to the session list.
    pub(super) fn publish(&mut self, state: &State, log: &mut Log) {
        if std::mem::take(&mut self.info_changed) {
            log.publish(SessionEvent::Info(Box::new(state.info())));
        }
        let state = state.list_state();
        let active = self.active.take();
        if active.is_some() || self.shown.unwrap_or(SessionState::Idle) != state {
            self.index.note(&self.meta, state, active);
        }
        self.shown = Some(state);
    }

    async fn title(&self, title: String, log: &mut Log) {
        let note = Note {
            title: Some(title.clone()),
            ..Note::default()
        };
        log.save(note).await;
        let index = self.index.clone();
        index.note_title(&self.meta, title);
        // In a separate task, so that the turn does not wait for the index.
        tokio::spawn(async move {
            if let Err(error) = index.catch_up().await {
                tracing::error!(%error, "could not write a title to the session index");
            }
        });
    }
}
