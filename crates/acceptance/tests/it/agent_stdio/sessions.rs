//! Sessions: ids, validation, loading, listing, closing, cancelling.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::agent_stdio::client::{Place, permitting, prompt};

#[tokio::test]
async fn initialize_negotiates_version_1_and_true_capabilities() {
    let place = Place::new();
    for asked in [1, 2, 65535] {
        let mut agent = place.start();
        let params = json!({"protocolVersion": asked, "clientCapabilities": {}});
        let reply = agent.call("initialize", params).await;
        assert_eq!(
            reply.result["protocolVersion"], 1,
            "requested version {asked}"
        );
        let capabilities = &reply.result["agentCapabilities"];
        assert_eq!(capabilities["loadSession"], true);
        for able in ["list", "resume", "close"] {
            assert!(
                capabilities["sessionCapabilities"][able].is_object(),
                "{able}"
            );
        }
        assert_eq!(
            capabilities["promptCapabilities"]["image"], false,
            "no model is configured that reads images"
        );
        assert_eq!(capabilities["mcpCapabilities"]["http"], false);
        assert_eq!(reply.result["agentInfo"]["name"], "liminal-agent");
    }
}

#[tokio::test]
async fn session_ids_follow_the_format_are_unique_and_sort_by_creation() {
    let place = Place::new();
    let mut agent = place.start_initialized().await;
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.push(agent.new_session(&place.project).await);
    }
    for id in &ids {
        let ulid = id.strip_prefix("sess_").unwrap();
        assert_eq!(ulid.len(), 26);
        assert!(
            ulid.bytes()
                .all(|byte| b"0123456789ABCDEFGHJKMNPQRSTVWXYZ".contains(&byte))
        );
    }
    assert!(ids.is_sorted());
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
}

#[tokio::test]
async fn every_method_refuses_a_malformed_session_id_with_the_same_error() {
    let place = Place::new();
    let mut agent = place.start_initialized().await;
    let wrong = [
        (json!("invalid-123"), "must start with 'sess_'"),
        (json!(""), "it is empty"),
        (json!("sess_"), "nothing follows 'sess_'"),
        (json!("sess_../../etc/passwd"), "26 characters"),
        (json!("sess_01arz3ndektsv4rrffq69g5fav"), "26 characters"),
        (Value::Null, "it is empty"),
        (json!(42), "must start with 'sess_'"),
    ];
    for method in [
        "session/prompt",
        "session/load",
        "session/resume",
        "session/close",
        "session/cancel",
        "session/set_mode",
        "session/set_config_option",
    ] {
        for (id, reason) in &wrong {
            let params = json!({
                "sessionId": id, "cwd": place.project, "mcpServers": [], "modeId": "ask",
                "configId": "model", "value": "x", "prompt": [{"type": "text", "text": "hi"}],
            });
            let error = agent.call(method, params).await.error;
            assert_eq!(error["code"], -32602, "{method} {id}: {error}");
            let message = error["message"].as_str().unwrap();
            assert!(
                message.starts_with("Invalid session ID format: ") && message.contains(reason),
                "{method} {id}: {message}"
            );
            assert_eq!(error["data"]["providedSessionId"], *id);
            assert!(
                error["data"]["expectedFormat"]
                    .as_str()
                    .unwrap()
                    .starts_with("sess_<ULID>")
            );
            assert_eq!(error["data"]["example"], "sess_01ARZ3NDEKTSV4RRFFQ69G5FAV");
        }
    }
}

#[tokio::test]
async fn unknown_session_error_lists_the_five_newest_sessions() {
    let place = Place::new();
    let mut agent = place.start_initialized().await;
    let mut ids = Vec::new();
    for _ in 0..7 {
        ids.push(agent.new_session(&place.project).await);
    }
    ids.reverse();
    let unknown = "sess_01ARZ3NDEKTSV4RRFFQ69G5FAV";
    for method in [
        "session/prompt",
        "session/load",
        "session/resume",
        "session/close",
        "session/cancel",
        "session/set_mode",
    ] {
        let params = json!({
            "sessionId": unknown, "cwd": place.project, "mcpServers": [], "modeId": "ask",
            "prompt": [{"type": "text", "text": "hi"}],
        });
        let error = agent.call(method, params).await.error;
        assert_eq!(error["code"], -32602, "{method}");
        assert_eq!(
            error["message"], "Session not found: sessionId does not exist",
            "{method}"
        );
        assert_eq!(error["data"]["sessionId"], unknown);
        assert_eq!(
            error["data"]["availableSessions"],
            json!(ids[..5]),
            "{method}"
        );
    }
}

#[tokio::test]
async fn new_session_refuses_invalid_cwd_and_invalid_mcp_servers() {
    let place = Place::new();
    let mut agent = place.start_initialized().await;
    let file = place.project.join("README.md");
    let stdio = json!({"name": "a", "command": "/bin/a", "args": [], "env": []});
    let wrong = [
        (json!({"cwd": "relative", "mcpServers": []}), "absolute"),
        (
            json!({"cwd": "/does/not/exist", "mcpServers": []}),
            "does not exist",
        ),
        (json!({"cwd": file, "mcpServers": []}), "not a directory"),
        (json!({"mcpServers": []}), "absolute"),
        (
            json!({"cwd": place.project, "mcpServers": {}}),
            "must be a list",
        ),
        (
            json!({"cwd": place.project, "mcpServers": [stdio, {"name": "b"}]}),
            "mcpServers[1]",
        ),
        (
            json!({"cwd": place.project, "mcpServers": [{"name": "", "command": "/bin/a", "args": [], "env": []}]}),
            "no name",
        ),
        (
            json!({"cwd": place.project, "mcpServers": [{"type": "http", "name": "x", "url": "http://x", "headers": []}]}),
            "over stdio",
        ),
        (
            json!({"cwd": place.project, "mcpServers": [], "additionalDirectories": ["x"]}),
            "additionalDirectories",
        ),
    ];
    for (params, reason) in wrong {
        let error = agent.call("session/new", params.clone()).await.error;
        assert_eq!(error["code"], -32602, "{params}");
        assert!(
            error["message"].as_str().unwrap().contains(reason),
            "{params}: {error}"
        );
    }
    let params = json!({"cwd": place.project, "mcpServers": [stdio]});
    let reply = agent.call("session/new", params).await;
    assert!(reply.result["sessionId"].is_string());
    let notice = agent
        .until(|update| update["sessionUpdate"] == "notice")
        .await;
    assert_eq!(
        notice["title"], "MCP servers are not used",
        "the notice about ignored MCP servers is missing"
    );
    assert_eq!(
        std::fs::read_dir(place.sessions()).unwrap().count(),
        1,
        "a refused request created a session"
    );
}

#[tokio::test]
async fn session_is_replayed_in_order_before_the_load_response_after_restart() {
    let place = Place::new();
    let mut agent = place.start_initialized().await;
    let session = agent.new_session(&place.project).await;
    let first = agent.prompt(&session, "/read README.md").await;
    assert_eq!(first.result["stopReason"], "end_turn");
    let second = agent.prompt(&session, "/plan one; two").await;
    assert!(agent.close_and_wait().await.success());

    let mut agent = place.start_initialized().await;
    let replay = agent.load(&session, &place.project).await;
    assert_eq!(replay.error, Value::Null);
    assert_eq!(
        replay.kinds(),
        [
            "user_message_chunk",
            "tool_call",
            "agent_message_chunk",
            "user_message_chunk",
            "plan",
            "agent_message_chunk"
        ]
    );
    assert_eq!(replay.updates[0]["content"]["text"], "/read README.md");
    assert_eq!(replay.updates[1]["status"], "completed");
    assert!(
        replay.updates[1]["rawOutput"]
            .as_str()
            .unwrap()
            .contains("needle")
    );
    assert_eq!(replay.text(), format!("{}{}", first.text(), second.text()));
    let after = agent.update().await;
    assert_eq!(after["sessionUpdate"], "available_commands_update");
    assert!(replay.result["modes"]["currentModeId"].is_string());
}

#[tokio::test]
async fn resumed_session_continues_without_replay() {
    let place = Place::new();
    let mut agent = place.start_initialized().await;
    let session = agent.new_session(&place.project).await;
    agent.prompt(&session, "/plan one").await;
    agent.close_and_wait().await;

    let mut agent = place.start_initialized().await;
    let params = json!({"sessionId": session, "cwd": place.project, "mcpServers": []});
    let reply = agent.call("session/resume", params).await;
    assert_eq!(reply.kinds(), Vec::<&str>::new());
    assert_eq!(
        agent.update().await["sessionUpdate"],
        "available_commands_update"
    );
    let reply = agent.prompt(&session, "/plan done 1").await;
    assert_eq!(
        reply.of_kind("plan")[0]["entries"][0]["status"],
        "completed"
    );
}

#[tokio::test]
async fn sessions_are_listed_in_pages_newest_first_and_filtered_by_folder() {
    let place = Place::new();
    let mut agent = place.start_initialized().await;
    let other = place.project.join("other");
    std::fs::create_dir(&other).unwrap();
    let mut ids = Vec::new();
    for number in 0..60 {
        let cwd = if number % 20 == 0 {
            &other
        } else {
            &place.project
        };
        ids.push(agent.new_session(cwd).await);
    }
    agent.prompt(&ids[0], "/plan x").await;
    ids.reverse();
    let page = agent.call("session/list", json!({})).await.result;
    let listed = |page: &Value| -> Vec<String> {
        let sessions = page["sessions"].as_array().unwrap().iter();
        sessions
            .map(|session| session["sessionId"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(listed(&page), ids[..50]);
    let rest = agent
        .call("session/list", json!({"cursor": page["nextCursor"]}))
        .await
        .result;
    assert_eq!(listed(&rest), ids[50..]);
    assert!(rest.get("nextCursor").is_none());
    let oldest = rest["sessions"].as_array().unwrap().last().unwrap();
    assert_eq!(oldest["title"], "/plan x");
    assert!(oldest["updatedAt"].as_str().unwrap().ends_with('Z'));
    // Twice: the second call uses the cached folder of each session.
    for _ in 0..2 {
        let there = agent
            .call("session/list", json!({"cwd": other}))
            .await
            .result;
        assert_eq!(
            listed(&there),
            [&ids[19], &ids[39], &ids[59]].map(Clone::clone)
        );
    }
    let error = agent
        .call("session/list", json!({"cursor": "nonsense"}))
        .await
        .error;
    assert_eq!(error["code"], -32602);
}

#[tokio::test]
async fn cancel_ends_the_turn_as_cancelled_and_kills_its_command() {
    let place = Place::new();
    let mut agent = place.start_initialized().await;
    let session = agent.new_session(&place.project).await;
    let command = "/run echo $$ > pid; echo begun; sleep 600 & wait";
    let id = agent
        .send("session/prompt", prompt(&session, command))
        .await;
    agent
        .until(|update| update["content"].to_string().contains("begun"))
        .await;
    agent
        .notify("session/cancel", json!({"sessionId": session}))
        .await;
    let reply = agent.answer(id).await;
    assert_eq!(reply.result["stopReason"], "cancelled");
    assert_eq!(
        reply.of_kind("tool_call_update").last().unwrap()["status"],
        "failed"
    );
    let pid = place.read("pid").trim().to_owned();
    let gone = || {
        std::fs::read_to_string(format!("/proc/{pid}/stat"))
            .map_or(true, |stat| stat.contains(" Z "))
    };
    let mut patience = 3000;
    while !gone() && patience > 0 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        patience -= 1;
    }
    assert!(gone(), "the command is still running after its turn");
    let reply = agent.prompt(&session, "/files").await;
    assert_eq!(
        reply.result["stopReason"], "end_turn",
        "the session accepts another prompt"
    );
}

#[tokio::test]
async fn cancel_right_after_its_prompt_is_not_lost() {
    let place = Place::new();
    let mut agent = place.start_initialized().await;
    let session = agent.new_session(&place.project).await;
    for _ in 0..20 {
        let id = agent
            .send("session/prompt", prompt(&session, "hello"))
            .await;
        agent
            .notify("session/cancel", json!({"sessionId": session}))
            .await;
        assert_eq!(agent.answer(id).await.result["stopReason"], "cancelled");
    }
}

#[tokio::test]
async fn cancel_during_a_permission_request_ends_the_turn() {
    let place = Place::new();
    let mut agent = place.start_initialized().await;
    let session = agent.new_session(&place.project).await;
    // A client that never answers the permission request, not even after the cancel.
    agent.answer_with(Box::new(|_, _| Ok(Value::Null)));
    let id = agent
        .send("session/prompt", prompt(&session, "/run touch no"))
        .await;
    while agent.message().await["method"] != "session/request_permission" {}
    agent
        .notify("session/cancel", json!({"sessionId": session}))
        .await;
    assert_eq!(agent.answer(id).await.result["stopReason"], "cancelled");
    // A client that answers `cancelled`, as the protocol requires.
    agent.answer_with(Box::new(|_, _| {
        Ok(json!({"outcome": {"outcome": "cancelled"}}))
    }));
    let reply = agent.prompt(&session, "/run touch no").await;
    assert_eq!(reply.result["stopReason"], "cancelled");
    assert!(!place.project.join("no").exists());
}

#[tokio::test]
async fn session_runs_one_turn_at_a_time_while_other_sessions_continue() {
    let place = Place::new();
    let mut agent = place.start_initialized().await;
    let one = agent.new_session(&place.project).await;
    let other = agent.new_session(&place.project).await;
    let id = agent
        .send("session/prompt", prompt(&one, "/run echo begun; sleep 600"))
        .await;
    agent
        .until(|update| update["content"].to_string().contains("begun"))
        .await;
    let error = agent.prompt(&one, "and?").await.error;
    assert_eq!(error["code"], -32600);
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("already running")
    );
    let reply = agent.prompt(&other, "/search needle").await;
    assert!(reply.text().contains("Found one line"));
    agent
        .notify("session/cancel", json!({"sessionId": one}))
        .await;
    assert_eq!(agent.answer(id).await.result["stopReason"], "cancelled");
}

#[tokio::test]
async fn closing_a_session_ends_its_turn_and_keeps_its_history() {
    let place = Place::new();
    let mut agent = place.start_initialized().await;
    let session = agent.new_session(&place.project).await;
    let id = agent
        .send(
            "session/prompt",
            prompt(&session, "/run echo begun; sleep 600"),
        )
        .await;
    agent
        .until(|update| update["content"].to_string().contains("begun"))
        .await;
    let close = agent
        .send("session/close", json!({"sessionId": session}))
        .await;
    assert_eq!(agent.answer(close).await.error, Value::Null);
    assert_eq!(agent.answer(id).await.result["stopReason"], "cancelled");
    let replay = agent.load(&session, &place.project).await;
    assert_eq!(replay.of_kind("user_message_chunk").len(), 1);
    assert_eq!(replay.of_kind("tool_call")[0]["status"], "failed");
}

#[tokio::test]
async fn modes_decide_whether_permission_is_requested() {
    let place = Place::new();
    let mut agent = place.start_initialized().await;
    let session = agent.new_session(&place.project).await;
    let mode = |mode: &str| json!({"sessionId": session, "modeId": mode});
    assert_eq!(
        agent.call("session/set_mode", mode("plan")).await.error,
        Value::Null
    );
    agent.prompt(&session, "/run touch planned").await;
    assert!(!place.project.join("planned").exists());
    agent.call("session/set_mode", mode("auto")).await;
    agent.prompt(&session, "/run touch automatic").await;
    assert!(place.project.join("automatic").exists());
    assert!(agent.asked.is_empty(), "neither mode requests permission");
    agent.call("session/set_mode", mode("ask")).await;
    agent.answer_with(permitting("reject_once"));
    agent.prompt(&session, "/run touch rejected").await;
    assert!(!place.project.join("rejected").exists());
    agent.answer_with(permitting("allow_always"));
    agent.prompt(&session, "/run touch one").await;
    agent.prompt(&session, "/run touch two").await;
    assert!(place.project.join("two").exists());
    assert_eq!(
        agent.asked.len(),
        2,
        "after allow_always the agent must not request permission again"
    );
    let error = agent.call("session/set_mode", mode("yolo")).await.error;
    assert_eq!(error["code"], -32602);
    agent.call("session/set_mode", mode("plan")).await;
    agent.close_and_wait().await;
    let mut agent = place.start_initialized().await;
    let replay = agent.load(&session, &place.project).await;
    assert_eq!(
        replay.result["modes"]["currentModeId"], "plan",
        "the mode is restored after a restart"
    );
}

#[tokio::test]
async fn invalid_messages_are_refused_and_the_agent_keeps_running() {
    let place = Place::new();
    let mut agent = place.start_initialized().await;
    for method in ["session/fork", "authenticate", "_anything", "nonsense"] {
        let error = agent.call(method, json!({})).await.error;
        assert_eq!(error["code"], -32601, "{method}");
    }
    agent.notify("nonsense", json!({})).await;
    agent
        .notify("session/cancel", json!({"sessionId": "unknown"}))
        .await;
    agent.write_line("this is no JSON").await;
    let answer = agent.line().await.unwrap();
    assert_eq!(answer["error"]["code"], -32700);
    agent.write_line("").await;
    let session = agent.new_session(&place.project).await;
    let params = json!({"sessionId": session, "prompt": "not a list"});
    assert_eq!(
        agent.call("session/prompt", params).await.error["code"],
        -32602
    );
    assert!(agent.close_and_wait().await.success());
}

#[tokio::test]
async fn agent_exits_at_end_of_input_or_signal_also_during_a_turn() {
    let place = Place::new();
    for signal in [None, Some("TERM"), Some("INT")] {
        let mut agent = place.start_initialized().await;
        let session = agent.new_session(&place.project).await;
        agent
            .send(
                "session/prompt",
                prompt(&session, "/run echo begun; sleep 600"),
            )
            .await;
        agent
            .until(|update| update["content"].to_string().contains("begun"))
            .await;
        let Some(signal) = signal else {
            assert!(agent.close_and_wait().await.success());
            continue;
        };
        let pid = agent.child.id().unwrap().to_string();
        let sent = tokio::process::Command::new("kill")
            .args([&format!("-{signal}"), &pid])
            .status();
        assert!(sent.await.unwrap().success());
        while agent.line().await.is_some() {}
        assert!(agent.child.wait().await.unwrap().success(), "{signal}");
        let history =
            std::fs::read_to_string(place.sessions().join(&session).join("history.jsonl"));
        assert!(
            history
                .unwrap()
                .trim_end()
                .ends_with(r#""turnEnd":"cancelled"}"#),
            "the end of the turn is in the history file"
        );
    }
}
