//! ACP's JSON schema, generated from the types of the official crate.

use std::collections::HashMap;
use std::sync::OnceLock;

use agent_client_protocol_schema::v1 as acp;
use jsonschema::Validator;
use schemars::{JsonSchema, schema_for};
use serde_json::Value;

pub(crate) struct Schema {
    /// Schema of the parameters of each method that the agent calls.
    calls: HashMap<&'static str, Validator>,
    /// Schema of the agent's result, by the method of the request.
    answers: HashMap<&'static str, Validator>,
    error: Validator,
}

fn validator<T: JsonSchema>() -> Validator {
    let schema = serde_json::to_value(schema_for!(T)).unwrap();
    jsonschema::validator_for(&schema).unwrap()
}

impl Schema {
    pub(crate) fn shared() -> &'static Self {
        static SCHEMA: OnceLock<Schema> = OnceLock::new();
        SCHEMA.get_or_init(|| Self {
            calls: HashMap::from([
                ("session/update", validator::<acp::SessionNotification>()),
                (
                    "session/request_permission",
                    validator::<acp::RequestPermissionRequest>(),
                ),
                ("fs/read_text_file", validator::<acp::ReadTextFileRequest>()),
                (
                    "fs/write_text_file",
                    validator::<acp::WriteTextFileRequest>(),
                ),
                ("terminal/create", validator::<acp::CreateTerminalRequest>()),
                ("terminal/output", validator::<acp::TerminalOutputRequest>()),
                ("terminal/kill", validator::<acp::KillTerminalRequest>()),
                (
                    "terminal/release",
                    validator::<acp::ReleaseTerminalRequest>(),
                ),
                (
                    "terminal/wait_for_exit",
                    validator::<acp::WaitForTerminalExitRequest>(),
                ),
            ]),
            answers: HashMap::from([
                ("initialize", validator::<acp::InitializeResponse>()),
                ("session/new", validator::<acp::NewSessionResponse>()),
                ("session/load", validator::<acp::LoadSessionResponse>()),
                ("session/resume", validator::<acp::ResumeSessionResponse>()),
                ("session/list", validator::<acp::ListSessionsResponse>()),
                ("session/close", validator::<acp::CloseSessionResponse>()),
                ("session/prompt", validator::<acp::PromptResponse>()),
                (
                    "session/set_mode",
                    validator::<acp::SetSessionModeResponse>(),
                ),
                (
                    "session/set_config_option",
                    validator::<acp::SetSessionConfigOptionResponse>(),
                ),
            ]),
            error: validator::<acp::Error>(),
        })
    }

    pub(crate) fn check_call(&self, method: &str, message: &Value) {
        let known = self.calls.get(method);
        let known = known.unwrap_or_else(|| panic!("{method} is not a client method"));
        fits(known, &message["params"], message);
        assert_eq!(message["id"].is_null(), method == "session/update");
        envelope(message, &["jsonrpc", "id", "method", "params"]);
    }

    pub(crate) fn check_answer(&self, method: Option<&str>, message: &Value) {
        envelope(message, &["jsonrpc", "id", "result", "error"]);
        if !message["error"].is_null() {
            assert!(message.get("result").is_none(), "{message}");
            return fits(&self.error, &message["error"], message);
        }
        match method {
            Some("session/cancel") => {}
            Some(method) => {
                let known = self.answers.get(method);
                let known =
                    known.unwrap_or_else(|| panic!("{method} has no result schema: {message}"));
                fits(known, &message["result"], message);
            }
            None => panic!("a response without a pending request: {message}"),
        }
    }
}

fn envelope(message: &Value, fields: &[&str]) {
    assert_eq!(message["jsonrpc"], "2.0", "{message}");
    let keys = message.as_object().unwrap().keys();
    for key in keys {
        assert!(fields.contains(&key.as_str()), "{key} in {message}");
    }
}

fn fits(schema: &Validator, value: &Value, message: &Value) {
    let wrong: Vec<_> = schema
        .iter_errors(value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(wrong.is_empty(), "{wrong:?} in {message}");
}

#[test]
fn schema_rejects_invalid_messages() {
    let schema = Schema::shared();
    let wrong = serde_json::json!({"sessionId": "x", "update": {"sessionUpdate": "plan", "entries": [{"content": 7}]}});
    assert!(!schema.calls["session/update"].is_valid(&wrong));
    let wrong = serde_json::json!({"stopReason": "tired"});
    assert!(!schema.answers["session/prompt"].is_valid(&wrong));
}
