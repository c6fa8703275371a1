//! `cargo xtask audit`: checks the dependencies. `deny.toml` has the rules for crates, this module those for npm packages,
//! which are used by tests and benchmarks only and are no part of the program.

use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::root;
use crate::steps::{command, run as run_command};
use crate::tools;

/// Permitted licences of npm packages. Of several alternatives, one must be permitted.
const NPM_LICENCES: [&str; 4] = ["Apache-2.0", "BSD-3-Clause", "MIT", "MPL-2.0"];

pub(crate) fn run() -> anyhow::Result<()> {
    let lock = std::fs::read_to_string(root().join("package-lock.json"))?;
    check_npm(&serde_json::from_str(&lock)?)?;
    audit_npm()?;
    if tools::is_installed("cargo-deny") {
        return check_with("cargo-deny");
    }
    let tools = root().join("target/tools");
    let program = tools.join("bin/cargo-deny");
    if !program.exists() {
        run_command(
            command(&["cargo", "install", "--locked", "cargo-deny", "--root"]).arg(&tools),
        )?;
    }
    check_with(&program.to_string_lossy())
}

/// Every package has a checksum, a permitted licence and no install script.
fn check_npm(lock: &Value) -> anyhow::Result<()> {
    let packages = lock["packages"].as_object().context("packages")?;
    let others = packages.iter().filter(|(path, _)| !path.is_empty());
    for (path, package) in others.clone() {
        ensure!(package["integrity"].is_string(), "{path} has no checksum");
        ensure!(
            package["hasInstallScript"].is_null(),
            "{path} runs a script when it is installed"
        );
        let licence = package["license"].as_str().unwrap_or_default();
        let words = licence.trim_matches(['(', ')']);
        ensure!(
            words.split(" OR ").any(|one| NPM_LICENCES.contains(&one)),
            "{path} is licensed under `{licence}`"
        );
    }
    println!("audit: {} npm packages passed.", others.count());
    Ok(())
}

/// Fails on known vulnerabilities, if npm's advisories can be queried.
fn audit_npm() -> anyhow::Result<()> {
    let mut npm = Command::new("npm");
    npm.args(["audit", "--json"]).current_dir(root());
    let answer: Value = serde_json::from_slice(&npm.output()?.stdout).unwrap_or_default();
    match answer["metadata"]["vulnerabilities"]["total"].as_u64() {
        Some(count) => ensure!(
            count == 0,
            "npm knows of {count} vulnerabilities: `npm audit`"
        ),
        None => println!("audit: npm's advisories are not reachable from this machine."),
    }
    Ok(())
}

fn check_with(program: &str) -> anyhow::Result<()> {
    let check = |what: &[&str]| {
        run_command(
            Command::new(program)
                .args(["--all-features", "check"])
                .args(what),
        )
    };
    check(&["bans", "licenses", "sources"])?;
    // Not every machine can reach the advisory database.
    if Command::new(program)
        .args(["fetch", "db"])
        .current_dir(root())
        .status()?
        .success()
    {
        return check(&["advisories"]);
    }
    println!(
        "audit: the advisory database is not reachable from this machine; bans, licences and sources passed."
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn package_without_checksum_with_script_or_wrong_licence_is_rejected() {
        let lock = |package: Value| json!({"packages": {"": {}, "node_modules/odd": package}});
        let good = json!({"integrity": "sha512-x", "license": "(MPL-2.0 OR GPL-3.0)"});
        assert!(check_npm(&lock(good.clone())).is_ok());
        for (field, value) in [
            ("integrity", Value::Null),
            ("license", json!("GPL-3.0")),
            ("hasInstallScript", json!(true)),
        ] {
            let mut bad = good.clone();
            bad[field] = value;
            let refused = check_npm(&lock(bad)).unwrap_err().to_string();
            assert!(refused.contains("node_modules/odd"), "{refused}");
        }
    }
}
