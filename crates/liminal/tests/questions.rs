//! What an agent asks a person with a form or a link, over the real socket: asked, answered, taken back, lost.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use testkit::{Conversation, Person, Server, ServerSetup};

async fn one() -> Result<(ServerSetup, Server, Person, Conversation)> {
    let setup = ServerSetup::new(env!("CARGO_BIN_EXE_liminal"))?.with_scripted_agent("")?;
    let server = setup.start().await?;
    let mut person = Person::at(&server, &setup.folder("app")?).await?;
    let talk = person.begin().await?;
    Ok((setup, server, person, talk))
}

/// Every kind of field there is, in an order that is not the alphabet's.
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

/// Reads on until a question is open, and says its id.
async fn asked(person: &mut Person, talk: &mut Conversation) -> Result<String> {
    person
        .until(talk, |seen| seen.info["questions"][0].is_object())
        .await?;
    let id = talk.info["questions"][0]["questionId"].as_str();
    Ok(id.context("an id")?.to_owned())
}

async fn answer(
    person: &mut Person,
    talk: &mut Conversation,
    question: &str,
    action: &str,
    content: Value,
) -> Result<Value> {
    let mut message = json!({"type": "session:answer", "questionId": question, "action": action});
    if !content.is_null() {
        message["content"] = content;
    }
    person.ask(talk, message).await
}

fn question(talk: &Conversation) -> Result<&Value> {
    let is_one = |entry: &&Value| entry["type"] == "question";
    talk.entries.iter().find(is_one).context("a question")
}

#[tokio::test]
async fn a_form_is_asked_field_by_field_and_its_answers_reach_the_agent_and_every_window()
-> Result<()> {
    let (setup, server, mut person, mut talk) = one().await?;
    person.send(&talk, &ask_form(&schema())).await?;
    let id = asked(&mut person, &mut talk).await?;
    let entry = question(&talk)?.clone();
    assert_eq!(entry["message"], "Who are you?");
    assert_eq!(entry["outcome"], Value::Null);
    let names: Vec<&str> = entry["ask"]["fields"]
        .as_array()
        .context("fields")?
        .iter()
        .filter_map(|field| field["name"].as_str())
        .collect();
    let as_asked = ["name", "mail", "count", "share", "agree", "colour", "days"];
    assert_eq!(names, as_asked);
    assert_eq!(entry["ask"]["fields"][0]["required"], true);
    assert_eq!(talk.info["state"], "waiting");

    let mut other = Person::at(&server, &setup.folder("app")?).await?;
    let mut theirs = other.open(&talk.session_id).await?;
    assert_eq!(theirs.info["questions"], talk.info["questions"]);
    assert_eq!(other.list(false).await?[0]["state"], "waiting");

    let filled =
        json!({"name": "Ada", "count": 4.0, "agree": false, "colour": "b", "days": ["Mon", "Wed"]});
    answer(&mut other, &mut theirs, &id, "accept", filled).await?;
    person.until_turns(&mut talk, 1).await?;
    let said = talk.said();
    assert_eq!(said[1], "question accepted: Who are you?");
    let told: Value = serde_json::from_str(said[2].trim_start_matches("assistant: "))?;
    let content =
        json!({"name": "Ada", "count": 4, "agree": false, "colour": "b", "days": ["Mon", "Wed"]});
    assert_eq!(told, json!({"action": "accept", "content": content}));
    assert_eq!(question(&talk)?["answers"]["name"], "Ada");
    other.until_turns(&mut theirs, 1).await?;
    assert_eq!(theirs.entries, talk.entries);
    assert_eq!(talk.info["questions"], json!([]));
    Ok(())
}

#[tokio::test]
async fn what_does_not_fit_the_form_is_refused_and_the_question_stays() -> Result<()> {
    let (_setup, _server, mut person, mut talk) = one().await?;
    person.send(&talk, &ask_form(&schema())).await?;
    let id = asked(&mut person, &mut talk).await?;
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
        (with("mail", json!("nobody")), "must be an e-mail address"),
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
        let refused = answer(&mut person, &mut talk, &id, "accept", content).await?;
        assert_eq!(refused["code"], "INVALID_MESSAGE", "{refused}");
        let message = refused["message"].as_str().unwrap_or_default();
        assert!(message.contains(reason), "{message} / {reason}");
    }
    assert_eq!(talk.said()[1..], ["question open: Who are you?"]);
    answer(&mut person, &mut talk, &id, "decline", Value::Null).await?;
    person.until_turns(&mut talk, 1).await?;
    let said = r#"assistant: {"action":"decline"}"#;
    assert_eq!(talk.said()[1..3], ["question declined: Who are you?", said]);
    let late = answer(&mut person, &mut talk, &id, "accept", json!({})).await?;
    assert_eq!(late["code"], "SESSION_BUSY");
    Ok(())
}

#[tokio::test]
async fn a_form_that_cannot_be_shown_is_refused_with_a_reason_and_the_turn_goes_on() -> Result<()> {
    let (_setup, _server, mut person, mut talk) = one().await?;
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
        person.turn(&mut talk, &ask_form(&schema)).await?;
        let said = talk.said();
        let told = &said[said.len() - 2];
        assert!(told.starts_with("assistant: error -32602: "), "{told}");
        assert!(told.contains(reason), "{told} / {reason}");
        assert_eq!(said[said.len() - 1], "turn ended");
    }
    for url in ["javascript:alert(1)", "file:///etc/passwd", "https://a b"] {
        let ask = format!("ask elicitation/create {}", link(url));
        person.turn(&mut talk, &ask).await?;
        let said = talk.said();
        let told = &said[said.len() - 2];
        assert!(told.contains("must be an http or https address"), "{told}");
    }
    Ok(())
}

#[tokio::test]
async fn a_default_that_could_not_be_answered_with_is_none() -> Result<()> {
    let (_setup, _server, mut person, mut talk) = one().await?;
    let schema = json!({"type": "object", "properties": {
        "good": {"type": "integer", "minimum": 1, "default": 2},
        "bad": {"type": "integer", "minimum": 5, "default": 2},
        "other": {"type": "string", "enum": ["x"], "default": "y"},
    }});
    person.send(&talk, &ask_form(&schema)).await?;
    asked(&mut person, &mut talk).await?;
    let fields = &question(&talk)?["ask"]["fields"];
    assert_eq!(fields[0]["input"]["default"], 2.0);
    assert_eq!(fields[1]["input"]["default"], Value::Null);
    assert_eq!(fields[2]["input"]["default"], Value::Null);
    Ok(())
}

#[tokio::test]
async fn stopping_the_turn_cancels_what_it_asked() -> Result<()> {
    let (_setup, _server, mut person, mut talk) = one().await?;
    person.send(&talk, &ask_form(&schema())).await?;
    asked(&mut person, &mut talk).await?;
    let stop = json!({"type": "session:cancel"});
    person.ask(&mut talk, stop).await?;
    person.until_turns(&mut talk, 1).await?;
    let said = r#"assistant: {"action":"cancel"}"#;
    let all = ["question cancelled: Who are you?", said, "turn cancelled"];
    assert_eq!(talk.said()[1..], all);
    Ok(())
}

#[tokio::test]
async fn an_agent_that_dies_leaves_its_question_interrupted() -> Result<()> {
    let (_setup, _server, mut person, mut talk) = one().await?;
    let text = format!(
        "ask-on elicitation/create {}\ncrash 1",
        form("Who?", &schema())
    );
    person.send(&talk, &text).await?;
    person.until_turns(&mut talk, 1).await?;
    assert_eq!(
        talk.said()[1..],
        ["question interrupted: Who?", "turn interrupted"]
    );
    assert_eq!(talk.info["questions"], json!([]));
    person.turn(&mut talk, "say on").await?;
    assert_eq!(talk.said()[4..], ["assistant: on", "turn ended"]);
    Ok(())
}

#[tokio::test]
async fn an_agent_that_dies_after_the_turn_leaves_its_question_interrupted_too() -> Result<()> {
    let (_setup, _server, mut person, mut talk) = one().await?;
    let ask = format!("late-ask elicitation/create {}", form("And?", &schema()));
    person.send(&talk, &ask).await?;
    asked(&mut person, &mut talk).await?;
    let other = person.begin().await?;
    person.send(&other, "crash 1").await?;
    person
        .until_said(&mut talk, "question interrupted: And?")
        .await?;
    person
        .until(&mut talk, |seen| seen.info["questions"] == json!([]))
        .await
}

#[tokio::test]
async fn a_server_that_is_killed_finds_its_question_interrupted() -> Result<()> {
    let (setup, server, mut person, mut talk) = one().await?;
    person.turn(&mut talk, "say first").await?;
    person.send(&talk, &ask_form(&schema())).await?;
    asked(&mut person, &mut talk).await?;
    server.signal("KILL").await?;
    let server = setup.start().await?;
    let mut person = Person::at(&server, &setup.folder("app")?).await?;
    let talk = person.open(&talk.session_id).await?;
    let last = ["question interrupted: Who are you?", "turn interrupted"];
    assert_eq!(talk.said()[4..], last);
    assert_eq!(talk.info["questions"], json!([]));
    Ok(())
}

#[tokio::test]
async fn asked_after_the_end_of_a_turn_it_waits_all_the_same_and_survives_a_kill_as_interrupted()
-> Result<()> {
    let (setup, server, mut person, mut talk) = one().await?;
    let ask = format!(
        "say first\nlate-ask elicitation/create {}",
        form("And?", &schema())
    );
    person.send(&talk, &ask).await?;
    let id = asked(&mut person, &mut talk).await?;
    assert_eq!(talk.info["state"], "waiting");
    let filled = json!({"name": "Ada", "colour": "r"});
    answer(&mut person, &mut talk, &id, "accept", filled).await?;
    person.until_said(&mut talk, "question accepted").await?;
    person
        .until_said(&mut talk, r#"assistant: {"action":"accept""#)
        .await?;
    person
        .until(&mut talk, |seen| seen.info["state"] == "idle")
        .await?;

    person.send(&talk, &ask).await?;
    asked(&mut person, &mut talk).await?;
    server.signal("KILL").await?;
    let server = setup.start().await?;
    let mut person = Person::at(&server, &setup.folder("app")?).await?;
    let talk = person.open(&talk.session_id).await?;
    let said = talk.said();
    assert_eq!(
        said.last().map(String::as_str),
        Some("question interrupted: And?")
    );
    Ok(())
}

#[tokio::test]
async fn a_question_the_agent_takes_back_is_closed() -> Result<()> {
    let (_setup, _server, mut person, mut talk) = one().await?;
    let text = format!(
        "ask-on elicitation/create {}\nuntil {{}}\nwithdraw\nhang",
        form("Who?", &schema())
    );
    let go = _setup.home().join("go");
    let text = text.replace("{}", go.to_str().context("a path")?);
    person.send(&talk, &text).await?;
    let id = asked(&mut person, &mut talk).await?;
    std::fs::write(go, "")?;
    person
        .until_said(&mut talk, "question cancelled: Who?")
        .await?;
    assert!(talk.is_running());
    let late = answer(&mut person, &mut talk, &id, "accept", json!({})).await?;
    assert_eq!(late["code"], "SESSION_BUSY");
    Ok(())
}

#[tokio::test]
async fn a_link_is_accepted_and_its_end_is_told_by_the_agent() -> Result<()> {
    let (_setup, _server, mut person, mut talk) = one().await?;
    let done = json!({"jsonrpc": "2.0", "method": "elicitation/complete", "params": {"elicitationId": "v1"}});
    let text = format!(
        "ask elicitation/create {}\nraw {done}\nsay on",
        link("https://example.com/login?code=1")
    );
    person.send(&talk, &text).await?;
    let id = asked(&mut person, &mut talk).await?;
    assert_eq!(
        question(&talk)?["ask"],
        json!({"type": "link", "url": "https://example.com/login?code=1"})
    );
    answer(&mut person, &mut talk, &id, "accept", Value::Null).await?;
    person.until_turns(&mut talk, 1).await?;
    assert_eq!(question(&talk)?["outcome"], "accepted");
    assert_eq!(question(&talk)?["ask"]["finished"], true);
    assert_eq!(talk.said()[2], r#"assistant: {"action":"accept"}on"#);
    Ok(())
}

#[tokio::test]
async fn a_link_the_person_is_done_with_before_a_word_here_counts_as_accepted() -> Result<()> {
    let (_setup, _server, mut person, mut talk) = one().await?;
    let done = json!({"jsonrpc": "2.0", "method": "elicitation/complete", "params": {"elicitationId": "v1"}});
    let text = format!(
        "ask-on elicitation/create {}\nraw {done}\nsleep 50",
        link("https://example.com/")
    );
    person.turn(&mut talk, &text).await?;
    assert_eq!(question(&talk)?["outcome"], "accepted");
    assert_eq!(question(&talk)?["ask"]["finished"], true);
    Ok(())
}
