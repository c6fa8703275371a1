//! File and terminal requests of an agent, limited to the project of one session.
//!
//! `confine` resolves a path of the agent to an open directory inside the project; `files` reads and writes entries of it;
//! `terminals` runs commands that start there, each a `command` with a `screen`; `audit_event` describes what was allowed
//! and refused. These limits hold whatever was approved. Approval is not requested here; only a write to a sensitive path
//! (`approval`) is refused until the user has approved it.

mod approval;
mod audit_event;
mod command;
mod confine;
mod entry;
mod files;
mod screen;
mod terminals;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_client_protocol_schema::v1 as acp;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::keeper::Keepers;
pub use approval::would_write;
pub use audit_event::{AuditWhat, Auditor, DecidedBy};
use confine::Project;
pub(super) use screen::Decoder;
use terminals::Terminals;

const METHOD_NOT_FOUND: i32 = -32601;
const INVALID_PARAMS: i32 = -32602;
const INTERNAL_ERROR: i32 = -32603;
/// ACP's error code for a missing resource.
const RESOURCE_NOT_FOUND: i32 = -32002;

/// Maximum concurrent file requests per session; further ones wait.
const FILE_REQUESTS_MAX: usize = 4;
/// Maximum concurrent long responses per session; further ones wait.
const LONG_ANSWERS_MAX: usize = 2;

/// Serves the `fs/*` and `terminal/*` requests of one session. Clones share it; dropping the last one ends its
/// commands.
#[derive(Clone)]
pub struct Host {
    inner: Arc<Inner>,
}

/// The parameters of a session's host.
#[derive(Clone)]
pub struct HostSetup {
    /// The real, absolute path of the session's project.
    pub project: PathBuf,
    /// Real paths that no agent may access, even inside the project: the server's data directory.
    pub forbidden: Vec<PathBuf>,
    /// The session's id on this server, for the audit.
    pub session_id: String,
    /// Starts the keepers of the commands.
    pub keepers: Keepers,
    /// The environment of commands, to which the agent may add.
    pub env: Vec<(OsString, OsString)>,
    pub audit: Auditor,
    /// Receives the output of commands as it is written.
    pub output: mpsc::Sender<TerminalOutput>,
}

/// New output of a command.
#[derive(Debug, Clone, PartialEq)]
pub struct TerminalOutput {
    pub terminal_id: String,
    /// May be empty when the command ends.
    pub text: String,
    /// Present in the last event of a command only.
    pub exit: Option<wire::TerminalExit>,
}

/// A failed request, as a JSON-RPC error.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    pub code: i32,
    pub message: String,
    /// The sensitive path, relative to the project, that the user has to approve before it is written.
    pub guarded: Option<PathBuf>,
}

impl Refusal {
    /// A request that is not allowed or invalid.
    fn not_allowed(message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            code: INVALID_PARAMS,
            message,
            guarded: None,
        }
    }

    fn missing(message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            code: RESOURCE_NOT_FOUND,
            message,
            guarded: None,
        }
    }

    /// A write that the user has to approve first.
    fn guarded(asked: &Path, below: PathBuf, reason: &str) -> Self {
        let asked = asked.display();
        let message = format!("writing {asked} needs the user's approval: {reason}");
        Self {
            guarded: Some(below),
            ..Self::not_allowed(message)
        }
    }

    /// A request that was allowed but failed.
    fn failed(message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            code: INTERNAL_ERROR,
            message,
            guarded: None,
        }
    }
}

struct Inner {
    session_id: String,
    project: Project,
    terminals: Terminals,
    audit: Auditor,
    file_requests: Arc<Semaphore>,
    long_answers: Arc<Semaphore>,
}

impl Host {
    /// Opens the project's directory and keeps it open. A moved project is served at its new path. After a removal all
    /// requests fail, even if another directory takes its place.
    pub fn open(setup: HostSetup) -> io::Result<Self> {
        let project = Project::open(&setup.project, &setup.forbidden)?;
        let terminals = Terminals::new(terminals::Setup {
            session_id: setup.session_id.clone(),
            keepers: setup.keepers,
            env: setup.env,
            audit: setup.audit.clone(),
            output: setup.output,
        });
        Ok(Self {
            inner: Arc::new(Inner {
                session_id: setup.session_id,
                project,
                terminals,
                audit: setup.audit,
                file_requests: Arc::new(Semaphore::new(FILE_REQUESTS_MAX)),
                long_answers: Arc::new(Semaphore::new(LONG_ANSWERS_MAX)),
            }),
        })
    }

    /// Waits for a permit if the method may have a long response. It is to be held until the agent has read the
    /// response.
    pub async fn turn(&self, method: &str) -> Option<OwnedSemaphorePermit> {
        let long = matches!(method, "fs/read_text_file" | "terminal/output");
        match long {
            true => self.inner.long_answers.clone().acquire_owned().await.ok(),
            false => None,
        }
    }

    /// Executes a request. `params` and the result are those of ACP. `terminal/wait_for_exit` takes as long as the
    /// command, so each request needs a task of its own.
    pub async fn serve(&self, method: &str, params: Value) -> Result<Value, Refusal> {
        let terminals = &self.inner.terminals;
        match method {
            "fs/read_text_file" => answer(self.read(parse(params)?).await?),
            "fs/write_text_file" => answer(self.write(parse(params)?, None).await?),
            "terminal/create" => answer(self.create_terminal(parse(params)?).await?),
            "terminal/output" => {
                let request: acp::TerminalOutputRequest = parse(params)?;
                answer(terminals.output(&request.terminal_id.0)?)
            }
            "terminal/wait_for_exit" => {
                let request: acp::WaitForTerminalExitRequest = parse(params)?;
                answer(terminals.wait_for_exit(&request.terminal_id.0).await?)
            }
            "terminal/kill" => {
                let request: acp::KillTerminalRequest = parse(params)?;
                terminals.kill(&request.terminal_id.0).await?;
                answer(acp::KillTerminalResponse::new())
            }
            "terminal/release" => {
                let request: acp::ReleaseTerminalRequest = parse(params)?;
                terminals.release(&request.terminal_id.0).await?;
                answer(acp::ReleaseTerminalResponse::new())
            }
            _ => Err(Refusal {
                code: METHOD_NOT_FOUND,
                message: format!("Method not found: {method}"),
                guarded: None,
            }),
        }
    }

    /// Writes a file at a sensitive path that the user has approved. `agreed` is the path in the refusal.
    pub async fn write_agreed(&self, params: Value, agreed: PathBuf) -> Result<Value, Refusal> {
        answer(self.write(parse(params)?, Some(agreed)).await?)
    }

    /// Ends all commands of this session and waits for their exit. No further command can be started.
    pub async fn close(&self) {
        self.inner.terminals.close().await;
    }

    async fn read(
        &self,
        request: acp::ReadTextFileRequest,
    ) -> Result<acp::ReadTextFileResponse, Refusal> {
        self.on_files(move |host| {
            let path = &request.path;
            let read = files::read(&host.project, path, request.line, request.limit);
            if let Err(refusal) = &read
                && refusal.code == INVALID_PARAMS
            {
                host.record(AuditWhat::Read {
                    path: path.to_string_lossy().into_owned(),
                    refused: refusal.message.clone(),
                });
            }
            read.map(acp::ReadTextFileResponse::new)
        })
        .await
    }

    async fn write(
        &self,
        request: acp::WriteTextFileRequest,
        agreed: Option<PathBuf>,
    ) -> Result<acp::WriteTextFileResponse, Refusal> {
        self.on_files(move |host| {
            let (path, content) = (&request.path, request.content.as_bytes());
            let written = files::write(&host.project, path, content, agreed.as_deref());
            // The user has not decided yet, so there is nothing to record.
            if let Err(Refusal {
                guarded: Some(_), ..
            }) = written
            {
                return written.map(|()| acp::WriteTextFileResponse::new());
            }
            host.record(AuditWhat::Write {
                path: request.path.to_string_lossy().into_owned(),
                bytes: request.content.len() as u64,
                refused: written
                    .as_ref()
                    .err()
                    .map(|refusal| refusal.message.clone()),
            });
            written.map(|()| acp::WriteTextFileResponse::new())
        })
        .await
    }

    async fn create_terminal(
        &self,
        request: acp::CreateTerminalRequest,
    ) -> Result<acp::CreateTerminalResponse, Refusal> {
        let cwd = request.cwd.clone();
        let start_in = self
            .on_files(move |host| host.project.directory(cwd.as_deref()))
            .await;
        let cwd = request
            .cwd
            .clone()
            .unwrap_or_else(|| self.inner.project.path().to_owned());
        let id = self.inner.terminals.create(request, start_in, &cwd)?;
        Ok(acp::CreateTerminalResponse::new(id))
    }

    /// Runs blocking file work outside of the async threads. It always runs to its end, even if the request is
    /// cancelled, so that every write is in the audit.
    async fn on_files<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let stopped = || Refusal::failed("The server is stopping");
        let turns = self.inner.file_requests.clone();
        let turn = turns.acquire_owned().await.map_err(|_| stopped())?;
        let host = self.inner.clone();
        let working = move || {
            let _turn = turn;
            work(&host)
        };
        let worked = tokio::task::spawn_blocking(working).await;
        worked.map_err(|_| stopped())?
    }
}

impl Inner {
    fn record(&self, what: AuditWhat) {
        self.audit.record(&self.session_id, what);
    }
}

fn parse<T: DeserializeOwned>(params: Value) -> Result<T, Refusal> {
    serde_json::from_value(params)
        .map_err(|error| Refusal::not_allowed(format!("Invalid params: {error}")))
}

fn answer(response: impl serde::Serialize) -> Result<Value, Refusal> {
    serde_json::to_value(response).map_err(|error| Refusal::failed(error.to_string()))
}
