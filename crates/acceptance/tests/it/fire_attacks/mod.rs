//! Under fire, attacks: nobody gets in, and nobody inside is slowed down by those who try.
//!
//! Each promise of docs/security.md names its test here. `cargo xtask test fire` runs them for long.
//! `corpus` is what is sent, `requests` everything that can be asked, `raw` a socket without manners.

#![expect(
    clippy::print_stdout,
    reason = "what was measured, and what could not be, is said"
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

use testkit::ServerSetup;

fn setup() -> anyhow::Result<ServerSetup> {
    ServerSetup::new()?.with_scripted_agent("")
}
