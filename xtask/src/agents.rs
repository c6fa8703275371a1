//! Installs the real agents from the npm registry for `cargo xtask test agents`.
//!
//! They are installed once per lock file, outside the source tree. Where they cannot be installed, the tests are
//! skipped with the reason; an invalid lock file is a failure.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;

use crate::steps::{command, run_quietly};
use crate::{root, tools};

/// The folder of `package.json` and its lock file.
const PINNED: &str = "e2e/agents";
/// The oldest Node that every adapter accepts.
const NODE_AT_LEAST: u32 = 22;

pub(crate) enum Agents {
    /// The folder with their `node_modules`.
    Installed(PathBuf),
    /// The reason, in one sentence.
    Unavailable(String),
}

/// Installs the agents unless they are installed already.
pub(crate) fn install() -> anyhow::Result<Agents> {
    let pinned = root().join(PINNED);
    let lock = std::fs::read(pinned.join("package-lock.json"))?;
    let folder = cache()?.join(format!("agents-{:016x}", hash(&lock)));
    if !folder.exists() {
        if !tools::is_installed("npm") {
            return Ok(Agents::Unavailable("npm was not found".to_owned()));
        }
        let quick = ["--fetch-retries=1", "--fetch-timeout=20000"];
        let asked = command(&["npm", "view", "@agentclientprotocol/codex-acp", "version"])
            .args(quick)
            .current_dir(root())
            .output()?;
        if !asked.status.success() {
            let said = String::from_utf8_lossy(&asked.stderr);
            let why = said.lines().find(|line| line.contains("error"));
            let why = why.unwrap_or("it gave no reason").trim();
            return Ok(Agents::Unavailable(format!(
                "the npm registry did not answer ({why})"
            )));
        }
        fill(&pinned, &folder)?;
    }
    Ok(match node_version(&folder) {
        Some(version) if version >= NODE_AT_LEAST => Agents::Installed(folder),
        _ => Agents::Unavailable(format!(
            "Node {NODE_AT_LEAST} or newer is needed, and npm brought none for this system"
        )),
    })
}

/// Installs into a temporary folder and renames it, so that the final folder is always complete.
fn fill(pinned: &Path, folder: &Path) -> anyhow::Result<()> {
    let staging = folder.with_extension(format!("new-{}", std::process::id()));
    std::fs::create_dir_all(&staging)?;
    for name in ["package.json", "package-lock.json"] {
        std::fs::copy(pinned.join(name), staging.join(name))?;
    }
    let install = ["npm", "ci", "--no-audit", "--no-fund", "--prefix"];
    let installed = run_quietly(command(&install).arg(&staging));
    if let Err(error) = installed {
        std::fs::remove_dir_all(&staging)?;
        return Err(error);
    }
    // Another run may have installed them in the meantime.
    if std::fs::rename(&staging, folder).is_err() {
        std::fs::remove_dir_all(&staging)?;
    }
    Ok(())
}

/// The major version of the Node installed with the agents.
fn node_version(folder: &Path) -> Option<u32> {
    let said = Command::new(folder.join("node_modules/node/bin/node"))
        .arg("--version")
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let said = String::from_utf8(said.stdout).ok()?;
    said.trim()
        .strip_prefix('v')?
        .split('.')
        .next()?
        .parse()
        .ok()
}

fn cache() -> anyhow::Result<PathBuf> {
    let named = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let own = || std::env::home_dir().map(|home| home.join(".cache"));
    let folder = named.filter(|path| path.is_absolute()).or_else(own);
    let folder = folder
        .context("cannot install the agents: no home directory (set HOME or XDG_CACHE_HOME)")?;
    Ok(folder.join("liminal-builder-tests"))
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}
