//! The number of values in a line of JSON, without parsing it.

/// Estimated number of JSON values in a line.
pub(super) fn line_values(line: &str) -> usize {
    let marks = |text: &[u8]| {
        let mark = |byte: &&u8| matches!(byte, b',' | b':' | b'[' | b'{');
        text.iter().filter(mark).count()
    };
    let (mut rest, mut count) = (line.as_bytes(), 0);
    while let Some(at) = memchr::memchr(b'"', rest) {
        count += marks(&rest[..at]);
        rest = after_string(&rest[at + 1..]);
    }
    count + marks(rest)
}

/// Returns the part after the closing quote; `rest` begins inside a JSON string.
fn after_string(mut rest: &[u8]) -> &[u8] {
    while let Some(at) = memchr::memchr2(b'"', b'\\', rest) {
        let escapes = rest[at] == b'\\';
        rest = rest
            .get(at + 1 + usize::from(escapes)..)
            .unwrap_or_default();
        if !escapes {
            return rest;
        }
    }
    &[]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_values_counts_a_string_as_one_value() {
        for (line, values) in [
            ("", 0),
            ("7", 0),
            ("[1,2,3]", 3),
            (r#"{"a":{"b":[]}}"#, 5),
            (r#"{"a":"[1,2,3]"}"#, 2),
            (r#"["\",\"", "\\",1]"#, 3),
            (r#"["cut off \"#, 1),
        ] {
            assert_eq!(line_values(line), values, "{line}");
        }
    }
}
