//! Architecture rules: which crates a crate may depend on, and what only certain modules may do.
//!
//! ARCHITECTURE.md describes the rules; these tests enforce them.

#![expect(clippy::unwrap_used, reason = "test helpers outside of test functions")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// Names in `[dependencies]` of a crate's manifest.
fn dependencies(folder: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(root().join(folder).join("Cargo.toml")).unwrap();
    let manifest: toml::Table = text.parse().unwrap();
    manifest["dependencies"]
        .as_table()
        .unwrap()
        .keys()
        .cloned()
        .collect()
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

/// Files that contain the text, except `*.test.*` files.
fn users_of(text: &str, folder: &str, ending: &str) -> Vec<String> {
    let all = files(folder, ending).into_iter();
    all.filter(|(name, content)| !name.contains(".test.") && content.contains(text))
        .map(|(name, _)| name)
        .collect()
}

#[test]
fn crates_depend_only_on_the_crates_below_them() {
    let workspace_crates = [
        "agent", "wire", "hub", "render", "liminal", "testkit", "xtask",
    ];
    let internal_dependencies = |folder: &str| -> Vec<String> {
        dependencies(folder)
            .into_iter()
            .filter(|name| workspace_crates.contains(&name.as_str()))
            .collect()
    };
    assert_eq!(internal_dependencies("crates/agent"), Vec::<String>::new());
    assert_eq!(internal_dependencies("crates/wire"), Vec::<String>::new());
    assert_eq!(internal_dependencies("crates/hub"), ["wire"]);
    assert_eq!(internal_dependencies("crates/render"), Vec::<String>::new());
    assert_eq!(
        internal_dependencies("crates/liminal"),
        ["agent", "hub", "render", "wire"]
    );
    assert_eq!(
        internal_dependencies("crates/testkit"),
        Vec::<String>::new()
    );
    assert_eq!(internal_dependencies("xtask"), Vec::<String>::new());
}

#[test]
fn wire_depends_only_on_serialization_and_schema_crates() {
    assert_eq!(
        dependencies("crates/wire").into_iter().collect::<Vec<_>>(),
        ["schemars", "serde", "serde_json", "ts-rs"]
    );
}

#[test]
fn render_uses_no_io_clock_process_or_thread() {
    assert_eq!(
        dependencies("crates/render")
            .into_iter()
            .collect::<Vec<_>>(),
        ["memchr", "pulldown-cmark"]
    );
    for api in [
        "std::fs",
        "std::net",
        "std::time",
        "std::process",
        "std::thread",
    ] {
        let users = users_of(api, "crates/render/src", ".rs");
        assert_eq!(users, Vec::<String>::new(), "render must not use {api}");
    }
}

#[test]
fn only_the_binary_depends_on_http_crates() {
    for folder in [
        "crates/agent",
        "crates/wire",
        "crates/hub",
        "crates/render",
        "xtask",
    ] {
        for name in ["axum", "hyper", "hyper-util", "tower-http"] {
            assert!(
                !dependencies(folder).contains(name),
                "{folder} must not depend on {name}"
            );
        }
    }
}

#[test]
fn only_the_agent_crate_depends_on_http_client_and_tls_crates() {
    for folder in ["crates/wire", "crates/hub", "crates/liminal", "xtask"] {
        for name in ["genai", "reqwest", "rustls"] {
            assert!(
                !dependencies(folder).contains(name),
                "{folder} must not depend on {name}"
            );
        }
    }
}

#[test]
fn only_agent_code_uses_the_acp_crate() {
    let users = users_of("agent_client_protocol", "crates", ".rs");
    let inside = |name: &String| {
        name.starts_with("crates/hub/src/agents/")
            || name.starts_with("crates/agent/")
            || name.starts_with("crates/liminal/tests/agent_stdio/")
            || name.ends_with("/house.rs")
            || name.starts_with("crates/bench/")
    };
    assert!(
        users.iter().all(inside),
        "only agent code may use the ACP crate, found in {users:?}"
    );
}

#[test]
fn workspace_has_only_the_listed_crates() {
    let folders = std::fs::read_dir(root().join("crates")).unwrap();
    let names: BTreeSet<_> = folders
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(
        names.into_iter().collect::<Vec<_>>(),
        [
            "agent", "bench", "hub", "liminal", "render", "testkit", "wire"
        ]
    );
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
    allowed.retain(|name| !name.ends_with("/house.rs"));
    assert_eq!(allowed, ["crates/liminal/src/allocator.rs"]);
    for folder in [
        "crates/agent",
        "crates/wire",
        "crates/hub",
        "crates/render",
        "crates/liminal",
        "crates/testkit",
        "xtask",
    ] {
        let text = std::fs::read_to_string(root().join(folder).join("Cargo.toml")).unwrap();
        assert!(
            text.contains("[lints]\nworkspace = true"),
            "{folder} opts out of the workspace lints"
        );
    }
}
