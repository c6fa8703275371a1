//! The proof that a page's connection begins with: the server sends a signed challenge, the page answers with its
//! browser's signature.
//!
//! Invariant: until the proof is accepted, nothing else is sent to the page, and little is read from it.

use std::time::Duration;

use axum::extract::ws::{Message, WebSocket};
use wire::ProofFrame;

use crate::admission::NamedBrowser;
use crate::browser_keys::BrowserKeys;
use crate::http::ReceiveLimit;
use crate::strict_json;

/// Time limit for the proof. The page opens the connection before its modules have loaded.
const DEADLINE: Duration = Duration::from_secs(10);
const PROOF_BYTES_MAX: usize = 4096;

pub(super) fn limit(receive_limit: &ReceiveLimit) {
    receive_limit.limit(PROOF_BYTES_MAX);
}

/// Sends the challenge and checks the answer. An error is the reason for closing the connection.
pub(super) async fn demand(
    socket: &mut WebSocket,
    keys: &BrowserKeys,
    named: &NamedBrowser,
    receive_limit: &ReceiveLimit,
) -> Result<(), &'static str> {
    let (challenge, exchange) = keys.challenge(&named.host, &named.browser, &named.nonce);
    let challenge = serde_json::to_string(&challenge).map_err(|_| "no challenge")?;
    let answering = async {
        let sent = socket.send(Message::Text(challenge.into())).await;
        sent.map_err(|_| "the page does not read")?;
        loop {
            match socket.recv().await {
                Some(Ok(Message::Text(text))) => {
                    let proof = strict_json::from_str::<ProofFrame>(&text);
                    let proof = proof.map_err(|_| "not a proof")?;
                    return match keys.accepts(&exchange, &proof) {
                        true => Ok(()),
                        false => Err("the proof of this browser's key is wrong"),
                    };
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                _ => return Err("the page left before its proof"),
            }
        }
    };
    tokio::select! {
        answered = answering => answered,
        () = receive_limit.exceeded() => Err("too long a proof"),
        () = tokio::time::sleep(DEADLINE) => Err("the proof took too long"),
    }
}
