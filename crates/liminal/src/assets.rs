//! The files of `web/` as HTTP responses.
//!
//! A release build embeds them (see `build.rs`); a debug build reads them from disk at each request, so that editing
//! them needs no rebuild. They contain nothing private and are served without authentication.

use axum::body::Bytes;
use axum::http::header::{
    ACCEPT_ENCODING, ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, CONTENT_ENCODING,
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::http::{Hashes, content_security_policy, portlet_security_policy};

/// One file in its available content encodings.
struct Asset {
    etag: String,
    hashes: Hashes,
    plain: Bytes,
    gzip: Option<Bytes>,
    brotli: Option<Bytes>,
}

/// Responds with a static file below `web/`, or 404.
pub(crate) fn file(path: &str, headers: &HeaderMap) -> Response {
    let path = path.trim_start_matches('/');
    let servable = !path.ends_with(".html") && !path.ends_with(".test.js");
    let (Some(content_type), true) = (content_type(path), servable) else {
        return not_found();
    };
    let Some(asset) = load(path) else {
        return not_found();
    };
    let mut response = respond(&asset, content_type, headers);
    // A sandboxed frame has an opaque origin and cannot load modules without this header.
    response
        .headers_mut()
        .insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    response
}

/// Responds with a page, which must not be cached: the modules it loads belong to this version of the server.
pub(crate) fn page(path: &str, headers: &HeaderMap) -> Response {
    let Some(asset) = load(path) else {
        return not_found();
    };
    let mut response = respond(&asset, "text/html; charset=utf-8", headers);
    response
        .headers_mut()
        .insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response.headers_mut().remove(ETAG);
    let policy = content_security_policy(&asset.hashes);
    response
        .headers_mut()
        .insert(CONTENT_SECURITY_POLICY, policy);
    response
}

/// Responds with the page of a session, the only page that may be shown in a frame. It contains no session data.
pub(crate) fn portlet(headers: &HeaderMap) -> Response {
    let Some(asset) = load("portlet.html") else {
        return not_found();
    };
    let mut response = respond(&asset, "text/html; charset=utf-8", headers);
    let own = response.headers_mut();
    own.insert(
        CONTENT_SECURITY_POLICY,
        portlet_security_policy(&asset.hashes),
    );
    own.insert(X_FRAME_OPTIONS, HeaderValue::from_static("SAMEORIGIN"));
    response
}

fn respond(asset: &Asset, content_type: &'static str, request: &HeaderMap) -> Response {
    let etag = format!("W/\"{}\"", asset.etag);
    let known = request.get_all(IF_NONE_MATCH).iter().any(|value| {
        value
            .to_str()
            .is_ok_and(|list| list.split(',').any(|tag| tag.trim() == etag))
    });
    let (encoding, body) = match (&asset.brotli, &asset.gzip) {
        (Some(brotli), _) if accepts(request, "br") => (Some("br"), brotli),
        (_, Some(gzip)) if accepts(request, "gzip") => (Some("gzip"), gzip),
        _ => (None, &asset.plain),
    };
    let mut response = match known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => body.clone().into_response(),
    };
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    if let Ok(etag) = HeaderValue::from_str(&etag) {
        headers.insert(ETAG, etag);
    }
    if let (Some(encoding), false) = (encoding, known) {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding));
    }
    response
}

fn accepts(request: &HeaderMap, encoding: &str) -> bool {
    let offers = request
        .get_all(ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok());
    offers.flat_map(|value| value.split(',')).any(|offer| {
        let mut parts = offer.split(';').map(str::trim);
        let named = parts
            .next()
            .is_some_and(|name| name.eq_ignore_ascii_case(encoding));
        let refused = parts.any(|part| {
            part.strip_prefix("q=")
                .is_some_and(|q| q.trim_matches(['0', '.']).is_empty())
        });
        named && !refused
    })
}

fn not_found() -> Response {
    (StatusCode::NOT_FOUND, "Not found\n").into_response()
}

fn content_type(path: &str) -> Option<&'static str> {
    match path.rsplit_once('.')?.1 {
        "html" => Some("text/html; charset=utf-8"),
        "css" => Some("text/css; charset=utf-8"),
        "js" => Some("text/javascript; charset=utf-8"),
        "svg" => Some("image/svg+xml"),
        _ => None,
    }
}

#[cfg(embedded_web)]
struct Embedded {
    path: &'static str,
    style_hashes: &'static str,
    script_hashes: &'static str,
    etag: &'static str,
    plain: &'static [u8],
    gzip: &'static [u8],
    brotli: &'static [u8],
}

#[cfg(embedded_web)]
static EMBEDDED: &[Embedded] = include!(concat!(env!("OUT_DIR"), "/web.rs"));

#[cfg(embedded_web)]
fn load(path: &str) -> Option<Asset> {
    let at = EMBEDDED.binary_search_by(|file| file.path.cmp(path)).ok()?;
    let file = &EMBEDDED[at];
    Some(Asset {
        etag: file.etag.to_owned(),
        hashes: Hashes {
            styles: file.style_hashes,
            scripts: file.script_hashes,
        },
        plain: Bytes::from_static(file.plain),
        gzip: Some(Bytes::from_static(file.gzip)),
        brotli: Some(Bytes::from_static(file.brotli)),
    })
}

#[cfg(not(embedded_web))]
fn load(path: &str) -> Option<Asset> {
    use sha2::{Digest, Sha256};

    let plain_name = |part: &str| !part.is_empty() && !part.starts_with('.');
    if !path.split('/').all(plain_name) || path.contains('\\') {
        return None;
    }
    let web = concat!(env!("CARGO_MANIFEST_DIR"), "/../../web");
    let plain = std::fs::read(std::path::Path::new(web).join(path)).ok()?;
    let etag = Sha256::digest(&plain)
        .iter()
        .take(12)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    Some(Asset {
        etag,
        hashes: Hashes::default(),
        plain: Bytes::from(plain),
        gzip: None,
        brotli: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepting(value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(value))])
    }

    #[test]
    fn encoding_is_used_only_if_the_client_accepts_it() {
        assert!(accepts(&accepting("gzip, deflate, br, zstd"), "br"));
        assert!(accepts(&accepting("BR;q=0.5"), "br"));
        assert!(!accepts(&accepting("gzip;q=0, br;q=0.0"), "br"));
        assert!(!accepts(&accepting("brotli"), "br"));
        assert!(!accepts(&HeaderMap::new(), "gzip"));
    }

    #[test]
    fn paths_outside_web_pages_and_tests_are_not_served_as_files() {
        for path in [
            "/../Cargo.toml",
            "/shell/../index.html",
            "/index.html",
            "/types/wire.d.ts",
            "//etc/passwd.js",
            "/.hidden.js",
            "/shell/x.test.js",
            "/",
            "",
        ] {
            assert_eq!(
                file(path, &HeaderMap::new()).status(),
                StatusCode::NOT_FOUND,
                "{path}"
            );
        }
    }
}
