//! Behaviour that no agent should show: floods, malformed lines, stray processes.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::{chunk, write_line};

pub(crate) fn flood(session: &str, count: usize, bytes: usize) {
    let update = chunk("agent_message_chunk", &"f".repeat(bytes));
    let params = json!({"sessionId": session, "update": update});
    let line = format!(
        "{}\n",
        json!({"jsonrpc": "2.0", "method": "session/update", "params": params})
    );
    let together = line.repeat(100.min(count.max(1)));
    let mut stdout = std::io::stdout().lock();
    for _ in 0..count / 100 {
        let _ = stdout.write_all(together.as_bytes());
    }
    let _ = stdout
        .write_all(line.repeat(count % 100).as_bytes())
        .and_then(|()| stdout.flush());
}

pub(crate) fn flood_for(session: &str, wait: u64, bytes: usize) {
    let end = Instant::now() + Duration::from_millis(wait);
    while Instant::now() < end {
        flood(session, 1000.min(10_000_000 / bytes), bytes);
    }
}

/// Writes a line N times, or for a duration (`500ms`); each `%n` in it is replaced by a running number.
pub(crate) fn flood_lines(much: &str, line: &str) {
    let wait = much.strip_suffix("ms").map(|wait| wait.parse().unwrap());
    let end = wait.map(|wait| Instant::now() + Duration::from_millis(wait));
    let count = end.map_or_else(|| much.parse().unwrap(), |_| u64::MAX);
    let pieces: Vec<&str> = line.split("%n").collect();
    let mut stdout = std::io::stdout().lock();
    let mut numbers = 0..count;
    while end.is_none_or(|end| Instant::now() < end) && !numbers.is_empty() {
        let mut together = String::new();
        for number in numbers.by_ref().take(100) {
            together.push_str(&pieces.join(&number.to_string()));
            together.push('\n');
        }
        if stdout.write_all(together.as_bytes()).is_err() {
            return;
        }
    }
    let _ = stdout.flush();
}

pub(crate) fn flood_stderr(bytes: usize) {
    let mut stderr = std::io::stderr().lock();
    let line = format!("{}\n", "x".repeat(1023));
    let piece = line.repeat(64);
    for _ in 0..bytes / piece.len() {
        if stderr.write_all(piece.as_bytes()).is_err() {
            return;
        }
    }
}

/// Starts each child in its own process session, so that no signal to a process group reaches it.
pub(crate) fn children(count: usize, seconds: &str) {
    for _ in 0..count {
        let mut child = Command::new("setsid");
        child.args(["sleep", seconds]).stdin(Stdio::null());
        drop(child.spawn().unwrap());
    }
}

/// Lines that are invalid JSON, invalid UTF-8 or invalid JSON-RPC.
pub(crate) fn garbage() {
    let mut stdout = std::io::stdout().lock();
    let lines: [&[u8]; 7] = [
        b"this is no JSON\n",
        b"{\"jsonrpc\":\"2.0\",\"method\":\n",
        b"\xff\xfe{}\n",
        b"[1,2,3]\n",
        b"\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":\"never-asked\",\"result\":{}}\n",
        b"{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":7}}\n",
    ];
    for line in lines {
        let _ = stdout.write_all(line);
    }
    let _ = stdout.flush();
}

/// A short line with `count` JSON values.
pub(crate) fn wide(session: &str, count: usize) {
    let update = json!({"sessionUpdate": "tool_call", "toolCallId": "wide", "title": "Count", "rawOutput": "%"});
    let params = json!({"sessionId": session, "update": update});
    let line = json!({"jsonrpc": "2.0", "method": "session/update", "params": params});
    let values = format!("[{}0]", "0,".repeat(count - 1));
    write_line(&line.to_string().replace("\"%\"", &values));
}

pub(crate) fn endless(bytes: usize) {
    let mut stdout = std::io::stdout().lock();
    let piece = [b'e'; 65536];
    for _ in 0..bytes / piece.len() {
        if stdout.write_all(&piece).is_err() {
            return;
        }
    }
    let _ = stdout.flush();
}
