//! Data directories with many sessions and entries, as after years of use.

use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::Result;
use serde_json::{Value, json};
use testkit::{Person, ServerSetup};

const NOW: &str = "2026-01-01T00:00:00.000Z";

/// Creates a project whose sessions have these numbers of entries, and returns its id. The sessions are
/// `claude-code:kept-0` and so on.
pub(crate) async fn fill(setup: &ServerSetup, entries: &[usize]) -> Result<String> {
    let folder = setup.folder("app")?;
    let server = setup.start().await?;
    let project_id = Person::at(&server, &folder).await?.project_id;
    server.signal("TERM").await?;
    write(&setup.data_dir(), &project_id, &folder, entries)?;
    Ok(project_id)
}

pub(crate) fn id(number: usize) -> String {
    format!("claude-code:kept-{number}")
}

fn write(data_dir: &Path, project_id: &str, folder: &str, entries: &[usize]) -> Result<()> {
    let sessions = data_dir.join("sessions");
    std::fs::create_dir_all(&sessions)?;
    let mut index = vec![];
    for (number, count) in entries.iter().enumerate() {
        let key = format!("00000000-0000-4000-8000-{number:012}");
        let header = json!({"session": {
            "version": 1, "key": key, "session": id(number), "cliType": "claude-code", "projectId": project_id,
            "projectPath": folder, "createdAt": NOW,
        }});
        let mut text = format!("{header}\n");
        for number in 1..=*count {
            let entry = entry(number);
            text.push_str(&format!("{{\"n\":{number},\"entry\":{entry}}}\n"));
        }
        let path = sessions.join(format!("{key}.jsonl"));
        std::fs::write(&path, text)?;
        let file = std::fs::File::options().append(true).open(&path)?;
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600))?;
        index.push(json!({
            "id": id(number), "key": key, "projectId": project_id, "projectPath": folder, "cliType": "claude-code",
            "archived": false, "title": format!("Session {number}"), "lastActiveAt": NOW, "createdAt": NOW,
        }));
    }
    let text = json!({"version": 1, "sessions": index}).to_string();
    Ok(std::fs::write(data_dir.join("sessions.json"), text)?)
}

/// User messages alternate with answers of a few hundred bytes.
fn entry(number: usize) -> Value {
    let entry_id = format!("e{number}");
    match number % 2 {
        1 => {
            json!({"type": "user", "entryId": entry_id, "content": "And then?", "timestamp": NOW})
        }
        _ => json!({
            "type": "assistant", "entryId": entry_id, "timestamp": NOW,
            "content": "The loop reads **one line** at a time and hands it on. ".repeat(6),
        }),
    }
}
