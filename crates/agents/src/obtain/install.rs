//! Bringing an agent here: what is planned is run, with its output told as it comes.
//!
//! The keeper is between us and every program that is run, so that nothing of an installation that is cancelled, or
//! whose server ends, stays behind.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::sync::watch;

use super::archive;
use super::listing::{Binary, Way};
use super::place;
use super::plan::{Plan, Step, archive_file};
use crate::keeper::Keepers;

/// Installations at the same time.
const JOBS_MAX: usize = 3;
/// Output that is told of one; what follows is kept, and its end told when it is over.
const TOLD_BYTES_MAX: usize = 64 * 1024;
const TOLD_TIMES_MAX: usize = 1000;
const CHUNK_BYTES: usize = 4096;
/// How long output may still arrive once the installer has ended.
const LAST_OUTPUT_DEADLINE: Duration = Duration::from_secs(1);

/// What happens while an agent is brought here.
#[derive(Debug, Clone)]
pub enum News {
    Output(String),
    Ended(Ended),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    Installed,
    Cancelled,
    /// Why, and what to do.
    Failed(String),
}

/// Why nothing was begun.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotInstalled {
    #[error("{0}")]
    Impossible(String),
    #[error("Three agents are being installed already. Wait until one of them is done.")]
    TooMany,
}

/// The installations under way.
#[derive(Clone, Default)]
pub struct Installs {
    jobs: Arc<Mutex<HashMap<String, Job>>>,
}

struct Job {
    stop: watch::Sender<bool>,
    output: Arc<Mutex<Output>>,
}

/// What it has said: the end of it, and how much of it was told.
#[derive(Default)]
struct Output {
    text: String,
    told_bytes: usize,
    told_times: usize,
}

impl Output {
    /// What is to be told of this.
    fn take(&mut self, said: &str) -> Option<String> {
        self.text.push_str(said);
        let mut excess = self.text.len().saturating_sub(TOLD_BYTES_MAX);
        while !self.text.is_char_boundary(excess) {
            excess += 1;
        }
        self.text.drain(..excess);
        if !self.tells() {
            return None;
        }
        self.told_bytes += said.len();
        self.told_times += 1;
        Some(match self.tells() {
            true => said.to_owned(),
            false => format!("{said}\n… it says more, of which you will see the end.\n"),
        })
    }

    fn tells(&self) -> bool {
        self.told_bytes < TOLD_BYTES_MAX && self.told_times < TOLD_TIMES_MAX
    }
}

impl Installs {
    /// Begins, unless that one is under way already, in which case what it has said so far is returned.
    pub fn begin(
        &self,
        cli_type: &str,
        plan: Plan,
        keepers: Keepers,
        env: Vec<(OsString, OsString)>,
        tell: impl Fn(News) + Send + Sync + 'static,
    ) -> Result<String, NotInstalled> {
        let mut jobs = self.lock();
        if let Some(job) = jobs.get(cli_type) {
            return Ok(lock(&job.output).text.clone());
        }
        if jobs.len() >= JOBS_MAX {
            return Err(NotInstalled::TooMany);
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
                tell: &tell,
            };
            let ended = run.carry_out(plan).await;
            installs.lock().remove(&cli_type);
            tell(News::Ended(ended));
        });
        Ok(String::new())
    }

    pub fn is_running(&self, cli_type: &str) -> bool {
        self.lock().contains_key(cli_type)
    }

    /// Ends it, if it is under way; that it has ended is told as news.
    pub fn cancel(&self, cli_type: &str) {
        if let Some(job) = self.lock().get(cli_type) {
            job.stop.send_replace(true);
        }
    }

    pub fn cancel_all(&self) {
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
    tell: &'a (dyn Fn(News) + Send + Sync),
}

impl Run<'_> {
    async fn carry_out(&self, plan: Plan) -> Ended {
        let was_here = plan.folder.exists() && !plan.folder.join(".unfinished").exists();
        if let Err(error) = place::begin(&plan.folder) {
            let folder = plan.folder.display();
            return Ended::Failed(format!("{folder} cannot be written: {error}."));
        }
        let ended = self.steps(&plan).await;
        // An update that failed leaves the installer's own undoing; half of a first one is thrown away.
        let tidied = match (&ended, was_here) {
            (Ended::Installed, _) | (_, true) => place::finish(&plan.folder),
            (_, false) => std::fs::remove_dir_all(&plan.folder),
        };
        if let Err(error) = tidied {
            tracing::warn!(%error, folder = %plan.folder.display(), "could not be tidied up");
        }
        let said = lock(&self.output);
        if !said.tells() {
            let from = said.text.len().saturating_sub(CHUNK_BYTES);
            let end = said.text.get(from..).unwrap_or_default().to_owned();
            drop(said);
            (self.tell)(News::Output(end));
        }
        ended
    }

    async fn steps(&self, plan: &Plan) -> Ended {
        let unpacked = place::unpacked(&plan.folder);
        if let Way::Binary(_) = &plan.way {
            let _ = std::fs::remove_dir_all(&unpacked);
            if let Err(error) = std::fs::create_dir_all(&unpacked) {
                return Ended::Failed(format!(
                    "{} cannot be written: {error}.",
                    unpacked.display()
                ));
            }
        }
        for (number, step) in plan.steps.iter().enumerate() {
            let ended = self.step(step, &plan.folder).await;
            if ended != Ended::Installed {
                return ended;
            }
            let Way::Binary(binary) = &plan.way else {
                continue;
            };
            let last = number + 1 == plan.steps.len();
            if let Err(reason) = after_step(binary, &plan.folder, number == 0, last).await {
                return Ended::Failed(format!("It was not installed: {reason}."));
            }
        }
        Ended::Installed
    }

    async fn step(&self, step: &Step, folder: &Path) -> Ended {
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
            Err(error) => return Ended::Failed(format!("It could not be begun: {error}.")),
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
            // A process that is none of the installer's may still hold the pipes.
            let _ = tokio::time::timeout(LAST_OUTPUT_DEADLINE, passing_on).await;
            status
        };
        tokio::pin!(all);
        let status = tokio::select! {
            status = &mut all => status,
            () = async { drop(stopping.wait_for(|stop| *stop).await) } => {
                keeper.end();
                let _ = all.await;
                return Ended::Cancelled;
            }
        };
        match status.and_then(|status| status.code()) {
            Some(0) => Ended::Installed,
            code => {
                let program = step
                    .program
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy();
                let how = code.map_or("ended".to_owned(), |code| format!("ended with code {code}"));
                let hint = hint(&lock(&self.output).text);
                Ended::Failed(format!("{program} {how}. {hint}"))
            }
        }
    }

    async fn pass_on(&self, stream: Option<impl AsyncRead + Unpin>) {
        let Some(mut stream) = stream else { return };
        let mut buffer = vec![0; CHUNK_BYTES];
        while let Ok(count @ 1..) = stream.read(&mut buffer).await {
            let said = String::from_utf8_lossy(&buffer[..count]).replace('\r', "\n");
            let shown: String = said
                .chars()
                .filter(|c| *c == '\n' || !c.is_control())
                .collect();
            let told = lock(&self.output).take(&shown);
            if let Some(text) = told {
                (self.tell)(News::Output(text));
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
        let unpacked = place::unpacked(&folder);
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
            archive::settle(&unpacked, &binary.program)?;
            let _ = std::fs::remove_file(archive);
        }
        Ok(())
    });
    checking
        .await
        .unwrap_or_else(|error| Err(error.to_string()))
}

/// What a person can do about it, from what the installer said.
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
        () if says(&["ENOSPC", "No space left"]) => "The disk is full. Make room, then try again.",
        () if says(&["EACCES", "EPERM", "Permission denied"]) => {
            "Something may not be written. Look for the path in the output, make it writable, then try again."
        }
        () if says(&["E404", "ETARGET", "404"]) => {
            "That version is not there (any more). Refresh the list of agents, then try again."
        }
        () if says(&["Python>="]) => {
            "It needs a newer Python. `uv python install` gets one; then try again."
        }
        () if says(&["EBADENGINE"]) => {
            "Your Node is too old for it. Install a newer one (https://nodejs.org), then try again."
        }
        () => "The output says why. Try again, or run the command in a terminal.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endless_output_is_told_up_to_a_bound_and_its_end_is_kept() {
        let mut output = Output::default();
        let told: usize = (0..5000)
            .filter_map(|n| output.take(&format!("line {n}\n")))
            .count();
        assert_eq!(told, TOLD_TIMES_MAX);
        let long = "x".repeat(CHUNK_BYTES);
        let mut output = Output::default();
        let told: usize = (0..100)
            .filter_map(|_| output.take(&long))
            .map(|text| text.len())
            .sum();
        assert!(told < TOLD_BYTES_MAX + 2 * CHUNK_BYTES, "{told}");
        output.take("the end");
        assert!(output.text.len() <= TOLD_BYTES_MAX && output.text.ends_with("the end"));
    }
}
