//! Installation of an agent: runs the planned commands and reports their output as it arrives.
//!
//! Every command runs below a keeper, so that no process of an installation stays when it is cancelled or the server
//! ends.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::sync::watch;

use super::agent_store;
use super::archive;
use super::listing::{Binary, Source};
use super::plan::{Plan, Step, archive_file};
use crate::keeper::Keepers;

/// Maximum concurrent installations.
const JOBS_MAX: usize = 3;
/// Maximum output reported while an installation runs, in bytes and in chunks. Of the output after that, only the end
/// is reported when the installation ends.
const REPORTED_BYTES_MAX: usize = 64 * 1024;
const REPORTED_CHUNKS_MAX: usize = 1000;
const CHUNK_BYTES: usize = 4096;
/// Maximum wait for remaining output after the installer has exited.
const LAST_OUTPUT_DEADLINE: Duration = Duration::from_secs(1);

/// The progress of an installation.
#[derive(Debug, Clone)]
pub enum InstallProgress {
    Output(String),
    Ended(InstallOutcome),
}

/// How an installation ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstallOutcome {
    Installed,
    Cancelled,
    /// The reason, and what the user can do.
    Failed(String),
}

/// Why an installation was not started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InstallRefused {
    #[error("{0}")]
    Impossible(String),
    #[error(
        "Three agents are being installed already. Wait until one of them is finished, then try again."
    )]
    TooMany,
}

/// The running installations.
#[derive(Clone, Default)]
pub(crate) struct Installs {
    jobs: Arc<Mutex<HashMap<String, Job>>>,
}

struct Job {
    stop: watch::Sender<bool>,
    output: Arc<Mutex<Output>>,
}

/// The output of an installation: its end, and the amount that was reported.
#[derive(Default)]
struct Output {
    text: String,
    reported_bytes: usize,
    reported_chunks: usize,
}

impl Output {
    /// Adds output, and returns the text to report, if any.
    fn take(&mut self, output: &str) -> Option<String> {
        self.text.push_str(output);
        let mut excess = self.text.len().saturating_sub(REPORTED_BYTES_MAX);
        while !self.text.is_char_boundary(excess) {
            excess += 1;
        }
        self.text.drain(..excess);
        if !self.can_report() {
            return None;
        }
        self.reported_bytes += output.len();
        self.reported_chunks += 1;
        Some(match self.can_report() {
            true => output.to_owned(),
            false => format!("{output}\n… further output is hidden; its end follows.\n"),
        })
    }

    fn can_report(&self) -> bool {
        self.reported_bytes < REPORTED_BYTES_MAX && self.reported_chunks < REPORTED_CHUNKS_MAX
    }
}

impl Installs {
    /// Starts an installation. If it is already running, its output so far is returned.
    pub(crate) fn begin(
        &self,
        cli_type: &str,
        plan: Plan,
        keepers: Keepers,
        env: Vec<(OsString, OsString)>,
        report: impl Fn(InstallProgress) + Send + Sync + 'static,
    ) -> Result<String, InstallRefused> {
        let mut jobs = self.lock();
        if let Some(job) = jobs.get(cli_type) {
            return Ok(lock(&job.output).text.clone());
        }
        if jobs.len() >= JOBS_MAX {
            return Err(InstallRefused::TooMany);
        }
        let (stop, stopping) = watch::channel(false);
        let output = Arc::default();
        let job = Job {
            stop,
            output: Arc::clone(&output),
        };
        jobs.insert(cli_type.to_owned(), job);
        drop(jobs);
        let (installs, cli_type) = (self.clone(), cli_type.to_owned());
        tokio::spawn(async move {
            let run = Run {
                keepers,
                env,
                output,
                stopping,
                report: &report,
            };
            let ended = run.carry_out(plan).await;
            installs.lock().remove(&cli_type);
            report(InstallProgress::Ended(ended));
        });
        Ok(String::new())
    }

    pub(crate) fn is_running(&self, cli_type: &str) -> bool {
        self.lock().contains_key(cli_type)
    }

    /// Cancels an installation, if it is running. Its end is reported as `InstallProgress::Ended`.
    pub(crate) fn cancel(&self, cli_type: &str) {
        if let Some(job) = self.lock().get(cli_type) {
            job.stop.send_replace(true);
        }
    }

    pub(crate) fn cancel_all(&self) {
        for job in self.lock().values() {
            job.stop.send_replace(true);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Job>> {
        lock(&self.jobs)
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Run<'a> {
    keepers: Keepers,
    env: Vec<(OsString, OsString)>,
    output: Arc<Mutex<Output>>,
    stopping: watch::Receiver<bool>,
    report: &'a (dyn Fn(InstallProgress) + Send + Sync),
}

impl Run<'_> {
    async fn carry_out(&self, plan: Plan) -> InstallOutcome {
        let was_here = plan.folder.exists() && !plan.folder.join(".unfinished").exists();
        if let Err(error) = agent_store::begin(&plan.folder) {
            let folder = plan.folder.display();
            return InstallOutcome::Failed(format!("{folder} cannot be written: {error}."));
        }
        let ended = self.steps(&plan).await;
        // A failed update is left as the installer has rolled it back; a failed first installation is removed.
        let tidied = match (&ended, was_here) {
            (InstallOutcome::Installed, _) | (_, true) => agent_store::finish(&plan.folder),
            (_, false) => std::fs::remove_dir_all(&plan.folder),
        };
        if let Err(error) = tidied {
            tracing::warn!(%error, folder = %plan.folder.display(), "could not clean up after an installation");
        }
        let output = lock(&self.output);
        if !output.can_report() {
            let from = output.text.len().saturating_sub(CHUNK_BYTES);
            let end = output.text.get(from..).unwrap_or_default().to_owned();
            drop(output);
            (self.report)(InstallProgress::Output(end));
        }
        ended
    }

    async fn steps(&self, plan: &Plan) -> InstallOutcome {
        let unpacked = agent_store::unpacked(&plan.folder);
        if let Source::Binary(_) = &plan.source {
            let _ = std::fs::remove_dir_all(&unpacked);
            if let Err(error) = std::fs::create_dir_all(&unpacked) {
                return InstallOutcome::Failed(format!(
                    "{} cannot be written: {error}.",
                    unpacked.display()
                ));
            }
        }
        for (number, step) in plan.steps.iter().enumerate() {
            let ended = self.step(step, &plan.folder).await;
            if ended != InstallOutcome::Installed {
                return ended;
            }
            let Source::Binary(binary) = &plan.source else {
                continue;
            };
            let last = number + 1 == plan.steps.len();
            if let Err(reason) = after_step(binary, &plan.folder, number == 0, last).await {
                return InstallOutcome::Failed(format!("The agent was not installed: {reason}."));
            }
        }
        InstallOutcome::Installed
    }

    async fn step(&self, step: &Step, folder: &Path) -> InstallOutcome {
        let (keeper, first) = self.keepers.command();
        let spawned = Command::new(keeper)
            .args(first)
            .arg(&step.program)
            .args(&step.args)
            .env_clear()
            .envs(
                self.env
                    .iter()
                    .chain(&step.env)
                    .map(|(name, value)| (name, value)),
            )
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn();
        let mut keeper = match spawned {
            Ok(child) => self.keepers.take(child),
            Err(error) => {
                return InstallOutcome::Failed(format!(
                    "The installer could not be started: {error}."
                ));
            }
        };
        let (stdout, stderr) = (keeper.stdout.take(), keeper.stderr.take());
        let mut stopping = self.stopping.clone();
        let all = async {
            let passing_on = async { tokio::join!(self.pass_on(stdout), self.pass_on(stderr)) };
            tokio::pin!(passing_on);
            let status = tokio::select! {
                _ = &mut passing_on => return keeper.wait().await,
                status = keeper.wait() => status,
            };
            // An unrelated process may still hold the pipes.
            let _ = tokio::time::timeout(LAST_OUTPUT_DEADLINE, passing_on).await;
            status
        };
        tokio::pin!(all);
        let status = tokio::select! {
            status = &mut all => status,
            () = async { drop(stopping.wait_for(|stop| *stop).await) } => {
                keeper.end();
                let _ = all.await;
                return InstallOutcome::Cancelled;
            }
        };
        match status.and_then(|status| status.code()) {
            Some(0) => InstallOutcome::Installed,
            code => {
                let program = step
                    .program
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy();
                let how = code.map_or("ended".to_owned(), |code| format!("ended with code {code}"));
                let hint = hint(&lock(&self.output).text);
                InstallOutcome::Failed(format!("{program} {how}. {hint}"))
            }
        }
    }

    async fn pass_on(&self, stream: Option<impl AsyncRead + Unpin>) {
        let Some(mut stream) = stream else { return };
        let mut buffer = vec![0; CHUNK_BYTES];
        while let Ok(count @ 1..) = stream.read(&mut buffer).await {
            let output = String::from_utf8_lossy(&buffer[..count]).replace('\r', "\n");
            let shown: String = output
                .chars()
                .filter(|c| *c == '\n' || !c.is_control())
                .collect();
            let reported = lock(&self.output).take(&shown);
            if let Some(text) = reported {
                (self.report)(InstallProgress::Output(text));
            }
        }
    }
}

async fn after_step(
    binary: &Binary,
    folder: &Path,
    fetched: bool,
    last: bool,
) -> Result<(), String> {
    let (binary, folder) = (binary.clone(), folder.to_owned());
    let checking = tokio::task::spawn_blocking(move || {
        let unpacked = agent_store::unpacked(&folder);
        let archive = archive_file(&folder);
        let is_archive = archive::unpacker(&binary.url).is_some();
        if fetched {
            let file = if is_archive {
                archive.clone()
            } else {
                unpacked.join(&binary.program)
            };
            archive::check(&file, binary.sha256.as_deref())?;
        }
        if last {
            archive::check_unpacked(&unpacked, &binary.program)?;
            let _ = std::fs::remove_file(archive);
        }
        Ok(())
    });
    checking
        .await
        .unwrap_or_else(|error| Err(error.to_string()))
}

/// Advice for the user after a failure, derived from the installer's output.
fn hint(output: &str) -> &'static str {
    let says = |signs: &[&str]| signs.iter().any(|sign| output.contains(sign));
    match () {
        () if says(&[
            "ENOTFOUND",
            "EAI_AGAIN",
            "ECONNREFUSED",
            "ETIMEDOUT",
            "Could not resolve host",
            "dns error",
        ]) =>
        {
            "The network cannot be reached. Check the connection (or the proxy), then try again."
        }
        () if says(&["CERT"]) => {
            "A certificate was not trusted; a proxy may be in between. Give npm its certificate (NODE_EXTRA_CA_CERTS), then try again."
        }
        () if says(&["ENOSPC", "No space left"]) => {
            "The disk is full. Free some space, then try again."
        }
        () if says(&["EACCES", "EPERM", "Permission denied"]) => {
            "A path is not writable. Find it in the output, make it writable, then try again."
        }
        () if says(&["E404", "ETARGET", "404"]) => {
            "That version does not exist (any more). Refresh the list of agents, then try again."
        }
        () if says(&["Python>="]) => {
            "The agent needs a newer Python. Install one with `uv python install`, then try again."
        }
        () if says(&["EBADENGINE"]) => {
            "The installed Node is too old for the agent. Install a newer one (https://nodejs.org), then try again."
        }
        () => "See the output for the reason. Try again, or run the command in a terminal.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endless_output_is_reported_up_to_a_limit_and_its_end_is_kept() {
        let mut output = Output::default();
        let reported: usize = (0..5000)
            .filter_map(|n| output.take(&format!("line {n}\n")))
            .count();
        assert_eq!(reported, REPORTED_CHUNKS_MAX);
        let long = "x".repeat(CHUNK_BYTES);
        let mut output = Output::default();
        let reported: usize = (0..100)
            .filter_map(|_| output.take(&long))
            .map(|text| text.len())
            .sum();
        assert!(
            reported < REPORTED_BYTES_MAX + 2 * CHUNK_BYTES,
            "{reported}"
        );
        output.take("the end");
        assert!(output.text.len() <= REPORTED_BYTES_MAX && output.text.ends_with("the end"));
    }
}
