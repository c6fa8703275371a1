//! The programs under test: `liminal` and the scripted agent, built when they are missing or out of date.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::SystemTime;

use anyhow::{Context, Result};

/// The path of the `liminal` binary of this build.
pub fn liminal() -> Result<String> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let path = program(&BUILT, "liminal", "liminal")?;
    path.into_os_string()
        .into_string()
        .map_err(|path| anyhow::anyhow!("{path:?} is not UTF-8"))
}

/// The path of `scripted-agent` of this build.
pub fn scripted_agent() -> Result<PathBuf> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    program(&BUILT, "testkit", "scripted-agent")
}

fn program(
    built: &OnceLock<Result<PathBuf, String>>,
    package: &str,
    name: &str,
) -> Result<PathBuf> {
    let found =
        built.get_or_init(|| up_to_date(package, name).map_err(|error| format!("{error:#}")));
    found.clone().map_err(anyhow::Error::msg)
}

/// Finds the program beside the test that runs, and builds it unless it is newer than all its sources.
fn up_to_date(package: &str, name: &str) -> Result<PathBuf> {
    let test = std::env::current_exe()?;
    // target/debug/deps/test → target/debug/name
    let folder = test.ancestors().nth(2).context("a folder of the build")?;
    let path = folder.join(name);
    if is_current(&path) {
        return Ok(path);
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet", "--package", package, "--bin", name]);
    if folder.ends_with("release") {
        build.arg("--release");
    }
    let output = build.current_dir(env!("CARGO_MANIFEST_DIR")).output()?;
    anyhow::ensure!(
        output.status.success(),
        "could not build {name}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(path)
}

/// Whether no source in cargo's list beside the program (`name.d`) is newer than the program.
fn is_current(program: &Path) -> bool {
    let modified = |path: &Path| path.metadata().and_then(|file| file.modified());
    let Ok(built) = modified(program) else {
        return false;
    };
    let list = std::fs::read_to_string(program.with_extension("d")).unwrap_or_default();
    let Some((_, sources)) = list.split_once(": ") else {
        return false;
    };
    let older = |source: &str| {
        let changed = modified(Path::new(source)).unwrap_or_else(|_| SystemTime::now());
        changed <= built
    };
    // Spaces inside a path are escaped.
    let sources = sources.replace("\\ ", "\u{0}");
    let mut sources = sources.split_whitespace();
    sources.all(|source| older(&source.replace('\u{0}', " ")))
}
