//! Opens the workspace in the user's browser without passing the token on a command line.
//!
//! Other users of the machine can read the arguments of every process. So the browser opens a private file that
//! redirects to the address with the token.

use std::io::IsTerminal;
use std::process::{Command, Stdio};

use store::DataDir;

const OPENERS: &[&str] = if cfg!(target_os = "macos") {
    &["open"]
} else {
    &["xdg-open", "wslview"]
};

/// Whether the server was started in a terminal on a machine with a screen.
pub(crate) fn is_wanted() -> bool {
    let screen = cfg!(target_os = "macos")
        || ["DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"]
            .iter()
            .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()));
    screen && std::io::stdout().is_terminal()
}

/// Deletes the file with the token, after the browser has read it or when the server stops.
pub(crate) fn clean_up(dir: &DataDir) {
    let _ = std::fs::remove_file(dir.open_page());
}

/// Opens the browser if possible; the address is on stdout in any case. A sandboxed browser, such as a snap, may not
/// be permitted to read the file.
pub(crate) fn open(dir: &DataDir, url: &str) {
    let path = dir.open_page();
    let content = format!(
        "<!doctype html><meta charset=\"utf-8\"><title>Liminal Builder</title>\
         <meta name=\"referrer\" content=\"no-referrer\"><meta http-equiv=\"refresh\" content=\"0; url={url}\">\
         <a href=\"{url}\">Open Liminal Builder</a>\n"
    );
    if let Err(error) = dir.write(&path, content.as_bytes()) {
        tracing::warn!(%error, "could not write the file that redirects the browser to the workspace");
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
            // Reaps the child, which would otherwise remain a zombie.
            std::thread::spawn(move || child.wait());
            return;
        }
    }
    tracing::info!("no program that opens a browser was found; open the address above manually");
}
