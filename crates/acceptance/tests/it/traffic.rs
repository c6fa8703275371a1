//! Tests of traffic recording: the ACP frames of a session, read over the browser socket.

use anyhow::Result;
use serde_json::{Value, json};
use testkit::{Conversation, Person, ServerSetup};

async fn read(person: &mut Person, conversation: &Conversation, after: u64) -> Result<Value> {
    let request = json!({"type": "session:traffic-read", "sessionId": conversation.session_id, "after": after});
    person.socket.ask(request).await
}

async fn switch(person: &mut Person, conversation: &Conversation, on: bool) -> Result<Value> {
    let request =
        json!({"type": "session:traffic", "sessionId": conversation.session_id, "on": on});
    person.socket.ask(request).await
}

fn labels(traffic: &Value) -> Vec<&str> {
    let frames = traffic["frames"].as_array().into_iter().flatten();
    frames.filter_map(|frame| frame["label"].as_str()).collect()
}

#[tokio::test]
async fn traffic_is_recorded_only_for_the_session_that_enabled_it() -> Result<()> {
    let setup = ServerSetup::new()?.with_scripted_agent("")?;
    let server = setup.start().await?;
    let mut person = Person::at(&server, &setup.folder("app")?).await?;
    let mut conversation = person.begin().await?;
    let mut other = person.begin().await?;
    person.turn(&mut conversation, "say before").await?;
    assert_eq!(read(&mut person, &conversation, 0).await?["on"], false);
    assert_eq!(switch(&mut person, &conversation, true).await?["on"], true);
    person.turn(&mut conversation, "say one\nsay two").await?;
    person.turn(&mut other, "say not recorded").await?;
    let traffic = read(&mut person, &conversation, 0).await?;
    let chunk = "session/update agent_message_chunk";
    assert_eq!(
        labels(&traffic),
        ["session/prompt", chunk, chunk, "answer to session/prompt"]
    );
    let frames = &traffic["frames"];
    assert_eq!(
        (&frames[0]["from"], &frames[1]["from"]),
        (&json!("client"), &json!("agent"))
    );
    let sent: Value = serde_json::from_str(frames[0]["text"].as_str().unwrap_or_default())?;
    assert_eq!(sent["params"]["prompt"][0]["text"], "say one\nsay two");
    let rest = read(&mut person, &conversation, 3).await?;
    assert_eq!(labels(&rest), ["answer to session/prompt"]);
    assert_eq!(
        switch(&mut person, &conversation, false).await?["on"],
        false
    );
    assert_eq!(
        read(&mut person, &conversation, 0).await?["frames"],
        json!([])
    );
    let unknown = json!({"type": "session:traffic", "sessionId": "unknown:x", "on": true});
    assert_eq!(
        person.socket.ask(unknown).await?["code"],
        "SESSION_NOT_FOUND"
    );
    Ok(())
}

#[tokio::test]
async fn traffic_recording_survives_a_crash_and_is_bounded_in_a_flood() -> Result<()> {
    let setup = ServerSetup::new()?.with_scripted_agent("")?;
    let server = setup.start().await?;
    let mut person = Person::at(&server, &setup.folder("app")?).await?;
    let mut conversation = person.begin().await?;
    person.turn(&mut conversation, "say hello").await?;
    switch(&mut person, &conversation, true).await?;
    person.turn(&mut conversation, "crash 1").await?;
    person.turn(&mut conversation, "say again").await?;
    let seen = read(&mut person, &conversation, 0).await?;
    let prompts = labels(&seen)
        .iter()
        .filter(|label| **label == "session/prompt")
        .count();
    assert_eq!(prompts, 2, "{:?}", labels(&seen));
    person.turn(&mut conversation, "flood 20000 50").await?;
    let traffic = read(&mut person, &conversation, 0).await?;
    assert!(
        traffic["dropped"].as_u64() > Some(17_000),
        "{}",
        traffic["dropped"]
    );
    let text = traffic["frames"].to_string();
    assert!(text.len() < 1024 * 1024, "{}", text.len());
    Ok(())
}
