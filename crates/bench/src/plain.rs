//! A plain program, running, with a client at its socket.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result};
use testkit::Socket;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::process::beside;

pub(crate) struct Plain {
    child: Child,
    pub(crate) socket: Socket,
}

/// Those that do what the server does of a turn, and no more.
pub(crate) const RELAYS: [&str; 4] = ["lines", "typed", "coalesced", "crate"];

impl Plain {
    pub(crate) async fn relay(kind: &str) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["relay", kind]).arg(beside("scripted-agent")?);
        Self::start(command).await
    }

    /// What a web UI in Node does, where it is and its packages are.
    pub(crate) async fn node_bridge(script: &Path) -> Result<Self> {
        let mut command = Command::new("node");
        command.arg(script).arg(beside("scripted-agent")?);
        Self::start(command).await
    }

    async fn start(mut command: Command) -> Result<Self> {
        let mut child = command.stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().context("a pipe")?);
        stdout.read_line(&mut line).await?;
        let address: SocketAddr = line.trim().parse().context("an address")?;
        let socket = Socket::open(address, "/ws", &[]).await?;
        Ok(Self { child, socket })
    }

    pub(crate) fn id(&self) -> Result<u32> {
        self.child.id().context("a process")
    }
}
