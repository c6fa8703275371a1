//! Tests of signed-in browsers: what a program that answered at the server's address could have seen is worth nothing
//! to the server, and browsers can be listed and signed out.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testkit::{
    Browser, HttpResponse, Program, Server, ServerSetup, Socket, http, new_nonce, new_sign_in,
    post_login,
};

const PICTURE: &str = "GIF89a";

async fn start() -> Result<(ServerSetup, Server)> {
    let setup = ServerSetup::new()?;
    let server = setup.start().await?;
    Ok((setup, server))
}

/// Opens a page's connection with this answer to the challenge and returns the close code, or `None` if it is admitted.
async fn close_code(
    browser: &Browser,
    server: &Server,
    answer: impl FnOnce(&str, &Value) -> Result<Value>,
) -> Result<Option<u16>> {
    let nonce = new_nonce()?;
    let mut socket = browser.open(server.address, &browser.host, &nonce).await?;
    let challenge = socket.next().await?;
    socket.send(answer(&nonce, &challenge)?).await?;
    match socket.next_or_close().await? {
        Ok(message) => {
            ensure!(message["type"] == "hello", "{message}");
            Ok(None)
        }
        Err(code) => Ok(code),
    }
}

#[tokio::test]
async fn browser_and_server_recognise_each_other_after_a_restart() -> Result<()> {
    let (setup, server) = start().await?;
    let port = server.address.port();
    let browser = Browser::sign_in(&server).await?;
    browser.connect(&server).await?;
    server.signal("TERM").await?;
    let server = setup.start_at(port).await?;
    browser.connect(&server).await?;
    server.signal("KILL").await?;
    let server = setup.start_at(port).await?;
    assert!(browser.is_known(server.address).await?);
    let (mut socket, _) = browser.connect(&server).await?;
    let list = socket.ask(json!({"type": "project:list"})).await?;
    assert_eq!(list["projects"], json!([]));
    Ok(())
}

#[tokio::test]
async fn nothing_is_sent_to_a_page_before_its_proof() -> Result<()> {
    let (_setup, server) = start().await?;
    let browser = Browser::sign_in(&server).await?;
    let wrong = [
        json!({"type": "project:list", "requestId": "early"}),
        json!({"type": "proof"}),
        json!({"type": "proof", "signature": ""}),
        json!({"type": "proof", "signature": "AAAA"}),
        json!({"type": "proof", "secret": ""}),
        json!({"type": "proof", "secret": server.token}),
        json!({"type": "auth", "token": server.token}),
    ];
    for answer in wrong {
        let code = close_code(&browser, &server, |_, _| Ok(answer.clone())).await?;
        assert_eq!(code, Some(4401), "{answer}");
    }
    assert_eq!(
        close_code(&browser, &server, |nonce, challenge| browser.proof(
            &browser.host,
            nonce,
            challenge
        ))
        .await?,
        None
    );
    Ok(())
}

#[tokio::test]
async fn proof_of_one_connection_is_refused_on_every_other() -> Result<()> {
    let (setup, server) = start().await?;
    let port = server.address.port();
    let browser = Browser::sign_in(&server).await?;
    let nonce = new_nonce()?;
    let mut socket = browser.open(server.address, &browser.host, &nonce).await?;
    let challenge = socket.next().await?;
    let proof = browser.proof(&browser.host, &nonce, &challenge)?;
    socket.send(proof.clone()).await?;
    assert_eq!(socket.next().await?["type"], "hello");

    let replay = async |server: &Server| -> Result<Option<u16>> {
        // With the nonce of the page that the recorded proof belongs to.
        let mut socket = browser.open(server.address, &browser.host, &nonce).await?;
        let fresh = socket.next().await?;
        ensure!(fresh["nonce"] != challenge["nonce"], "{fresh}");
        socket.send(proof.clone()).await?;
        socket.closed().await
    };
    assert_eq!(replay(&server).await?, Some(4401));
    server.signal("KILL").await?;
    let server = setup.start_at(port).await?;
    assert_eq!(replay(&server).await?, Some(4401));
    Ok(())
}

#[tokio::test]
async fn proof_for_another_address_or_of_another_browser_is_refused() -> Result<()> {
    let (setup, server) = start().await?;
    let browser = Browser::sign_in(&server).await?;
    let other = Browser::sign_in(&server).await?;
    let wrong_port = format!("127.0.0.1:{}", server.address.port().wrapping_add(1));
    for host in [wrong_port.as_str(), "localhost:3000", "127.0.0.1", ""] {
        let code = close_code(&browser, &server, |nonce, challenge| {
            browser.proof(host, nonce, challenge)
        });
        assert_eq!(code.await?, Some(4401), "{host}");
    }
    let code = close_code(&browser, &server, |nonce, challenge| {
        other.proof(&browser.host, nonce, challenge)
    });
    assert_eq!(code.await?, Some(4401));

    // A relay on the browser's port forwards everything to the server, which now has another port.
    server.signal("KILL").await?;
    let server = setup.start().await?;
    let nonce = new_nonce()?;
    let refused = browser.open(server.address, &browser.host, &nonce).await;
    assert_eq!(refused.err().and_then(|refused| refused.status), Some(421));
    let host = server.address.to_string();
    let refused = browser.open(server.address, &host, &nonce).await;
    assert_eq!(refused.err().and_then(|refused| refused.status), Some(401));
    Ok(())
}

#[tokio::test]
async fn server_signs_only_for_the_address_that_the_page_sees() -> Result<()> {
    let (_setup, server) = start().await?;
    let browser = Browser::sign_in(&server).await?;
    let nonce = new_nonce()?;
    let mut socket = browser.open(server.address, &browser.host, &nonce).await?;
    let challenge = socket.next().await?;
    assert!(browser.trusts(&browser.host, &nonce, &challenge));
    let other = format!("127.0.0.1:{}", server.address.port().wrapping_add(1));
    assert!(!browser.trusts(&other, &nonce, &challenge));
    assert!(!browser.trusts(&browser.host, &new_nonce()?, &challenge));
    Ok(())
}

#[tokio::test]
async fn page_that_sends_no_proof_is_disconnected_at_the_deadline() -> Result<()> {
    let (_setup, server) = start().await?;
    let browser = Browser::sign_in(&server).await?;
    let nonce = new_nonce()?;
    let mut socket = browser.open(server.address, &browser.host, &nonce).await?;
    socket.next().await?;
    assert_eq!(socket.closed().await?, Some(4401));
    Ok(())
}

#[tokio::test]
async fn sign_in_counts_once_and_only_in_the_start_that_offered_it() -> Result<()> {
    let (setup, server) = start().await?;
    let (port, address) = (server.address.port(), server.address);
    let host = address.to_string();
    let post =
        async |body: &Value| Ok::<_, anyhow::Error>(post_login(address, &host, body).await?.status);
    let first = new_sign_in(address, &server.token).await?;
    assert_eq!(post(&first).await?, 200);
    assert_eq!(post(&first).await?, 409);
    let mut changed = new_sign_in(address, &server.token).await?;
    let mine = new_sign_in(address, "wrong-token-0123456789").await?;
    changed["publicKey"] = mine["publicKey"].clone();
    assert_eq!(post(&changed).await?, 401);
    for nonce in ["", "0-0", "ffffffffff-0123-0123", "a\nb"] {
        let mut odd = first.clone();
        odd["nonce"] = json!(nonce);
        assert_eq!(post(&odd).await?, 409, "{nonce:?}");
    }
    let unused = new_sign_in(address, &server.token).await?;
    server.signal("KILL").await?;
    let _server = setup.start_at(port).await?;
    for body in [&first, &unused] {
        assert_eq!(post(body).await?, 409);
    }
    Ok(())
}

#[tokio::test]
async fn token_rotation_and_a_new_token_sign_every_browser_out() -> Result<()> {
    let (setup, mut server) = start().await?;
    let port = server.address.port();
    let browser = Browser::sign_in(&server).await?;
    let (mut socket, _) = browser.connect(&server).await?;
    let mut program = Program::at(&server).await?;
    // The connection may be closed before the answer.
    let _ = program.call("token.rotate", json!({})).await;
    assert_eq!(socket.closed().await?, Some(4401));
    assert!(!browser.is_known(server.address).await?);

    server.signal("TERM").await?;
    server = setup.start_at(port).await?;
    assert!(!browser.is_known(server.address).await?);
    let browser = Browser::sign_in(&server).await?;
    server.signal("TERM").await?;
    std::fs::remove_file(setup.data_dir().join("token"))?;
    let server = setup.start_at(port).await?;
    assert!(!browser.is_known(server.address).await?);
    Ok(())
}

#[tokio::test]
async fn browsers_are_listed_and_ended_one_by_one_for_good() -> Result<()> {
    let (setup, server) = start().await?;
    let port = server.address.port();
    let (kept, ended) = (
        Browser::sign_in(&server).await?,
        Browser::sign_in(&server).await?,
    );
    let (mut open, _) = kept.connect(&server).await?;
    let (mut closed, hello) = ended.connect(&server).await?;
    let listed = setup.run(&["browsers"]).await?;
    let listed = String::from_utf8(listed.stdout)?;
    assert_eq!(listed.lines().count(), 2, "{listed}");
    assert!(
        listed.contains(&kept.id[..8]) && listed.contains(&ended.host),
        "{listed}"
    );

    let run = setup.run(&["browsers", "--end", &ended.id[..12]]).await?;
    assert!(run.status.success(), "{run:?}");
    assert_eq!(closed.closed().await?, Some(4401));
    open.ask(json!({"type": "project:list"})).await?;
    let pass = hello["pass"].as_str().context("expected a pass")?;
    assert_eq!(upload(server.address, pass).await?.status, 401);
    let again = setup.run(&["browsers", "--end", &ended.id[..12]]).await?;
    assert!(!again.status.success());

    server.signal("KILL").await?;
    let server = setup.start_at(port).await?;
    assert!(kept.is_known(server.address).await?);
    assert!(!ended.is_known(server.address).await?);
    let json = setup.run(&["browsers", "--json"]).await?;
    let json: Value = serde_json::from_slice(&json.stdout)?;
    assert_eq!(json[0]["browserId"], kept.id.as_str());
    Ok(())
}

#[tokio::test]
async fn least_recently_used_browser_is_forgotten_beyond_the_limit() -> Result<()> {
    let (_setup, server) = start().await?;
    let oldest = Browser::sign_in(&server).await?;
    let second = Browser::sign_in(&server).await?;
    for _ in 2..32 {
        Browser::sign_in(&server).await?;
    }
    oldest.connect(&server).await?;
    Browser::sign_in(&server).await?;
    assert!(oldest.is_known(server.address).await?);
    assert!(!second.is_known(server.address).await?);
    Ok(())
}

#[tokio::test]
async fn pass_admits_pictures_of_its_page_until_the_server_ends() -> Result<()> {
    let (setup, server) = start().await?;
    let port = server.address.port();
    let browser = Browser::sign_in(&server).await?;
    let (_socket, hello) = browser.connect(&server).await?;
    let pass = hello["pass"].as_str().context("expected a pass")?;
    let uploaded = upload(server.address, pass).await?;
    assert_eq!(uploaded.status, 200);
    let uploaded: Value = serde_json::from_slice(&uploaded.body)?;
    let id = uploaded["imageId"].as_str().context("expected an id")?;
    let short = &pass[..pass.len() - 1];
    assert_eq!(upload(server.address, short).await?.status, 401);
    let picture = async |server: &Server, query: &str| {
        let path = format!("/uploads/{id}{query}");
        Ok::<_, anyhow::Error>(server.get(&path, &[]).await?.status)
    };
    let with_pass = format!("?pass={pass}");
    assert_eq!(picture(&server, &with_pass).await?, 200);
    assert_eq!(picture(&server, "").await?, 401);

    server.signal("KILL").await?;
    let server = setup.start_at(port).await?;
    assert_eq!(picture(&server, &with_pass).await?, 401);
    assert_eq!(upload(server.address, pass).await?.status, 401);
    Ok(())
}

async fn upload(address: SocketAddr, pass: &str) -> Result<HttpResponse> {
    let head = [
        format!("POST /uploads?pass={pass} HTTP/1.1"),
        format!("Host: {address}"),
        format!("Origin: http://{address}"),
    ];
    http(address, &head, PICTURE).await
}

#[tokio::test]
async fn browser_without_keys_signs_in_until_the_server_ends() -> Result<()> {
    let (setup, server) = start().await?;
    let (port, host) = (server.address.port(), server.address.to_string());
    let signed_in = post_login(server.address, &host, &json!({"token": server.token})).await?;
    assert_eq!(signed_in.status, 200);
    let signed_in: Value = serde_json::from_slice(&signed_in.body)?;
    let (browser, secret) = (&signed_in["browser"], &signed_in["secret"]);
    let path = format!(
        "/ws?browser={}&nonce=abc",
        browser.as_str().unwrap_or_default()
    );
    let origin = format!("http://{host}");
    let headers = [("host", host.as_str()), ("origin", origin.as_str())];
    for (offered, message) in [(secret, Some("hello")), (browser, None)] {
        let mut socket = Socket::open(server.address, &path, &headers).await?;
        socket.next().await?;
        socket
            .send(json!({"type": "proof", "secret": offered}))
            .await?;
        let answer = socket.next_or_close().await?.ok();
        assert_eq!(
            answer.as_ref().and_then(|answer| answer["type"].as_str()),
            message
        );
    }
    server.signal("KILL").await?;
    let server = setup.start_at(port).await?;
    let refused = Socket::open(server.address, &path, &headers).await.err();
    assert_eq!(refused.and_then(|refused| refused.status), Some(401));
    Ok(())
}

#[tokio::test]
async fn service_worker_of_another_program_is_replaced_by_one_that_leaves() -> Result<()> {
    let (_setup, server) = start().await?;
    for path in ["/", "/sw.js", "/styles/theme.css", "/nothing"] {
        let answer = server.get(path, &["Service-Worker: script"]).await?;
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert!(answer.text().contains("registration.unregister()"));
    }
    Ok(())
}
