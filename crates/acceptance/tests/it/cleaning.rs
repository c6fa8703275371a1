//! Tests that the data directory is cleaned, and that nothing is removed that a session can show or restore.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use serde_json::{Value, json};
use testkit::{Conversation, HANG_GUARD, Person, Server, ServerSetup};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const TODAY: &str = "00000000-0000-4000-8000-00000000000b.jsonl";
const UNUSED_PICTURE: &str = "0b2c8a52-5b5c-4f0e-9d0b-6a1a3f1f0c11.gif";

fn setup() -> Result<ServerSetup> {
    ServerSetup::new()?.with_scripted_agent("")
}

/// Sets the modification time of a file, which is created if it is missing.
fn age(path: &Path, days: u32) -> Result<()> {
    fs::create_dir_all(path.parent().context("no folder")?)?;
    let file = File::options().append(true).create(true).open(path)?;
    Ok(file.set_modified(SystemTime::now() - DAY * days)?)
}

fn names(folder: &Path) -> Result<Vec<String>> {
    let mut names = vec![];
    for entry in fs::read_dir(folder)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

async fn upload(server: &Server) -> Result<String> {
    let head = [
        "POST /uploads HTTP/1.1".to_owned(),
        format!("Host: {}", server.address),
        format!("Authorization: Bearer {}", server.token),
    ];
    let saved = testkit::http(server.address, &head, "GIF89a").await?;
    let saved: Value = serde_json::from_str(&saved.text())?;
    Ok(saved["id"].as_str().context("no id")?.to_owned())
}

/// A session with one turn whose message has a picture. Returns the conversation and the picture's name.
async fn with_picture(server: &Server, person: &mut Person) -> Result<(Conversation, String)> {
    let mut conversation = person.begin().await?;
    let picture = upload(server).await?;
    let send = json!({"type": "session:send", "content": "say seen", "images": [picture]});
    person.ask(&mut conversation, send).await?;
    person.until_turns(&mut conversation, 1).await?;
    Ok((conversation, picture))
}

async fn delete(person: &mut Person, conversation: &mut Conversation) -> Result<()> {
    let deleted = person
        .ask(conversation, json!({"type": "session:delete"}))
        .await?;
    ensure!(deleted["type"] == "session:deleted", "{deleted}");
    Ok(())
}

async fn restore(person: &mut Person, conversation: &mut Conversation) -> Result<Value> {
    person
        .ask(conversation, json!({"type": "session:restore"}))
        .await
}

#[tokio::test]
async fn clean_removes_only_what_no_session_can_show_or_restore() -> Result<()> {
    let setup = setup()?;
    let server = setup.start().await?;
    let folder = setup.folder("app")?;
    let mut person = Person::at(&server, &folder).await?;
    let (listed, shown) = with_picture(&server, &mut person).await?;
    let (mut deleted, restorable) = with_picture(&server, &mut person).await?;
    delete(&mut person, &mut deleted).await?;
    let data = setup.data_dir();
    for picture in [shown.as_str(), &restorable] {
        age(&data.join("uploads").join(picture), 400)?;
    }
    // Too young for the cleaning in the background.
    age(&data.join("uploads").join(UNUSED_PICTURE), 2)?;
    for name in names(&data.join("trash"))? {
        age(&data.join("trash").join(name), 400)?;
    }
    let before = names(&data.join("trash"))?;
    age(
        &data.join("trash/00000000-0000-4000-8000-00000000000a.jsonl"),
        2,
    )?;
    age(&data.join("trash").join(TODAY), 0)?;
    let expired = data.join("agent/expired/sess_01ARZ3NDEKTSV4RRFFQ69G5FAV");
    age(&expired.join("meta.json"), 2)?;
    let draft = upload(&server).await?;

    let doctor = setup.run(&["doctor", "--port", "0"]).await?;
    let doctor = String::from_utf8(doctor.stdout)?;
    ensure!(doctor.contains("trash          3 entries, "), "{doctor}");
    ensure!(doctor.contains("uploads        4 entries, "), "{doctor}");
    ensure!(doctor.contains("agent/expired  1 entry, 0 B"), "{doctor}");
    let counted = setup.run(&["clean", "--dry-run"]).await?;
    let counted = String::from_utf8(counted.stdout)?;
    ensure!(
        counted.ends_with("Would remove 3 entries, 0 B.\n"),
        "{counted}"
    );
    ensure!(expired.exists() && data.join("uploads").join(UNUSED_PICTURE).exists());
    let cleaned = setup.run(&["clean"]).await?;
    let cleaned = String::from_utf8(cleaned.stdout)?;
    ensure!(cleaned.ends_with("Removed 3 entries, 0 B.\n"), "{cleaned}");

    let mut kept = [before, vec![TODAY.to_owned()]].concat();
    kept.sort();
    assert_eq!(names(&data.join("trash"))?, kept);
    let mut pictures = vec![shown, restorable, draft];
    pictures.sort();
    assert_eq!(names(&data.join("uploads"))?, pictures);
    ensure!(!expired.exists());
    restore(&mut person, &mut deleted).await?;
    let back = person.open(&deleted.session_id).await?;
    assert_eq!(back.entries, deleted.entries);
    let open = person.open(&listed.session_id).await?;
    assert_eq!(open.entries, listed.entries);
    Ok(())
}

#[tokio::test]
async fn deleted_session_can_be_restored_until_its_age_then_is_removed() -> Result<()> {
    let setup = setup()?.env("LIMINAL_TRASH_DAYS", "7");
    let server = setup.start().await?;
    let folder = setup.folder("app")?;
    let mut person = Person::at(&server, &folder).await?;
    let (mut old, _) = with_picture(&server, &mut person).await?;
    let (mut young, kept) = with_picture(&server, &mut person).await?;
    delete(&mut person, &mut old).await?;
    delete(&mut person, &mut young).await?;
    server.signal("TERM").await?;

    let data = setup.data_dir();
    let index = data.join("sessions.json");
    let mut content: Value = serde_json::from_slice(&fs::read(&index)?)?;
    let deleted = content["deleted"].as_array_mut().context("no list")?;
    for (session, days) in deleted.iter_mut().zip([8, 6]) {
        let at = Timestamp::now() - DAY * days;
        session["deletedAt"] = json!(at.to_string());
    }
    fs::write(&index, content.to_string())?;
    for folder in ["trash", "uploads"] {
        for name in names(&data.join(folder))? {
            age(&data.join(folder).join(name), 400)?;
        }
    }

    let server = setup.start().await?;
    let began = Instant::now();
    while names(&data.join("uploads"))?.len() > 1 {
        ensure!(began.elapsed() < HANG_GUARD, "nothing was removed");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(names(&data.join("uploads"))?, [kept]);
    assert_eq!(names(&data.join("trash"))?.len(), 1);
    let mut person = Person::at(&server, &folder).await?;
    let gone = restore(&mut person, &mut old).await?;
    assert_eq!(gone["code"], "SESSION_NOT_FOUND");
    restore(&mut person, &mut young).await?;
    let back = person.open(&young.session_id).await?;
    assert_eq!(back.entries, young.entries);
    Ok(())
}

#[tokio::test]
async fn clean_keeps_files_that_the_server_did_not_create() -> Result<()> {
    let setup = setup()?;
    let paths = [
        "trash/chapter.tex",
        "uploads/holiday.png",
        "agent/expired/notes/a.txt",
    ];
    for path in paths {
        age(&setup.data_dir().join(path), 400)?;
    }
    let cleaned = setup.run(&["clean"]).await?;
    let said = String::from_utf8(cleaned.stdout)?;
    ensure!(said.ends_with("Removed 0 entries, 0 B.\n"), "{said}");
    for path in paths {
        ensure!(setup.data_dir().join(path).exists(), "{path}");
    }
    Ok(())
}
