//! The audit of what agents were allowed and refused: floods, the chain of its lines, and what `liminal doctor` says.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use testkit::{Person, Server, ServerSetup};

/// More than the audit remembers at a time, if all were different.
const REFUSED: usize = 600;

async fn started() -> Result<(ServerSetup, Server, String)> {
    let setup = ServerSetup::new()?.with_scripted_agent("")?;
    let server = setup.start().await?;
    let folder = setup.folder("app")?;
    Ok((setup, server, folder))
}

fn lines(path: &Path) -> Result<Vec<Value>> {
    let text = std::fs::read_to_string(path)?;
    let line = |line: &str| serde_json::from_str(line).with_context(|| line.to_owned());
    text.lines().map(line).collect()
}

fn write(folder: &str, name: &str) -> String {
    let params = json!({"path": format!("{folder}/{name}"), "content": "text"});
    format!("ask fs/write_text_file {params}")
}

async fn doctor(setup: &ServerSetup) -> Result<String> {
    let output = setup.run(&["doctor", "--port", "0"]).await?;
    Ok(String::from_utf8(output.stdout)?)
}

#[tokio::test]
async fn repeated_refused_reads_are_counted_beside_what_was_allowed() -> Result<()> {
    let (setup, server, folder) = started().await?;
    let mut person = Person::at(&server, &folder).await?;
    let mut talk = person.begin().await?;
    let read = "ask fs/read_text_file {\"path\": \"/etc/hostname\"}\n".repeat(REFUSED);
    let prompt = format!(
        "{}\n{read}{}",
        write(&folder, "first"),
        write(&folder, "last")
    );
    person.turn(&mut talk, &prompt).await?;
    // Everything is on disk when the end of the turn is shown.
    server.signal("KILL").await?;
    let allowed = lines(&setup.data_dir().join("audit.jsonl"))?;
    let named = |line: &Value| {
        let path = line["path"].as_str().unwrap_or_default();
        format!(
            "{} {}",
            line["what"].as_str().unwrap_or_default(),
            path.replace(&folder, "")
        )
    };
    let allowed: Vec<_> = allowed.iter().map(named).collect();
    assert_eq!(allowed, ["write /first", "write /last"]);
    let refused = lines(&setup.data_dir().join("audit.refused.jsonl"))?;
    let times = |line: &Value| line["times"].as_u64().unwrap_or(1);
    assert_eq!(refused.iter().map(times).sum::<u64>(), REFUSED as u64);
    assert!(refused.len() <= 2, "{refused:?}");
    let report = doctor(&setup).await?;
    for complete in [
        "audit.jsonl  lines: 2, chain complete\n",
        "audit.refused.jsonl  lines: 2, chain complete\n",
    ] {
        assert!(report.contains(complete), "{report}");
    }
    Ok(())
}

#[tokio::test]
async fn doctor_names_the_line_at_which_the_audit_was_changed() -> Result<()> {
    let (setup, mut server, folder) = started().await?;
    let path = setup.data_dir().join("audit.jsonl");
    for turn in ["one", "two", "three"] {
        let mut person = Person::at(&server, &folder).await?;
        let mut talk = person.begin().await?;
        person.turn(&mut talk, &write(&folder, turn)).await?;
        server.signal("KILL").await?;
        // What a power cut may leave is no change: it is repaired and recorded at the next start.
        if turn == "two" {
            let mut torn = std::fs::read(&path)?;
            torn.extend_from_slice(b"{\"at\":\"2026\0\0\0");
            std::fs::write(&path, torn)?;
            assert!(
                doctor(&setup)
                    .await?
                    .contains("a torn end, which the next start repairs")
            );
        }
        server = setup.start().await?;
    }
    server.signal("TERM").await?;
    let report = doctor(&setup).await?;
    let complete = "audit.jsonl  lines: 4, chain complete, torn places repaired: 1\n";
    assert!(report.contains(complete), "{report}");
    let text = String::from_utf8_lossy(&std::fs::read(&path)?).replace("/one", "/two");
    std::fs::write(&path, text)?;
    let report = doctor(&setup).await?;
    let broken = "audit.jsonl  the chain breaks at line 2 of audit.jsonl";
    assert!(report.contains(broken), "{report}");
    Ok(())
}

#[tokio::test]
async fn audit_of_an_earlier_version_is_read_and_continued() -> Result<()> {
    let setup = ServerSetup::new()?.with_scripted_agent("")?;
    setup.start().await?.signal("TERM").await?;
    let path = setup.data_dir().join("audit.jsonl");
    let old = "{\"at\":\"2026-01-01T00:00:00.000Z\",\"sessionId\":\"s\",\"what\":\"write\",\"path\":\"/x\",\"bytes\":1}\n";
    std::fs::write(&path, old.repeat(3))?;
    assert!(
        doctor(&setup)
            .await?
            .contains("audit.jsonl  lines: 3, from before the chain: 3\n")
    );
    let folder = setup.folder("app")?;
    let server = setup.start().await?;
    let mut person = Person::at(&server, &folder).await?;
    let mut talk = person.begin().await?;
    person.turn(&mut talk, &write(&folder, "new")).await?;
    server.signal("TERM").await?;
    let report = doctor(&setup).await?;
    let complete = "audit.jsonl  lines: 4, chain complete, from before the chain: 3\n";
    assert!(report.contains(complete), "{report}");
    assert!(std::fs::read_to_string(&path)?.starts_with(&old.repeat(3)));
    Ok(())
}
