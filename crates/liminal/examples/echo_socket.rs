//! An echo server on the listeners' WebSocket, with its limits and closing handshake, for conformance test suites.
//! `docs/decisions/0014-websockets-judged-by-autobahn.md` describes its use.
//!
//! Prints its address.

#[path = "../src/socket.rs"]
#[expect(dead_code, reason = "an echo server uses fewer close codes")]
mod socket;

use axum::Router;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::routing::any;

#[tokio::main]
#[expect(clippy::print_stdout, reason = "the address")]
async fn main() -> anyhow::Result<()> {
    let accept = |upgrade: WebSocketUpgrade| async { socket::bounded(upgrade).on_upgrade(echo) };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("ws://{}/", listener.local_addr()?);
    axum::serve(listener, Router::new().route("/", any(accept))).await?;
    Ok(())
}

async fn echo(mut socket: WebSocket) {
    loop {
        let sent = match socket.recv().await {
            Some(Ok(message @ (Message::Text(_) | Message::Binary(_)))) => socket.send(message),
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
            Some(Ok(Message::Close(_))) => return socket::answer_close(&mut socket).await,
            Some(Err(broken)) => {
                let (code, reason) = socket::close_reason(broken);
                socket::close(&mut socket, code, reason).await;
                return;
            }
            None => return,
        };
        if sent.await.is_err() {
            return;
        }
    }
}
