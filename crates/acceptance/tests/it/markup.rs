//! Tests of rendered HTML: a window that requests it gets the same HTML from streaming, history and pages.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use testkit::{Scene, Server, Socket};

async fn reader(server: &Server) -> Result<Socket> {
    let (bearer, host) = (
        format!("Bearer {}", server.token),
        server.address.to_string(),
    );
    let headers = [("host", host.as_str()), ("authorization", &bearer)];
    Ok(Socket::open(server.address, "/ws?html=1", &headers).await?)
}

/// Content of an element after its rendered parts were applied. All parts must be at the top level.
#[derive(Default)]
struct Element {
    finished: String,
    tail: String,
}

impl Element {
    fn apply(&mut self, rendered: &Value) {
        let text = |parts: &Value| -> String {
            let parts = parts.as_array().map_or(&[][..], Vec::as_slice);
            assert!(
                parts.iter().all(|part| part.get("depth").is_none()),
                "{parts:?}"
            );
            parts
                .iter()
                .filter_map(|part| part["html"].as_str())
                .collect()
        };
        self.finished.push_str(&text(&rendered["finished"]));
        self.tail = text(&rendered["tail"]);
    }

    fn shown(&self) -> String {
        format!("{}{}", self.finished, self.tail)
    }
}

#[tokio::test]
async fn streamed_html_equals_history_html_also_after_a_resume() -> Result<()> {
    let mut scene = Scene::new().await?;
    let mut socket = reader(&scene.server).await?;
    let id = scene.session.session_id.clone();
    let open =
        |after: Option<Value>| json!({"type": "session:open", "sessionId": id, "after": after});
    let history = socket.ask(open(None)).await?;
    scene
        .send("say Hello *wor\nsleep 60\nsay ld* <b>\nsleep 60\nsay  and `code`.")
        .await?;
    let mut element = Element::default();
    let mut seq = 0;
    let mut chunks = 0;
    loop {
        let message = socket.next().await?;
        seq = message["seq"].as_u64().unwrap_or(seq);
        if message["html"].is_object() {
            element.apply(&message["html"]);
        }
        match message["type"].as_str() {
            Some("session:chunk") => {
                chunks += 1;
                // Reconnect in the middle of the text.
                let boot_id = history["bootId"].clone();
                socket = reader(&scene.server).await?;
                let resumed = socket
                    .ask(open(Some(json!({"bootId": boot_id, "seq": seq}))))
                    .await?;
                assert_eq!(resumed["type"], "session:resumed");
            }
            Some("session:complete") => break,
            _ => {}
        }
    }
    assert!(chunks > 0);
    scene.until_turns(1).await?;
    let later = reader(&scene.server).await?.ask(open(None)).await?;
    let whole = later["html"]["e2"]["finished"][0]["html"]
        .as_str()
        .context("HTML")?;
    assert_eq!(element.shown(), whole);
    assert!(
        whole.contains("<em>world</em>") && whole.contains("&lt;b&gt;"),
        "{whole}"
    );
    assert_eq!(
        scene.user.open(&scene.session.session_id).await?.entries,
        scene.session.entries
    );
    let plain = scene.user.socket.ask(open(None)).await?;
    assert_eq!(plain.get("html"), None);
    Ok(())
}

#[tokio::test]
async fn finished_entries_have_the_same_html_in_history_and_pages() -> Result<()> {
    let mut scene = Scene::new().await?;
    scene.send("say # *One* `two`").await?;
    scene.until_turns(1).await?;
    scene.send("think [a](javascript:b)").await?;
    scene.until_turns(2).await?;
    let id = scene.session.session_id.clone();
    let mut seen = vec![];
    for _ in 0..2 {
        let mut socket = reader(&scene.server).await?;
        let history = socket
            .ask(json!({"type": "session:open", "sessionId": id}))
            .await?;
        let page = socket
            .ask(json!({"type": "session:page", "sessionId": id, "before": 100, "limit": 100}))
            .await?;
        seen.extend([history["html"].clone(), page["html"].clone()]);
    }
    let first = seen[0].to_string();
    assert!(
        first.contains("<h1><em>One</em> <code>two</code></h1>"),
        "{first}"
    );
    assert_eq!(
        seen[0].as_object().map(|html| html.len()),
        Some(2),
        "{first}"
    );
    assert!(seen.iter().all(|html| *html == seen[0]), "{seen:?}");
    Ok(())
}

#[tokio::test]
async fn text_that_grows_after_its_turn_is_sent_with_its_whole_html() -> Result<()> {
    let mut scene = Scene::new().await?;
    let mut socket = reader(&scene.server).await?;
    socket
        .ask(json!({"type": "session:open", "sessionId": scene.session.session_id}))
        .await?;
    let chunk = |text: &str| {
        let content = json!({"type": "text", "text": text});
        json!({"sessionUpdate": "agent_message_chunk", "messageId": "m1", "content": content})
    };
    let script = format!("update {}\nlate-update {}", chunk("one *wo"), chunk("rd*"));
    scene.send(&script).await?;
    let late = loop {
        let message = socket.next_of("session:update").await?;
        if message["entry"]["content"] == "one *word*" {
            break message;
        }
    };
    assert_ne!(late["begins"], true);
    let mut element = Element::default();
    element.apply(&late["html"]);
    assert_eq!(element.shown().trim_end(), "<p>one <em>word</em></p>");
    Ok(())
}
