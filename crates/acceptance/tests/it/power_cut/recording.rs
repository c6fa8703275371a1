//! Records a real server with strace: its file changes, and its messages to clients in between.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use testkit::{HANG_GUARD, Server, ServerSetup};

use crate::power_cut::calls::{self, Call, TRACED, Watched};
use crate::power_cut::disk::Disk;
use crate::power_cut::messages::{Connections, Message};

/// Maximum bytes of a string that strace prints, larger than any single write.
const BYTES_MAX: &str = "1000000000";

/// Why strace cannot be used here, or `None` if it can.
pub(crate) fn missing() -> Option<&'static str> {
    let tried = Command::new("strace")
        .args(["-qq", "-o", "/dev/null", "true"])
        .output();
    match tried {
        Ok(output) if output.status.success() => None,
        Ok(_) => Some("strace is not permitted to trace"),
        Err(_) => Some("strace is not installed"),
    }
}

/// The recording of one or more consecutive servers in one data directory.
pub(crate) struct Recording {
    data_dir: PathBuf,
    pub(crate) disk: Disk,
    /// Messages, each with the number of disk steps before it.
    pub(crate) messages: Vec<(usize, Message)>,
}

/// A server under strace.
pub(crate) struct Traced {
    pub(crate) server: Server,
    log: PathBuf,
    id: u32,
}

impl Recording {
    /// Begins a recording; the data directory as it is now counts as durable.
    pub(crate) fn begin(setup: &ServerSetup) -> Result<Self> {
        let home = setup.home().canonicalize()?;
        let data_dir = home.join(setup.data_dir().file_name().context("expected a name")?);
        Ok(Self {
            disk: Disk::scan(&data_dir)?,
            data_dir,
            messages: vec![],
        })
    }

    /// Starts a server under strace from its first call.
    pub(crate) async fn start(&self, setup: &ServerSetup) -> Result<Traced> {
        let log = setup.home().join("strace.log");
        let calls: Vec<String> = TRACED.iter().map(|call| format!("?{call}")).collect();
        // Detached (-D), so that the server stays a direct child of the test.
        let mut by: Vec<OsString> = [
            "strace", "-D", "-f", "-q", "-yy", "-xx", "-ttt", "-s", BYTES_MAX,
        ]
        .map(Into::into)
        .into();
        by.extend(["-o".into(), log.clone().into()]);
        by.extend(["-e".into(), format!("trace={}", calls.join(",")).into()]);
        let server = setup.start_by(&by).await?;
        let id = server.id();
        Ok(Traced { server, log, id })
    }

    /// Ends the server with a signal and adds its calls to the recording.
    pub(crate) async fn end(&mut self, traced: Traced, signal: &str) -> Result<()> {
        let Traced { server, log, id } = traced;
        server.signal(signal).await?;
        let mut watched = Watched::open(&log, id)?;
        let ended = async {
            while !watched.has_ended()? {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            anyhow::Ok(())
        };
        let ended = tokio::time::timeout(HANG_GUARD, ended).await;
        ended.context("the log does not report the exit of the server")??;
        let calls = calls::read(&log, id)?;
        std::fs::remove_file(&log)?;
        self.add(&calls)
    }

    fn add(&mut self, calls: &[Call]) -> Result<()> {
        /// The two log lines of a call.
        enum At {
            Begin,
            End,
        }
        let mut order: Vec<(usize, At, &Call)> = vec![];
        for call in calls {
            order.push((call.begin, At::Begin, call));
            order.push((call.end, At::End, call));
        }
        // Both may be the same line; the stable sort keeps the beginning first.
        order.sort_by_key(|(line, _, _)| *line);
        let mut connections = Connections::default();
        let mut syncs: Vec<(*const Call, usize)> = vec![];
        for (line, at, call) in order {
            let said = || format!("line {line}: {call:.300?}");
            match at {
                At::Begin if call.is_sync() => {
                    syncs.push((std::ptr::from_ref(call), self.disk.operations.len()));
                }
                At::Begin => {
                    let shown = self.sent(call, &mut connections).with_context(said)?;
                    self.messages.extend(shown);
                }
                At::End if call.is_sync() => {
                    let is_it = |(of, _): &(*const Call, usize)| std::ptr::eq(*of, call);
                    let begun = syncs
                        .iter()
                        .position(is_it)
                        .context("the sync never began")?;
                    let (_, before) = syncs.swap_remove(begun);
                    if call.returned().is_some() {
                        self.synced(call, before).with_context(said)?;
                    }
                }
                At::End => {
                    if call.returned().is_some() {
                        self.done(call, &mut connections).with_context(said)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Messages to clients; they count as shown as soon as the call begins.
    fn sent(&self, call: &Call, connections: &mut Connections) -> Result<Vec<(usize, Message)>> {
        let sends = ["sendto", "sendmsg", "write", "writev"].contains(&call.name.as_str());
        let (Some(descriptor), Some(count), true) = (call.descriptor(), call.returned(), sends)
        else {
            return Ok(vec![]);
        };
        let steps = self.disk.steps.len();
        if descriptor.starts_with("TCP") {
            let bytes = call.bytes();
            let bytes = &bytes[..bytes.len().min(count as usize)];
            let shown = connections.moved(descriptor, bytes, true)?;
            return Ok(shown.into_iter().map(|shown| (steps, shown)).collect());
        }
        if descriptor.starts_with("pipe:") {
            let bytes = call.bytes();
            if bytes.starts_with(b"Liminal Builder is ready: ") {
                let line = String::from_utf8_lossy(&bytes).into_owned();
                return Ok(vec![(steps, Message::Ready(line))]);
            }
        }
        Ok(vec![])
    }

    fn synced(&mut self, call: &Call, before: usize) -> Result<()> {
        let Some(place) = call.place() else {
            return Ok(());
        };
        let top = self.data_dir.parent() == Some(&place.path);
        match top || self.disk.has(&place.path) {
            true => self.disk.synced(&place, before),
            false => Ok(()),
        }
    }

    fn done(&mut self, call: &Call, connections: &mut Connections) -> Result<()> {
        let time = call.time;
        match call.name.as_str() {
            "recvfrom" | "recvmsg" => {
                let descriptor = call.descriptor().unwrap_or_default();
                if descriptor.starts_with("TCP") {
                    let asked = connections.moved(descriptor, &call.bytes(), false)?;
                    let steps = self.disk.steps.len();
                    self.messages
                        .extend(asked.into_iter().map(|asked| (steps, asked)));
                }
                Ok(())
            }
            "open" | "openat" | "creat" => match call.opened() {
                Some(path) if self.disk.has(&path) => self.disk.opened(&path, call.flags(), time),
                _ => Ok(()),
            },
            "mkdir" | "mkdirat" | "rename" | "renameat" | "renameat2" | "link" | "linkat"
            | "unlink" | "unlinkat" | "rmdir" => self.named(call),
            "symlink" | "symlinkat" | "truncate" | "openat2" => {
                match call.paths()?.iter().any(|path| self.disk.has(path)) {
                    true => bail!("not modelled: {}", call.name),
                    false => Ok(()),
                }
            }
            "sendto" | "sendmsg" | "sync" => Ok(()),
            name => {
                let Some(place) = call.place().filter(|place| self.disk.has(&place.path)) else {
                    return Ok(());
                };
                match name {
                    "write" | "writev" => self.wrote(call, None),
                    "pwrite64" => self.wrote(call, Some(call.last_number()?)),
                    "ftruncate" => self.disk.shortened(&place, call.last_number()?, time),
                    "lseek" => {
                        let offset = call.returned().context("expected an offset")?;
                        self.disk.moved_to(&place, offset)
                    }
                    name => bail!("not modelled: {name}"),
                }
            }
        }
    }

    fn wrote(&mut self, call: &Call, at: Option<u64>) -> Result<()> {
        let place = call.place().context("expected a file")?;
        let bytes = call.bytes();
        let count = call.returned().context("expected a count")? as usize;
        self.disk.wrote(&place, at, &bytes[..count], call.time)
    }

    fn named(&mut self, call: &Call) -> Result<()> {
        let time = call.time;
        let paths = call.paths()?;
        let ours = |path: &Path| self.disk.has(path);
        match (call.name.as_str(), paths.as_slice()) {
            (_, paths) if !paths.iter().any(|path| ours(path)) => Ok(()),
            ("mkdir" | "mkdirat", [path]) => self.disk.made_folder(path, time),
            ("unlink" | "unlinkat" | "rmdir", [path]) => self.disk.unlinked(path, time),
            ("link" | "linkat", [from, to]) => self.disk.linked(from, to, time),
            (_, [from, to]) if ours(from) && ours(to) => self.disk.renamed(from, to, time),
            (name, paths) => bail!("not modelled: {name} {paths:?}"),
        }
    }
}

impl Call {
    fn is_sync(&self) -> bool {
        ["fsync", "fdatasync", "syncfs"].contains(&self.name.as_str())
    }
}
