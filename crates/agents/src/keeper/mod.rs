//! Keepers: the processes between the server and everything it starts for agents, so that nothing stays behind.
//!
//! `process` is what runs in a keeper; `supervise` starts keepers on the server's side and ends what a killed keeper
//! leaves; `mark` recognises what was started below a keeper, also after the server's own end; `table` reads the
//! processes of this machine.
//!
//! Invariant: a process below a keeper ends with the keeper, or, if that was killed, by the server's hand at once, or, if
//! that was killed as well, when the next server opens the same data directory.

mod mark;
mod process;
mod supervise;
mod table;

pub use mark::StoreId;
pub use process::keep;
pub use supervise::Keepers;
pub(super) use supervise::{Ender, Kept};
pub(super) use table::descendants;
