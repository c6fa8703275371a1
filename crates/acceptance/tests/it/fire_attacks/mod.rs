//! Attack tests: no client gets access without the token, and attacks do not slow down other clients.
//!
//! docs/security.md names the test that verifies each guarantee. `cargo xtask test fire` runs the long form.
//! `corpus` holds hostile texts, `requests` lists every request type, `raw` is a WebSocket client without checks.

#![expect(
    clippy::print_stdout,
    reason = "measurements and skipped tests are reported"
)]

mod corpus;
mod floods;
mod frames;
mod ids;
mod raw;
mod requests;
mod routes;
mod terminal;
mod token;
mod writes;
