//! Strict parsing of untrusted JSON: bounded depth, and no duplicate key in any object.
//!
//! Parsers disagree about which of two equal keys counts, which can be used to bypass a check. So a text with a
//! duplicate key is rejected before it is deserialized.

use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeOwned, DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};

const DEPTH_MAX: usize = 32;

pub(crate) fn from_str<T: DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    Check {
        depth_left: DEPTH_MAX,
    }
    .deserialize(&mut deserializer)?;
    deserializer.end()?;
    serde_json::from_str(text)
}

#[derive(Clone, Copy)]
struct Check {
    depth_left: usize,
}

impl Check {
    fn deeper<E: Error>(self) -> Result<Self, E> {
        let depth_left = self.depth_left.checked_sub(1);
        depth_left
            .map(|depth_left| Self { depth_left })
            .ok_or_else(|| E::custom("nested too deeply"))
    }
}

impl<'de> DeserializeSeed<'de> for Check {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Check {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let deeper = self.deeper()?;
        while items.next_element_seed(deeper)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let deeper = self.deeper()?;
        let mut seen = HashSet::new();
        while let Some(key) = entries.next_key::<String>()? {
            if seen.contains(&key) {
                return Err(A::Error::custom(format_args!("duplicate key `{key}`")));
            }
            seen.insert(key);
            entries.next_value_seed(deeper)?;
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn read(text: &str) -> Result<Value, String> {
        from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn duplicate_key_is_rejected_at_every_level() {
        assert!(read(r#"{"a":1,"b":{"a":1},"c":[{"a":1},{"a":1}]}"#).is_ok());
        assert!(
            read(r#"{"a":1,"a":1}"#)
                .unwrap_err()
                .contains("duplicate key `a`")
        );
        assert!(
            read(r#"{"x":[{"b":{"a":1,"\u0061":1}}]}"#)
                .unwrap_err()
                .contains("duplicate key")
        );
    }

    #[test]
    fn json_nested_deeper_than_the_maximum_is_rejected() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(read(&nested(DEPTH_MAX)).is_ok());
        assert!(
            read(&nested(DEPTH_MAX + 1))
                .unwrap_err()
                .contains("nested too deeply")
        );
        assert!(read(&"[".repeat(1_000_000)).is_err());
        assert!(read(&r#"{"a":"#.repeat(200_000)).is_err());
    }

    #[test]
    fn invalid_json_is_rejected() {
        for text in [
            "",
            "{",
            "nul",
            "{} {}",
            "{\"a\":01}",
            "'a'",
            "\u{feff}{}",
            "{\"a\":\"\\ud800\"}",
            "[1,]",
            "NaN",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
