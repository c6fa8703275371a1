//! The agent's session files, with parallel processes, kills and damage.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::agent_stdio::client::{Place, prompt};

#[tokio::test]
async fn thousand_sessions_created_by_eight_processes_are_unique_and_kept() {
    let place = Place::new();
    let mut processes = Vec::new();
    for _ in 0..8 {
        let mut agent = place.start_initialized().await;
        let project = place.project.clone();
        processes.push(tokio::spawn(async move {
            let params = json!({"cwd": project, "mcpServers": []});
            let mut waiting = Vec::new();
            for _ in 0..125 {
                waiting.push(agent.send("session/new", params.clone()).await);
            }
            let mut ids = Vec::new();
            while ids.len() < waiting.len() {
                let message = agent.message().await;
                ids.extend(message["result"]["sessionId"].as_str().map(str::to_owned));
            }
            assert!(agent.close_and_wait().await.success());
            ids
        }));
    }
    let mut made = BTreeSet::new();
    for process in processes {
        made.extend(process.await.unwrap());
    }
    assert_eq!(made.len(), 1000, "two sessions have the same id");
    let entries = std::fs::read_dir(place.sessions()).unwrap();
    let kept: BTreeSet<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(
        kept, made,
        "the folders on disk are not exactly the created sessions"
    );

    let mut agent = place.start_initialized().await;
    let mut listed = BTreeSet::new();
    let mut cursor = Value::Null;
    loop {
        let page = agent
            .call("session/list", json!({"cursor": cursor}))
            .await
            .result;
        let ids = page["sessions"].as_array().unwrap().iter();
        listed.extend(ids.map(|session| session["sessionId"].as_str().unwrap().to_owned()));
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(listed, made);
}

#[tokio::test]
async fn output_sent_before_a_kill_during_a_turn_is_replayed() {
    let place = Place::new();
    let mut agent = place.start_initialized().await;
    let session = agent.new_session(&place.project).await;
    agent.prompt(&session, "/files").await;
    agent
        .send("session/prompt", prompt(&session, "hello again"))
        .await;
    let chunk = agent
        .until(|update| update["sessionUpdate"] == "agent_message_chunk")
        .await;
    agent.kill().await;

    let mut agent = place.start_initialized().await;
    let replay = agent.load(&session, &place.project).await;
    assert_eq!(replay.error, Value::Null);
    let users: Vec<_> = replay
        .of_kind("user_message_chunk")
        .iter()
        .map(|chunk| chunk["content"]["text"].clone())
        .collect();
    assert_eq!(users, ["/files", "hello again"]);
    let seen = chunk["content"]["text"].as_str().unwrap();
    assert!(
        replay.text().contains(seen),
        "text that was sent is missing in the replay"
    );

    let id = agent
        .send(
            "session/prompt",
            prompt(&session, "/run echo begun; sleep 600"),
        )
        .await;
    agent
        .until(|update| update["content"].to_string().contains("begun"))
        .await;
    let _ = id;
    agent.kill().await;
    let mut agent = place.start_initialized().await;
    let replay = agent.load(&session, &place.project).await;
    assert_eq!(
        replay.of_kind("tool_call").last().unwrap()["status"],
        "failed"
    );
    assert_eq!(
        agent.prompt(&session, "/files").await.result["stopReason"],
        "end_turn"
    );
    let replay = agent.load(&session, &place.project).await;
    assert_eq!(replay.of_kind("user_message_chunk").len(), 4);
}

#[tokio::test]
async fn torn_line_loses_only_that_line() {
    use std::io::Write;
    let place = Place::new();
    let mut agent = place.start_initialized().await;
    let session = agent.new_session(&place.project).await;
    agent.prompt(&session, "/plan one").await;
    agent.kill().await;
    let file = place.sessions().join(&session).join("history.jsonl");
    let mut history = std::fs::OpenOptions::new().append(true).open(file).unwrap();
    history
        .write_all(br#"{"at":"2026-01-01T00:00:00Z","upda"#)
        .unwrap();

    let mut agent = place.start_initialized().await;
    agent.prompt(&session, "/plan two").await;
    let replay = agent.load(&session, &place.project).await;
    assert_eq!(
        replay.result["_meta"]["liminal/unreadableLines"], 1,
        "the unreadable line is not reported"
    );
    assert_eq!(replay.of_kind("plan").len(), 2);
    assert_eq!(
        replay.of_kind("user_message_chunk").len(),
        2,
        "the next line was appended to the torn line"
    );
}

#[tokio::test]
async fn damaged_session_is_reported_and_others_are_served() {
    let place = Place::new();
    let mut agent = place.start_initialized().await;
    let good = agent.new_session(&place.project).await;
    let mut damaged = Vec::new();
    for content in [&b"{ torn"[..], b"\xff\xfe", b"{}", b""] {
        let id = agent.new_session(&place.project).await;
        agent.call("session/close", json!({"sessionId": id})).await;
        std::fs::write(place.sessions().join(&id).join("meta.json"), content).unwrap();
        damaged.push(id);
    }
    std::fs::write(place.sessions().join("stray"), "x").unwrap();
    for id in &damaged {
        let error = agent.load(id, &place.project).await.error;
        assert_eq!(error["code"], -32603);
        assert!(
            error["message"].as_str().unwrap().contains("damaged"),
            "{error}"
        );
        assert_eq!(error["data"]["sessionId"], *id);
        assert_eq!(agent.prompt(id, "hi").await.error["code"], -32603);
    }
    let list = agent.call("session/list", json!({})).await.result;
    assert_eq!(list["sessions"].as_array().unwrap().len(), 1);
    let reported = list["_meta"]["liminal/damagedSessions"].as_array().unwrap();
    let reported: BTreeSet<_> = reported
        .iter()
        .map(|session| session["sessionId"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(reported, damaged.into_iter().collect());
    assert_eq!(agent.load(&good, &place.project).await.error, Value::Null);
    assert_eq!(
        agent.prompt(&good, "/files").await.result["stopReason"],
        "end_turn"
    );
    let session = agent.new_session(&place.project).await;
    assert!(place.sessions().join(session).exists());
}

#[tokio::test]
async fn two_processes_on_one_session_run_their_turns_one_at_a_time() {
    let place = Place::new();
    let (mut one, mut other) = (
        place.start_initialized().await,
        place.start_initialized().await,
    );
    let session = one.new_session(&place.project).await;
    let id = one
        .send(
            "session/prompt",
            prompt(&session, "/run echo begun; sleep 600"),
        )
        .await;
    one.until(|update| update["content"].to_string().contains("begun"))
        .await;
    let replay = other.load(&session, &place.project).await;
    assert_eq!(
        replay.of_kind("user_message_chunk").len(),
        1,
        "the second process can load the session"
    );
    let error = other.prompt(&session, "/files").await.error;
    assert_eq!(error["code"], -32603);
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("another agent process"),
        "{error}"
    );
    one.notify("session/cancel", json!({"sessionId": session}))
        .await;
    one.answer(id).await;
    assert_eq!(
        other.prompt(&session, "/files").await.result["stopReason"],
        "end_turn"
    );
    assert_eq!(
        one.prompt(&session, "/files").await.result["stopReason"],
        "end_turn"
    );
    let replay = one.load(&session, &place.project).await;
    assert_eq!(
        replay.of_kind("user_message_chunk").len(),
        3,
        "a prompt is missing"
    );
    let ids: BTreeSet<_> = replay
        .of_kind("tool_call")
        .iter()
        .map(|call| call["toolCallId"].to_string())
        .collect();
    assert_eq!(ids.len(), 3, "two tool calls have the same id");
}

#[tokio::test]
async fn session_unused_for_long_is_moved_to_the_expired_folder_at_start() {
    let place = Place::new();
    let mut agent = place.start_initialized().await;
    let old = agent.new_session(&place.project).await;
    let recent = agent.new_session(&place.project).await;
    agent.close_and_wait().await;
    let aged = "sess_01ARZ3NDEKTSV4RRFFQ69G5FAV";
    std::fs::rename(place.sessions().join(&old), place.sessions().join(aged)).unwrap();
    let file = place.sessions().join(aged).join("meta.json");
    let mut meta: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    meta["sessionId"] = json!(aged);
    meta["lastUsedAt"] = json!("2020-01-01T00:00:00Z");
    std::fs::write(&file, meta.to_string()).unwrap();

    let aside = place.data.join("agent/expired").join(aged);
    let mut agent = place.start_initialized().await;
    let mut patience = 3000;
    while !aside.exists() && patience > 0 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        patience -= 1;
    }
    assert!(
        aside.join("history.jsonl").exists(),
        "the history of the expired session was deleted"
    );
    let error = agent.load(aged, &place.project).await.error;
    assert_eq!(error["code"], -32602);
    assert_eq!(
        error["message"],
        "Session not found: it expired and was moved to the expired folder"
    );
    assert_eq!(error["data"]["availableSessions"], json!([recent]));
}

#[tokio::test]
async fn session_files_are_readable_by_their_owner_only() {
    let place = Place::new();
    let mut command = place.command();
    let program = command.as_std().get_program().to_owned();
    command.kill_on_drop(true);
    let mut shell = tokio::process::Command::new("sh");
    shell
        .args(["-c", "umask 0; exec \"$0\" agent"])
        .arg(program)
        .env("LIMINAL_DATA_DIR", &place.data);
    let mut agent = crate::agent_stdio::client::Agent::start(shell);
    agent.initialize(json!({})).await;
    let session = agent.new_session(&place.project).await;
    agent.prompt(&session, "/plan x").await;
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    let directory = place.sessions().join(&session);
    for path in [
        &place.data,
        &place.data.join("agent"),
        &place.sessions(),
        &directory,
    ] {
        assert_eq!(mode(path), 0o700, "{}", path.display());
    }
    for entry in std::fs::read_dir(&directory).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

#[tokio::test]
async fn invalid_setting_stops_the_start_with_an_error() {
    for (name, value, reason) in [
        ("LIMINAL_AGENT_SESSION_MAX", "many", "whole number"),
        ("LIMINAL_AGENT_MODEL", "claude", "provider/model"),
        (
            "LIMINAL_AGENT_MODEL",
            "anthropic/claude-x",
            "ANTHROPIC_API_KEY is not set",
        ),
    ] {
        let place = Place::new().env(name, value);
        let output = place.command().output().await.unwrap();
        assert!(!output.status.success());
        assert!(output.stdout.is_empty());
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            said.starts_with(&format!("error: {name} is")) && said.contains(reason),
            "{said}"
        );
    }
}
