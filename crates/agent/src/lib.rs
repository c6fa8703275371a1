//! The built-in agent of Liminal Builder: an ordinary ACP agent over stdio.
//!
//! It depends on none of the other crates, and any ACP client can start it. It uses a language model
//! if the environment configures one, and offers slash commands without one.
//!
//! Path of a prompt: `acp` receives it, `registry` finds its session, and `turn` runs it through
//! `commands` or `model`, which use `tools`. `turn_output` appends each update to the session's history
//! (`store`, `history`) before it sends the update.

mod acp;
mod cancel;
mod commands;
mod history;
mod model;
mod personas;
mod registry;
mod session_id;
mod settings;
mod store;
mod tools;
mod turn;
mod turn_output;
mod working_directories;

use std::sync::Arc;
use std::time::Duration;

pub use acp::serve;
pub use history::{Entry, History, Record, TurnEnd};
pub use model::ModelRef;
pub use personas::{Persona, read as read_personas};
pub use registry::{ExpiryPolicy, Page, Registry, Running, Session, SessionConfig};
pub use session_id::{EXAMPLE, EXPECTED_FORMAT, SessionId, SessionIdError};
pub use settings::{Directories, Environment, SettingError, Settings};
pub use store::{FileStore, Hold, MemoryStore, Meta, Mode, State, Store, StoreError, Writer};

/// Default log filter. `agent_client_protocol` is off because the filter `agent` matches it by prefix,
/// and it would log every error a second time.
pub const LOG_DEFAULT: &str = "agent=warn,agent_client_protocol=off";

/// Error that ends the agent process.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    #[error(transparent)]
    Setting(#[from] SettingError),
    #[error("The agent's store in {} cannot be used: {reason}", path.display())]
    Store {
        path: std::path::PathBuf,
        reason: StoreError,
    },
    #[error("The agent could not start: {0}")]
    Start(#[from] std::io::Error),
    #[error("The connection to the client failed: {}", .0.message)]
    Connection(agent_client_protocol::Error),
}

/// Serves the client on stdin and stdout until it disconnects or the process receives SIGTERM or SIGINT.
pub fn run(directories: &Directories, env: Environment) -> Result<(), AgentError> {
    let settings = Settings::load(directories, env)?;
    let store = FileStore::open(&directories.store).map_err(|reason| AgentError::Store {
        path: directories.store.clone(),
        reason,
    })?;
    let registry = Arc::new(Registry::new(Arc::new(store), settings.policy));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let served = runtime.block_on(async {
        let input = UntilStopped::new(tokio::io::stdin())?;
        let served = serve(registry, Arc::new(settings), input, tokio::io::stdout());
        served.await.map_err(AgentError::Connection)
    });
    // A thread may still be blocked reading from a pipe that never ends.
    runtime.shutdown_timeout(Duration::from_millis(100));
    served
}

/// Input that also ends on SIGTERM and SIGINT, so that a signal shuts down like a disconnect.
struct UntilStopped<R> {
    input: R,
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

impl<R> UntilStopped<R> {
    fn new(input: R) -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            input,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }
}

impl<R: tokio::io::AsyncRead + Unpin> tokio::io::AsyncRead for UntilStopped<R> {
    fn poll_read(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
        buffer: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        let signalled =
            self.terminate.poll_recv(cx).is_ready() || self.interrupt.poll_recv(cx).is_ready();
        if signalled {
            return std::task::Poll::Ready(Ok(()));
        }
        std::pin::Pin::new(&mut self.input).poll_read(cx, buffer)
    }
}
