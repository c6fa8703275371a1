//! Tests of the gateway, the WebSocket API for programs.

mod admission;
mod chat;
mod every_method;
mod hostile;
mod sessions;

use anyhow::Result;
use testkit::ServerSetup;

fn setup() -> Result<ServerSetup> {
    ServerSetup::new()?.with_scripted_agent("")
}
