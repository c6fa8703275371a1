//! Effort of the stress, fault and attack tests: short by default, long with `LIMINAL_FIRE=long`
//! (`cargo xtask test fire`).

use std::os::unix::fs::MetadataExt;

/// Returns `short` by default and `long` in the long form.
pub fn times(short: usize, long: usize) -> usize {
    match std::env::var("LIMINAL_FIRE") {
        Ok(word) if word == "long" => long,
        _ => short,
    }
}

/// Reports that a test was skipped because something is missing on this machine. In CI this is a failure if
/// `cargo xtask test` could install it: a test that never runs proves nothing.
#[expect(
    clippy::print_stderr,
    reason = "a test that was not run must not look like one that was"
)]
pub fn not_run(why: &str) -> anyhow::Result<()> {
    let judged = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    anyhow::ensure!(!(judged && may_install()), "not run: {why}");
    eprintln!("not run: {why}");
    Ok(())
}

/// Whether packages can be installed: only as root on Linux. The owner of `/proc/self` is the current user.
fn may_install() -> bool {
    cfg!(target_os = "linux") && std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}
