//! Hostile messages and frames on both WebSockets: each is answered or ends its own connection only.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testkit::{Program, Server, ServerSetup, Socket};
use tokio::io::AsyncWriteExt as _;

use crate::fire_attacks::raw::{
    COMPRESSED, CONTINUATION, Caller, Raw, TEXT, close_code, frame, head,
};
use crate::fire_attacks::{corpus, requests};

/// Requests per gateway connection, below the burst of the rate limit, which is not tested here.
const BURST: usize = 150;

#[tokio::test]
async fn invalid_requests_are_answered_on_both_apis_and_change_nothing() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let server = setup.start().await?;
    let mut browser = server.connect().await?;
    let mut program = Program::at(&server).await?;
    let texts = corpus::no_requests();
    println!("{} invalid requests", texts.len());
    for (number, text) in texts.iter().enumerate() {
        browser.send_text(text).await?;
        let answer = browser.next().await?;
        assert_eq!(answer["code"], "INVALID_MESSAGE", "{text:.80}: {answer}");
        if number % BURST == BURST - 1 {
            program = Program::at(&server).await?;
        }
        program.socket.send_text(text).await?;
        let answer = program.socket.next().await?;
        let code = answer["error"]["code"].as_i64();
        assert!(code.is_some_and(|code| code < 0), "{text:.80}: {answer}");
        assert!(answer.to_string().len() < 2000, "{text:.80} was echoed");
    }
    let list = browser.ask(json!({"type": "project:list"})).await?;
    assert_eq!(list["projects"], json!([]));
    assert_eq!(setup.count_asked("session/"), 0);
    Ok(())
}

/// Covers every field of every request type.
#[tokio::test]
async fn hostile_text_in_any_field_is_answered_and_breaks_nothing() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let server = setup.start().await?;
    let mut browser = server.connect().await?;
    let words = corpus::words();
    let mut asked = 0;
    for shape in requests::of_browsers()? {
        for word in &words {
            let Some(mut request) = shape.fill(word, |_| true) else {
                break;
            };
            request["type"] = json!(shape.name);
            let answer = browser.ask(request).await;
            let answer =
                answer.map_err(|error| error.context(format!("{} {word:?}", shape.name)))?;
            ensure!(
                answer["code"] != "INTERNAL_ERROR",
                "{} {word:?}: {answer}",
                shape.name
            );
            asked += 1;
        }
    }
    let mut program = Program::at(&server).await?;
    let mut at_once = 0;
    for shape in requests::of_programs(&setup).await? {
        // It would disconnect all clients.
        if shape.name == "token.rotate" {
            continue;
        }
        for word in &words {
            let Some(params) = shape.fill(word, |_| true) else {
                break;
            };
            at_once += 1;
            if at_once % BURST == 0 {
                program = Program::at(&server).await?;
            }
            let answer = program.call(&shape.name, params).await?;
            ensure!(
                answer["error"]["code"] != -32603,
                "{} {word:?}: {answer}",
                shape.name
            );
            asked += 1;
        }
    }
    browser.ask(json!({"type": "project:list"})).await?;
    println!("{asked} requests with hostile text");
    Ok(())
}

#[tokio::test]
async fn invalid_utf8_and_invalid_frames_end_only_their_own_connection() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let server = setup.start().await?;
    let mut calm = server.connect().await?;
    let bad_utf8: [&[u8]; 8] = [
        b"\xff",
        b"\xc0\x80",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\xc3",
        b"{\"type\":\"\x80\"}",
        b"\xf8\x88\x80\x80\x80",
        b"\xe2\x28\xa1",
    ];
    let broken = [
        frame(TEXT | COMPRESSED, true, b"{}"),
        frame(TEXT | 0x20, true, b"{}"),
        frame(CONTINUATION, true, b"{}"),
        frame(3, true, b"{}"),
        frame(0xb, true, b""),
        // A fragmented ping, and a ping that is too long.
        frame(9, false, b""),
        frame(9, true, &[b'x'; 126]),
        [frame(TEXT, false, b"{"), frame(TEXT, true, b"}")].concat(),
        // An unmasked frame, which only a server may send.
        vec![0x81, 0x02, b'{', b'}'],
    ];
    for caller in Caller::ALL {
        for bytes in bad_utf8 {
            let code = close_code_after(&server, caller, &frame(TEXT, true, bytes)).await?;
            assert_eq!(code, Some(1007), "{caller:?} {bytes:?}");
        }
        for bytes in &broken {
            let code = close_code_after(&server, caller, bytes).await?;
            assert_eq!(code, Some(1002), "{caller:?} {bytes:?}");
        }
        for length in [1024 * 1024 + 1, 100 * 1024 * 1024, u64::MAX >> 1] {
            let code = close_code_after(&server, caller, &head(TEXT, true, length)).await?;
            assert_eq!(code, Some(1009), "{caller:?} {length}");
        }
    }
    assert_eq!(
        calm.ask(json!({"type": "project:list"})).await?["projects"],
        json!([])
    );
    Ok(())
}

/// Sends bytes and returns the close code with which the server ends the connection.
async fn close_code_after(server: &Server, caller: Caller, bytes: &[u8]) -> Result<Option<u16>> {
    let mut raw = Raw::of(caller, server).await?;
    raw.stream.write_all(bytes).await?;
    Ok(close_code(&raw.rest().await?))
}

#[tokio::test]
async fn compression_is_not_negotiated() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let server = setup.start().await?;
    let offer = "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n";
    for raw in [
        Raw::browser(&server, offer).await?,
        Raw::open(&server, "/gateway", offer).await?,
    ] {
        let head = raw.head.to_ascii_lowercase();
        assert!(!head.contains("sec-websocket-extensions"), "{head}");
    }
    // A compressed frame of 1 KiB that would decompress to 1 MiB.
    let mut raw = Raw::browser(&server, offer).await?;
    raw.stream
        .write_all(&frame(TEXT | COMPRESSED, true, &[0xed; 1024]))
        .await?;
    assert_eq!(close_code(&raw.rest().await?), Some(1002));
    // Request bodies are not decompressed either.
    let login = [
        "POST /login HTTP/1.1".to_owned(),
        format!("Host: {}", server.address),
        format!("Origin: http://{}", server.address),
        "Content-Type: application/json".to_owned(),
        "Content-Encoding: gzip".to_owned(),
    ];
    let body = "\u{1f}\u{8}\u{8}".repeat(100);
    assert_eq!(
        testkit::http(server.address, &login, &body).await?.status,
        400
    );
    Ok(())
}

#[tokio::test]
async fn message_in_a_million_fragments_is_one_message() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let server = setup.start().await?;
    let mut calm = server.connect().await?;
    let pieces = testkit::times(100_000, 1_000_000);
    let empty = frame(CONTINUATION, false, b"").repeat(1000);
    for (caller, begin, end) in [
        (
            Caller::Browser,
            "{\"type\":",
            "\"project:list\",\"requestId\":\"whole\"}",
        ),
        (
            Caller::Program,
            "{\"method\":",
            "\"health.check\",\"id\":\"whole\"}",
        ),
    ] {
        let mut raw = Raw::of(caller, &server).await?;
        let begin = frame(TEXT, false, begin.as_bytes());
        raw.stream.write_all(&begin).await?;
        for _ in 0..pieces / 1000 {
            raw.stream.write_all(&empty).await?;
        }
        let end = frame(CONTINUATION, true, end.as_bytes());
        raw.stream.write_all(&end).await?;
        calm.ask(json!({"type": "project:list"})).await?;
        raw.read_until("whole").await?;
    }
    // An unauthenticated connection may not send that many fragments.
    let mut raw = Raw::of(Caller::Unauthenticated, &server).await?;
    let begin = frame(TEXT, false, b"{\"type\":");
    raw.stream.write_all(&begin).await?;
    let _ = raw.stream.write_all(&empty).await;
    assert_eq!(close_code(&raw.rest().await?), Some(4401));
    Ok(())
}

/// Covers duplicate keys in any spelling and at any depth.
#[tokio::test]
async fn request_with_a_duplicate_key_is_refused() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let server = setup.start().await?;
    let (one, two) = (setup.folder("one")?, setup.folder("two")?);
    let mut browser: Socket = server.connect().await?;
    for request in [
        format!(r#"{{"type":"project:add","path":"{one}","path":"{two}"}}"#),
        format!(r#"{{"type":"project:add","path":"{one}","p\u0061th":"{two}"}}"#),
        format!(r#"{{"type":"project:list","type":"project:add","path":"{one}"}}"#),
    ] {
        browser.send_text(&request).await?;
        let answer: Value = browser.next().await?;
        assert_eq!(answer["code"], "INVALID_MESSAGE", "{request}");
    }
    let mut program = Program::at(&server).await?;
    for request in [
        format!(r#"{{"id":1,"method":"projects.add","params":{{"path":"{one}","path":"{two}"}}}}"#),
        format!(
            r#"{{"id":1,"method":"projects.add","params":{{"p\u0061th":"{one}"}},"params":{{"path":"{two}"}}}}"#
        ),
        r#"{"id":1,"id":2,"method":"health.check"}"#.to_owned(),
    ] {
        program.socket.send_text(&request).await?;
        let answer = program.socket.next().await?;
        assert_eq!(answer["error"]["code"], -32700, "{request}: {answer}");
    }
    let list = browser.ask(json!({"type": "project:list"})).await?;
    assert_eq!(list["projects"], json!([]));
    Ok(())
}
