//! Migrations of files from older versions.
//!
//! One list per file. The function at index `n` converts version `n` to version `n + 1`, so the
//! length of the list is the current version. Migrations work on JSON, not on the current types, so
//! they stay correct when the types change.

use serde_json::{Value, json};

/// Converts a file to the next version, or says why that is not possible.
pub type Migration = fn(Value) -> Result<Value, String>;

/// Migrations of `projects.json`.
pub const PROJECTS: &[Migration] = &[wrap_bare_projects];
/// Migrations of `sessions.json`.
pub const SESSIONS: &[Migration] = &[no_version_0];
/// Migrations of `browsers.json`.
pub const BROWSERS: &[Migration] = &[no_version_0];

/// Version 0 was a bare list without a version.
fn wrap_bare_projects(old: Value) -> Result<Value, String> {
    match old {
        Value::Array(projects) => Ok(json!({ "projects": projects })),
        _ => Err("neither a version nor a list of projects".to_owned()),
    }
}

/// Rejects version 0, which never existed for these files.
fn no_version_0(_: Value) -> Result<Value, String> {
    Err("it has no version".to_owned())
}
