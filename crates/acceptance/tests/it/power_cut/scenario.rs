//! Scenarios of clients, each recorded with a real server.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testkit::{Conversation, Person, Program, Server, ServerSetup, count_turns};

use crate::power_cut::expected::Expected;
use crate::power_cut::random::Random;
use crate::power_cut::recording::Recording;
use crate::power_cut::replay::{Case, Replay};

pub(crate) const PICTURE: &str = "GIF89a";
/// Size at which the audit file is rotated.
const AUDIT_BYTES: usize = 8 * 1024 * 1024;
const AUDIT_LINE_BYTES: usize = 4096;

/// A setup whose data directory was created by an earlier server.
async fn prepared() -> Result<ServerSetup> {
    let setup = ServerSetup::scripted("")?;
    setup.start().await?.signal("TERM").await?;
    Ok(setup)
}

/// The first start, a project, a session, and turns with text, tools and much text in quick succession.
pub(crate) async fn turns() -> Result<Replay> {
    let setup = ServerSetup::scripted("")?;
    let folder = setup.folder("app")?;
    let mut recording = Recording::begin(&setup)?;
    let traced = recording.start(&setup).await?;
    let mut person = Person::at(&traced.server, &folder).await?;
    let mut talk = person.begin().await?;
    let first = "think hm\nsay one\ntool t1 read Look\ntool-done t1 ok\nsay two";
    person.turn(&mut talk, first).await?;
    person
        .turn(&mut talk, "say three\nrate 40 1000 1000\nsay four")
        .await?;
    person.send(&talk, "say begun\nhang").await?;
    person.until_said(&mut talk, "assistant: begun").await?;
    person
        .ask(&mut talk, json!({"type": "session:cancel"}))
        .await?;
    person.until_turns(&mut talk, 3).await?;
    recording.end(traced, "KILL").await?;
    Replay::new("turns", setup, recording, Expected::default())
}

/// Sessions are renamed, archived, deleted, restored and used again; a project is added and removed; an image is
/// uploaded.
pub(crate) async fn sessions() -> Result<Replay> {
    let setup = prepared().await?;
    let folder = setup.folder("app")?;
    let other = setup.folder("other")?;
    let mut recording = Recording::begin(&setup)?;
    let traced = recording.start(&setup).await?;
    let mut person = Person::at(&traced.server, &folder).await?;
    let mut talks = vec![];
    for name in ["first", "second", "third"] {
        let mut talk = person.begin().await?;
        person.turn(&mut talk, &format!("say {name}")).await?;
        talks.push(talk);
    }
    let add = json!({"type": "project:add", "path": other});
    let added = person.socket.ask(add).await?;
    let of = |kind: &str, talk: &Conversation| json!({"type": kind, "sessionId": talk.session_id});
    let mut rename = of("session:rename", &talks[0]);
    rename["title"] = json!("Renamed");
    granted(&mut person, rename).await?;
    for kind in ["session:archive", "session:unarchive"] {
        granted(&mut person, of(kind, &talks[1])).await?;
    }
    granted(&mut person, of("session:archive", &talks[1])).await?;
    for kind in ["session:delete", "session:restore"] {
        granted(&mut person, of(kind, &talks[2])).await?;
    }
    let mut back = person.open(&talks[2].session_id).await?;
    ensure!(back.entries == talks[2].entries, "{:?}", back.said());
    person.turn(&mut back, "say back").await?;
    picture(&traced.server).await?;
    for _ in 0..2 {
        for kind in ["session:delete", "session:restore"] {
            granted(&mut person, of(kind, &talks[2])).await?;
        }
    }
    granted(&mut person, of("session:delete", &talks[2])).await?;
    let remove = json!({"type": "project:remove", "projectId": added["project"]["id"]});
    granted(&mut person, remove).await?;
    recording.end(traced, "TERM").await?;
    Replay::new("sessions", setup, recording, Expected::default())
}

async fn granted(person: &mut Person, message: Value) -> Result<()> {
    let answer = person.socket.ask(message).await?;
    ensure!(answer["type"] != "error", "{answer}");
    Ok(())
}

async fn picture(server: &Server) -> Result<()> {
    let head = [
        "POST /uploads HTTP/1.1".to_owned(),
        format!("Host: {}", server.address),
        format!("Authorization: Bearer {}", server.token),
    ];
    let answer = testkit::http(server.address, &head, PICTURE).await?;
    ensure!(answer.status == 200, "{}", answer.status);
    Ok(())
}

/// A gateway client creates a session and starts three runs in it, the last of which does not end.
pub(crate) async fn gateway() -> Result<Replay> {
    let setup = prepared().await?;
    let mut recording = Recording::begin(&setup)?;
    let traced = recording.start(&setup).await?;
    let mut program = Program::at(&traced.server).await?;
    let key = program.create(&setup).await?;
    program.say(&key, "say one\nsay two").await?;
    program
        .say(&key, "rate 20 500 1000\ntool t1 read Look\ntool-done t1 ok")
        .await?;
    program.send(&key, "say never\nhang").await?;
    program.event_of("chat.delta").await?;
    recording.end(traced, "KILL").await?;
    Replay::new("gateway", setup, recording, Expected::default())
}

/// Turns with the built-in agent, which has its own session files.
pub(crate) async fn built_in_agent() -> Result<Replay> {
    let setup = prepared().await?;
    let folder = setup.folder("app")?;
    let mut recording = Recording::begin(&setup)?;
    let traced = recording.start(&setup).await?;
    let mut person = Person::at(&traced.server, &folder).await?;
    let created = person.ask_to_create("liminal").await?;
    let id = created["sessionId"]
        .as_str()
        .with_context(|| created.to_string())?;
    let mut talk = person.open(id).await?;
    person.turn(&mut talk, "/plan begin; end").await?;
    person.turn(&mut talk, "/files").await?;
    recording.end(traced, "KILL").await?;
    Replay::new("built-in agent", setup, recording, Expected::default())
}

/// Permissions and refused reads are audited while the audit file is rotated.
pub(crate) async fn audit() -> Result<Replay> {
    let setup = prepared().await?;
    let folder = setup.folder("app")?;
    let mut recording = {
        let line = json!({"what": "before", "text": "x".repeat(AUDIT_LINE_BYTES)});
        let line = format!("{line}\n");
        let lines = line.repeat((AUDIT_BYTES - AUDIT_LINE_BYTES / 8) / line.len());
        std::fs::write(setup.data_dir().join("audit.jsonl"), &lines)?;
        Recording::begin(&setup)?
    };
    let traced = recording.start(&setup).await?;
    let mut person = Person::at(&traced.server, &folder).await?;
    let mut talk = person.begin().await?;
    for _ in 0..6 {
        let long = "x".repeat(AUDIT_LINE_BYTES / 4);
        let read = "ask fs/read_text_file {\"path\": \"/etc/hostname\"}";
        let prompt = format!("permission p1 {long}\n{read}\n{read}\npermission p2 Look\nsay four");
        person.turn(&mut talk, &prompt).await?;
    }
    recording.end(traced, "KILL").await?;
    ensure!(
        setup.data_dir().join("audit.1.jsonl").exists(),
        "the audit file was not rotated"
    );
    Replay::new("audit", setup, recording, Expected::default())
}

/// Messages are queued during a turn and sent after it.
pub(crate) async fn queue() -> Result<Replay> {
    let setup = prepared().await?;
    let folder = setup.folder("app")?;
    let go = setup.home().join("go");
    let mut recording = Recording::begin(&setup)?;
    let traced = recording.start(&setup).await?;
    let mut person = Person::at(&traced.server, &folder).await?;
    let mut talk = person.begin().await?;
    person
        .send(&talk, &format!("say begun\nuntil {}", go.display()))
        .await?;
    person.until_said(&mut talk, "assistant: begun").await?;
    for (count, message) in ["say second", "say third"].into_iter().enumerate() {
        person.send(&talk, message).await?;
        let waits =
            |seen: &Conversation| seen.info["queue"].as_array().map(Vec::len) == Some(count + 1);
        person.until(&mut talk, waits).await?;
    }
    std::fs::write(&go, "")?;
    person.until_turns(&mut talk, 3).await?;
    recording.end(traced, "KILL").await?;
    Replay::new("queue", setup, recording, Expected::default())
}

/// A server is killed during a turn; the next one recovers and runs a turn, and so does a third.
pub(crate) async fn recovery() -> Result<Replay> {
    let setup = prepared().await?;
    let folder = setup.folder("app")?;
    let mut recording = Recording::begin(&setup)?;
    let traced = recording.start(&setup).await?;
    let mut person = Person::at(&traced.server, &folder).await?;
    let mut talk = person.begin().await?;
    person.turn(&mut talk, "say before").await?;
    person
        .send(
            &talk,
            "say begun\nrate 10 300 1000\ntool t1 read Look\nhang",
        )
        .await?;
    person.until_said(&mut talk, "tool Look").await?;
    recording.end(traced, "KILL").await?;
    for turns in [2, 3] {
        let traced = recording.start(&setup).await?;
        let mut person = Person::at(&traced.server, &folder).await?;
        let mut talk = person.open(&talk.session_id).await?;
        ensure!(count_turns(&talk) == turns, "{:?}", talk.said());
        person.turn(&mut talk, "say on").await?;
        recording.end(traced, "KILL").await?;
    }
    Replay::new("recovery", setup, recording, Expected::default())
}

/// A server starts in a state that a power cut left, and is cut again.
pub(crate) async fn second_cut(replay: &Replay, case: &Case, seed: u64) -> Result<Replay> {
    let setup = ServerSetup::scripted("")?;
    let folder = replay.setup.folder("app")?;
    replay.state(case, seed).put(&setup.data_dir())?;
    let mut recording = Recording::begin(&setup)?;
    let traced = recording.start(&setup).await?;
    let mut person = Person::at(&traced.server, &folder).await?;
    for session in person.list(false).await? {
        let id = session["id"].as_str().context("expected an id")?;
        person.open(id).await?;
    }
    recording.end(traced, "KILL").await?;
    let before = Expected::clone(replay.expected_at(case.steps));
    Replay::new("second cut", setup, recording, before)
}

/// States of a replay in which a turn has to be recovered.
pub(crate) fn to_recover(replay: &Replay, count: usize, seed: u64) -> Vec<Case> {
    let (mut cases, _) = replay.cases(count * 6, seed);
    cases.retain(|case| replay.state(case, seed).has_live_log());
    Random::new(seed).shuffle(&mut cases);
    cases.truncate(count);
    cases
}

/// A turn that changes two tool calls until its live log is compacted.
pub(crate) async fn long_turn() -> Result<Replay> {
    let setup = prepared().await?;
    let folder = setup.folder("app")?;
    let mut recording = Recording::begin(&setup)?;
    let traced = recording.start(&setup).await?;
    let mut person = Person::at(&traced.server, &folder).await?;
    let session = person.create().await?;
    let content =
        json!([{"type": "content", "content": {"type": "text", "text": "x".repeat(400_000)}}]);
    let change = |id: &str| {
        let update = json!({
            "sessionUpdate": "tool_call_update", "toolCallId": id, "title": "%n", "content": content,
        });
        let params = json!({"sessionId": "%s", "update": update});
        json!({"jsonrpc": "2.0", "method": "session/update", "params": params}).to_string()
    };
    let done: PathBuf = setup.home().join("done");
    let line = format!("flood-lines 100 {}%l{}", change("a"), change("b"));
    let prompt = format!("{line}\nterminal t touch {}\nsay all", done.display());
    let send = json!({"type": "session:send", "sessionId": session, "content": prompt, "requestId": "long"});
    // The session is not open on this connection, so the client does not receive the changes.
    person.socket.send(send).await?;
    while !done.exists() {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let mut person = Person::at(&traced.server, &folder).await?;
    let mut talk = person.open(&session).await?;
    person.until_turns(&mut talk, 1).await?;
    recording.end(traced, "KILL").await?;
    let steps = recording.disk.steps.iter();
    let descriptions: Vec<String> = steps.map(|step| recording.disk.describe(*step)).collect();
    let compacted = descriptions
        .iter()
        .position(|said| said.starts_with("rename") && said.ends_with(".live.jsonl"));
    let compacted = compacted.context("the live log was never compacted")?;
    let replay = Replay::new("long turn", setup, recording, Expected::default())?;
    Ok(replay.between(compacted.saturating_sub(8), compacted + 8))
}
