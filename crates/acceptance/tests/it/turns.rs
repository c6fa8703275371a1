//! Flow 3 of the feature spec over the browser socket: messages, cancel, queue, permissions and failures.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use testkit::{Conversation, Person, Server, ServerSetup};

fn setup(script: &str) -> Result<ServerSetup> {
    ServerSetup::new()?.with_scripted_agent(script)
}

async fn one(script: &str) -> Result<(ServerSetup, Server, Person, Conversation)> {
    let setup = setup(script)?;
    begin(setup).await
}

async fn begin(setup: ServerSetup) -> Result<(ServerSetup, Server, Person, Conversation)> {
    let server = setup.start().await?;
    let mut person = Person::at(&server, &setup.folder("app")?).await?;
    let conversation = person.begin().await?;
    Ok((setup, server, person, conversation))
}

fn prompts(setup: &ServerSetup) -> usize {
    setup.count_asked("session/prompt")
}

#[tokio::test]
async fn tc_3_7b_cancel_stops_the_turn_and_keeps_its_output() -> Result<()> {
    let (_setup, _server, mut person, mut conversation) = one("").await?;
    person.send(&conversation, "say partial\nhang").await?;
    person
        .until_said(&mut conversation, "assistant: partial")
        .await?;
    person
        .ask(&mut conversation, json!({"type": "session:cancel"}))
        .await?;
    person.until_turns(&mut conversation, 1).await?;
    assert_eq!(
        conversation.said()[1..],
        ["assistant: partial", "turn cancelled"]
    );
    assert_eq!(conversation.cancelled, ["e2"]);
    assert!(conversation.complete.is_empty());
    person.turn(&mut conversation, "say next").await?;
    assert_eq!(conversation.said()[4..], ["assistant: next", "turn ended"]);
    Ok(())
}

#[tokio::test]
async fn cancel_without_a_running_turn_is_not_an_error() -> Result<()> {
    let (setup, _server, mut person, mut conversation) = one("").await?;
    let answer = person
        .ask(&mut conversation, json!({"type": "session:cancel"}))
        .await?;
    assert_eq!(answer["type"], "session:done");
    assert_eq!(setup.count_asked("session/cancel"), 0);
    Ok(())
}

#[tokio::test]
async fn agent_that_ignores_a_cancel_is_ended_and_its_turn_interrupted() -> Result<()> {
    let (_setup, _server, mut person, mut conversation) = one("").await?;
    person.send(&conversation, "deaf partial").await?;
    person
        .until_said(&mut conversation, "assistant: partial")
        .await?;
    person
        .ask(&mut conversation, json!({"type": "session:cancel"}))
        .await?;
    person.until_turns(&mut conversation, 1).await?;
    assert_eq!(conversation.said()[2], "turn interrupted");
    Ok(())
}

#[tokio::test]
async fn message_during_a_turn_is_queued_and_sent_when_it_ends() -> Result<()> {
    let (setup, _server, mut person, mut conversation) = one("").await?;
    person.send(&conversation, "say first\nsleep 300").await?;
    person
        .until_said(&mut conversation, "assistant: first")
        .await?;
    for text in ["say second", "say third"] {
        person.send(&conversation, text).await?;
    }
    person
        .until(&mut conversation, |seen| {
            seen.info["queue"].as_array().map(Vec::len) == Some(2)
        })
        .await?;
    assert_eq!(prompts(&setup), 1);
    person.until_turns(&mut conversation, 3).await?;
    let texts: Vec<_> = conversation
        .said()
        .into_iter()
        .filter(|line| line.starts_with("assistant"))
        .collect();
    assert_eq!(
        texts,
        ["assistant: first", "assistant: second", "assistant: third"]
    );
    assert_eq!(conversation.info["queue"], json!([]));
    Ok(())
}

#[tokio::test]
async fn queued_message_can_be_edited_and_removed() -> Result<()> {
    let (setup, _server, mut person, mut conversation) = one("").await?;
    let go_on = setup.home().join("go-on");
    let first = format!("say first\nuntil {}", go_on.display());
    person.send(&conversation, &first).await?;
    person
        .until_said(&mut conversation, "assistant: first")
        .await?;
    for text in ["say wrong", "say never"] {
        person.send(&conversation, text).await?;
    }
    person
        .until(&mut conversation, |seen| {
            seen.info["queue"].as_array().map(Vec::len) == Some(2)
        })
        .await?;
    let id =
        |at: usize, conversation: &Conversation| conversation.info["queue"][at]["queueId"].clone();
    let edit = json!({"type": "session:queue-edit", "queueId": id(0, &conversation), "content": "say right"});
    person.ask(&mut conversation, edit).await?;
    let remove = json!({"type": "session:queue-remove", "queueId": id(1, &conversation)});
    person.ask(&mut conversation, remove.clone()).await?;
    assert_eq!(
        person.ask(&mut conversation, remove).await?["code"],
        "SESSION_BUSY"
    );
    std::fs::write(go_on, "")?;
    person.until_turns(&mut conversation, 2).await?;
    assert_eq!(
        conversation.said()[3..],
        ["user: say right", "assistant: right", "turn ended"]
    );
    Ok(())
}

#[tokio::test]
async fn cancelled_turn_leaves_its_queue_paused_until_it_is_resumed() -> Result<()> {
    let (setup, _server, mut person, mut conversation) = one("").await?;
    person.send(&conversation, "say first\nhang").await?;
    person
        .until_said(&mut conversation, "assistant: first")
        .await?;
    person.send(&conversation, "say later").await?;
    let waits = |seen: &Conversation| seen.info["queue"].as_array().map(Vec::len) == Some(1);
    person.until(&mut conversation, waits).await?;
    let cancel = json!({"type": "session:cancel"});
    person.ask(&mut conversation, cancel).await?;
    person.until_turns(&mut conversation, 1).await?;
    assert_eq!(conversation.info["queueHeld"], true);
    // A new message does not wait behind the paused ones, and its end does not send them.
    person.turn(&mut conversation, "say new").await?;
    assert_eq!(
        conversation.said()[2..],
        [
            "turn cancelled",
            "user: say new",
            "assistant: new",
            "turn ended"
        ]
    );
    assert!(waits(&conversation) && conversation.info["queueHeld"] == true);
    assert_eq!(prompts(&setup), 2);
    let resume = json!({"type": "session:queue-resume"});
    person.ask(&mut conversation, resume).await?;
    person.until_turns(&mut conversation, 3).await?;
    assert_eq!(
        conversation.said()[6..],
        ["user: say later", "assistant: later", "turn ended"]
    );
    assert_eq!(conversation.info["queueHeld"], false);
    Ok(())
}

#[tokio::test]
async fn queued_message_survives_a_crash_paused() -> Result<()> {
    let (setup, server, mut person, mut conversation) = one("").await?;
    person.send(&conversation, "say first\nhang").await?;
    person
        .until_said(&mut conversation, "assistant: first")
        .await?;
    person.send(&conversation, "say later").await?;
    person
        .until(&mut conversation, |seen| {
            seen.info["queue"].as_array().map(Vec::len) == Some(1)
        })
        .await?;
    server.signal("KILL").await?;
    let server = setup.start().await?;
    let mut person = Person::at(&server, &setup.folder("app")?).await?;
    let mut conversation = person.open(&conversation.session_id).await?;
    assert_eq!(conversation.info["queue"][0]["content"], "say later");
    assert_eq!(conversation.info["queueHeld"], true);
    assert_eq!(
        conversation.said()[1..],
        ["assistant: first", "turn interrupted"]
    );
    assert_eq!(prompts(&setup), 1);
    person
        .ask(&mut conversation, json!({"type": "session:queue-resume"}))
        .await?;
    person.until_turns(&mut conversation, 2).await?;
    assert_eq!(
        conversation.said()[3..],
        ["user: say later", "assistant: later", "turn ended"]
    );
    assert_eq!(prompts(&setup), 2);
    Ok(())
}

#[tokio::test]
async fn message_with_a_known_request_id_runs_once_also_after_a_restart() -> Result<()> {
    let (setup, server, mut person, mut conversation) = one("").await?;
    for _ in 0..3 {
        person
            .send_as(&conversation, "say once", "the-same")
            .await?;
    }
    person.until_turns(&mut conversation, 1).await?;
    assert_eq!(conversation.entries[0]["requestId"], "the-same");
    server.signal("KILL").await?;
    let server = setup.start().await?;
    let mut person = Person::at(&server, &setup.folder("app")?).await?;
    let mut again = person.open(&conversation.session_id).await?;
    person.send_as(&again, "say once", "the-same").await?;
    person.turn(&mut again, "say twice").await?;
    assert_eq!(
        again.said()[3..],
        ["user: say twice", "assistant: twice", "turn ended"]
    );
    assert_eq!(prompts(&setup), 2);
    Ok(())
}

#[tokio::test]
async fn request_id_of_a_message_is_returned_only_to_its_sender() -> Result<()> {
    let (setup, server, mut person, mut conversation) = one("").await?;
    let mut other = Person::at(&server, &setup.folder("app")?).await?;
    other.open(&conversation.session_id).await?;
    person.send_as(&conversation, "say hi", "mine").await?;
    let seen = other.socket.next_of("session:update").await?;
    assert_eq!(seen["entry"]["content"], "say hi");
    assert_eq!(seen.get("requestId"), None);
    let own = person.socket.next_of("session:update").await?;
    assert_eq!(own["requestId"], "mine");
    conversation.apply(&own)?;
    Ok(())
}

#[tokio::test]
async fn empty_message_is_rejected() -> Result<()> {
    let (setup, _server, mut person, mut conversation) = one("").await?;
    let send = json!({"type": "session:send", "content": " \n\t "});
    assert_eq!(
        person.ask(&mut conversation, send).await?["code"],
        "INVALID_MESSAGE"
    );
    assert_eq!(prompts(&setup), 0);
    Ok(())
}

#[tokio::test]
async fn agent_crash_interrupts_only_its_own_turns() -> Result<()> {
    let setup = setup("")?;
    let setup = setup.env("CODEX_ACP_CMD", testkit::scripted_agent()?);
    let (setup, server, mut person, mut crashing) = begin(setup).await?;
    let mut running = person.begin().await?;
    let mut idle = person.begin().await?;
    let codex = person.ask_to_create("codex").await?;
    let codex = codex["sessionId"].as_str().context("no id")?.to_owned();
    let mut other_agent = Person::at(&server, &setup.folder("app")?).await?;
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

    let mut second = Person::at(&server, &setup.folder("app")?).await?;
    let mut seen = second.open(&running.session_id).await?;
    second.send(&seen, "say going\nhang").await?;
    second.until_said(&mut seen, "assistant: going").await?;
    person.turn(&mut crashing, "say boom\ncrash 7").await?;
    assert_eq!(
        crashing.said()[1..],
        ["assistant: boom", "turn interrupted"]
    );
    let message = crashing.entries[2]["message"]
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
    person.turn(&mut idle, "say awake").await?;
    assert_eq!(idle.said()[1..], ["assistant: awake", "turn ended"]);
    person.turn(&mut running, "say back").await.ok();
    Ok(())
}

#[tokio::test]
async fn ten_sends_after_a_crash_attach_the_session_once() -> Result<()> {
    let (setup, server, mut person, mut conversation) = one("").await?;
    person.turn(&mut conversation, "crash 1").await?;
    let mut others = vec![];
    for _ in 0..10 {
        others.push(Person::at(&server, &setup.folder("app")?).await?);
    }
    for (number, other) in others.iter_mut().enumerate() {
        other.send(&conversation, &format!("say {number}")).await?;
    }
    person.until_turns(&mut conversation, 11).await?;
    assert_eq!(setup.count_asked("session/resume"), 1);
    assert_eq!(prompts(&setup), 11);
    let answers = conversation
        .said()
        .into_iter()
        .filter(|line| line.starts_with("assistant"))
        .count();
    assert_eq!(answers, 10);
    Ok(())
}

#[tokio::test]
async fn turn_running_when_the_server_was_killed_is_interrupted_once() -> Result<()> {
    let (setup, server, mut person, mut conversation) = one("").await?;
    person
        .send(&conversation, "say partial\ntool t1 execute Build\nhang")
        .await?;
    person.until_said(&mut conversation, "tool Build").await?;
    server.signal("KILL").await?;
    for _ in 0..3 {
        let server = setup.start().await?;
        let mut person = Person::at(&server, &setup.folder("app")?).await?;
        assert_eq!(person.list(false).await?[0]["state"], "failed");
        let again = person.open(&conversation.session_id).await?;
        let expected = ["assistant: partial", "tool Build error", "turn interrupted"];
        assert_eq!(again.said()[1..], expected);
        server.signal("KILL").await?;
    }
    assert_eq!(prompts(&setup), 1);
    Ok(())
}

#[tokio::test]
async fn turn_running_when_the_server_stopped_is_interrupted_with_a_reason() -> Result<()> {
    let (setup, server, mut person, mut conversation) = one("").await?;
    person.send(&conversation, "say partial\nhang").await?;
    person
        .until_said(&mut conversation, "assistant: partial")
        .await?;
    server.signal("TERM").await?;
    let server = setup.start().await?;
    let mut person = Person::at(&server, &setup.folder("app")?).await?;
    let again = person.open(&conversation.session_id).await?;
    assert_eq!(
        again.said()[1..],
        ["assistant: partial", "turn interrupted"]
    );
    assert_eq!(again.entries[2]["message"], "Liminal Builder was stopped");
    Ok(())
}

#[tokio::test]
async fn turn_outcome_reflects_the_agents_stop_reason() -> Result<()> {
    let (_setup, _server, mut person, mut conversation) = one("").await?;
    for (script, outcome) in [
        ("stop refusal", "turn refused"),
        ("stop max_tokens", "turn max-tokens"),
        ("stop max_turn_requests", "turn max-turn-requests"),
        ("stop something_new", "turn other"),
        ("fail -32603 the model is overloaded", "turn failed"),
    ] {
        person
            .turn(&mut conversation, &format!("say hm\n{script}"))
            .await?;
        assert_eq!(conversation.said().last().context("no end")?, outcome);
    }
    let last = conversation.entries.last().context("no end")?;
    let message = last["message"].as_str().context("no reason")?;
    assert!(message.contains("the model is overloaded"), "{message}");
    assert_eq!(conversation.info["state"], "failed");
    Ok(())
}

/// Claude Code puts a generic prefix before the error text; only the text is shown.
#[tokio::test]
async fn turn_failure_shows_only_the_agents_error_text() -> Result<()> {
    let (_setup, _server, mut person, mut conversation) = one("").await?;
    let fails = "fail -32603 Internal error: API Error: 429";
    person.turn(&mut conversation, fails).await?;
    let last = conversation.entries.last().context("no end")?;
    assert_eq!(last["message"], "API Error: 429");
    Ok(())
}

/// Codex reports a failure as text without a message id after a message with one, a `systemError` status, and a normal
/// end of the turn.
#[tokio::test]
async fn turn_that_ends_normally_after_a_system_error_counts_as_failed() -> Result<()> {
    let (_setup, _server, mut person, mut conversation) = one("").await?;
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
    person.turn(&mut conversation, &script.concat()).await?;
    assert_eq!(
        conversation.said()[1..],
        [
            "assistant: This will not be said.",
            "assistant: stream disconnected",
            "turn failed"
        ]
    );
    assert_eq!(conversation.info["state"], "failed");
    person.turn(&mut conversation, "say next").await?;
    assert_eq!(conversation.said()[5..], ["assistant: next", "turn ended"]);
    Ok(())
}

#[tokio::test]
async fn agent_output_after_the_turn_is_kept() -> Result<()> {
    let (setup, server, mut person, mut conversation) = one("").await?;
    person
        .turn(&mut conversation, "say done\nlate one more thing")
        .await?;
    person
        .until_said(&mut conversation, "assistant: one more thing")
        .await?;
    server.signal("KILL").await?;
    let server = setup.start().await?;
    let mut person = Person::at(&server, &setup.folder("app")?).await?;
    let again = person.open(&conversation.session_id).await?;
    assert_eq!(again.entries, conversation.entries);
    assert_eq!(
        again.said().last().context("no entry")?,
        "assistant: one more thing"
    );
    Ok(())
}

#[tokio::test]
async fn policy_allow_chooses_allow_once() -> Result<()> {
    let (setup, server, mut person, mut conversation) = one("").await?;
    person
        .turn(&mut conversation, "permission t1 Delete everything")
        .await?;
    let answer = &conversation.said()[2];
    assert!(answer.contains("id-allow_once"), "{answer}");
    server.signal("TERM").await?;
    let audit = std::fs::read_to_string(setup.data_dir().join("audit.jsonl"))?;
    assert!(
        audit.contains("Delete everything") && audit.contains("id-allow_once"),
        "{audit}"
    );
    Ok(())
}

#[tokio::test]
async fn policy_ask_waits_for_the_user_and_cancel_answers_cancelled() -> Result<()> {
    let setup = setup("")?.arg("--permissions").arg("ask");
    let (_setup, _server, mut person, mut conversation) = begin(setup).await?;
    let waiting = |seen: &Conversation| seen.info["state"] == "waiting";
    person
        .send(&conversation, "permission t1 Delete it")
        .await?;
    person.until(&mut conversation, waiting).await?;
    let request = conversation.info["permissions"][0].clone();
    assert_eq!(request["title"], "Delete it");
    assert_eq!(request["options"].as_array().map(Vec::len), Some(3));
    let permit = |option: &str, request: &Value| json!({"type": "session:permit", "permissionId": request["permissionId"], "optionId": option});
    let wrong = person
        .ask(&mut conversation, permit("id-invented", &request))
        .await?;
    assert_eq!(wrong["code"], "SESSION_BUSY");
    person
        .ask(&mut conversation, permit("id-reject_once", &request))
        .await?;
    person.until_turns(&mut conversation, 1).await?;
    assert!(
        conversation.said()[2].contains("id-reject_once"),
        "{:?}",
        conversation.said()
    );

    person
        .send(&conversation, "permission t2 Delete more")
        .await?;
    person.until(&mut conversation, waiting).await?;
    person
        .ask(&mut conversation, json!({"type": "session:cancel"}))
        .await?;
    person.until_turns(&mut conversation, 2).await?;
    assert!(
        conversation
            .said()
            .iter()
            .any(|line| line.contains("\"cancelled\"")),
        "{:?}",
        conversation.said()
    );

    person
        .ask(
            &mut conversation,
            json!({"type": "session:policy", "policy": "allow"}),
        )
        .await?;
    person
        .turn(&mut conversation, "permission t3 Delete most")
        .await?;
    assert!(
        conversation
            .said()
            .iter()
            .any(|line| line.contains("id-allow_once")),
        "{:?}",
        conversation.said()
    );
    Ok(())
}

#[tokio::test]
async fn silent_turn_is_shown_as_quiet_and_continues() -> Result<()> {
    let setup = setup("")?.env("ACP_PROMPT_TIMEOUT_MS", "100");
    let (_setup, _server, mut person, mut conversation) = begin(setup).await?;
    person
        .send(&conversation, "say one\nsleep 600\nsay two")
        .await?;
    person
        .until(&mut conversation, |seen| {
            seen.info["turn"]["quietSince"].is_string()
        })
        .await?;
    person.until_turns(&mut conversation, 1).await?;
    assert_eq!(
        conversation.said()[1..],
        ["assistant: onetwo", "turn ended"]
    );
    Ok(())
}

#[tokio::test]
async fn silent_agent_is_restarted_if_stall_action_is_restart() -> Result<()> {
    let setup = setup("")?
        .env("ACP_PROMPT_TIMEOUT_MS", "100")
        .env("LIMINAL_STALL_ACTION", "restart");
    let (_setup, _server, mut person, mut conversation) = begin(setup).await?;
    person.turn(&mut conversation, "say one\nhang").await?;
    assert_eq!(
        conversation.said()[1..],
        ["assistant: one", "turn interrupted"]
    );
    Ok(())
}

#[tokio::test]
async fn modes_options_commands_and_usage_are_shown_and_set() -> Result<()> {
    let (setup, _server, mut person, mut conversation) = one("").await?;
    person.turn(&mut conversation, "usage 5 10").await?;
    assert_eq!(conversation.info["commands"][0]["name"], "dance");
    assert_eq!(conversation.info["usage"], json!({"used": 5, "size": 10}));
    assert_eq!(conversation.info["modes"]["current"], "code");
    person
        .ask(
            &mut conversation,
            json!({"type": "session:set-mode", "modeId": "plan"}),
        )
        .await?;
    let option = json!({"type": "session:set-option", "optionId": "model", "value": "deep"});
    person.ask(&mut conversation, option).await?;
    person
        .until(&mut conversation, |seen| {
            seen.info["modes"]["current"] == "plan"
                && seen.info["options"][0]["currentValue"] == "deep"
        })
        .await?;
    assert!(
        setup
            .asked()
            .iter()
            .any(|line| line.starts_with("session/set_mode"))
    );
    Ok(())
}

#[tokio::test]
async fn agents_read_and_write_files_only_inside_the_project() -> Result<()> {
    let (setup, _server, mut person, mut conversation) = one("").await?;
    let folder = setup.folder("app")?;
    let outside = setup.folder("elsewhere")?;
    let ask = |method: &str, params: Value| format!("ask {method} {params}");
    let inside = format!("{folder}/new/file.txt");
    let write = json!({"path": inside, "content": "from the agent"});
    person
        .turn(&mut conversation, &ask("fs/write_text_file", write))
        .await?;
    assert_eq!(std::fs::read_to_string(&inside)?, "from the agent");
    person
        .turn(
            &mut conversation,
            &ask("fs/read_text_file", json!({"path": inside})),
        )
        .await?;
    assert!(
        conversation.said()[4].contains("from the agent"),
        "{:?}",
        conversation.said()
    );
    for path in [format!("{outside}/x"), format!("{folder}/../elsewhere/x")] {
        let write = json!({"path": path, "content": "no"});
        person
            .turn(&mut conversation, &ask("fs/write_text_file", write))
            .await?;
        let lines = conversation.said();
        assert!(lines[lines.len() - 2].contains("error -32602"), "{lines:?}");
    }
    assert_eq!(std::fs::read_dir(&outside)?.count(), 0);
    let token = setup.data_dir().join("token");
    person
        .turn(
            &mut conversation,
            &ask("fs/read_text_file", json!({"path": token})),
        )
        .await?;
    let lines = conversation.said();
    assert!(lines[lines.len() - 2].contains("error"), "{lines:?}");
    Ok(())
}

#[tokio::test]
async fn command_output_is_shown_live_in_its_tool_call() -> Result<()> {
    let (_setup, _server, mut person, mut conversation) = one("").await?;
    person
        .turn(
            &mut conversation,
            "terminal t1 echo live; sleep 0.2; echo more; exit 3",
        )
        .await?;
    // The exit of the command may be reported shortly after the end of the turn.
    person
        .until(&mut conversation, |seen| {
            seen.entries[1]["content"][0]["exit"].is_object()
        })
        .await?;
    let terminal = &conversation.entries[1]["content"][0];
    assert_eq!(terminal["output"], "live\nmore\n");
    assert_eq!(terminal["exit"]["code"], 3);
    Ok(())
}

#[tokio::test]
async fn agent_environment_has_its_api_keys_but_no_server_token() -> Result<()> {
    let setup = setup("")?
        .env("LIMINAL_TOKEN", "0123456789abcdef0123456789abcdef-secret")
        .env("ANTHROPIC_API_KEY", "theirs");
    let (_setup, _server, mut person, mut conversation) = begin(setup).await?;
    person.turn(&mut conversation, "environment").await?;
    let line = &conversation.said()[1];
    assert!(line.contains("ANTHROPIC_API_KEY=theirs"), "{line}");
    assert!(
        !line.contains("LIMINAL_") && !line.contains("secret"),
        "{line}"
    );
    person.turn(&mut conversation, "terminal t1 env").await?;
    let output = conversation.entries[4]["content"][0]["output"]
        .as_str()
        .context("output")?;
    assert!(
        output.contains("ANTHROPIC_API_KEY=theirs") && !output.contains("secret"),
        "{output}"
    );
    Ok(())
}

#[tokio::test]
async fn uploaded_image_is_sent_with_a_message() -> Result<()> {
    let (_setup, server, mut person, mut conversation) = one("").await?;
    let bearer = format!("Authorization: Bearer {}", server.token);
    let host = format!("Host: {}", server.address);
    let upload = async |headers: &[&str], body: &str| {
        let mut head = vec!["POST /uploads HTTP/1.1".to_owned(), host.clone()];
        head.extend(headers.iter().map(|header| (*header).to_owned()));
        testkit::http(server.address, &head, body).await
    };
    assert_eq!(upload(&[], "GIF89a").await?.status, 401);
    assert_eq!(upload(&[&bearer], "<svg>").await?.status, 415);
    let saved = upload(&[&bearer], "GIF89a").await?;
    assert_eq!(saved.status, 200, "{}", saved.text());
    let id = serde_json::from_str::<Value>(&saved.text())?["id"].clone();
    let shown = server
        .get(&format!("/uploads/{}", id.as_str().context("no id")?), &[])
        .await?;
    assert_eq!(shown.header("content-type"), Some("image/gif"));
    assert_eq!(shown.text(), "GIF89a");
    assert_eq!(server.get("/uploads/..%2ftoken", &[]).await?.status, 404);

    let send = json!({"type": "session:send", "content": "blocks", "images": [id]});
    person.ask(&mut conversation, send).await?;
    person.until_turns(&mut conversation, 1).await?;
    assert_eq!(conversation.entries[0]["images"], json!([id]));
    assert_eq!(conversation.said()[1], "assistant: text ;image R0lGODlh;");
    let missing = json!({"type": "session:send", "content": "x", "images": ["../token"]});
    assert_eq!(
        person.ask(&mut conversation, missing).await?["code"],
        "INVALID_MESSAGE"
    );
    Ok(())
}
