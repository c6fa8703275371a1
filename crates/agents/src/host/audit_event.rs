//! What the audit records of an agent: permissions, refusals, writes and commands. Contents of files are never part of it.

use std::sync::Arc;

use serde::Serialize;

/// Maximum length of each text in a line; longer ones are cut.
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

    /// Passes an event of this agent session to the audit.
    pub fn record(&self, session_id: &str, mut event: AuditWhat) {
        event.shorten();
        (self.0)(session_id, &event);
    }
}

/// The content of an audit line.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(
    tag = "what",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
/// What happened, as a line of the audit.
pub enum AuditWhat {
    /// A permission request and the chosen option; `None` if it was cancelled.
    Permission {
        question: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        chosen: Option<String>,
        by: DecidedBy,
    },
    /// A refused read. Allowed reads are not recorded.
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

/// Who decided a permission request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum DecidedBy {
    Policy,
    Person,
    /// The turn was cancelled before a decision.
    Cancel,
}

impl AuditWhat {
    /// Cuts long texts and argument lists, so that one request cannot fill the file.
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
    fn long_texts_and_arguments_of_a_request_are_cut() {
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
