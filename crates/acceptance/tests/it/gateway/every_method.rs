//! Sends hostile parameters to every method of the gateway. The methods come from the schema, so a new method is
//! covered automatically.
//!
//! The schema also decides the expected answer. Parameters that do not match it are rejected as invalid; parameters
//! that match it name sessions and projects that do not exist. In both cases the state must not change.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};
use testkit::{Program, Server, ServerSetup};

const UNKNOWN_ID: &str = "00000000-0000-4000-8000-000000000000";
/// Methods that change nothing with any parameters. They are also called with ids that exist.
const HARMLESS: [&str; 14] = [
    "health.check",
    "agents.list",
    "browsers.list",
    "sessions.list",
    "sessions.get",
    "sessions.subscribe",
    "chat.history",
    "chat.message",
    "chat.abort",
    "permissions.list",
    "permissions.answer",
    "questions.list",
    "questions.answer",
    "projects.list",
];
/// Requests per connection, low enough to stay under its rate limit.
const REQUESTS_PER_CONNECTION: usize = 180;
const PARSE: i64 = -32700;
const INVALID_PARAMS: i64 = -32602;

/// Ids that exist, by the name of the parameter that takes them.
struct ExistingIds(BTreeMap<&'static str, String>);

/// A method with its schema.
struct Method {
    name: String,
    schema: Value,
    validator: jsonschema::Validator,
}

/// Path and schema of a parameter field.
struct Field {
    path: Vec<String>,
    schema: Value,
}

impl Method {
    async fn all(setup: &ServerSetup) -> Result<Vec<Self>> {
        let printed = setup.run(&["gateway", "schema"]).await?;
        let described: Value = serde_json::from_slice(&printed.stdout)?;
        let methods = described["methods"].as_object().context("methods")?;
        let mut all = vec![];
        for (name, method) in methods {
            let schema = method["params"].clone();
            let validator = jsonschema::options()
                .should_validate_formats(true)
                .build(&schema)?;
            all.push(Self {
                name: name.clone(),
                schema,
                validator,
            });
        }
        Ok(all)
    }

    /// Whether the parameters match the schema. `null` counts as an empty object.
    fn fits(&self, params: &Value) -> bool {
        match params.is_null() {
            true => self.validator.is_valid(&json!({})),
            false => self.validator.is_valid(params),
        }
    }

    /// All fields, including those of nested objects.
    fn fields(&self) -> Vec<Field> {
        let mut found = vec![];
        self.fields_of(&self.schema, &[], &mut found);
        found
    }

    fn fields_of(&self, schema: &Value, path: &[String], found: &mut Vec<Field>) {
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let path = [path, std::slice::from_ref(name)].concat();
            let schema = self.resolve(field);
            self.fields_of(&schema, &path, found);
            found.push(Field { path, schema });
        }
    }

    /// Schema of a field's value, without `null` and with its `$ref` resolved.
    fn resolve(&self, field: &Value) -> Value {
        let any = field["anyOf"].as_array().into_iter().flatten();
        let given = any.into_iter().find(|variant| variant["type"] != "null");
        let given = given.unwrap_or(field);
        match given["$ref"].as_str().and_then(|at| at.strip_prefix('#')) {
            Some(pointer) => self.schema.pointer(pointer).cloned().unwrap_or_default(),
            None => given.clone(),
        }
    }

    /// Valid parameters with every field, using ids that exist if `existing` is given.
    fn good(&self, schema: &Value, existing: Option<&ExistingIds>) -> Value {
        let properties = schema["properties"].as_object().into_iter().flatten();
        let good = properties.map(|(name, field)| {
            let field = self.resolve(field);
            let known = existing.and_then(|existing| existing.0.get(name.as_str()));
            let kind = match &field["type"] {
                Value::Array(kinds) => kinds[0].as_str(),
                kind => kind.as_str(),
            };
            let value = match (kind, known) {
                (Some("object"), _) => self.good(&field, existing),
                (Some("integer"), _) => json!(1),
                (Some("boolean"), _) => json!(false),
                (_, Some(known)) => json!(known),
                _ if field["format"] == "uuid" => json!(UNKNOWN_ID),
                _ => json!("/no/such/thing"),
            };
            (name.clone(), value)
        });
        Value::Object(good.collect::<Map<_, _>>())
    }
}

/// Unusual values as JSON texts, some of them malformed.
fn odd_values(field: &str, existing: &ExistingIds) -> Vec<String> {
    let mut odd: Vec<String> = [
        "null",
        "true",
        "0",
        "-1",
        "1.5",
        "-0",
        "1e30",
        "1e400",
        "18446744073709551615",
        "18446744073709551616",
        "\"\"",
        "\" \"",
        "[]",
        "{}",
        "[[[]]]",
        "[1,\"a\",null]",
        "{\"a\":1}",
        "{\"a\":1,\"a\":2}",
        "{\"$ne\":null}",
        "{\"__proto__\":{}}",
        "\"\\u0000\"",
        "\"a\\u0000b\"",
        "\"\\ud800\"",
        "\"\\udc00x\"",
        "\"\u{202e}gnp.exe\u{2066}\"",
        "\"\\u001b[2J\\u0007\"",
        "\"../../../etc/passwd\"",
        "\"/../../../etc/passwd\"",
        "\"/proc/self/mem\"",
        "\"~root\"",
        "\"%2e%2e%2f\"",
        "\"00000000-0000-4000-8000-00000000000G\"",
        "\"{00000000-0000-4000-8000-000000000000}\"",
        "NaN",
        "undefined",
        "'x'",
    ]
    .map(str::to_owned)
    .to_vec();
    let brackets = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    odd.extend([brackets(20), brackets(500)]);
    // Just below the maximum size of a frame.
    odd.push(format!("\"{}\"", "x".repeat(1_048_000)));
    odd.push(format!("\"/{}\"", "é/".repeat(10_000)));
    let others = existing.0.iter().filter(|(name, _)| **name != field);
    odd.extend(others.map(|(_, id)| json!(id).to_string()));
    odd
}

/// Text of the object with one field replaced by `value`, or removed.
fn with_field(object: &Value, path: &[String], value: Option<&str>) -> String {
    let (name, deeper) = path.split_first().expect("a field has a name");
    let fields = object.as_object().into_iter().flatten();
    let written = fields.filter_map(|(key, old)| {
        let text = match (key == name, deeper.is_empty()) {
            (false, _) => old.to_string(),
            (true, false) => with_field(old, deeper, value),
            (true, true) => value?.to_owned(),
        };
        Some(format!("{}:{text}", json!(key)))
    });
    format!("{{{}}}", written.collect::<Vec<_>>().join(","))
}

/// Hostile parameters for a method, as JSON texts.
fn hostile_params(method: &Method, base: &Value, existing: &ExistingIds) -> Vec<String> {
    let mut all: Vec<String> = ["null", "[]", "7", "\"x\"", "{}", "[{}]", "true"]
        .map(str::to_owned)
        .to_vec();
    for field in method.fields() {
        let name = field.path.last().map_or("", String::as_str);
        all.push(with_field(base, &field.path, None));
        let odd = odd_values(name, existing);
        all.extend(
            odd.iter()
                .map(|odd| with_field(base, &field.path, Some(odd))),
        );
        if field.schema["type"] == "object" {
            continue;
        }
        // The field twice, with different values.
        let text = base.to_string();
        all.push(format!(
            "{},{}:1,{0}:2}}",
            text.trim_end_matches('}'),
            json!(name)
        ));
    }
    for extra in ["more", "", "__proto__", "\u{0}"] {
        let mut more = base.clone();
        more[extra] = json!(1);
        all.push(more.to_string());
    }
    all
}

/// Content of every file below a directory, by path.
fn files(dir: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    let content = std::fs::read(&path)?;
                    found.insert(path.display().to_string(), content);
                }
            }
        }
    }
    Ok(found)
}

/// The state that clients and the disk show.
async fn observable_state(program: &mut Program, setup: &ServerSetup, key: &str) -> Result<Value> {
    let mut all = vec![];
    for (method, params) in [
        ("sessions.list", json!({})),
        ("sessions.list", json!({"archived": true})),
        ("projects.list", json!({})),
        ("permissions.list", json!({})),
        ("chat.history", json!({"sessionKey": key})),
        ("chat.queue", json!({"sessionKey": key})),
    ] {
        all.push(program.result(method, params).await?);
    }
    all.push(json!(files(&setup.data_dir())?));
    all.push(json!(setup.asked()));
    Ok(json!(all))
}

async fn create_session(program: &mut Program, setup: &ServerSetup) -> Result<ExistingIds> {
    let key = program.create(setup).await?;
    let run = program.send(&key, "say hello").await?;
    program.until_end(&run).await?;
    let got = program
        .result("sessions.get", json!({"sessionKey": key}))
        .await?;
    let text = |field: &str| got["session"][field].as_str().map(str::to_owned);
    let project = text("projectId").context("no project")?;
    let id = text("id").context("no id")?;
    let all = [
        ("sessionKey", key),
        ("runId", run),
        ("projectId", project),
        ("id", id),
    ];
    Ok(ExistingIds(all.into_iter().collect()))
}

/// Calls the method and checks the answer against the schema.
async fn ask(program: &mut Program, method: &Method, params: &str) -> Result<()> {
    let answer = program.call_with(&method.name, params).await?;
    let code = answer["error"]["code"].as_i64();
    let shortened: String = params.chars().take(200).collect();
    let answered: String = answer.to_string().chars().take(500).collect();
    let call_and_answer = format!("{} {shortened}: {answered}", method.name);
    if let Some(code) = code {
        let message = answer["error"]["message"].as_str().context("no message")?;
        ensure!((5..600).contains(&message.len()), "{call_and_answer}");
        ensure!(
            [PARSE, INVALID_PARAMS, 404, 409].contains(&code),
            "unexpected error code: {call_and_answer}"
        );
    }
    match serde_json::from_str::<Value>(params) {
        Err(_) => ensure!(
            code == Some(PARSE),
            "malformed JSON must be a parse error: {call_and_answer}"
        ),
        // `serde_json` accepts duplicate keys and deeper nesting than the server does.
        Ok(_) if code == Some(PARSE) => {
            let why = answer["error"]["message"].as_str().unwrap_or_default();
            ensure!(
                why.contains("duplicate") || why.contains("deeply"),
                "{call_and_answer}"
            );
        }
        Ok(given) => {
            let fits = method.fits(&given);
            ensure!(
                fits || code == Some(INVALID_PARAMS),
                "invalid parameters were accepted: {call_and_answer}"
            );
        }
    }
    Ok(())
}

async fn ask_all(server: &Server, requests: &[(&Method, String)]) -> Result<()> {
    for some in requests.chunks(REQUESTS_PER_CONNECTION) {
        let mut program = Program::at(server).await?;
        for (method, params) in some {
            let asked = ask(&mut program, method, params).await;
            asked.with_context(|| format!("{} {params:.200}", method.name))?;
        }
        // The connection is still usable.
        let health = program.result("health.check", json!({})).await?;
        ensure!(health["status"] == "ok", "{health}");
    }
    Ok(())
}

#[tokio::test]
async fn hostile_parameters_of_every_method_are_answered_and_change_nothing() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let server = setup.start().await?;
    let mut program = Program::at(&server).await?;
    let existing = create_session(&mut program, &setup).await?;
    let key = existing.0["sessionKey"].clone();
    let methods = Method::all(&setup).await?;
    ensure!(methods.len() > 15, "only {} methods", methods.len());
    let before = observable_state(&mut program, &setup, &key).await?;
    let mut requests = vec![];
    for method in &methods {
        let harmless = HARMLESS.contains(&method.name.as_str());
        for of in [None, Some(&existing)] {
            let base = method.good(&method.schema, of);
            for params in hostile_params(method, &base, &existing) {
                let given: Value = serde_json::from_str(&params).unwrap_or(json!(7));
                let nothing = given.is_null() || given == json!({});
                // Valid parameters that could change something are sent only with ids that do not exist.
                let may_change_state = (of.is_some() || nothing) && method.fits(&given);
                if harmless || !may_change_state {
                    requests.push((method, params));
                }
            }
        }
    }
    ensure!(requests.len() > 1000, "only {} requests", requests.len());
    ask_all(&server, &requests).await?;
    let after = observable_state(&mut program, &setup, &key).await?;
    assert!(before == after, "{before:#}\n{after:#}");
    // The session still works.
    program.say(&key, "say still here").await?;
    Ok(())
}
