//! What the audit records of an agent: permissions, refusals, writes and commands. Contents of files are never part of it.

use std::sync::Arc;

use serde::Serialize;

/// Longer texts are cut, each of them.
const TEXT_BYTES_MAX: usize = 4 * 1024;
const ARGUMENTS_MAX: usize = 64;

/// Takes the audit's events. Clones share it.
#[derive(Clone)]
pub struct Auditor(Arc<Take>);

type Take = dyn Fn(&str, &AuditWhat) + Send + Sync;

impl Auditor {
    /// `take` gets each event with the session it belongs to, and must not block.
    pub fn new(take: impl Fn(&str, &AuditWhat) + Send + Sync + 'static) -> Self {
        Self(Arc::new(take))
    }

    pub fn record(&self, session_id: &str, mut event: AuditWhat) {
        event.shorten();
        (self.0)(session_id, &event);
    }
}

/// One thing an agent was allowed or refused.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(
    tag = "what",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub enum AuditWhat {
    /// A question for permission, and what was answered. Nothing chosen: cancelled.
    Permission {
        question: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        chosen: Option<String>,
        by: DecidedBy,
    },
    /// Only those that were refused are written down.
    Read { path: String, refused: String },
    Write {
        path: String,
        bytes: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        refused: Option<String>,
    },
    Command {
        #[serde(skip_serializing_if = "Option::is_none")]
        terminal_id: Option<String>,
        argv: Vec<String>,
        cwd: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        refused: Option<String>,
    },
    CommandEnded {
        terminal_id: String,
        exit: wire::TerminalExit,
    },
}

/// Who answered a question for permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum DecidedBy {
    Policy,
    Person,
    /// Nobody: the turn was cancelled.
    Cancel,
}

impl AuditWhat {
    /// So that no agent can fill the file with one request.
    fn shorten(&mut self) {
        let texts: Vec<&mut String> = match self {
            Self::Permission {
                question, chosen, ..
            } => [question].into_iter().chain(chosen).collect(),
            Self::Read { path, refused } => vec![path, refused],
            Self::Write { path, refused, .. } => [path].into_iter().chain(refused).collect(),
            Self::Command {
                argv, cwd, refused, ..
            } => {
                if argv.len() > ARGUMENTS_MAX {
                    let more = argv.len() - ARGUMENTS_MAX;
                    argv.truncate(ARGUMENTS_MAX);
                    argv.push(format!("… and {more} more"));
                }
                argv.iter_mut().chain([cwd]).chain(refused).collect()
            }
            Self::CommandEnded { .. } => vec![],
        };
        for text in texts {
            if text.len() > TEXT_BYTES_MAX {
                text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
                text.push('…');
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_request_cannot_fill_the_file() {
        let mut what = AuditWhat::Command {
            terminal_id: None,
            argv: vec!["é".repeat(100_000); 1000],
            cwd: "/".to_owned(),
            refused: None,
        };
        what.shorten();
        let line = serde_json::to_string(&what).unwrap();
        assert!(line.len() < (ARGUMENTS_MAX + 2) * (TEXT_BYTES_MAX + 10));
        assert!(line.contains("… and 936 more"));
    }
}
