//! Unusual behaviour of real agents, reproduced by the scripted agent under the real server.
//! `docs/agents.md` lists each observed behaviour with its test.

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use testkit::{Conversation, HANG_GUARD, Person, Scene, ServerSetup};

async fn attached(scene: &mut Scene) -> Result<()> {
    scene
        .until(|seen| seen.info["attachment"] == "attached")
        .await
}

fn update(update: Value) -> String {
    format!("update {update}")
}

fn call<'a>(conversation: &'a Conversation, id: &str) -> Result<&'a Value> {
    let is_it = |entry: &&Value| entry["toolCallId"] == id;
    conversation
        .entries
        .iter()
        .find(is_it)
        .context("no tool call")
}

/// File with the agent's memory of a session, one update per line.
fn memory(setup: &ServerSetup, conversation: &Conversation) -> Result<std::path::PathBuf> {
    let id = conversation.session_id.strip_prefix("claude-code:");
    Ok(setup
        .home()
        .join("agent-memory")
        .join(id.context("not a session of Claude Code")?))
}

fn chunk(kind: &str, text: &str) -> String {
    json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}}).to_string()
}

#[tokio::test]
async fn session_update_after_a_turn_or_cancel_changes_no_entries() -> Result<()> {
    let mut scene = Scene::new().await?;
    let info = json!({"sessionUpdate": "session_info_update", "title": "From the agent", "updatedAt": "2026-11-16T09:00:00Z"});
    let usage = json!({"sessionUpdate": "usage_update", "used": 7, "size": 9});
    let late = format!("late-update {info}\nlate-update {usage}");
    scene.send(&format!("{late}\nsay partial\nhang")).await?;
    scene.until_said("assistant: partial").await?;
    scene.ask(json!({"type": "session:cancel"})).await?;
    // The updates after the end of the turn arrive.
    scene.until(|seen| seen.info["usage"]["used"] == 7).await?;
    scene.turn(&format!("say next\n{late}")).await?;
    let lines = scene.session.said();
    assert_eq!(lines[1..3], ["assistant: partial", "turn cancelled"]);
    assert_eq!(lines[4..], ["assistant: next", "turn ended"]);
    assert!(!scene.session.is_running());
    let titles = scene.user.titles().await?;
    assert!(titles[0].starts_with("late-update"), "{titles:?}");
    Ok(())
}

#[tokio::test]
async fn commands_are_known_after_session_new_resume_and_load() -> Result<()> {
    for script in ["", "no-resume"] {
        let mut scene = Scene::with_script(script).await?;
        let known = |seen: &Conversation| seen.info["commands"][0]["name"] == "dance";
        scene.until(known).await?;
        scene.turn("say first").await?;
        let before = scene.session.clone();
        let mut scene = scene.restart("TERM").await?;
        scene.until(known).await?;
        assert_eq!(scene.session.said(), before.said());
    }
    Ok(())
}

#[tokio::test]
async fn updates_before_the_session_exists_are_ignored() -> Result<()> {
    let mut scene = Scene::with_script("status-first").await?;
    scene.turn("say hello").await?;
    assert_eq!(
        scene.session.said()[1..],
        ["assistant: hello", "turn ended"]
    );
    Ok(())
}

#[tokio::test]
async fn unannounced_tool_call_is_shown_and_empty_content_keeps_its_output() -> Result<()> {
    let mut scene = Scene::new().await?;
    let text = |text: &str| json!([{"type": "content", "content": {"type": "text", "text": text}}]);
    let script = [
        update(
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "t1", "title": "Read it", "kind": "read", "content": text("output")}),
        ),
        update(
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "completed", "content": []}),
        ),
    ];
    scene.turn(&script.join("\n")).await?;
    let call = call(&scene.session, "t1")?;
    assert_eq!(call["name"], "Read it");
    assert_eq!(call["status"], "complete");
    assert_eq!(call["result"], "output");
    Ok(())
}

#[tokio::test]
async fn terminal_call_takes_title_and_output_from_later_updates() -> Result<()> {
    let mut scene = Scene::new().await?;
    let patch = |more: Value| {
        let mut patch = json!({"sessionUpdate": "tool_call_update", "toolCallId": "t1"});
        for (name, value) in more.as_object().into_iter().flatten() {
            patch[name] = value.clone();
        }
        update(patch)
    };
    let script = [
        update(
            json!({"sessionUpdate": "tool_call", "toolCallId": "t1", "title": "Terminal", "kind": "execute", "status": "pending", "rawInput": {}, "content": [{"type": "terminal", "terminalId": "t1"}], "_meta": {"terminal_info": {"terminal_id": "t1"}}}),
        ),
        patch(json!({"title": "make test", "rawInput": {"command": "make test"}})),
        patch(json!({"_meta": {"claudeCode": {"toolResponse": {}}}})),
        patch(json!({"_meta": {"terminal_output": {"terminal_id": "t1", "data": "one\n"}}})),
        patch(json!({"_meta": {"terminal_output": {"terminal_id": "t1", "data": "two\n"}}})),
        patch(
            json!({"status": "completed", "_meta": {"terminal_exit": {"terminal_id": "t1", "exit_code": 2, "signal": null}}}),
        ),
    ];
    scene.turn(&script.join("\n")).await?;
    let call = call(&scene.session, "t1")?;
    assert_eq!(call["name"], "make test");
    assert_eq!(call["content"][0]["output"], "one\ntwo\n");
    // The agent reported `completed` although the exit code is not 0.
    assert_eq!(call["content"][0]["exit"]["code"], 2);
    assert_eq!(call["status"], "complete");
    Ok(())
}

#[tokio::test]
async fn tool_call_with_a_cancelled_permission_ends() -> Result<()> {
    let setup = ServerSetup::scripted("")?.env("LIMINAL_PERMISSIONS", "ask");
    let mut scene = Scene::of(setup).await?;
    scene
        .send("tool t1 execute Delete it\npermission t1 Delete it")
        .await?;
    scene
        .until(|seen| seen.info["permissions"][0].is_object())
        .await?;
    scene.ask(json!({"type": "session:cancel"})).await?;
    scene.until_turns(1).await?;
    let call = call(&scene.session, "t1")?;
    assert_eq!(call["status"], "error");
    assert_eq!(call["error"], "Stopped before it ended");
    Ok(())
}

#[tokio::test]
async fn echoed_user_message_is_not_shown_twice() -> Result<()> {
    let mut scene = Scene::new().await?;
    scene.turn("echo hello\nsay hi\necho hello").await?;
    let expected = [
        "user: echo hello\nsay hi\necho hello",
        "assistant: hi",
        "turn ended",
    ];
    assert_eq!(scene.session.said(), expected);
    Ok(())
}

#[tokio::test]
async fn thought_and_answer_with_one_message_id_stay_separate_entries() -> Result<()> {
    let mut scene = Scene::new().await?;
    let chunk_of = |kind: &str, text: &str| {
        update(
            json!({"sessionUpdate": kind, "messageId": "m1", "content": {"type": "text", "text": text}}),
        )
    };
    let script = [
        chunk_of("agent_thought_chunk", "hm"),
        chunk_of("agent_message_chunk", "so"),
        "think again".to_owned(),
        "say and".to_owned(),
        "say  so on".to_owned(),
    ];
    scene.turn(&script.join("\n")).await?;
    let expected = [
        "thinking: hm",
        "assistant: so",
        "thinking: again",
        "assistant: and so on",
        "turn ended",
    ];
    assert_eq!(scene.session.said()[1..], expected);
    Ok(())
}

#[tokio::test]
async fn shorter_replay_removes_no_entries_and_interrupt_marks_are_skipped() -> Result<()> {
    let mut scene = Scene::with_script("no-resume").await?;
    scene
        .turn("say first\ntool t1 read Read\ntool-done t1 text")
        .await?;
    scene.send("say partial\nhang").await?;
    scene.until_said("assistant: partial").await?;
    scene.ask(json!({"type": "session:cancel"})).await?;
    scene.until_turns(2).await?;

    // Memory without tool calls and partial text, with an interrupt mark as a message of the user.
    let memory = memory(&scene.setup, &scene.session)?;
    let content = std::fs::read_to_string(&memory)?;
    let kept = content
        .lines()
        .filter(|line| !line.contains("tool_call") && !line.contains(r#""partial""#));
    let interrupted = chunk("user_message_chunk", "[Request interrupted by user]");
    let shorter: Vec<&str> = kept.chain([interrupted.as_str()]).collect();
    std::fs::write(&memory, format!("{}\n", shorter.join("\n")))?;
    let before = scene.session.clone();
    let mut scene = scene.restart("TERM").await?;
    attached(&mut scene).await?;
    assert_eq!(scene.session.entries, before.entries);

    // Messages added by another client are taken over, without the interrupt mark.
    let more = [
        chunk("user_message_chunk", "elsewhere"),
        chunk("agent_message_chunk", "there"),
        interrupted.clone(),
        chunk("agent_message_chunk", "cut"),
    ];
    let content = std::fs::read_to_string(&memory)?;
    std::fs::write(&memory, format!("{content}{}\n", more.join("\n")))?;
    let mut scene = scene.restart("TERM").await?;
    scene.until_said("assistant: cut").await?;
    assert_eq!(scene.session.said()[..before.said().len()], before.said());
    let new = ["user: elsewhere", "assistant: there", "assistant: cut"];
    assert_eq!(scene.session.said()[before.said().len()..], new);
    Ok(())
}

#[tokio::test]
async fn session_the_agent_cannot_load_yet_is_readable_and_can_be_retried() -> Result<()> {
    let mut scene = Scene::with_script("young").await?;
    scene.turn("say first").await?;
    let before = scene.session.clone();
    let mut scene = scene.restart("TERM").await?;
    assert_eq!(scene.session.said(), before.said());
    // Opening the session makes the agent load it; the agent rejects the load.
    for attachment in ["attaching", "detached"] {
        scene
            .until(|seen| seen.info["attachment"] == attachment)
            .await?;
    }
    scene.turn("say second").await?;
    assert_eq!(
        scene.session.said()[3..],
        ["user: say second", "assistant: second", "turn ended"]
    );
    Ok(())
}

#[tokio::test]
async fn provider_error_of_any_shape_is_shown_as_text() -> Result<()> {
    let mut scene = Scene::new().await?;
    let nested = json!({"type": "error", "error": {"type": "invalid_request_error", "message": "no such model"}});
    for (fail, expected) in [
        (format!("fail 400 {nested}"), "no such model"),
        (
            format!("fail 400 API Error: 400 {nested}"),
            "API Error: 400 no such model",
        ),
        (
            r#"fail -32603 Internal error: {"detail": "try later"}"#.to_owned(),
            "try later",
        ),
        (
            "fail -32603 Internal error: out of {luck}".to_owned(),
            "out of {luck}",
        ),
        (r#"fail 500 {"code": 7}"#.to_owned(), r#"{"code": 7}"#),
        (
            r#"fail-with -32603 Internal error | {"details": "no key"}"#.to_owned(),
            "no key",
        ),
        (
            r#"fail-with -32602 Invalid params | "no such mode""#.to_owned(),
            "Invalid params: no such mode",
        ),
        (
            format!("fail-with -32603 Internal error | {nested}"),
            "no such model",
        ),
    ] {
        scene.turn(&format!("say half\n{fail}")).await?;
        let turn = scene.session.entries.last().context("no end")?;
        assert_eq!(turn["outcome"], "failed");
        assert_eq!(turn["message"], expected);
    }
    scene.turn("say on").await?;
    Ok(())
}

#[tokio::test]
async fn refusal_carries_the_reason_from_the_error_data() -> Result<()> {
    const REASON: &str = "Cannot enable privileged approval modes in an untrusted folder";
    let carries = |answer: &Value| {
        let message = answer["message"].as_str().unwrap_or_default();
        assert!(message.ends_with(REASON), "{answer}");
    };
    let refused = ServerSetup::scripted("untrusted:session/new")?;
    let server = refused.start().await?;
    let mut person = Person::at(&server, &refused.folder("app")?).await?;
    carries(&person.ask_to_create("claude-code").await?);

    let mut scene = Scene::with_script("untrusted:session/set_mode").await?;
    let mode = json!({"type": "session:set-mode", "modeId": "plan"});
    carries(&scene.ask(mode).await?);

    let mut scene = Scene::with_script("untrusted:session/set_config_option").await?;
    let option = json!({"type": "session:set-option", "optionId": "model", "value": "deep"});
    carries(&scene.ask(option).await?);

    let mut scene = Scene::with_script("untrusted:session/load no-resume").await?;
    scene.turn("say hello").await?;
    let mut scene = scene.restart("TERM").await?;
    scene.until(|seen| seen.info["problem"].is_object()).await?;
    carries(&scene.session.info["problem"]);
    Ok(())
}

#[tokio::test]
async fn line_of_600_kb_is_accepted() -> Result<()> {
    let mut scene = Scene::new().await?;
    scene.turn("huge 600000\nsay !").await?;
    let text = scene.session.entries[1]["content"]
        .as_str()
        .context("no text")?;
    assert_eq!(text.len(), 600_001);
    Ok(())
}

#[tokio::test]
async fn models_in_the_older_protocol_form_are_shown_and_set() -> Result<()> {
    let mut scene = Scene::with_script("old-models").await?;
    let option = scene.session.info["options"][0].clone();
    assert_eq!(option["category"], "model");
    assert_eq!(option["currentValue"], "fast");
    assert_eq!(option["options"][1]["name"], "DEEP");
    let set = json!({"type": "session:set-option", "optionId": option["id"], "value": "deep"});
    scene.ask(set).await?;
    scene
        .until(|seen| seen.info["options"][0]["currentValue"] == "deep")
        .await?;
    scene.turn("model").await?;
    assert_eq!(scene.session.said()[1], "assistant: deep");
    Ok(())
}

/// Waits until the agent has received `method` this many times.
async fn until_requested(setup: &ServerSetup, method: &str, times: usize) -> Result<()> {
    let waiting = async {
        while setup.count_asked(method) < times {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    Ok(tokio::time::timeout(HANG_GUARD, waiting).await?)
}

#[tokio::test]
async fn replay_after_the_load_response_is_not_shown_as_output() -> Result<()> {
    let mut scene = Scene::with_script("no-resume load-answer-first:20").await?;
    scene
        .turn("say first\ntool t1 read Read\ntool-done t1 text")
        .await?;
    let before = scene.session.clone();
    let mut scene = scene.restart("TERM").await?;
    // The prompt waits until the replay has ended.
    let second = "sleep 80\nsay second";
    scene.turn(second).await?;
    let user = format!("user: {second}");
    let expected = [
        &before.said()[..],
        &[user.as_str(), "assistant: second", "turn ended"].map(str::to_owned),
    ];
    assert_eq!(scene.session.said(), expected.concat());
    // Messages added by another client are still taken over.
    let memory = memory(&scene.setup, &before)?;
    let more = [
        chunk("user_message_chunk", "elsewhere"),
        chunk("agent_message_chunk", "there"),
    ];
    let known = std::fs::read_to_string(&memory)?;
    std::fs::write(&memory, format!("{known}{}\n", more.join("\n")))?;
    let mut scene = scene.restart("TERM").await?;
    attached(&mut scene).await?;
    let more = ["user: elsewhere", "assistant: there"].map(str::to_owned);
    assert_eq!(
        scene.session.said(),
        [&expected.concat()[..], &more].concat()
    );
    Ok(())
}

#[tokio::test]
async fn attach_retry_while_the_agent_exits_in_a_load_shows_nothing_twice() -> Result<()> {
    let setup = ServerSetup::new()?;
    let die = setup.home().join("die");
    let script = format!("no-resume exit-in-load:{}", die.display());
    let setup = setup.with_scripted_agent(&script)?;
    let mut scene = Scene::of(setup).await?;
    scene.turn("say first").await?;
    let before = scene.session.clone();
    let mut scene = scene.restart("TERM").await?;
    until_requested(&scene.setup, "session/load", 1).await?;
    scene.ask(json!({"type": "session:attach"})).await?;
    std::fs::write(&die, "")?;
    attached(&mut scene).await?;
    assert_eq!(scene.setup.count_asked("session/load"), 2);
    scene.turn("say second").await?;
    let expected = ["user: say second", "assistant: second", "turn ended"].map(str::to_owned);
    assert_eq!(
        scene.session.said(),
        [&before.said()[..], &expected].concat()
    );
    Ok(())
}

#[tokio::test]
async fn late_updates_with_known_ids_stay_in_their_own_turn() -> Result<()> {
    let mut scene = Scene::new().await?;
    let go = scene.setup.home().join("go");
    let chunk_of = |text: &str| {
        let content = json!({"type": "text", "text": text});
        json!({"sessionUpdate": "agent_message_chunk", "messageId": "m1", "content": content})
    };
    let content = json!([{"type": "content", "content": {"type": "text", "text": "result"}}]);
    let done = json!({"sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "completed", "content": content});
    let first = [
        update(chunk_of("one")),
        "tool t1 read First".to_owned(),
        format!("until {}", go.display()),
        format!("late-update {}", chunk_of(" more")),
        format!("late-update {done}"),
    ];
    scene.send(&first.join("\n")).await?;
    scene.until_said("tool First").await?;
    // The next turn starts at once and reuses the id of the tool call.
    let second = "sleep 50\nsay two\ntool t1 read Second\ntool-done t1 other";
    scene.send(second).await?;
    scene
        .until(|seen| seen.info["queue"][0].is_object())
        .await?;
    std::fs::write(&go, "")?;
    scene.until_turns(2).await?;
    let expected = [
        "assistant: one more",
        "tool First complete",
        "turn ended",
        &format!("user: {second}"),
        "assistant: two",
        "tool Second complete",
        "turn ended",
    ];
    assert_eq!(scene.session.said()[1..], expected);
    assert_eq!(scene.session.entries[2]["result"], "result");
    assert_eq!(scene.session.entries[6]["result"], "other");
    // Without a running turn, the entry is shown with its whole text.
    let third = format!("late-update {}", chunk_of(" and more"));
    scene.turn(&third).await?;
    scene.until_said("assistant: one more and more").await?;
    assert_eq!(scene.session.said().len(), 10);
    scene.server.signal("KILL").await?;
    let server = scene.setup.start().await?;
    let mut user = Person::at(&server, &scene.setup.folder("app")?).await?;
    assert_eq!(
        user.open(&scene.session.session_id).await?.entries,
        scene.session.entries
    );
    Ok(())
}

#[tokio::test]
async fn torn_last_line_in_the_agents_memory_is_skipped() -> Result<()> {
    let mut scene = Scene::with_script("no-resume").await?;
    scene.turn("say first").await?;
    let memory = memory(&scene.setup, &scene.session)?;
    let known = std::fs::read_to_string(&memory)?;
    std::fs::write(&memory, format!("{known}{{\"sessionUpdate\":\"agent"))?;
    let mut scene = scene.restart("TERM").await?;
    scene.turn("say second").await?;
    let kept = std::fs::read_to_string(&memory)?;
    assert_eq!(kept.lines().count(), known.lines().count() + 3);
    Ok(())
}
