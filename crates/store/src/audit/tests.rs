use std::fs;
use std::io::BufRead;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode};
use serde_json::{Value, json};

use super::*;

fn refused_read(path: &str) -> Value {
    json!({"what": "read", "path": path, "refused": "no"})
}

fn written(path: &str) -> Value {
    json!({"what": "write", "path": path, "bytes": 1})
}

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let line = |line: &str| serde_json::from_str(line).unwrap_or_default();
    text.lines().map(line).collect()
}

/// The only text of the check, of the file for what was allowed.
fn checked(dir: &Path) -> String {
    let texts = check_audit(dir);
    assert_eq!(texts.len(), 1, "{texts:?}");
    texts.into_iter().next().unwrap_or_default()
}

#[tokio::test]
async fn audit_file_is_private_and_continues_after_a_torn_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.jsonl");
    fs::write(&path, "{\"whole\":1}\n{\"torn").unwrap();
    let audit = Audit::open(&path).unwrap();
    audit.record("s", &written("/x"));
    audit.flush().await;
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("{\"whole\":1}\n{\"torn\n"), "{text}");
    let found = lines(&path);
    assert_eq!(
        (&found[2]["what"], &found[2]["bytes"]),
        (&"torn".into(), &7.into())
    );
    assert_eq!(found[3]["path"], "/x");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let expected =
        "audit.jsonl  lines: 3, chain complete, from before the chain: 1, torn places repaired: 1";
    assert_eq!(checked(dir.path()), expected);
}

#[tokio::test]
async fn full_audit_file_is_rotated_and_both_files_stay_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.jsonl");
    for number in 0..100 {
        // A restart each time, so that the chain continues over it.
        let audit = Audit::open_with_limit(&path, 4000).unwrap();
        audit.record("s", &written(&format!("/{number}")));
        audit.flush().await;
    }
    let before = dir.path().join("audit.1.jsonl");
    for file in [&path, &before] {
        assert!(file.metadata().unwrap().len() <= 4000);
    }
    let both = [lines(&before), lines(&path)].concat();
    let numbers: Vec<_> = both
        .iter()
        .filter_map(|line| line["path"].as_str())
        .collect();
    let first = 100 - numbers.len();
    let expected: Vec<_> = (first..100).map(|number| format!("/{number}")).collect();
    assert_eq!(numbers, expected);
    let rotated = both.iter().rfind(|line| line["what"] == "rotated").unwrap();
    let dropped = &rotated["dropped"]["events"]["write"];
    let in_one_file = lines(&before).len() as u64 - 1;
    assert_eq!(dropped.as_u64(), Some(in_one_file), "{rotated}");
    assert!(checked(dir.path()).ends_with("chain complete"));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
}

#[tokio::test]
async fn thousands_of_refusals_push_out_nothing_that_was_allowed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.jsonl");
    let audit = Audit::open_with_limit(&path, 100_000).unwrap();
    audit.record("s", &written("/first"));
    for number in 0..4600 {
        audit.record("s", &refused_read(&format!("/{number}")));
        if number % 100 == 0 {
            audit.flush().await;
        }
    }
    audit.record("s", &json!({"what": "command", "argv": ["last"]}));
    audit.flush().await;
    let kept = lines(&path);
    let kept: Vec<_> = kept.iter().map(|line| line["what"].as_str()).collect();
    assert_eq!(kept, [Some("write"), Some("command")]);
    // What the rotation dropped is recorded.
    let refused = dir.path().join("audit.refused.1.jsonl");
    let rotated = lines(&refused).into_iter().next_back().unwrap();
    assert!(
        rotated["dropped"]["events"]["read"].as_u64() > Some(100),
        "{rotated}"
    );
    let complete = |text: &String| text.ends_with("chain complete");
    assert!(check_audit(dir.path()).iter().all(complete));
}

#[tokio::test]
async fn repeated_refusals_are_counted_and_durable_after_a_flush() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.jsonl");
    let audit = Audit::open(&path).unwrap();
    for _ in 0..400 {
        for path in ["/a", "/b"] {
            audit.record("s", &refused_read(path));
        }
        audit.record("s", &written("/c"));
    }
    audit.flush().await;
    for (file, events) in [("audit.jsonl", 400), ("audit.refused.jsonl", 800)] {
        let found = lines(&dir.path().join(file));
        let times = |line: &Value| match line["what"].as_str() {
            Some("lost") => line["lines"].as_u64().unwrap_or_default(),
            _ => line["times"].as_u64().unwrap_or(1),
        };
        assert_eq!(found.iter().map(times).sum::<u64>(), events, "{file}");
        assert!(found.len() <= 6, "{found:?}");
    }
}

#[tokio::test]
async fn edited_line_is_reported_at_its_place_also_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.jsonl");
    for number in 0..5 {
        let audit = Audit::open(&path).unwrap();
        audit.record("s", &written(&format!("/{number}")));
        audit.flush().await;
        if number == 3 {
            let text = fs::read_to_string(&path).unwrap().replace("/1", "/7");
            fs::write(&path, text).unwrap();
        }
    }
    let found = checked(dir.path());
    assert!(found.contains("breaks at line 3 of audit.jsonl"), "{found}");
}

#[tokio::test]
async fn audit_torn_at_any_length_continues_with_a_complete_chain() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.jsonl");
    let audit = Audit::open(&path).unwrap();
    for number in 0..3 {
        audit.record("s", &written(&format!("/{number}")));
    }
    audit.flush().await;
    drop(audit);
    let whole = fs::read(&path).unwrap();
    for length in 0..whole.len() {
        for zeros in [0, whole.len() - length] {
            let mut torn = whole[..length].to_vec();
            torn.extend(std::iter::repeat_n(0, zeros));
            fs::write(&path, torn).unwrap();
            let audit = Audit::open(&path).unwrap();
            audit.record("s", &written("/after"));
            audit.flush().await;
            let found = checked(dir.path());
            assert!(
                found.contains("chain complete"),
                "{length}, {zeros}: {found}"
            );
            assert!(!found.contains("a torn end"), "{length}, {zeros}: {found}");
        }
    }
}

/// A pipe without a reader stands for a disk that hangs.
#[tokio::test]
async fn hanging_disk_does_not_block_recording_and_lost_lines_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.jsonl");
    rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let audit = Audit::open(&path).unwrap();
    let sent = 5 * WAITING_MAX as u64;
    for number in 0..sent {
        audit.record("s", &written(&format!("{number}{}", "x".repeat(200))));
    }
    // Opened while the writer is open, so that the reader sees its end.
    let reader = fs::File::open(&path).unwrap();
    drop(audit);
    let (mut written, mut missing) = (0, 0);
    for line in io::BufReader::new(reader).lines() {
        let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
        match line["what"].as_str() {
            Some("lost") => missing += line["lines"].as_u64().unwrap(),
            _ => written += 1,
        }
    }
    assert!(missing > 0);
    assert_eq!(written + missing, sent);
}

/// While the disk hangs, refusals leave room for what is allowed afterwards.
#[tokio::test]
async fn flood_of_refusals_displaces_no_allowed_event_from_the_queue() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.jsonl");
    rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let audit = Audit::open(&path).unwrap();
    // Fills the pipe, so that the thread hangs.
    audit.record("s", &written(&"x".repeat(100_000)));
    for number in 0..3 * WAITING_MAX {
        audit.record("s", &refused_read(&format!("/{number}")));
    }
    for number in 0..100 {
        audit.record("s", &written(&format!("/{number}")));
    }
    let reader = fs::File::open(&path).unwrap();
    drop(audit);
    let found = io::BufReader::new(reader).lines().count();
    assert_eq!(found, 101);
}
