//! The architecture as a test: which crate may use which, which module may use which, and who may do what.
//!
//! ARCHITECTURE.md describes the same.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests, outside of a test function"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// The names below `[dependencies]` of a crate.
fn dependencies(folder: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(root().join(folder).join("Cargo.toml")).unwrap();
    let manifest: toml::Table = text.parse().unwrap();
    let dependencies = manifest.get("dependencies");
    let names = dependencies
        .into_iter()
        .flat_map(|table| table.as_table().unwrap().keys());
    names.cloned().collect()
}

fn files(folder: &str, ending: &str) -> Vec<(String, String)> {
    fn walk(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, ending, found);
            } else if path.to_str().unwrap().ends_with(ending) {
                found.push(path);
            }
        }
    }
    let mut found = vec![];
    walk(&root().join(folder), ending, &mut found);
    let name = |path: &PathBuf| {
        path.strip_prefix(root())
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned()
    };
    found
        .iter()
        .map(|path| (name(path), std::fs::read_to_string(path).unwrap()))
        .collect()
}

/// The files that contain the text, tests aside.
fn users_of(text: &str, folder: &str, ending: &str) -> Vec<String> {
    let all = files(folder, ending).into_iter();
    all.filter(|(name, content)| !name.contains(".test.") && content.contains(text))
        .map(|(name, _)| name)
        .collect()
}

/// Each crate with those of ours that it may use.
const CRATES: [Rule; 16] = [
    ("acceptance", &[]),
    ("acp_lines", &[]),
    ("agent", &["acp_lines", "durable"]),
    (
        "agents",
        &[
            "acp_lines",
            "conversation",
            "durable",
            "sensitive_paths",
            "wire",
        ],
    ),
    (
        "bench",
        &[
            "agent",
            "agents",
            "conversation",
            "render",
            "testkit",
            "wire",
        ],
    ),
    ("conversation", &["wire"]),
    ("durable", &[]),
    (
        "hub",
        &["agents", "conversation", "durable", "store", "wire"],
    ),
    (
        "liminal",
        &[
            "agent",
            "agents",
            "conversation",
            "durable",
            "hub",
            "render",
            "store",
            "wire",
        ],
    ),
    ("render", &[]),
    ("sensitive_paths", &[]),
    ("store", &["conversation", "durable", "wire"]),
    ("testkit", &[]),
    ("wire", &[]),
    ("../xtask", &[]),
    ("../crates/hub/model", &[]),
];

#[test]
fn each_crate_uses_only_the_crates_that_the_table_allows() {
    for (name, allowed) in CRATES {
        let used: Vec<String> = dependencies(&format!("crates/{name}"))
            .into_iter()
            .filter(|used| CRATES.iter().any(|(ours, _)| ours == used))
            .collect();
        let unknown: Vec<&String> = used
            .iter()
            .filter(|used| !allowed.contains(&used.as_str()))
            .collect();
        assert!(unknown.is_empty(), "{name} must not use {unknown:?}");
    }
}

#[test]
fn every_crate_is_in_the_table() {
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let known = CRATES.iter().any(|(ours, _)| *ours == name);
        assert!(known, "{name} is not in the table of crates");
    }
}

/// A crate or module with those that it may use.
type Rule = (&'static str, &'static [&'static str]);

/// Each module of `hub` and `liminal` with the modules beside it that it may use.
const MODULES: [(&str, &[Rule]); 2] = [
    (
        "hub",
        &[
            ("cleaning", &["error"]),
            ("folders", &["error"]),
            ("projects", &["error", "events"]),
            ("session", &["error", "events", "stream"]),
            ("stream", &["events"]),
        ],
    ),
    (
        "liminal",
        &[
            ("assets", &["http"]),
            (
                "browser",
                &[
                    "admission",
                    "browser_keys",
                    "open_connections",
                    "http",
                    "token_bucket",
                    "socket",
                    "stop",
                    "strict_json",
                    "token",
                    "connection_limit",
                ],
            ),
            ("cli", &["config"]),
            ("client", &["cli", "config", "serve", "terminal", "token"]),
            ("config", &["cli"]),
            (
                "doctor",
                &["client", "config", "serve", "terminal", "token"],
            ),
            ("admission", &["browser_keys", "token"]),
            ("browser_keys", &["token"]),
            (
                "gateway",
                &[
                    "admission",
                    "browser_keys",
                    "open_connections",
                    "http",
                    "token_bucket",
                    "socket",
                    "stop",
                    "strict_json",
                    "token",
                    "connection_limit",
                ],
            ),
            ("connection_limit", &["peer_uid"]),
            (
                "http",
                &[
                    "assets",
                    "browser",
                    "browser_keys",
                    "admission",
                    "connection_limit",
                    "gateway",
                    "token_bucket",
                    "stop",
                ],
            ),
            ("log", &["terminal"]),
            (
                "serve",
                &[
                    "browser",
                    "browser_keys",
                    "config",
                    "admission",
                    "connection_limit",
                    "gateway",
                    "open_connections",
                    "http",
                    "open_browser",
                    "stop",
                    "token",
                ],
            ),
        ],
    ),
];

#[test]
fn each_module_uses_only_the_modules_that_the_table_allows() {
    for (name, allowed) in MODULES {
        let source = format!("crates/{name}/src/");
        let sources = files(&source, ".rs");
        let module = |path: &str| {
            let below = path.strip_prefix(&source).unwrap();
            let first = below.split('/').next().unwrap();
            first.trim_end_matches(".rs").to_owned()
        };
        let modules: BTreeSet<String> = sources.iter().map(|(path, _)| module(path)).collect();
        for (path, content) in &sources {
            let user = module(path);
            if ["lib", "main"].contains(&user.as_str()) {
                continue;
            }
            let rule = allowed.iter().find(|(of, _)| *of == user);
            let allowed = rule.map_or(&[][..], |(_, allowed)| allowed);
            for used in uses(content, !path[source.len()..].contains('/')) {
                let beside = modules.contains(&used) && used != user;
                assert!(
                    !beside || allowed.contains(&used.as_str()),
                    "{name}: {user} must not use {used} ({path})"
                );
            }
        }
    }
}

/// First names of the paths from the crate's root in a file, tests aside.
fn uses(content: &str, is_at_the_top: bool) -> BTreeSet<String> {
    let content = content.split("#[cfg(test)]\nmod tests").next().unwrap();
    let mut used = BTreeSet::new();
    let mut starts = vec!["crate::"];
    if is_at_the_top {
        starts.push("use super::");
    }
    for start in starts {
        for rest in content.split(start).skip(1) {
            let names = match rest.strip_prefix('{') {
                Some(group) => group.split('}').next().unwrap(),
                None => rest,
            };
            for name in names.split(',') {
                let name = name.trim_start();
                let end = name.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
                used.insert(name[..end.unwrap_or(name.len())].to_owned());
                if !rest.starts_with('{') {
                    break;
                }
            }
        }
    }
    used
}

#[test]
fn pure_crates_have_no_files_clocks_or_processes() {
    for folder in ["conversation", "sensitive_paths", "wire"] {
        for sign in [
            "std::fs",
            "std::net",
            "std::process",
            "std::thread",
            "::now()",
        ] {
            let users = users_of(sign, &format!("crates/{folder}/src"), ".rs");
            assert_eq!(users, Vec::<String>::new(), "{sign}");
        }
    }
}

#[test]
fn wire_depends_only_on_crates_that_describe_types() {
    assert_eq!(
        dependencies("crates/wire").into_iter().collect::<Vec<_>>(),
        ["schemars", "serde", "serde_json", "ts-rs"]
    );
}

#[test]
fn render_only_turns_text_into_html() {
    assert_eq!(
        dependencies("crates/render")
            .into_iter()
            .collect::<Vec<_>>(),
        ["memchr", "pulldown-cmark"]
    );
    for sign in [
        "std::fs",
        "std::net",
        "std::time",
        "std::process",
        "std::thread",
    ] {
        let users = users_of(sign, "crates/render/src", ".rs");
        assert_eq!(users, Vec::<String>::new(), "{sign}");
    }
}

#[test]
fn only_the_binary_and_test_crates_use_http_crates() {
    for (name, _) in CRATES {
        if ["bench", "liminal", "testkit"].contains(&name) {
            continue;
        }
        for http in ["axum", "hyper", "hyper-util", "tower-http"] {
            let uses = dependencies(&format!("crates/{name}")).contains(http);
            assert!(!uses, "{name} must not use {http}");
        }
    }
}

#[test]
fn only_the_built_in_agent_calls_other_servers() {
    for (name, _) in CRATES {
        for client in ["genai", "reqwest", "rustls"] {
            let uses = dependencies(&format!("crates/{name}")).contains(client);
            assert!(!uses || name == "agent", "{name} must not use {client}");
        }
    }
}

#[test]
fn only_crates_of_agents_use_the_agent_client_protocol() {
    let users = users_of("agent_client_protocol", "crates", ".rs");
    let inside = |name: &String| {
        name.starts_with("crates/agents/")
            || name.starts_with("crates/agent/")
            || name.starts_with("crates/acceptance/tests/it/agent_stdio/")
            || name.ends_with("/architecture.rs")
            || name.starts_with("crates/bench/")
    };
    assert!(users.iter().all(inside), "{users:?}");
}

#[test]
fn only_socket_js_and_boot_js_open_a_web_socket() {
    assert_eq!(
        users_of("new WebSocket(", "web", ".js"),
        ["web/shared/boot.js", "web/shell/socket.js"]
    );
}

#[test]
fn only_markup_js_turns_strings_into_elements() {
    for sink in [
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "setHTML",
        "eval(",
        "new Function",
    ] {
        let mut users = users_of(sink, "web", ".js");
        users.retain(|user| user != "web/portlet/markup.js" || sink != "innerHTML");
        assert_eq!(users, Vec::<String>::new(), "web/ must not use {sink}");
    }
}

#[test]
fn only_bridge_js_posts_messages_between_windows() {
    let bridges = ["web/portlet/bridge.js", "web/shell/bridge.js"];
    for call in ["postMessage(", "addEventListener('message'"] {
        let users = users_of(call, "web", ".js");
        let is_bridge = |user: &String| bridges.contains(&user.as_str());
        assert!(
            users.iter().all(is_bridge),
            "only bridge.js may use {call}, found in {users:?}"
        );
    }
}

#[test]
fn pages_import_from_each_other_only_through_shared() {
    for (name, content) in files("web", ".js") {
        let part = name.split('/').nth(1).unwrap();
        for other in ["shell", "login", "portlet"]
            .iter()
            .filter(|other| **other != part)
        {
            assert!(
                !content.contains(&format!("'../{other}/")),
                "{name} must not import from {other}/"
            );
        }
    }
}

#[test]
fn only_theme_css_contains_colours() {
    let colour = |line: &str| {
        line.contains("rgb(")
            || line.contains("hsl(")
            || line.contains(": #")
            || line.contains(" #")
    };
    // A selector by id, such as `#sidebar {`, is not a colour.
    let declares = |line: &&str| !line.trim_end().ends_with(['{', ',']);
    for (name, content) in files("web/styles", ".css") {
        let colours = content
            .lines()
            .filter(declares)
            .filter(|line| !line.contains("/*") && colour(line))
            .count();
        assert!(
            name.ends_with("theme.css") || colours == 0,
            "{name} contains a colour, which belongs in theme.css"
        );
    }
}

#[test]
fn architecture_md_names_every_top_level_folder() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    for entry in std::fs::read_dir(root()).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let hidden_or_generated =
            name.starts_with('.') || ["target", "node_modules"].contains(&name.as_str());
        if entry.path().is_dir() && !hidden_or_generated {
            assert!(
                text.contains(&format!("`{name}/")),
                "ARCHITECTURE.md does not name {name}/"
            );
        }
    }
}

#[test]
fn only_the_allocator_module_contains_unsafe_code() {
    let workspace = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    assert!(workspace.contains("unsafe_code = \"deny\""));
    let mut allowed = users_of("unsafe_code", "crates", ".rs");
    allowed.extend(users_of("unsafe_code", "xtask", ".rs"));
    allowed.retain(|name| !name.ends_with("/architecture.rs"));
    assert_eq!(allowed, ["crates/liminal/src/allocator.rs"]);
    for (name, _) in CRATES {
        if name.ends_with("model") {
            continue;
        }
        let folder = format!("crates/{name}");
        let text = std::fs::read_to_string(root().join(&folder).join("Cargo.toml")).unwrap();
        assert!(
            text.contains("[lints]\nworkspace = true"),
            "{folder} opts out of the workspace lints"
        );
    }
}
