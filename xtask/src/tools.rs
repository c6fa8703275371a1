//! What the checks need beyond Rust: Node, the npm packages of `package.json`, a Chromium.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::bail;

use crate::root;
use crate::steps::{command, run};

/// Installs the npm packages if they are not those of the lock file.
pub(crate) fn npm_packages() -> anyhow::Result<()> {
    if !answers("npm") {
        bail!("npm was not found. Install Node.js 20 or newer and run this again.");
    }
    let stamp = root().join("node_modules/.lock-installed");
    let lock = std::fs::read(root().join("package-lock.json"))?;
    if std::fs::read(&stamp).is_ok_and(|installed| installed == lock) {
        return Ok(());
    }
    run(command(&["npm", "ci", "--no-audit", "--no-fund"])
        .env("PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD", "1"))?;
    Ok(std::fs::write(stamp, lock)?)
}

/// A tool of the npm packages, to be run with Node.
pub(crate) fn npm_tool(name: &str) -> Command {
    Command::new(root().join("node_modules/.bin").join(name))
}

/// The path of a Chromium, installed first where that is ours to do.
pub(crate) fn chromium() -> anyhow::Result<PathBuf> {
    if let Some(found) = find_chromium() {
        return Ok(found);
    }
    if is_root() && answers("apt-get") {
        let quiet = |words: &[&str]| run(command(words).env("DEBIAN_FRONTEND", "noninteractive"));
        quiet(&["apt-get", "update", "-qq"])?;
        quiet(&[
            "apt-get",
            "install",
            "-y",
            "-qq",
            "chromium",
            "fonts-liberation",
        ])?;
    }
    match find_chromium() {
        Some(found) => Ok(found),
        None => bail!(
            "no Chromium was found for the browser tests. Install Chromium or Chrome \
             (Debian: `apt-get install chromium`, macOS: `brew install --cask chromium`), \
             or name one in the variable CHROMIUM."
        ),
    }
}

fn find_chromium() -> Option<PathBuf> {
    if let Some(chosen) = std::env::var_os("CHROMIUM") {
        return Some(chosen.into());
    }
    let names = [
        "chromium",
        "chromium-browser",
        "google-chrome",
        "google-chrome-stable",
    ];
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path =
        std::env::split_paths(&path).flat_map(|folder| names.map(|name| folder.join(name)));
    let applications = ["Chromium", "Google Chrome"]
        .map(|name| PathBuf::from(format!("/Applications/{name}.app/Contents/MacOS/{name}")));
    on_path.chain(applications).find(|path| path.is_file())
}

pub(crate) fn answers(program: &str) -> bool {
    let quiet = Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    quiet.is_ok_and(|status| status.success())
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}
