//! How files of older versions become files of this one.
//!
//! One list per file. The function at index `n` turns version `n` into version `n + 1`, so the
//! length of the list is the current version. They work on JSON, not on today's types, so they stay
//! right when the types move on.

use serde_json::{Value, json};

pub type Migration = fn(Value) -> Result<Value, String>;

pub const PROJECTS: &[Migration] = &[wrap_bare_projects];
pub const SESSIONS: &[Migration] = &[no_older_sessions];

/// Version 0 was a bare list, from before files had a version.
fn wrap_bare_projects(old: Value) -> Result<Value, String> {
    match old {
        Value::Array(projects) => Ok(json!({ "projects": projects })),
        _ => Err("neither a version nor a list of projects".to_owned()),
    }
}

/// Sessions have had a version from the first day.
fn no_older_sessions(_: Value) -> Result<Value, String> {
    Err("it has no version".to_owned())
}
