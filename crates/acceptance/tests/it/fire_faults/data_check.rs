//! Checks that every file in the data directory of a killed server can be read, line by line.

use std::collections::HashSet;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use testkit::files_in;

/// State carried from kill to kill for one data directory.
#[derive(Default)]
pub(crate) struct DataCheck {
    /// Last lines torn by a kill. They stay in the file, completed with a newline, and are the only unreadable lines.
    torn: HashSet<Vec<u8>>,
}

/// Progress of the last turn according to the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// The turn was being written to the live log.
    DuringTurn,
    /// The turn had ended and was being moved to the transcript.
    AtTurnEnd,
    /// The turn was completely in the transcript.
    AfterTurn,
}

impl DataCheck {
    /// Fails unless every line of every file can be read, except last lines torn by this kill or an earlier one.
    pub(crate) fn can_be_read(&mut self, dir: &Path) -> Result<()> {
        let mut set_aside = 0;
        for (path, bytes) in files_in(dir)? {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            set_aside += usize::from(name.contains("unreadable"));
            let read = match path.extension().and_then(|end| end.to_str()) {
                // A temporary file that has not replaced its target.
                Some("tmp") => Ok(()),
                Some("json") => is_json(&bytes),
                Some("jsonl") => self.lines_can_be_read(&bytes),
                _ if name == "lock" => match bytes.is_empty() {
                    true => Ok(()),
                    false => is_json(&bytes),
                },
                _ if name == "token" => match bytes.trim_ascii().len() {
                    64 => Ok(()),
                    other => Err(anyhow::anyhow!("{other} characters")),
                },
                _ if name == "server-key" => match bytes.len() {
                    100.. => Ok(()),
                    other => Err(anyhow::anyhow!("{other} bytes")),
                },
                Some("gif") => match bytes.starts_with(b"GIF8") {
                    true => Ok(()),
                    false => Err(anyhow::anyhow!("not an image")),
                },
                // A file that was set aside contains its torn line.
                _ if name.contains(".jsonl.unreadable-") => self.lines_can_be_read(&bytes),
                _ => Err(anyhow::anyhow!("unknown file")),
            };
            read.with_context(|| format!("{} is unreadable", path.display()))?;
        }
        ensure!(
            set_aside <= self.torn.len(),
            "{set_aside} files are set aside, and {} lines were torn",
            self.torn.len()
        );
        Ok(())
    }

    pub(crate) fn torn(&self) -> usize {
        self.torn.len()
    }

    fn lines_can_be_read(&mut self, bytes: &[u8]) -> Result<()> {
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, whole) = match line.strip_suffix(b"\n") {
                Some(text) => (text, true),
                None => (line, false),
            };
            if is_json(text).is_ok() {
                continue;
            }
            if !whole {
                self.torn.insert(text.to_owned());
            }
            ensure!(
                self.torn.contains(text),
                "unreadable line that is not the last: {}",
                String::from_utf8_lossy(text)
            );
        }
        Ok(())
    }
}

/// Progress of the last turn; at most one turn runs in this directory at a time.
pub(crate) fn moment(dir: &Path) -> Result<Moment> {
    let files = files_in(&dir.join("sessions"))?;
    let mut live = files.into_iter().filter(|(path, bytes)| {
        path.to_string_lossy().ends_with(".live.jsonl") && !bytes.is_empty()
    });
    Ok(match live.next() {
        None => Moment::AfterTurn,
        Some((_, bytes)) if is_over(&bytes) => Moment::AtTurnEnd,
        Some(_) => Moment::DuringTurn,
    })
}

/// Whether a live log contains the end of its turn.
fn is_over(bytes: &[u8]) -> bool {
    let lines = bytes.split(|byte| *byte == b'\n');
    let mut lines = lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    lines.any(|line| line["begin"]["type"] == "turn" || line["replace"]["type"] == "turn")
}

fn is_json(bytes: &[u8]) -> Result<()> {
    let _: Value = serde_json::from_slice(bytes)?;
    Ok(())
}
