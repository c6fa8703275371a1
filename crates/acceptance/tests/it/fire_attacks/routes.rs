//! Every HTTP route of both listeners, read from the router's source: none answers to a foreign host name.

use anyhow::{Context, Result, ensure};
use testkit::{ServerSetup, http};

/// The paths in a function that builds a router, from its source.
fn routes_of(function: &str) -> Result<Vec<String>> {
    let source = include_str!("../../../../liminal/src/http/mod.rs");
    let begin = source.find(function).context("expected the function")?;
    let body = &source[begin..];
    let body = &body[..body.find("\n}").context("expected its end")?];
    let routes = body.split(".route(").skip(1);
    let path = |route: &str| Some(route.split('"').nth(1)?.replace("{id}", "x"));
    Ok(routes.filter_map(path).collect())
}

/// The other tests cover all routes only if routes are defined in one file and in one way.
#[test]
fn all_routes_are_defined_in_one_file_and_behind_the_guard() -> Result<()> {
    let mut folders = vec![concat!(env!("CARGO_MANIFEST_DIR"), "/../liminal/src").into()];
    let mut files = vec![];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir::<std::path::PathBuf>(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                &mut folders
            } else {
                &mut files
            }
            .push(path);
        }
    }
    for file in files {
        let source = std::fs::read_to_string(&file)?;
        for way in [
            ".nest(",
            ".merge(",
            ".route_service(",
            ".nest_service(",
            ".fallback_service(",
        ] {
            assert!(!source.contains(way), "{way} in {}", file.display());
        }
        if !file.ends_with("src/http/mod.rs") {
            assert!(!source.contains(".route("), "{}", file.display());
        }
    }
    let source = include_str!("../../../../liminal/src/http/mod.rs");
    for router in source.split("Router::new()").skip(1) {
        let body = router.split_once("\n}").context("expected an end")?.0;
        let guard = body.find("guard))").context("expected the guard")?;
        // axum applies a layer only to the routes added before it.
        assert!(!body[guard..].contains(".route(") && !body[guard..].contains(".fallback("));
    }
    Ok(())
}

#[tokio::test]
async fn no_route_of_either_listener_answers_to_a_foreign_host_name() -> Result<()> {
    let free = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let setup = ServerSetup::scripted("")?.env("LIMINAL_GATEWAY_PORT", free.port().to_string());
    let server = setup.start().await?;
    let browser = routes_of("fn router(")?;
    let gateway = routes_of("fn gateway_router(")?;
    ensure!(
        browser.len() >= 9 && gateway.len() >= 2,
        "{browser:?} {gateway:?}"
    );
    let files = ["/styles/theme.css", "/nothing", "/..%2f..%2fetc/passwd"].map(str::to_owned);
    let browser = browser.into_iter().chain(files).collect();
    let mut tried = 0;
    for (address, paths) in [(server.address, browser), (free, gateway)] {
        let port = address.port();
        let hosts = [
            format!("intruder.example:{port}"),
            format!("127.0.0.1.intruder.example:{port}"),
            format!("localhost.intruder.example:{port}"),
            format!("0.0.0.0:{port}"),
            format!("127.1:{port}"),
            format!("localhost.:{port}"),
            "127.0.0.1".to_owned(),
            String::new(),
        ];
        for path in &paths {
            for host in &hosts {
                for method in [
                    "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "BREW",
                ] {
                    let head = [
                        format!("{method} {path} HTTP/1.1"),
                        format!("Host: {host}"),
                        format!("Origin: http://{host}"),
                        format!("Authorization: Bearer {}", server.token),
                    ];
                    let answer = http(address, &head, "").await?;
                    assert_eq!(answer.status, 421, "{method} {path} as {host}");
                    assert_eq!(answer.header("set-cookie"), None);
                    assert_eq!(answer.header("access-control-allow-origin"), None);
                    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
                    tried += 1;
                }
            }
        }
    }
    println!("{tried} requests with foreign host names");
    Ok(())
}

#[tokio::test]
async fn token_in_the_url_is_refused_at_every_route() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let server = setup.start().await?;
    let (host, token) = (format!("Host: {}", server.address), &server.token);
    for path in routes_of("fn router(")? {
        for query in [format!("token={token}"), format!("a=b&Token={token}")] {
            let head = [
                format!("GET {path}?{query} HTTP/1.1"),
                host.clone(),
                format!("Authorization: Bearer {token}"),
            ];
            let answer = http(server.address, &head, "").await?;
            assert_eq!(answer.status, 400, "{path}?{query:.12}");
        }
    }
    Ok(())
}
