//! `read_file`: reads a text file or some of its lines.

use std::fmt::Write;
use std::io::Read;
use std::path::{Path, PathBuf};

use agent_client_protocol_schema::v1 as acp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Offered, begin, mark_in_progress, schema};
use crate::turn::{Stop, Turn};
use crate::turn_output::Outcome;

pub(super) const NAME: &str = "read_file";
const LINES_MAX: u32 = 2_000;
const BYTES_MAX: usize = 64 * 1024;
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

#[derive(Deserialize)]
struct Input {
    path: String,
    #[serde(default)]
    line: Option<u32>,
    #[serde(default)]
    limit: Option<u32>,
}

pub(super) fn offered() -> Offered {
    let properties = json!({
        "path": {"type": "string", "description": "Relative to the project."},
        "line": {"type": "integer", "minimum": 1, "description": "The first line to read, counted from 1."},
        "limit": {"type": "integer", "minimum": 1, "description": "Maximum number of lines."},
    });
    Offered {
        name: NAME,
        description: "Reads a text file of the project.",
        schema: schema(properties, &["path"]),
    }
}

pub(super) async fn run(turn: &mut Turn, input: Value) -> Result<Outcome, Stop> {
    let title = |input: &Input| format!("Read {}", input.path);
    let input: Input = match begin(turn, NAME, acp::ToolKind::Read, input, title).await? {
        Ok(input) => input,
        Err(outcome) => return Ok(outcome),
    };
    let outcome = match turn.roots.resolve(&input.path) {
        Ok(path) => {
            mark_in_progress(turn, Some(&path)).await?;
            let line = input.line.unwrap_or(1).max(1);
            let limit = input.limit.unwrap_or(LINES_MAX).clamp(1, LINES_MAX);
            match text_of(turn, path, Some((line, limit))).await {
                Ok(text) => Outcome::done(truncate_text(text)),
                Err(reason) => Outcome::failed(reason),
            }
        }
        Err(reason) => Outcome::failed(reason),
    };
    turn.output.end_call(&outcome, true).await?;
    Ok(outcome)
}

/// Reads a file, through the client if it supports that.
pub(super) async fn text_of(
    turn: &Turn,
    path: PathBuf,
    lines: Option<(u32, u32)>,
) -> Result<String, String> {
    let link = &turn.output.link;
    if link.capabilities.fs.read_text_file {
        let mut request = acp::ReadTextFileRequest::new(link.acp_session(), path);
        if let Some((line, limit)) = lines {
            request = request.line(line).limit(limit);
        }
        let answer: Result<acp::ReadTextFileResponse, _> =
            link.request("fs/read_text_file", request).await;
        return match answer {
            Ok(answer) => Ok(answer.content),
            Err(error) => Err(error.message),
        };
    }
    let read = tokio::task::spawn_blocking(move || read(&path));
    let text = read.await.map_err(|error| error.to_string())??;
    Ok(match lines {
        Some((line, limit)) => text
            .split_inclusive('\n')
            .skip(line as usize - 1)
            .take(limit as usize)
            .collect(),
        None => text,
    })
}

fn read(path: &Path) -> Result<String, String> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let data = file.metadata().map_err(|error| error.to_string())?;
    if !data.is_file() {
        return Err("The path is not a regular file.".to_owned());
    }
    file.take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("The file is larger than {FILE_BYTES_MAX} bytes."));
    }
    String::from_utf8(bytes).map_err(|_| "The file is not UTF-8 text.".to_owned())
}

/// Truncates a text to `BYTES_MAX`, to limit what one call adds to the model's context.
fn truncate_text(mut text: String) -> String {
    if text.len() > BYTES_MAX {
        let all = text.len();
        text.truncate(text.floor_char_boundary(BYTES_MAX));
        let _ = write!(
            text,
            "\n… truncated; {} more bytes. Read later lines with `line`.",
            all - text.len()
        );
    }
    text
}
