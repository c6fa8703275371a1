//! Tests that at most one server writes to a data directory, also when its lock file or the directory is replaced.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testkit::{Conversation, Person, Scene, ServerSetup};

async fn notices(person: &mut Person) -> Result<Vec<String>> {
    let message = person.socket.next_of("notices").await?;
    Ok(serde_json::from_value(message["notices"].clone())?)
}

async fn send(
    person: &mut Person,
    conversation: &mut Conversation,
    content: &str,
) -> Result<Value> {
    let send = json!({"type": "session:send", "content": content});
    person.ask(conversation, send).await
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[tokio::test]
async fn second_server_is_refused_after_the_lock_file_was_removed() -> Result<()> {
    let mut scene = Scene::new().await?;
    let lock = scene.setup.data_dir().join("lock");
    let content = fs::read_to_string(&lock)?;
    for _ in 0..3 {
        fs::remove_file(&lock)?;
        let refused = scene
            .setup
            .start()
            .await
            .err()
            .context("no second server started")?;
        ensure!(refused.to_string().contains("is using"), "{refused}");
        let doctor = scene.setup.run(&["doctor", "--port", "0"]).await?;
        let doctor = text(&doctor.stdout);
        ensure!(doctor.contains("in use by"), "{doctor}");
        // A command waits until the server has written the lock file again, and starts no server of its own.
        let listed = scene.setup.run(&["sessions"]).await?;
        ensure!(listed.status.success(), "{}", text(&listed.stderr));
        assert_eq!(fs::read_to_string(&lock)?, content);
    }
    scene.turn("say kept").await?;
    let scene = scene.restart("KILL").await?;
    assert_eq!(scene.session.said()[1..], ["assistant: kept", "turn ended"]);
    Ok(())
}

#[tokio::test]
async fn server_whose_directory_was_replaced_does_not_write_to_the_new_one() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let first = setup.start().await?;
    let folder = setup.folder("app")?;
    let mut person = Person::at(&first, &folder).await?;
    let mut conversation = person.begin().await?;
    let go_on = setup.home().join("go-on");
    let script = format!("say one\nuntil {}\nsay two", go_on.display());
    person.send(&conversation, &script).await?;
    person
        .until_said(&mut conversation, "assistant: one")
        .await?;
    let mut window = Person::at(&first, &folder).await?;

    let dir = setup.data_dir();
    let moved = setup.home().join("moved");
    fs::rename(&dir, &moved)?;
    let second = setup.start().await?;
    let mut other = Person::at(&second, &setup.folder("other")?).await?;
    let mut other_conversation = other.begin().await?;
    other.turn(&mut other_conversation, "say elsewhere").await?;
    // The first server may have looked before the second one created the directory again.
    let messages = loop {
        let messages = notices(&mut window).await?;
        ensure!(messages.len() == 1, "{messages:?}");
        if messages[0].contains("is another directory now") {
            break messages;
        }
        ensure!(messages[0].contains("was moved or removed"), "{messages:?}");
    };

    // The first server holds back the agent's output and rejects every change.
    fs::write(&go_on, "")?;
    loop {
        let message = person.socket.next().await?;
        conversation.apply(&message)?;
        let is_refusal = message["code"] == "STORE_UNAVAILABLE";
        if is_refusal && message["sessionId"] == conversation.session_id.as_str() {
            let why = message["message"].as_str().context("no reason")?;
            ensure!(why.contains("is another directory now"), "{why}");
            break;
        }
    }
    assert_eq!(conversation.said()[1..], ["assistant: one"]);
    for request in [
        json!({"type": "session:send", "content": "say lost"}),
        json!({"type": "session:rename", "title": "lost"}),
        json!({"type": "session:delete"}),
    ] {
        let refused = person.ask(&mut conversation, request).await?;
        assert_eq!(refused["code"], "STORE_UNAVAILABLE", "{refused}");
        let why = refused["message"].as_str().context("no reason")?;
        ensure!(why.contains("is another directory now"), "{why}");
    }
    let elsewhere = setup.folder("elsewhere")?;
    let add = json!({"type": "project:add", "path": elsewhere});
    assert_eq!(window.socket.ask(add).await?["code"], "STORE_UNAVAILABLE");
    assert_eq!(conversation.said()[1..], ["assistant: one"]);
    let greeting = first.connect_unread().await?.next_of("hello").await?;
    assert_eq!(greeting["notices"], json!(messages));

    // The second server has only its own session.
    second.signal("TERM").await?;
    let sessions = fs::read_to_string(dir.join("sessions.json"))?;
    ensure!(
        !sessions.contains(&conversation.session_id)
            && sessions.contains(&other_conversation.session_id)
    );
    let projects = fs::read_to_string(dir.join("projects.json"))?;
    ensure!(!projects.contains("elsewhere"), "{projects}");
    assert_eq!(fs::read_dir(dir.join("sessions"))?.count(), 1);

    // After its directory is moved back, the first server continues without loss.
    fs::remove_dir_all(&dir)?;
    fs::rename(&moved, &dir)?;
    assert_eq!(notices(&mut window).await?, Vec::<String>::new());
    person.until_turns(&mut conversation, 1).await?;
    assert_eq!(
        conversation.said()[1..],
        ["assistant: onetwo", "turn ended"]
    );
    person.turn(&mut conversation, "say three").await?;
    first.signal("KILL").await?;
    let first = setup.start().await?;
    let mut person = Person::at(&first, &folder).await?;
    let again = person.open(&conversation.session_id).await?;
    assert_eq!(again.said(), conversation.said());
    Ok(())
}

#[tokio::test]
async fn server_stops_writing_when_another_process_has_locked_its_lock_file() -> Result<()> {
    let mut scene = Scene::new().await?;
    // Lock the file only, as a version does that does not lock the directory.
    let path = scene.setup.home().join("lock-of-another");
    fs::write(&path, r#"{"pid":4711,"url":"http://127.0.0.1:1"}"#)?;
    let other = fs::File::open(&path)?;
    other.lock()?;
    let lock = scene.setup.data_dir().join("lock");
    fs::rename(&path, &lock)?;
    let before = tree(&scene.setup.data_dir())?;
    let refused = send(&mut scene.user, &mut scene.session, "say lost").await?;
    assert_eq!(refused["code"], "STORE_UNAVAILABLE", "{refused}");
    let why = refused["message"].as_str().context("no reason")?;
    ensure!(why.contains("(process 4711, http://127.0.0.1:1)"), "{why}");
    // The server still rejects changes after the other process has ended, which may have changed files.
    drop(other);
    fs::remove_file(&lock)?;
    let messages = notices(&mut scene.user).await?;
    ensure!(
        messages[0].contains("has locked the data directory"),
        "{messages:?}"
    );
    let refused = send(&mut scene.user, &mut scene.session, "say lost").await?;
    assert_eq!(refused["code"], "STORE_UNAVAILABLE", "{refused}");
    assert_eq!(scene.session.said(), Vec::<String>::new());
    let is_not_lock = |(path, _): &(String, Vec<u8>)| path != "lock";
    let after: Vec<_> = tree(&scene.setup.data_dir())?
        .into_iter()
        .filter(is_not_lock)
        .collect();
    let before: Vec<_> = before.into_iter().filter(is_not_lock).collect();
    assert_eq!(before, after);
    Ok(())
}

/// Relative path and content of every file below a directory.
fn tree(dir: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let mut found = vec![];
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    let name = path.strip_prefix(dir)?.to_string_lossy().into_owned();
                    found.push((name, fs::read(path)?));
                }
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Data directory with most of the files that a server creates at its top level, and the content of its lock file.
async fn used_data_dir() -> Result<(ServerSetup, String)> {
    let setup = ServerSetup::scripted("")?;
    let server = setup.start().await?;
    let mut person = Person::at(&server, &setup.folder("app")?).await?;
    for after in ["session:archive", "session:delete"] {
        let mut conversation = person.begin().await?;
        person.turn(&mut conversation, "say hello").await?;
        person
            .ask(&mut conversation, json!({"type": after}))
            .await?;
    }
    drop(person);
    server.signal("TERM").await?;
    // A session of the built-in agent, in a scratch folder.
    let sent = setup
        .run(&["send", "--agent", "assistant", "/help"])
        .await?;
    ensure!(sent.status.success(), "{}", text(&sent.stderr));
    let lock = fs::read_to_string(setup.data_dir().join("lock"))?;
    Ok((setup, lock))
}

#[tokio::test]
async fn directory_with_only_known_names_is_accepted_as_data_directory() -> Result<()> {
    let (setup, _) = used_data_dir().await?;
    let dir = setup.data_dir();
    // Without the lock file, the directory is recognised only by the names in it.
    fs::remove_file(dir.join("lock"))?;
    for name in [
        "projects.json.tmp",
        "sessions.json.tmp",
        "token.tmp",
        "audit.1.jsonl",
        "audit.refused.jsonl",
        "audit.refused.1.jsonl",
    ] {
        fs::write(dir.join(name), "")?;
    }
    fs::write(dir.join("sessions.json.unreadable-20260101T000000Z"), "")?;
    let names: Vec<_> = fs::read_dir(&dir)?
        .map(|entry| Ok(entry?.file_name().into_string()))
        .collect::<Result<_>>()?;
    let printed = setup.run(&["token"]).await?;
    ensure!(
        printed.status.success(),
        "{names:?}: {}",
        text(&printed.stderr)
    );
    // A single foreign file causes the rejection.
    fs::write(dir.join("thesis.tex"), "")?;
    let before = tree(&dir)?;
    let refused = setup.run(&["token"]).await?;
    ensure!(text(&refused.stderr).contains("not a Liminal Builder data directory"));
    ensure!(setup.start().await.is_err());
    assert_eq!(tree(&dir)?, before);
    Ok(())
}

#[tokio::test]
async fn lock_file_truncated_at_any_length_does_not_prevent_a_start() -> Result<()> {
    let (setup, whole) = used_data_dir().await?;
    let dir = setup.data_dir();
    fs::write(dir.join("projects.json.tmp"), "{\"ver")?;
    fs::write(dir.join("my notes.txt"), "")?;
    let lock = dir.join("lock");
    for length in 0..=whole.len() {
        for zeros in [0, whole.len() - length] {
            let mut torn = whole.as_bytes()[..length].to_vec();
            torn.extend(std::iter::repeat_n(0, zeros));
            fs::write(&lock, torn)?;
            let printed = setup.run(&["token"]).await?;
            ensure!(
                printed.status.success(),
                "{length} bytes: {}",
                text(&printed.stderr)
            );
        }
    }
    for torn in [&b""[..], &[0; 60], &whole.as_bytes()[..9]] {
        fs::write(&lock, torn)?;
        let server = setup.start().await?;
        let holder: Value = serde_json::from_slice(&fs::read(&lock)?)?;
        assert_eq!(holder["pid"], server.id());
        server.signal("TERM").await?;
    }
    Ok(())
}

/// A power failure right after the start must not lose the data directory or its subdirectories.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn new_directories_are_fsynced_before_the_server_is_ready() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let log = setup.home().join("strace.log");
    let mut by: Vec<std::ffi::OsString> = ["strace", "-D", "-f", "-y", "-qq", "-o"]
        .map(Into::into)
        .into();
    by.push(log.clone().into());
    by.extend(["-e", "trace=mkdir,mkdirat,fsync"].map(Into::into));
    let server = setup.start_by(&by).await?;
    let calls = fs::read_to_string(&log)?;
    server.signal("TERM").await?;
    let home = setup.home().canonicalize()?;
    let dir = home.join(".liminal-builder");
    for (created, parent) in [
        (&dir, &home),
        (&dir.join("sessions"), &dir),
        (&dir.join("uploads"), &dir),
    ] {
        let mut after = calls.lines().skip_while(|call| {
            !call.contains("mkdir")
                || !call.contains(&format!("{}\"", created.display()))
                || !call.ends_with("= 0")
        });
        ensure!(
            after.next().is_some(),
            "{} was not created: {calls}",
            created.display()
        );
        let synced = format!("<{}>)", parent.display());
        let is_synced = after.any(|call| call.contains("fsync(") && call.contains(&synced));
        ensure!(is_synced, "{} was not fsynced: {calls}", created.display());
    }
    Ok(())
}
