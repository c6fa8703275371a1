//! The accept loop: bounded connections, time limits for slow clients, and a graceful stop.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::Request;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::error::Elapsed;

use super::receive_limit::{LimitedStream, ReceiveLimit};
use crate::stop::StopSignal;

/// Maximum concurrent HTTP connections. A WebSocket no longer counts after its upgrade.
const CONNECTIONS_MAX: usize = 256;
/// Time limit for a request's headers, and for the idle time between two requests.
const HEADERS_DEADLINE: Duration = Duration::from_secs(10);
/// Maximum lifetime of an HTTP connection. A browser reopens it without a visible effect, and a client that stops
/// reading or writing cannot hold a connection forever.
const CONNECTION_DEADLINE: Duration = Duration::from_secs(20);
/// Time limit for running requests after a stop.
const STOP_DEADLINE: Duration = Duration::from_millis(500);

const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

pub(crate) struct Listening {
    listener: TcpListener,
    pub(crate) address: SocketAddr,
}

pub(crate) async fn listen(address: SocketAddr) -> io::Result<Listening> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    Ok(Listening { listener, address })
}

impl Listening {
    /// Serves until the stop signal, then gives running requests `STOP_DEADLINE` to finish.
    pub(crate) async fn serve(self, router: Router, mut stop: StopSignal) {
        let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(HEADERS_DEADLINE)
            .max_buf_size(64 * 1024);
        loop {
            let accepted = tokio::select! {
                () = stop.received() => break,
                accepted = accept(&self.listener, &permits) => accepted,
            };
            let (stream, permit) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Most likely out of file descriptors: wait until some are closed.
                    tracing::warn!(%error, "could not accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let receive_limit = ReceiveLimit::default();
            let service = LimitedRouter {
                router: TowerToHyperService::new(router.clone()),
                receive_limit: receive_limit.clone(),
            };
            let stream = TokioIo::new(LimitedStream::new(stream, receive_limit));
            let connection = builder.serve_connection(stream, service);
            let mut stop = stop.clone();
            tokio::spawn(async move {
                let _permit = permit;
                let mut connection = pin!(connection.with_upgrades());
                let ended = tokio::select! {
                    ended = connection.as_mut() => Ok(ended),
                    () = stop.received() => finish(connection).await,
                    () = tokio::time::sleep(CONNECTION_DEADLINE) => finish(connection).await,
                };
                match ended {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => tracing::debug!(%error, "connection failed"),
                    Err(_) => tracing::debug!("connection closed during a request"),
                }
            });
            // Yields after each connection, so that many new ones do not delay the established ones.
            tokio::task::yield_now().await;
        }
        drop(self.listener);
        let all_permits = permits.acquire_many(CONNECTIONS_MAX as u32);
        let _ = tokio::time::timeout(STOP_DEADLINE, all_permits).await;
    }
}

/// The router; adds the connection's receive limit to every request.
struct LimitedRouter {
    router: TowerToHyperService<Router>,
    receive_limit: ReceiveLimit,
}

impl Service<Request<Incoming>> for LimitedRouter {
    type Response = Response;
    type Error = Infallible;
    type Future = <TowerToHyperService<Router> as Service<Request<Incoming>>>::Future;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        request.extensions_mut().insert(self.receive_limit.clone());
        self.router.call(request)
    }
}

type Connection = http1::UpgradeableConnection<TokioIo<LimitedStream>, LimitedRouter>;

/// Gives the running request `STOP_DEADLINE` to finish.
async fn finish(mut connection: Pin<&mut Connection>) -> Result<hyper::Result<()>, Elapsed> {
    connection.as_mut().graceful_shutdown();
    tokio::time::timeout(STOP_DEADLINE, connection).await
}

async fn accept(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
) -> io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let permit = permits
        .clone()
        .acquire_owned()
        .await
        .map_err(io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    stream.set_nodelay(true)?;
    Ok((stream, permit))
}
