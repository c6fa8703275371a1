//! Parameters of the gateway's methods. What they must look like is said once, in their types.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use serde_json::{Map, Value};

use crate::{Position, QuestionAction};

/// A text with a rule, which the schema says too.
macro_rules! text {
    ($(#[$about:meta])* $name:ident, $schema:tt, $read:expr, $else:literal) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $name(pub String);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                let read: fn(String) -> Option<String> = $read;
                read(text).map(Self).ok_or_else(|| D::Error::custom($else))
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    };
}

text!(
    /// The key of a session.
    SessionKey,
    {"type": "string", "format": "uuid"},
    uuid,
    "sessionKey must be a UUID"
);
text!(
    /// A run: one message and everything that answers it.
    RunId,
    {"type": "string", "format": "uuid"},
    uuid,
    "runId must be a UUID"
);
text!(
    /// What a person would say.
    MessageText,
    {"type": "string", "minLength": 1, "maxLength": 32000},
    |text| {
        let fits = (1..=32_000).contains(&text.chars().count()) && !text.trim().is_empty();
        fits.then_some(text)
    },
    "message must have 1 to 32000 characters, and not only blanks"
);
text!(
    /// The same key is the same message, however often it is sent.
    IdempotencyKey,
    {"type": "string", "minLength": 1, "maxLength": 128},
    |text| (1..=128).contains(&text.chars().count()).then_some(text),
    "idempotencyKey must have 1 to 128 characters"
);
text!(
    /// An absolute path.
    CwdParam,
    {"type": "string", "pattern": "^/"},
    |text| (text.starts_with('/') && !text.contains('\0')).then_some(text),
    "cwd must be an absolute path"
);

/// Spelled as we spell them: capitals are the same UUID.
fn uuid(text: String) -> Option<String> {
    let bytes = text.as_bytes();
    let is_uuid = bytes.len() == 36
        && bytes.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        });
    is_uuid.then(|| text.to_ascii_lowercase())
}

/// How many messages, 1 to 500.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit(pub u32);

impl Default for Limit {
    fn default() -> Self {
        Self(100)
    }
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wrong = || D::Error::custom("limit must be a whole number from 1 to 500");
        let number = serde_json::Value::deserialize(deserializer)?;
        let number = number.as_u64().ok_or_else(wrong)?;
        match u32::try_from(number) {
            Ok(number @ 1..=500) => Ok(Self(number)),
            _ => Err(wrong()),
        }
    }
}

impl JsonSchema for Limit {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Limit".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "integer", "minimum": 1, "maximum": 500, "default": 100})
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoParams {}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateParams {
    /// A persona of `AGENTS.md`, or an agent of `agents.list`. Without it, `assistant`.
    #[serde(default)]
    pub agent_id: Option<String>,
    /// Where it works. A folder that is no project yet becomes one.
    #[serde(default)]
    pub cwd: Option<CwdParam>,
    /// The project it works in, instead of `cwd`. Without either, a scratch folder.
    #[serde(default)]
    pub project_id: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KeyParams {
    pub session_key: SessionKey,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListParams {
    /// Only the archived ones, or only the others. Without it, the others.
    #[serde(default)]
    pub archived: bool,
    /// Only those of this project.
    #[serde(default)]
    pub project_id: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SendParams {
    pub session_key: SessionKey,
    pub message: MessageText,
    #[serde(default)]
    pub idempotency_key: Option<IdempotencyKey>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HistoryParams {
    pub session_key: SessionKey,
    #[serde(default)]
    pub limit: Limit,
    /// The `cursor` of the page after the wanted one.
    #[serde(default)]
    pub before: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MessageParams {
    pub session_key: SessionKey,
    /// The `number` of a message that was cut.
    pub number: u64,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AbortParams {
    pub run_id: RunId,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SubscribeParams {
    pub session_key: SessionKey,
    /// Where an earlier connection left off.
    #[serde(default)]
    pub after: Option<Position>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RenameParams {
    pub session_key: SessionKey,
    pub label: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct QueueParams {
    pub session_key: SessionKey,
    /// A waiting message to take back.
    #[serde(default)]
    pub remove: Option<String>,
    /// Sends the messages of a paused queue, one turn after the other.
    #[serde(default)]
    pub resume: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AnswerParams {
    pub session_key: SessionKey,
    pub permission_id: String,
    pub option_id: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AnswerQuestionParams {
    pub session_key: SessionKey,
    pub question_id: String,
    pub action: QuestionAction,
    /// To accept a form: what was filled in, by the names of its fields.
    #[serde(default)]
    pub content: Option<Map<String, Value>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PathParams {
    pub path: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProjectParams {
    pub project_id: String,
}
