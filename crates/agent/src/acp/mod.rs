//! The agent side of the Agent Client Protocol, over any pair of pipes.
//!
//! The official crate implements the protocol. Its handlers run inside its dispatch loop and only
//! enqueue here. One loop takes the calls in the order of arrival, runs quick ones directly and slow
//! ones in a task, so that a cancellation always finds the turn it refers to.

mod client;
mod errors;
mod lines;
mod offer;
mod requests;

use std::sync::Arc;
use std::time::Duration;

use acp_lines::Dispatched;
use agent_client_protocol::v1::Responder;
use agent_client_protocol::{Agent, Lines, UntypedMessage};
pub(crate) use client::{ClientLink, Disconnected};
pub(crate) use errors::store_error;
use futures_util::StreamExt;
use requests::Dispatcher;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

use crate::registry::Registry;
use crate::settings::Settings;

/// Maximum received calls that are not dispatched yet.
const CALLS_MAX: usize = 64;
/// Maximum lines waiting to be written to the client.
const OUTBOX_MAX: usize = 256;
/// Time for running turns to record their end after the client has disconnected.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);
const SWEEP_INTERVAL: Duration = Duration::from_secs(3600);

/// A request or notification of the client.
struct Call {
    method: String,
    params: Value,
    /// `None` for a notification.
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
    let (barrier, from_client, dispatched) = acp_lines::barrier();
    tokio::spawn(lines::read(input, barrier));
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
                if method == acp_lines::MARK_METHOD {
                    if let Some(mark) = Dispatched::mark(&method, &params) {
                        dispatched.reached(mark);
                    }
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
            let mut dispatcher = Dispatcher::new(registry, settings, rpc.clone(), outbox);
            loop {
                tokio::select! {
                    Some(call) = called.recv() => dispatcher.receive(call),
                    () = rpc.incoming_closed() => break,
                }
            }
            // Calls received just before the end are still processed, including cancellations.
            while let Ok(call) = called.try_recv() {
                dispatcher.receive(call);
            }
            dispatcher.close(SHUTDOWN_TIMEOUT).await;
            Ok(())
        })
        .await;
    sweeping.abort();
    // All senders of the outbox are dropped by now, so this ends when every line is written.
    let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, writing).await;
    served
}

/// Moves expired sessions to `expired/`, at start and every hour.
async fn sweep(registry: Arc<Registry>) {
    let mut hours = tokio::time::interval(SWEEP_INTERVAL);
    loop {
        hours.tick().await;
        let registry = registry.clone();
        let swept =
            tokio::task::spawn_blocking(move || registry.remove_expired(jiff::Timestamp::now()));
        match swept.await {
            Ok(Ok(removed)) if !removed.is_empty() => {
                tracing::info!(count = removed.len(), "moved expired sessions");
            }
            Ok(Err(error)) => tracing::warn!(%error, "could not check for expired sessions"),
            Ok(Ok(_)) | Err(_) => {}
        }
    }
}
