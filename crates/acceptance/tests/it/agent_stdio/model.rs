//! Conversations through a model, against a stand-in server for the providers' protocols.

use serde_json::{Value, json};

use crate::agent_stdio::client::{Place, permitting, prompt};
use crate::agent_stdio::model_server::{ModelServer, Say};

const PROVIDERS: [&str; 2] = ["anthropic", "openai"];

/// A place whose agent uses the stand-in server.
fn place(provider: &str, server: &ModelServer) -> Place {
    let place = Place::new().env("LIMINAL_AGENT_MODEL", format!("{provider}/stand-in"));
    match provider {
        "anthropic" => place
            .env("ANTHROPIC_BASE_URL", &server.url)
            .env("ANTHROPIC_API_KEY", "key-for-tests"),
        "openai" => place
            .env("OPENAI_BASE_URL", format!("{}/v1", server.url))
            .env("OPENAI_API_KEY", "key-for-tests"),
        _ => place.env("LIMINAL_AGENT_BASE_URL", format!("{}/v1", server.url)),
    }
}

/// Role and text of each message in a request, for either protocol.
fn request_messages(body: &Value) -> Vec<(String, String)> {
    let text = |content: &Value| match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part["text"].as_str().or(part["content"].as_str()))
            .collect(),
        _ => String::new(),
    };
    let messages = body["messages"].as_array().unwrap().iter();
    messages
        .filter(|message| message["role"] != "system")
        .map(|message| {
            let role = message["role"].as_str().unwrap().to_owned();
            (role, text(&message["content"]))
        })
        .collect()
}

fn pair(role: &str, text: &str) -> (String, String) {
    (role.to_owned(), text.to_owned())
}

#[tokio::test]
async fn answer_streams_with_usage_and_uses_the_key_from_the_environment() {
    for provider in PROVIDERS {
        let server = ModelServer::start(vec![Say::Text(&["Hel", "lo ", "there."])]).await;
        let place = place(provider, &server);
        let mut agent = place.start();
        let capabilities = agent.initialize(json!({})).await;
        assert_eq!(
            capabilities["agentCapabilities"]["promptCapabilities"]["image"],
            true
        );
        let session = agent.new_session(&place.project).await;
        let reply = agent.prompt(&session, "Hello!").await;
        assert_eq!(reply.result["stopReason"], "end_turn", "{}", reply.error);
        assert_eq!(reply.text(), "Hello there.");
        assert_eq!(
            reply.of_kind("agent_message_chunk").len(),
            3,
            "one chunk per chunk of the model"
        );
        let usage = reply.of_kind("usage_update")[0];
        assert_eq!(usage["used"], 100, "{provider}");
        assert!(usage["size"].as_u64().unwrap() >= 32_000);
        let asked = &server.asked()[0];
        assert!(asked.headers.contains("key-for-tests"));
        assert!(asked.body["model"] == "stand-in" && asked.body["stream"] == true);
        assert_eq!(asked.body["tools"].as_array().unwrap().len(), 6);
        let expected = if provider == "anthropic" {
            "/v1/messages"
        } else {
            "/v1/chat/completions"
        };
        assert_eq!(asked.path, expected);
    }
}

#[tokio::test]
async fn local_model_needs_an_address_and_no_key() {
    let server = ModelServer::start(vec![Say::Text(&["local"])]).await;
    let place = place("openai-compatible", &server);
    let mut agent = place.start_initialized().await;
    let session = agent.new_session(&place.project).await;
    assert_eq!(agent.prompt(&session, "Hi").await.text(), "local");
}

#[tokio::test]
async fn earlier_turns_are_context_for_the_model_also_after_restart() {
    for provider in PROVIDERS {
        let script = vec![
            Say::Text(&["Hello ", "Alice!"]),
            Say::Text(&["Alice."]),
            Say::Text(&["Still Alice."]),
        ];
        let server = ModelServer::start(script).await;
        let place = place(provider, &server);
        let mut agent = place.start_initialized().await;
        let session = agent.new_session(&place.project).await;
        agent.prompt(&session, "My name is Alice.").await;
        assert_eq!(
            agent.prompt(&session, "What is my name?").await.text(),
            "Alice."
        );
        let mut expected = vec![
            pair("user", "My name is Alice."),
            pair("assistant", "Hello Alice!"),
            pair("user", "What is my name?"),
        ];
        assert_eq!(
            request_messages(&server.asked()[1].body),
            expected,
            "{provider}"
        );
        agent.close_and_wait().await;

        let mut agent = place.start_initialized().await;
        let replay = agent.load(&session, &place.project).await;
        assert_eq!(
            replay.kinds(),
            ["user_message_chunk", "agent_message_chunk"].repeat(2)
        );
        agent.prompt(&session, "And now?").await;
        expected.extend([pair("assistant", "Alice."), pair("user", "And now?")]);
        assert_eq!(request_messages(&server.asked()[2].body), expected);
    }
}

#[tokio::test]
async fn model_calls_tools_and_receives_their_results() {
    for provider in PROVIDERS {
        let script = vec![
            Say::Tools(
                "Let me look. ",
                vec![
                    ("read_file", json!({"path": "README.md"})),
                    ("search", json!({"query": "needle"})),
                ],
            ),
            Say::Tools(
                "",
                vec![(
                    "update_plan",
                    json!({"entries": [{"content": "Replace it", "status": "in_progress"}]}),
                )],
            ),
            Say::Tools(
                "",
                vec![(
                    "edit_file",
                    json!({"path": "README.md", "old_text": "needle", "new_text": "pin"}),
                )],
            ),
            Say::Tools(
                "",
                vec![("run_command", json!({"command": "cat README.md"}))],
            ),
            Say::Text(&["Done."]),
        ];
        let server = ModelServer::start(script).await;
        let place = place(provider, &server);
        let mut agent = place.start_initialized().await;
        let session = agent.new_session(&place.project).await;
        let reply = agent.prompt(&session, "Replace the needle by a pin").await;
        assert_eq!(reply.result["stopReason"], "end_turn", "{}", reply.error);
        assert_eq!(reply.text(), "Let me look. Done.");
        assert_eq!(place.read("README.md"), "# A project\nwith a pin in it\n");
        let names: Vec<_> = reply
            .of_kind("tool_call")
            .iter()
            .map(|call| call["name"].clone())
            .collect();
        assert_eq!(names, ["read_file", "search", "edit_file", "run_command"]);
        assert_eq!(
            reply.of_kind("plan")[0]["entries"][0]["content"],
            "Replace it"
        );
        assert_eq!(
            agent.asked.len(),
            2,
            "permission is requested before a write and before a command"
        );
        let last = server.asked()[4].body.to_string();
        assert!(
            last.contains("with a needle in it")
                && last.contains("README.md:2:")
                && last.contains("with a pin in it")
        );
        for asked in server.asked() {
            assert_every_call_has_its_result(&asked.body);
        }
    }
}

/// Providers reject a conversation in which a tool call has no result or a result has no call.
fn assert_every_call_has_its_result(body: &Value) {
    let messages = body["messages"].as_array().unwrap();
    let mut open: Vec<String> = Vec::new();
    for message in messages {
        let parts = message["content"].as_array().cloned().unwrap_or_default();
        for part in &parts {
            if part["type"] == "tool_use" {
                assert!(part["input"].is_object());
                open.push(part["id"].to_string());
            }
            if part["type"] == "tool_result" {
                assert_eq!(open.pop(), Some(part["tool_use_id"].to_string()));
            }
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            open.push(call["id"].to_string());
        }
        if message["role"] == "tool" {
            assert_eq!(open.pop(), Some(message["tool_call_id"].to_string()));
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[tokio::test]
async fn invalid_tool_calls_are_not_executed_and_the_model_gets_the_reason() {
    let script = vec![
        Say::Tools(
            "",
            vec![
                ("read_file", json!({"path": "../data/token"})),
                ("read_file", json!({"file": "README.md"})),
                ("delete_everything", json!({})),
                ("run_command", json!({"command": "touch ran"})),
            ],
        ),
        Say::Text(&["Sorry."]),
    ];
    let server = ModelServer::start(script).await;
    let place = place("anthropic", &server);
    let mut agent = place.start_initialized().await;
    agent.answer_with(permitting("reject_once"));
    let session = agent.new_session(&place.project).await;
    let reply = agent.prompt(&session, "go").await;
    assert_eq!(reply.text(), "Sorry.");
    assert!(!place.project.join("ran").exists());
    let ended = reply
        .of_kind("tool_call_update")
        .into_iter()
        .filter(|update| update["status"] == "failed");
    assert_eq!(ended.count(), 4);
    let last = server.asked()[1].body.to_string();
    for reason in [
        "outside of this project",
        "Invalid input",
        "There is no tool",
        "The user rejected this",
    ] {
        assert!(last.contains(reason), "{reason}");
    }
}

#[tokio::test]
async fn thoughts_of_the_model_are_sent_and_replayed_as_thoughts() {
    for provider in PROVIDERS {
        let server = ModelServer::start(vec![Say::Thought("hm, hm", "So.")]).await;
        let place = place(provider, &server);
        let mut agent = place.start_initialized().await;
        let session = agent.new_session(&place.project).await;
        let reply = agent.prompt(&session, "think").await;
        assert_eq!(
            (reply.thoughts().as_str(), reply.text().as_str()),
            ("hm, hm", "So.")
        );
        let replay = agent.load(&session, &place.project).await;
        assert_eq!(replay.thoughts(), "hm, hm");
    }
}

#[tokio::test]
async fn wrong_key_error_names_the_variable_and_not_the_key() {
    for provider in PROVIDERS {
        let server = ModelServer::start(vec![Say::Status(401, None, "invalid x-api-key")]).await;
        let place = place(provider, &server);
        let mut agent = place.start_initialized().await;
        let session = agent.new_session(&place.project).await;
        let error = agent.prompt(&session, "hi").await.error;
        assert_eq!(error["code"], -32603);
        let message = error["message"].as_str().unwrap();
        let variable = format!("Check {}_API_KEY.", provider.to_uppercase());
        assert!(
            message.contains(&variable) && message.contains("invalid x-api-key"),
            "{message}"
        );
        assert_eq!(error["data"]["status"], 401);
        assert!(!error.to_string().contains("key-for-tests"));
        assert_eq!(server.asked().len(), 1, "a retry cannot help");
    }
}

#[tokio::test]
async fn rate_limited_request_is_retried_after_retry_after() {
    for provider in PROVIDERS {
        let script = vec![
            Say::Status(429, Some("0"), "slow down"),
            Say::Text(&["Better now."]),
        ];
        let server = ModelServer::start(script).await;
        let place = place(provider, &server);
        let mut agent = place.start_initialized().await;
        let session = agent.new_session(&place.project).await;
        let reply = agent.prompt(&session, "hi").await;
        assert_eq!(reply.text(), "Better now.");
        assert!(
            reply.thoughts().contains("too many requests"),
            "the retry is reported as a thought"
        );
    }
}

#[tokio::test]
async fn long_retry_after_is_reported_instead_of_awaited() {
    let server = ModelServer::start(vec![Say::Status(429, Some("3600"), "slow down")]).await;
    let place = place("anthropic", &server);
    let mut agent = place.start_initialized().await;
    let session = agent.new_session(&place.project).await;
    let error = agent.prompt(&session, "hi").await.error;
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("asks to wait 3600 s"),
        "{error}"
    );
    assert_eq!(error["data"]["retryAfterSeconds"], 3600);
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn provider_error_is_reported_after_three_attempts() {
    for provider in PROVIDERS {
        let script = vec![Say::Status(503, Some("0"), "overloaded"); 3];
        let server = ModelServer::start(script).await;
        let place = place(provider, &server);
        let mut agent = place.start_initialized().await;
        let session = agent.new_session(&place.project).await;
        let error = agent.prompt(&session, "hi").await.error;
        let message = error["message"].as_str().unwrap();
        assert!(
            message.contains("status 503") && message.contains("overloaded"),
            "{message}"
        );
        assert_eq!(server.asked().len(), 3);
    }
}

#[tokio::test]
async fn truncated_answer_is_kept_and_reported_as_cut_off() {
    for provider in PROVIDERS {
        let server = ModelServer::start(vec![Say::Cut("Half of"), Say::Text(&["Whole."])]).await;
        let place = place(provider, &server);
        let mut agent = place.start_initialized().await;
        let session = agent.new_session(&place.project).await;
        let reply = agent.prompt(&session, "hi").await;
        assert!(
            reply.error["message"]
                .as_str()
                .unwrap()
                .contains("cut off in the middle"),
            "{}",
            reply.error
        );
        assert_eq!(reply.text(), "Half of");
        assert_eq!(
            server.asked().len(),
            1,
            "not retried, because part of the answer arrived"
        );
        assert_eq!(agent.prompt(&session, "go on").await.text(), "Whole.");
        let expected = [
            pair("user", "hi"),
            pair("assistant", "Half of"),
            pair("user", "go on"),
        ];
        assert_eq!(request_messages(&server.asked()[1].body), expected);
    }
}

#[tokio::test]
async fn unreachable_provider_is_reported() {
    let place = Place::new()
        .env("LIMINAL_AGENT_MODEL", "openai-compatible/x")
        // Nothing listens on port 1.
        .env("LIMINAL_AGENT_BASE_URL", "http://127.0.0.1:1/v1");
    let mut agent = place.start_initialized().await;
    let session = agent.new_session(&place.project).await;
    let id = agent.send("session/prompt", prompt(&session, "hi")).await;
    let reply = agent.answer(id).await;
    let message = reply.error["message"].as_str().unwrap();
    assert!(
        message.contains("127.0.0.1:1") && message.contains("cannot be reached"),
        "{message}"
    );
}

#[tokio::test]
async fn cancel_during_an_answer_keeps_the_received_text() {
    for provider in PROVIDERS {
        let server = ModelServer::start(vec![Say::Hang("So far"), Say::Text(&["On."])]).await;
        let place = place(provider, &server);
        let mut agent = place.start_initialized().await;
        let session = agent.new_session(&place.project).await;
        let id = agent.send("session/prompt", prompt(&session, "hi")).await;
        agent
            .until(|update| update["sessionUpdate"] == "agent_message_chunk")
            .await;
        agent
            .notify("session/cancel", json!({"sessionId": session}))
            .await;
        assert_eq!(agent.answer(id).await.result["stopReason"], "cancelled");
        agent.prompt(&session, "and?").await;
        let expected = [
            pair("user", "hi"),
            pair("assistant", "So far"),
            pair("user", "and?"),
        ];
        assert_eq!(request_messages(&server.asked()[1].body), expected);
    }
}

#[tokio::test]
async fn chosen_model_and_persona_survive_a_restart() {
    let server = ModelServer::start(vec![
        Say::Text(&["a"]),
        Say::Text(&["b"]),
        Say::Text(&["c"]),
    ])
    .await;
    let place = Place::new()
        .env("LIMINAL_AGENT_MODEL", "anthropic/first, anthropic/second")
        .env("ANTHROPIC_BASE_URL", &server.url)
        .env("ANTHROPIC_API_KEY", "k");
    std::fs::create_dir_all(place.data.join("workspace")).unwrap();
    let personas = "## helper\nDescription: Helps.\nBe kind.\n\n## critic\nModel: anthropic/third\nDescription: Finds faults.\nBe strict.\n";
    std::fs::write(place.data.join("workspace/AGENTS.md"), personas).unwrap();
    let mut agent = place.start_initialized().await;
    let reply = agent
        .call(
            "session/new",
            json!({"cwd": place.project, "mcpServers": []}),
        )
        .await;
    let session = reply.result["sessionId"].as_str().unwrap().to_owned();
    let options = reply.result["configOptions"].as_array().unwrap();
    assert_eq!(options[0]["id"], "model");
    assert_eq!(options[0]["category"], "model");
    assert_eq!(options[0]["currentValue"], "anthropic/first");
    let names: Vec<_> = options[0]["options"]
        .as_array()
        .unwrap()
        .iter()
        .map(|option| option["value"].clone())
        .collect();
    assert_eq!(
        names,
        ["anthropic/first", "anthropic/second", "anthropic/third"]
    );
    agent.prompt(&session, "hi").await;
    let set = |config: &str, value: &str| json!({"sessionId": session, "configId": config, "value": value});
    let reply = agent
        .call("session/set_config_option", set("persona", "critic"))
        .await;
    assert_eq!(
        reply.result["configOptions"][0]["currentValue"], "anthropic/third",
        "a persona sets its model"
    );
    agent.prompt(&session, "hi").await;
    agent
        .call(
            "session/set_config_option",
            set("model", "anthropic/second"),
        )
        .await;
    for wrong in [
        set("model", "anthropic/none"),
        set("persona", "unknown"),
        set("colour", "red"),
    ] {
        assert_eq!(
            agent.call("session/set_config_option", wrong).await.error["code"],
            -32602
        );
    }
    agent.close_and_wait().await;
    let mut agent = place.start_initialized().await;
    agent.load(&session, &place.project).await;
    agent.prompt(&session, "hi").await;
    let asked = server.asked();
    let models: Vec<_> = asked
        .iter()
        .map(|asked| asked.body["model"].clone())
        .collect();
    assert_eq!(models, ["first", "third", "second"]);
    assert!(asked[0].body["system"].to_string().contains("Be kind."));
    assert!(asked[2].body["system"].to_string().contains("Be strict."));
}

#[tokio::test]
async fn command_results_are_part_of_the_models_context() {
    let server = ModelServer::start(vec![Say::Text(&["I saw it."])]).await;
    let place = place("anthropic", &server);
    let mut agent = place.start_initialized().await;
    let session = agent.new_session(&place.project).await;
    agent.prompt(&session, "/read README.md").await;
    assert!(
        server.asked().is_empty(),
        "a command does not call the model"
    );
    agent.prompt(&session, "What did you read?").await;
    let asked = &server.asked()[0].body;
    assert!(asked.to_string().contains("with a needle in it"));
    assert_every_call_has_its_result(asked);
}
