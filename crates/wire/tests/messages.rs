//! JSON format of the browser API's messages.

use serde_json::json;
use wire::{ClientFrame, ClientMessage, ErrorCode, ServerMessage};

fn parse(text: &str) -> Result<ClientFrame, serde_json::Error> {
    serde_json::from_str(text)
}

#[test]
fn request_id_is_parsed_beside_the_message() {
    let frame = parse(r#"{"type":"project:add","path":"/a","requestId":"r1"}"#).unwrap();
    assert_eq!(frame.request_id.as_deref(), Some("r1"));
    assert_eq!(
        frame.message,
        ClientMessage::ProjectAdd { path: "/a".into() }
    );
}

#[test]
fn request_id_is_optional() {
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
fn unknown_types_and_invalid_fields_are_rejected() {
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
fn error_without_request_id_omits_the_field() {
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
