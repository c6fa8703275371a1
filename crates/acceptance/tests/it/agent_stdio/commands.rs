//! Slash commands and answers without a model.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::agent_stdio::client::{Place, permitting, prompt};

#[tokio::test]
async fn hello_is_answered_with_identity_project_and_next_steps() {
    let place = Place::new();
    let mut agent = place.start_initialized().await;
    let session = agent.new_session(&place.project).await;
    let reply = agent.prompt(&session, "Hello there").await;
    assert_eq!(reply.result["stopReason"], "end_turn");
    assert!(
        reply.of_kind("agent_message_chunk").len() > 20,
        "the text is streamed in chunks"
    );
    assert_eq!(reply.of_kind("tool_call")[0]["name"], "list_files");
    assert_eq!(
        reply.of_kind("session_info_update")[0]["title"],
        "Hello there"
    );
    let text = reply.text();
    for expected in [
        "I am the agent that comes with Liminal Builder",
        "This is **project**, with one file at the top level.",
        "No model is configured",
        "/tour",
        "LIMINAL_AGENT_MODEL=anthropic/",
        "openai-compatible/",
    ] {
        assert!(text.contains(expected), "{expected} is not in {text}");
    }
    let again = agent.prompt(&session, "What is my name?").await.text();
    assert!(
        again.contains("I only understand commands") && again.len() < 300,
        "{again}"
    );
    let unknown = agent.prompt(&session, "/dance now").await.text();
    assert!(unknown.starts_with("I do not know `/dance`."));
}

#[tokio::test]
async fn tour_shows_each_kind_of_update_and_removes_its_note() {
    let place = Place::new();
    std::fs::create_dir_all(place.project.join("src/deep")).unwrap();
    place.write("src/main.rs", "");
    let mut agent = place.start_initialized().await;
    let session = agent.new_session(&place.project).await;
    let reply = agent.prompt(&session, "/tour").await;
    let plans = reply.of_kind("plan");
    assert_eq!(plans.len(), 4);
    assert!(
        plans[3]["entries"]
            .as_array()
            .unwrap()
            .iter()
            .all(|entry| entry["status"] == "completed")
    );
    assert!(
        reply
            .updates
            .iter()
            .any(|update| update["content"][0]["type"] == "diff")
    );
    let asked: Vec<_> = agent
        .asked
        .iter()
        .map(|(_, params)| &params["toolCall"])
        .collect();
    assert_eq!(asked.len(), 2);
    assert_eq!(
        asked[0]["content"][0]["type"], "diff",
        "the permission request contains the diff"
    );
    assert_eq!(asked[1]["kind"], "execute");
    let text = reply.text();
    assert!(
        text.contains("This is **project**, with one folder and one file at the top level."),
        "{text}"
    );
    assert!(text.contains("written and removed again"), "{text}");
    assert_eq!(names_in(&place), ["README.md", "src"]);
}

fn names_in(place: &Place) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(&place.project)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn rejected_tour_changes_no_file() {
    let place = Place::new();
    let mut agent = place.start_initialized().await;
    let session = agent.new_session(&place.project).await;
    agent.answer_with(permitting("reject_once"));
    let reply = agent.prompt(&session, "/tour").await;
    assert_eq!(reply.result["stopReason"], "end_turn");
    assert!(reply.text().contains("The note was not written."));
    assert_eq!(names_in(&place), ["README.md"]);
}

#[tokio::test]
async fn tour_claims_user_approval_only_in_the_mode_that_requests_it() {
    let place = Place::new();
    let mut agent = place.start_initialized().await;
    for (mode, expected, asked) in [
        ("ask", "You decide, unless this session approves", 2),
        ("auto", "the agent does not request permission", 0),
        ("plan", "the last two are rejected", 0),
    ] {
        let session = agent.new_session(&place.project).await;
        let set = json!({"sessionId": session, "modeId": mode});
        agent.call("session/set_mode", set).await;
        agent.asked.clear();
        let text = agent.prompt(&session, "/tour").await.text();
        assert!(text.contains(expected), "{mode}: {text}");
        assert_eq!(agent.asked.len(), asked, "{mode}");
        assert_eq!(names_in(&place), ["README.md"]);
    }
}

#[tokio::test]
async fn tour_keeps_a_file_of_the_user_with_the_name_of_its_note() {
    let place = Place::new();
    place.write("liminal-tour.md", "mine\n");
    let mut agent = place.start_initialized().await;
    let session = agent.new_session(&place.project).await;
    let reply = agent.prompt(&session, "/tour").await;
    assert!(reply.text().contains("written and removed again"));
    assert_eq!(names_in(&place), ["README.md", "liminal-tour.md"]);
    assert_eq!(place.read("liminal-tour.md"), "mine\n");
}

#[tokio::test]
async fn cancelled_tour_removes_its_note() {
    let place = Place::new();
    let mut agent = place.start_initialized().await;
    let session = agent.new_session(&place.project).await;
    // The command's permission request is not answered.
    agent.answer_with(Box::new(|_, params| {
        Ok(match params["toolCall"]["kind"].as_str() {
            Some("execute") => Value::Null,
            _ => json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}}),
        })
    }));
    let id = agent
        .send("session/prompt", prompt(&session, "/tour"))
        .await;
    while agent.message().await["params"]["toolCall"]["kind"] != "execute" {}
    assert_eq!(names_in(&place), ["README.md", "liminal-tour.md"]);
    agent
        .notify("session/cancel", json!({"sessionId": session}))
        .await;
    assert_eq!(agent.answer(id).await.result["stopReason"], "cancelled");
    assert_eq!(names_in(&place), ["README.md"]);
}

#[tokio::test]
async fn each_command_works_inside_the_project_only() {
    let place = Place::new();
    place.write("a.txt", "one\ntwo\nthree\n");
    let mut agent = place.start_initialized().await;
    let session = agent.new_session(&place.project).await;
    let mut output = async |command: &str| {
        let reply = agent.prompt(&session, command).await;
        let last = reply
            .of_kind("tool_call_update")
            .last()
            .map(|update| (*update).clone());
        let last = last.unwrap_or_default();
        (
            last["status"].clone(),
            last["rawOutput"].as_str().unwrap_or_default().to_owned(),
            reply.text(),
        )
    };
    assert_eq!(output("/files").await.1, "README.md\na.txt");
    assert_eq!(output("/read a.txt 2-3").await.1, "two\nthree\n");
    assert_eq!(output("/search NEEDLE").await.1, "Nothing found.");
    assert_eq!(
        output("/search needle").await.1,
        "README.md:2: with a needle in it"
    );
    assert_eq!(
        output("/run printf hi; pwd >&2").await.1,
        format!("hi{}", place.project.display())
    );
    let (status, text, said) = output("/run exit 7").await;
    assert_eq!(status, "failed");
    assert_eq!(text, "Exit code 7.");
    assert_eq!(said, "Failed: exit code 7.");
    let (_, text, said) = output("/run true").await;
    assert_eq!(
        (text.as_str(), said.as_str()),
        ("(no output)", "Exit code 0.")
    );
    output("/edit a.txt two => zwei").await;
    output("/edit new/file.txt\nline one\nline two").await;
    assert_eq!(place.read("a.txt"), "one\nzwei\nthree\n");
    assert_eq!(place.read("new/file.txt"), "line one\nline two\n");
    let (status, text, _) = output("/edit a.txt four => vier").await;
    assert_eq!(
        (status, text.as_str()),
        (json!("failed"), "The old text is not in the file.")
    );
    for outside in [
        "/read ../data/token",
        "/read /etc/passwd",
        "/files ..",
        "/edit ../x.txt\nhi",
        "/search-not",
    ] {
        let (status, text, said) = output(outside).await;
        assert_ne!(status, "completed", "{outside}: {text}");
        assert!(
            said.contains("outside of this project") || said.contains("I do not know"),
            "{outside}: {said}"
        );
    }
    assert!(output("/help").await.2.contains("/search"));
    assert!(output("/read").await.2.contains("/read some/file"));
    assert!(output("/plan").await.2.contains("no plan yet"));
    assert!(output("/plan a; b").await.2.contains("Here is the plan"));
    assert!(output("/plan done 9").await.2.contains("no step 9"));
    assert!(output("/plan done 2").await.2.contains("1 step left"));
}

#[tokio::test]
async fn rejected_edit_leaves_the_file_unchanged() {
    let place = Place::new();
    let mut agent = place.start_initialized().await;
    let session = agent.new_session(&place.project).await;
    agent.answer_with(permitting("reject_once"));
    let before = place.read("README.md");
    let reply = agent
        .prompt(&session, "/edit README.md needle => pin")
        .await;
    assert_eq!(place.read("README.md"), before);
    let diff = reply.updates.iter().find_map(|update| {
        let content = &update["content"][0];
        (content["type"] == "diff").then(|| content.clone())
    });
    let diff = diff.unwrap();
    assert_eq!(diff["oldText"], before);
    assert_eq!(diff["newText"], before.replace("needle", "pin"));
    assert_eq!(
        reply.of_kind("tool_call_update").last().unwrap()["status"],
        "failed"
    );
}

#[tokio::test]
async fn files_are_read_and_written_by_a_client_with_fs_capability() {
    let place = Place::new();
    let mut agent = place.start();
    agent
        .initialize(json!({"fs": {"readTextFile": true, "writeTextFile": true}}))
        .await;
    let session = agent.new_session(&place.project).await;
    let written = Arc::new(Mutex::new(Value::Null));
    let keep = written.clone();
    agent.answer_with(Box::new(move |method, params| match method {
        "fs/read_text_file" => Ok(json!({"content": "unsaved text\n"})),
        "fs/write_text_file" => {
            *keep.lock().unwrap() = params.clone();
            Ok(json!({}))
        }
        _ => Ok(json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}})),
    }));
    let reply = agent.prompt(&session, "/read README.md 1-5").await;
    assert_eq!(
        reply.of_kind("tool_call_update").last().unwrap()["rawOutput"],
        "unsaved text\n"
    );
    assert_eq!(
        agent.asked[0].1["path"],
        json!(place.project.join("README.md"))
    );
    assert_eq!(agent.asked[0].1["limit"], 5);
    agent
        .prompt(&session, "/edit README.md unsaved => saved")
        .await;
    assert_eq!(written.lock().unwrap()["content"], "saved text\n");
    assert!(
        place.read("README.md").contains("needle"),
        "the agent leaves the write to the client"
    );
    agent.answer_with(Box::new(|_, _| Err("disk on fire".to_owned())));
    let said = agent.prompt(&session, "/read README.md").await.text();
    assert!(said.contains("disk on fire"), "{said}");
}

#[tokio::test]
async fn commands_run_in_the_terminal_of_a_client_with_that_capability() {
    let place = Place::new();
    let mut agent = place.start();
    agent.initialize(json!({"terminal": true})).await;
    let session = agent.new_session(&place.project).await;
    agent.answer_with(Box::new(|method, _| {
        Ok(match method {
            "terminal/create" => json!({"terminalId": "t1"}),
            "terminal/wait_for_exit" => json!({"exitCode": 0}),
            "terminal/output" => json!({"output": "from the terminal", "truncated": false}),
            "session/request_permission" => {
                json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}})
            }
            _ => json!({}),
        })
    }));
    let reply = agent.prompt(&session, "/run make it so").await;
    let shown =
        |update: &&Value| update["content"][0] == json!({"type": "terminal", "terminalId": "t1"});
    assert!(reply.updates.iter().any(|update| shown(&update)));
    assert_eq!(
        reply.of_kind("tool_call_update").last().unwrap()["rawOutput"],
        "from the terminal"
    );
    let methods: Vec<_> = agent
        .asked
        .iter()
        .map(|(method, _)| method.as_str())
        .collect();
    assert_eq!(
        methods,
        [
            "session/request_permission",
            "terminal/create",
            "terminal/wait_for_exit",
            "terminal/output",
            "terminal/release"
        ]
    );
    assert_eq!(agent.asked[1].1["args"], json!(["-c", "make it so"]));
    assert_eq!(agent.asked[1].1["cwd"], json!(place.project));

    // A cancel while the command runs kills and releases the terminal.
    agent.asked.clear();
    agent.answer_with(Box::new(|method, _| {
        Ok(match method {
            "terminal/create" => json!({"terminalId": "t2"}),
            "terminal/wait_for_exit" => Value::Null,
            "session/request_permission" => {
                json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}})
            }
            _ => json!({}),
        })
    }));
    let id = agent
        .send("session/prompt", prompt(&session, "/run sleep 600"))
        .await;
    while agent.message().await["method"] != "terminal/wait_for_exit" {}
    agent
        .notify("session/cancel", json!({"sessionId": session}))
        .await;
    assert_eq!(agent.answer(id).await.result["stopReason"], "cancelled");
    agent.load(&session, &place.project).await;
    let methods: Vec<_> = agent
        .asked
        .iter()
        .map(|(method, _)| method.as_str())
        .collect();
    assert!(
        methods.ends_with(&["terminal/kill", "terminal/release"]),
        "{methods:?}"
    );
}
