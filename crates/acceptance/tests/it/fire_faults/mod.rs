//! Under fire, faults: whatever breaks, nothing that was shown is lost or doubled, and nothing hangs.
//!
//! Each promise of docs/reliability.md names its test here. `cargo xtask test fire` runs them for long.

#![expect(
    clippy::print_stderr,
    reason = "what was measured, and what could not be tried here, is said"
)]

mod agent_floods;
mod agents;
mod crowds;
mod disk;
mod first_start;
mod full_disk;
mod kills;
mod remains;
mod small_disk;
mod story;
mod trap;

use anyhow::Result;
use testkit::ServerSetup;

fn setup() -> Result<ServerSetup> {
    ServerSetup::new()?.with_scripted_agent("")
}
