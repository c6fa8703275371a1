//! The gateway, as a program uses it.

use std::collections::VecDeque;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testkit::{Server, ServerSetup, Socket};

const PROGRAM: &str = env!("CARGO_BIN_EXE_liminal");

fn setup() -> Result<ServerSetup> {
    ServerSetup::new(PROGRAM)?.with_scripted_agent("")
}

/// A program that is connected, with the events that came meanwhile.
struct Program {
    socket: Socket,
    events: VecDeque<Value>,
    next_id: u64,
}

async fn stranger(server: &Server) -> Result<Socket> {
    let host = server.address.to_string();
    Ok(Socket::open(server.address, "/gateway", &[("host", host.as_str())]).await?)
}

async fn program(server: &Server) -> Result<Program> {
    let mut socket = stranger(server).await?;
    let hello = json!({"type": "auth", "token": server.token});
    socket.send(hello).await?;
    assert_eq!(socket.next().await?, json!({"type": "auth", "ok": true}));
    Ok(Program {
        socket,
        events: VecDeque::new(),
        next_id: 1,
    })
}

impl Program {
    async fn call(&mut self, method: &str, params: Value) -> Result<Value> {
        let id = self.next_id;
        self.next_id += 1;
        let request = json!({"id": id, "method": method, "params": params});
        self.socket.send(request).await?;
        loop {
            let frame = self.socket.next().await?;
            if frame["id"] == id {
                return Ok(frame);
            }
            ensure!(
                frame["event"].is_string(),
                "neither answer nor event: {frame}"
            );
            self.events.push_back(frame);
        }
    }

    async fn result(&mut self, method: &str, params: Value) -> Result<Value> {
        let answer = self.call(method, params).await?;
        ensure!(answer.get("error").is_none(), "{answer}");
        Ok(answer["result"].clone())
    }

    async fn code(&mut self, method: &str, params: Value) -> Result<i64> {
        let answer = self.call(method, params).await?;
        answer["error"]["code"]
            .as_i64()
            .with_context(|| format!("no error: {answer}"))
    }

    /// Everything up to the end of a run.
    async fn until_end(&mut self, run_id: &str) -> Result<Vec<Value>> {
        let mut heard = vec![];
        loop {
            let event = match self.events.pop_front() {
                Some(event) => event,
                None => self.socket.next().await?,
            };
            let ends =
                ["chat.final", "chat.error"].contains(&event["event"].as_str().unwrap_or_default());
            let ours = event["data"]["runId"] == run_id;
            heard.push(event);
            if ends && ours {
                return Ok(heard);
            }
        }
    }

    async fn say(&mut self, key: &str, message: &str) -> Result<Vec<Value>> {
        let params = json!({"sessionKey": key, "message": message});
        let sent = self.result("chat.send", params).await?;
        self.until_end(sent["runId"].as_str().context("a run")?)
            .await
    }

    async fn create(&mut self, server: &ServerSetup) -> Result<String> {
        let params = json!({"agentId": "claude-code", "cwd": server.folder("app")?});
        let created = self.result("sessions.create", params).await?;
        Ok(created["sessionKey"].as_str().context("a key")?.to_owned())
    }
}

fn text(events: &[Value], event: &str) -> String {
    let of = events.iter().filter(|heard| heard["event"] == event);
    of.filter_map(|heard| heard["data"]["text"].as_str())
        .collect()
}

fn ends(events: &[Value]) -> Vec<&str> {
    let names = events.iter().filter_map(|heard| heard["event"].as_str());
    names
        .filter(|name| ["chat.final", "chat.error"].contains(name))
        .collect()
}

#[tokio::test]
async fn the_walk_through_sessions_and_chat_works_and_survives_a_restart() -> Result<()> {
    let setup = setup()?;
    let server = setup.start().await?;
    let mut program = program(&server).await?;
    let agents = program.result("agents.list", json!({})).await?;
    assert_eq!(agents["agents"][0]["id"], "assistant");
    let created = program.result("sessions.create", json!({})).await?;
    let key = created["sessionKey"].as_str().context("a key")?.to_owned();
    assert_eq!(created["session"]["agentId"], "assistant");
    let first = program.say(&key, "/help").await?;
    assert!(text(&first, "chat.delta").contains("model"), "{first:?}");
    assert_eq!(ends(&first), ["chat.final"]);
    program.say(&key, "/files").await?;
    let history = program
        .result("chat.history", json!({"sessionKey": key}))
        .await?;
    let messages = history["messages"].as_array().context("messages")?;
    let asked: Vec<&Value> = messages
        .iter()
        .filter(|one| one["role"] == "user")
        .map(|one| &one["content"])
        .collect();
    assert_eq!(asked, ["/help", "/files"]);
    assert!(
        messages
            .iter()
            .all(|one| one["runId"].is_string() && one["timestamp"].as_i64() > Some(0))
    );

    server.signal("TERM").await?;
    let server = setup.start().await?;
    let mut program = self::program(&server).await?;
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
async fn deltas_come_in_order_after_the_answer_and_each_run_ends_once() -> Result<()> {
    let setup = setup()?;
    let server = setup.start().await?;
    let mut program = program(&server).await?;
    let key = program.create(&setup).await?;
    let events = program
        .say(
            &key,
            "think hm\nsay one \ntool t1 read Look\ntool-done t1 found\nsay two\nflood 500 10",
        )
        .await?;
    assert_eq!(text(&events, "chat.thinking"), "hm");
    let said = text(&events, "chat.delta");
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
    let mut program = program(&server).await?;
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
    let mut program = program(&server).await?;
    let key = program.create(&setup).await?;
    let running = program
        .result(
            "chat.send",
            json!({"sessionKey": key, "message": "say begun\nhang"}),
        )
        .await?;
    let waiting = program
        .result(
            "chat.send",
            json!({"sessionKey": key, "message": "say later"}),
        )
        .await?;
    let queue = program
        .result("chat.queue", json!({"sessionKey": key}))
        .await?;
    assert_eq!(queue["waiting"][0]["runId"], waiting["runId"]);
    program
        .result("chat.abort", json!({"runId": waiting["runId"]}))
        .await?;
    let back = program
        .until_end(waiting["runId"].as_str().context("a run")?)
        .await?;
    assert_eq!(back.last().context("an end")?["event"], "chat.error");
    program
        .result("chat.abort", json!({"runId": running["runId"]}))
        .await?;
    let stopped = program
        .until_end(running["runId"].as_str().context("a run")?)
        .await?;
    assert_eq!(
        stopped.last().context("an end")?["data"]["stopReason"],
        "cancelled"
    );
    assert_eq!(
        program
            .code("chat.abort", json!({"runId": running["runId"]}))
            .await?,
        404
    );
    Ok(())
}

#[tokio::test]
async fn a_crash_of_the_agent_ends_the_run_with_an_error() -> Result<()> {
    let setup = setup()?;
    let server = setup.start().await?;
    let mut program = program(&server).await?;
    let key = program.create(&setup).await?;
    let events = program.say(&key, "say half\ncrash 1").await?;
    assert_eq!(text(&events, "chat.delta"), "half");
    assert_eq!(ends(&events), ["chat.error"]);
    Ok(())
}

#[tokio::test]
async fn questions_of_agents_are_listed_and_answered() -> Result<()> {
    let setup = setup()?.env("LIMINAL_PERMISSIONS", "ask");
    let server = setup.start().await?;
    let mut program = program(&server).await?;
    let key = program.create(&setup).await?;
    let sent = program
        .result(
            "chat.send",
            json!({"sessionKey": key, "message": "permission p1 Delete it"}),
        )
        .await?;
    let asked = loop {
        let event = match program.events.pop_front() {
            Some(event) => event,
            None => program.socket.next().await?,
        };
        if event["event"] == "permissions.asked" {
            break event;
        }
    };
    let listed = program.result("permissions.list", json!({})).await?;
    assert_eq!(
        listed["permissions"][0]["permissionId"],
        asked["data"]["permissionId"]
    );
    assert_eq!(listed["permissions"][0]["sessionKey"], key.as_str());
    let option = &asked["data"]["options"][0]["optionId"];
    let answer = json!({"sessionKey": key, "permissionId": asked["data"]["permissionId"], "optionId": option});
    program.result("permissions.answer", answer).await?;
    let events = program
        .until_end(sent["runId"].as_str().context("a run")?)
        .await?;
    assert_eq!(ends(&events), ["chat.final"]);
    Ok(())
}

#[tokio::test]
async fn sessions_are_renamed_archived_and_deleted() -> Result<()> {
    let setup = setup()?;
    let server = setup.start().await?;
    let mut program = program(&server).await?;
    let key = program.create(&setup).await?;
    let of = json!({"sessionKey": key});
    program
        .result(
            "sessions.rename",
            json!({"sessionKey": key, "label": "Mine"}),
        )
        .await?;
    let got = program.result("sessions.get", of.clone()).await?;
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
    program.result("sessions.delete", of.clone()).await?;
    assert_eq!(program.code("sessions.get", of).await?, 404);
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
async fn wrong_parameters_are_refused_by_name_and_nothing_happens() -> Result<()> {
    let setup = setup()?;
    let server = setup.start().await?;
    let mut program = program(&server).await?;
    let key = program.create(&setup).await?;
    let nobody = "00000000-0000-4000-8000-000000000000";
    for (method, params) in [
        ("sessions.get", json!({"sessionKey": "../../etc/passwd"})),
        ("sessions.get", json!({})),
        ("sessions.get", json!([key])),
        ("sessions.get", json!({"sessionKey": key, "more": 1})),
        ("chat.send", json!({"sessionKey": key, "message": ""})),
        (
            "chat.send",
            json!({"sessionKey": key, "message": "x".repeat(32_001)}),
        ),
        ("chat.send", json!({"sessionKey": key, "message": 7})),
        ("chat.history", json!({"sessionKey": key, "limit": 0})),
        ("chat.history", json!({"sessionKey": key, "limit": 501})),
        ("chat.history", json!({"sessionKey": key, "limit": 1.5})),
        ("chat.abort", json!({"runId": "7"})),
        ("sessions.create", json!({"agentId": "nobody"})),
        ("sessions.create", json!({"cwd": "relative"})),
        ("sessions.create", json!({"cwd": "/no/such/folder/at/all"})),
    ] {
        assert_eq!(
            program.code(method, params.clone()).await?,
            -32602,
            "{method} {params}"
        );
    }
    for method in ["sessions.get", "sessions.delete", "chat.history"] {
        assert_eq!(
            program.code(method, json!({"sessionKey": nobody})).await?,
            404,
            "{method}"
        );
    }
    assert_eq!(program.code("chat.explode", json!({})).await?, -32601);
    assert_eq!(setup.count_asked("session/prompt"), 0);
    program.socket.send_text("{").await?;
    assert_eq!(program.socket.next().await?["error"]["code"], -32700);
    for odd in [
        r#"{"method":"health.check"}"#,
        r#"{"id":{},"method":"health.check"}"#,
        "[]",
        "7",
    ] {
        program.socket.send_text(odd).await?;
        assert_eq!(
            program.socket.next().await?["error"]["code"],
            -32600,
            "{odd}"
        );
    }
    program
        .socket
        .send_text(r#"{"id":1,"id":2,"method":"health.check"}"#)
        .await?;
    assert_eq!(program.socket.next().await?["error"]["code"], -32700);
    assert_eq!(
        program.result("health.check", json!({})).await?["status"],
        "ok"
    );
    Ok(())
}

#[tokio::test]
async fn nobody_gets_in_without_the_token_and_strangers_do_not_stay() -> Result<()> {
    let setup = setup()?;
    let server = setup.start().await?;
    for (first, error) in [
        (json!({"type": "auth", "token": "wrong"}), "invalid token"),
        (
            json!({"id": 1, "method": "health.check"}),
            "authentication required",
        ),
        (
            json!({"type": "auth", "token": "x".repeat(5000)}),
            "authentication required",
        ),
    ] {
        let mut socket = stranger(&server).await?;
        socket.send(first).await?;
        let refused = json!({"type": "auth", "ok": false, "error": error});
        assert_eq!(socket.next().await?, refused);
        assert_eq!(socket.closed().await?, Some(4401));
    }
    let host = server.address.to_string();
    let foreign = [("host", host.as_str()), ("origin", "https://example.com")];
    let refused = Socket::open(server.address, "/gateway", &foreign).await;
    assert_eq!(refused.err().context("refused")?.status, Some(403));
    // So many may stand in the doorway; those inside do not notice.
    let mut inside = program(&server).await?;
    let mut waiting = vec![];
    let turned_away = loop {
        match stranger(&server).await {
            Ok(socket) => waiting.push(socket),
            Err(refused) => break refused,
        }
        ensure!(waiting.len() < 100, "nobody was turned away");
    };
    assert!(turned_away.to_string().contains("503"), "{turned_away}");
    assert_eq!(waiting.len(), 16);
    assert_eq!(
        inside.result("health.check", json!({})).await?["status"],
        "ok"
    );
    let mut first = waiting.remove(0);
    let late = json!({"type": "auth", "ok": false, "error": "authentication took too long"});
    assert_eq!(first.next().await?, late);
    Ok(())
}

#[tokio::test]
async fn a_program_and_a_browser_see_the_same_session() -> Result<()> {
    let setup = setup()?;
    let server = setup.start().await?;
    let mut program = program(&server).await?;
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
    let heard = loop {
        let event = program.socket.next().await?;
        let done = event["event"] == "chat.final";
        program.events.push_back(event);
        if done {
            break program.events.make_contiguous().to_vec();
        }
    };
    assert_eq!(text(&heard, "chat.user"), "say from the browser");
    assert_eq!(text(&heard, "chat.delta"), "from the browser");
    let run = heard.last().context("an end")?["data"]["runId"].clone();
    let history = program
        .result("chat.history", json!({"sessionKey": key}))
        .await?;
    assert_eq!(history["messages"][1]["runId"], run);
    Ok(())
}

#[tokio::test]
async fn a_program_that_comes_back_goes_on_where_it_was() -> Result<()> {
    let setup = setup()?;
    let server = setup.start().await?;
    let mut first = program(&server).await?;
    let key = first.create(&setup).await?;
    let go_on = setup.home().join("go-on");
    let script = format!("say one \nuntil {}\nsay two", go_on.display());
    let params = json!({"sessionKey": key, "message": script});
    let sent = first.result("chat.send", params).await?;
    let subscribed = first
        .result("sessions.subscribe", json!({"sessionKey": key}))
        .await?;
    let seq = loop {
        let event = match first.events.pop_front() {
            Some(event) => event,
            None => first.socket.next().await?,
        };
        if event["event"] == "chat.delta" {
            break event["data"]["seq"].clone();
        }
    };
    drop(first);
    let mut back = program(&server).await?;
    let after = json!({"bootId": subscribed["bootId"], "seq": seq});
    let params = json!({"sessionKey": key, "after": after});
    back.result("sessions.subscribe", params).await?;
    std::fs::write(go_on, "")?;
    let run = sent["runId"].as_str().context("a run")?;
    let events = back.until_end(run).await?;
    assert_eq!(text(&events, "chat.delta"), "two", "{events:?}");
    assert_eq!(ends(&events), ["chat.final"]);
    Ok(())
}

#[tokio::test]
async fn a_long_history_comes_in_pages_and_a_huge_message_on_its_own() -> Result<()> {
    let setup = setup()?;
    let server = setup.start().await?;
    let mut program = program(&server).await?;
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

#[tokio::test]
async fn too_many_requests_are_refused_for_a_moment() -> Result<()> {
    let setup = setup()?;
    let server = setup.start().await?;
    let mut program = program(&server).await?;
    for id in 0..400 {
        let request = json!({"id": id, "method": "health.check"});
        program.socket.send(request).await?;
    }
    let mut refused = 0;
    for _ in 0..400 {
        let answer = program.socket.next().await?;
        refused += usize::from(answer["error"]["code"] == 429);
    }
    assert!(refused > 0);
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(
        program.result("health.check", json!({})).await?["status"],
        "ok"
    );
    Ok(())
}

#[tokio::test]
async fn a_new_token_sends_everybody_away_and_lets_in_who_has_it() -> Result<()> {
    let setup = setup()?;
    let server = setup.start().await?;
    let mut inside = program(&server).await?;
    let mut browser = server.connect().await?;
    let printed = setup.run(&["token", "--rotate"]).await?;
    let token = String::from_utf8(printed.stdout)?.trim().to_owned();
    assert!(token.len() == 64 && token != server.token, "{token}");
    assert_eq!(inside.socket.closed().await?, Some(4401));
    assert_eq!(browser.closed().await?, Some(4401));
    let mut old = stranger(&server).await?;
    old.send(json!({"type": "auth", "token": server.token}))
        .await?;
    assert_eq!(old.next().await?["error"], "invalid token");
    let mut new = stranger(&server).await?;
    new.send(json!({"type": "auth", "token": token})).await?;
    assert_eq!(new.next().await?["ok"], true);
    Ok(())
}

#[tokio::test]
async fn a_crowd_in_the_doorway_keeps_nobody_inside_waiting() -> Result<()> {
    use tokio::io::AsyncWriteExt as _;
    let setup = setup()?;
    let server = setup.start().await?;
    let mut inside = program(&server).await?;
    let key = inside.create(&setup).await?;
    let upgrade = format!(
        "GET /gateway HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        server.address
    );
    let broken = upgrade.replace("Version: 13", "Version: 7");
    let mut crowd = vec![];
    for number in 0..2000 {
        let mut stream = tokio::net::TcpStream::connect(server.address).await?;
        let words = if number % 2 == 0 { &upgrade } else { &broken };
        // Those at the end of the line have their words kept by the system.
        let _ = stream.write_all(words.as_bytes()).await;
        crowd.push(stream);
        if number % 100 == 0 {
            inside.result("health.check", json!({})).await?;
        }
    }
    let events = inside.say(&key, "say still here").await?;
    assert_eq!(text(&events, "chat.delta"), "still here");
    drop(crowd);
    // And the next one finds the door open again.
    for attempt in 0.. {
        match program(&server).await {
            Ok(mut next) => {
                assert_eq!(
                    next.result("health.check", json!({})).await?["status"],
                    "ok"
                );
                return Ok(());
            }
            Err(error) => ensure!(attempt < 200, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

/// Texts that have broken readers of JSON before, and every beginning of a good one.
fn odd_texts() -> Vec<String> {
    let good = r#"{"id":"1","method":"chat.history","params":{"sessionKey":"é","limit":1}}"#;
    let cuts = good.char_indices().map(|(at, _)| good[..at].to_owned());
    let odd = [
        "null",
        "true",
        "\"\"",
        "-",
        "-0",
        "1e999",
        "NaN",
        "Infinity",
        "0x1",
        "01",
        "1.",
        ".5",
        "{}",
        "[]",
        "[[]]",
        "{\"id\":1e400,\"method\":\"health.check\"}",
        "{\"id\":1,\"method\":null}",
        "{\"id\":1,\"method\":\"\\ud800\"}",
        "{\"id\":\"\\u0000\",\"method\":\"health.check\",\"params\":[]}",
        "{\"id\":1,\"method\":\"health.check\"}{}",
        "{\"id\":1,\"method\":\"health.check\",}",
        "{'id':1}",
        "{id:1}",
        "\u{feff}{}",
        "/**/{}",
        "{\"id\":-1,\"method\":\"\\x41\"}",
        "{\"id\":1,\"method\":\"health.check\",\"params\":{\"__proto__\":{}}}",
        "{\"\":{\"\":{}}}",
        "\u{0}",
        "\u{1f}",
        "{\"id\":1,\"method\":\"sessions.get\",\"params\":{\"sessionKey\":{\"$ne\":null}}}",
    ];
    let deep = ["[", "{\"a\":"].map(|open| open.repeat(100_000));
    let wide = format!("{{\"id\":1,\"method\":\"{}\"}}", "m".repeat(500_000));
    let number = format!(
        "{{\"id\":{},\"method\":\"health.check\"}}",
        "9".repeat(100_000)
    );
    cuts.chain(odd.map(str::to_owned))
        .chain(deep)
        .chain([wide, number])
        .collect()
}

#[tokio::test]
async fn no_text_breaks_either_door() -> Result<()> {
    let setup = setup()?;
    let server = setup.start().await?;
    let mut gateway = program(&server).await?;
    let mut browser = server.connect().await?;
    for odd in odd_texts() {
        gateway.socket.send_text(&odd).await?;
        let answer = gateway.socket.next().await?;
        let refused = answer["error"]["code"].as_i64();
        assert!(refused.is_some_and(|code| code < 0), "{answer}");
        // The line in front of the door is not what is tested here.
        tokio::time::sleep(Duration::from_millis(10)).await;
        browser.send_text(&odd).await?;
        let answer = browser.next_of("error").await?;
        assert_eq!(answer["code"], "INVALID_MESSAGE", "{answer}");
    }
    assert_eq!(
        gateway.result("health.check", json!({})).await?["status"],
        "ok"
    );
    browser.send(json!({"type": "project:list"})).await?;
    browser.next_of("project:list").await?;
    Ok(())
}

#[tokio::test]
async fn the_gateway_has_a_port_of_its_own() -> Result<()> {
    let free = std::net::TcpListener::bind("127.0.0.1:0")?
        .local_addr()?
        .port();
    let setup = setup()?.env("LIMINAL_GATEWAY_PORT", free.to_string());
    let server = setup.start().await?;
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], free));
    let host = address.to_string();
    let mut socket = Socket::open(address, "/", &[("host", host.as_str())]).await?;
    socket
        .send(json!({"type": "auth", "token": server.token}))
        .await?;
    assert_eq!(socket.next().await?, json!({"type": "auth", "ok": true}));
    let wrong_host = Socket::open(address, "/", &[("host", "evil.example")]).await;
    assert_eq!(wrong_host.err().context("refused")?.status, Some(421));
    Ok(())
}

#[tokio::test]
async fn the_reference_page_is_what_the_table_says() -> Result<()> {
    let printed = setup()?.run(&["gateway", "reference"]).await?;
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/gateway.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &printed.stdout)?;
    }
    let written = std::fs::read(path).context("docs/gateway.md; UPDATE_DOCS=1 writes it")?;
    assert_eq!(
        String::from_utf8_lossy(&written),
        String::from_utf8_lossy(&printed.stdout),
        "UPDATE_DOCS=1 writes it anew"
    );
    let schema: Value =
        serde_json::from_slice(&setup()?.run(&["gateway", "schema"]).await?.stdout)?;
    let methods = schema["methods"].as_object().context("methods")?;
    for (name, method) in methods {
        jsonschema::validator_for(&method["params"])
            .map_err(|error| anyhow::anyhow!("{name}: {error}"))?;
    }
    let send = jsonschema::validator_for(&methods["chat.send"]["params"])?;
    assert!(!send.is_valid(&json!({"sessionKey": "x", "message": ""})));
    Ok(())
}
