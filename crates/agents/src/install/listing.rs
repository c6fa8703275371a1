//! The list of agents: the shipped one, and a newer one fetched on request.
//!
//! Both have the format of the public ACP registry, with the additional fields `program` and `node`. They are read
//! strictly, because their values become command lines: an agent with an unexpected value is left out, and reported
//! with the reason.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};

/// The default address of the newer list.
pub const REGISTRY_URL: &str =
    "https://cdn.agentclientprotocol.com/registry/v1/latest/registry.json";
pub(super) const LIST_BYTES_MAX: usize = 1024 * 1024;
const AGENTS_MAX: usize = 500;
const NAME_MAX: usize = 60;
const ABOUT_MAX: usize = 200;
const WORDS_MAX: usize = 20;
const WORD_MAX: usize = 200;
const SHIPPED: &str = include_str!("shipped.json");

/// A listed agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    pub id: String,
    pub name: String,
    pub about: String,
    pub version: String,
    /// Sources from which it can be installed, the preferred first; never empty.
    pub(super) sources: Vec<Source>,
    /// Its program on `PATH`, if that name is unambiguous.
    pub program: Option<String>,
    /// The range of Node versions it requires, if known.
    pub(super) node: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    Npm(Package),
    Uv(Package),
    Binary(Binary),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Package {
    /// The package name without version.
    pub(super) name: String,
    /// The package as passed to the installer: with its version, if the list has one.
    pub(super) spec: String,
    pub(super) args: Vec<String>,
    pub(super) env: Vec<(String, String)>,
}

/// An archive or a single program for this platform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Binary {
    pub(super) url: String,
    pub(super) sha256: Option<String>,
    /// The program's path in the unpacked archive, without `.` and `..`.
    pub(super) program: String,
    pub(super) args: Vec<String>,
    pub(super) env: Vec<(String, String)>,
}

/// The result of fetching a newer list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refreshed {
    pub agents: usize,
    /// The agents left out, each with the reason.
    pub left_out: Vec<String>,
}

impl Source {
    pub(super) fn args(&self) -> &[String] {
        match self {
            Self::Npm(package) | Self::Uv(package) => &package.args,
            Self::Binary(binary) => &binary.args,
        }
    }

    fn env(&self) -> &[(String, String)] {
        match self {
            Self::Npm(package) | Self::Uv(package) => &package.env,
            Self::Binary(binary) => &binary.env,
        }
    }
}

impl Listed {
    /// Its id in the catalog.
    pub(crate) fn our_id(&self) -> &str {
        our_id(&self.id)
    }

    pub(crate) fn node(&self) -> Option<&str> {
        self.node.as_deref()
    }

    /// The arguments it is started with.
    pub(crate) fn args(&self) -> Vec<String> {
        self.sources
            .first()
            .map_or(vec![], |source| source.args().to_owned())
    }

    pub(crate) fn env(&self) -> Vec<(String, String)> {
        self.sources
            .first()
            .map_or(vec![], |source| source.env().to_owned())
    }

    /// An abbreviation of two letters.
    pub(crate) fn badge(&self) -> String {
        let words = self.name.split([' ', '-']).filter(|word| !word.is_empty());
        let initials: String = words
            .filter_map(|word| word.chars().next())
            .take(2)
            .collect();
        let badge = match initials.chars().count() {
            2 => initials,
            _ => self.name.chars().take(2).collect(),
        };
        badge.to_uppercase()
    }
}

/// The catalog id of an agent, which differs from its id in the registry for the built-in ones.
pub(super) fn our_id(id: &str) -> &str {
    match id {
        "claude-acp" | "claude-code-acp" | "claude-agent-acp" => "claude-code",
        "codex-acp" => "codex",
        other => other,
    }
}

pub(super) fn shipped() -> Vec<Listed> {
    read(SHIPPED).map(|(agents, _)| agents).unwrap_or_default()
}

#[derive(Deserialize)]
struct RawList {
    agents: Vec<serde_json::Value>,
}

#[derive(Deserialize, Serialize)]
struct RawAgent {
    id: String,
    name: String,
    version: String,
    #[serde(default)]
    description: String,
    distribution: RawDistribution,
    #[serde(default)]
    program: Option<String>,
    #[serde(default)]
    node: Option<String>,
}

#[derive(Deserialize, Serialize, Default)]
struct RawDistribution {
    #[serde(default)]
    npx: Option<RawPackage>,
    #[serde(default)]
    uvx: Option<RawPackage>,
    #[serde(default)]
    binary: BTreeMap<String, RawBinary>,
}

#[derive(Deserialize, Serialize)]
struct RawPackage {
    package: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
}

#[derive(Deserialize, Serialize)]
struct RawBinary {
    archive: String,
    #[serde(default)]
    sha256: Option<String>,
    cmd: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
}

/// The agents of a list, and those left out, each with the reason. An error rejects the whole list.
pub(super) fn read(text: &str) -> Result<(Vec<Listed>, Vec<String>), String> {
    if text.len() > LIST_BYTES_MAX {
        let limit = LIST_BYTES_MAX / 1024;
        return Err(format!("it is longer than {limit} KiB"));
    }
    let list: RawList = serde_json::from_str(text)
        .map_err(|error| format!("it is not a list of agents: {error}"))?;
    if list.agents.len() > AGENTS_MAX {
        return Err(format!("it has more than {AGENTS_MAX} agents"));
    }
    let mut agents: Vec<Listed> = vec![];
    let mut left_out = vec![];
    let mut seen = HashSet::new();
    for raw in list.agents {
        let label: String = raw["id"]
            .as_str()
            .map_or("an agent without an id".to_owned(), shown);
        match agent(raw) {
            Ok(listed) if seen.insert(our_id(&listed.id).to_owned()) => agents.push(listed),
            Ok(_) => left_out.push(format!("{label}: it is listed twice")),
            Err(reason) => left_out.push(format!("{label}: {reason}")),
        }
    }
    if agents.is_empty() {
        return Err("it has no agent that can be installed".to_owned());
    }
    Ok((agents, left_out))
}

/// An untrusted text for display, shortened and without control characters.
fn shown(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_control())
        .take(NAME_MAX)
        .collect()
}

fn agent(raw: serde_json::Value) -> Result<Listed, String> {
    let raw: RawAgent = serde_json::from_value(raw).map_err(|error| shown(&error.to_string()))?;
    let reserved = ["liminal", "claude-code", "codex"];
    if !is_id(&raw.id) || reserved.contains(&raw.id.as_str()) {
        return Err("its id is invalid or reserved".to_owned());
    }
    let name = raw.name.trim().to_owned();
    if name.is_empty() || name.chars().count() > NAME_MAX || name.contains(char::is_control) {
        return Err("its name is empty, too long or has control characters".to_owned());
    }
    if !is_version(&raw.version) {
        return Err("its version is invalid".to_owned());
    }
    let distribution = raw.distribution;
    let mut sources = vec![];
    if let Some(npx) = distribution.npx {
        sources.push(Source::Npm(package(npx, npm_name)?));
    }
    if let Some(uvx) = distribution.uvx {
        sources.push(Source::Uv(package(uvx, python_name)?));
    }
    let mut binaries = distribution.binary;
    if let Some(ours) = binaries.remove(&platform()) {
        sources.push(Source::Binary(binary(ours)?));
    }
    if sources.is_empty() {
        return Err(format!("it is not available for {}", platform()));
    }
    if raw
        .program
        .as_deref()
        .is_some_and(|program| !is_plain(program))
    {
        return Err("the path of its program is invalid".to_owned());
    }
    let about = raw.description.chars().filter(|c| !c.is_control());
    Ok(Listed {
        about: about.take(ABOUT_MAX).collect(),
        id: raw.id,
        name,
        version: raw.version,
        sources,
        program: raw.program,
        node: raw.node.filter(|range| range.len() <= NAME_MAX),
    })
}

/// This platform, as the registry names it.
fn platform() -> String {
    let system = match std::env::consts::OS {
        "macos" => "darwin",
        other => other,
    };
    format!("{system}-{}", std::env::consts::ARCH)
}

fn is_id(id: &str) -> bool {
    let rest = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    id.starts_with(|c: char| c.is_ascii_lowercase()) && id.len() <= 40 && id.chars().all(rest)
}

/// Whether an installer and a shell can read the word only as a plain word, not as an option, path or URL.
fn is_plain(word: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-+".contains(c);
    word.starts_with(|c: char| c.is_ascii_alphanumeric())
        && word.len() <= NAME_MAX
        && word.chars().all(allowed)
}

fn is_version(version: &str) -> bool {
    is_plain(version)
}

fn package(raw: RawPackage, name_of: fn(&str) -> Option<String>) -> Result<Package, String> {
    let name = name_of(&raw.package).ok_or("its package cannot be used")?;
    Ok(Package {
        name,
        spec: raw.package,
        args: words(raw.args)?,
        env: variables(raw.env)?,
    })
}

/// `name`, `@scope/name`, each with or without `@version`.
fn npm_name(spec: &str) -> Option<String> {
    let (scope, rest) = match spec.strip_prefix('@') {
        Some(scoped) => {
            let (scope, rest) = scoped.split_once('/')?;
            (Some(scope), rest)
        }
        None => (None, spec),
    };
    let (name, version) = match rest.split_once('@') {
        Some((name, version)) => (name, Some(version)),
        None => (rest, None),
    };
    let fits = scope.is_none_or(is_plain) && is_plain(name) && version.is_none_or(is_version);
    fits.then(|| match scope {
        Some(scope) => format!("@{scope}/{name}"),
        None => name.to_owned(),
    })
}

/// `name`, with or without `==version` or `@version`.
fn python_name(spec: &str) -> Option<String> {
    let parts = spec.split_once("==").or_else(|| spec.split_once('@'));
    let (name, version) = parts.map_or((spec, None), |(name, version)| (name, Some(version)));
    (is_plain(name) && version.is_none_or(is_version)).then(|| name.to_owned())
}

fn words(args: Vec<String>) -> Result<Vec<String>, String> {
    let fits = |word: &String| word.len() <= WORD_MAX && !word.contains(char::is_control);
    match args.len() <= WORDS_MAX && args.iter().all(fits) {
        true => Ok(args),
        false => Err("its arguments are invalid".to_owned()),
    }
}

/// The environment variables of a list entry. Variables that change which program runs, or where, are rejected.
fn variables(env: BTreeMap<String, String>) -> Result<Vec<(String, String)>, String> {
    let ours = |name: &str| {
        let prefixes = ["LD_", "DYLD_", "LIMINAL_", "NPM_", "UV_", "PYTHON"];
        ["PATH", "HOME", "NODE_OPTIONS", "BASH_ENV", "ENV"].contains(&name)
            || prefixes.iter().any(|prefix| name.starts_with(prefix))
    };
    let fits = |(name, value): (&String, &String)| {
        let rest = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        name.starts_with(|c: char| c.is_ascii_uppercase())
            && name.chars().all(rest)
            && name.len() <= NAME_MAX
            && !ours(name)
            && value.len() <= WORD_MAX
            && !value.contains(char::is_control)
    };
    match env.len() <= WORDS_MAX && env.iter().all(fits) {
        true => Ok(env.into_iter().collect()),
        false => Err("its environment variables are invalid or not allowed".to_owned()),
    }
}

fn binary(raw: RawBinary) -> Result<Binary, String> {
    if !is_https_url(&raw.archive) {
        return Err("its URL is invalid or does not use https".to_owned());
    }
    let hex = |sum: &String| sum.len() == 64 && sum.chars().all(|c| c.is_ascii_hexdigit());
    if raw.sha256.as_ref().is_some_and(|sum| !hex(sum)) {
        return Err("its SHA-256 is invalid".to_owned());
    }
    let program = raw.cmd.strip_prefix("./").unwrap_or(&raw.cmd);
    if !program.split('/').all(is_plain) {
        return Err("the path of its program is invalid".to_owned());
    }
    Ok(Binary {
        url: raw.archive,
        sha256: raw.sha256.map(|sum| sum.to_ascii_lowercase()),
        program: program.to_owned(),
        args: words(raw.args)?,
        env: variables(raw.env)?,
    })
}

/// Whether the URL uses https, has a host, and has no characters that a program could interpret differently.
pub(super) fn is_https_url(url: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-._~/:%+=?&,".contains(c);
    let host = |rest: &str| rest.starts_with(|c: char| c.is_ascii_alphanumeric());
    url.strip_prefix("https://").is_some_and(host) && url.len() <= 500 && url.chars().all(allowed)
}

/// The list as it is saved, without unknown fields.
pub(super) fn write(agents: &[Listed]) -> String {
    let package = |package: &Package| RawPackage {
        package: package.spec.clone(),
        args: package.args.clone(),
        env: package.env.iter().cloned().collect(),
    };
    let raw = |listed: &Listed| {
        let mut distribution = RawDistribution::default();
        for source in &listed.sources {
            match source {
                Source::Npm(npm) => distribution.npx = Some(package(npm)),
                Source::Uv(uv) => distribution.uvx = Some(package(uv)),
                Source::Binary(binary) => {
                    let raw = RawBinary {
                        archive: binary.url.clone(),
                        sha256: binary.sha256.clone(),
                        cmd: binary.program.clone(),
                        args: binary.args.clone(),
                        env: binary.env.iter().cloned().collect(),
                    };
                    distribution.binary.insert(platform(), raw);
                }
            }
        }
        RawAgent {
            id: listed.id.clone(),
            name: listed.name.clone(),
            version: listed.version.clone(),
            description: listed.about.clone(),
            distribution,
            program: listed.program.clone(),
            node: listed.node.clone(),
        }
    };
    let agents: Vec<RawAgent> = agents.iter().map(raw).collect();
    let list = serde_json::json!({"version": "1.0.0", "agents": agents});
    format!("{list:#}\n")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn npx(id: &str, package: &str) -> Value {
        json!({"id": id, "name": "One", "version": "1.0.0", "description": "d",
               "distribution": {"npx": {"package": package}}})
    }

    fn list(agents: Value) -> Result<(Vec<Listed>, Vec<String>), String> {
        read(&json!({"version": "1.0.0", "agents": agents}).to_string())
    }

    #[test]
    fn shipped_list_is_read_completely_and_survives_saving() {
        let (agents, left_out) = read(SHIPPED).unwrap();
        // Only agents for other platforms may be left out.
        assert!(
            left_out
                .iter()
                .all(|one| one.contains("it is not available for"))
        );
        assert!(agents.len() >= 13, "{}", agents.len());
        assert_eq!(read(&write(&agents)).unwrap().0, agents);
    }

    #[test]
    fn package_that_could_be_an_option_a_path_or_a_url_is_left_out() {
        let hostile = [
            "--global",
            "-g",
            "../up",
            "/etc",
            "a b",
            "a;b",
            "file:x",
            "git+https://x",
            "@/x",
            "@s/",
            "@-s/x",
            "a@-1",
            "a@file:../x",
            "npm:other@1",
            "a@",
            "",
        ];
        for package in hostile {
            let good = npx("good", "good@1.0.0");
            let (agents, left_out) = list(json!([good, npx("bad", package)])).unwrap();
            assert_eq!(agents.len(), 1, "{package}");
            assert_eq!(left_out, ["bad: its package cannot be used"], "{package}");
        }
        for package in ["a", "a@1.2.3", "@s/a", "@s/a@1.0.0-beta.1+x"] {
            assert!(
                list(json!([npx("good", package)])).unwrap().1.is_empty(),
                "{package}"
            );
        }
    }

    #[test]
    fn reserved_or_path_like_id_is_left_out() {
        for id in [
            "liminal",
            "codex",
            "claude-code",
            "A",
            "1a",
            "-a",
            "a/b",
            "..",
            "a.b",
            "",
        ] {
            let read = list(json!([npx("good", "good"), npx(id, "x")])).unwrap();
            assert_eq!(read.0.len(), 1, "{id}");
        }
        let twice = list(json!([npx("a", "x"), npx("a", "y")])).unwrap();
        assert_eq!(twice.1, ["a: it is listed twice"]);
    }

    #[test]
    fn archive_without_https_or_with_a_program_outside_is_left_out() {
        let of = |archive: &str, cmd: &str| {
            let target = json!({"archive": archive, "cmd": cmd});
            let agent = json!({"id": "a", "name": "A", "version": "1.0.0",
                "distribution": {"binary": {platform(): target}}});
            list(json!([agent])).is_ok()
        };
        assert!(of("https://example.com/a.tar.gz", "./bin/a"));
        for archive in [
            "http://example.com/a",
            "file:///a",
            "https://",
            "https://-x",
            "https://e.com/a b",
            "ftp://e",
        ] {
            assert!(!of(archive, "./a"), "{archive}");
        }
        for cmd in [
            "/bin/sh",
            "../a",
            "a/../../b",
            "./../a",
            "a\\b",
            "-a",
            "",
            "a//b",
        ] {
            assert!(!of("https://example.com/a.tar.gz", cmd), "{cmd}");
        }
    }

    #[test]
    fn variables_that_change_the_program_run_are_rejected() {
        for name in [
            "PATH",
            "LD_PRELOAD",
            "NODE_OPTIONS",
            "LIMINAL_TOKEN",
            "a",
            "A-B",
            "",
        ] {
            let mut agent = npx("a", "a");
            agent["distribution"]["npx"]["env"] = json!({name: "x"});
            assert!(list(json!([agent])).is_err(), "{name}");
        }
    }

    #[test]
    fn malformed_or_too_long_list_is_rejected_as_a_whole() {
        for text in ["", "[]", "{}", r#"{"agents": 1}"#, r#"{"agents": []}"#] {
            assert!(read(text).is_err(), "{text}");
        }
        let many: Vec<Value> = (0..501).map(|n| npx(&format!("a{n}"), "x")).collect();
        assert!(list(json!(many)).unwrap_err().contains("more than 500"));
        let long = format!(
            "{{\"agents\": [], \"x\": \"{}\"}}",
            "x".repeat(LIST_BYTES_MAX)
        );
        assert!(read(&long).unwrap_err().contains("longer than"));
    }
}
