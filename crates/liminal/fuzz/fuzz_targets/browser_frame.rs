//! Any text as a frame from a browser: a request, or a short reason why not.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../src/browser/frame.rs"]
mod frame;
#[path = "../../src/strict_json.rs"]
mod strict_json;

fuzz_target!(|bytes: &[u8]| {
    // Others do not come through a WebSocket.
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    match frame::parse(text) {
        Ok(frame) => {
            let id = frame.request_id.unwrap_or_default();
            assert!(id.chars().count() <= 128);
            // Two readers must not differ about what was said.
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
