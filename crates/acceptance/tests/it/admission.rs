//! Tests of the browser listener's admission rules over real connections: `Host`, `Origin`, token, browser, headers.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::Result;
use testkit::{Browser, Program, ServerSetup, Socket, http, new_sign_in};
use tokio::task::JoinHandle;

#[tokio::test]
async fn socket_opens_only_for_a_valid_host_origin_and_credential() -> Result<()> {
    let server = ServerSetup::new()?.start().await?;
    let port = server.address.port();
    let browser = Browser::sign_in(&server).await?.id;
    let bearer = format!("Bearer {}", server.token);

    let hosts = [
        (format!("127.0.0.1:{port}"), true),
        (format!("localhost:{port}"), true),
        (format!("[::1]:{port}"), true),
        ("127.0.0.1".to_owned(), false),
        (format!("127.0.0.1:{}", port.wrapping_add(1)), false),
        (format!("evil.example:{port}"), false),
        (format!("0.0.0.0:{port}"), false),
    ];
    #[derive(PartialEq)]
    enum OriginKind {
        Own,
        Missing,
        Foreign,
    }
    let origins = |host: &str| {
        [
            (None, OriginKind::Missing),
            (Some(format!("http://{host}")), OriginKind::Own),
            (Some("null".to_owned()), OriginKind::Foreign),
            (Some(format!("https://{host}")), OriginKind::Foreign),
            (Some("http://evil.example".to_owned()), OriginKind::Foreign),
            (
                Some(format!("http://127.0.0.1:{}", port.wrapping_add(1))),
                OriginKind::Foreign,
            ),
            (
                Some(format!("http://{host}.evil.example")),
                OriginKind::Foreign,
            ),
            (Some(format!("http://{host}/")), OriginKind::Foreign),
            (Some(String::new()), OriginKind::Foreign),
        ]
    };
    #[derive(PartialEq)]
    enum Credential {
        Nothing,
        /// A registered browser, which is upgraded but must prove its key.
        Browser,
        Token,
    }
    let known = format!("/ws?browser={browser}&nonce=abc");
    let unknown = "/ws?browser=0123456789abcdef&nonce=abc".to_owned();
    let without_nonce = format!("/ws?browser={browser}");
    let twice = format!("/ws?browser={browser}&nonce=abc&browser={browser}");
    let plain = "/ws".to_owned();
    let credentials = [
        (&plain, None, Credential::Nothing),
        (&known, None, Credential::Browser),
        (&plain, Some(bearer.as_str()), Credential::Token),
        (&unknown, None, Credential::Nothing),
        (&without_nonce, None, Credential::Nothing),
        (&twice, None, Credential::Nothing),
        (&plain, Some("Basic abc"), Credential::Nothing),
    ];

    let mut tried = 0;
    for (host, valid_host) in &hosts {
        for (origin, origin_kind) in &origins(host) {
            for (path, authorization, credential_kind) in &credentials {
                // The browser signed in at the first address, and its key counts there only.
                let same_address = *host == hosts[0].0;
                let expected = match (valid_host, origin_kind, credential_kind) {
                    (false, ..) => 421,
                    (true, OriginKind::Foreign, _) => 403,
                    (true, OriginKind::Own, Credential::Browser) if same_address => 101,
                    (true, OriginKind::Own | OriginKind::Missing, Credential::Token) => 101,
                    (true, ..) => 401,
                };
                let mut headers = vec![("host", host.as_str())];
                headers.extend(origin.as_deref().map(|origin| ("origin", origin)));
                headers.extend(authorization.map(|value| ("authorization", value)));
                let opened = Socket::open(server.address, path, &headers).await;
                let status = opened.map_or_else(|refused| refused.status.unwrap_or(0), |_| 101);
                assert_eq!(status, expected, "{path} {headers:?}");
                tried += 1;
            }
        }
    }
    assert_eq!(tried, 7 * 9 * 7);
    Ok(())
}

#[tokio::test]
async fn wrong_or_truncated_token_is_rejected() -> Result<()> {
    let server = ServerSetup::new()?.start().await?;
    let host = server.address.to_string();
    for token in [
        "",
        "wrong",
        &server.token[..63],
        &format!("{}0", server.token),
    ] {
        let bearer = format!("Bearer {token}");
        let headers = [("host", host.as_str()), ("authorization", &bearer)];
        let refused = Socket::open(server.address, "/ws", &headers).await.err();
        assert_eq!(
            refused.and_then(|refused| refused.status),
            Some(401),
            "{token}"
        );
        assert_eq!(
            server
                .get("/auth", &[&format!("Authorization: {bearer}")])
                .await?
                .status,
            401
        );
    }
    let right = format!("Authorization: bearer {}", server.token);
    assert_eq!(server.get("/auth", &[&right]).await?.status, 204);
    Ok(())
}

#[tokio::test]
async fn token_in_the_url_is_rejected_even_when_correct() -> Result<()> {
    let server = ServerSetup::new()?.start().await?;
    let bearer = format!("Authorization: Bearer {}", server.token);
    for path in ["/", "/ws", "/auth", "/health", "/styles/theme.css"] {
        let answer = server
            .get(&format!("{path}?x=1&Token={}", server.token), &[&bearer])
            .await?;
        assert_eq!(answer.status, 400, "{path}");
        assert!(answer.text().contains("must not be in the address"));
    }
    Ok(())
}

#[tokio::test]
async fn login_registers_a_browser_only_for_own_origin_with_the_token() -> Result<()> {
    let server = ServerSetup::new()?.start().await?;
    let address = server.address;
    let ours = format!("Origin: http://{address}");
    let json = "Content-Type: application/json".to_owned();
    let right = new_sign_in(address, &server.token).await?.to_string();
    let wrong = new_sign_in(address, "wrong-token-0123456789").await?;
    let post = |headers: Vec<String>, body: String| async move {
        let mut head = vec![
            "POST /login HTTP/1.1".to_owned(),
            format!("Host: {address}"),
        ];
        head.extend(headers);
        http(address, &head, &body).await
    };
    let cases = [
        (vec![ours.clone(), json.clone()], right.clone(), 200),
        // A sign-in counts once.
        (vec![ours.clone(), json.clone()], right.clone(), 409),
        (vec![json.clone()], right.clone(), 403),
        (
            vec!["Origin: null".to_owned(), json.clone()],
            right.clone(),
            403,
        ),
        (
            vec!["Origin: http://evil.example".to_owned(), json.clone()],
            right.clone(),
            403,
        ),
        (
            vec![ours.clone(), ours.clone(), json.clone()],
            right.clone(),
            403,
        ),
        (vec![ours.clone()], right.clone(), 415),
        (
            vec![ours.clone(), "Content-Type: text/plain".to_owned()],
            right.clone(),
            415,
        ),
        (vec![ours.clone(), json.clone()], wrong.to_string(), 401),
        (
            vec![ours.clone(), json.clone()],
            r#"{"token":"wrong"}"#.to_owned(),
            401,
        ),
        (vec![ours.clone(), json.clone()], "{".to_owned(), 400),
        (
            vec![ours.clone(), json.clone()],
            r#"{"token":7}"#.to_owned(),
            422,
        ),
        (
            vec![ours.clone(), json.clone()],
            format!(r#"{{"token":"{}"}}"#, "x".repeat(5000)),
            413,
        ),
    ];
    for (headers, body, status) in cases {
        let shown = format!("{headers:?} {:.40}", body);
        let answer = post(headers, body).await?;
        assert_eq!(answer.status, status, "{shown}");
        assert_eq!(answer.header("set-cookie"), None, "{shown}");
    }
    Ok(())
}

#[tokio::test]
async fn localhost_is_redirected_to_the_address_that_keys_belong_to() -> Result<()> {
    let server = ServerSetup::new()?.start().await?;
    let port = server.address.port();
    for path in ["/", "/login"] {
        let head = [
            format!("GET {path} HTTP/1.1"),
            format!("Host: localhost:{port}"),
        ];
        let answer = http(server.address, &head, "").await?;
        let address = format!("http://127.0.0.1:{port}{path}");
        assert_eq!(
            (answer.status, answer.header("location")),
            (307, Some(address.as_str()))
        );
    }
    for path in ["/identity?browser=a&nonce=b", "/ws?browser=a&nonce=b"] {
        let head = [
            format!("GET {path} HTTP/1.1"),
            format!("Host: localhost:{port}"),
        ];
        assert_ne!(http(server.address, &head, "").await?.status, 200, "{path}");
    }
    Ok(())
}

#[tokio::test]
async fn every_response_has_the_security_headers() -> Result<()> {
    let server = ServerSetup::new()?.start().await?;
    let wrong_host = ["GET / HTTP/1.1".to_owned(), "Host: evil.example".to_owned()];
    let mut answers = vec![http(server.address, &wrong_host, "").await?];
    for path in [
        "/",
        "/health",
        "/auth",
        "/login",
        "/identity?browser=a&nonce=b",
        "/uploads/a",
        "/ws",
        "/favicon.svg",
        "/styles/theme.css",
        "/missing",
    ] {
        answers.push(server.get(path, &[]).await?);
    }
    for answer in &answers {
        let csp = answer.header("content-security-policy").unwrap_or_default();
        for rule in [
            "default-src 'none'",
            "script-src 'self'",
            "frame-ancestors 'none'",
            "trusted-types",
        ] {
            assert!(csp.contains(rule), "{answer:?}");
        }
        assert!(!csp.contains("unsafe"), "{csp}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
        assert_eq!(answer.header("x-frame-options"), Some("DENY"));
    }
    Ok(())
}

#[tokio::test]
async fn session_page_is_framed_by_own_origin_only_and_has_no_network() -> Result<()> {
    let server = ServerSetup::new()?.start().await?;
    let portlet = server.get("/portlet.html", &[]).await?;
    assert_eq!(portlet.status, 200);
    assert_eq!(
        portlet.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    assert_eq!(portlet.header("x-frame-options"), Some("SAMEORIGIN"));
    assert_eq!(portlet.header("x-content-type-options"), Some("nosniff"));
    let csp = portlet
        .header("content-security-policy")
        .unwrap_or_default();
    for rule in [
        "default-src 'none'",
        "script-src 'self';",
        "connect-src 'none'",
        "img-src 'self' data: blob:",
        "frame-ancestors 'self'",
        "sandbox allow-scripts;",
        "require-trusted-types-for 'script'; trusted-types liminal-markup",
    ] {
        assert!(csp.contains(rule), "{rule} in {csp}");
    }
    assert!(
        !csp.contains("unsafe") && !csp.contains("frame-src"),
        "{csp}"
    );

    let etag = portlet.header("etag").unwrap_or_default();
    let known = format!("If-None-Match: {etag}");
    let again = server.get("/portlet.html", &[&known]).await?;
    assert_eq!((again.status, again.body.len()), (304, 0));

    let home = server.get("/", &[]).await?;
    let csp = home.header("content-security-policy").unwrap_or_default();
    assert!(csp.contains("frame-src 'self'"), "{csp}");
    Ok(())
}

#[tokio::test]
async fn health_needs_no_token_and_reveals_only_its_status() -> Result<()> {
    let server = ServerSetup::new()?.start().await?;
    let health = server.get("/health", &[]).await?;
    assert_eq!(
        (health.status, health.text().as_str()),
        (200, r#"{"status":"ok"}"#)
    );
    Ok(())
}

#[tokio::test]
async fn assets_are_revalidated_by_etag_and_readable_by_sandboxed_frames() -> Result<()> {
    let server = ServerSetup::new()?.start().await?;
    let first = server.get("/styles/theme.css", &[]).await?;
    assert_eq!(first.status, 200);
    assert_eq!(
        first.header("content-type"),
        Some("text/css; charset=utf-8")
    );
    assert_eq!(first.header("access-control-allow-origin"), Some("*"));
    assert_eq!(first.header("cache-control"), Some("no-cache"));
    let etag = first.header("etag").unwrap_or_default();
    let again = server
        .get(
            "/styles/theme.css",
            &[&format!("If-None-Match: \"x\", {etag}")],
        )
        .await?;
    assert_eq!((again.status, again.body.len()), (304, 0));

    for path in [
        "/index.html",
        "/login.html",
        "/types/wire.d.ts",
        "/shell/socket.test.js",
        "/..%2fCargo.toml",
        "/../Cargo.toml",
    ] {
        assert_eq!(server.get(path, &[]).await?.status, 404, "{path}");
    }
    assert_eq!(
        server.get("/", &[]).await?.header("cache-control"),
        Some("no-store")
    );
    Ok(())
}

/// Sends `count` wrong tokens concurrently.
fn guess(address: SocketAddr, count: usize) -> Vec<JoinHandle<Result<u16>>> {
    let attempt = |number| async move {
        let head = [
            "GET /auth HTTP/1.1".to_owned(),
            format!("Host: {address}"),
            format!("Authorization: Bearer guess-{number}"),
        ];
        Ok(http(address, &head, "").await?.status)
    };
    (0..count)
        .map(|number| tokio::spawn(attempt(number)))
        .collect()
}

#[tokio::test]
async fn token_guesses_share_one_rate_limit_and_do_not_delay_a_browser() -> Result<()> {
    let server = ServerSetup::new()?.start().await?;
    let browser = Browser::sign_in(&server).await?;
    let address = server.address;
    let guesses = guess(address, 100);
    for _ in 0..20 {
        browser.connect(&server).await?;
    }
    let mut rate_limited = 0;
    for guess in guesses {
        let status = guess.await??;
        assert!(status == 401 || status == 429, "{status}");
        rate_limited += usize::from(status == 429);
    }
    assert!(
        rate_limited > 0,
        "100 concurrent guesses must not all be checked"
    );
    let right = format!("Authorization: Bearer {}", server.token);
    assert_eq!(server.get("/auth", &[&right]).await?.status, 204);
    Ok(())
}

#[tokio::test]
async fn unsupported_http_methods_are_rejected() -> Result<()> {
    let server = ServerSetup::new()?.start().await?;
    for (method, path) in [
        ("DELETE", "/"),
        ("PUT", "/health"),
        ("PUT", "/login"),
        ("POST", "/identity"),
        ("POST", "/styles/theme.css"),
    ] {
        let head = [
            format!("{method} {path} HTTP/1.1"),
            format!("Host: {}", server.address),
        ];
        assert_eq!(
            http(server.address, &head, "").await?.status,
            405,
            "{method} {path}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn token_guesses_do_not_delay_the_right_token() -> Result<()> {
    let server = ServerSetup::new()?.start().await?;
    let address = server.address;
    let guesses = guess(address, 60);
    let right = format!("Authorization: Bearer {}", server.token);
    for _ in 0..10 {
        assert_eq!(server.get("/auth", &[&right]).await?.status, 204);
    }
    for guess in guesses {
        assert_ne!(guess.await??, 204);
    }
    Ok(())
}

#[tokio::test]
async fn unfinished_requests_do_not_block_other_clients() -> Result<()> {
    use tokio::io::AsyncWriteExt;

    let server = ServerSetup::new()?.start().await?;
    let address = server.address;
    let mut stuck = vec![];
    for _ in 0..256 {
        let mut stream = tokio::net::TcpStream::connect(address).await?;
        let head = format!(
            "POST /login HTTP/1.1\r\nHost: {address}\r\nOrigin: http://{address}\r\n\
             Content-Type: application/json\r\nContent-Length: 50\r\n\r\n{{"
        );
        stream.write_all(head.as_bytes()).await?;
        stuck.push(stream);
    }
    assert_eq!(server.get("/health", &[]).await?.status, 200);
    Ok(())
}

/// The time within which a client must be served.
const SERVED_WITHIN: Duration = Duration::from_secs(1);

#[tokio::test]
async fn clients_are_served_at_once_while_a_thousand_connections_wait() -> Result<()> {
    use tokio::io::AsyncWriteExt;

    let server = ServerSetup::new()?.start().await?;
    let address = server.address;
    let browser = Browser::sign_in(&server).await?;
    let mut waiting = vec![];
    for number in 0..1000 {
        let mut stream = tokio::net::TcpStream::connect(address).await?;
        if number % 2 == 0 {
            let head = format!("GET / HTTP/1.1\r\nHost: {address}\r\nX-Slow: ");
            // The server may have closed it to make room for others.
            let _ = stream.write_all(head.as_bytes()).await;
        }
        waiting.push(stream);
    }
    let mut unauthenticated = vec![];
    for _ in 0..40 {
        unauthenticated.push(server.knock().await?);
    }
    let begun = Instant::now();
    assert_eq!(server.get("/health", &[]).await?.status, 200);
    assert_eq!(server.get("/", &[]).await?.status, 200);
    let _window = browser.connect(&server).await?;
    let _program = server.connect().await?;
    for _ in 0..8 {
        Program::at(&server).await?;
    }
    let spent = begun.elapsed();
    assert!(spent < SERVED_WITHIN, "served after {spent:?}");
    Ok(())
}

#[tokio::test]
async fn login_from_a_foreign_origin_is_rejected_before_its_body_is_read() -> Result<()> {
    let server = ServerSetup::new()?.start().await?;
    let address = server.address;
    let head = [
        "POST /login HTTP/1.1".to_owned(),
        format!("Host: {address}"),
        "Origin: http://evil.example".to_owned(),
        "Content-Type: application/json".to_owned(),
        // Announced and never sent.
        "Content-Length: 4000".to_owned(),
    ];
    assert_eq!(http(address, &head, "").await?.status, 403);
    Ok(())
}

#[tokio::test]
async fn liminal_host_sets_the_only_address_that_is_listened_on() -> Result<()> {
    let setup = ServerSetup::new()?.env("LIMINAL_HOST", "127.0.0.2");
    let server = setup.start().await?;
    assert_eq!(server.address.ip().to_string(), "127.0.0.2");
    assert_eq!(server.get("/health", &[]).await?.status, 200);
    let elsewhere = ("127.0.0.1", server.address.port());
    let refused = tokio::net::TcpStream::connect(elsewhere).await;
    assert!(refused.is_err(), "listens on 127.0.0.1, too");
    Ok(())
}
