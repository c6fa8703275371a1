//! How hard the tests under fire try: a little on every change, for long when asked (`cargo xtask test fire`).

use std::os::unix::fs::MetadataExt;

/// The first on every change, the second in the long form.
pub fn times(short: usize, long: usize) -> usize {
    match std::env::var("LIMINAL_FIRE") {
        Ok(word) if word == "long" => long,
        _ => short,
    }
}

/// Says that a test was not run for want of something. Where changes are judged, and `cargo xtask test` could install
/// it, that is a failure: a test that never runs holds nothing.
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

/// As root on Linux: who owns this very process says who we are.
fn may_install() -> bool {
    cfg!(target_os = "linux") && std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}
