//! Whatever is sent, it is answered, and nothing else happens.

use anyhow::{Context, Result};
use serde_json::json;
use testkit::Program;

use crate::setup;

#[tokio::test]
async fn wrong_parameters_are_refused_by_name_and_nothing_happens() -> Result<()> {
    let setup = setup()?;
    let server = setup.start().await?;
    let mut program = Program::at(&server).await?;
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
        ("projects.add", json!({"path": "relative"})),
        ("projects.add", json!({"path": "/no/such/folder/at/all"})),
        ("projects.add", json!({"path": "/a\u{0}b"})),
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
async fn odd_words_arrive_as_they_were_sent() -> Result<()> {
    let setup = setup()?;
    let server = setup.start().await?;
    let mut program = Program::at(&server).await?;
    let key = program.create(&setup).await?;
    let odd =
        "echo \u{0}a\u{1b}[2J\u{202e}gnp\u{2066}\u{feff}\u{fffd}\u{10ffff}../../etc/passwd\u{2028}";
    program.say(&key, odd).await?;
    let longest = format!("say {}", "é".repeat(31_996));
    program.say(&key, &longest).await?;
    let history = json!({"sessionKey": key});
    let history = program.result("chat.history", history).await?;
    let messages = history["messages"].as_array().context("messages")?;
    let said = messages.iter().filter(|message| message["role"] == "user");
    let said: Vec<_> = said.map(|message| &message["content"]).collect();
    assert!(said == [odd, &longest], "{:.300}", history.to_string());
    let label = format!("{} \u{202e}x", "é".repeat(5000));
    let rename = json!({"sessionKey": key, "label": label});
    program.result("sessions.rename", rename).await?;
    let got = program
        .result("sessions.get", json!({"sessionKey": key}))
        .await?;
    assert_eq!(got["session"]["label"], "é".repeat(200));
    Ok(())
}

#[tokio::test]
async fn no_text_breaks_either_door() -> Result<()> {
    let setup = setup()?;
    let server = setup.start().await?;
    let mut gateway = Program::at(&server).await?;
    let mut browser = server.connect().await?;
    let odd_texts = odd_texts();
    // As many as may be asked at once: the line in front of the door is not what is tested here.
    assert!(odd_texts.len() < 200, "{}", odd_texts.len());
    for odd in odd_texts {
        gateway.socket.send_text(&odd).await?;
        let answer = gateway.socket.next().await?;
        let refused = answer["error"]["code"].as_i64();
        assert!(refused.is_some_and(|code| code < 0), "{answer}");
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
