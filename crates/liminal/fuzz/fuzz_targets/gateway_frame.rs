//! Parses any text as a gateway frame: the result is a request or a short error response.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::gateway::{Auth, Problem};

#[path = "../../src/gateway/frame.rs"]
mod frame;
#[path = "../../src/strict_json.rs"]
mod strict_json;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let _ = strict_json::from_str::<Auth>(text);
    match frame::parse(text) {
        Ok(request) => {
            assert!(request.id.is_string() || request.id.is_number());
            assert!(frame::brief(&request.method).chars().count() <= 201);
        }
        Err(answer) => {
            let answer = serde_json::to_value(&*answer).expect("an answer can be sent");
            let code = answer["error"]["code"].as_i64();
            assert!(code == Some(Problem::PARSE.into()) || code == Some(Problem::INVALID_REQUEST.into()));
            assert!(answer.to_string().len() < 3000, "the input came back");
        }
    }
});
