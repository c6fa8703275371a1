//! The statements that browsers and the server sign. `web/shared/identity.js` builds the same texts.
//!
//! Invariant: no statement of one kind can be read as one of another kind. Each begins with its own line, and no field
//! contains a line break.

/// What both sides of one connection sign.
#[derive(Debug, Clone)]
pub(crate) struct Exchange {
    /// Host and port as the page sees them, so that a signature given to another port is worth nothing here.
    pub(crate) host: String,
    pub(crate) browser: String,
    pub(crate) page_nonce: String,
    pub(crate) server_nonce: String,
}

impl Exchange {
    /// Signed by the server.
    pub(super) fn of_server(&self) -> String {
        self.text("Liminal Builder server 1")
    }

    /// Signed by the browser.
    pub(super) fn of_browser(&self) -> String {
        self.text("Liminal Builder browser 1")
    }

    fn text(&self, kind: &str) -> String {
        let Self {
            host,
            browser,
            page_nonce,
            server_nonce,
        } = self;
        [kind, host, browser, page_nonce, server_nonce].join("\n")
    }
}

/// Signed by the server: whether it knows the browser.
pub(super) fn identity(host: &str, browser: &str, page_nonce: &str, known: bool) -> String {
    let known = if known { "known" } else { "unknown" };
    [
        "Liminal Builder identity 1",
        host,
        browser,
        page_nonce,
        known,
    ]
    .join("\n")
}

/// Proven by the browser under the token.
pub(super) fn sign_in(host: &str, public_key: &str, nonce: &str) -> String {
    ["Liminal Builder sign-in 1", host, public_key, nonce].join("\n")
}

/// Proven by the server under the token.
pub(super) fn signed_in(
    host: &str,
    public_key: &str,
    nonce: &str,
    browser: &str,
    server_key: &str,
) -> String {
    let kind = "Liminal Builder signed in 1";
    [kind, host, public_key, nonce, browser, server_key].join("\n")
}

/// Whether a text may stand in a statement: an id, a nonce or a key.
pub(crate) fn is_field(text: &str) -> bool {
    let letters = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=128).contains(&text.len()) && text.bytes().all(letters)
}
