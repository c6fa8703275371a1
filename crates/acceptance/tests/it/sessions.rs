//! Flow 2 of the feature spec over the browser socket: sessions are created, listed, opened and persisted.

use anyhow::{Context, Result, ensure};
use serde_json::json;
use testkit::{Conversation, Person, Scene, ServerSetup};

#[tokio::test]
async fn tc_2_1a_sessions_are_listed_with_metadata_without_asking_the_agent() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let server = setup.start().await?;
    let folder = setup.folder("app")?;
    let mut person = Person::at(&server, &folder).await?;
    for name in ["one", "two", "three"] {
        let mut conversation = person.begin().await?;
        person
            .turn(&mut conversation, &format!("say {name}"))
            .await?;
    }
    server.signal("TERM").await?;
    let before = setup.asked().len();
    let server = setup.start().await?;
    let mut person = Person::at(&server, &folder).await?;
    let listed = person.list(false).await?;
    assert_eq!(listed.len(), 3);
    for session in &listed {
        assert!(
            session["title"]
                .as_str()
                .context("no title")?
                .starts_with("say ")
        );
        assert_eq!(session["cliType"], "claude-code");
        session["lastActiveAt"].as_str().context("no time")?;
    }
    assert_eq!(setup.asked().len(), before);
    Ok(())
}

#[tokio::test]
async fn tc_2_1b_most_recently_active_session_comes_first() -> Result<()> {
    let mut scene = Scene::new().await?;
    let mut second = scene.user.begin().await?;
    scene.turn("say a").await?;
    scene.user.turn(&mut second, "say b").await?;
    assert_eq!(scene.user.titles().await?, ["say b", "say a"]);
    // Opening a session does not count as activity; sending does.
    scene.user.open(&scene.session.session_id).await?;
    assert_eq!(scene.user.titles().await?, ["say b", "say a"]);
    scene.turn("say again").await?;
    assert_eq!(scene.user.titles().await?, ["say a", "say b"]);
    Ok(())
}

#[tokio::test]
async fn tc_2_1c_new_project_has_no_sessions() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let server = setup.start().await?;
    let mut person = Person::at(&server, &setup.folder("app")?).await?;
    assert!(person.list(false).await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn tc_2_2a_new_session_is_listed_and_answers() -> Result<()> {
    let mut scene = Scene::new().await?;
    assert!(
        scene.session.session_id.starts_with("claude-code:s"),
        "{}",
        scene.session.session_id
    );
    assert_eq!(scene.user.titles().await?, ["New Session"]);
    assert!(scene.session.entries.is_empty());
    scene.turn("say Hello\nsay , you.").await?;
    let expected = [
        "user: say Hello\nsay , you.",
        "assistant: Hello, you.",
        "turn ended",
    ];
    assert_eq!(scene.session.said(), expected);
    assert_eq!(scene.session.complete, ["e2"]);
    Ok(())
}

#[tokio::test]
async fn new_session_sends_events_to_its_creator_without_an_open() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let server = setup.start().await?;
    let mut person = Person::at(&server, &setup.folder("app")?).await?;
    let id = person.create().await?;
    let mut conversation = Conversation::new(&id);
    person.turn(&mut conversation, "say hi").await?;
    assert_eq!(
        conversation.said(),
        ["user: say hi", "assistant: hi", "turn ended"]
    );
    Ok(())
}

#[tokio::test]
async fn new_session_and_its_title_are_announced_to_every_window() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let server = setup.start().await?;
    let mut other = server.connect().await?;
    let mut person = Person::at(&server, &setup.folder("app")?).await?;
    let mut conversation = person.begin().await?;
    let created = other.next_of("session:created").await?;
    assert_eq!(created["sessionId"], conversation.session_id);
    assert_eq!(created.get("requestId"), None);
    person
        .turn(&mut conversation, "say   the first thing")
        .await?;
    let titled = other.next_of("session:title-updated").await?;
    assert_eq!(titled["title"], "say the first thing");
    person
        .turn(&mut conversation, "say the second thing")
        .await?;
    assert_eq!(person.titles().await?, ["say the first thing"]);
    Ok(())
}

#[tokio::test]
async fn completed_turn_updates_the_last_activity_and_one_title_is_sent() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let server = setup.start().await?;
    let mut other = server.connect().await?;
    let mut person = Person::at(&server, &setup.folder("app")?).await?;
    let mut conversation = person.begin().await?;
    for text in ["one", "two"] {
        let prompt = format!("sleep 20\nsay {text}");
        person.turn(&mut conversation, &prompt).await?;
    }
    let (mut titles, mut times) = (0, vec![]);
    // Each turn is running, then idle.
    while times.len() < 4 {
        let message = other.next().await?;
        match message["type"].as_str() {
            Some("session:title-updated") => titles += 1,
            Some("session:state") => {
                let at = message["lastActiveAt"].as_str().context("no time")?;
                times.push((message["state"].clone(), at.to_owned()));
            }
            _ => {}
        }
    }
    assert_eq!(titles, 1);
    let states: Vec<_> = times.iter().map(|(state, _)| state.clone()).collect();
    assert_eq!(states, ["running", "idle", "running", "idle"]);
    assert!(times.is_sorted_by(|a, b| a.1 <= b.1), "{times:?}");
    for turn in times.chunks(2) {
        assert!(turn[0].1 < turn[1].1, "{times:?}");
    }
    Ok(())
}

#[tokio::test]
async fn tc_2_2f_failed_session_creation_leaves_no_files() -> Result<()> {
    let setup = ServerSetup::scripted("refuse-new")?;
    let server = setup.start().await?;
    let mut person = Person::at(&server, &setup.folder("app")?).await?;
    let refused = person.ask_to_create("claude-code").await?;
    assert_eq!(refused["code"], "AGENT_PROTOCOL_ERROR");
    let message = refused["message"].as_str().context("no text")?;
    assert!(message.starts_with("Could not create session"), "{message}");
    assert!(message.contains("no new sessions today"), "{message}");
    assert!(person.list(false).await?.is_empty());
    assert_eq!(
        std::fs::read_dir(setup.data_dir().join("sessions"))?.count(),
        0
    );
    Ok(())
}

#[tokio::test]
async fn session_with_an_unknown_agent_or_project_is_rejected() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let server = setup.start().await?;
    let mut person = Person::at(&server, &setup.folder("app")?).await?;
    let refused = person.ask_to_create("no-such-agent").await?;
    assert_eq!(refused["code"], "AGENT_UNAVAILABLE");
    person.project_id = "not-there".to_owned();
    let refused = person.ask_to_create("claude-code").await?;
    assert_eq!(refused["code"], "PROJECT_NOT_FOUND");
    Ok(())
}

#[tokio::test]
async fn sign_in_error_names_the_agents_sign_in_methods() -> Result<()> {
    let setup = ServerSetup::scripted("auth")?;
    let server = setup.start().await?;
    let mut person = Person::at(&server, &setup.folder("app")?).await?;
    let refused = person.ask_to_create("claude-code").await?;
    let message = refused["message"].as_str().context("no text")?;
    assert!(message.contains("sign in"), "{message}");
    assert!(message.contains("Log in"), "{message}");
    Ok(())
}

#[tokio::test]
async fn tc_2_3a_opened_session_shows_its_whole_history() -> Result<()> {
    let mut scene = Scene::new().await?;
    scene
        .turn("think hm\nsay one\ntool t1 read Read it\ntool-done t1 fine\nsay two")
        .await?;
    scene.turn("plan a|b\nsay three").await?;
    let mut other = scene.another_window().await?;
    let seen = other.open(&scene.session.session_id).await?;
    assert_eq!(seen.entries, scene.session.entries);
    assert_eq!(seen.seq, scene.session.seq);
    let expected = [
        "user: think hm\nsay one\ntool t1 read Read it\ntool-done t1 fine\nsay two",
        "thinking: hm",
        "assistant: one",
        "tool Read it complete",
        "assistant: two",
        "turn ended",
        "user: plan a|b\nsay three",
        "plan",
        "assistant: three",
        "turn ended",
    ];
    assert_eq!(seen.said(), expected);
    Ok(())
}

#[tokio::test]
async fn tail_has_the_last_entries_and_pages_have_the_others() -> Result<()> {
    let mut scene = Scene::new().await?;
    for number in 0..5 {
        scene.turn(&format!("say {number}")).await?;
    }
    let open = json!({"type": "session:open", "tail": 4});
    let tail = scene.user.ask(&mut scene.session.clone(), open).await?;
    assert_eq!((&tail["first"], &tail["total"]), (&json!(11), &json!(15)));
    assert_eq!(tail["entries"], json!(scene.session.entries[11..]));
    let page = json!({"type": "session:page", "before": 11, "limit": 6});
    let page = scene.user.ask(&mut scene.session.clone(), page).await?;
    assert_eq!(page["first"], 5);
    assert_eq!(page["entries"], json!(scene.session.entries[5..11]));
    Ok(())
}

#[tokio::test]
async fn tc_2_4a_archived_session_leaves_the_list_until_unarchived() -> Result<()> {
    let mut scene = Scene::new().await?;
    scene.turn("say keep me").await?;
    let archived = scene.ask(json!({"type": "session:archive"})).await?;
    assert_eq!(archived["type"], "session:archived");
    assert!(scene.user.list(false).await?.is_empty());
    assert_eq!(scene.user.list(true).await?[0]["title"], "say keep me");
    let back = scene.ask(json!({"type": "session:unarchive"})).await?;
    assert_eq!(back["session"]["title"], "say keep me");
    assert_eq!(scene.user.titles().await?, ["say keep me"]);
    Ok(())
}

#[tokio::test]
async fn tc_2_4c_sessions_created_by_other_clients_are_not_listed() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let server = setup.start().await?;
    // A session of the agent in the same folder that this server did not create.
    let folder = setup.folder("app")?;
    std::fs::write(setup.home().join("agent-memory/of-another-client"), "")?;
    std::fs::create_dir_all(setup.home().join("folders"))?;
    std::fs::write(setup.home().join("folders/of-another-client"), &folder)?;
    let mut person = Person::at(&server, &folder).await?;
    person.create().await?;
    assert_eq!(person.list(false).await?.len(), 1);
    let forged = json!({"type": "session:open", "sessionId": "claude-code:of-another-client"});
    assert_eq!(
        person.socket.ask(forged).await?["code"],
        "SESSION_NOT_FOUND"
    );
    Ok(())
}

#[tokio::test]
async fn forged_session_ids_are_not_found() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let server = setup.start().await?;
    let mut person = Person::at(&server, &setup.folder("app")?).await?;
    let long = "x".repeat(100_000);
    for id in [
        "",
        "claude-code:",
        "../../token",
        "claude-code:../../token",
        "\0",
        &long,
    ] {
        for kind in ["open", "cancel", "archive", "delete", "restore"] {
            let message = json!({"type": format!("session:{kind}"), "sessionId": id});
            assert_eq!(
                person.socket.ask(message).await?["code"],
                "SESSION_NOT_FOUND"
            );
        }
        let send = json!({"type": "session:send", "sessionId": id, "content": "hi"});
        assert_eq!(person.socket.ask(send).await?["code"], "SESSION_NOT_FOUND");
    }
    Ok(())
}

#[tokio::test]
async fn tc_2_5a_sessions_and_their_archived_state_survive_a_restart() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let server = setup.start().await?;
    let folder = setup.folder("app")?;
    let mut person = Person::at(&server, &folder).await?;
    for name in ["one", "two", "three"] {
        let mut conversation = person.begin().await?;
        person
            .turn(&mut conversation, &format!("say {name}"))
            .await?;
        if name == "two" {
            person
                .ask(&mut conversation, json!({"type": "session:archive"}))
                .await?;
        }
    }
    server.signal("KILL").await?;
    let server = setup.start().await?;
    let mut person = Person::at(&server, &folder).await?;
    assert_eq!(person.titles().await?, ["say three", "say one"]);
    assert_eq!(person.list(true).await?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn tc_2_5b_history_survives_a_restart_and_the_agent_resumes_it() -> Result<()> {
    let mut scene = Scene::new().await?;
    scene.turn("say before").await?;
    let before = scene.session.clone();
    let mut scene = scene.restart("TERM").await?;
    assert_eq!(scene.session.entries, before.entries);
    scene.turn("say after").await?;
    let expected = ["user: say after", "assistant: after", "turn ended"];
    assert_eq!(scene.session.said()[3..], expected);
    assert_eq!(scene.setup.count_asked("session/new"), 1);
    assert_eq!(scene.setup.count_asked("session/resume"), 1);
    Ok(())
}

#[tokio::test]
async fn messages_added_by_another_client_appear_after_a_restart() -> Result<()> {
    let mut scene = Scene::with_script("no-resume").await?;
    let folder = scene.setup.folder("app")?;
    scene.turn("say here").await?;
    scene.server.signal("TERM").await?;

    // Another client continues the same session.
    let agent_id = scene
        .session
        .session_id
        .strip_prefix("claude-code:")
        .context("not a session of Claude Code")?;
    let memory = scene.setup.home().join("agent-memory").join(agent_id);
    let chunk = |kind: &str, text: &str| {
        json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}}).to_string()
    };
    let mut remembered = std::fs::read_to_string(&memory)?;
    remembered.push_str(&chunk("user_message_chunk", "in the terminal"));
    remembered.push('\n');
    remembered.push_str(&chunk("agent_message_chunk", "there too"));
    remembered.push('\n');
    std::fs::write(&memory, remembered)?;

    let server = scene.setup.start().await?;
    let mut person = Person::at(&server, &folder).await?;
    let mut again = person.open(&scene.session.session_id).await?;
    assert_eq!(again.entries, scene.session.entries);
    person
        .until_said(&mut again, "assistant: there too")
        .await?;
    let expected = [
        "user: say here",
        "assistant: here",
        "turn ended",
        "user: in the terminal",
        "assistant: there too",
    ];
    assert_eq!(again.said(), expected);
    person.turn(&mut again, "say and on").await?;
    let mut other = Person::at(&server, &folder).await?;
    assert_eq!(
        other.open(&scene.session.session_id).await?.entries,
        again.entries
    );
    Ok(())
}

#[tokio::test]
async fn history_stays_readable_if_the_agent_cannot_load_sessions() -> Result<()> {
    let mut scene = Scene::with_script("no-load no-resume").await?;
    scene.turn("say before").await?;
    let before = scene.session.clone();
    let mut scene = scene.restart("TERM").await?;
    assert_eq!(scene.session.entries, before.entries);
    scene.turn("say after").await?;
    assert_eq!(
        scene.session.said()[3..],
        ["user: say after", "turn failed"]
    );
    let message = scene.session.entries[4]["message"]
        .as_str()
        .context("no reason")?;
    assert!(message.contains("start a new session"), "{message}");
    Ok(())
}

#[tokio::test]
async fn title_set_by_the_user_is_kept() -> Result<()> {
    let mut scene = Scene::new().await?;
    let folder = scene.setup.folder("app")?;
    let rename = json!({"type": "session:rename", "title": "  My \n own  "});
    let renamed = scene.ask(rename).await?;
    assert_eq!(renamed["title"], "My own");
    scene.turn("say hello").await?;
    assert_eq!(scene.user.titles().await?, ["My own"]);
    let empty = json!({"type": "session:rename", "title": " \n "});
    assert_eq!(scene.ask(empty).await?["code"], "INVALID_MESSAGE");
    scene.server.signal("KILL").await?;
    let server = scene.setup.start().await?;
    assert_eq!(
        Person::at(&server, &folder).await?.titles().await?,
        ["My own"]
    );
    Ok(())
}

#[tokio::test]
async fn deleted_session_moves_to_the_trash_and_can_be_restored() -> Result<()> {
    let mut scene = Scene::new().await?;
    let folder = scene.setup.folder("app")?;
    scene.turn("say precious").await?;
    let deleted = scene.ask(json!({"type": "session:delete"})).await?;
    assert_eq!(deleted["type"], "session:deleted");
    assert!(scene.user.list(false).await?.is_empty());
    assert_eq!(
        std::fs::read_dir(scene.setup.data_dir().join("trash"))?.count(),
        1
    );
    let gone = scene.ask(json!({"type": "session:open"})).await?;
    assert_eq!(gone["code"], "SESSION_NOT_FOUND");
    // The agent receives `session/close`.
    let deadline = std::time::Instant::now() + testkit::HANG_GUARD;
    while scene.setup.count_asked("session/close") == 0 {
        assert!(std::time::Instant::now() < deadline);
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }

    scene.server.signal("TERM").await?;
    let server = scene.setup.start().await?;
    let mut person = Person::at(&server, &folder).await?;
    assert!(person.list(false).await?.is_empty());
    let back = person
        .ask(&mut scene.session, json!({"type": "session:restore"}))
        .await?;
    assert_eq!(back["session"]["title"], "say precious");
    assert_eq!(
        person.open(&scene.session.session_id).await?.entries,
        scene.session.entries
    );
    Ok(())
}

#[tokio::test]
async fn sessions_of_a_removed_project_return_when_it_is_added_again() -> Result<()> {
    let mut scene = Scene::new().await?;
    let folder = scene.setup.folder("app")?;
    scene.turn("say hello").await?;
    let remove = json!({"type": "project:remove", "projectId": scene.user.project_id});
    scene.user.socket.ask(remove).await?;
    let mut person = scene.another_window().await?;
    assert_eq!(person.titles().await?, ["say hello"]);
    // Also after the project list was lost: sessions belong to the folder.
    scene.server.signal("TERM").await?;
    std::fs::remove_file(scene.setup.data_dir().join("projects.json"))?;
    let server = scene.setup.start().await?;
    let mut person = Person::at(&server, &folder).await?;
    assert_eq!(person.titles().await?, ["say hello"]);
    Ok(())
}

#[tokio::test]
async fn lost_or_corrupt_index_is_rebuilt_from_transcripts_with_a_notice() -> Result<()> {
    let mut scene = Scene::new().await?;
    let folder = scene.setup.folder("app")?;
    scene.turn("say one").await?;
    let mut second = scene.user.begin().await?;
    scene.user.turn(&mut second, "say two").await?;
    scene
        .user
        .ask(&mut second, json!({"type": "session:archive"}))
        .await?;
    scene.server.signal("TERM").await?;
    let index = scene.setup.data_dir().join("sessions.json");
    for broken in [None, Some("{\"version\":1,\"sessions\":[{\"id\"")] {
        match broken {
            None => std::fs::remove_file(&index)?,
            Some(text) => std::fs::write(&index, text)?,
        }
        let server = scene.setup.start().await?;
        let mut socket = server.connect_unread().await?;
        let hello = socket.next_of("hello").await?;
        let notices = hello["notices"].to_string();
        assert!(notices.contains("2 sessions"), "{notices}");
        let mut person = Person::at(&server, &folder).await?;
        assert_eq!(person.titles().await?, ["say one"]);
        assert_eq!(person.list(true).await?[0]["title"], "say two");
        assert_eq!(
            person.open(&scene.session.session_id).await?.entries,
            scene.session.entries
        );
        server.signal("TERM").await?;
    }
    Ok(())
}

#[tokio::test]
async fn session_without_a_saved_title_is_titled_by_its_first_message() -> Result<()> {
    let mut scene = Scene::new().await?;
    let folder = scene.setup.folder("app")?;
    scene.turn("say the first thing").await?;
    scene.server.signal("KILL").await?;
    // As after a kill between writing the message and writing the title.
    std::fs::remove_file(scene.setup.data_dir().join("sessions.json"))?;
    for entry in std::fs::read_dir(scene.setup.data_dir().join("sessions"))? {
        let path = entry?.path();
        let lines = std::fs::read_to_string(&path)?;
        let kept = lines
            .lines()
            .filter(|line| !line.starts_with("{\"note\":{\"title\""));
        let kept: String = kept.map(|line| format!("{line}\n")).collect();
        ensure!(kept.len() < lines.len(), "there was no title in {lines}");
        std::fs::write(&path, kept)?;
    }
    let server = scene.setup.start().await?;
    let mut person = Person::at(&server, &folder).await?;
    assert_eq!(person.titles().await?, ["say the first thing"]);
    Ok(())
}

#[tokio::test]
async fn ten_sessions_created_and_prompted_at_once_all_succeed() -> Result<()> {
    let setup = ServerSetup::scripted("slow-start:200")?;
    let server = setup.start().await?;
    let folder = setup.folder("app")?;
    Person::at(&server, &folder).await?;
    let tasks = (0..10).map(|number| {
        let (server, folder) = (&server, folder.clone());
        async move {
            let mut person = Person::at(server, &folder).await?;
            let mut conversation = person.begin().await?;
            person
                .turn(&mut conversation, &format!("say {number}"))
                .await?;
            assert_eq!(conversation.said()[1], format!("assistant: {number}"));
            anyhow::Ok(conversation.session_id)
        }
    });
    let ids = futures_util::future::try_join_all(tasks).await?;
    let different: std::collections::BTreeSet<_> = ids.iter().collect();
    assert_eq!(different.len(), 10);
    assert_eq!(
        Person::at(&server, &folder).await?.list(false).await?.len(),
        10
    );
    assert_eq!(setup.count_asked("initialize"), 1);
    Ok(())
}

#[tokio::test]
async fn unusable_session_ids_of_an_agent_are_refused_and_leave_nothing() -> Result<()> {
    for (id, problem) in [
        ("missing", "it is missing"),
        ("long", "it is too long"),
        ("control", "it contains control characters"),
        ("path", "it looks like a path"),
    ] {
        let setup = ServerSetup::scripted(&format!("session-id:{id}"))?;
        let server = setup.start().await?;
        let mut user = Person::at(&server, &setup.folder("app")?).await?;
        let refused = user.ask_to_create("claude-code").await?;
        assert_eq!(refused["code"], "AGENT_PROTOCOL_ERROR", "{id}");
        let message = refused["message"].as_str().context("no text")?;
        assert!(message.contains(problem), "{message}");
        assert!(user.list(false).await?.is_empty());
        let files = std::fs::read_dir(setup.data_dir().join("sessions"))?;
        assert_eq!(files.count(), 0, "{id}");
    }
    Ok(())
}

#[tokio::test]
async fn session_id_of_an_open_session_is_refused_for_a_new_one() -> Result<()> {
    let mut scene = Scene::with_script("session-id:same").await?;
    let refused = scene.user.ask_to_create("claude-code").await?;
    assert_eq!(refused["code"], "AGENT_PROTOCOL_ERROR");
    let message = refused["message"].as_str().context("no text")?;
    assert!(message.contains("another session has it"), "{message}");
    scene.user.turn(&mut scene.session, "say mine").await?;
    assert_eq!(
        scene.session.said(),
        ["user: say mine", "assistant: mine", "turn ended"]
    );
    Ok(())
}

#[tokio::test]
async fn unreadable_transcript_is_reported_and_opens_once_it_is_readable() -> Result<()> {
    let mut scene = Scene::new().await?;
    scene.user.turn(&mut scene.session, "say kept").await?;
    let id = scene.session.session_id.clone();
    let folder = scene.setup.data_dir().join("sessions");
    scene.server.signal("TERM").await?;
    let transcript = std::fs::read_dir(&folder)?
        .next()
        .context("no transcript")??
        .path();
    let aside = folder.join("aside");
    std::fs::rename(&transcript, &aside)?;
    std::fs::create_dir(&transcript)?;
    let server = scene.setup.start().await?;
    let mut user = Person::at(&server, &scene.setup.folder("app")?).await?;
    let open = json!({"type": "session:open", "sessionId": id});
    for _ in 0..2 {
        let refused = user.socket.ask(open.clone()).await?;
        let message = refused["message"].as_str().context("no text")?;
        assert!(message.starts_with("Could not load session"), "{message}");
    }
    std::fs::remove_dir(&transcript)?;
    std::fs::rename(&aside, &transcript)?;
    let session = user.open(&id).await?;
    assert_eq!(
        session.said(),
        ["user: say kept", "assistant: kept", "turn ended"]
    );
    Ok(())
}
