//! What tests share: the real binary as a running server, and plain clients for its doors.
//!
//! Only for tests. Every wait has a generous guard, so that a hang is a failure and not a stuck run.

mod conversation;
mod files;
mod fire;
mod http;
pub mod model;
mod person;
mod program;
mod programs;
mod server;
mod socket;

use std::time::Duration;

pub use conversation::Conversation;
pub use files::files_in;
pub use fire::{not_run, times};
pub use http::{HttpResponse, http};
pub use person::{Person, count_turns};
pub use program::{Program, ends, heard_text};
pub use programs::{liminal, scripted_agent};
pub use server::{Server, ServerSetup};
pub use socket::{Refused, Socket};

/// Far beyond anything that happens on a busy machine.
pub const HANG_GUARD: Duration = Duration::from_secs(30);

/// How long a server waits for one who does not read, before it hangs up without a word.
pub const GIVEN_UP_AFTER: Duration = Duration::from_secs(20);
