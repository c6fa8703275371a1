//! A disk that is really full or read-only: reading works, a prompt is refused with an error, and everything resumes
//! by itself as soon as writing is possible.

use anyhow::{Result, ensure};
use serde_json::json;
use testkit::{Conversation, Person, Server, ServerSetup, not_run};

use crate::fire_faults::small_disk::SmallDisk;
use crate::fire_faults::workday::send_image;

async fn on_a_small_disk() -> Result<Option<(ServerSetup, SmallDisk, Server)>> {
    let setup = ServerSetup::scripted("")?;
    let Some(disk) = SmallDisk::under(&setup).await? else {
        not_run("mounting a file system is not permitted")?;
        return Ok(None);
    };
    let server = disk.start(&setup).await?;
    Ok(Some((setup, disk, server)))
}

/// Sends a message larger than the free rest of any file's last page, and expects a refusal.
async fn refused(person: &mut Person, talk: &mut Conversation) -> Result<()> {
    let entries = talk.entries.len();
    let content = format!("say {}", "never ".repeat(2000));
    let send = json!({"type": "session:send", "content": content});
    let answer = person.ask(talk, send).await?;
    ensure!(answer["type"] == "error", "not refused: {answer}");
    ensure!(answer["code"] == "STORE_UNAVAILABLE", "{answer}");
    ensure!(
        talk.entries.len() == entries && !talk.is_running(),
        "{:?}",
        talk.said()
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_disk_refuses_prompts_serves_reads_and_recovers_by_itself() -> Result<()> {
    let Some((setup, disk, server)) = on_a_small_disk().await? else {
        return Ok(());
    };
    let folder = setup.folder("app")?;
    let mut person = Person::at(&server, &folder).await?;
    let mut calm = person.begin().await?;
    person.turn(&mut calm, "say all is well").await?;
    // A second session, whose agent answers while the disk is full.
    let mut other = Person::at(&server, &folder).await?;
    let mut held = other.begin().await?;
    let go = setup.home().join("go");
    other
        .send(
            &held,
            &format!("say before\nuntil {}\nhuge 20000\nsay end", go.display()),
        )
        .await?;
    other.until_said(&mut held, "assistant: before").await?;
    disk.fill()?;
    std::fs::write(&go, "")?;
    // The error is sent to subscribers, and to a client that opens the session later.
    let reported = other.socket.next_of("error").await?;
    ensure!(reported["code"] == "STORE_UNAVAILABLE", "{reported}");
    let mut late = Person::at(&server, &folder).await?;
    let seen = late.open(&held.session_id).await?;
    assert_eq!(seen.said(), held.said());
    late.socket.next_of("error").await?;
    // Reads work, changes are refused.
    assert_eq!(late.list(false).await?.len(), 2);
    assert_eq!(late.open(&calm.session_id).await?.entries, calm.entries);
    let prompts = setup.count_asked("session/prompt");
    refused(&mut person, &mut calm).await?;
    assert_eq!(setup.count_asked("session/prompt"), prompts);
    let add = json!({"type": "project:add", "path": setup.folder("other")?});
    assert_eq!(late.socket.ask(add).await?["code"], "STORE_UNAVAILABLE");
    let created = late.ask_to_create("claude-code").await?;
    assert_eq!(created["type"], "error");
    let picture = send_image(&server).await?;
    ensure!(picture.status == 507 && !picture.text().is_empty());
    let uploads = std::fs::read_dir(disk.path("uploads")?);
    assert_eq!(uploads.into_iter().flatten().count(), 0);
    // Recovery as soon as there is space.
    disk.free()?;
    assert_eq!(send_image(&server).await?.status, 200);
    other.until_turns(&mut held, 1).await?;
    let whole = format!("assistant: before{}end", "h".repeat(20_000));
    assert_eq!(held.said()[1..], [whole, "turn ended".to_owned()]);
    person.turn(&mut calm, "say again").await?;
    server.signal("KILL").await?;
    let server = disk.start(&setup).await?;
    let mut person = Person::at(&server, &folder).await?;
    assert_eq!(person.list(false).await?.len(), 2);
    assert_eq!(person.open(&calm.session_id).await?.entries, calm.entries);
    assert_eq!(person.open(&held.session_id).await?.entries, held.entries);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_killed_during_a_turn_starts_on_a_full_disk_and_serves_reads() -> Result<()> {
    let Some((setup, disk, server)) = on_a_small_disk().await? else {
        return Ok(());
    };
    let folder = setup.folder("app")?;
    let mut person = Person::at(&server, &folder).await?;
    let mut talk = person.begin().await?;
    person.send(&talk, "rate 20 10 1000\nhang").await?;
    let streamed = format!("assistant: {}", "f".repeat(200));
    person.until_said(&mut talk, &streamed).await?;
    server.signal("KILL").await?;
    // Make the index outdated and append a torn line to each session file.
    let index = disk.path("sessions.json")?;
    let before = std::fs::read_to_string(&index)?;
    std::fs::write(&index, before.replace("rate 20", "Rate 20"))?;
    for entry in std::fs::read_dir(disk.path("sessions")?)? {
        let mut file = std::fs::OpenOptions::new()
            .append(true)
            .open(entry?.path())?;
        std::io::Write::write_all(&mut file, b"{\"n\":9,\"entry\":{\"ty")?;
    }
    disk.fill()?;
    let server = disk.start(&setup).await?;
    let mut person = Person::at(&server, &folder).await?;
    let mut now = person.open(&talk.session_id).await?;
    talk.is_kept_in(&now)?;
    assert_eq!(
        now.said().last().map(String::as_str),
        Some("turn interrupted")
    );
    refused(&mut person, &mut now).await?;
    disk.free()?;
    person.turn(&mut now, "say again").await?;
    server.signal("KILL").await?;
    let server = disk.start(&setup).await?;
    let mut person = Person::at(&server, &folder).await?;
    assert_eq!(person.open(&talk.session_id).await?.entries, now.entries);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn read_only_disk_serves_every_session_and_recovers_by_itself() -> Result<()> {
    let Some((setup, disk, server)) = on_a_small_disk().await? else {
        return Ok(());
    };
    let folder = setup.folder("app")?;
    let mut person = Person::at(&server, &folder).await?;
    let mut talk = person.begin().await?;
    person.turn(&mut talk, "say one").await?;
    server.signal("TERM").await?;
    // A session that was not opened since the start.
    let server = disk.start(&setup).await?;
    let mut person = Person::at(&server, &folder).await?;
    let mut fresh = person.begin().await?;
    disk.read_only().await?;
    let mut now = person.open(&talk.session_id).await?;
    assert_eq!(now.entries, talk.entries);
    refused(&mut person, &mut now).await?;
    refused(&mut person, &mut fresh).await?;
    disk.writable().await?;
    person.turn(&mut now, "say two").await?;
    person.turn(&mut fresh, "say three").await?;
    server.signal("KILL").await?;
    let server = disk.start(&setup).await?;
    let mut person = Person::at(&server, &folder).await?;
    assert_eq!(person.open(&now.session_id).await?.entries, now.entries);
    assert_eq!(person.open(&fresh.session_id).await?.entries, fresh.entries);
    Ok(())
}
