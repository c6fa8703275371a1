//! The gateway's reference page and JSON Schema, generated from the method table.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use super::methods::METHODS;

/// JSON Schema of every method's parameters and result.
pub(crate) fn schema() -> Value {
    let mut methods = serde_json::Map::new();
    for method in METHODS.iter() {
        let mut schemas = SchemaSettings::draft2020_12().into_generator();
        let described = json!({
            "description": method.about,
            "params": (method.params)(&mut schemas),
            "result": (method.result)(&mut schemas),
        });
        methods.insert(method.name.to_owned(), described);
    }
    json!({"methods": methods})
}

/// The text of `docs/gateway.md`.
pub(crate) fn reference() -> String {
    let mut page = include_str!("reference.md").to_owned();
    let schema = schema();
    let mut types = BTreeMap::new();
    for method in METHODS.iter() {
        let described = &schema["methods"][method.name];
        let _ = write!(page, "\n### `{}`\n\n{}\n", method.name, method.about);
        fields(&mut page, "Parameters", &described["params"]);
        fields(&mut page, "Result", &described["result"]);
        let defined = described["result"]["$defs"].as_object();
        types.extend(defined.into_iter().flatten());
    }
    page.push_str("\n## Types\n");
    for (name, schema) in types {
        let _ = write!(page, "\n### {name}\n");
        let words = schema["enum"].as_array().into_iter().flatten();
        let words: Vec<String> = words.map(|word| format!("`{word}`")).collect();
        if !words.is_empty() {
            let _ = write!(page, "\n{}\n", words.join(", "));
        }
        fields(&mut page, "Fields", schema);
    }
    page
}

fn fields(page: &mut String, title: &str, schema: &Value) {
    let Some(properties) = schema["properties"]
        .as_object()
        .filter(|all| !all.is_empty())
    else {
        return;
    };
    let required = |name: &str| {
        let required = schema["required"].as_array();
        required.is_some_and(|all| all.iter().any(|one| one == name))
    };
    let _ = write!(page, "\n{title}:\n\n");
    for (name, field) in properties {
        let optional = if required(name) { "" } else { ", optional" };
        let about = field["description"]
            .as_str()
            .map_or(String::new(), |about| {
                format!(": {}", about.replace('\n', " "))
            });
        let _ = writeln!(page, "- `{name}` ({}{optional}){about}", kind(field));
    }
}

fn kind(field: &Value) -> String {
    if let Some(reference) = field["$ref"].as_str() {
        return reference.rsplit('/').next().unwrap_or_default().to_owned();
    }
    if let Some(any) = field["anyOf"].as_array() {
        let kinds = any.iter().filter(|one| one["type"] != "null").map(kind);
        return kinds.collect::<Vec<_>>().join(" or ");
    }
    let word = match &field["type"] {
        Value::String(word) => word.clone(),
        Value::Array(words) => {
            let words = words.iter().filter_map(Value::as_str);
            words
                .filter(|word| *word != "null")
                .collect::<Vec<_>>()
                .join(" or ")
        }
        _ => "any".to_owned(),
    };
    if word == "array" {
        return format!("array of {}", kind(&field["items"]));
    }
    match (&field["format"], &field["minLength"], &field["minimum"]) {
        (Value::String(format), _, _) if format == "uuid" => "UUID".to_owned(),
        (_, Value::Number(least), _) => {
            format!("{word}, {least} to {} characters", field["maxLength"])
        }
        (_, _, Value::Number(least)) if field["maximum"].is_number() => {
            format!("{word}, {least} to {}", field["maximum"])
        }
        _ => word,
    }
}
