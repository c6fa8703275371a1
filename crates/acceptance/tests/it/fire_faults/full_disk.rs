//! A disk that is really full, or may really not be written: reading works, a prompt is refused aloud, and everything
//! goes on by itself as soon as it can.

use anyhow::{Result, ensure};
use serde_json::json;
use testkit::{Conversation, Person, Server, ServerSetup, not_run};

use crate::fire_faults::setup;
use crate::fire_faults::small_disk::SmallDisk;
use crate::fire_faults::story::send_picture;

async fn on_a_small_disk() -> Result<Option<(ServerSetup, SmallDisk, Server)>> {
    let setup = setup()?;
    let Some(disk) = SmallDisk::under(&setup).await? else {
        not_run("no file system may be mounted here")?;
        return Ok(None);
    };
    let server = disk.start(&setup).await?;
    Ok(Some((setup, disk, server)))
}

/// Sends more than fits into what a page of a file has left, and is refused.
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
async fn on_a_full_disk_reading_works_a_prompt_is_refused_and_it_goes_on_by_itself() -> Result<()> {
    let Some((setup, disk, server)) = on_a_small_disk().await? else {
        return Ok(());
    };
    let folder = setup.folder("app")?;
    let mut person = Person::at(&server, &folder).await?;
    let mut calm = person.begin().await?;
    person.turn(&mut calm, "say all is well").await?;
    // One whose answer comes when there is no room for it.
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
    // Said to whoever watches, and to whoever comes.
    let told = other.socket.next_of("error").await?;
    ensure!(told["code"] == "STORE_UNAVAILABLE", "{told}");
    let mut late = Person::at(&server, &folder).await?;
    let seen = late.open(&held.session_id).await?;
    assert_eq!(seen.said(), held.said());
    late.socket.next_of("error").await?;
    // What changes nothing works, what would is refused.
    assert_eq!(late.list(false).await?.len(), 2);
    assert_eq!(late.open(&calm.session_id).await?.entries, calm.entries);
    let prompts = setup.count_asked("session/prompt");
    refused(&mut person, &mut calm).await?;
    assert_eq!(setup.count_asked("session/prompt"), prompts);
    let add = json!({"type": "project:add", "path": setup.folder("other")?});
    assert_eq!(late.socket.ask(add).await?["code"], "STORE_UNAVAILABLE");
    let created = late.ask_to_create("claude-code").await?;
    assert_eq!(created["type"], "error");
    let picture = send_picture(&server).await?;
    ensure!(picture.status == 507 && !picture.text().is_empty());
    let uploads = std::fs::read_dir(disk.path("uploads")?);
    assert_eq!(uploads.into_iter().flatten().count(), 0);
    // As soon as there is room.
    disk.free()?;
    assert_eq!(send_picture(&server).await?.status, 200);
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
async fn a_server_that_died_in_mid_turn_starts_on_a_full_disk_and_shows_what_there_is() -> Result<()>
{
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
    // The index is behind, and the last line is torn.
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
async fn on_a_read_only_disk_every_session_can_be_read_and_it_goes_on_by_itself() -> Result<()> {
    let Some((setup, disk, server)) = on_a_small_disk().await? else {
        return Ok(());
    };
    let folder = setup.folder("app")?;
    let mut person = Person::at(&server, &folder).await?;
    let mut talk = person.begin().await?;
    person.turn(&mut talk, "say one").await?;
    server.signal("TERM").await?;
    // One that nobody has opened since the start.
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
