//! Fetching a list of agents: over https with curl, or from a file.

use std::io::Read as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::process::Command;

use super::listing::{LIST_BYTES_MAX, is_https_url};

const DEADLINE: Duration = Duration::from_secs(30);

/// The text of the list at a URL or in a file. `curl` is the path of that program, if it was found.
pub(crate) async fn fetch(from: &str, curl: Option<&Path>) -> Result<String, String> {
    if from.contains("://") {
        if !is_https_url(from) {
            return Err("The list must be an https URL or a file.".to_owned());
        }
        let curl = curl.ok_or(
            "curl was not found. Install it, or download the list yourself and name the file: `liminal agents --refresh FILE`.",
        )?;
        let fetching = tokio::time::timeout(DEADLINE, download(from, curl));
        let timed_out = || "there was no answer within 30 s".to_owned();
        let text = fetching.await.unwrap_or_else(|_| Err(timed_out()));
        return text
            .map_err(|reason| format!("The list could not be fetched from {from}: {reason}."));
    }
    read_file(from).map_err(|error| format!("{from} cannot be read: {error}."))
}

fn read_file(path: &str) -> std::io::Result<String> {
    let mut text = String::new();
    let file = std::fs::File::open(path)?;
    std::io::Read::take(file, LIST_BYTES_MAX as u64 + 1).read_to_string(&mut text)?;
    Ok(text)
}

async fn download(url: &str, curl: &Path) -> Result<String, String> {
    let mut child = Command::new(curl)
        .args([
            "--proto",
            "=https",
            "--fail",
            "--location",
            "--silent",
            "--show-error",
        ])
        .args(["--max-filesize", &LIST_BYTES_MAX.to_string(), "--", url])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| error.to_string())?;
    let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Err("curl could not be used".to_owned());
    };
    let (text, error_output) = tokio::join!(bounded(stdout), bounded(stderr));
    let status = child.wait().await.map_err(|error| error.to_string())?;
    if !status.success() {
        let error_output = error_output.unwrap_or_default();
        let error_output: String = error_output
            .trim()
            .chars()
            .filter(|c| !c.is_control())
            .take(200)
            .collect();
        return Err(error_output);
    }
    text.map_err(|error| error.to_string())
}

/// Reads at most one byte more than a list may have, so that a longer one is detected.
async fn bounded(reader: impl tokio::io::AsyncRead + Unpin) -> std::io::Result<String> {
    let mut text = String::new();
    reader
        .take(LIST_BYTES_MAX as u64 + 1)
        .read_to_string(&mut text)
        .await?;
    Ok(text)
}
