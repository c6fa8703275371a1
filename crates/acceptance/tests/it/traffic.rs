//! Tests of traffic recording: the ACP frames of a session, read over the browser socket.

use anyhow::Result;
use serde_json::{Value, json};
use testkit::Scene;

async fn read(scene: &mut Scene, after: u64) -> Result<Value> {
    let request = json!({"type": "session:traffic-read", "sessionId": scene.session.session_id, "after": after});
    scene.user.socket.ask(request).await
}

async fn switch(scene: &mut Scene, on: bool) -> Result<Value> {
    let request =
        json!({"type": "session:traffic", "sessionId": scene.session.session_id, "on": on});
    scene.user.socket.ask(request).await
}

fn labels(traffic: &Value) -> Vec<&str> {
    let frames = traffic["frames"].as_array().into_iter().flatten();
    frames.filter_map(|frame| frame["label"].as_str()).collect()
}

#[tokio::test]
async fn traffic_is_recorded_only_for_the_session_that_enabled_it() -> Result<()> {
    let mut scene = Scene::new().await?;
    let mut other = scene.user.begin().await?;
    scene.turn("say before").await?;
    assert_eq!(read(&mut scene, 0).await?["on"], false);
    assert_eq!(switch(&mut scene, true).await?["on"], true);
    scene.turn("say one\nsay two").await?;
    scene.user.turn(&mut other, "say not recorded").await?;
    let traffic = read(&mut scene, 0).await?;
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
    let rest = read(&mut scene, 3).await?;
    assert_eq!(labels(&rest), ["answer to session/prompt"]);
    assert_eq!(switch(&mut scene, false).await?["on"], false);
    assert_eq!(read(&mut scene, 0).await?["frames"], json!([]));
    let unknown = json!({"type": "session:traffic", "sessionId": "unknown:x", "on": true});
    assert_eq!(
        scene.user.socket.ask(unknown).await?["code"],
        "SESSION_NOT_FOUND"
    );
    Ok(())
}

#[tokio::test]
async fn traffic_recording_survives_a_crash_and_is_bounded_in_a_flood() -> Result<()> {
    let mut scene = Scene::new().await?;
    scene.turn("say hello").await?;
    switch(&mut scene, true).await?;
    scene.turn("crash 1").await?;
    scene.turn("say again").await?;
    let seen = read(&mut scene, 0).await?;
    let prompts = labels(&seen)
        .iter()
        .filter(|label| **label == "session/prompt")
        .count();
    assert_eq!(prompts, 2, "{:?}", labels(&seen));
    scene.turn("flood 20000 50").await?;
    let traffic = read(&mut scene, 0).await?;
    assert!(
        traffic["dropped"].as_u64() > Some(17_000),
        "{}",
        traffic["dropped"]
    );
    let text = traffic["frames"].to_string();
    assert!(text.len() < 1024 * 1024, "{}", text.len());
    Ok(())
}
