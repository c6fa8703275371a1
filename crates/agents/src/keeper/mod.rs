//! Keepers: supervisor processes between the server and everything it starts for agents, so that no process is left
//! running.
//!
//! `process` runs in the keeper; `supervise` is the server's side, which starts keepers and ends the processes that a
//! killed keeper leaves; `mark` identifies processes below a keeper, also after the server has ended; `table` reads the
//! process table.
//!
//! Invariant: a process below a keeper ends with the keeper. If the keeper was killed, the server ends the process at
//! once; if the server was killed too, the next server of the same data directory ends it at its start.

mod mark;
mod process;
mod supervise;
mod table;

pub use mark::StoreId;
pub use process::keep;
pub use supervise::Keepers;
pub(super) use supervise::{Ender, Kept};
pub(super) use table::descendants;
