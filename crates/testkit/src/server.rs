//! The real binary, started as a user would start it.

use std::ffi::OsString;
use std::fs::Permissions;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;

use anyhow::{Context, bail};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::socket::Socket;
use crate::{HANG_GUARD, HttpResponse, http};

/// How to start the binary: with its own home directory, a clean environment, on any free port.
pub struct ServerSetup {
    program: PathBuf,
    home: Arc<TempDir>,
    args: Vec<OsString>,
    env: Vec<(String, OsString)>,
}

impl ServerSetup {
    /// A server of the binary of this build.
    pub fn new() -> anyhow::Result<Self> {
        Self::of(&crate::liminal()?)
    }

    /// A server of the binary of this build, with the scripted agent.
    pub fn scripted(script: &str) -> anyhow::Result<Self> {
        Self::new()?.with_scripted_agent(script)
    }

    /// A server of this program.
    pub fn of(program: &str) -> anyhow::Result<Self> {
        Ok(Self {
            program: program.into(),
            home: Arc::new(tempfile::tempdir()?),
            args: vec![],
            env: vec![],
        })
    }

    /// Adds an argument to the command line of every server.
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Sets an environment variable of every server.
    pub fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.env.push((name.to_owned(), value.into()));
        self
    }

    /// Replaces Claude Code by the scripted agent, configured by `script` and started only when first needed. The agent
    /// keeps its sessions on disk and logs every request it receives.
    pub fn with_scripted_agent(self, script: &str) -> anyhow::Result<Self> {
        let memory = self.home().join("agent-memory");
        std::fs::create_dir_all(&memory)?;
        let log = self.agent_log();
        Ok(self
            .env("CLAUDE_ACP_CMD", crate::scripted_agent()?)
            .env("LIMINAL_WARM_START", "false")
            .env("SCRIPTED_AGENT", script)
            .env("SCRIPTED_AGENT_MEMORY", memory)
            .env("SCRIPTED_AGENT_LOG", log))
    }

    fn agent_log(&self) -> PathBuf {
        self.home().join("agent.log")
    }

    /// Requests the scripted agent received so far, one line each: method, session, text.
    pub fn asked(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.agent_log()).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }

    /// Number of requests with this method that the scripted agent received.
    pub fn count_asked(&self, method: &str) -> usize {
        let asked = self.asked();
        asked.iter().filter(|line| line.starts_with(method)).count()
    }

    /// The home directory. It stays until the setup and all servers started from it are dropped.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// The data directory of the servers.
    pub fn data_dir(&self) -> PathBuf {
        self.home.path().join(".liminal-builder")
    }

    /// Creates a folder in the home directory and returns its path.
    pub fn folder(&self, name: &str) -> anyhow::Result<String> {
        let path = self.home.path().join(name);
        std::fs::create_dir_all(&path)?;
        let real = path.canonicalize()?;
        Ok(real.to_str().context("expected a UTF-8 path")?.to_owned())
    }

    /// The command to run the binary; the caller may add arguments.
    pub fn command(&self) -> Command {
        self.command_of(&self.program)
    }

    fn command_of(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.args(&self.args);
        self.surrounded(command)
    }

    fn surrounded(&self, mut command: Command) -> Command {
        command
            .env_clear()
            .env("HOME", self.home.path())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .current_dir(self.home.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// Runs the binary with `args` until it exits.
    pub async fn run(&self, args: &[&str]) -> anyhow::Result<std::process::Output> {
        let running = self.command().args(args).output();
        Ok(tokio::time::timeout(HANG_GUARD, running).await??)
    }

    /// Starts a server on any free port and waits until it is ready.
    pub async fn start(&self) -> anyhow::Result<Server> {
        let mut command = self.command();
        command.args(["--port", "0"]);
        self.started(command).await
    }

    /// Starts a server on the given port, such as that of an earlier server.
    pub async fn start_at(&self, port: u16) -> anyhow::Result<Server> {
        let mut command = self.command();
        command.args(["--port", &port.to_string()]);
        self.started(command).await
    }

    /// Starts a server through a wrapper program, which appends the server's command line to its own and executes it.
    pub async fn start_by(&self, by: &[OsString]) -> anyhow::Result<Server> {
        let (program, first) = by.split_first().context("expected a program")?;
        let mut command = Command::new(program);
        command.args(first).arg(&self.program).args(&self.args);
        let mut command = self.surrounded(command);
        command.args(["--port", "0"]);
        self.started(command).await
    }

    /// Starts a server as the unprivileged user `nobody`. Requires root.
    pub async fn start_unprivileged(&self) -> anyhow::Result<Server> {
        const NOBODY: u32 = 65534;
        // That user must be able to read the program and the home directory, wherever the build directory is.
        let program = self.home.path().join("liminal");
        // Copied by another process: a child forked meanwhile would inherit our open write handle, and a file
        // that is open for writing cannot be executed.
        let copied = Command::new("cp")
            .args([&self.program, &program])
            .status()
            .await?;
        anyhow::ensure!(copied.success(), "could not copy the program");
        std::fs::set_permissions(self.home.path(), Permissions::from_mode(0o777))?;
        let mut command = self.command_of(&program);
        command.args(["--port", "0"]).uid(NOBODY).gid(NOBODY);
        self.started(command).await
    }

    async fn started(&self, mut command: Command) -> anyhow::Result<Server> {
        // The default gateway port is the same for all servers, and tests run in parallel.
        if !self
            .env
            .iter()
            .any(|(name, _)| name == "LIMINAL_GATEWAY_PORT")
        {
            command.env("LIMINAL_GATEWAY_PORT", "off");
        }
        let mut child = command.spawn()?;
        let mut stdout = BufReader::new(child.stdout.take().context("expected a pipe")?);
        let mut line = String::new();
        tokio::time::timeout(HANG_GUARD, stdout.read_line(&mut line)).await??;
        let Some(url) = line.strip_prefix("Liminal Builder is ready: ") else {
            let mut stderr = String::new();
            if let Some(mut pipe) = child.stderr.take() {
                pipe.read_to_string(&mut stderr).await?;
            }
            bail!("the server did not become ready: {line}{stderr}");
        };
        let url = url.trim_end();
        let (base, token) = url
            .split_once("/#token=")
            .context("expected an address and a token")?;
        let address = base
            .strip_prefix("http://")
            .context("expected an http:// address")?
            .parse()?;
        Ok(Server {
            child,
            stdout,
            address,
            token: token.to_owned(),
            _home: self.home.clone(),
        })
    }
}

/// A running server. Dropping it kills the process.
pub struct Server {
    child: Child,
    stdout: BufReader<tokio::process::ChildStdout>,
    pub address: SocketAddr,
    pub token: String,
    // Last, because the home directory must outlive the server.
    _home: Arc<TempDir>,
}

impl Server {
    /// The process id, 0 after the exit.
    pub fn id(&self) -> u32 {
        self.child.id().unwrap_or_default()
    }

    /// Opens an authenticated connection to the browser API and reads the `hello` message.
    pub async fn connect(&self) -> anyhow::Result<Socket> {
        let mut socket = self.connect_unread().await?;
        socket.next_of("hello").await?;
        Ok(socket)
    }

    /// Like [`Self::connect`], with the `hello` message still unread.
    pub async fn connect_unread(&self) -> anyhow::Result<Socket> {
        let bearer = format!("Bearer {}", self.token);
        let host = self.address.to_string();
        let headers = [("host", host.as_str()), ("authorization", &bearer)];
        Ok(Socket::open(self.address, "/ws", &headers).await?)
    }

    /// Opens an unauthenticated connection to the gateway.
    pub async fn knock(&self) -> anyhow::Result<Socket> {
        let host = self.address.to_string();
        Ok(Socket::open(self.address, "/gateway", &[("host", host.as_str())]).await?)
    }

    /// Sends a GET request with these header lines.
    pub async fn get(&self, path: &str, headers: &[&str]) -> anyhow::Result<HttpResponse> {
        let mut head = vec![
            format!("GET {path} HTTP/1.1"),
            format!("Host: {}", self.address),
        ];
        head.extend(headers.iter().map(|header| (*header).to_owned()));
        http(self.address, &head, "").await
    }

    /// Requests a picture as a program does.
    pub async fn picture(&self, id: &str) -> anyhow::Result<HttpResponse> {
        let bearer = format!("Authorization: Bearer {}", self.token);
        self.get(&format!("/uploads/{id}"), &[&bearer]).await
    }

    /// Sends a signal and waits until the server exits.
    pub async fn signal(self, name: &str) -> anyhow::Result<Ended> {
        let sent = Command::new("kill")
            .args([&format!("-{name}"), &self.id().to_string()])
            .status()
            .await?;
        anyhow::ensure!(sent.success(), "could not send {name}");
        self.ended().await
    }

    /// Waits until the server exits; the caller has arranged for that.
    pub async fn ended(mut self) -> anyhow::Result<Ended> {
        let started = std::time::Instant::now();
        let status = tokio::time::timeout(HANG_GUARD, self.child.wait()).await??;
        let took = started.elapsed();
        let mut stdout = String::new();
        self.stdout.read_to_string(&mut stdout).await?;
        let mut stderr = String::new();
        if let Some(mut pipe) = self.child.stderr.take() {
            pipe.read_to_string(&mut stderr).await?;
        }
        Ok(Ended {
            status,
            took,
            stdout,
            stderr,
        })
    }
}

/// How a server process exited.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub took: std::time::Duration,
    /// Output after the ready line.
    pub stdout: String,
    pub stderr: String,
}
