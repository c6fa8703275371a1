//! Programs the tests need beyond Rust: npm packages, Chromium, strace, valgrind, libfaketime.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::bail;

use crate::root;
use crate::steps::{command, run_quietly};

/// Installs the npm packages unless those of the lock file are installed.
pub(crate) fn npm_packages() -> anyhow::Result<()> {
    if !is_installed("npm") {
        bail!("npm was not found. Install Node.js 20 or newer and run this again.");
    }
    let stamp = root().join("node_modules/.lock-installed");
    let lock = std::fs::read(root().join("package-lock.json"))?;
    if std::fs::read(&stamp).is_ok_and(|installed| installed == lock) {
        return Ok(());
    }
    run_quietly(
        command(&["npm", "ci", "--no-audit", "--no-fund"])
            .env("PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD", "1"),
    )?;
    Ok(std::fs::write(stamp, lock)?)
}

/// A command of an npm package.
pub(crate) fn npm_tool(name: &str) -> Command {
    Command::new(root().join("node_modules/.bin").join(name))
}

/// The path of Chromium, installing it first as root on Debian.
pub(crate) fn chromium() -> anyhow::Result<PathBuf> {
    if let Some(found) = find_chromium() {
        return Ok(found);
    }
    debian(&["chromium", "fonts-liberation"])?;
    match find_chromium() {
        Some(found) => Ok(found),
        None => bail!(
            "no Chromium was found for the browser tests. Install Chromium or Chrome \
             (Debian: `apt-get install chromium`, macOS: `brew install --cask chromium`), \
             or name one in the variable CHROMIUM."
        ),
    }
}

/// Installs the tools of the fault tests and the instruction guards. Without them, those tests report that they did not
/// run.
pub(crate) fn fault_test_tools() -> anyhow::Result<()> {
    let clock = std::fs::read_dir("/usr/lib").is_ok_and(|mut folders| {
        folders.any(|folder| folder.is_ok_and(|folder| folder.path().join("faketime").is_dir()))
    });
    let there = is_installed("strace") && is_installed("valgrind") && clock;
    match there {
        true => Ok(()),
        false => debian(&["libfaketime", "strace", "valgrind"]),
    }
}

/// Installs packages as root on Debian; does nothing elsewhere.
fn debian(packages: &[&str]) -> anyhow::Result<()> {
    if !is_root() || !is_installed("apt-get") {
        return Ok(());
    }
    let quiet = |words: &[&str]| {
        let mut apt = command(&["apt-get", "-qq"]);
        run_quietly(apt.args(words).env("DEBIAN_FRONTEND", "noninteractive"))
    };
    quiet(&["update"])?;
    quiet(&[&["install", "-y"], packages].concat())?;
    Ok(())
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

pub(crate) fn is_installed(program: &str) -> bool {
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
