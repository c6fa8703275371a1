//! Many sessions, many windows, many stored sessions, and wrong clocks: no message is lost.

use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testkit::{Conversation, Person, Server, ServerSetup, count_turns, not_run, times};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hundred_sessions_stream_at_once_complete_and_in_order() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let server = setup.start().await?;
    let mut person = Person::at(&server, &setup.folder("app")?).await?;
    let mut talks = vec![];
    while talks.len() < 100 {
        talks.push(person.begin().await?);
    }
    // In the long form each session streams for ten minutes.
    let (count, rate) = (times(40, 12_000), times(200, 20));
    for talk in &talks {
        let script = format!("rate {count} 10 {rate}\ntool t1 read Look\ntool-done t1 ok\nsay end");
        person.send(talk, &script).await?;
    }
    let begun = Instant::now();
    let positions: std::collections::HashMap<String, usize> = talks
        .iter()
        .enumerate()
        .map(|(at, talk)| (talk.session_id.clone(), at))
        .collect();
    let (mut over, mut messages) = (0, 0);
    while over < talks.len() {
        let message = person.socket.next().await?;
        messages += 1;
        let id = message["sessionId"].as_str().unwrap_or_default();
        if let Some(at) = positions.get(id) {
            let was_over = is_over(&talks[*at]);
            talks[*at].apply(&message)?;
            over += usize::from(!was_over && is_over(&talks[*at]));
        }
    }
    let whole = format!("assistant: {}", "f".repeat(10 * count));
    for talk in &talks {
        let said = [&whole, "tool Look complete", "assistant: end", "turn ended"];
        ensure!(talk.said()[1..] == said, "{:?}", talk.session_id);
    }
    let chunks = 100 * count;
    eprintln!(
        "{chunks} chunks in {messages} messages and {:?}, none lost",
        begun.elapsed()
    );
    Ok(())
}

fn is_over(talk: &Conversation) -> bool {
    count_turns(talk) == 1 && !talk.is_running()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_reconnecting_windows_see_the_same_conversation() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let server = setup.start().await?;
    let folder = setup.folder("app")?;
    let mut first = Person::at(&server, &folder).await?;
    let mut talk = first.begin().await?;
    let mut windows = vec![];
    for _ in 0..20 {
        let mut window = Person::at(&server, &folder).await?;
        let theirs = window.open(&talk.session_id).await?;
        windows.push((window, theirs));
    }
    // Longer than the windows need on any machine; the turn is cancelled afterwards.
    first
        .send(&talk, &"rate 50 10 1000\n".repeat(20_000))
        .await?;
    let (mut returns, wanted) = (0, times(60, 2000));
    while returns < wanted {
        for (window, theirs) in &mut windows {
            let until = Instant::now() + Duration::from_millis(2);
            while let Ok(message) =
                tokio::time::timeout_at(until.into(), window.socket.next()).await
            {
                theirs.apply(&message?)?;
            }
            // The connection is dropped without a close frame, then replaced.
            *window = Person::at(&server, &folder).await?;
            window.resume(theirs).await?;
            returns += 1;
        }
        let until = Instant::now() + Duration::from_millis(5);
        while let Ok(message) = tokio::time::timeout_at(until.into(), first.socket.next()).await {
            talk.apply(&message?)?;
        }
    }
    ensure!(
        count_turns(&talk) == 0,
        "the turn ended before all windows had reconnected"
    );
    first
        .ask(&mut talk, json!({"type": "session:cancel"}))
        .await?;
    first.until_turns(&mut talk, 1).await?;
    for (window, theirs) in &mut windows {
        window.until_turns(theirs, 1).await?;
        ensure!(theirs.entries == talk.entries, "{:?}", theirs.said());
    }
    eprintln!("{returns} windows reconnected during the turn");
    Ok(())
}

/// Stops the server, lets `change` edit the session index, and starts the server again.
async fn with_index(
    setup: &ServerSetup,
    server: Server,
    change: impl FnOnce(&mut Value) -> Result<()>,
) -> Result<Server> {
    server.signal("TERM").await?;
    let path = setup.data_dir().join("sessions.json");
    let mut index: Value = serde_json::from_slice(&std::fs::read(&path)?)?;
    change(&mut index)?;
    std::fs::write(&path, index.to_string())?;
    setup.start().await
}

/// Median duration of 15 turns.
async fn usual_turn(person: &mut Person, talk: &mut Conversation) -> Result<Duration> {
    let mut took = vec![];
    for _ in 0..15 {
        let begun = Instant::now();
        person.turn(talk, "say hello").await?;
        took.push(begun.elapsed());
    }
    took.sort();
    Ok(took[took.len() / 2])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_sessions_are_listed_and_do_not_slow_a_turn() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let folder = setup.folder("app")?;
    let server = setup.start().await?;
    let mut person = Person::at(&server, &folder).await?;
    let mut talk = person.begin().await?;
    let before = usual_turn(&mut person, &mut talk).await?;
    let count = times(1000, 10_000);
    let sessions = setup.data_dir().join("sessions");
    let server = with_index(&setup, server, |index| {
        let template = index["sessions"][0].clone();
        let key = template["key"].as_str().context("expected a key")?;
        let transcript = std::fs::read_to_string(sessions.join(format!("{key}.jsonl")))?;
        let id = template["id"].as_str().context("expected an id")?;
        for number in 1..count {
            let (other_key, other_id) = (format!("{key}-{number}"), format!("{id}-{number}"));
            let mut meta = template.clone();
            meta["key"] = json!(other_key);
            meta["id"] = json!(other_id);
            index["sessions"]
                .as_array_mut()
                .context("expected a list")?
                .push(meta);
            let text = transcript
                .replacen(key, &other_key, 1)
                .replacen(id, &other_id, 1);
            std::fs::write(sessions.join(format!("{other_key}.jsonl")), text)?;
        }
        Ok(())
    })
    .await?;
    let mut person = Person::at(&server, &folder).await?;
    let begun = Instant::now();
    let listed = person.list(false).await?;
    let took = begun.elapsed();
    assert_eq!(listed.len(), count);
    for item in listed.iter().step_by(count / 10) {
        let opened = person
            .open(item["id"].as_str().context("expected an id")?)
            .await?;
        ensure!(opened.entries == talk.entries, "{:?}", opened.said());
    }
    let mut talk = person.open(&talk.session_id).await?;
    let during = usual_turn(&mut person, &mut talk).await?;
    eprintln!("{count} sessions listed in {took:?}; a turn {before:?} -> {during:?}");
    // The whole machine may have become slower, so measure again with one session.
    let small = ServerSetup::scripted("")?;
    let (folder, server) = (small.folder("app")?, small.start().await?);
    let mut person = Person::at(&server, &folder).await?;
    let mut talk = person.begin().await?;
    let share = before.max(usual_turn(&mut person, &mut talk).await?);
    ensure!(during < share * 4, "{share:?} -> {during:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clock_that_was_ten_years_off_loses_nothing() -> Result<()> {
    const TEN_YEARS: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
    for year in ["2016", "2036"] {
        let setup = ServerSetup::scripted("")?;
        let folder = setup.folder("app")?;
        let server = setup.start().await?;
        let mut person = Person::at(&server, &folder).await?;
        let mut talk = person.begin().await?;
        person
            .turn(&mut talk, "say one\ntool t1 read Look\ntool-done t1 ok")
            .await?;
        let mut cut = person.begin().await?;
        person.send(&cut, "say two\nhang").await?;
        person.until_said(&mut cut, "assistant: two").await?;
        server.signal("KILL").await?;
        // As if everything had been written at that time: the timestamps in the files and their modification times.
        let this_year = &talk.entries[0]["timestamp"]
            .as_str()
            .context("expected a time")?[..4];
        let now = SystemTime::now();
        let then = if year < this_year {
            now - TEN_YEARS
        } else {
            now + TEN_YEARS
        };
        let dir = setup.data_dir();
        let mut files = vec![dir.join("sessions.json"), dir.join("projects.json")];
        for entry in std::fs::read_dir(dir.join("sessions"))? {
            files.push(entry?.path());
        }
        for path in files {
            let text = std::fs::read_to_string(&path)?;
            std::fs::write(
                &path,
                text.replace(&format!("\"{this_year}-"), &format!("\"{year}-")),
            )?;
            std::fs::File::options()
                .append(true)
                .open(&path)?
                .set_modified(then)?;
        }
        let server = setup.start().await?;
        let mut person = Person::at(&server, &folder).await?;
        assert_eq!(person.list(false).await?.len(), 2);
        let mut now = person.open(&talk.session_id).await?;
        assert_eq!(now.said(), talk.said());
        let mut end = person.open(&cut.session_id).await?;
        assert_eq!(end.said()[..2], cut.said()[..]);
        assert_eq!(
            end.said().last().map(String::as_str),
            Some("turn interrupted")
        );
        for seen in [&mut now, &mut end] {
            person.turn(seen, "say again").await?;
            ensure!(
                seen.said()
                    .ends_with(&["assistant: again".into(), "turn ended".into()])
            );
            let spent = seen.entries.last().context("expected an end")?["durationMs"].as_u64();
            ensure!(spent.is_some_and(|spent| spent < 60_000), "{spent:?}");
        }
        server.signal("KILL").await?;
        let server = setup.start().await?;
        let mut person = Person::at(&server, &folder).await?;
        assert_eq!(person.open(&talk.session_id).await?.entries, now.entries);
        assert_eq!(person.open(&cut.session_id).await?.entries, end.entries);
        assert_eq!(person.list(false).await?.len(), 2);
        for id in [&talk.session_id, &cut.session_id] {
            let mut again = person.open(id).await?;
            person.turn(&mut again, "say once more").await?;
        }
        server.signal("TERM").await?;
        let server = setup.start().await?;
        for item in Person::at(&server, &folder).await?.list(false).await? {
            let active = item["lastActiveAt"].as_str().context("expected a time")?;
            ensure!(active.starts_with(this_year), "{active}");
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clock_jump_of_ten_years_during_a_turn_disturbs_nothing() -> Result<()> {
    let Some(library) = fake_clock() else {
        return not_run("libfaketime is not installed");
    };
    let setup = ServerSetup::scripted("")?;
    let clock = setup.home().join("clock");
    std::fs::write(&clock, "+0")?;
    let setup = setup
        .env("LD_PRELOAD", library)
        .env("FAKETIME_TIMESTAMP_FILE", &clock)
        .env("FAKETIME_NO_CACHE", "1")
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    let folder = setup.folder("app")?;
    let server = setup.start().await?;
    let mut person = Person::at(&server, &folder).await?;
    let mut talk = person.begin().await?;
    person.turn(&mut talk, "say before").await?;
    for jump in ["+10y", "-10y", "+0"] {
        let turns = count_turns(&talk);
        person
            .send(&talk, "say begun \nrate 100 10 100\nsay ended")
            .await?;
        person.until_said(&mut talk, "assistant: begun ").await?;
        std::fs::write(&clock, jump)?;
        person.until_turns(&mut talk, turns + 1).await?;
        let said = talk.said();
        let (last, answer) = (&said[said.len() - 1], &said[said.len() - 2]);
        ensure!(last == "turn ended", "{jump}: {said:?}");
        ensure!(answer.ends_with("ended"), "{jump}: {answer}");
        ensure!(answer.len() > 1000, "{jump}: {answer}");
        let spent = talk.entries.last().context("expected an end")?["durationMs"].as_u64();
        ensure!(
            spent.is_some_and(|spent| spent < 60_000),
            "{jump}: {spent:?}"
        );
        // A new client can connect, sees the same entries, and can start a session.
        let mut other = Person::at(&server, &folder).await?;
        assert_eq!(other.open(&talk.session_id).await?.entries, talk.entries);
        let mut new = other.begin().await?;
        other.turn(&mut new, "say new").await?;
    }
    let listed = person.list(false).await?.len();
    assert_eq!(listed, 4);
    server.signal("KILL").await?;
    let server = setup.start().await?;
    let mut person = Person::at(&server, &folder).await?;
    assert_eq!(person.open(&talk.session_id).await?.entries, talk.entries);
    assert_eq!(person.list(false).await?.len(), listed);
    Ok(())
}

/// Path of the preloaded library that replaces the system clock (Debian package `libfaketime`).
fn fake_clock() -> Option<PathBuf> {
    let folders = std::fs::read_dir("/usr/lib").ok()?.filter_map(Result::ok);
    let mut libraries = folders.map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"));
    libraries.find(|library| library.is_file())
}
