//! Tests of syntax highlighting: tokens have the right class, and every character of the code is kept.

use proptest::prelude::*;
use render::{code_lines, html, visible};

use crate::texts;
use crate::tokens::visible_text;

const LANGUAGES: &[&str] = &[
    "rust",
    "python",
    "js",
    "tsx",
    "go",
    "java",
    "kotlin",
    "c",
    "cpp",
    "cs",
    "objc",
    "swift",
    "ruby",
    "php",
    "perl",
    "lua",
    "r",
    "julia",
    "scala",
    "groovy",
    "dart",
    "elixir",
    "erlang",
    "haskell",
    "ocaml",
    "fsharp",
    "clojure",
    "lisp",
    "zig",
    "nim",
    "sh",
    "powershell",
    "bat",
    "sql",
    "html",
    "xml",
    "vue",
    "css",
    "scss",
    "json",
    "yaml",
    "toml",
    "ini",
    "md",
    "diff",
    "dockerfile",
    "makefile",
    "cmake",
    "graphql",
    "proto",
    "tf",
    "nix",
    "latex",
    "vim",
    "sol",
    "asm",
    "matlab",
    "vb",
    "pascal",
    "nginx",
    "unheard-of",
    "",
];

fn highlighted(language: &str, line: &str) -> String {
    code_lines(language, line).concat()
}

#[test]
fn common_tokens_get_their_class() {
    let cases = [
        (
            "rust",
            "let x: u8 = 1; // c",
            r#"<span class="k">let</span> x: <span class="t">u8</span> = <span class="n">1</span>; <span class="c">// c</span>"#,
        ),
        (
            "rust",
            "&'a str 'x' r#\"a\"b\"#",
            r#"&amp;<span class="v">'a</span> <span class="t">str</span> <span class="s">'x'</span> <span class="s">r#&quot;</span><span class="s">a&quot;b&quot;#</span>"#,
        ),
        ("py", "@dec", r#"<span class="m">@dec</span>"#),
        (
            "py",
            "def f(self): return f\"a{b}\"",
            r#"<span class="k">def</span> <span class="f">f</span>(<span class="n">self</span>): <span class="k">return</span> f<span class="s">&quot;a{b}&quot;</span>"#,
        ),
        (
            "json",
            r#"{"a": "b", "c": -1.5e-3}"#,
            r#"{<span class="p">&quot;a&quot;</span>: <span class="s">&quot;b&quot;</span>, <span class="p">&quot;c&quot;</span>: -<span class="n">1.5e-3</span>}"#,
        ),
        (
            "html",
            "<a href=\"x\">y</a>",
            r#"<span class="g">&lt;a</span> <span class="p">href</span>=<span class="s">&quot;x&quot;</span><span class="g">&gt;</span>y<span class="g">&lt;/a</span><span class="g">&gt;</span>"#,
        ),
        (
            "yaml",
            "- key: true # c",
            r#"<span class="k">-</span> <span class="p">key</span>: <span class="n">true</span> <span class="c"># c</span>"#,
        ),
        ("toml", "[a.b]", r#"<span class="h">[a.b]</span>"#),
        (
            "sh",
            "echo \"$x\" # y",
            r#"<span class="k">echo</span> <span class="s">&quot;$x&quot;</span> <span class="c"># y</span>"#,
        ),
        (
            "sql",
            "SELECT 'a' -- b",
            r#"<span class="k">SELECT</span> <span class="s">'a'</span> <span class="c">-- b</span>"#,
        ),
        ("diff", "+a", r#"<span class="i">+a</span>"#),
        (
            "c",
            "#include <a.h>",
            r#"<span class="m">#include</span> <span class="s">&lt;a.h&gt;</span>"#,
        ),
        ("js", "x = a / b / c", "x = a / b / c"),
        (
            "js",
            "x.match(/[/]\"/g)",
            r#"x.<span class="f">match</span>(<span class="s">/[/]&quot;/g</span>)"#,
        ),
        (
            "js",
            r"'a\'b' + 'c\\' + d",
            r#"<span class="s">'a\'b'</span> + <span class="s">'c\\'</span> + d"#,
        ),
        ("unheard-of", "let x", "let x"),
    ];
    for (language, line, wanted) in cases {
        assert_eq!(highlighted(language, line), wanted, "{language}");
    }
}

/// One line of each common language with a word and the class it must get.
#[test]
fn common_languages_are_highlighted() {
    let lines = [
        ("rust", "fn main() {}", "k", "fn"),
        ("python", "import os", "k", "import"),
        ("javascript", "const a = 1", "k", "const"),
        ("typescript", "interface A {}", "k", "interface"),
        ("jsx", "return a", "k", "return"),
        ("tsx", "export type A = B", "k", "export"),
        ("go", "func main() {}", "k", "func"),
        ("java", "public class A {}", "k", "public"),
        ("kotlin", "fun main() {}", "k", "fun"),
        ("c", "return 1;", "k", "return"),
        ("cpp", "namespace a {}", "k", "namespace"),
        ("csharp", "using System;", "k", "using"),
        ("objc", "@interface A", "m", "@interface"),
        ("swift", "guard let a", "k", "guard"),
        ("ruby", "def a", "k", "def"),
        ("php", "function a() {}", "k", "function"),
        ("perl", "my $a;", "k", "my"),
        ("lua", "local a", "k", "local"),
        ("r", "function(a) 1", "k", "function"),
        ("julia", "function a() end", "k", "function"),
        ("scala", "def a = 1", "k", "def"),
        ("groovy", "def a = 1", "k", "def"),
        ("dart", "class A {}", "k", "class"),
        ("elixir", "defmodule A do", "k", "defmodule"),
        ("erlang", "case A of", "k", "case"),
        ("haskell", "module A where", "k", "module"),
        ("ocaml", "let a = 1", "k", "let"),
        ("fsharp", "let a = 1", "k", "let"),
        ("clojure", "(defn a [])", "k", "defn"),
        ("lisp", "(defun a ())", "k", "defun"),
        ("zig", "const a = 1;", "k", "const"),
        ("nim", "proc a() =", "k", "proc"),
        ("bash", "if true; then", "k", "if"),
        ("powershell", "function A {}", "k", "function"),
        ("bat", "echo a", "k", "echo"),
        ("sql", "SELECT 1", "k", "SELECT"),
        ("html", "<a>", "g", "&lt;a"),
        ("xml", "<a>", "g", "&lt;a"),
        ("vue", "<a>", "g", "&lt;a"),
        ("css", "a { color: red; }", "p", "color"),
        ("scss", "$a: 1px;", "v", "$a"),
        ("json", "{\"a\": 1}", "p", "&quot;a&quot;"),
        ("yaml", "a: 1", "p", "a"),
        ("toml", "a = 1", "p", "a"),
        ("ini", "[a]", "h", "[a]"),
        ("markdown", "# a", "h", "# a"),
        ("diff", "-a", "d", "-a"),
        ("dockerfile", "FROM a", "k", "FROM"),
        ("makefile", "include a", "k", "include"),
        ("cmake", "if(A)", "k", "if"),
        ("graphql", "query A", "k", "query"),
        ("protobuf", "message A {}", "k", "message"),
        ("terraform", "resource \"a\"", "k", "resource"),
        ("nix", "let a = 1; in a", "k", "let"),
        ("latex", "\\% \\begin{a}", "k", "\\begin"),
        ("vim", "set a", "k", "set"),
        ("solidity", "contract A {}", "k", "contract"),
        ("asm", "mov eax, 1", "n", "1"),
        ("matlab", "function a", "k", "function"),
        ("vb", "Dim a", "k", "Dim"),
        ("pascal", "begin end", "k", "begin"),
        ("nginx", "server {", "k", "server"),
    ];
    assert!(lines.len() >= 40);
    let mut missing = vec![];
    for (language, line, class, word) in lines {
        let html = highlighted(language, line);
        if !html.contains(&format!("<span class=\"{class}\">{word}</span>")) {
            missing.push(format!("{language}: {html}"));
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn multi_line_tokens_continue_and_end() {
    let cases: [(&str, &str, &[&str]); 5] = [
        (
            "rust",
            "/* a\n/* b */\nc */ d",
            &[
                r#"<span class="c">/* a</span>"#,
                r#"<span class="c">/* b */</span>"#,
                r#"<span class="c">c */</span> d"#,
            ],
        ),
        (
            "c",
            "/* a\n/* b */ d",
            &[
                r#"<span class="c">/* a</span>"#,
                r#"<span class="c">/* b */</span> d"#,
            ],
        ),
        (
            "py",
            "'''a\nb''' c",
            &[
                r#"<span class="s">'''a</span>"#,
                r#"<span class="s">b'''</span> c"#,
            ],
        ),
        ("js", "'a\nb", &[r#"<span class="s">'a</span>"#, "b"]),
        (
            "html",
            "<a b='c\nd' e",
            &[
                r#"<span class="g">&lt;a</span> <span class="p">b</span>=<span class="s">'c</span>"#,
                r#"<span class="s">d'</span> <span class="p">e</span>"#,
            ],
        ),
    ];
    for (language, text, wanted) in cases {
        assert_eq!(code_lines(language, text), wanted, "{language}");
    }
}

#[test]
fn file_path_selects_the_language() {
    assert!(highlighted("src/main.rs", "fn").contains("class=\"k\""));
    assert!(highlighted("Dockerfile", "FROM x").contains("class=\"k\""));
    assert_eq!(highlighted("x.unheard", "fn"), "fn");
}

#[test]
fn code_block_has_language_label_and_copy_button() {
    let html = html("```RS title=x\nfn\n```");
    assert!(html.starts_with("<figure class=\"code\" data-language=\"rust\"><figcaption><span class=\"language\">Rust</span><button type=\"button\" class=\"copy\">Copy</button></figcaption><pre tabindex=\"0\"><code>"), "{html}");
}

#[test]
fn unknown_language_is_labelled_and_not_highlighted() {
    let html = html("```brainf*ck<b>\n+++\n```");
    assert!(
        html.contains("<span class=\"language\">brainf*ck&lt;b&gt;</span>"),
        "{html}"
    );
    assert!(!html.contains("data-language"), "{html}");
}

#[test]
fn invisible_characters_are_shown_in_code_and_paths() {
    for html in [
        visible("rm\u{202e} -rf"),
        highlighted("rust", "let \u{202e}x = \"\u{2066}\";"),
        html("`a\u{202e}b`"),
        html("```\n\u{202e}\n```"),
        html("[x](https://a\u{202e}b.c)"),
    ] {
        assert!(html.contains("U+202E"), "{html}");
        assert!(!html.contains('\u{202e}'), "{html}");
    }
    assert!(visible("a\u{200b}b\u{feff}").contains("U+200B"));
}

#[test]
fn highlighting_keeps_all_text_in_every_language() {
    for language in LANGUAGES {
        for text in texts::all() {
            assert_text_kept(language, &text);
        }
    }
}

/// Asserts that the highlighted lines have the same visible text as the input.
fn assert_text_kept(language: &str, text: &str) {
    let lines = code_lines(language, text);
    assert_eq!(lines.len(), text.lines().count());
    for (html, line) in lines.iter().zip(text.lines()) {
        assert_eq!(
            visible_text(html),
            visible_text(&visible(line)),
            "{language}: {line:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn highlighting_keeps_random_text_in_every_language(parts in prop::collection::vec(texts::fragment(), 0..30), language in prop::sample::select(LANGUAGES)) {
        assert_text_kept(language, &parts.concat());
    }
}
