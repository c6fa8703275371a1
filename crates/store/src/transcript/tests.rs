use super::*;

fn assistant(number: u64, content: &str) -> ChatEntry {
    ChatEntry::Assistant {
        entry_id: format!("e{number}"),
        content: content.to_owned(),
        timestamp: String::new(),
    }
}

fn numbered(texts: &[&str]) -> BTreeMap<u64, ChatEntry> {
    let entries = (1..).zip(texts);
    entries
        .map(|(at, text)| (at, assistant(at, text)))
        .collect()
}

fn header() -> Header {
    Header {
        version: VERSION,
        identity: SessionIdentity {
            id: "codex:1".to_owned(),
            key: "key".to_owned(),
            project_id: "p".to_owned(),
            project_path: "/p".to_owned(),
            cli_type: "codex".to_owned(),
            agent_id: None,
            created_at: String::new(),
        },
        edition: 0,
    }
}

/// A transcript of two entries with a third in the live log, replaced by a conversation of four entries.
fn replaced(folder: &Path) -> (PathBuf, Transcript, Vec<u8>) {
    let path = folder.join("key.jsonl");
    let mut transcript = Transcript::create(&path, &header()).unwrap();
    transcript.fold(&numbered(&["one", "two"])).unwrap();
    let third = EntryChange::Begin(assistant(3, "sending"));
    transcript.write_live(&[third], true).unwrap();
    let live = std::fs::read(live_path(&path)).unwrap();
    let theirs = numbered(&["one", "two", "in the terminal", "sending"]);
    let kept = folder.join("trash/key.before.jsonl");
    transcript
        .replace(&header(), Note::default(), &theirs, Some(4), &kept)
        .unwrap();
    (path, transcript, live)
}

#[test]
fn entries_longer_than_the_write_buffer_are_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key.jsonl");
    let mut transcript = Transcript::create(&path, &header()).unwrap();
    let long = [
        "\u{1}".repeat(300_000),
        "short".to_owned(),
        "\n".repeat(400_000),
    ];
    let entries = numbered(&long.each_ref().map(String::as_str));
    transcript.fold(&entries).unwrap();
    let all: Vec<ChatEntry> = entries.into_values().collect();
    assert_eq!(transcript.read(0, 3).unwrap(), all);
    let fourth = assistant(4, &long[0]);
    let change = EntryChange::Begin(fourth.clone());
    transcript.write_live(&[change], true).unwrap();
    let (read, found) = Transcript::open(&path).unwrap();
    assert_eq!(read.read(0, 3).unwrap(), all);
    assert_eq!(found.in_flight, BTreeMap::from([(4, fourth)]));
}

#[test]
fn replaced_conversation_keeps_its_running_turn() {
    let folder = tempfile::tempdir().unwrap();
    let (path, mut transcript, _) = replaced(folder.path());
    let fifth = EntryChange::Begin(assistant(5, "answer"));
    transcript.write_live(&[fifth], false).unwrap();
    let (read, found) = Transcript::open(&path).unwrap();
    assert_eq!(read.read(3, 9).unwrap(), [assistant(4, "sending")]);
    let turn = [(4, assistant(4, "sending")), (5, assistant(5, "answer"))];
    assert_eq!(found.in_flight, BTreeMap::from(turn));
    assert!(found.interrupted);
    let before = std::fs::read_to_string(folder.path().join("trash/key.before.jsonl")).unwrap();
    assert!(before.contains("two") && !before.contains("terminal"));
}

#[test]
fn live_log_of_an_earlier_edition_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (path, transcript, live) = replaced(folder.path());
    drop(transcript);
    // The state after a crash directly after the replacement.
    std::fs::write(live_path(&path), live).unwrap();
    let (read, found) = Transcript::open(&path).unwrap();
    assert_eq!(read.read(2, 3).unwrap(), [assistant(3, "in the terminal")]);
    assert_eq!(found.in_flight, BTreeMap::new());
    assert!(found.interrupted);
    assert!(!live_path(&path).exists());
}

/// A transcript whose second turn is in the live log, with its end if `end` is set.
fn turn_written(folder: &Path, end: bool) -> (PathBuf, Transcript, BTreeMap<u64, ChatEntry>) {
    let path = folder.join("key.jsonl");
    let mut transcript = Transcript::create(&path, &header()).unwrap();
    transcript.fold(&numbered(&["question", "answer"])).unwrap();
    let mut turn = BTreeMap::from([
        (3, assistant(3, "again")),
        (4, assistant(4, "the first half")),
    ]);
    let changes: Vec<_> = turn.values().cloned().map(EntryChange::Begin).collect();
    transcript.write_live(&changes, true).unwrap();
    let more = EntryChange::Append {
        entry_id: "e4".to_owned(),
        text: " and the second".to_owned(),
    };
    transcript.write_live(&[more], false).unwrap();
    turn.insert(4, assistant(4, "the first half and the second"));
    if end {
        turn.insert(5, turn_end(5));
        let ends = EntryChange::Begin(turn_end(5));
        transcript.write_live(&[ends], false).unwrap();
    }
    transcript.sync_live().unwrap();
    (path, transcript, turn)
}

fn turn_end(number: u64) -> ChatEntry {
    ChatEntry::Turn(wire::TurnEntry {
        entry_id: format!("e{number}"),
        outcome: wire::TurnOutcome::Ended,
        message: None,
        duration_ms: None,
        tokens: None,
        timestamp: String::new(),
    })
}

/// A power cut can undo the removal of the live log and leave any prefix of it.
#[test]
fn any_prefix_of_a_folded_live_log_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (path, mut transcript, turn) = turn_written(folder.path(), true);
    let live = std::fs::read(live_path(&path)).unwrap();
    transcript.fold(&turn).unwrap();
    let all = transcript.read(0, 9).unwrap();
    for length in 0..=live.len() {
        std::fs::write(live_path(&path), &live[..length]).unwrap();
        let (read, found) = Transcript::open(&path).unwrap();
        assert_eq!(read.read(0, 9).unwrap(), all, "{length}");
        assert!(found.in_flight.is_empty() && !found.interrupted, "{length}");
        assert!(!live_path(&path).exists(), "{length}");
    }
}

#[test]
fn live_log_of_an_earlier_version_without_base_is_folded_once() {
    let folder = tempfile::tempdir().unwrap();
    let (path, mut transcript, turn) = turn_written(folder.path(), true);
    let live = std::fs::read_to_string(live_path(&path)).unwrap();
    let (_, without_base) = live.split_once('\n').unwrap();
    let cut = without_base.find(" and the second").unwrap();
    transcript.fold(&turn).unwrap();
    std::fs::write(live_path(&path), &without_base[..cut]).unwrap();
    let (read, found) = Transcript::open(&path).unwrap();
    assert_eq!(read.read(3, 4).unwrap(), [turn[&4].clone()]);
    assert!(found.in_flight.is_empty() && !found.interrupted);
}

#[test]
fn interrupted_turn_is_reported_once_after_it_was_folded() {
    let folder = tempfile::tempdir().unwrap();
    let (path, mut transcript, mut turn) = turn_written(folder.path(), false);
    let live = std::fs::read(live_path(&path)).unwrap();
    let (_, found) = Transcript::open(&path).unwrap();
    assert_eq!((&found.in_flight, found.interrupted), (&turn, true));
    turn.insert(5, turn_end(5));
    transcript.fold(&turn).unwrap();
    // The state if the process ends before the live log is removed.
    std::fs::write(live_path(&path), live).unwrap();
    let (read, found) = Transcript::open(&path).unwrap();
    assert!(found.in_flight.is_empty() && !found.interrupted);
    assert_eq!(read.total(), 5);
}

#[test]
fn damaged_entry_is_restored_from_the_live_log() {
    let folder = tempfile::tempdir().unwrap();
    let (path, mut transcript, turn) = turn_written(folder.path(), true);
    let live = std::fs::read(live_path(&path)).unwrap();
    let before = std::fs::metadata(&path).unwrap().len() as usize;
    transcript.fold(&turn).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let hole = memchr::memmem::find(&bytes[before..], b"first half").unwrap() + before;
    bytes[hole..hole + 4].fill(0);
    std::fs::write(&path, bytes).unwrap();
    std::fs::write(live_path(&path), live).unwrap();
    let (_, found) = Transcript::open(&path).unwrap();
    assert_eq!(found.in_flight, BTreeMap::from([(4, turn[&4].clone())]));
    assert!(!found.interrupted);
}

#[test]
fn live_log_with_a_turn_line_only_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key.jsonl");
    Transcript::create(&path, &header()).unwrap();
    std::fs::write(live_path(&path), "{\"base\":1}\n{\"turn\":true}\n").unwrap();
    let (_, found) = Transcript::open(&path).unwrap();
    assert!(!found.interrupted && found.in_flight.is_empty());
    assert!(!live_path(&path).exists());
}

#[test]
fn rewritten_live_log_keeps_its_turn() {
    let folder = tempfile::tempdir().unwrap();
    let (path, mut transcript, turn) = turn_written(folder.path(), false);
    transcript.rewrite_live(&turn).unwrap();
    let (_, found) = Transcript::open(&path).unwrap();
    assert_eq!((found.in_flight, found.interrupted), (turn, true));
}

#[test]
fn missing_transcript_is_not_created_by_opening_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key.jsonl");
    let missing = Transcript::open(&path).unwrap_err();
    assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    assert!(!path.exists());
}
