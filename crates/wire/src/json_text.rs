//! JSON kept as text. It is only passed on, and a parsed value takes many times the memory.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// A JSON value as text. Clones share it.
#[derive(Debug, Clone)]
pub struct JsonText(Arc<RawValue>);

impl JsonText {
    /// The text.
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// Returns the string if the JSON is a string.
    pub fn as_text(&self) -> Option<String> {
        // Most values are not strings, so they are not parsed.
        let text = self.get().starts_with('"');
        text.then(|| serde_json::from_str(self.get()).ok())?
    }
}

impl From<&Value> for JsonText {
    fn from(value: &Value) -> Self {
        match serde_json::value::to_raw_value(value) {
            Ok(text) => Self(text.into()),
            Err(_) => unreachable!("every key of a `Value` is a string"),
        }
    }
}

impl PartialEq for JsonText {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Serialize for JsonText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for JsonText {
    /// Goes through `Value`, because serde no longer has the raw text inside a tagged enum.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(|value| Self::from(&value))
    }
}
