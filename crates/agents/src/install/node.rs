//! The version of Node on this machine, compared with the one an agent requires.

use std::path::Path;
use std::process::Stdio;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::process::Command;

/// Maximum time for `node --version`, which takes milliseconds even on a slow disk.
const DEADLINE: Duration = Duration::from_secs(3);
/// How long a determined version is used, short enough to notice a newly installed Node.
const KNOWN_FOR: Duration = Duration::from_secs(10);

type Version = (u32, u32);

/// The cached version of Node.
#[derive(Debug, Default)]
pub(crate) struct Node {
    seen: Mutex<Option<(Instant, Option<Version>)>>,
}

impl Node {
    /// Determines the version, unless the last result is younger than `KNOWN_FOR`. True if the result has changed.
    pub(crate) async fn refresh(&self, program: Option<&Path>) -> bool {
        let known = *self.lock();
        if known.is_some_and(|(at, _)| at.elapsed() < KNOWN_FOR) {
            return false;
        }
        let version = match program {
            Some(program) => version(program).await,
            None => None,
        };
        *self.lock() = Some((Instant::now(), version));
        known.map(|(_, version)| version) != Some(version)
    }

    /// A message if the version does not satisfy the range; `None` before the first `refresh`.
    pub(crate) fn too_old_message(&self, name: &str, range: &str) -> Option<String> {
        let (_, has) = (*self.lock())?;
        let needs = lowest(range)?;
        let wanted = match needs {
            (major, 0) => major.to_string(),
            (major, minor) => format!("{major}.{minor}"),
        };
        match has {
            Some(has) if has >= needs => None,
            Some((major, minor)) => Some(format!(
                "{name} needs Node {wanted} or newer; this machine has {major}.{minor}."
            )),
            None => Some(format!(
                "{name} needs Node {wanted} or newer; this machine has none."
            )),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<(Instant, Option<Version>)>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn version(program: &Path) -> Option<Version> {
    let asked = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(DEADLINE, asked).await.ok()?.ok()?;
    numbers(&String::from_utf8_lossy(&output.stdout))
}

/// The lowest version of an npm range, if the range has a lower bound.
fn lowest(range: &str) -> Option<Version> {
    range.split("||").filter_map(numbers).min()
}

/// The first version in a text.
fn numbers(text: &str) -> Option<Version> {
    let from = text.find(|c: char| c.is_ascii_digit())?;
    // An upper bound is not a requirement for a newer version.
    if text[..from].contains('<') {
        return None;
    }
    let mut parts = text[from..].split(|c: char| !c.is_ascii_digit());
    let major = parts.next()?.parse().ok()?;
    let minor = parts.next().and_then(|minor| minor.parse().ok());
    Some((major, minor.unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lowest_version_of_an_npm_range_is_required() {
        let ranges = [
            ">=22",
            "^20.19.0 || >=22.12.0",
            "20 || 22",
            ">= 18.0.0 <25",
            "18.x",
            "*",
            "<25",
        ];
        let found = ranges.map(lowest);
        let (a, b) = (Some((22, 0)), Some((20, 19)));
        assert_eq!(
            found,
            [
                a,
                b,
                Some((20, 0)),
                Some((18, 0)),
                Some((18, 0)),
                None,
                None
            ]
        );
    }

    #[test]
    fn too_old_or_missing_node_is_reported_and_an_unknown_one_is_not() {
        let node = Node::default();
        assert_eq!(node.too_old_message("Claude Code", ">=22"), None);
        let has = |version| *node.lock() = Some((Instant::now(), version));
        has(Some((18, 19)));
        let message = "Claude Code needs Node 22 or newer; this machine has 18.19.";
        assert_eq!(
            node.too_old_message("Claude Code", ">=22").as_deref(),
            Some(message)
        );
        assert_eq!(node.too_old_message("Claude Code", ">=18.19.0"), None);
        has(Some((22, 0)));
        assert_eq!(node.too_old_message("Claude Code", ">=22"), None);
        has(None);
        assert!(
            node.too_old_message("X", ">=22.12")
                .unwrap()
                .contains("22.12 or newer; this machine has none")
        );
    }
}
