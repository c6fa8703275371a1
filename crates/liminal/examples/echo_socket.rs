//! The WebSocket of our doors, with its limits and its endings, that says back whatever it is told: for test suites
//! that judge a WebSocket by its echo. `docs/decisions/0014-websockets-judged-by-autobahn.md` says how it is used.
//!
//! Prints its address.

#[path = "../src/socket.rs"]
#[expect(dead_code, reason = "an echo has fewer reasons to hang up")]
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
        let said = match socket.recv().await {
            Some(Ok(message @ (Message::Text(_) | Message::Binary(_)))) => socket.send(message),
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
            Some(Ok(Message::Close(_))) => return socket::answer_close(&mut socket).await,
            Some(Err(broken)) => {
                let (code, why) = socket::why_broken(broken);
                socket::close(&mut socket, code, why).await;
                return;
            }
            None => return,
        };
        if said.await.is_err() {
            return;
        }
    }
}
