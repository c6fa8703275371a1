//! What comes in through the two sockets: whatever it is, it is answered or ended, and nobody else notices.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testkit::{Program, Server, Socket};
use tokio::io::AsyncWriteExt as _;

use crate::fire_attacks::raw::{COMPRESSED, CONTINUATION, Caller, Raw, TEXT, frame, goodbye, head};
use crate::fire_attacks::{corpus, requests, setup};

/// A program may ask so much at once; the line in front of the door is not what is tested here.
const AT_ONCE: usize = 150;

#[tokio::test]
async fn what_is_no_request_is_answered_at_both_doors_and_changes_nothing() -> Result<()> {
    let setup = setup()?;
    let server = setup.start().await?;
    let mut browser = server.connect().await?;
    let mut program = Program::at(&server).await?;
    let texts = corpus::no_requests();
    println!("{} texts that are no request", texts.len());
    for (number, text) in texts.iter().enumerate() {
        browser.send_text(text).await?;
        let answer = browser.next().await?;
        assert_eq!(answer["code"], "INVALID_MESSAGE", "{text:.80}: {answer}");
        if number % AT_ONCE == AT_ONCE - 1 {
            program = Program::at(&server).await?;
        }
        program.socket.send_text(text).await?;
        let answer = program.socket.next().await?;
        let code = answer["error"]["code"].as_i64();
        assert!(code.is_some_and(|code| code < 0), "{text:.80}: {answer}");
        assert!(answer.to_string().len() < 2000, "{text:.80} came back");
    }
    let list = browser.ask(json!({"type": "project:list"})).await?;
    assert_eq!(list["projects"], json!([]));
    assert_eq!(setup.count_asked("session/"), 0);
    Ok(())
}

/// In every field of every request.
#[tokio::test]
async fn odd_words_in_any_field_are_answered_and_break_nothing() -> Result<()> {
    let setup = setup()?;
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
        // It would send everybody away.
        if shape.name == "token.rotate" {
            continue;
        }
        for word in &words {
            let Some(params) = shape.fill(word, |_| true) else {
                break;
            };
            at_once += 1;
            if at_once % AT_ONCE == 0 {
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
    println!("{asked} requests with odd words");
    Ok(())
}

#[tokio::test]
async fn bytes_that_are_no_text_and_frames_against_the_rules_end_that_connection_alone()
-> Result<()> {
    let setup = setup()?;
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
        // A ping in pieces, and one that is too long.
        frame(9, false, b""),
        frame(9, true, &[b'x'; 126]),
        [frame(TEXT, false, b"{"), frame(TEXT, true, b"}")].concat(),
        // Not masked, as only servers may be.
        vec![0x81, 0x02, b'{', b'}'],
    ];
    for caller in Caller::ALL {
        for bytes in bad_utf8 {
            let code = ended_with(&server, caller, &frame(TEXT, true, bytes)).await?;
            assert_eq!(code, Some(1007), "{caller:?} {bytes:?}");
        }
        for bytes in &broken {
            let code = ended_with(&server, caller, bytes).await?;
            assert_eq!(code, Some(1002), "{caller:?} {bytes:?}");
        }
        for length in [1024 * 1024 + 1, 100 * 1024 * 1024, u64::MAX >> 1] {
            let code = ended_with(&server, caller, &head(TEXT, true, length)).await?;
            assert_eq!(code, Some(1009), "{caller:?} {length}");
        }
    }
    assert_eq!(
        calm.ask(json!({"type": "project:list"})).await?["projects"],
        json!([])
    );
    Ok(())
}

/// Sends bytes and says with which code the server ends the connection.
async fn ended_with(server: &Server, caller: Caller, bytes: &[u8]) -> Result<Option<u16>> {
    let mut raw = Raw::of(caller, server).await?;
    raw.stream.write_all(bytes).await?;
    Ok(goodbye(&raw.rest().await?))
}

#[tokio::test]
async fn compression_is_not_spoken_so_nothing_can_swell() -> Result<()> {
    let setup = setup()?;
    let server = setup.start().await?;
    let offer = "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n";
    for raw in [
        Raw::browser(&server, offer).await?,
        Raw::open(&server, "/gateway", offer).await?,
    ] {
        let head = raw.head.to_ascii_lowercase();
        assert!(!head.contains("sec-websocket-extensions"), "{head}");
    }
    // A kilobyte that would be a megabyte.
    let mut raw = Raw::browser(&server, offer).await?;
    raw.stream
        .write_all(&frame(TEXT | COMPRESSED, true, &[0xed; 1024]))
        .await?;
    assert_eq!(goodbye(&raw.rest().await?), Some(1002));
    // Nor in the body of a request.
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
async fn a_text_in_a_million_pieces_is_one_text() -> Result<()> {
    let setup = setup()?;
    let server = setup.start().await?;
    let mut calm = server.connect().await?;
    let pieces = testkit::times(100_000, 1_000_000);
    let empty = frame(CONTINUATION, false, b"").repeat(1000);
    for (caller, begin, end) in [
        (
            Caller::Window,
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
        raw.hears("whole").await?;
    }
    // A stranger is not listened to for so long.
    let mut raw = Raw::of(Caller::Stranger, &server).await?;
    let begin = frame(TEXT, false, b"{\"type\":");
    raw.stream.write_all(&begin).await?;
    let _ = raw.stream.write_all(&empty).await;
    assert_eq!(goodbye(&raw.rest().await?), Some(4401));
    Ok(())
}

/// A name that stands there twice, in any spelling, at any depth: neither counts.
#[tokio::test]
async fn of_two_equal_keys_neither_counts() -> Result<()> {
    let setup = setup()?;
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
