//! Hostile parameters for every method there is, found through the schema: one that is added later is covered
//! without anybody thinking of it.
//!
//! What must be answered is decided by the schema too: what does not fit it is refused by name, and what does fit
//! names things that are not there. Either way nothing may have changed afterwards.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};
use testkit::{Program, Server, ServerSetup};

use crate::setup;

const NOBODY: &str = "00000000-0000-4000-8000-000000000000";
/// Methods that change nothing, whatever is in their parameters: they are also asked about what is really there.
const HARMLESS: [&str; 13] = [
    "health.check",
    "agents.list",
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
/// A connection may ask so much at once; the next one may again.
const REQUESTS_PER_CONNECTION: usize = 180;
const PARSE: i64 = -32700;
const INVALID_PARAMS: i64 = -32602;

/// What is really there, by the name of the parameter that would name it.
struct Real(BTreeMap<&'static str, String>);

/// One method, and what its schema says.
struct Described {
    name: String,
    schema: Value,
    validator: jsonschema::Validator,
}

/// Where a field is, and what it must be.
struct Field {
    path: Vec<String>,
    schema: Value,
}

impl Described {
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

    /// No parameters at all may also be nothing.
    fn fits(&self, params: &Value) -> bool {
        match params.is_null() {
            true => self.validator.is_valid(&json!({})),
            false => self.validator.is_valid(params),
        }
    }

    /// Also those of objects within.
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

    /// What a field is when it is given.
    fn resolve(&self, field: &Value) -> Value {
        let any = field["anyOf"].as_array().into_iter().flatten();
        let given = any.into_iter().find(|one| one["type"] != "null");
        let given = given.unwrap_or(field);
        match given["$ref"].as_str().and_then(|at| at.strip_prefix('#')) {
            Some(pointer) => self.schema.pointer(pointer).cloned().unwrap_or_default(),
            None => given.clone(),
        }
    }

    /// Every field, each as it should be, about things that are or are not there.
    fn good(&self, schema: &Value, real: Option<&Real>) -> Value {
        let properties = schema["properties"].as_object().into_iter().flatten();
        let good = properties.map(|(name, field)| {
            let field = self.resolve(field);
            let known = real.and_then(|real| real.0.get(name.as_str()));
            let kind = match &field["type"] {
                Value::Array(kinds) => kinds[0].as_str(),
                kind => kind.as_str(),
            };
            let value = match (kind, known) {
                (Some("object"), _) => self.good(&field, real),
                (Some("integer"), _) => json!(1),
                (Some("boolean"), _) => json!(false),
                (_, Some(known)) => json!(known),
                _ if field["format"] == "uuid" => json!(NOBODY),
                _ => json!("/no/such/thing"),
            };
            (name.clone(), value)
        });
        Value::Object(good.collect::<Map<_, _>>())
    }
}

/// Texts of values that nobody should send. JSON, but for what cannot be read.
fn odd_values(field: &str, real: &Real) -> Vec<String> {
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
    // Just below what a frame may have.
    odd.push(format!("\"{}\"", "x".repeat(1_048_000)));
    odd.push(format!("\"/{}\"", "é/".repeat(10_000)));
    let others = real.0.iter().filter(|(name, _)| **name != field);
    odd.extend(others.map(|(_, id)| json!(id).to_string()));
    odd
}

/// The text of an object in which one field is as given, or is not there.
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

/// Parameters for one method, as texts.
fn hostile_params(method: &Described, base: &Value, real: &Real) -> Vec<String> {
    let mut all: Vec<String> = ["null", "[]", "7", "\"x\"", "{}", "[{}]", "true"]
        .map(str::to_owned)
        .to_vec();
    for field in method.fields() {
        let name = field.path.last().map_or("", String::as_str);
        all.push(with_field(base, &field.path, None));
        let odd = odd_values(name, real);
        all.extend(
            odd.iter()
                .map(|odd| with_field(base, &field.path, Some(odd))),
        );
        if field.schema["type"] == "object" {
            continue;
        }
        // Twice, the second time differently.
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

/// Everything that must not change: every file but the lock and the log of what was refused.
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

/// What programs and the disk say there is.
async fn everything(program: &mut Program, setup: &ServerSetup, key: &str) -> Result<Value> {
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

async fn real(program: &mut Program, setup: &ServerSetup) -> Result<Real> {
    let key = program.create(setup).await?;
    let run = program.send(&key, "say hello").await?;
    program.until_end(&run).await?;
    let got = program
        .result("sessions.get", json!({"sessionKey": key}))
        .await?;
    let text = |field: &str| got["session"][field].as_str().map(str::to_owned);
    let project = text("projectId").context("a project")?;
    let id = text("id").context("an id")?;
    let all = [
        ("sessionKey", key),
        ("runId", run),
        ("projectId", project),
        ("id", id),
    ];
    Ok(Real(all.into_iter().collect()))
}

/// Asks, and judges the answer by the schema.
async fn ask(program: &mut Program, method: &Described, params: &str) -> Result<()> {
    let answer = program.call_with(&method.name, params).await?;
    let code = answer["error"]["code"].as_i64();
    let brief: String = params.chars().take(200).collect();
    let answered: String = answer.to_string().chars().take(500).collect();
    let told = format!("{} {brief}: {answered}", method.name);
    if let Some(code) = code {
        let message = answer["error"]["message"].as_str().context("a message")?;
        ensure!((5..600).contains(&message.len()), "{told}");
        ensure!(
            [PARSE, INVALID_PARAMS, 404, 409].contains(&code),
            "not a code for this: {told}"
        );
    }
    match serde_json::from_str::<Value>(params) {
        Err(_) => ensure!(code == Some(PARSE), "unreadable: {told}"),
        // Two equal keys and deep nesting are read by other readers.
        Ok(_) if code == Some(PARSE) => {
            let why = answer["error"]["message"].as_str().unwrap_or_default();
            ensure!(
                why.contains("duplicate") || why.contains("deeply"),
                "{told}"
            );
        }
        Ok(given) => {
            let fits = method.fits(&given);
            ensure!(fits || code == Some(INVALID_PARAMS), "does not fit: {told}");
        }
    }
    Ok(())
}

async fn ask_all(server: &Server, requests: &[(&Described, String)]) -> Result<()> {
    for some in requests.chunks(REQUESTS_PER_CONNECTION) {
        let mut program = Program::at(server).await?;
        for (method, params) in some {
            let asked = ask(&mut program, method, params).await;
            asked.with_context(|| format!("{} {params:.200}", method.name))?;
        }
        // The connection has survived all of it.
        let health = program.result("health.check", json!({})).await?;
        ensure!(health["status"] == "ok", "{health}");
    }
    Ok(())
}

#[tokio::test]
async fn whatever_is_asked_of_a_method_is_answered_and_nothing_changes() -> Result<()> {
    let setup = setup()?;
    let server = setup.start().await?;
    let mut program = Program::at(&server).await?;
    let real = real(&mut program, &setup).await?;
    let key = real.0["sessionKey"].clone();
    let methods = Described::all(&setup).await?;
    ensure!(methods.len() > 15, "only {} methods", methods.len());
    let before = everything(&mut program, &setup, &key).await?;
    let mut requests = vec![];
    for method in &methods {
        let harmless = HARMLESS.contains(&method.name.as_str());
        for of in [None, Some(&real)] {
            let base = method.good(&method.schema, of);
            for params in hostile_params(method, &base, &real) {
                let given: Value = serde_json::from_str(&params).unwrap_or(json!(7));
                let nothing = given.is_null() || given == json!({});
                // What fits, and could do something, is only asked about what is not there.
                let could_do = (of.is_some() || nothing) && method.fits(&given);
                if harmless || !could_do {
                    requests.push((method, params));
                }
            }
        }
    }
    ensure!(requests.len() > 1000, "only {} requests", requests.len());
    ask_all(&server, &requests).await?;
    let after = everything(&mut program, &setup, &key).await?;
    assert!(before == after, "{before:#}\n{after:#}");
    // And it still works.
    program.say(&key, "say still here").await?;
    Ok(())
}
