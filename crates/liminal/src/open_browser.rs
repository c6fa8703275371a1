//! Opens the workspace in the person's browser, without putting the token on a command line.
//!
//! Other users of the machine can read the arguments of every process. So the browser is given a
//! private file that leads on to the address with the token.

use std::io::IsTerminal;
use std::process::{Command, Stdio};

use store::DataDir;

const OPENERS: &[&str] = if cfg!(target_os = "macos") {
    &["open"]
} else {
    &["xdg-open", "wslview"]
};

/// Whether there is a person at a screen who would want it.
pub(crate) fn is_wanted() -> bool {
    let screen = cfg!(target_os = "macos")
        || ["DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"]
            .iter()
            .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()));
    screen && std::io::stdout().is_terminal()
}

/// Takes the token off the disk again, once the browser has had its time, or we stop.
pub(crate) fn clean_up(dir: &DataDir) {
    let _ = std::fs::remove_file(dir.open_page());
}

/// Best effort: the address stands on stdout in any case. (A browser that runs confined, as a snap
/// for instance, may not be allowed to read the file.)
pub(crate) fn open(dir: &DataDir, url: &str) {
    let path = dir.open_page();
    let content = format!(
        "<!doctype html><meta charset=\"utf-8\"><title>Liminal Builder</title>\
         <meta name=\"referrer\" content=\"no-referrer\"><meta http-equiv=\"refresh\" content=\"0; url={url}\">\
         <a href=\"{url}\">Open Liminal Builder</a>\n"
    );
    if let Err(error) = dir.write(&path, content.as_bytes()) {
        tracing::warn!(%error, "could not open the browser");
        return;
    }
    for opener in OPENERS {
        let started = Command::new(opener)
            .arg(&path)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        if let Ok(mut child) = started {
            // Waited for, or it would stay behind as a zombie.
            std::thread::spawn(move || child.wait());
            return;
        }
    }
    tracing::info!("no program to open a browser with was found; open the address above yourself");
}
