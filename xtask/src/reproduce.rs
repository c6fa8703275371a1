//! `cargo xtask reproduce`: builds the release twice from scratch and fails if the binaries differ.
//!
//! Both builds use the same folder, because its path is part of the binary.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};

use crate::steps::{Steps, command};
use crate::target;

pub(crate) fn run() -> anyhow::Result<()> {
    let folder = target().join("reproduce");
    let kept = target().join("reproduce-first");
    let steps = Steps::new();
    build(&steps, "the first build", &folder)?;
    fs::rename(folder.join("release/liminal"), &kept)?;
    build(&steps, "the second build", &folder)?;
    let [first, second] = [kept, folder.join("release/liminal")].map(fs::read);
    let (first, second) = (first?, second?);
    steps.print();
    if let Some(at) = differ(&first, &second) {
        bail!(
            "the two builds differ from byte {at} on. The second is in {folder:?}, the first beside that folder."
        );
    }
    println!("\nboth builds are identical ({} bytes)", first.len());
    Ok(())
}

fn build(steps: &Steps, name: &str, folder: &Path) -> anyhow::Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).context("cannot remove the folder of an earlier build")?;
    }
    let mut build = command(&[
        "cargo",
        "build",
        "--quiet",
        "--release",
        "--locked",
        "--package",
        "liminal",
    ]);
    steps.run(name, build.arg("--target-dir").arg(folder))
}

/// The first position at which two byte strings differ.
fn differ(one: &[u8], other: &[u8]) -> Option<usize> {
    if one == other {
        return None;
    }
    let same = one
        .iter()
        .zip(other)
        .take_while(|(one, other)| one == other);
    Some(same.count())
}
