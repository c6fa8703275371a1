//! Location of the scripted agent.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// Returns the path of `scripted-agent`; builds the binary if it was not built along with the tests.
pub fn scripted_agent() -> anyhow::Result<PathBuf> {
    static BUILT: OnceLock<Option<String>> = OnceLock::new();
    let here = std::env::current_exe()?;
    // target/debug/deps/test → target/debug/scripted-agent
    let folder = here.ancestors().nth(2).unwrap_or(&here);
    let path = folder.join("scripted-agent");
    let failed = BUILT.get_or_init(|| {
        if path.exists() {
            return None;
        }
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = Command::new(cargo);
        build.args([
            "build",
            "--quiet",
            "--package",
            "testkit",
            "--bin",
            "scripted-agent",
        ]);
        if folder.ends_with("release") {
            build.arg("--release");
        }
        match build.current_dir(env!("CARGO_MANIFEST_DIR")).output() {
            Ok(output) if output.status.success() => None,
            Ok(output) => Some(String::from_utf8_lossy(&output.stderr).into_owned()),
            Err(error) => Some(error.to_string()),
        }
    });
    match failed {
        None => Ok(path),
        Some(error) => anyhow::bail!("could not build the scripted agent: {error}"),
    }
}
