//! Flow 3 of the feature spec over the browser socket: messages, cancel, queue, permissions and failures.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use testkit::{Conversation, Person, Scene, ServerSetup};

fn prompts(setup: &ServerSetup) -> usize {
    setup.count_asked("session/prompt")
}

#[tokio::test]
async fn tc_3_7b_cancel_stops_the_turn_and_keeps_its_output() -> Result<()> {
    let mut scene = Scene::new().await?;
    scene.send("say partial\nhang").await?;
    scene.until_said("assistant: partial").await?;
    scene.ask(json!({"type": "session:cancel"})).await?;
    scene.until_turns(1).await?;
    assert_eq!(
        scene.session.said()[1..],
        ["assistant: partial", "turn cancelled"]
    );
    assert_eq!(scene.session.cancelled, ["e2"]);
    assert!(scene.session.complete.is_empty());
    scene.turn("say next").await?;
    assert_eq!(scene.session.said()[4..], ["assistant: next", "turn ended"]);
    Ok(())
}

#[tokio::test]
async fn cancel_without_a_running_turn_is_not_an_error() -> Result<()> {
    let mut scene = Scene::new().await?;
    let answer = scene.ask(json!({"type": "session:cancel"})).await?;
    assert_eq!(answer["type"], "session:done");
    assert_eq!(scene.setup.count_asked("session/cancel"), 0);
    Ok(())
}

#[tokio::test]
async fn agent_that_ignores_a_cancel_is_ended_and_its_turn_interrupted() -> Result<()> {
    let mut scene = Scene::new().await?;
    scene.send("deaf partial").await?;
    scene.until_said("assistant: partial").await?;
    scene.ask(json!({"type": "session:cancel"})).await?;
    scene.until_turns(1).await?;
    assert_eq!(scene.session.said()[2], "turn interrupted");
    Ok(())
}

#[tokio::test]
async fn message_during_a_turn_is_queued_and_sent_when_it_ends() -> Result<()> {
    let mut scene = Scene::new().await?;
    scene.send("say first\nsleep 300").await?;
    scene.until_said("assistant: first").await?;
    for text in ["say second", "say third"] {
        scene.send(text).await?;
    }
    scene
        .until(|seen| seen.info["queue"].as_array().map(Vec::len) == Some(2))
        .await?;
    assert_eq!(prompts(&scene.setup), 1);
    scene.until_turns(3).await?;
    let texts: Vec<_> = scene
        .session
        .said()
        .into_iter()
        .filter(|line| line.starts_with("assistant"))
        .collect();
    assert_eq!(
        texts,
        ["assistant: first", "assistant: second", "assistant: third"]
    );
    assert_eq!(scene.session.info["queue"], json!([]));
    Ok(())
}

#[tokio::test]
async fn queued_message_can_be_edited_and_removed() -> Result<()> {
    let mut scene = Scene::new().await?;
    let go_on = scene.setup.home().join("go-on");
    let first = format!("say first\nuntil {}", go_on.display());
    scene.send(&first).await?;
    scene.until_said("assistant: first").await?;
    for text in ["say wrong", "say never"] {
        scene.send(text).await?;
    }
    scene
        .until(|seen| seen.info["queue"].as_array().map(Vec::len) == Some(2))
        .await?;
    let id = |at: usize, session: &Conversation| session.info["queue"][at]["queueId"].clone();
    let edit = json!({"type": "session:queue-edit", "queueId": id(0, &scene.session), "content": "say right"});
    scene.ask(edit).await?;
    let remove = json!({"type": "session:queue-remove", "queueId": id(1, &scene.session)});
    scene.ask(remove.clone()).await?;
    assert_eq!(scene.ask(remove).await?["code"], "SESSION_BUSY");
    std::fs::write(go_on, "")?;
    scene.until_turns(2).await?;
    assert_eq!(
        scene.session.said()[3..],
        ["user: say right", "assistant: right", "turn ended"]
    );
    Ok(())
}

#[tokio::test]
async fn cancelled_turn_leaves_its_queue_paused_until_it_is_resumed() -> Result<()> {
    let mut scene = Scene::new().await?;
    scene.send("say first\nhang").await?;
    scene.until_said("assistant: first").await?;
    scene.send("say later").await?;
    let waits = |seen: &Conversation| seen.info["queue"].as_array().map(Vec::len) == Some(1);
    scene.until(waits).await?;
    let cancel = json!({"type": "session:cancel"});
    scene.ask(cancel).await?;
    scene.until_turns(1).await?;
    assert_eq!(scene.session.info["queueHeld"], true);
    // A new message does not wait behind the paused ones, and its end does not send them.
    scene.turn("say new").await?;
    assert_eq!(
        scene.session.said()[2..],
        [
            "turn cancelled",
            "user: say new",
            "assistant: new",
            "turn ended"
        ]
    );
    assert!(waits(&scene.session) && scene.session.info["queueHeld"] == true);
    assert_eq!(prompts(&scene.setup), 2);
    let resume = json!({"type": "session:queue-resume"});
    scene.ask(resume).await?;
    scene.until_turns(3).await?;
    assert_eq!(
        scene.session.said()[6..],
        ["user: say later", "assistant: later", "turn ended"]
    );
    assert_eq!(scene.session.info["queueHeld"], false);
    Ok(())
}

#[tokio::test]
async fn queued_message_survives_a_crash_paused() -> Result<()> {
    let mut scene = Scene::new().await?;
    scene.send("say first\nhang").await?;
    scene.until_said("assistant: first").await?;
    scene.send("say later").await?;
    scene
        .until(|seen| seen.info["queue"].as_array().map(Vec::len) == Some(1))
        .await?;
    let mut scene = scene.restart("KILL").await?;
    assert_eq!(scene.session.info["queue"][0]["content"], "say later");
    assert_eq!(scene.session.info["queueHeld"], true);
    assert_eq!(
        scene.session.said()[1..],
        ["assistant: first", "turn interrupted"]
    );
    assert_eq!(prompts(&scene.setup), 1);
    scene.ask(json!({"type": "session:queue-resume"})).await?;
    scene.until_turns(2).await?;
    assert_eq!(
        scene.session.said()[3..],
        ["user: say later", "assistant: later", "turn ended"]
    );
    assert_eq!(prompts(&scene.setup), 2);
    Ok(())
}

#[tokio::test]
async fn message_with_a_known_request_id_runs_once_also_after_a_restart() -> Result<()> {
    let mut scene = Scene::new().await?;
    for _ in 0..3 {
        scene.send_as("say once", "the-same").await?;
    }
    scene.until_turns(1).await?;
    assert_eq!(scene.session.entries[0]["requestId"], "the-same");
    let mut scene = scene.restart("KILL").await?;
    scene.send_as("say once", "the-same").await?;
    scene.turn("say twice").await?;
    assert_eq!(
        scene.session.said()[3..],
        ["user: say twice", "assistant: twice", "turn ended"]
    );
    assert_eq!(prompts(&scene.setup), 2);
    Ok(())
}

#[tokio::test]
async fn request_id_of_a_message_is_returned_only_to_its_sender() -> Result<()> {
    let mut scene = Scene::new().await?;
    let mut other = scene.another_window().await?;
    other.open(&scene.session.session_id).await?;
    scene.send_as("say hi", "mine").await?;
    let seen = other.socket.next_of("session:update").await?;
    assert_eq!(seen["entry"]["content"], "say hi");
    assert_eq!(seen.get("requestId"), None);
    let own = scene.user.socket.next_of("session:update").await?;
    assert_eq!(own["requestId"], "mine");
    scene.session.apply(&own)?;
    Ok(())
}

#[tokio::test]
async fn empty_message_is_rejected() -> Result<()> {
    let mut scene = Scene::new().await?;
    let send = json!({"type": "session:send", "content": " \n\t "});
    assert_eq!(scene.ask(send).await?["code"], "INVALID_MESSAGE");
    assert_eq!(prompts(&scene.setup), 0);
    Ok(())
}

#[tokio::test]
async fn agent_crash_interrupts_only_its_own_turns() -> Result<()> {
    let setup = ServerSetup::scripted("")?.env("CODEX_ACP_CMD", testkit::scripted_agent()?);
    let mut scene = Scene::of(setup).await?;
    let mut running = scene.user.begin().await?;
    let mut idle = scene.user.begin().await?;
    let codex = scene.user.ask_to_create("codex").await?;
    let codex = codex["sessionId"].as_str().context("no id")?.to_owned();
    let mut other_agent = scene.another_window().await?;
    let mut other_conversation = other_agent.open(&codex).await?;
    other_agent
        .send(
            &other_conversation,
            "say there\nsleep 1500\nsay still there",
        )
        .await?;
    other_agent
        .until_said(&mut other_conversation, "assistant: there")
        .await?;

    let mut second = scene.another_window().await?;
    let mut seen = second.open(&running.session_id).await?;
    second.send(&seen, "say going\nhang").await?;
    second.until_said(&mut seen, "assistant: going").await?;
    scene.turn("say boom\ncrash 7").await?;
    assert_eq!(
        scene.session.said()[1..],
        ["assistant: boom", "turn interrupted"]
    );
    let message = scene.session.entries[2]["message"]
        .as_str()
        .context("no reason")?;
    assert!(
        message.contains("Connection to Claude Code lost") && message.contains("exit code 7"),
        "{message}"
    );
    second.until_turns(&mut seen, 1).await?;
    assert_eq!(seen.said()[1..], ["assistant: going", "turn interrupted"]);
    other_agent.until_turns(&mut other_conversation, 1).await?;
    assert_eq!(
        other_conversation.said()[1..],
        ["assistant: therestill there", "turn ended"]
    );

    // The next message attaches the session again.
    scene.user.turn(&mut idle, "say awake").await?;
    assert_eq!(idle.said()[1..], ["assistant: awake", "turn ended"]);
    scene.user.turn(&mut running, "say back").await.ok();
    Ok(())
}

#[tokio::test]
async fn ten_sends_after_a_crash_attach_the_session_once() -> Result<()> {
    let mut scene = Scene::new().await?;
    scene.turn("crash 1").await?;
    let mut others = vec![];
    for _ in 0..10 {
        others.push(scene.another_window().await?);
    }
    for (number, other) in others.iter_mut().enumerate() {
        other.send(&scene.session, &format!("say {number}")).await?;
    }
    scene.until_turns(11).await?;
    assert_eq!(scene.setup.count_asked("session/resume"), 1);
    assert_eq!(prompts(&scene.setup), 11);
    let answers = scene
        .session
        .said()
        .into_iter()
        .filter(|line| line.starts_with("assistant"))
        .count();
    assert_eq!(answers, 10);
    Ok(())
}

#[tokio::test]
async fn turn_running_when_the_server_was_killed_is_interrupted_once() -> Result<()> {
    let mut scene = Scene::new().await?;
    scene
        .send("say partial\ntool t1 execute Build\nhang")
        .await?;
    scene.until_said("tool Build").await?;
    scene.server.signal("KILL").await?;
    for _ in 0..3 {
        let server = scene.setup.start().await?;
        let mut user = Person::at(&server, &scene.setup.folder("app")?).await?;
        assert_eq!(user.list(false).await?[0]["state"], "failed");
        let again = user.open(&scene.session.session_id).await?;
        let expected = ["assistant: partial", "tool Build error", "turn interrupted"];
        assert_eq!(again.said()[1..], expected);
        server.signal("KILL").await?;
    }
    assert_eq!(prompts(&scene.setup), 1);
    Ok(())
}

#[tokio::test]
async fn turn_running_when_the_server_stopped_is_interrupted_with_a_reason() -> Result<()> {
    let mut scene = Scene::new().await?;
    scene.send("say partial\nhang").await?;
    scene.until_said("assistant: partial").await?;
    let scene = scene.restart("TERM").await?;
    assert_eq!(
        scene.session.said()[1..],
        ["assistant: partial", "turn interrupted"]
    );
    assert_eq!(
        scene.session.entries[2]["message"],
        "Liminal Builder was stopped"
    );
    Ok(())
}

#[tokio::test]
async fn turn_outcome_reflects_the_agents_stop_reason() -> Result<()> {
    let mut scene = Scene::new().await?;
    for (script, outcome) in [
        ("stop refusal", "turn refused"),
        ("stop max_tokens", "turn max-tokens"),
        ("stop max_turn_requests", "turn max-turn-requests"),
        ("stop something_new", "turn other"),
        ("fail -32603 the model is overloaded", "turn failed"),
    ] {
        scene.turn(&format!("say hm\n{script}")).await?;
        assert_eq!(scene.session.said().last().context("no end")?, outcome);
    }
    let last = scene.session.entries.last().context("no end")?;
    let message = last["message"].as_str().context("no reason")?;
    assert!(message.contains("the model is overloaded"), "{message}");
    assert_eq!(scene.session.info["state"], "failed");
    Ok(())
}

/// Claude Code puts a generic prefix before the error text; only the text is shown.
#[tokio::test]
async fn turn_failure_shows_only_the_agents_error_text() -> Result<()> {
    let mut scene = Scene::new().await?;
    let fails = "fail -32603 Internal error: API Error: 429";
    scene.turn(fails).await?;
    let last = scene.session.entries.last().context("no end")?;
    assert_eq!(last["message"], "API Error: 429");
    Ok(())
}

/// Codex reports a failure as text without a message id after a message with one, a `systemError` status, and a normal
/// end of the turn.
#[tokio::test]
async fn turn_that_ends_normally_after_a_system_error_counts_as_failed() -> Result<()> {
    let mut scene = Scene::new().await?;
    let says = |id: Value, text: &str| {
        let content = json!({"type": "text", "text": text});
        let mut update = json!({"sessionUpdate": "agent_message_chunk", "content": content});
        if !id.is_null() {
            update["messageId"] = id;
        }
        format!("update {update}\n")
    };
    let status = json!({"codex": {"threadStatus": {"type": "systemError"}}});
    let trouble = json!({"sessionUpdate": "session_info_update", "_meta": status});
    let script = [
        says("m1".into(), "This will not"),
        says("m1".into(), " be said."),
        says(Value::Null, "stream disconnected"),
        format!("update {trouble}"),
    ];
    scene.turn(&script.concat()).await?;
    assert_eq!(
        scene.session.said()[1..],
        [
            "assistant: This will not be said.",
            "assistant: stream disconnected",
            "turn failed"
        ]
    );
    assert_eq!(scene.session.info["state"], "failed");
    scene.turn("say next").await?;
    assert_eq!(scene.session.said()[5..], ["assistant: next", "turn ended"]);
    Ok(())
}

#[tokio::test]
async fn agent_output_after_the_turn_is_kept() -> Result<()> {
    let mut scene = Scene::new().await?;
    scene.turn("say done\nlate one more thing").await?;
    scene.until_said("assistant: one more thing").await?;
    let before = scene.session.clone();
    let scene = scene.restart("KILL").await?;
    assert_eq!(scene.session.entries, before.entries);
    assert_eq!(
        scene.session.said().last().context("no entry")?,
        "assistant: one more thing"
    );
    Ok(())
}

#[tokio::test]
async fn policy_allow_chooses_allow_once() -> Result<()> {
    let mut scene = Scene::new().await?;
    scene.turn("permission t1 Delete everything").await?;
    let answer = &scene.session.said()[2];
    assert!(answer.contains("id-allow_once"), "{answer}");
    scene.server.signal("TERM").await?;
    let audit = std::fs::read_to_string(scene.setup.data_dir().join("audit.jsonl"))?;
    assert!(
        audit.contains("Delete everything") && audit.contains("id-allow_once"),
        "{audit}"
    );
    Ok(())
}

#[tokio::test]
async fn policy_ask_waits_for_the_user_and_cancel_answers_cancelled() -> Result<()> {
    let setup = ServerSetup::scripted("")?.arg("--permissions").arg("ask");
    let mut scene = Scene::of(setup).await?;
    let waiting = |seen: &Conversation| seen.info["state"] == "waiting";
    scene.send("permission t1 Delete it").await?;
    scene.until(waiting).await?;
    let request = scene.session.info["permissions"][0].clone();
    assert_eq!(request["title"], "Delete it");
    assert_eq!(request["options"].as_array().map(Vec::len), Some(3));
    let permit = |option: &str, request: &Value| json!({"type": "session:permit", "permissionId": request["permissionId"], "optionId": option});
    let wrong = scene.ask(permit("id-invented", &request)).await?;
    assert_eq!(wrong["code"], "SESSION_BUSY");
    scene.ask(permit("id-reject_once", &request)).await?;
    scene.until_turns(1).await?;
    assert!(
        scene.session.said()[2].contains("id-reject_once"),
        "{:?}",
        scene.session.said()
    );

    scene.send("permission t2 Delete more").await?;
    scene.until(waiting).await?;
    scene.ask(json!({"type": "session:cancel"})).await?;
    scene.until_turns(2).await?;
    assert!(
        scene
            .session
            .said()
            .iter()
            .any(|line| line.contains("\"cancelled\"")),
        "{:?}",
        scene.session.said()
    );

    scene
        .ask(json!({"type": "session:policy", "policy": "allow"}))
        .await?;
    scene.turn("permission t3 Delete most").await?;
    assert!(
        scene
            .session
            .said()
            .iter()
            .any(|line| line.contains("id-allow_once")),
        "{:?}",
        scene.session.said()
    );
    Ok(())
}

#[tokio::test]
async fn silent_turn_is_shown_as_quiet_and_continues() -> Result<()> {
    let setup = ServerSetup::scripted("")?.env("ACP_PROMPT_TIMEOUT_MS", "100");
    let mut scene = Scene::of(setup).await?;
    scene.send("say one\nsleep 600\nsay two").await?;
    scene
        .until(|seen| seen.info["turn"]["quietSince"].is_string())
        .await?;
    scene.until_turns(1).await?;
    assert_eq!(
        scene.session.said()[1..],
        ["assistant: onetwo", "turn ended"]
    );
    Ok(())
}

#[tokio::test]
async fn silent_agent_is_restarted_if_stall_action_is_restart() -> Result<()> {
    let setup = ServerSetup::scripted("")?
        .env("ACP_PROMPT_TIMEOUT_MS", "100")
        .env("LIMINAL_STALL_ACTION", "restart");
    let mut scene = Scene::of(setup).await?;
    scene.turn("say one\nhang").await?;
    assert_eq!(
        scene.session.said()[1..],
        ["assistant: one", "turn interrupted"]
    );
    Ok(())
}

#[tokio::test]
async fn modes_options_commands_and_usage_are_shown_and_set() -> Result<()> {
    let mut scene = Scene::new().await?;
    scene.turn("usage 5 10").await?;
    assert_eq!(scene.session.info["commands"][0]["name"], "dance");
    assert_eq!(scene.session.info["usage"], json!({"used": 5, "size": 10}));
    assert_eq!(scene.session.info["modes"]["current"], "code");
    scene
        .ask(json!({"type": "session:set-mode", "modeId": "plan"}))
        .await?;
    let option = json!({"type": "session:set-option", "optionId": "model", "value": "deep"});
    scene.ask(option).await?;
    scene
        .until(|seen| {
            seen.info["modes"]["current"] == "plan"
                && seen.info["options"][0]["currentValue"] == "deep"
        })
        .await?;
    assert!(
        scene
            .setup
            .asked()
            .iter()
            .any(|line| line.starts_with("session/set_mode"))
    );
    Ok(())
}

#[tokio::test]
async fn agents_read_and_write_files_only_inside_the_project() -> Result<()> {
    let mut scene = Scene::new().await?;
    let folder = scene.setup.folder("app")?;
    let outside = scene.setup.folder("elsewhere")?;
    let ask = |method: &str, params: Value| format!("ask {method} {params}");
    let inside = format!("{folder}/new/file.txt");
    let write = json!({"path": inside, "content": "from the agent"});
    scene.turn(&ask("fs/write_text_file", write)).await?;
    assert_eq!(std::fs::read_to_string(&inside)?, "from the agent");
    scene
        .turn(&ask("fs/read_text_file", json!({"path": inside})))
        .await?;
    assert!(
        scene.session.said()[4].contains("from the agent"),
        "{:?}",
        scene.session.said()
    );
    for path in [format!("{outside}/x"), format!("{folder}/../elsewhere/x")] {
        let write = json!({"path": path, "content": "no"});
        scene.turn(&ask("fs/write_text_file", write)).await?;
        let lines = scene.session.said();
        assert!(lines[lines.len() - 2].contains("error -32602"), "{lines:?}");
    }
    assert_eq!(std::fs::read_dir(&outside)?.count(), 0);
    let token = scene.setup.data_dir().join("token");
    scene
        .turn(&ask("fs/read_text_file", json!({"path": token})))
        .await?;
    let lines = scene.session.said();
    assert!(lines[lines.len() - 2].contains("error"), "{lines:?}");
    Ok(())
}

#[tokio::test]
async fn command_output_is_shown_live_in_its_tool_call() -> Result<()> {
    let mut scene = Scene::new().await?;
    scene
        .turn("terminal t1 echo live; sleep 0.2; echo more; exit 3")
        .await?;
    // The exit of the command may be reported shortly after the end of the turn.
    scene
        .until(|seen| seen.entries[1]["content"][0]["exit"].is_object())
        .await?;
    let terminal = &scene.session.entries[1]["content"][0];
    assert_eq!(terminal["output"], "live\nmore\n");
    assert_eq!(terminal["exit"]["code"], 3);
    Ok(())
}

#[tokio::test]
async fn agent_environment_has_its_api_keys_but_no_server_token() -> Result<()> {
    let setup = ServerSetup::scripted("")?
        .env("LIMINAL_TOKEN", "0123456789abcdef0123456789abcdef-secret")
        .env("ANTHROPIC_API_KEY", "theirs");
    let mut scene = Scene::of(setup).await?;
    scene.turn("environment").await?;
    let line = &scene.session.said()[1];
    assert!(line.contains("ANTHROPIC_API_KEY=theirs"), "{line}");
    assert!(
        !line.contains("LIMINAL_") && !line.contains("secret"),
        "{line}"
    );
    scene.turn("terminal t1 env").await?;
    let output = scene.session.entries[4]["content"][0]["output"]
        .as_str()
        .context("output")?;
    assert!(
        output.contains("ANTHROPIC_API_KEY=theirs") && !output.contains("secret"),
        "{output}"
    );
    Ok(())
}

#[tokio::test]
async fn upload_slower_than_the_connection_deadline_is_saved() -> Result<()> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    // Longer than any connection lives without a request that extends it.
    const SLOW: std::time::Duration = std::time::Duration::from_secs(22);
    let setup = ServerSetup::new()?;
    let server = setup.start().await?;
    let mut stream = tokio::net::TcpStream::connect(server.address).await?;
    let head = format!(
        "POST /uploads HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Length: 1000\r\n\r\nGIF89a",
        server.address, server.token
    );
    stream.write_all(head.as_bytes()).await?;
    let mut rest = 1000 - "GIF89a".len();
    let begun = std::time::Instant::now();
    while begun.elapsed() < SLOW {
        tokio::time::sleep(SLOW / 100).await;
        stream.write_all(b"x").await?;
        rest -= 1;
    }
    stream.write_all(&vec![b'x'; rest]).await?;
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await?;
    assert_eq!(String::from_utf8_lossy(&answer), "HTTP/1.1 200");
    Ok(())
}

#[tokio::test]
async fn uploaded_image_is_sent_with_a_message() -> Result<()> {
    let mut scene = Scene::new().await?;
    let bearer = format!("Authorization: Bearer {}", scene.server.token);
    let host = format!("Host: {}", scene.server.address);
    let upload = async |headers: &[&str], body: &str| {
        let mut head = vec!["POST /uploads HTTP/1.1".to_owned(), host.clone()];
        head.extend(headers.iter().map(|header| (*header).to_owned()));
        testkit::http(scene.server.address, &head, body).await
    };
    assert_eq!(upload(&[], "GIF89a").await?.status, 401);
    assert_eq!(upload(&[&bearer], "<svg>").await?.status, 415);
    let saved = upload(&[&bearer], "GIF89a").await?;
    assert_eq!(saved.status, 200, "{}", saved.text());
    let id = serde_json::from_str::<Value>(&saved.text())?["id"].clone();
    let shown = scene.server.picture(id.as_str().context("no id")?).await?;
    assert_eq!(shown.header("content-type"), Some("image/gif"));
    assert_eq!(shown.text(), "GIF89a");
    assert_eq!(scene.server.picture("..%2ftoken").await?.status, 404);

    let send = json!({"type": "session:send", "content": "blocks", "images": [id]});
    scene.ask(send).await?;
    scene.until_turns(1).await?;
    assert_eq!(scene.session.entries[0]["images"], json!([id]));
    assert_eq!(scene.session.said()[1], "assistant: text ;image R0lGODlh;");
    let missing = json!({"type": "session:send", "content": "x", "images": ["../token"]});
    assert_eq!(scene.ask(missing).await?["code"], "INVALID_MESSAGE");
    Ok(())
}
