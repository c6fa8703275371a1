//! Parameters of the gateway's methods. Each type holds both its validation and its schema.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use serde_json::{Map, Value};

use crate::{Position, QuestionAction};

/// Defines a string type with its validation and the matching JSON schema.
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
    /// Key of a session.
    SessionKey,
    {"type": "string", "format": "uuid"},
    uuid,
    "sessionKey must be a UUID"
);
text!(
    /// Id of a run, which is one message and the turn that answers it.
    RunId,
    {"type": "string", "format": "uuid"},
    uuid,
    "runId must be a UUID"
);
text!(
    /// Text of a message.
    MessageText,
    {"type": "string", "minLength": 1, "maxLength": 32000},
    |text| {
        let fits = (1..=32_000).contains(&text.chars().count()) && !text.trim().is_empty();
        fits.then_some(text)
    },
    "message must have 1 to 32000 characters, and not only blanks"
);
text!(
    /// Requests with the same key send the message only once.
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

/// Returns the UUID in lower case, or `None` if the text is not a UUID.
fn uuid(text: String) -> Option<String> {
    let bytes = text.as_bytes();
    let is_uuid = bytes.len() == 36
        && bytes.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        });
    is_uuid.then(|| text.to_ascii_lowercase())
}

/// Maximum number of messages, 1 to 500.
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

/// Parameters of a method that needs none.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoParams {}

/// Parameters of `sessions.create`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CleanParams {
    /// Only count what would be removed.
    #[serde(default)]
    pub dry_run: bool,
}

/// Parameters of `browsers.end`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BrowserParams {
    /// From `browsers.list`.
    pub browser_id: String,
}

/// Parameters of `sessions.create`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateParams {
    /// A persona of `AGENTS.md` or an agent id from `agents.list`. Default: `assistant`.
    #[serde(default)]
    pub agent_id: Option<String>,
    /// Working directory. A folder that is not a project yet becomes one.
    #[serde(default)]
    pub cwd: Option<CwdParam>,
    /// Project to work in, instead of `cwd`. Default: a scratch folder.
    #[serde(default)]
    pub project_id: Option<String>,
}

/// Parameters of a method about one session.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KeyParams {
    pub session_key: SessionKey,
}

/// Parameters of `sessions.list`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListParams {
    /// Whether to list the archived sessions instead of the others. Default: `false`.
    #[serde(default)]
    pub archived: bool,
    /// List only the sessions of this project.
    #[serde(default)]
    pub project_id: Option<String>,
}

/// Parameters of `chat.send`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SendParams {
    pub session_key: SessionKey,
    pub message: MessageText,
    #[serde(default)]
    pub idempotency_key: Option<IdempotencyKey>,
}

/// Parameters of `chat.history`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HistoryParams {
    pub session_key: SessionKey,
    #[serde(default)]
    pub limit: Limit,
    /// `cursor` of an earlier response, to get the messages before it.
    #[serde(default)]
    pub before: Option<u64>,
}

/// Parameters of `chat.message`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MessageParams {
    pub session_key: SessionKey,
    /// `number` of the message, usually of one that was `cut`.
    pub number: u64,
}

/// Parameters of `chat.abort`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AbortParams {
    pub run_id: RunId,
}

/// Parameters of `chat.subscribe`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SubscribeParams {
    pub session_key: SessionKey,
    /// Position of an earlier connection, to receive the events missed since then.
    #[serde(default)]
    pub after: Option<Position>,
}

/// Parameters of a new label for a session.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RenameParams {
    pub session_key: SessionKey,
    pub label: String,
}

/// Parameters that read or change the queue of a session.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct QueueParams {
    pub session_key: SessionKey,
    /// `queueId` of a queued message to remove.
    #[serde(default)]
    pub remove: Option<String>,
    /// Sends the messages of a paused queue, one turn after the other.
    #[serde(default)]
    pub resume: bool,
}

/// The answer to a permission request.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AnswerParams {
    pub session_key: SessionKey,
    pub permission_id: String,
    pub option_id: String,
}

/// The answer to an elicitation.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AnswerQuestionParams {
    pub session_key: SessionKey,
    pub question_id: String,
    pub action: QuestionAction,
    /// Form values by field name, for `accept`.
    #[serde(default)]
    pub content: Option<Map<String, Value>>,
}

/// The folder of a new project.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PathParams {
    pub path: String,
}

/// Parameters of a method about one project.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProjectParams {
    pub project_id: String,
}
