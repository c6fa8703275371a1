//! What a killed server leaves in its data directory can be read: every file, line by line.

use std::collections::HashSet;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use testkit::files_in;

/// The files of one data directory from one kill to the next.
#[derive(Default)]
pub(crate) struct Remains {
    /// Last lines that a kill has cut off. They stay where they are, sealed, and are the only ones that nobody can read.
    torn: HashSet<Vec<u8>>,
}

/// How far the last turn had come, as the files say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// It was being written down as it came.
    InTheTurn,
    /// It was over, and being moved to where it stays.
    AtItsEnd,
    /// All of it was where it stays.
    AfterIt,
}

impl Remains {
    /// Every line of every file can be read, but for a last one that was cut off, now or by an earlier kill.
    pub(crate) fn can_be_read(&mut self, dir: &Path) -> Result<()> {
        let mut set_aside = 0;
        for (path, bytes) in files_in(dir)? {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            set_aside += usize::from(name.contains("unreadable"));
            let read = match path.extension().and_then(|end| end.to_str()) {
                // Whatever was to take a file's place has not done so.
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
                Some("gif") => match bytes.starts_with(b"GIF8") {
                    true => Ok(()),
                    false => Err(anyhow::anyhow!("no picture")),
                },
                // What was set aside has its torn line.
                _ if name.contains(".jsonl.unreadable-") => self.lines_can_be_read(&bytes),
                _ => Err(anyhow::anyhow!("nobody knows what it is")),
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
                "a line in the middle: {}",
                String::from_utf8_lossy(text)
            );
        }
        Ok(())
    }
}

/// Where in a turn it ended. Only one is told in this directory at a time.
pub(crate) fn moment(dir: &Path) -> Result<Moment> {
    let files = files_in(&dir.join("sessions"))?;
    let mut live = files.into_iter().filter(|(path, bytes)| {
        path.to_string_lossy().ends_with(".live.jsonl") && !bytes.is_empty()
    });
    Ok(match live.next() {
        None => Moment::AfterIt,
        Some((_, bytes)) if is_over(&bytes) => Moment::AtItsEnd,
        Some(_) => Moment::InTheTurn,
    })
}

/// Whether a live file has the end of its turn.
fn is_over(bytes: &[u8]) -> bool {
    let lines = bytes.split(|byte| *byte == b'\n');
    let mut lines = lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    lines.any(|line| line["begin"]["type"] == "turn" || line["replace"]["type"] == "turn")
}

fn is_json(bytes: &[u8]) -> Result<()> {
    let _: Value = serde_json::from_slice(bytes)?;
    Ok(())
}
