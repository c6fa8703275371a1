//! Tests that invalid requests are answered with an error and have no effect.

use anyhow::{Context, Result};
use serde_json::json;
use testkit::{Program, ServerSetup};

#[tokio::test]
async fn invalid_parameters_are_rejected_without_effect() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let server = setup.start().await?;
    let mut program = Program::at(&server).await?;
    let key = program.create(&setup).await?;
    let unknown_key = "00000000-0000-4000-8000-000000000000";
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
        ("sessions.create", json!({"agentId": "no-such-agent"})),
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
            program
                .code(method, json!({"sessionKey": unknown_key}))
                .await?,
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
async fn unusual_unicode_text_is_stored_unchanged() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
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
    let messages = history["messages"].as_array().context("no messages")?;
    let stored = messages.iter().filter(|message| message["role"] == "user");
    let stored: Vec<_> = stored.map(|message| &message["content"]).collect();
    assert!(stored == [odd, &longest], "{:.300}", history.to_string());
    let label = format!("{} \u{202e}x", "é".repeat(5000));
    let rename = json!({"sessionKey": key, "label": label});
    program.result("sessions.rename", rename).await?;
    let got = program
        .result("sessions.get", json!({"sessionKey": key}))
        .await?;
    assert_eq!(got["session"]["label"], "é".repeat(200));
    Ok(())
}
