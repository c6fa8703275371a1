//! Elicitations: conversion of `elicitation/create` to a form, and of the user's input to the response. Pure.
//!
//! A form with a field that cannot be shown is refused as a whole, because a partial answer would mislead the agent.

use agent_client_protocol_schema::v1 as acp;
use regex::Regex;
use serde_json::{Map, Value, json};
use wire::{Ask, FieldInput, FieldOption, FormField, QuestionOutcome, TextFormat};

use conversation::json_bytes;

/// Limits of one elicitation, far above what a user would fill in.
const REQUEST_BYTES_MAX: usize = 128 * 1024;
const FIELDS_MAX: usize = 64;
const OPTIONS_MAX: usize = 256;
const URL_BYTES_MAX: usize = 4096;
/// Maximum length of one text answer in characters.
const TEXT_CHARS_MAX: usize = 100_000;

/// A valid elicitation of an agent.
#[derive(Debug, PartialEq)]
pub struct Elicitation {
    pub message: String,
    pub ask: Ask,
    /// The id by which `elicitation/complete` refers to a URL elicitation.
    pub elicitation_id: Option<String>,
}

/// Reads the `params` of an `elicitation/create`. The error is a message for the agent.
pub fn read(params: &Value) -> Result<Elicitation, String> {
    let bytes = json_bytes(params);
    if bytes > REQUEST_BYTES_MAX {
        return Err(format!(
            "the elicitation is too large: {bytes} bytes, at most {REQUEST_BYTES_MAX}"
        ));
    }
    // The order of the fields, which the typed request does not keep.
    let order: Vec<String> = params["requestedSchema"]["properties"]
        .as_object()
        .map(|fields| fields.keys().cloned().collect())
        .unwrap_or_default();
    if let Some(kind) = params["requestedSchema"].get("type")
        && kind != "object"
    {
        return Err("the schema of a form must be of type `object`".to_owned());
    }
    let request: acp::CreateElicitationRequest = serde_json::from_value(params.clone())
        .map_err(|error| format!("the elicitation is invalid: {error}"))?;
    let (ask, elicitation_id) = match request.mode {
        acp::ElicitationMode::Form(form) => (form_of(form.requested_schema, order)?, None),
        acp::ElicitationMode::Url(link) => {
            let id = link.elicitation_id.0.to_string();
            (link_of(link.url)?, Some(id))
        }
        _ => return Err("only the modes `form` and `url` are supported".to_owned()),
    };
    Ok(Elicitation {
        message: request.message,
        ask,
        elicitation_id,
    })
}

fn link_of(url: String) -> Result<Ask, String> {
    let is_web_url = url.starts_with("https://") || url.starts_with("http://");
    let clean = !url.chars().any(|c| c.is_whitespace() || c.is_control());
    if !is_web_url || !clean || url.len() > URL_BYTES_MAX {
        return Err(format!(
            "the URL must be an http or https address of at most {URL_BYTES_MAX} bytes"
        ));
    }
    let finished = false;
    Ok(Ask::Link { url, finished })
}

fn form_of(schema: acp::ElicitationSchema, order: Vec<String>) -> Result<Ask, String> {
    let mut properties = schema.properties;
    if properties.len() > FIELDS_MAX {
        return Err(format!("a form may have at most {FIELDS_MAX} fields"));
    }
    let required = schema.required.unwrap_or_default();
    if let Some(unknown) = required.iter().find(|name| !properties.contains_key(*name)) {
        return Err(format!("`{unknown}` is required, but is no property"));
    }
    let mut fields = vec![];
    for name in order {
        let Some(property) = properties.remove(&name) else {
            continue;
        };
        let required = required.contains(&name);
        let field = field_of(name.clone(), property, required);
        fields.push(field.map_err(|reason| format!("property `{name}`: {reason}"))?);
    }
    Ok(Ask::Form {
        title: schema.title,
        description: schema.description,
        fields,
    })
}

fn field_of(
    name: String,
    property: acp::ElicitationPropertySchema,
    required: bool,
) -> Result<FormField, String> {
    use acp::ElicitationPropertySchema as P;
    let (title, description, input) = match property {
        P::String(text) => {
            let plain = |values: Vec<String>| values.into_iter().map(plain_option).collect();
            let options = match (text.one_of, text.enum_values) {
                (Some(titled), _) => Some(titled.into_iter().map(titled_option).collect()),
                (None, Some(values)) => Some(plain(values)),
                (None, None) => None,
            };
            let input = match options {
                Some(options) => FieldInput::Choice {
                    default: text.default,
                    options: some_options(options)?,
                },
                None => FieldInput::Text {
                    format: text.format.and_then(format_of),
                    min_length: text.min_length,
                    max_length: text.max_length,
                    pattern: text.pattern,
                    default: text.default,
                },
            };
            (text.title, text.description, input)
        }
        P::Number(number) => {
            let input = FieldInput::Number {
                whole: false,
                minimum: number.minimum,
                maximum: number.maximum,
                default: number.default,
            };
            (number.title, number.description, input)
        }
        P::Integer(number) => {
            let input = FieldInput::Number {
                whole: true,
                minimum: number.minimum.map(|least| least as f64),
                maximum: number.maximum.map(|most| most as f64),
                default: number.default.map(|number| number as f64),
            };
            (number.title, number.description, input)
        }
        P::Boolean(boolean) => {
            let default = boolean.default;
            (
                boolean.title,
                boolean.description,
                FieldInput::Boolean { default },
            )
        }
        P::Array(several) => {
            let options = match several.items {
                acp::MultiSelectItems::String(items) => {
                    items.values.into_iter().map(plain_option).collect()
                }
                acp::MultiSelectItems::Titled(items) => {
                    items.options.into_iter().map(titled_option).collect()
                }
                _ => {
                    return Err(
                        "the items of an array must be an enumeration of strings".to_owned()
                    );
                }
            };
            let small = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
            let input = FieldInput::Choices {
                options: some_options(options)?,
                min_items: several.min_items.map(small),
                max_items: several.max_items.map(small),
                default: several.default.unwrap_or_default(),
            };
            (several.title, several.description, input)
        }
        P::Other(other) => return Err(format!("the type `{}` is not supported", other.type_)),
        _ => return Err("its type is not supported".to_owned()),
    };
    let field = FormField {
        name,
        title,
        description,
        required,
        input,
    };
    Ok(FormField {
        input: with_a_valid_default(&field),
        ..field
    })
}

/// Returns the field's input, without its default if the default is not a valid answer.
fn with_a_valid_default(field: &FormField) -> FieldInput {
    let mut input = field.input.clone();
    let valid = |value: Value| value_of(field, value).is_ok();
    match &mut input {
        FieldInput::Text { default, .. } | FieldInput::Choice { default, .. } => {
            default.take_if(|text| !valid(json!(text)));
        }
        FieldInput::Number { default, .. } => drop(default.take_if(|number| !valid(json!(number)))),
        FieldInput::Boolean { .. } => {}
        FieldInput::Choices { default, .. } => {
            if !default.is_empty() && !valid(json!(default)) {
                default.clear();
            }
        }
    }
    input
}

fn some_options(options: Vec<FieldOption>) -> Result<Vec<FieldOption>, String> {
    match options.len() {
        0 => Err("it has no options".to_owned()),
        1..=OPTIONS_MAX => Ok(options),
        _ => Err(format!("it may have at most {OPTIONS_MAX} options")),
    }
}

fn plain_option(value: String) -> FieldOption {
    FieldOption {
        title: value.clone(),
        value,
        description: None,
    }
}

fn titled_option(option: acp::EnumOption) -> FieldOption {
    FieldOption {
        value: option.value,
        title: option.title,
        description: option.description,
    }
}

fn format_of(format: acp::StringFormat) -> Option<TextFormat> {
    match format {
        acp::StringFormat::Email => Some(TextFormat::Email),
        acp::StringFormat::Uri => Some(TextFormat::Uri),
        acp::StringFormat::Date => Some(TextFormat::Date),
        acp::StringFormat::DateTime => Some(TextFormat::DateTime),
        _ => None,
    }
}

/// The result of an `elicitation/create`.
pub fn answer(outcome: QuestionOutcome, answers: Option<&Map<String, Value>>) -> Value {
    match (outcome, answers) {
        (QuestionOutcome::Accepted, Some(answers)) => {
            json!({"action": "accept", "content": answers})
        }
        (QuestionOutcome::Accepted, None) => json!({"action": "accept"}),
        (QuestionOutcome::Declined, _) => json!({"action": "decline"}),
        (QuestionOutcome::Cancelled | QuestionOutcome::Interrupted, _) => {
            json!({"action": "cancel"})
        }
    }
}

/// Validates the user's input and returns it in the types of the fields. The error tells the user what to change.
pub fn check(
    fields: &[FormField],
    mut content: Map<String, Value>,
) -> Result<Map<String, Value>, String> {
    let mut answers = Map::new();
    for field in fields {
        match content.remove(&field.name) {
            Some(value) => {
                let value = value_of(field, value)
                    .map_err(|reason| format!("“{}” {reason}.", label(field)))?;
                answers.insert(field.name.clone(), value);
            }
            None if field.required => return Err(format!("“{}” is needed.", label(field))),
            None => {}
        }
    }
    match content.keys().next() {
        Some(unknown) => Err(format!("The form has no field “{unknown}”.")),
        None => Ok(answers),
    }
}

fn label(field: &FormField) -> &str {
    field.title.as_deref().unwrap_or(&field.name)
}

fn value_of(field: &FormField, value: Value) -> Result<Value, String> {
    match (&field.input, &value) {
        (
            FieldInput::Text {
                format,
                min_length,
                max_length,
                pattern,
                ..
            },
            Value::String(text),
        ) => {
            let length = text.chars().count();
            if min_length.is_some_and(|least| length < least as usize) {
                let least = min_length.unwrap_or_default();
                return Err(format!("needs at least {least} characters"));
            }
            let most = max_length.map_or(TEXT_CHARS_MAX, |most| most as usize);
            if length > most.min(TEXT_CHARS_MAX) {
                return Err(format!("may have at most {most} characters"));
            }
            if let Some(format) = format {
                has_format(text, *format)?;
            }
            // A pattern in an unsupported regex dialect is left to the agent, which validates the answer anyway.
            let pattern = pattern
                .as_deref()
                .and_then(|pattern| Regex::new(pattern).ok());
            if pattern.is_some_and(|pattern| !pattern.is_match(text)) {
                return Err("does not have the form the agent asks for".to_owned());
            }
        }
        (
            FieldInput::Number {
                whole,
                minimum,
                maximum,
                ..
            },
            Value::Number(number),
        ) => {
            let number = number.as_f64().ok_or("is not a number")?;
            if *whole && number.fract() != 0.0 {
                return Err("must be a whole number".to_owned());
            }
            if minimum.is_some_and(|least| number < least) {
                return Err(format!("must be at least {}", minimum.unwrap_or_default()));
            }
            if maximum.is_some_and(|most| number > most) {
                return Err(format!("must be at most {}", maximum.unwrap_or_default()));
            }
            // Not every agent accepts `3.0` as an integer.
            if *whole && !value.is_i64() && !value.is_u64() {
                return Ok(json!(number as i64));
            }
        }
        (FieldInput::Boolean { .. }, Value::Bool(_)) => {}
        (FieldInput::Choice { options, .. }, Value::String(chosen)) => {
            if !options.iter().any(|option| option.value == *chosen) {
                return Err("must be one of its options".to_owned());
            }
        }
        (
            FieldInput::Choices {
                options,
                min_items,
                max_items,
                ..
            },
            Value::Array(chosen),
        ) => {
            let known = |one: &Value| options.iter().any(|option| *one == option.value.as_str());
            let twice = chosen
                .iter()
                .enumerate()
                .any(|(at, one)| chosen[..at].contains(one));
            if !chosen.iter().all(known) || twice {
                return Err("must be some of its options".to_owned());
            }
            if min_items.is_some_and(|least| chosen.len() < least as usize) {
                let least = min_items.unwrap_or_default();
                return Err(format!("needs at least {least} of its options"));
            }
            if max_items.is_some_and(|most| chosen.len() > most as usize) {
                let most = max_items.unwrap_or_default();
                return Err(format!("may have at most {most} of its options"));
            }
        }
        _ => return Err("has a value of the wrong type".to_owned()),
    }
    Ok(value)
}

fn has_format(text: &str, format: TextFormat) -> Result<(), String> {
    let (fits, what) = match format {
        TextFormat::Email => {
            let parts = text.split_once('@');
            let whole = |part: &str| !part.is_empty() && !part.contains(['@', ' ']);
            let fits = parts.is_some_and(|(name, host)| whole(name) && whole(host));
            (fits, "an e-mail address")
        }
        TextFormat::Uri => {
            let scheme = text.split_once(':').map(|(scheme, rest)| {
                let word = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
                scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                    && scheme.chars().all(word)
                    && !rest.is_empty()
            });
            let fits = scheme == Some(true) && !text.contains(char::is_whitespace);
            (fits, "an address such as https://example.com")
        }
        TextFormat::Date => (
            text.parse::<jiff::civil::Date>().is_ok() && text.len() == 10,
            "a date such as 2026-11-16",
        ),
        TextFormat::DateTime => (
            text.parse::<jiff::Timestamp>().is_ok(),
            "a time such as 2026-11-16T09:30:00Z",
        ),
    };
    match fits {
        true => Ok(()),
        false => Err(format!("must be {what}")),
    }
}
