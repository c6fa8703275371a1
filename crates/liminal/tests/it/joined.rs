//! Tests of the build step that joins a page's module and its imports into one file.

#[path = "../../build/join.rs"]
mod join;

use std::path::Path;

use anyhow::Result;

fn joined(files: &[(&str, &str)]) -> Result<String> {
    let web = tempfile::tempdir()?;
    for (name, source) in files {
        let path = web.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(web.path()))?;
        std::fs::write(path, source)?;
    }
    Ok(join::join(web.path(), files[0].0))
}

#[test]
fn joined_script_has_each_module_once_after_its_imports() -> Result<()> {
    let text = joined(&[
        (
            "shell/main.js",
            "import { h, part as piece } from '../shared/dom.js';\nimport './socket.js';\nimport * as tabs from './tabs.js';\nh(piece, tabs);\n",
        ),
        (
            "shell/socket.js",
            "import {\n  h,\n} from '../shared/dom.js';\nh();\n",
        ),
        (
            "shell/tabs.js",
            "export const KEY = 'k';\nexport async function open() {}\n",
        ),
        (
            "shared/dom.js",
            "/** Not this: import { x } from 'y'; */\nexport function h() {}\nexport class Part {}\n",
        ),
    ])?;
    insta::assert_snapshot!(text);
    Ok(())
}

#[test]
fn comments_on_lines_of_their_own_are_left_out() -> Result<()> {
    let source = "/** One\n * two. */\nexport const A = 'http://x'; // kept\n  // gone\n  /* gone */\nf(A); /* kept */\n/** kept */ (g());\n";
    let text = joined(&[("a.js", "import { A } from './b.js';\n"), ("b.js", source)])?;
    assert!(
        text.contains("const A = 'http://x'; // kept\nf(A); /* kept */\n/** kept */ (g());\n"),
        "{text}"
    );
    assert!(!text.contains("gone") && !text.contains("two"), "{text}");
    Ok(())
}

#[test]
#[should_panic(expected = "a.js: import cycle")]
fn circular_import_fails_the_build() {
    let files = [
        ("a.js", "import './b.js';\n"),
        ("b.js", "import './a.js';\n"),
    ];
    drop(joined(&files));
}

#[test]
#[should_panic(expected = "unsupported form of export: default function f() {}")]
fn unsupported_export_form_fails_the_build() {
    drop(joined(&[("a.js", "export default function f() {}\n")]));
}

#[test]
#[should_panic(expected = "unsupported form of import: import f from './b.js';")]
fn unsupported_import_form_fails_the_build() {
    drop(joined(&[
        ("a.js", "import f from './b.js';\n"),
        ("b.js", ""),
    ]));
}

#[test]
fn joined_pages_contain_no_import_or_export() {
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web");
    for entry in ["login/login.js", "portlet/main.js", "shell/main.js"] {
        let text = join::join(&web, entry);
        let left = |line: &&str| line.starts_with("import ") || line.starts_with("export ");
        assert_eq!(text.lines().find(left), None, "{entry}");
    }
}
