//! Fault tests: whatever breaks, nothing that was shown is lost or duplicated, and nothing hangs.
//!
//! docs/reliability.md names the test that verifies each guarantee. `cargo xtask test fire` runs the long form.

#![expect(
    clippy::print_stderr,
    reason = "measurements and skipped tests are reported"
)]

mod agent_floods;
mod agents;
mod data_check;
mod disk;
mod first_start;
mod full_disk;
mod kills;
mod scale;
mod small_disk;
mod strace;
mod workday;
