//! HTML of each kind of markdown.

use render::html;

fn assert_all(cases: &[(&str, &str)]) {
    for (text, wanted) in cases {
        assert_eq!(html(text), *wanted, "{text:?}");
    }
}

#[test]
fn inline_markup_is_rendered() {
    assert_all(&[
        ("", ""),
        ("a", "<p>a</p>"),
        ("a\nb\n\nc", "<p>a\nb</p><p>c</p>"),
        (
            "*a* _b_ **c** __d__ ***e***",
            "<p><em>a</em> <em>b</em> <strong>c</strong> <strong>d</strong> <em><strong>e</strong></em></p>",
        ),
        ("~~a~~", "<p><del>a</del></p>"),
        (
            "snake_case_word 2*3*4",
            "<p>snake_case_word 2<em>3</em>4</p>",
        ),
        ("`a b` ``c`d``", "<p><code>a b</code> <code>c`d</code></p>"),
        ("a  \nb\\\nc", "<p>a<br>\nb<br>\nc</p>"),
        ("\\*a\\* &amp; &copy;", "<p>*a* &amp; ©</p>"),
        (
            "a & b < c > d \"e\"",
            "<p>a &amp; b &lt; c &gt; d &quot;e&quot;</p>",
        ),
    ]);
}

#[test]
fn headings_and_rules_are_rendered() {
    assert_all(&[
        ("# a", "<h1>a</h1>"),
        ("###### a ##", "<h6>a</h6>"),
        ("#a", "<p>#a</p>"),
        ("a\n===", "<h1>a</h1>"),
        ("a\nb\n---", "<h2>a\nb</h2>"),
        ("a\n# b\nc", "<p>a</p><h1>b</h1><p>c</p>"),
        ("---", "<hr>"),
        ("a\n\n* * *\nb", "<p>a</p><hr><p>b</p>"),
    ]);
}

#[test]
fn lists_are_rendered() {
    assert_all(&[
        ("- a\n- b", "<ul><li>a</li><li>b</li></ul>"),
        ("- a\n\n- b", "<ul><li>a</li><li>b</li></ul>"),
        ("3. a\n4. b", "<ol start=\"3\"><li>a</li><li>b</li></ol>"),
        ("1. a\n1) b", "<ol><li>a</li></ol><ol><li>b</li></ol>"),
        ("- a\n  b\n\n  c", "<ul><li>a\nb<p>c</p></li></ul>"),
        (
            "- a\n  - b\n    - c\n- d",
            "<ul><li>a<ul><li>b<ul><li>c</li></ul></li></ul></li><li>d</li></ul>",
        ),
        (
            "- a\nlazy\n\nafter",
            "<ul><li>a\nlazy</li></ul><p>after</p>",
        ),
        ("text\n- a", "<p>text</p><ul><li>a</li></ul>"),
        ("text\n2. a", "<p>text\n2. a</p>"),
        (
            "- # h\n- > q",
            "<ul><li><h1>h</h1></li><li><blockquote><p>q</p></blockquote></li></ul>",
        ),
        ("-\n- a", "<ul><li></li><li>a</li></ul>"),
        (
            "- [ ] a\n- [x] b",
            "<ul><li class=\"task\"><span class=\"box\" role=\"img\" aria-label=\"open\"></span>a</li><li class=\"task done\"><span class=\"box\" role=\"img\" aria-label=\"done\"></span>b</li></ul>",
        ),
    ]);
}

#[test]
fn block_quotes_are_rendered() {
    assert_all(&[
        ("> a\n> b", "<blockquote><p>a\nb</p></blockquote>"),
        (
            "> a\nb\n\nc",
            "<blockquote><p>a\nb</p></blockquote><p>c</p>",
        ),
        (
            "> a\n\n> b",
            "<blockquote><p>a</p></blockquote><blockquote><p>b</p></blockquote>",
        ),
        (
            "> > a\n> b",
            "<blockquote><blockquote><p>a\nb</p></blockquote></blockquote>",
        ),
        (
            "> - a\n> - b",
            "<blockquote><ul><li>a</li><li>b</li></ul></blockquote>",
        ),
    ]);
}

#[test]
fn tables_are_rendered() {
    assert_all(&[
        (
            "|a|b|\n|-|:-:|\n|1|2|",
            "<div class=\"table\" tabindex=\"0\"><table><thead><tr><th scope=\"col\">a</th><th scope=\"col\" class=\"center\">b</th></tr></thead><tbody><tr><td>1</td><td class=\"center\">2</td></tr></tbody></table></div>",
        ),
        (
            "a|b\n-|-\nc\n\nd",
            "<div class=\"table\" tabindex=\"0\"><table><thead><tr><th scope=\"col\">a</th><th scope=\"col\">b</th></tr></thead><tbody><tr><td>c</td></tr></tbody></table></div><p>d</p>",
        ),
        (
            "x\n|a|\n|-|",
            "<p>x</p><div class=\"table\" tabindex=\"0\"><table><thead><tr><th scope=\"col\">a</th></tr></thead><tbody></tbody></table></div>",
        ),
        ("|a|\n|-|-|", "<p>|a|\n|-|-|</p>"),
        (
            "> a\n|b|\n|-|\n|c|",
            "<blockquote><p>a\n|b|\n|-|\n|c|</p></blockquote>",
        ),
        (
            "|`a\\|b`|\n|-|",
            "<div class=\"table\" tabindex=\"0\"><table><thead><tr><th scope=\"col\"><code>a|b</code></th></tr></thead><tbody></tbody></table></div>",
        ),
    ]);
}

#[test]
fn table_with_too_many_columns_is_text() {
    let wide = format!("{}\n{}\n", "|a".repeat(65), "|-".repeat(65));
    assert!(html(&wide).starts_with("<p>|a|a"), "{}", html(&wide));
}

#[test]
fn footnotes_are_rendered_in_place() {
    assert_all(&[
        (
            "a[^1]",
            "<p>a<sup class=\"note\" data-note=\"1\">1</sup></p>",
        ),
        (
            "[^1]: a\n\n    b\n\nc",
            "<div class=\"note\" data-note=\"1\"><sup>1</sup> a<p>b</p></div><p>c</p>",
        ),
        ("[^a-z]", "<p>[^a-z]</p>"),
        (
            "[^x]: a\n\nb[^x]",
            "<div class=\"note\" data-note=\"x\"><sup>x</sup> a</div><p>b<sup class=\"note\" data-note=\"x\">x</sup></p>",
        ),
    ]);
}

#[test]
fn link_definition_applies_only_to_later_text() {
    let link = |host: &str| {
        format!(
            "<a href=\"https://{host}\" target=\"_blank\" rel=\"noopener noreferrer\">a</a><span class=\"host\"> {host}</span>"
        )
    };
    assert_all(&[
        (
            "[a]: https://x.y\n\n[a]",
            &format!("<p>{}</p>", link("x.y")),
        ),
        ("[a]\n\n[a]: https://x.y", "<p>[a]</p>"),
        (
            "[a]: https://x.y\n\n[a]: https://z.y\n\n[a]",
            &format!("<p>{}</p>", link("x.y")),
        ),
    ]);
}

#[test]
fn math_is_kept_as_typed() {
    assert_all(&[
        (
            "$a_1 * b_2 * c$",
            "<p><span class=\"math\">$a_1 * b_2 * c$</span></p>",
        ),
        ("it costs $5 or $6", "<p>it costs $5 or $6</p>"),
    ]);
}

#[test]
fn html_is_escaped() {
    assert_all(&[
        ("a <b>c</b>", "<p>a &lt;b&gt;c&lt;/b&gt;</p>"),
        (
            "<div>\n*a*\n</div>\n\n*b*",
            "<p class=\"raw\">&lt;div&gt;\n*a*\n&lt;/div&gt;</p><p><em>b</em></p>",
        ),
        ("<!-- a\n\nb", "<p class=\"raw\">&lt;!-- a</p><p>b</p>"),
    ]);
}

#[test]
fn file_paths_are_marked_in_text_code_and_links() {
    assert_all(&[
        (
            "see src/a.rs:3",
            "<p>see <span class=\"path\" data-path=\"src/a.rs\" data-line=\"3\">src/a.rs:3</span></p>",
        ),
        (
            "`./a/b.ts:3:4`",
            "<p><span class=\"path\" data-path=\"./a/b.ts\" data-line=\"3\" data-column=\"4\"><code>./a/b.ts:3:4</code></span></p>",
        ),
        (
            "[a.rs](src/a.rs#L7)",
            "<p><span class=\"path\" data-path=\"src/a.rs\" data-line=\"7\">a.rs</span><span class=\"host\"> src/a.rs</span></p>",
        ),
        ("`git checkout`", "<p><code>git checkout</code></p>"),
    ]);
}

#[test]
fn code_blocks_are_rendered() {
    let block = |language: &str, name: &str, code: &str| {
        format!(
            "<figure class=\"code\"{language}><figcaption><span class=\"language\">{name}</span><button type=\"button\" class=\"copy\">Copy</button></figcaption><pre tabindex=\"0\"><code>{code}</code></pre></figure>"
        )
    };
    assert_all(&[
        (
            "```\na\n\n b\n```\nc",
            &format!("{}<p>c</p>", block("", "", "a\n\n b\n")),
        ),
        (
            "~~~ py\n# a",
            &block(
                " data-language=\"python\"",
                "Python",
                "<span class=\"c\"># a</span>\n",
            ),
        ),
        (
            "    a\n\n      b\n\n\nc",
            &format!("{}<p>c</p>", block("", "", "a\n\n  b\n")),
        ),
        ("  ```\n  a\n   b\n```", &block("", "", "a\n b\n")),
        ("a\n```\nb", &format!("<p>a</p>{}", block("", "", "b\n"))),
    ]);
}
