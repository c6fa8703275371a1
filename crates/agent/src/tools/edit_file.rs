//! `edit_file`: replaces text in a file or creates a file, after showing the diff.

use std::io::Write;
use std::path::{Path, PathBuf};

use agent_client_protocol_schema::v1 as acp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Offered, begin, mark_in_progress, permission, read_file, schema};
use crate::turn::{Stop, Turn};
use crate::turn_output::Outcome;

pub(super) const NAME: &str = "edit_file";

#[derive(Deserialize)]
struct Input {
    path: String,
    /// Empty if `new_text` is the whole file.
    #[serde(default)]
    old_text: String,
    new_text: String,
}

pub(super) fn offered() -> Offered {
    let properties = json!({
        "path": {"type": "string", "description": "Relative to the project."},
        "old_text": {"type": "string", "description": "The text to replace; it must occur in the file exactly once. Empty to write the whole file or create a new one."},
        "new_text": {"type": "string", "description": "The replacement text."},
    });
    Offered {
        name: NAME,
        description: "Edits or creates a text file of the project. The user may be asked first.",
        schema: schema(properties, &["path", "old_text", "new_text"]),
    }
}

pub(super) async fn run(turn: &mut Turn, input: Value) -> Result<Outcome, Stop> {
    let title = |input: &Input| format!("Edit {}", input.path);
    let input: Input = match begin(turn, NAME, acp::ToolKind::Edit, input, title).await? {
        Ok(input) => input,
        Err(outcome) => return Ok(outcome),
    };
    let change = match prepare(turn, input).await {
        Ok(change) => change,
        Err(reason) => {
            let outcome = Outcome::failed(reason);
            turn.output.end_call(&outcome, true).await?;
            return Ok(outcome);
        }
    };
    let diff = acp::Diff::new(change.path.clone(), change.new.clone()).old_text(change.old.clone());
    let fields = acp::ToolCallUpdateFields::new()
        .content(vec![acp::ToolCallContent::Diff(diff)])
        .locations(vec![acp::ToolCallLocation::new(change.path.clone())]);
    turn.output.change_call(fields).await?;
    let outcome = match permission(turn, NAME).await? {
        Some(refused) => refused,
        None => {
            mark_in_progress(turn, Some(&change.path)).await?;
            match write(turn, change).await {
                Ok(name) => Outcome::done(format!("{name} was written.")),
                Err(reason) => Outcome::failed(reason),
            }
        }
    };
    turn.output.end_call(&outcome, false).await?;
    Ok(outcome)
}

struct Change {
    path: PathBuf,
    old: Option<String>,
    new: String,
}

async fn prepare(turn: &Turn, input: Input) -> Result<Change, String> {
    let path = turn.roots.resolve(&input.path)?;
    let old = match path.symlink_metadata() {
        Ok(_) => Some(read_file::text_of(turn, path.clone(), None).await?),
        Err(_) => None,
    };
    let new = replace_once(old.as_deref(), &input.old_text, input.new_text)?;
    Ok(Change { path, old, new })
}

fn replace_once(old: Option<&str>, old_text: &str, new_text: String) -> Result<String, String> {
    if old_text.is_empty() {
        return Ok(new_text);
    }
    let text = old.ok_or("There is no such file.")?;
    match text.matches(old_text).count() {
        0 => Err("The old text is not in the file.".to_owned()),
        1 => Ok(text.replacen(old_text, &new_text, 1)),
        count => Err(format!(
            "The old text is in the file {count} times. Add surrounding text so that it is unique."
        )),
    }
}

async fn write(turn: &Turn, change: Change) -> Result<String, String> {
    let name = turn.roots.relative_to_cwd(&change.path);
    let link = &turn.output.link;
    if link.capabilities.fs.write_text_file {
        let request = acp::WriteTextFileRequest::new(link.acp_session(), change.path, change.new);
        let answer: Result<acp::WriteTextFileResponse, _> =
            link.request("fs/write_text_file", request).await;
        return answer.map(|_| name).map_err(|error| error.message);
    }
    let now = match change.path.symlink_metadata() {
        Ok(_) => Some(read_file::text_of(turn, change.path.clone(), None).await?),
        Err(_) => None,
    };
    // The user approved a diff against the old text.
    if now != change.old {
        return Err(
            "The file has changed since the diff was made. Read it again and retry.".to_owned(),
        );
    }
    let written = tokio::task::spawn_blocking(move || replace(&change.path, change.new.as_bytes()));
    match written.await {
        Ok(Ok(())) => Ok(name),
        Ok(Err(error)) => Err(error.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

/// Replaces a file atomically and keeps its permissions.
fn replace(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(folder)?;
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = folder.join(name);
    let written = (|| {
        let mut file = std::fs::File::create(&temporary)?;
        if let Ok(data) = path.metadata() {
            file.set_permissions(data.permissions())?;
        }
        file.write_all(content)?;
        file.sync_all()?;
        std::fs::rename(&temporary, path)
    })();
    if written.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_text_that_occurs_once_is_replaced() {
        let new = |text: &str| replace_once(Some("a b a"), text, "x".to_owned());
        assert_eq!(new("b"), Ok("a x a".to_owned()));
        assert!(new("a").unwrap_err().contains("2 times"));
        assert!(new("c").unwrap_err().contains("not in the file"));
        assert_eq!(new(""), Ok("x".to_owned()));
        assert_eq!(replace_once(None, "", "x".to_owned()), Ok("x".to_owned()));
        assert!(replace_once(None, "b", "x".to_owned()).is_err());
    }

    #[test]
    fn replaced_file_keeps_permissions_and_leaves_no_temporary() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/run.sh");
        replace(&path, b"one").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        replace(&path, b"two").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o755);
        assert_eq!(
            std::fs::read_dir(dir.path().join("deep")).unwrap().count(),
            1
        );
    }
}
