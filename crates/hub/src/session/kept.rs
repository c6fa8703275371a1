//! What must stay when the data directory is cleaned: everything of sessions that are listed or can be restored.

use agents::Catalog;
use jiff::Timestamp;
use store::Kept;

use super::Sessions;
use crate::error::HubError;

impl Sessions {
    /// `limit` is the time before which a deleted session can no longer be restored.
    pub(crate) fn kept(&self, limit: Option<Timestamp>) -> Kept {
        let mut kept = Kept::default();
        for meta in self.index.kept(limit) {
            if meta.cli_type == Catalog::LIMINAL {
                let id = meta.agent_session_id().to_owned();
                kept.agent_sessions.insert(id);
            }
            kept.keys.insert(meta.key.clone());
        }
        kept
    }

    pub(crate) async fn forget_deleted(&self, limit: Option<Timestamp>) -> Result<(), HubError> {
        self.index.forget_deleted(limit).await
    }
}
