//! The agent's side of the Agent Client Protocol, over any pair of pipes.
//!
//! The official crate speaks the protocol; its handlers run inside its dispatch loop and only enqueue
//! here. One loop takes the calls in the order in which they were made, does what is quick at once and
//! gives what is slow to a task, so that a cancel always finds the turn it is meant for.

mod client;
mod errors;
mod lines;
mod offer;
mod requests;

use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::v1::Responder;
use agent_client_protocol::{Agent, Lines, UntypedMessage};
pub(crate) use client::{ClientLink, Gone};
pub(crate) use errors::told_store_error;
use futures_channel::mpsc as line_channel;
use futures_util::StreamExt;
use requests::Surface;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, watch};

use crate::registry::Registry;
use crate::settings::Settings;

/// Calls taken from the client and not yet looked at.
const CALLS_MAX: usize = 64;
/// Lines on their way to the client.
const OUTBOX_MAX: usize = 256;
/// How long turns may take to write down their end once the client is gone.
const LAST_WORDS: Duration = Duration::from_secs(2);
const SWEEP_EVERY: Duration = Duration::from_secs(3600);

/// What a client sent.
struct Call {
    method: String,
    params: Value,
    /// None for a notification.
    responder: Option<Responder<Value>>,
}

/// Serves one client until its input ends.
pub async fn serve(
    registry: Arc<Registry>,
    settings: Arc<Settings>,
    input: impl AsyncRead + Unpin + Send + 'static,
    output: impl AsyncWrite + Unpin + Send + 'static,
) -> Result<(), agent_client_protocol::Error> {
    let (outbox, outgoing) = mpsc::channel(OUTBOX_MAX);
    let writing = tokio::spawn(lines::write(output, outgoing));
    let (to_crate, from_client) = line_channel::channel(2);
    let (mark, dispatched) = watch::channel(0);
    tokio::spawn(lines::read(input, to_crate, dispatched));
    let sweeping = tokio::spawn(sweep(registry.clone()));

    let sink =
        futures_util::sink::unfold(outbox.clone(), async |outbox, line: String| {
            match outbox.send(line).await {
                Ok(()) => Ok(outbox),
                Err(_) => Err(std::io::Error::from(std::io::ErrorKind::BrokenPipe)),
            }
        });
    let transport = Lines::new(
        Box::pin(sink),
        from_client.map(Ok::<String, std::io::Error>),
    );
    let (calls, mut called) = mpsc::channel(CALLS_MAX);
    let notified = calls.clone();
    let served = Agent
        .v1()
        .name("liminal-agent")
        .on_receive_request(
            async move |request: UntypedMessage, responder: Responder<Value>, _| {
                let (method, params) = request.into_parts();
                let responder = Some(responder);
                let call = Call {
                    method,
                    params,
                    responder,
                };
                let _ = calls.send(call).await;
                Ok(())
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_notification(
            async move |notification: UntypedMessage, _| {
                let (method, params) = notification.into_parts();
                if method == lines::MARK_METHOD {
                    mark.send_replace(params["mark"].as_u64().unwrap_or_default());
                    return Ok(());
                }
                let responder = None;
                let call = Call {
                    method,
                    params,
                    responder,
                };
                let _ = notified.send(call).await;
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .connect_with(transport, async move |rpc| {
            let mut surface = Surface::new(registry, settings, rpc.clone(), outbox);
            loop {
                tokio::select! {
                    Some(call) = called.recv() => surface.receive(call),
                    () = rpc.incoming_closed() => break,
                }
            }
            // What was sent just before the end still counts, a cancel too.
            while let Ok(call) = called.try_recv() {
                surface.receive(call);
            }
            surface.close(LAST_WORDS).await;
            Ok(())
        })
        .await;
    sweeping.abort();
    // Everything that could write has let go of the outbox, so this ends when all is written.
    let _ = tokio::time::timeout(LAST_WORDS, writing).await;
    served
}

/// Moves expired sessions aside, now and every hour.
async fn sweep(registry: Arc<Registry>) {
    let mut hours = tokio::time::interval(SWEEP_EVERY);
    loop {
        hours.tick().await;
        let registry = registry.clone();
        let swept =
            tokio::task::spawn_blocking(move || registry.remove_expired(jiff::Timestamp::now()));
        match swept.await {
            Ok(Ok(removed)) if !removed.is_empty() => {
                tracing::info!(count = removed.len(), "moved expired sessions aside");
            }
            Ok(Err(error)) => tracing::warn!(%error, "could not look for expired sessions"),
            Ok(Ok(_)) | Err(_) => {}
        }
    }
}
