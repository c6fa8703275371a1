//! Tests of runs and chat events: in order, without duplicates, with exactly one end.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use testkit::{Program, ServerSetup, ends, heard_text};

#[tokio::test]
async fn deltas_follow_the_response_in_order_and_each_run_ends_once() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let server = setup.start().await?;
    let mut program = Program::at(&server).await?;
    let key = program.create(&setup).await?;
    let counted: String = (0..300).map(|number| format!("say {number},\n")).collect();
    let script =
        format!("think hm\nsay one \ntool t1 read Look\ntool-done t1 found\nsay two,\n{counted}");
    let events = program.say(&key, &script).await?;
    assert_eq!(heard_text(&events, "chat.thinking"), "hm");
    let text = heard_text(&events, "chat.delta");
    let counted = counted.replace("say ", "").replace('\n', "");
    assert_eq!(text, format!("one two,{counted}"));
    let tools: Vec<&Value> = events
        .iter()
        .filter(|event| event["event"] == "chat.tool")
        .collect();
    assert_eq!(
        tools.last().context("no tool call")?["data"]["content"],
        "found"
    );
    let numbers: Vec<u64> = events
        .iter()
        .filter_map(|event| event["data"]["seq"].as_u64())
        .collect();
    assert!(
        numbers.is_sorted_by(|number, next| number < next),
        "{numbers:?}"
    );
    assert_eq!(ends(&events), ["chat.final"]);
    // No further event of the first run arrives during the next one.
    let events = program.say(&key, "say next").await?;
    assert_eq!(ends(&events), ["chat.final"]);
    let history = program
        .result("chat.history", json!({"sessionKey": key}))
        .await?;
    let roles: Vec<&str> = history["messages"]
        .as_array()
        .context("no messages")?
        .iter()
        .filter_map(|message| message["role"].as_str())
        .collect();
    let all = "user assistant tool_result assistant user assistant";
    assert_eq!(roles.join(" "), all);
    Ok(())
}

#[tokio::test]
async fn late_updates_of_an_ended_run_are_not_events_of_the_next_run() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let server = setup.start().await?;
    let mut program = Program::at(&server).await?;
    let key = program.create(&setup).await?;
    let named = |text: &str| {
        let content = json!({"type": "text", "text": text});
        json!({"sessionUpdate": "agent_message_chunk", "messageId": "m1", "content": content})
    };
    let done =
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "completed"});
    let script = format!(
        "update {}\ntool t1 read Look\nlate-sleep 20\nlate-update {}\nlate-update {done}",
        named("one"),
        named(" more")
    );
    program.say(&key, &script).await?;
    let events = program.say(&key, "say two\nsleep 100").await?;
    assert_eq!(heard_text(&events, "chat.delta"), "two");
    let is_call = |event: &&Value| event["event"] == "chat.tool";
    let call = events.iter().find(is_call).context("the late result")?;
    assert_eq!(call["data"]["status"], "complete");
    assert_eq!(call["data"]["runId"], Value::Null);
    let history = program
        .result("chat.history", json!({"sessionKey": key}))
        .await?;
    assert!(history.to_string().contains("one more"), "{history}");
    Ok(())
}

#[tokio::test]
async fn repeated_idempotency_key_returns_the_first_run() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let server = setup.start().await?;
    let mut program = Program::at(&server).await?;
    let key = program.create(&setup).await?;
    let params = json!({"sessionKey": key, "message": "say once", "idempotencyKey": "job-7"});
    let first = program.result("chat.send", params.clone()).await?;
    program
        .until_end(first["runId"].as_str().context("no run")?)
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
async fn abort_ends_a_running_run_and_removes_a_queued_one() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
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
    assert_eq!(back.last().context("no end")?["event"], "chat.error");
    program
        .result("chat.abort", json!({"runId": running}))
        .await?;
    let stopped = program.until_end(&running).await?;
    assert_eq!(
        stopped.last().context("no end")?["data"]["stopReason"],
        "cancelled"
    );
    let again = program
        .code("chat.abort", json!({"runId": running}))
        .await?;
    assert_eq!(again, 404);
    Ok(())
}

#[tokio::test]
async fn aborted_run_leaves_the_queue_paused_until_it_is_resumed() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let server = setup.start().await?;
    let mut program = Program::at(&server).await?;
    let key = program.create(&setup).await?;
    let running = program.send(&key, "say begun\nhang").await?;
    program.event_of("chat.delta").await?;
    let waiting = program.send(&key, "say later").await?;
    let abort = json!({"runId": running});
    program.result("chat.abort", abort).await?;
    program.until_end(&running).await?;
    let of = json!({"sessionKey": key});
    let queue = program.result("chat.queue", of).await?;
    assert_eq!(queue["waiting"][0]["runId"], waiting.as_str());
    assert_eq!(queue["held"], true);
    let resume = json!({"sessionKey": key, "resume": true});
    let queue = program.result("chat.queue", resume).await?;
    assert_eq!(queue, json!({"waiting": [], "held": false}));
    let events = program.until_end(&waiting).await?;
    assert_eq!(heard_text(&events, "chat.delta"), "later");
    Ok(())
}

#[tokio::test]
async fn every_run_of_a_deleted_session_ends_once() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let server = setup.start().await?;
    let mut program = Program::at(&server).await?;
    let key = program.create(&setup).await?;
    let running = program.send(&key, "say begun\nhang").await?;
    program.event_of("chat.delta").await?;
    let waiting = program.send(&key, "say later").await?;
    let of = json!({"sessionKey": key});
    let got = program.result("sessions.get", of.clone()).await?;
    program.result("sessions.delete", of.clone()).await?;
    let mut events = program.until_end(&running).await?;
    events.extend(program.until_end(&waiting).await?);
    assert_eq!(ends(&events), ["chat.error", "chat.error"]);
    // After the restore the message is still queued and belongs to no run.
    let mut browser = server.connect().await?;
    let restore = json!({"type": "session:restore", "sessionId": got["session"]["id"]});
    assert_ne!(browser.ask(restore).await?["type"], "error");
    let queue = program.result("chat.queue", of).await?;
    assert_eq!(queue["waiting"][0]["message"], "say later");
    assert_eq!(queue["waiting"][0]["runId"], json!(null));
    assert_eq!(queue["held"], true);
    Ok(())
}

#[tokio::test]
async fn queued_messages_are_listed_and_sent_in_order() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let server = setup.start().await?;
    let mut program = Program::at(&server).await?;
    let key = program.create(&setup).await?;
    let go_on = setup.home().join("go-on");
    let first = format!("say first\nuntil {}", go_on.display());
    program.send(&key, &first).await?;
    let mut runs = vec![];
    for number in 1..=4 {
        runs.push(program.send(&key, &format!("say {number}")).await?);
    }
    let of = json!({"sessionKey": key});
    let queue = program.result("chat.queue", of.clone()).await?;
    let waiting = queue["waiting"].as_array().context("no list")?;
    let listed: Vec<_> = waiting
        .iter()
        .map(|message| message["runId"].clone())
        .collect();
    assert_eq!(json!(listed), json!(runs));
    let remove = json!({"sessionKey": key, "remove": waiting[1]["queueId"]});
    let queue = program.result("chat.queue", remove).await?;
    assert_eq!(queue["waiting"].as_array().map(Vec::len), Some(3));
    std::fs::write(go_on, "")?;
    let events = program.until_end(&runs[3]).await?;
    assert_eq!(heard_text(&events, "chat.delta"), "first134");
    let queue = program.result("chat.queue", of).await?;
    assert_eq!(queue, json!({"waiting": [], "held": false}));
    Ok(())
}

#[tokio::test]
async fn client_receives_events_only_of_subscribed_sessions() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let server = setup.start().await?;
    let mut first = Program::at(&server).await?;
    let key = first.create(&setup).await?;
    let mut other = Program::at(&server).await?;
    let other_key = other.create(&setup).await?;
    let mut unsubscribed = Program::at(&server).await?;
    first.say(&key, "say not received").await?;
    // Events arrive in order, so an event of the other session would arrive before these.
    let events = other.say(&other_key, "say received").await?;
    let of_other = |event: &&Value| event["data"]["sessionKey"] != other_key.as_str();
    assert_eq!(events.iter().find(of_other), None);
    let health = json!({"id": 7, "method": "health.check"});
    unsubscribed.socket.send(health).await?;
    assert_eq!(unsubscribed.socket.next().await?["id"], 7);
    Ok(())
}

#[tokio::test]
async fn agent_crash_ends_the_run_with_an_error() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let server = setup.start().await?;
    let mut program = Program::at(&server).await?;
    let key = program.create(&setup).await?;
    let events = program.say(&key, "say half\ncrash 1").await?;
    assert_eq!(heard_text(&events, "chat.delta"), "half");
    assert_eq!(ends(&events), ["chat.error"]);
    Ok(())
}

#[tokio::test]
async fn permission_requests_are_listed_and_answered() -> Result<()> {
    let setup = ServerSetup::scripted("")?.env("LIMINAL_PERMISSIONS", "ask");
    let server = setup.start().await?;
    let mut program = Program::at(&server).await?;
    let key = program.create(&setup).await?;
    let run = program.send(&key, "permission p1 Delete it").await?;
    let announced = program.event_of("permissions.asked").await?;
    let listed = program.result("permissions.list", json!({})).await?;
    assert_eq!(
        listed["permissions"][0]["permissionId"],
        announced["data"]["permissionId"]
    );
    assert_eq!(listed["permissions"][0]["sessionKey"], key.as_str());
    let option = &announced["data"]["options"][0]["optionId"];
    let answer = json!({"sessionKey": key, "permissionId": announced["data"]["permissionId"], "optionId": option});
    program.result("permissions.answer", answer).await?;
    let events = program.until_end(&run).await?;
    assert_eq!(ends(&events), ["chat.final"]);
    Ok(())
}

#[tokio::test]
async fn elicitations_are_announced_listed_and_answered() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let server = setup.start().await?;
    let mut program = Program::at(&server).await?;
    let key = program.create(&setup).await?;
    let schema =
        json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    let form = json!({"mode": "form", "message": "Who?", "requestedSchema": schema});
    let run = program
        .send(&key, &format!("ask elicitation/create {form}"))
        .await?;
    let announced = program.event_of("questions.asked").await?;
    assert_eq!(announced["data"]["ask"]["fields"][0]["name"], "name");
    let listed = program.result("questions.list", json!({})).await?;
    let question = &listed["questions"][0];
    assert_eq!(question["questionId"], announced["data"]["questionId"]);
    assert_eq!(question["sessionKey"], key.as_str());
    assert_eq!(question["message"], "Who?");
    let answer = |content: Value| json!({"sessionKey": key, "questionId": question["questionId"], "action": "accept", "content": content});
    let refused = program.call("questions.answer", answer(json!({}))).await?;
    let message = refused["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("is needed"), "{refused}");
    program
        .result("questions.answer", answer(json!({"name": "Ada"})))
        .await?;
    let closed = program.event_of("questions.closed").await?;
    assert_eq!(closed["data"]["outcome"], "accepted");
    let events = program.until_end(&run).await?;
    assert_eq!(ends(&events), ["chat.final"]);
    let left = program.result("questions.list", json!({})).await?;
    assert_eq!(left["questions"], json!([]));
    Ok(())
}

#[tokio::test]
async fn long_history_is_paged_and_a_huge_message_is_fetched_separately() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let server = setup.start().await?;
    let mut program = Program::at(&server).await?;
    let key = program.create(&setup).await?;
    let run = program.send(&key, "huge 200000").await?;
    program.until_end(&run).await?;
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
        let messages = page["messages"].as_array().context("no messages")?.clone();
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
        .context("no cut message")?;
    let whole = program
        .result(
            "chat.message",
            json!({"sessionKey": key, "number": cut["number"]}),
        )
        .await?;
    let mut message = whole["message"].clone();
    let content = message["content"].take();
    assert_eq!(content.as_str().map(str::len), Some(200_000));
    // Except for its content, the message equals the one in the page.
    let mut of_page = cut.clone();
    of_page["content"].take();
    if let Some(fields) = of_page.as_object_mut() {
        fields.remove("cut");
    }
    assert_eq!(message, of_page);
    assert_eq!(message["runId"], run.as_str());
    Ok(())
}

#[tokio::test]
async fn history_page_that_starts_inside_a_run_has_its_run_id() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let server = setup.start().await?;
    let mut program = Program::at(&server).await?;
    let key = program.create(&setup).await?;
    let tools: String = (0..250)
        .map(|number| format!("tool t{number} read Look\ntool-done t{number} found\n"))
        .collect();
    let run = program.send(&key, &tools).await?;
    program.until_end(&run).await?;
    for before in [Value::Null, json!(30)] {
        let params = json!({"sessionKey": key, "limit": 5, "before": before});
        let page = program.result("chat.history", params).await?;
        let messages = page["messages"].as_array().context("no messages")?;
        assert_eq!(messages.len(), 5);
        for message in messages {
            assert_eq!(message["runId"], run.as_str(), "{message}");
            assert!(message["timestamp"].as_i64() > Some(0), "{message}");
        }
    }
    Ok(())
}
