//! The conversation of a session, and the changes that an agent's updates make to it. Pure: no clock, no files, no
//! channels.

mod earlier;
mod entries;
mod json_bytes;
mod update;
mod weight;

pub use earlier::amend;
pub use entries::{Entries, EntryChange, entry_number, extend};
pub use json_bytes::json_bytes;
pub use update::{SessionChange, ToolCallPatch, Update};
