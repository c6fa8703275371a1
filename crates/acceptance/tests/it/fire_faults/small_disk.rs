//! A file system of 512 KiB for one server, in its own mount namespace, so that it can be full or read-only. Works
//! without root wherever unprivileged user namespaces are allowed.

use std::ffi::OsString;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use testkit::{Server, ServerSetup};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};

pub(crate) struct SmallDisk {
    /// Process that keeps the namespace alive, so that the disk outlives the servers on it.
    holder: Child,
    place: PathBuf,
}

impl SmallDisk {
    /// Mounts the disk at the data directory; `None` if this machine does not permit it.
    pub(crate) async fn under(setup: &ServerSetup) -> Result<Option<Self>> {
        let place = setup.data_dir();
        std::fs::create_dir_all(&place)?;
        let mount =
            "mount -t tmpfs -o size=512k,mode=700 none \"$1\" && echo mounted && exec sleep 3600";
        let mut holder = Command::new("unshare")
            .args([
                "--user",
                "--map-root-user",
                "--mount",
                "sh",
                "-c",
                mount,
                "sh",
            ])
            .arg(&place)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let mut said = [0; 7];
        let mut stdout = holder.stdout.take().context("expected a pipe")?;
        let mounted = stdout.read_exact(&mut said).await.is_ok();
        Ok(mounted.then_some(Self { holder, place }))
    }

    fn inside(&self) -> Result<Vec<OsString>> {
        let holder = self.holder.id().context("expected a process")?.to_string();
        let words = [
            "nsenter",
            "--target",
            &holder,
            "--user",
            "--mount",
            "--preserve-credentials",
        ];
        Ok(words.map(Into::into).into())
    }

    pub(crate) async fn start(&self, setup: &ServerSetup) -> Result<Server> {
        setup.start_by(&self.inside()?).await
    }

    /// Path of a file on the disk, as seen from outside the namespace.
    pub(crate) fn path(&self, name: &str) -> Result<PathBuf> {
        let holder = self.holder.id().context("expected a process")?;
        let root = PathBuf::from(format!("/proc/{holder}/root"));
        Ok(root.join(self.place.strip_prefix("/")?).join(name))
    }

    /// Fills the disk to the last byte.
    pub(crate) fn fill(&self) -> Result<()> {
        let path = self.path("filler")?;
        for size in [65536, 4096, 1] {
            // Reopened for each size, because a failed write may leave the file handle unusable.
            let mut filler = append(&path)?;
            loop {
                match filler.write_all(&vec![b'x'; size]) {
                    Err(error) if error.kind() == ErrorKind::StorageFull => break,
                    written => written?,
                }
            }
        }
        Ok(())
    }

    pub(crate) fn free(&self) -> Result<()> {
        Ok(std::fs::remove_file(self.path("filler")?)?)
    }

    /// Makes the disk read-only for new file handles by a bind mount. Existing handles stay writable: a file
    /// system with open writers cannot be remounted read-only.
    pub(crate) async fn read_only(&self) -> Result<()> {
        self.sh("mount --bind \"$1\" \"$1\" && mount -o remount,bind,ro \"$1\"")
            .await
    }

    pub(crate) async fn writable(&self) -> Result<()> {
        self.sh("mount -o remount,bind,rw \"$1\"").await
    }

    async fn sh(&self, script: &str) -> Result<()> {
        let inside = self.inside()?;
        let mut command = Command::new(&inside[0]);
        command.args(&inside[1..]).args(["sh", "-c", script, "sh"]);
        let done = command.arg(&self.place).status().await?;
        ensure!(done.success(), "failed: {script}");
        Ok(())
    }
}

fn append(path: &Path) -> Result<std::fs::File> {
    let mut options = std::fs::OpenOptions::new();
    Ok(options.create(true).append(true).open(path)?)
}
