//! What identifies a session, and the first line of its transcript.
//!
//! Invariant: the line keeps the names and the order of version 1, whatever the fields in memory are called.

use serde::{Deserialize, Serialize, Serializer};

/// What identifies a session, in its transcript and in the list of sessions.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionIdentity {
    /// Canonical id: `{cliType}:{id of the agent session}`.
    pub id: String,
    /// Name of the session's files, and its id in the gateway API.
    pub key: String,
    /// Id of the project the session was created in.
    pub project_id: String,
    /// Folder of that project, in which the agent works.
    pub project_path: String,
    /// Catalog id of the agent.
    pub cli_type: String,
    /// Name of the agent given by the program that created the session, if it differs from `cli_type`.
    pub agent_id: Option<String>,
    /// Time of creation, as RFC 3339 text.
    pub created_at: String,
}

/// The first line of a transcript: enough to list the session if the index is lost.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(from = "HeaderLine<String>")]
pub struct Header {
    /// Format of the transcript.
    pub version: u64,
    /// The session the transcript belongs to.
    pub identity: SessionIdentity,
    /// How often the conversation was replaced by the agent's replay. Entry numbers are valid within one edition.
    pub edition: u64,
}

/// The header as it is on disk, owned after reading and borrowed for writing.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct HeaderLine<T> {
    version: u64,
    key: T,
    session: T,
    cli_type: T,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_id: Option<T>,
    project_id: T,
    project_path: T,
    created_at: T,
    #[serde(default, skip_serializing_if = "is_zero")]
    edition: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl From<HeaderLine<String>> for Header {
    fn from(line: HeaderLine<String>) -> Self {
        Self {
            version: line.version,
            identity: SessionIdentity {
                id: line.session,
                key: line.key,
                project_id: line.project_id,
                project_path: line.project_path,
                cli_type: line.cli_type,
                agent_id: line.agent_id,
                created_at: line.created_at,
            },
            edition: line.edition,
        }
    }
}

impl Serialize for Header {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let identity = &self.identity;
        let line = HeaderLine {
            version: self.version,
            key: identity.key.as_str(),
            session: &identity.id,
            cli_type: &identity.cli_type,
            agent_id: identity.agent_id.as_deref(),
            project_id: &identity.project_id,
            project_path: &identity.project_path,
            created_at: &identity.created_at,
            edition: self.edition,
        };
        line.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_line_of_version_1_is_read_and_written_with_the_same_bytes() {
        let short = r#"{"version":1,"key":"k","session":"codex:1","cliType":"codex","projectId":"p","projectPath":"/p","createdAt":"2026-01-02T03:04:05Z"}"#;
        let full = r#"{"version":1,"key":"k","session":"codex:1","cliType":"codex","agentId":"mine","projectId":"p","projectPath":"/p","createdAt":"2026-01-02T03:04:05Z","edition":2}"#;
        for line in [short, full] {
            let header: Header = serde_json::from_str(line).unwrap();
            assert_eq!(serde_json::to_string(&header).unwrap(), line);
        }
        let header: Header = serde_json::from_str(full).unwrap();
        assert_eq!(header.identity.id, "codex:1");
        assert_eq!(header.identity.agent_id.as_deref(), Some("mine"));
        assert_eq!(header.edition, 2);
    }
}
