//! Tests of parsing strace's log and socket bytes.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::json;

use crate::power_cut::calls;
use crate::power_cut::messages::{Connections, Message};

#[test]
fn calls_interrupted_by_other_threads_are_read_completely() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let log = folder.path().join("log");
    let text = [
        r#"7     1.5 write(9<\x2f\x61>, "\x68\x69", 2 <unfinished ...>"#,
        r#"8     1.6 fsync(9<\x2f\x61>(deleted)) = 0"#,
        "7     1.7 <... write resumed>) = 2",
        r#"8     1.8 rename("\x2f\x61", "\x2f\x62") = -1 ENOENT (No such file or directory)"#,
        r#"8     1.9 unlinkat(4<\x2f\x63>, "\x64", 0 <unfinished ...>"#,
        "7     2.0 +++ killed by SIGKILL +++",
        r#"8     2.1 fsync(9<\x2f\x61>) = 0"#,
    ];
    std::fs::write(&log, text.join("\n"))?;
    let calls = calls::read(&log, 7)?;
    let names: Vec<&str> = calls.iter().map(|call| call.name.as_str()).collect();
    assert_eq!(names, ["fsync", "write", "rename"]);
    assert_eq!((calls[1].begin, calls[1].end), (0, 2));
    assert_eq!(calls[1].bytes(), b"hi");
    assert_eq!(calls[1].returned(), Some(2));
    let place = calls[0].place().context("expected a place")?;
    assert!(place.deleted && place.path == Path::new("/a"), "{place:?}");
    assert_eq!(calls[2].returned(), None);
    assert_eq!(calls[2].paths()?, [Path::new("/a"), Path::new("/b")]);
    Ok(())
}

#[test]
fn messages_are_reassembled_from_partial_frames() -> Result<()> {
    let mut connections = Connections::default();
    let ask = b"GET /ws HTTP/1.1\r\nUpgrade: websocket\r\n\r\n";
    assert!(connections.moved("c", ask, false)?.is_empty());
    let answer = b"HTTP/1.1 101 Switching Protocols\r\n\r\n";
    assert!(connections.moved("c", answer, true)?.is_empty());
    let message = json!({"type": "x", "content": "y".repeat(200)}).to_string();
    let length = message.len() as u8;
    let mut shown = vec![0x81, 126, 0, length];
    shown.extend(message.bytes());
    let mut asked = vec![0x81, 0x80 | 126, 0, length, 1, 2, 3, 4];
    let mask = [1, 2, 3, 4].into_iter().cycle();
    asked.extend(
        message
            .bytes()
            .zip(mask)
            .map(|(byte, mask): (u8, u8)| byte ^ mask),
    );
    for (bytes, sent) in [(shown, true), (asked, false)] {
        let (begin, end) = bytes.split_at(100);
        assert!(connections.moved("c", begin, sent)?.is_empty());
        let talk = connections.moved("c", end, sent)?;
        match talk.as_slice() {
            [Message::Shown(0, value)] if sent => assert_eq!(value.to_string(), message),
            [Message::Asked(0, value)] if !sent => assert_eq!(value.to_string(), message),
            other => anyhow::bail!("{other:?}"),
        }
    }
    Ok(())
}
