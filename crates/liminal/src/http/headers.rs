//! Security headers of all responses.

use axum::http::HeaderMap;
use axum::http::header::{
    CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};

const ALWAYS: [(HeaderName, &str); 5] = [
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (X_FRAME_OPTIONS, "DENY"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("permissions-policy"),
        "camera=(), geolocation=(), microphone=(), usb=()",
    ),
];

/// Adds the security headers to a response, except those it already has.
pub(super) fn protect(headers: &mut HeaderMap) {
    for (name, value) in ALWAYS {
        headers
            .entry(name)
            .or_insert_with(|| HeaderValue::from_static(value));
    }
    headers
        .entry(CONTENT_SECURITY_POLICY)
        .or_insert_with(|| content_security_policy(&Hashes::default()));
}

/// Hashes of a page's inlined scripts and style sheets, as policy sources; each starts with a space.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Hashes {
    pub(crate) styles: &'static str,
    pub(crate) scripts: &'static str,
}

/// Policy of all pages but a session's: scripts only from the server's own files, no markup created by script, no
/// embedding in other pages, and only the server's own pages in frames.
pub(crate) fn content_security_policy(inside: &Hashes) -> HeaderValue {
    let Hashes { styles, scripts } = inside;
    let policy = format!(
        "default-src 'none'; script-src 'self'{scripts}; style-src 'self'{styles}; img-src 'self' data:; \
         connect-src 'self'; frame-src 'self'; frame-ancestors 'none'; base-uri 'none'; \
         form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    );
    HeaderValue::from_str(&policy).expect("the policy is ASCII")
}

/// Policy of a session's page, which shows agent output: no network access except to the server's own files, embedding
/// only in the server's own pages, and markup only through one trusted-types policy. It repeats the frame's sandbox, so
/// that the page has no more rights when opened directly.
pub(crate) fn portlet_security_policy(inside: &Hashes) -> HeaderValue {
    let Hashes { styles, scripts } = inside;
    let policy = format!(
        "default-src 'none'; script-src 'self'{scripts}; style-src 'self'{styles}; \
         img-src 'self' data: blob:; media-src data: blob:; connect-src 'none'; \
         frame-ancestors 'self'; base-uri 'none'; form-action 'none'; sandbox allow-scripts; \
         require-trusted-types-for 'script'; trusted-types liminal-markup"
    );
    HeaderValue::from_str(&policy).expect("the policy is ASCII")
}
