//! Which part of a file's content runs something, for files that are mostly harmless. Pure.
//!
//! A change is sensitive if it adds such a part or changes one. Content that cannot be parsed counts as changed.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::git_config;

/// What in a file is compared before and after a change.
#[derive(Debug)]
pub(crate) enum Content {
    /// Every write is sensitive, even of the same content.
    Any,
    /// These fields of a JSON object, with dots between nested names.
    Json(&'static [&'static str]),
    /// The same in TOML.
    Toml(&'static [&'static str]),
    /// The whole text if it contains one of these words, in lower case.
    Words(&'static [&'static str]),
    /// The lines with one of these words, in lower case.
    Lines(&'static [&'static str]),
    /// Settings of git that run a program.
    GitConfig,
    /// Attributes of git that select a driver of its configuration.
    GitAttributes,
    /// The whole text if git takes it for the HEAD of a repository.
    GitHead,
}

impl Content {
    pub(crate) fn is_changed(&self, before: Option<&[u8]>, after: &[u8]) -> bool {
        if matches!(self, Self::Any) {
            return true;
        }
        if before == Some(after) {
            return false;
        }
        match self.parts(after) {
            // Git rejects it, too.
            None => !matches!(self, Self::GitConfig),
            Some(after) => {
                let before = before.and_then(|before| self.parts(before));
                !after.is_subset(&before.unwrap_or_default())
            }
        }
    }

    /// The parts that run something; `None` if the content cannot be parsed.
    fn parts(&self, content: &[u8]) -> Option<BTreeSet<String>> {
        let text = || {
            let text = str::from_utf8(content).ok()?;
            Some(text.trim_start_matches('\u{feff}'))
        };
        let whole = |is_there: bool| {
            let whole = is_there.then(|| String::from_utf8_lossy(content).into_owned());
            Some(whole.into_iter().collect())
        };
        match self {
            Self::Any => None,
            Self::Json(fields) => {
                let value: Value = serde_json::from_str(text()?).ok()?;
                value.is_object().then(|| parts_of(&value, fields))
            }
            Self::Toml(fields) => {
                let value: Value = toml::from_str(text()?).ok()?;
                Some(parts_of(&value, fields))
            }
            Self::Words(words) => {
                let text = String::from_utf8_lossy(content).to_lowercase();
                whole(words.iter().any(|word| text.contains(word)))
            }
            Self::Lines(words) => {
                let text = String::from_utf8_lossy(content);
                let has_word = |line: &&str| {
                    let line = line.to_lowercase();
                    words.iter().any(|word| line.contains(word))
                };
                Some(text.lines().filter(has_word).map(str::to_owned).collect())
            }
            Self::GitConfig => git_config::running_settings(content),
            Self::GitAttributes => Some(drivers(content)),
            Self::GitHead => {
                let start = content.trim_ascii_start();
                let hash = start.get(..40);
                let is_hash = hash.is_some_and(|hash| hash.iter().all(u8::is_ascii_hexdigit));
                whole(start.starts_with(b"ref:") || is_hash)
            }
        }
    }
}

/// The values of these fields; each entry of an object by itself, so that removing one is no change of another.
fn parts_of(value: &Value, fields: &[&str]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for field in fields {
        let mut names = field.split('.');
        match names.try_fold(value, |value, name| value.get(name)) {
            None => {}
            Some(Value::Object(entries)) => {
                let entry = |(name, value)| format!("{field}.{name}={value}");
                found.extend(entries.iter().map(entry));
            }
            Some(value) => drop(found.insert(format!("{field}={value}"))),
        }
    }
    found
}

/// Lines of a `.gitattributes` file that select a driver which only the configuration can define.
fn drivers(content: &[u8]) -> BTreeSet<String> {
    const MERGE: [&str; 3] = ["binary", "text", "union"];
    const DIFF: [&str; 28] = [
        "ada",
        "bash",
        "bibtex",
        "cpp",
        "csharp",
        "css",
        "dts",
        "elixir",
        "fortran",
        "fountain",
        "golang",
        "html",
        "ini",
        "java",
        "kotlin",
        "markdown",
        "matlab",
        "objc",
        "pascal",
        "perl",
        "php",
        "python",
        "r",
        "ruby",
        "rust",
        "scheme",
        "tex",
        "astextplain",
    ];
    let is_driver = |attribute: &str| match attribute.split_once('=') {
        // Git LFS, which the user has installed.
        Some((_, "lfs")) => false,
        Some(("filter", _)) => true,
        Some(("diff", name)) => !DIFF.contains(&name),
        Some(("merge", name)) => !MERGE.contains(&name),
        _ => false,
    };
    let text = String::from_utf8_lossy(content);
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.starts_with('#'));
    lines
        .filter(|line| line.split_whitespace().any(is_driver))
        .map(str::to_owned)
        .collect()
}
