//! Tests of the gateway listener: authentication, close codes, rate limits and connection limits.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use testkit::{Program, Server, ServerSetup, Socket, heard_text, http};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// WebSocket upgrade request for `/gateway`.
fn upgrade(server: &Server) -> String {
    format!(
        "GET /gateway HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        server.address
    )
}

#[tokio::test]
async fn unauthenticated_connections_are_rejected_limited_and_closed() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
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
        let mut socket = server.knock().await?;
        socket.send(first).await?;
        let refused = json!({"type": "auth", "ok": false, "error": error});
        assert_eq!(socket.next().await?, refused);
        assert_eq!(socket.closed().await?, Some(4401));
    }
    let host = server.address.to_string();
    let foreign = [("host", host.as_str()), ("origin", "https://example.com")];
    let refused = Socket::open(server.address, "/gateway", &foreign).await;
    assert_eq!(refused.err().context("refused")?.status, Some(403));
    // The number of unauthenticated connections is limited; authenticated clients are not affected.
    let mut client = Program::at(&server).await?;
    let mut waiting = vec![];
    for _ in 0..65 {
        waiting.push(server.knock().await?);
    }
    let mut oldest = waiting.remove(0);
    let evicted =
        json!({"type": "auth", "ok": false, "error": "too many unauthenticated connections"});
    assert_eq!(oldest.next().await?, evicted);
    assert_eq!(oldest.closed().await?, Some(4401));
    assert_eq!(
        client.result("health.check", json!({})).await?["status"],
        "ok"
    );
    let mut first = waiting.remove(0);
    let late = json!({"type": "auth", "ok": false, "error": "authentication took too long"});
    assert_eq!(first.next().await?, late);
    Ok(())
}

#[tokio::test]
async fn close_frame_is_answered_on_gateway_and_browser_sockets() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let server = setup.start().await?;
    let mut unauthenticated = server.knock().await?;
    assert_eq!(unauthenticated.hang_up(1000).await?, Some(1000));
    let mut client = Program::at(&server).await?;
    assert_eq!(client.socket.hang_up(1000).await?, Some(1000));
    let mut browser = server.connect().await?;
    assert_eq!(browser.hang_up(1001).await?, Some(1001));
    Ok(())
}

#[tokio::test]
async fn ping_is_answered_before_authentication() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let server = setup.start().await?;
    let mut socket = server.knock().await?;
    socket.ping().await?;
    let hello = json!({"type": "auth", "token": server.token});
    socket.send(hello).await?;
    assert_eq!(socket.next_of("auth").await?["ok"], true);
    Ok(())
}

#[tokio::test]
async fn oversized_binary_or_rejected_client_gets_a_close_code() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let server = setup.start().await?;
    let mut huge = Program::at(&server).await?;
    // The server may close the connection while the client is still writing.
    let _ = huge.socket.send_text(&"x".repeat(1024 * 1024 + 1)).await;
    assert!(matches!(huge.socket.closed().await?, Some(1009) | None));
    let mut bytes = Program::at(&server).await?;
    bytes.socket.send_bytes(b"{}").await?;
    assert_eq!(bytes.socket.closed().await?, Some(1003));
    // Also when the client sends more before it reads the error.
    let mut hasty = server.knock().await?;
    hasty
        .send(json!({"type": "auth", "token": "wrong"}))
        .await?;
    for _ in 0..3 {
        hasty.send_text(&"x".repeat(4000)).await?;
    }
    assert_eq!(hasty.next().await?["error"], "invalid token");
    assert_eq!(hasty.closed().await?, Some(4401));
    Ok(())
}

#[tokio::test]
async fn unauthenticated_client_cannot_send_a_large_frame() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let server = setup.start().await?;
    let mut unauthenticated = tokio::net::TcpStream::connect(server.address).await?;
    unauthenticated
        .write_all(upgrade(&server).as_bytes())
        .await?;
    let mut answer = vec![];
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(unauthenticated.read_u8().await?);
    }
    // A frame that announces 900,000 bytes, of which only the first 16 KiB are sent.
    let mut begun = vec![0x81, 0xff];
    begun.extend(900_000_u64.to_be_bytes());
    begun.extend([0; 4]);
    begun.resize(16 * 1024, b' ');
    unauthenticated.write_all(&begun).await?;
    let mut response = vec![];
    let closed = unauthenticated.read_to_end(&mut response);
    tokio::time::timeout(testkit::HANG_GUARD, closed).await??;
    let response = String::from_utf8_lossy(&response);
    assert!(response.contains("authentication required"), "{response}");
    Ok(())
}

#[tokio::test]
async fn requests_over_the_rate_limit_are_rejected_temporarily() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let server = setup.start().await?;
    let mut program = Program::at(&server).await?;
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
    // Malformed frames count as well.
    for _ in 0..400 {
        program.socket.send_text("{").await?;
    }
    let mut refused = 0;
    for _ in 0..400 {
        let answer = program.socket.next().await?;
        refused += usize::from(answer["error"]["code"] == 429);
    }
    assert!(refused > 0);
    // Rejected requests are not counted, so requests soon succeed again.
    let accepted_again = async {
        loop {
            let answer = program.call("health.check", json!({})).await?;
            if answer["error"]["code"] != 429 {
                return anyhow::Ok(answer);
            }
        }
    };
    let answer = tokio::time::timeout(testkit::HANG_GUARD, accepted_again).await??;
    assert_eq!(answer["result"]["status"], "ok");
    Ok(())
}

#[tokio::test]
async fn token_rotation_closes_all_connections_and_accepts_the_new_token() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let server = setup.start().await?;
    let mut client = Program::at(&server).await?;
    let mut browser = server.connect().await?;
    let printed = setup.run(&["token", "--rotate"]).await?;
    let token = String::from_utf8(printed.stdout)?.trim().to_owned();
    assert!(token.len() == 64 && token != server.token, "{token}");
    assert_eq!(client.socket.closed().await?, Some(4401));
    assert_eq!(browser.closed().await?, Some(4401));
    let mut old = server.knock().await?;
    old.send(json!({"type": "auth", "token": server.token}))
        .await?;
    assert_eq!(old.next().await?["error"], "invalid token");
    let mut new = server.knock().await?;
    new.send(json!({"type": "auth", "token": token})).await?;
    assert_eq!(new.next().await?["ok"], true);
    Ok(())
}

#[tokio::test]
async fn unauthenticated_flood_does_not_delay_authenticated_clients() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let server = setup.start().await?;
    let mut client = Program::at(&server).await?;
    let key = client.create(&setup).await?;
    let upgrade = upgrade(&server);
    let broken = upgrade.replace("Version: 13", "Version: 7");
    let mut connections = vec![];
    for number in 0..2000 {
        let mut stream = tokio::net::TcpStream::connect(server.address).await?;
        let request = if number % 2 == 0 { &upgrade } else { &broken };
        // Requests of connections that are not accepted yet stay in the system's buffers.
        let _ = stream.write_all(request.as_bytes()).await;
        connections.push(stream);
        if number % 100 == 0 {
            client.result("health.check", json!({})).await?;
        }
    }
    let events = client.say(&key, "say still here").await?;
    assert_eq!(heard_text(&events, "chat.delta"), "still here");
    drop(connections);
    // Afterwards a new client can connect.
    let next = async {
        loop {
            if let Ok(next) = Program::at(&server).await {
                return next;
            }
        }
    };
    let mut next = tokio::time::timeout(testkit::HANG_GUARD, next).await?;
    let health = next.result("health.check", json!({})).await?;
    assert_eq!(health["status"], "ok");
    Ok(())
}

#[tokio::test]
async fn gateway_listens_on_its_own_port() -> Result<()> {
    let free = std::net::TcpListener::bind("127.0.0.1:0")?
        .local_addr()?
        .port();
    let setup = ServerSetup::scripted("")?.env("LIMINAL_GATEWAY_PORT", free.to_string());
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
    let request = ["GET /health HTTP/1.1".to_owned(), format!("Host: {host}")];
    let health = http(address, &request, "").await?;
    assert_eq!(
        (health.status, health.text().as_str()),
        (200, r#"{"status":"ok"}"#)
    );
    Ok(())
}

#[tokio::test]
async fn gateway_reference_page_matches_the_methods() -> Result<()> {
    let printed = ServerSetup::scripted("")?
        .run(&["gateway", "reference"])
        .await?;
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/gateway.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &printed.stdout)?;
    }
    let written = std::fs::read(path)
        .context("docs/gateway.md is missing; run this test with UPDATE_DOCS=1")?;
    assert_eq!(
        String::from_utf8_lossy(&written),
        String::from_utf8_lossy(&printed.stdout),
        "docs/gateway.md is out of date; run this test with UPDATE_DOCS=1"
    );
    let schema: Value = serde_json::from_slice(
        &ServerSetup::scripted("")?
            .run(&["gateway", "schema"])
            .await?
            .stdout,
    )?;
    let methods = schema["methods"].as_object().context("methods")?;
    for (name, method) in methods {
        jsonschema::validator_for(&method["params"])
            .map_err(|error| anyhow::anyhow!("{name}: {error}"))?;
    }
    let send = jsonschema::validator_for(&methods["chat.send"]["params"])?;
    assert!(!send.is_valid(&json!({"sessionKey": "x", "message": ""})));
    Ok(())
}
