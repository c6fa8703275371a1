//! The agent that ships inside Liminal Builder: an ordinary ACP guest over stdio.
//!
//! It knows none of the other crates; any ACP client can start it. It talks through a model when the
//! environment names one, and works by command when there is none.
//!
//! The way of a prompt: `acp` takes it from the wire, `registry` finds its session, `turn` runs it,
//! through `commands` or `model`, which use `tools`; `voice` writes each word down (`store`, `history`)
//! before it sends it.

mod acp;
mod cancel;
mod commands;
mod history;
mod model;
mod personas;
mod places;
mod registry;
mod session_id;
mod settings;
mod store;
mod tools;
mod turn;
mod voice;

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

/// What is logged unless something else is wanted. The second name begins like the first, and would
/// say every error twice.
pub const LOG_DEFAULT: &str = "agent=warn,agent_client_protocol=off";

/// Why the agent could not run.
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
    #[error("The connection broke: {}", .0.message)]
    Connection(agent_client_protocol::Error),
}

/// Serves the client on standard input and output until it is gone, or until we are told to stop.
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
    // Somebody may still be reading from a pipe that never ends.
    runtime.shutdown_timeout(Duration::from_millis(100));
    served
}

/// An input that also ends when the process is told to stop, so that both ends go the same way.
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
        let told =
            self.terminate.poll_recv(cx).is_ready() || self.interrupt.poll_recv(cx).is_ready();
        if told {
            return std::task::Poll::Ready(Ok(()));
        }
        std::pin::Pin::new(&mut self.input).poll_read(cx, buffer)
    }
}
