//! The headers that keep a page of ours to itself.

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

/// Puts them on an answer. A page that brought its own keeps them.
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

/// Of the scripts and style sheets that stand inside a page, as sources; each begins with a space.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Hashes {
    pub(crate) styles: &'static str,
    pub(crate) scripts: &'static str,
}

/// No script but from our own files, no markup turned into elements by script, no frame around us, and
/// none but ours inside.
pub(crate) fn content_security_policy(inside: &Hashes) -> HeaderValue {
    let Hashes { styles, scripts } = inside;
    let policy = format!(
        "default-src 'none'; script-src 'self'{scripts}; style-src 'self'{styles}; img-src 'self' data:; \
         connect-src 'self'; frame-src 'self'; frame-ancestors 'none'; base-uri 'none'; \
         form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    );
    HeaderValue::from_str(&policy).expect("our own ASCII text")
}

/// For the page of a session, which shows what agents say: it reaches nothing over the network but our
/// own files, only our own window may hold it, and markup passes through one policy. The sandbox is
/// repeated here, so that the page has no more rights when it is opened by its address.
pub(crate) fn portlet_security_policy(inside: &Hashes) -> HeaderValue {
    let Hashes { styles, scripts } = inside;
    let policy = format!(
        "default-src 'none'; script-src 'self'{scripts}; style-src 'self'{styles}; \
         img-src 'self' data: blob:; media-src data: blob:; connect-src 'none'; \
         frame-ancestors 'self'; base-uri 'none'; form-action 'none'; sandbox allow-scripts; \
         require-trusted-types-for 'script'; trusted-types liminal-markup"
    );
    HeaderValue::from_str(&policy).expect("our own ASCII text")
}
