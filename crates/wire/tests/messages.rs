//! The shape of what crosses the browser's socket, as JSON.

use serde_json::json;
use wire::{ClientFrame, ClientMessage, ErrorCode, ServerMessage};

fn parse(text: &str) -> Result<ClientFrame, serde_json::Error> {
    serde_json::from_str(text)
}

#[test]
fn a_request_id_travels_beside_any_message() {
    let frame = parse(r#"{"type":"project:add","path":"/a","requestId":"r1"}"#).unwrap();
    assert_eq!(frame.request_id.as_deref(), Some("r1"));
    assert_eq!(
        frame.message,
        ClientMessage::ProjectAdd { path: "/a".into() }
    );
}

#[test]
fn a_request_id_may_be_left_out() {
    let frame = parse(r#"{"type":"project:list"}"#).unwrap();
    assert_eq!(
        frame,
        ClientFrame {
            request_id: None,
            message: ClientMessage::ProjectList {}
        }
    );
}

#[test]
fn unknown_types_and_fields_are_refused() {
    for text in [
        r#"{"type":"project:explode"}"#,
        r#"{"type":"project:list","extra":1}"#,
        r#"{"type":"project:add"}"#,
        r#"{"type":"project:add","path":7}"#,
        r#"{"path":"/a"}"#,
        r#"[]"#,
    ] {
        assert!(parse(text).is_err(), "{text}");
    }
}

#[test]
fn an_error_without_a_request_leaves_the_id_out() {
    let error = ServerMessage::Error {
        session_id: None,
        code: ErrorCode::ProjectPathInvalid,
        message: "Directory does not exist".into(),
        request_id: None,
    };
    assert_eq!(
        serde_json::to_value(error).unwrap(),
        json!({"type":"error","code":"PROJECT_PATH_INVALID","message":"Directory does not exist"})
    );
}
