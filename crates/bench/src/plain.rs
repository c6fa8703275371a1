//! A running baseline program with a client at its socket.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result};
use testkit::Socket;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::process::sibling_program;

pub(crate) struct Plain {
    child: Child,
    pub(crate) socket: Socket,
}

/// The relays, which do the server's work of a turn and nothing else.
pub(crate) const RELAYS: [&str; 4] = ["lines", "typed", "coalesced", "crate"];

impl Plain {
    pub(crate) async fn relay(kind: &str) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["relay", kind])
            .arg(sibling_program("scripted-agent")?);
        Self::start(command).await
    }

    /// The server side of a web UI in Node.
    pub(crate) async fn node_bridge(script: &Path) -> Result<Self> {
        let mut command = Command::new("node");
        command.arg(script).arg(sibling_program("scripted-agent")?);
        Self::start(command).await
    }

    async fn start(mut command: Command) -> Result<Self> {
        let mut child = command.stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().context("the child has no stdout")?);
        stdout.read_line(&mut line).await?;
        let address: SocketAddr = line
            .trim()
            .parse()
            .context("the baseline program printed no address")?;
        let socket = Socket::open(address, "/ws", &[]).await?;
        Ok(Self { child, socket })
    }

    pub(crate) fn id(&self) -> Result<u32> {
        self.child.id().context("the child has ended")
    }
}
