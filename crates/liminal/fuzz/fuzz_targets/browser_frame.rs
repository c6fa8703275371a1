//! Parses any text as a frame of the browser API: the result is a request or a short reason for its rejection.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../src/browser/frame.rs"]
mod frame;
#[path = "../../src/strict_json.rs"]
mod strict_json;

fuzz_target!(|bytes: &[u8]| {
    // The WebSocket rejects text frames that are not UTF-8.
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    match frame::parse(text) {
        Ok(frame) => {
            let id = frame.request_id.unwrap_or_default();
            assert!(id.chars().count() <= 128);
            // Both parsers must read the same request id.
            let value: serde_json::Value = serde_json::from_str(text).expect("it was JSON");
            assert!(value.is_object());
            assert_eq!(value["requestId"].as_str().unwrap_or_default(), id);
        }
        Err(invalid) => {
            assert!(invalid.message.len() < 1000, "the input came back");
            assert!(invalid.request_id.is_none_or(|id| id.chars().count() <= 128));
        }
    }
});
