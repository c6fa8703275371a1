use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// A folder that the user works in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Project {
    /// UUID v4. A removed project that is added again keeps its id.
    pub id: String,
    /// Absolute path with symbolic links resolved.
    pub path: String,
    /// Name of the folder.
    pub name: String,
    /// ISO 8601 UTC with milliseconds. Unique per project; the sidebar is sorted by it.
    pub added_at: String,
}
