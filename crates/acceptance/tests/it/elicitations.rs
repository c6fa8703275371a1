//! Tests of elicitations (forms and links) over the browser socket: sent, answered, cancelled, interrupted.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use testkit::{Conversation, Person, Scene};

/// A form with every kind of field, in an order that is not alphabetical.
fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "title": "Your name", "minLength": 2, "maxLength": 20, "pattern": "^[A-Z]"},
            "mail": {"type": "string", "format": "email"},
            "count": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3},
            "share": {"type": "number", "minimum": 0, "maximum": 1},
            "agree": {"type": "boolean", "default": true},
            "colour": {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "b", "title": "Blue", "description": "like the sea"}]},
            "days": {"type": "array", "items": {"type": "string", "enum": ["Mon", "Tue", "Wed"]}, "minItems": 1, "maxItems": 2}
        },
        "required": ["name", "colour"]
    })
}

fn form(message: &str, schema: &Value) -> String {
    json!({"mode": "form", "message": message, "requestedSchema": schema}).to_string()
}

fn ask_form(schema: &Value) -> String {
    format!("ask elicitation/create {}", form("Who are you?", schema))
}

fn link(url: &str) -> String {
    json!({"mode": "url", "message": "Go there", "url": url, "elicitationId": "v1"}).to_string()
}

/// Reads messages until a question is open, and returns its id.
async fn open_question(scene: &mut Scene) -> Result<String> {
    scene
        .until(|seen| seen.info["questions"][0].is_object())
        .await?;
    let id = scene.session.info["questions"][0]["questionId"].as_str();
    Ok(id.context("no id")?.to_owned())
}

async fn answer(
    person: &mut Person,
    conversation: &mut Conversation,
    question: &str,
    action: &str,
    content: Value,
) -> Result<Value> {
    let mut message = json!({"type": "session:answer", "questionId": question, "action": action});
    if !content.is_null() {
        message["content"] = content;
    }
    person.ask(conversation, message).await
}

fn question(conversation: &Conversation) -> Result<&Value> {
    let is_one = |entry: &&Value| entry["type"] == "question";
    conversation
        .entries
        .iter()
        .find(is_one)
        .context("no question")
}

#[tokio::test]
async fn form_answers_reach_the_agent_and_every_window() -> Result<()> {
    let mut scene = Scene::new().await?;
    scene.send(&ask_form(&schema())).await?;
    let id = open_question(&mut scene).await?;
    let entry = question(&scene.session)?.clone();
    assert_eq!(entry["message"], "Who are you?");
    assert_eq!(entry["outcome"], Value::Null);
    let names: Vec<&str> = entry["ask"]["fields"]
        .as_array()
        .context("fields")?
        .iter()
        .filter_map(|field| field["name"].as_str())
        .collect();
    let schema_order = ["name", "mail", "count", "share", "agree", "colour", "days"];
    assert_eq!(names, schema_order);
    assert_eq!(entry["ask"]["fields"][0]["required"], true);
    assert_eq!(scene.session.info["state"], "waiting");

    let mut other = scene.another_window().await?;
    let mut other_conversation = other.open(&scene.session.session_id).await?;
    assert_eq!(
        other_conversation.info["questions"],
        scene.session.info["questions"]
    );
    assert_eq!(other.list(false).await?[0]["state"], "waiting");

    let filled =
        json!({"name": "Ada", "count": 4.0, "agree": false, "colour": "b", "days": ["Mon", "Wed"]});
    answer(&mut other, &mut other_conversation, &id, "accept", filled).await?;
    scene.until_turns(1).await?;
    let lines = scene.session.said();
    assert_eq!(lines[1], "question accepted: Who are you?");
    let response: Value = serde_json::from_str(lines[2].trim_start_matches("assistant: "))?;
    let content =
        json!({"name": "Ada", "count": 4, "agree": false, "colour": "b", "days": ["Mon", "Wed"]});
    assert_eq!(response, json!({"action": "accept", "content": content}));
    assert_eq!(question(&scene.session)?["answers"]["name"], "Ada");
    other.until_turns(&mut other_conversation, 1).await?;
    assert_eq!(other_conversation.entries, scene.session.entries);
    assert_eq!(scene.session.info["questions"], json!([]));
    Ok(())
}

#[tokio::test]
async fn answer_that_does_not_fit_the_form_is_rejected_and_form_stays_open() -> Result<()> {
    let mut scene = Scene::new().await?;
    scene.send(&ask_form(&schema())).await?;
    let id = open_question(&mut scene).await?;
    let with = |field: &str, value: Value| {
        let mut filled = json!({"name": "Ada", "colour": "r"});
        filled[field] = value;
        filled
    };
    for (content, reason) in [
        (json!({"colour": "r"}), "“Your name” is needed."),
        (with("name", json!("A")), "needs at least 2 characters"),
        (with("name", json!("A".repeat(21))), "at most 20 characters"),
        (with("name", json!("ada")), "does not have the form"),
        (with("name", json!(7)), "a value of the wrong type"),
        (with("mail", json!("ada")), "must be an e-mail address"),
        (with("count", json!(0)), "must be at least 1"),
        (with("count", json!(10)), "must be at most 9"),
        (with("count", json!(1.5)), "must be a whole number"),
        (with("share", json!(1.1)), "must be at most 1"),
        (with("agree", json!("yes")), "a value of the wrong type"),
        (with("colour", json!("green")), "one of its options"),
        (with("days", json!([])), "at least 1 of its options"),
        (
            with("days", json!(["Mon", "Tue", "Wed"])),
            "at most 2 of its options",
        ),
        (with("days", json!(["Mon", "Mon"])), "some of its options"),
        (with("spy", json!("x")), "has no field “spy”"),
    ] {
        let refused = answer(&mut scene.user, &mut scene.session, &id, "accept", content).await?;
        assert_eq!(refused["code"], "INVALID_MESSAGE", "{refused}");
        let message = refused["message"].as_str().unwrap_or_default();
        assert!(message.contains(reason), "{message} / {reason}");
    }
    assert_eq!(scene.session.said()[1..], ["question open: Who are you?"]);
    answer(
        &mut scene.user,
        &mut scene.session,
        &id,
        "decline",
        Value::Null,
    )
    .await?;
    scene.until_turns(1).await?;
    let lines = r#"assistant: {"action":"decline"}"#;
    assert_eq!(
        scene.session.said()[1..3],
        ["question declined: Who are you?", lines]
    );
    let late = answer(
        &mut scene.user,
        &mut scene.session,
        &id,
        "accept",
        json!({}),
    )
    .await?;
    assert_eq!(late["code"], "SESSION_BUSY");
    Ok(())
}

#[tokio::test]
async fn unsupported_form_is_rejected_with_a_reason_and_the_turn_continues() -> Result<()> {
    let mut scene = Scene::new().await?;
    let of = |properties: Value| json!({"type": "object", "properties": properties});
    let many: serde_json::Map<String, Value> = (0..65)
        .map(|number| (format!("f{number}"), json!({"type": "string"})))
        .collect();
    let options: Vec<String> = (0..257).map(|number| number.to_string()).collect();
    for (schema, reason) in [
        (
            of(json!({"a": {"type": "object"}})),
            "property `a`: the type `object` is not supported",
        ),
        (
            of(json!({"a": {"type": "array", "items": {"type": "integer"}}})),
            "an enumeration of strings",
        ),
        (
            of(json!({"a": {"type": "string", "enum": []}})),
            "it has no options",
        ),
        (
            of(json!({"a": {"type": "string", "enum": options}})),
            "at most 256 options",
        ),
        (of(json!({"a": 5})), "the elicitation is invalid"),
        (of(json!(many)), "at most 64 fields"),
        (
            json!({"type": "object", "properties": {}, "required": ["ghost"]}),
            "`ghost` is required, but is no property",
        ),
        (json!({"type": "array"}), "must be of type `object`"),
        (
            of(json!({"a": {"type": "string", "description": "d".repeat(200_000)}})),
            "too large",
        ),
    ] {
        scene.turn(&ask_form(&schema)).await?;
        let lines = scene.session.said();
        let response = &lines[lines.len() - 2];
        assert!(
            response.starts_with("assistant: error -32602: "),
            "{response}"
        );
        assert!(response.contains(reason), "{response} / {reason}");
        assert_eq!(lines[lines.len() - 1], "turn ended");
    }
    for url in ["javascript:alert(1)", "file:///etc/passwd", "https://a b"] {
        let ask = format!("ask elicitation/create {}", link(url));
        scene.turn(&ask).await?;
        let lines = scene.session.said();
        let response = &lines[lines.len() - 2];
        assert!(
            response.contains("must be an http or https address"),
            "{response}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn invalid_default_of_a_form_field_is_dropped() -> Result<()> {
    let mut scene = Scene::new().await?;
    let schema = json!({"type": "object", "properties": {
        "good": {"type": "integer", "minimum": 1, "default": 2},
        "bad": {"type": "integer", "minimum": 5, "default": 2},
        "other": {"type": "string", "enum": ["x"], "default": "y"},
    }});
    scene.send(&ask_form(&schema)).await?;
    open_question(&mut scene).await?;
    let fields = &question(&scene.session)?["ask"]["fields"];
    assert_eq!(fields[0]["input"]["default"], 2.0);
    assert_eq!(fields[1]["input"]["default"], Value::Null);
    assert_eq!(fields[2]["input"]["default"], Value::Null);
    Ok(())
}

#[tokio::test]
async fn cancelled_turn_cancels_its_open_form() -> Result<()> {
    let mut scene = Scene::new().await?;
    scene.send(&ask_form(&schema())).await?;
    open_question(&mut scene).await?;
    let stop = json!({"type": "session:cancel"});
    scene.ask(stop).await?;
    scene.until_turns(1).await?;
    let lines = r#"assistant: {"action":"cancel"}"#;
    let all = ["question cancelled: Who are you?", lines, "turn cancelled"];
    assert_eq!(scene.session.said()[1..], all);
    Ok(())
}

#[tokio::test]
async fn agent_exit_during_a_turn_interrupts_its_form() -> Result<()> {
    let mut scene = Scene::new().await?;
    let text = format!(
        "ask-on elicitation/create {}\ncrash 1",
        form("Who?", &schema())
    );
    scene.send(&text).await?;
    scene.until_turns(1).await?;
    assert_eq!(
        scene.session.said()[1..],
        ["question interrupted: Who?", "turn interrupted"]
    );
    assert_eq!(scene.session.info["questions"], json!([]));
    scene.turn("say on").await?;
    assert_eq!(scene.session.said()[4..], ["assistant: on", "turn ended"]);
    Ok(())
}

#[tokio::test]
async fn agent_exit_after_the_turn_interrupts_its_form() -> Result<()> {
    let mut scene = Scene::new().await?;
    let ask = format!("late-ask elicitation/create {}", form("And?", &schema()));
    scene.send(&ask).await?;
    open_question(&mut scene).await?;
    let other = scene.user.begin().await?;
    scene.user.send(&other, "crash 1").await?;
    scene.until_said("question interrupted: And?").await?;
    scene
        .until(|seen| seen.info["questions"] == json!([]))
        .await
}

#[tokio::test]
async fn form_open_when_the_server_was_killed_is_interrupted() -> Result<()> {
    let mut scene = Scene::new().await?;
    scene.turn("say first").await?;
    scene.send(&ask_form(&schema())).await?;
    open_question(&mut scene).await?;
    let scene = scene.restart("KILL").await?;
    let last = ["question interrupted: Who are you?", "turn interrupted"];
    assert_eq!(scene.session.said()[4..], last);
    assert_eq!(scene.session.info["questions"], json!([]));
    Ok(())
}

#[tokio::test]
async fn form_sent_after_the_turn_can_be_answered_or_is_interrupted_by_a_kill() -> Result<()> {
    let mut scene = Scene::new().await?;
    let ask = format!(
        "say first\nlate-ask elicitation/create {}",
        form("And?", &schema())
    );
    scene.send(&ask).await?;
    let id = open_question(&mut scene).await?;
    assert_eq!(scene.session.info["state"], "waiting");
    let filled = json!({"name": "Ada", "colour": "r"});
    answer(&mut scene.user, &mut scene.session, &id, "accept", filled).await?;
    scene.until_said("question accepted").await?;
    scene.until_said(r#"assistant: {"action":"accept""#).await?;
    scene.until(|seen| seen.info["state"] == "idle").await?;

    scene.send(&ask).await?;
    open_question(&mut scene).await?;
    let scene = scene.restart("KILL").await?;
    let lines = scene.session.said();
    assert_eq!(
        lines.last().map(String::as_str),
        Some("question interrupted: And?")
    );
    Ok(())
}

#[tokio::test]
async fn form_cancelled_by_the_agent_is_closed() -> Result<()> {
    let mut scene = Scene::new().await?;
    let text = format!(
        "ask-on elicitation/create {}\nuntil {{}}\nwithdraw\nhang",
        form("Who?", &schema())
    );
    let go = scene.setup.home().join("go");
    let text = text.replace("{}", go.to_str().context("no path")?);
    scene.send(&text).await?;
    let id = open_question(&mut scene).await?;
    std::fs::write(go, "")?;
    scene.until_said("question cancelled: Who?").await?;
    assert!(scene.session.is_running());
    let late = answer(
        &mut scene.user,
        &mut scene.session,
        &id,
        "accept",
        json!({}),
    )
    .await?;
    assert_eq!(late["code"], "SESSION_BUSY");
    Ok(())
}

#[tokio::test]
async fn accepted_link_is_finished_when_the_agent_reports_completion() -> Result<()> {
    let mut scene = Scene::new().await?;
    let done = json!({"jsonrpc": "2.0", "method": "elicitation/complete", "params": {"elicitationId": "v1"}});
    let text = format!(
        "ask elicitation/create {}\nraw {done}\nsay on",
        link("https://example.com/login?code=1")
    );
    scene.send(&text).await?;
    let id = open_question(&mut scene).await?;
    assert_eq!(
        question(&scene.session)?["ask"],
        json!({"type": "link", "url": "https://example.com/login?code=1"})
    );
    answer(
        &mut scene.user,
        &mut scene.session,
        &id,
        "accept",
        Value::Null,
    )
    .await?;
    scene.until_turns(1).await?;
    assert_eq!(question(&scene.session)?["outcome"], "accepted");
    assert_eq!(question(&scene.session)?["ask"]["finished"], true);
    assert_eq!(
        scene.session.said()[2],
        r#"assistant: {"action":"accept"}on"#
    );
    Ok(())
}

#[tokio::test]
async fn link_completed_before_an_answer_counts_as_accepted() -> Result<()> {
    let mut scene = Scene::new().await?;
    let done = json!({"jsonrpc": "2.0", "method": "elicitation/complete", "params": {"elicitationId": "v1"}});
    let text = format!(
        "ask-on elicitation/create {}\nraw {done}\nsleep 50",
        link("https://example.com/")
    );
    scene.turn(&text).await?;
    assert_eq!(question(&scene.session)?["outcome"], "accepted");
    assert_eq!(question(&scene.session)?["ask"]["finished"], true);
    Ok(())
}
