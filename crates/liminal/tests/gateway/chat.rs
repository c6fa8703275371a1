//! What is said: in order, once, and with one end.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use testkit::{Program, ends, heard_text};

use crate::setup;

#[tokio::test]
async fn deltas_come_in_order_after_the_answer_and_each_run_ends_once() -> Result<()> {
    let setup = setup()?;
    let server = setup.start().await?;
    let mut program = Program::at(&server).await?;
    let key = program.create(&setup).await?;
    let events = program
        .say(
            &key,
            "think hm\nsay one \ntool t1 read Look\ntool-done t1 found\nsay two\nflood 500 10",
        )
        .await?;
    assert_eq!(heard_text(&events, "chat.thinking"), "hm");
    let said = heard_text(&events, "chat.delta");
    assert!(
        said.starts_with("one two") && said.len() > 5000,
        "{}",
        said.len()
    );
    let tools: Vec<&Value> = events
        .iter()
        .filter(|one| one["event"] == "chat.tool")
        .collect();
    assert_eq!(
        tools.last().context("a tool call")?["data"]["content"],
        "found"
    );
    let numbers: Vec<u64> = events
        .iter()
        .filter_map(|one| one["data"]["seq"].as_u64())
        .collect();
    assert!(numbers.is_sorted(), "{numbers:?}");
    assert_eq!(ends(&events), ["chat.final"]);
    let history = program
        .result("chat.history", json!({"sessionKey": key}))
        .await?;
    let roles: Vec<&str> = history["messages"]
        .as_array()
        .context("messages")?
        .iter()
        .filter_map(|one| one["role"].as_str())
        .collect();
    assert_eq!(roles, ["user", "assistant", "tool_result", "assistant"]);
    Ok(())
}

#[tokio::test]
async fn the_same_key_is_the_same_message() -> Result<()> {
    let setup = setup()?;
    let server = setup.start().await?;
    let mut program = Program::at(&server).await?;
    let key = program.create(&setup).await?;
    let params = json!({"sessionKey": key, "message": "say once", "idempotencyKey": "job-7"});
    let first = program.result("chat.send", params.clone()).await?;
    program
        .until_end(first["runId"].as_str().context("a run")?)
        .await?;
    assert_eq!(program.result("chat.send", params).await?, first);
    let history = program
        .result("chat.history", json!({"sessionKey": key}))
        .await?;
    assert_eq!(
        history["messages"].as_array().map(Vec::len),
        Some(2),
        "{history}"
    );
    assert_eq!(setup.count_asked("session/prompt"), 1);
    Ok(())
}

#[tokio::test]
async fn a_run_is_stopped_and_one_that_waits_is_taken_back() -> Result<()> {
    let setup = setup()?;
    let server = setup.start().await?;
    let mut program = Program::at(&server).await?;
    let key = program.create(&setup).await?;
    let running = program.send(&key, "say begun\nhang").await?;
    program.event_of("chat.delta").await?;
    let waiting = program.send(&key, "say later").await?;
    let queue = program
        .result("chat.queue", json!({"sessionKey": key}))
        .await?;
    assert_eq!(queue["waiting"][0]["runId"], waiting.as_str());
    program
        .result("chat.abort", json!({"runId": waiting}))
        .await?;
    let back = program.until_end(&waiting).await?;
    assert_eq!(back.last().context("an end")?["event"], "chat.error");
    program
        .result("chat.abort", json!({"runId": running}))
        .await?;
    let stopped = program.until_end(&running).await?;
    assert_eq!(
        stopped.last().context("an end")?["data"]["stopReason"],
        "cancelled"
    );
    let again = program
        .code("chat.abort", json!({"runId": running}))
        .await?;
    assert_eq!(again, 404);
    Ok(())
}

#[tokio::test]
async fn a_crash_of_the_agent_ends_the_run_with_an_error() -> Result<()> {
    let setup = setup()?;
    let server = setup.start().await?;
    let mut program = Program::at(&server).await?;
    let key = program.create(&setup).await?;
    let events = program.say(&key, "say half\ncrash 1").await?;
    assert_eq!(heard_text(&events, "chat.delta"), "half");
    assert_eq!(ends(&events), ["chat.error"]);
    Ok(())
}

#[tokio::test]
async fn questions_of_agents_are_listed_and_answered() -> Result<()> {
    let setup = setup()?.env("LIMINAL_PERMISSIONS", "ask");
    let server = setup.start().await?;
    let mut program = Program::at(&server).await?;
    let key = program.create(&setup).await?;
    let run = program.send(&key, "permission p1 Delete it").await?;
    let asked = program.event_of("permissions.asked").await?;
    let listed = program.result("permissions.list", json!({})).await?;
    assert_eq!(
        listed["permissions"][0]["permissionId"],
        asked["data"]["permissionId"]
    );
    assert_eq!(listed["permissions"][0]["sessionKey"], key.as_str());
    let option = &asked["data"]["options"][0]["optionId"];
    let answer = json!({"sessionKey": key, "permissionId": asked["data"]["permissionId"], "optionId": option});
    program.result("permissions.answer", answer).await?;
    let events = program.until_end(&run).await?;
    assert_eq!(ends(&events), ["chat.final"]);
    Ok(())
}

#[tokio::test]
async fn a_long_history_comes_in_pages_and_a_huge_message_on_its_own() -> Result<()> {
    let setup = setup()?;
    let server = setup.start().await?;
    let mut program = Program::at(&server).await?;
    let key = program.create(&setup).await?;
    program.say(&key, "huge 200000").await?;
    for number in 0..4 {
        program.say(&key, &format!("say {number}")).await?;
    }
    let mut all = vec![];
    let mut before = Value::Null;
    loop {
        let page = program
            .result(
                "chat.history",
                json!({"sessionKey": key, "limit": 3, "before": before}),
            )
            .await?;
        let messages = page["messages"].as_array().context("messages")?.clone();
        assert!(messages.len() <= 3);
        all.splice(0..0, messages);
        match page.get("cursor") {
            Some(cursor) => before = cursor.clone(),
            None => break,
        }
    }
    assert_eq!(all.len(), 10);
    assert_eq!(all[9]["content"], "3");
    let cut = all
        .iter()
        .find(|message| message["cut"] == true)
        .context("a cut message")?;
    let whole = program
        .result(
            "chat.message",
            json!({"sessionKey": key, "number": cut["number"]}),
        )
        .await?;
    assert_eq!(
        whole["message"]["content"].as_str().map(str::len),
        Some(200_000)
    );
    Ok(())
}
