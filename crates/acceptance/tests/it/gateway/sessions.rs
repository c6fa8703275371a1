//! Tests of creating, listing, archiving and deleting sessions through the gateway.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use testkit::{Program, ServerSetup, ends, heard_text};

#[tokio::test]
async fn sessions_and_chat_history_survive_a_restart() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let server = setup.start().await?;
    let mut program = Program::at(&server).await?;
    let agents = program.result("agents.list", json!({})).await?;
    assert_eq!(agents["agents"][0]["id"], "assistant");
    let created = program.result("sessions.create", json!({})).await?;
    let key = created["sessionKey"].as_str().context("no key")?.to_owned();
    assert_eq!(created["session"]["agentId"], "assistant");
    let first = program.say(&key, "/help").await?;
    assert!(
        heard_text(&first, "chat.delta").contains("model"),
        "{first:?}"
    );
    assert_eq!(ends(&first), ["chat.final"]);
    program.say(&key, "/files").await?;
    let history = program
        .result("chat.history", json!({"sessionKey": key}))
        .await?;
    let messages = history["messages"].as_array().context("no messages")?;
    let sent: Vec<&Value> = messages
        .iter()
        .filter(|message| message["role"] == "user")
        .map(|message| &message["content"])
        .collect();
    assert_eq!(sent, ["/help", "/files"]);
    assert!(
        messages
            .iter()
            .all(|message| message["runId"].is_string() && message["timestamp"].as_i64() > Some(0))
    );

    server.signal("TERM").await?;
    let server = setup.start().await?;
    let mut program = Program::at(&server).await?;
    let listed = program.result("sessions.list", json!({})).await?;
    assert_eq!(listed["sessions"][0]["key"], key.as_str());
    assert_eq!(listed["sessions"][0]["agentId"], "assistant");
    let got = program
        .result("sessions.get", json!({"sessionKey": key}))
        .await?;
    assert_eq!(
        got["messages"].as_array().map(Vec::len),
        Some(messages.len())
    );
    let lines = std::fs::read_to_string(setup.data_dir().join(format!("sessions/{key}.jsonl")))?;
    for line in lines.lines() {
        serde_json::from_str::<Value>(line)?;
    }
    Ok(())
}

#[tokio::test]
async fn sessions_list_has_the_newest_session_first() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let server = setup.start().await?;
    let mut program = Program::at(&server).await?;
    let first = program.create(&setup).await?;
    let second = program.create(&setup).await?;
    let listed = async |program: &mut Program| -> Result<Vec<String>> {
        let listed = program.result("sessions.list", json!({})).await?;
        let sessions = listed["sessions"].as_array().context("no sessions")?;
        let keys = sessions
            .iter()
            .filter_map(|session| session["key"].as_str());
        Ok(keys.map(str::to_owned).collect())
    };
    assert_eq!(listed(&mut program).await?, [&*second, &*first]);
    // By creation: activity does not change the order.
    program.say(&first, "say hi").await?;
    assert_eq!(listed(&mut program).await?, [second, first]);
    Ok(())
}

#[tokio::test]
async fn personas_are_listed_first_and_sessions_are_created_with_them() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    std::fs::create_dir_all(setup.data_dir().join("workspace"))?;
    let personas = "## reviewer\nFinds faults in a change.\n\n## tester\nWrites tests.\n";
    std::fs::write(setup.data_dir().join("workspace/AGENTS.md"), personas)?;
    let server = setup.start().await?;
    let mut program = Program::at(&server).await?;
    let listed = program.result("agents.list", json!({})).await?;
    assert_eq!(listed["agents"][0]["id"], "reviewer");
    assert_eq!(listed["agents"][1]["id"], "tester");
    let params = json!({"agentId": "tester", "cwd": setup.folder("app")?});
    let created = program.result("sessions.create", params).await?;
    assert_eq!(created["session"]["agentId"], "tester");
    let unknown = json!({"agentId": "poet", "cwd": setup.folder("app")?});
    assert_eq!(program.code("sessions.create", unknown).await?, -32602);
    Ok(())
}

#[tokio::test]
async fn sessions_are_renamed_archived_and_deleted() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let server = setup.start().await?;
    let mut program = Program::at(&server).await?;
    let key = program.create(&setup).await?;
    let of = json!({"sessionKey": key});
    program
        .result(
            "sessions.rename",
            json!({"sessionKey": key, "label": "Mine"}),
        )
        .await?;
    // Keys are not case-sensitive.
    let capitals = json!({"sessionKey": key.to_uppercase()});
    let got = program.result("sessions.get", capitals).await?;
    assert_eq!(got["session"]["label"], "Mine");
    program.result("sessions.archive", of.clone()).await?;
    assert_eq!(
        program.result("sessions.list", json!({})).await?["sessions"],
        json!([])
    );
    let archived = program
        .result("sessions.list", json!({"archived": true}))
        .await?;
    assert_eq!(archived["sessions"][0]["key"], key.as_str());
    program.result("sessions.unarchive", of.clone()).await?;
    let transcript = |folder: &str| setup.data_dir().join(format!("{folder}/{key}.jsonl"));
    assert!(transcript("sessions").exists());
    program.result("sessions.delete", of.clone()).await?;
    assert_eq!(program.code("sessions.get", of).await?, 404);
    assert!(!transcript("sessions").exists() && transcript("trash").exists());
    let projects = program.result("projects.list", json!({})).await?;
    let id = &projects["projects"][0]["id"];
    program
        .result("projects.remove", json!({"projectId": id}))
        .await?;
    assert_eq!(
        program.result("projects.list", json!({})).await?["projects"],
        json!([])
    );
    Ok(())
}

#[tokio::test]
async fn gateway_client_and_browser_see_the_same_session() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let server = setup.start().await?;
    let mut program = Program::at(&server).await?;
    let created = program
        .result(
            "sessions.create",
            json!({"agentId": "claude-code", "cwd": setup.folder("app")?}),
        )
        .await?;
    let (key, id) = (
        created["sessionKey"].clone(),
        created["session"]["id"].clone(),
    );
    let mut browser = server.connect().await?;
    browser
        .send(json!({"type": "session:open", "sessionId": id}))
        .await?;
    browser.next_of("session:history").await?;
    let send = json!({"type": "session:send", "sessionId": id, "content": "say from the browser", "requestId": "b1"});
    browser.send(send).await?;
    let mut events = vec![];
    while ends(&events).is_empty() {
        events.push(program.event().await?);
    }
    assert_eq!(heard_text(&events, "chat.user"), "say from the browser");
    assert_eq!(heard_text(&events, "chat.delta"), "from the browser");
    let run = events.last().context("no end")?["data"]["runId"].clone();
    let history = program
        .result("chat.history", json!({"sessionKey": key}))
        .await?;
    assert_eq!(history["messages"][1]["runId"], run);
    Ok(())
}

#[tokio::test]
async fn reconnected_client_resumes_after_its_last_event() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let server = setup.start().await?;
    let mut first = Program::at(&server).await?;
    let key = first.create(&setup).await?;
    let go_on = setup.home().join("go-on");
    let script = format!("say one \nuntil {}\nsay two", go_on.display());
    let run = first.send(&key, &script).await?;
    let subscribed = first
        .result("sessions.subscribe", json!({"sessionKey": key}))
        .await?;
    let seq = first.event_of("chat.delta").await?["data"]["seq"].clone();
    drop(first);
    let mut back = Program::at(&server).await?;
    let after = json!({"bootId": subscribed["bootId"], "seq": seq});
    let params = json!({"sessionKey": key, "after": after});
    let resumed = back.result("sessions.subscribe", params).await?;
    assert_eq!(resumed["resumed"], true);
    assert_eq!(resumed["seq"], seq);
    // Events of another server start cannot be resumed.
    let elsewhere = json!({"bootId": "another", "seq": seq});
    let params = json!({"sessionKey": key, "after": elsewhere});
    let mut late = Program::at(&server).await?;
    let not_resumed = late.result("sessions.subscribe", params).await?;
    assert_eq!(not_resumed["resumed"], false);
    assert!(not_resumed["seq"].as_u64() >= seq.as_u64(), "{not_resumed}");
    std::fs::write(go_on, "")?;
    let events = back.until_end(&run).await?;
    assert_eq!(heard_text(&events, "chat.delta"), "two", "{events:?}");
    assert_eq!(ends(&events), ["chat.final"]);
    Ok(())
}

#[tokio::test]
async fn restored_session_sends_events_again() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let server = setup.start().await?;
    let mut program = Program::at(&server).await?;
    let key = program.create(&setup).await?;
    program.say(&key, "say before").await?;
    let of = json!({"sessionKey": key});
    let got = program.result("sessions.get", of).await?;
    let mut browser = server.connect().await?;
    for operation in ["session:delete", "session:restore"] {
        let request = json!({"type": operation, "sessionId": got["session"]["id"]});
        let answer = browser.ask(request).await?;
        assert_ne!(answer["type"], "error", "{answer}");
    }
    let events = program.say(&key, "say after").await?;
    assert_eq!(heard_text(&events, "chat.delta"), "after");
    assert_eq!(ends(&events), ["chat.final"]);
    Ok(())
}
