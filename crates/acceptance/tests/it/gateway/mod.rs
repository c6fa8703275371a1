//! The gateway, as a program uses it.

mod chat;
mod doors;
mod every_method;
mod hostile;
mod sessions;

use anyhow::Result;
use testkit::ServerSetup;

fn setup() -> Result<ServerSetup> {
    ServerSetup::new()?.with_scripted_agent("")
}
