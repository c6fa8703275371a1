use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// A folder somebody works in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Project {
    /// UUID v4, kept when the project is removed and added again.
    pub id: String,
    /// Absolute, with symbolic links resolved.
    pub path: String,
    /// The folder's own name.
    pub name: String,
    /// ISO 8601 UTC with milliseconds. No two are equal, and their order is the sidebar's order.
    pub added_at: String,
}
