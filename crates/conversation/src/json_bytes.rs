//! The length of a value as JSON, without building the text.

use std::io::{self, Write};

use serde::Serialize;

struct Counted(usize);

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The length of the value as JSON. A value that cannot be serialized counts up to the failure.
pub fn json_bytes(value: &impl Serialize) -> usize {
    let mut counted = Counted(0);
    let _ = serde_json::to_writer(&mut counted, value);
    counted.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_equals_the_length_of_the_serialized_text() {
        let value = serde_json::json!({"a": [1, null, "\u{0}\n€"], "b": {}});
        assert_eq!(json_bytes(&value), value.to_string().len());
    }
}
