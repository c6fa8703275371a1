//! Shared test helpers: the real binary as a running server, and plain clients for its APIs.
//!
//! Only for tests. Every wait ends after [`HANG_GUARD`], so that a hang fails the test instead of blocking the run.

mod browser;
mod conversation;
mod files;
mod fire;
mod http;
pub mod model;
mod person;
mod program;
mod programs;
mod scene;
mod server;
mod socket;

use std::time::Duration;

pub use browser::{Browser, new_nonce, new_sign_in, post_login};
pub use conversation::Conversation;
pub use files::files_in;
pub use fire::{not_run, times};
pub use http::{HttpResponse, http};
pub use person::{Person, count_turns};
pub use program::{Program, ends, heard_text};
pub use programs::{liminal, scripted_agent};
pub use scene::Scene;
pub use server::{Server, ServerSetup};
pub use socket::{Refused, Socket};

/// Timeout for every wait, far longer than any step takes on a busy machine.
pub const HANG_GUARD: Duration = Duration::from_secs(30);

/// How long the server waits for a client that does not read before it drops the connection without a close frame.
pub const GIVEN_UP_AFTER: Duration = Duration::from_secs(20);
