//! Every request type of both APIs, read from the generated types and schema, so that new ones are covered.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testkit::ServerSetup;

/// A request type with its fields; `fill` puts a text into its text fields.
pub(crate) struct Shape {
    /// The message type of the browser API or the method of the gateway.
    pub(crate) name: String,
    fields: Vec<(String, Field)>,
}

#[derive(Clone, Copy)]
enum Field {
    Text,
    Texts,
    Number,
    Flag,
    Other,
}

impl Shape {
    /// The request with `text` in every text field accepted by `wanted`; `None` if there is no such field.
    pub(crate) fn fill(&self, text: &str, wanted: impl Fn(&str) -> bool) -> Option<Value> {
        let mut filled = false;
        let mut request = json!({});
        for (name, field) in &self.fields {
            request[name] = match field {
                Field::Text | Field::Texts if !wanted(name) => json!("x"),
                Field::Text => {
                    filled = true;
                    json!(text)
                }
                Field::Texts => {
                    filled = true;
                    json!([text])
                }
                Field::Number => json!(1),
                Field::Flag => json!(true),
                Field::Other => continue,
            };
        }
        filled.then_some(request)
    }
}

/// The requests of the browser API, from its TypeScript types.
pub(crate) fn of_browsers() -> Result<Vec<Shape>> {
    let types = include_str!("../../../../../web/types/wire.d.ts");
    let begin = types
        .find("export type ClientMessage = ")
        .context("expected the type")?;
    let end = types[begin..].find(";\n").context("expected its end")? + begin;
    let mut text = types[begin..end].to_owned();
    while let Some(comment) = text.find("/**") {
        let end = text[comment..]
            .find("*/")
            .context("expected a comment's end")?
            + comment;
        text.replace_range(comment..end + 2, "");
    }
    let variants = text.split(r#"{ "type": ""#).skip(1);
    let shapes: Vec<_> = variants.map(of_variant).collect::<Result<_>>()?;
    ensure!(shapes.len() > 25, "only {} were found", shapes.len());
    Ok(shapes)
}

fn of_variant(variant: &str) -> Result<Shape> {
    let (name, fields) = variant.split_once('"').context("expected a name")?;
    let fields = fields.split_once('}').context("expected an end")?.0;
    let fields = fields.split(',').filter_map(|field| {
        let (name, kind) = field.split_once(':')?;
        let kind = match kind.trim() {
            "string" => Field::Text,
            "Array<string>" => Field::Texts,
            "number" => Field::Number,
            "boolean" => Field::Flag,
            _ => Field::Other,
        };
        Some((name.trim().trim_end_matches('?').to_owned(), kind))
    });
    Ok(Shape {
        name: name.to_owned(),
        fields: fields.collect(),
    })
}

/// The methods of the gateway, from its schema.
pub(crate) async fn of_programs(setup: &ServerSetup) -> Result<Vec<Shape>> {
    let printed = setup.run(&["gateway", "schema"]).await?;
    let schema: Value = serde_json::from_slice(&printed.stdout)?;
    let methods = schema["methods"].as_object().context("expected methods")?;
    let shapes: Vec<_> = methods
        .iter()
        .map(|(name, method)| {
            let properties = method["params"]["properties"].as_object();
            let fields = properties.into_iter().flatten().map(|(name, property)| {
                let kind = match &property["type"] {
                    Value::Array(kinds) => kinds.first().unwrap_or(&Value::Null),
                    kind => kind,
                };
                let kind = match kind.as_str() {
                    Some("string") => Field::Text,
                    Some("array") => Field::Texts,
                    Some("integer" | "number") => Field::Number,
                    Some("boolean") => Field::Flag,
                    _ => Field::Other,
                };
                (name.clone(), kind)
            });
            Shape {
                name: name.clone(),
                fields: fields.collect(),
            }
        })
        .collect();
    ensure!(shapes.len() > 15, "only {} were found", shapes.len());
    Ok(shapes)
}
