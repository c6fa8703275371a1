//! Any text produces only the allowed elements and attributes.

use proptest::prelude::*;
use render::{Live, code_lines, html, visible};

use crate::dom::built;
use crate::texts;
use crate::tokens::{Piece, pieces, visible_text};

/// Allowed elements with their allowed attributes.
const ALLOWED: &[(&str, &[&str])] = &[
    ("a", &["href", "rel", "target"]),
    ("blockquote", &[]),
    ("br", &[]),
    ("button", &["class", "type"]),
    ("code", &[]),
    ("del", &[]),
    ("div", &["class", "data-note", "tabindex"]),
    ("em", &[]),
    ("figcaption", &[]),
    ("figure", &["class", "data-language"]),
    ("h1", &[]),
    ("h2", &[]),
    ("h3", &[]),
    ("h4", &[]),
    ("h5", &[]),
    ("h6", &[]),
    ("hr", &[]),
    ("li", &["class"]),
    ("ol", &["start"]),
    ("p", &["class"]),
    ("pre", &["tabindex"]),
    (
        "span",
        &[
            "aria-label",
            "class",
            "data-column",
            "data-line",
            "data-path",
            "role",
        ],
    ),
    ("strong", &[]),
    ("sup", &["class", "data-note"]),
    ("table", &[]),
    ("tbody", &[]),
    ("td", &["class"]),
    ("th", &["class", "scope"]),
    ("thead", &[]),
    ("tr", &[]),
    ("ul", &[]),
];

const CLASSES: &[&str] = &[
    "box", "c", "center", "code", "copy", "d", "done", "f", "g", "h", "host", "i", "image", "k",
    "language", "m", "math", "more", "n", "note", "p", "path", "raw", "right", "s", "t", "table",
    "task", "unseen", "v",
];

fn check(html: &str, from: &str) {
    for piece in pieces(html) {
        match &piece {
            Piece::Text(_) => {}
            Piece::End(name) => assert!(
                ALLOWED.iter().any(|(tag, _)| tag == name),
                "</{name}> from {from:?}"
            ),
            Piece::Odd(what) => panic!("{what} from {from:?}: {html}"),
            Piece::Start(name, attributes) => {
                let allowed = ALLOWED.iter().find(|(tag, _)| tag == name);
                let (_, allowed) = allowed.unwrap_or_else(|| panic!("<{name}> from {from:?}"));
                for (attribute, value) in attributes {
                    assert!(
                        allowed.contains(&attribute.as_str()),
                        "{name} {attribute} from {from:?}"
                    );
                    match attribute.as_str() {
                        "class" => assert!(
                            value.split(' ').all(|c| CLASSES.contains(&c)),
                            "{value} from {from:?}"
                        ),
                        "href" => {
                            let lower = value.to_ascii_lowercase();
                            let scheme = lower.split_once(':').unwrap().0;
                            assert!(
                                ["http", "https", "mailto"].contains(&scheme),
                                "{value} from {from:?}"
                            );
                            assert!(
                                value.bytes().all(|b| (0x21..0x7f).contains(&b)),
                                "{value} from {from:?}"
                            );
                            assert!(is_plain_address(&lower), "{value} from {from:?}");
                            assert_eq!(piece.attribute("rel"), Some("noopener noreferrer"));
                            assert_eq!(piece.attribute("target"), Some("_blank"));
                        }
                        _ => {}
                    }
                }
            }
        }
    }
}

/// Whether the host of the URL is unambiguous for every URL parser.
fn is_plain_address(address: &str) -> bool {
    let Some((_, rest)) = address.split_once("://") else {
        return address.starts_with("mailto:");
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or("");
    let host = authority.rsplit('@').next().unwrap_or("");
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.:[]".contains(&b);
    !host.is_empty() && host.bytes().all(is_plain)
}

/// Asserts that a browser's parser builds exactly the written tree and repairs nothing.
fn assert_parsed_as_written(html: &str, from: &str) {
    let (built, repairs) = built(html);
    assert_eq!(repairs, Vec::<String>::new(), "from {from:?}");
    assert_eq!(built, pieces(html), "from {from:?}");
}

const SCRIPTS: &[&str] = &[
    "<script>alert(1)</script>",
    "<SCRIPT SRC=//x.y/z.js></SCRIPT>",
    "<scr<script>ipt>alert(1)</scr</script>ipt>",
    "<img src=x onerror=alert(1)>",
    "<img/src=`x`onerror=alert(1)//",
    "<svg onload=alert(1)>",
    "<svg><script>alert&#40;1&#41;</script></svg>",
    "<svg><style><img src=x onerror=alert(1)></style></svg>",
    "<math><mtext><table><mglyph><style><!--</style><img src onerror=alert(1)>",
    "<iframe src=javascript:alert(1)>",
    "<iframe srcdoc=\"<script>alert(1)</script>\">",
    "<object data=javascript:alert(1)>",
    "<embed src=//x.y/z.swf>",
    "<base href=//x.y/>",
    "<meta http-equiv=refresh content=0;url=//x.y>",
    "<link rel=stylesheet href=//x.y/z.css>",
    "<style>@import '//x.y/z.css'</style>",
    "<form action=//x.y><button>go</button></form>",
    "<input autofocus onfocus=alert(1)>",
    "<details open ontoggle=alert(1)>",
    "<video><source onerror=alert(1)>",
    "<audio src=//x.y autoplay>",
    "<body onload=alert(1)>",
    "<a href=javascript:alert(1)>x</a>",
    "<a id=x name=y href=#z>clobber</a>",
    "<img name=getElementById>",
    "<template><script>alert(1)</script></template>",
    "<noscript><p title=\"</noscript><img src=x onerror=alert(1)>\">",
    "<textarea></textarea><img src=x onerror=alert(1)>",
    "<title></title><script>alert(1)</script>",
    "<xmp><script>alert(1)</script></xmp>",
    "<plaintext><script>",
    "<!--><script>alert(1)</script>-->",
    "<!-- --!><script>alert(1)</script>",
    "<![CDATA[<script>alert(1)</script>]]>",
    "<?xml version=1?><script>alert(1)</script>",
    "</p></div></code></pre></td><script>alert(1)</script>",
    "</span></button></figure><img src=x onerror=alert(1)>",
    "\"><script>alert(1)</script>",
    "'><img src=x onerror=alert(1)>",
    "` onmouseover=alert(1) x=`",
    "\" onmouseover=\"alert(1)",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;script&#62;alert(1)&#60;/script&#62;",
    "&#x3c;img src=x onerror=alert(1)&#x3e;",
    "\\<script>alert(1)</script>",
    "<\0script>alert(1)</script>",
    "<s\u{200b}cript>alert(1)</script>",
    "\u{ff1c}script\u{ff1e}alert(1)",
    "<x:script xmlns:x='http://www.w3.org/1999/xhtml'>alert(1)</x:script>",
    "{{constructor.constructor('alert(1)')()}}",
    "<a href=\"https://a.b\" onclick=alert(1)>x</a>",
    "<portal src=//x.y>",
    "<img srcset=//x.y/1.png>",
    "<div style=background:url(//x.y)>",
    "<b/alt=\"1\"onmouseover=InputBox+1>",
];

const ADDRESSES: &[&str] = &[
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    " javascript:alert(1)",
    "\u{1}javascript:alert(1)",
    "java\tscript:alert(1)",
    "java\nscript:alert(1)",
    "java&#10;script:alert(1)",
    "java&Tab;script:alert(1)",
    "javascript&colon;alert(1)",
    "javascript&#58;alert(1)",
    "&#106;avascript:alert(1)",
    "&#x6A;avascript:alert(1)",
    "javascript\\:alert(1)",
    "javascript://x.y/%0aalert(1)",
    "https:javascript:alert(1)",
    "vbscript:msgbox(1)",
    "data:text/html,<script>alert(1)</script>",
    "data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==",
    "data:image/svg+xml,<svg onload=alert(1)>",
    "blob:https://x.y/1",
    "file:///etc/passwd",
    "filesystem:https://x.y/1",
    "about:blank",
    "view-source:https://x.y",
    "intent://x.y#Intent;end",
    "ms-settings:x",
    "//x.y",
    "/\\x.y",
    "\\\\x.y\\z",
    "https://good.example@x.y",
    "https://good.example\\@x.y",
    "https://x.y\" onclick=\"alert(1)",
    "https://x.y' onclick='alert(1)",
    "https://x.y`onclick=alert(1)`",
    "https://x.y><script>alert(1)</script>",
    "https://x.y/&quot;&gt;&lt;script&gt;",
    "https://x.y/\u{202e}moc.doog",
    "https://\u{0430}pple.com",
    "https://x.y/%22%3E%3Cscript%3E",
    "https://x.y\u{0}/",
    "mailto:a@b.c?subject=<script>",
    "mailto:\"><script>alert(1)</script>@b.c",
    "mailto:javascript:alert(1)",
    "#fragment",
    "?query",
    "liminal-note:1",
    "liminal-note:\"><script>",
    "ftp://x.y",
    "ws://x.y",
    "HTTPS://X.Y",
    "http://[::1]:80/",
    "http://x.y:99999/",
];

/// Contexts for a script; `%` is replaced by it.
const PLACES: &[&str] = &[
    "%",
    "text % text",
    "# %",
    "%\n===",
    "- %",
    "- [x] %",
    "1. a\n   %",
    "> %",
    "> - > %",
    "*%*",
    "**a % b**",
    "~~%~~",
    "`%`",
    "`` % ``",
    "```\n%\n```",
    "```html\n%\n```",
    "```js\n%",
    "``` %\nx\n```",
    "~~~ %\nx",
    "    %",
    "|a|\n|-|\n|%|",
    "|%|b|\n|-|-|\n|c|d|",
    "[%](https://a.b)",
    "[a](https://a.b \"%\")",
    "![%](https://a.b/c.png)",
    "![a](https://a.b/c.png '%')",
    "[a]: https://a.b '%'\n\n[a]",
    "[^1]: %",
    "[^%]: a",
    "$%$",
    "$$\n%\n$$",
    "\\%",
    "<div>\n%\n</div>",
    "<!-- % -->",
    "src/%.rs:1",
    "`src/%.rs:1`",
    "https://a.b/%",
];

/// Contexts for a URL; `%` is replaced by it.
const LINKS: &[&str] = &[
    "%",
    "<%>",
    "[a](%)",
    "[a](<%>)",
    "[a](% \"t\")",
    "[https://good.example](%)",
    "[`code`](%)",
    "![a](%)",
    "![a](<%>)",
    "[![a](%)](https://a.b)",
    "[![a](https://a.b)](%)",
    "[![a](<%>)](<%>)",
    "[r]: %\n\n[r]",
    "[r]: <%>\n\n[r] ![r]",
    "[a][r]\n\n[r]: <%>",
    "- [a](<%>)",
    "> ![a](<%>)",
    "|[a](<%>)|\n|-|\n|<%>|",
    "`%`",
    "**%**",
    "(%)",
    "[^1]: [a](<%>)",
];

fn vectors() -> Vec<String> {
    let mut vectors = vec![];
    for (places, payloads) in [
        (PLACES, SCRIPTS),
        (LINKS, ADDRESSES),
        (PLACES, ADDRESSES),
        (LINKS, SCRIPTS),
    ] {
        for place in places {
            vectors.extend(payloads.iter().map(|payload| place.replace('%', payload)));
        }
    }
    vectors
}

#[test]
fn xss_vectors_produce_only_allowed_elements() {
    let vectors = vectors();
    assert!(vectors.len() > 5000, "{}", vectors.len());
    for vector in &vectors {
        let html = html(vector);
        check(&html, vector);
        assert!(!html.contains("href=\"javascript"), "{vector:?}");
    }
}

#[test]
fn html_parser_has_nothing_to_repair() {
    for vector in vectors().iter().step_by(3).chain(&texts::all()) {
        assert_parsed_as_written(&html(vector), vector);
    }
}

#[test]
fn parts_of_streamed_xss_vectors_are_safe() {
    for vector in vectors().iter().step_by(7) {
        let mut live = Live::new();
        for character in vector.chars() {
            live.push(character.encode_utf8(&mut [0; 4]));
            let delta = live.flush();
            for part in delta.finished.iter().chain(&delta.tail) {
                check(&part.html, vector);
            }
        }
    }
}

#[test]
fn xss_vectors_in_code_and_language_names_are_safe() {
    for payload in SCRIPTS.iter().chain(ADDRESSES) {
        check(&visible(payload), payload);
        assert!(
            !visible(payload).contains("<s")
                || payload.contains(['\0', '\u{1}', '\u{200b}', '\u{202e}'])
        );
        for language in ["html", "js", "rust", "css", "yaml", "md", "diff", "php", ""] {
            check(&code_lines(language, payload).concat(), payload);
        }
        check(&code_lines(payload, "x").concat(), payload);
    }
}

#[test]
fn html_in_markdown_is_shown_as_text() {
    for (text, shown) in [
        ("<b>x</b>", "<b>x</b>"),
        (
            "a <script>alert(1)</script> b",
            "a <script>alert(1)</script> b",
        ),
        ("<!-- c -->", "<!-- c -->"),
        (
            "<div class=\"a\">\nx\n</div>",
            "<div class=\"a\">\nx\n</div>",
        ),
    ] {
        assert_eq!(visible_text(&html(text)), shown);
    }
}

#[test]
fn link_shows_its_destination() {
    let shown = |text: &str| visible_text(&html(text));
    assert_eq!(shown("[docs](https://example.com/x)"), "docs example.com");
    assert_eq!(
        shown("[https://good.example](https://evil.example)"),
        "https://good.example evil.example"
    );
    assert_eq!(
        shown("[good.example](https://good.example@evil.example)"),
        "good.example evil.example"
    );
    assert_eq!(shown("[example.com](https://example.com/x)"), "example.com");
    assert_eq!(shown("<https://example.com/x>"), "https://example.com/x");
    assert_eq!(
        shown("https://good.example@evil.example/"),
        "https://good.example@evil.example/ evil.example"
    );
    assert_eq!(shown("<me@example.com>"), "me@example.com");
    assert_eq!(shown("[me](mailto:me@example.com)"), "me me@example.com");
    assert_eq!(shown("[x](javascript:alert(1))"), "x javascript:alert(1)");
}

#[test]
fn image_is_shown_as_alt_text_and_url_and_not_loaded() {
    let html = html("![a cat](https://example.com/cat.png)");
    assert_eq!(visible_text(&html), "a cat https://example.com/cat.png");
    assert!(!html.contains("<img") && !html.contains("src="));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_text_produces_only_allowed_elements(parts in prop::collection::vec(prop_oneof![
        3 => texts::fragment(),
        1 => prop::sample::select(SCRIPTS).prop_map(str::to_owned),
        1 => prop::sample::select(ADDRESSES).prop_map(str::to_owned),
    ], 0..30)) {
        let text = parts.concat();
        let html = html(&text);
        check(&html, &text);
        assert_parsed_as_written(&html, &text);
    }
}
