//! The accept loop: bounded connections, time limits for slow clients, and a graceful stop.
//!
//! It never waits for a connection to end: a new one takes the place of one that has not authenticated.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
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
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio::time::error::Elapsed;

use super::receive_limit::{LimitedStream, ReceiveLimit};
use crate::connection_limit::{ConnectionLimit, PlaceOf};
use crate::stop::StopSignal;

/// Maximum concurrent HTTP connections. A WebSocket no longer counts after its upgrade.
const CONNECTIONS_MAX: usize = 256;
/// Time limit for a request's headers, and for the idle time between two requests.
const HEADERS_DEADLINE: Duration = Duration::from_secs(10);
/// Maximum lifetime of an HTTP connection, unless an authenticated request extends it. A browser reopens it without a
/// visible effect, and a client that stops reading or writing cannot hold a connection forever.
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
        let limit = ConnectionLimit::new(CONNECTIONS_MAX);
        // Each connection holds a sender, so the channel closes when all have ended.
        let (open, mut all_ended) = mpsc::channel::<Infallible>(1);
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(HEADERS_DEADLINE)
            .max_buf_size(64 * 1024);
        loop {
            let accepted = tokio::select! {
                () = stop.received() => break,
                accepted = accept(&self.listener) => accepted,
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Most likely out of file descriptors: wait until some are closed.
                    tracing::warn!(%error, "could not accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let (place, open) = (limit.enter(peer), open.clone());
            let receive_limit = ReceiveLimit::default();
            let deadline = ConnectionDeadline::after(CONNECTION_DEADLINE);
            let service = LimitedRouter {
                router: TowerToHyperService::new(router.clone()),
                receive_limit: receive_limit.clone(),
                place: place.handle(),
                deadline: deadline.clone(),
            };
            let stream = TokioIo::new(LimitedStream::new(stream, receive_limit));
            let connection = builder.serve_connection(stream, service);
            let mut stop = stop.clone();
            tokio::spawn(async move {
                let _open = open;
                let mut connection = pin!(connection.with_upgrades());
                let ended = tokio::select! {
                    ended = connection.as_mut() => Ok(ended),
                    () = stop.received() => finish(connection).await,
                    // Closed at once: what it has sent so far is not worth waiting for.
                    () = place.evicted() => return,
                    () = deadline.reached() => finish(connection).await,
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
        drop(open);
        let _ = tokio::time::timeout(STOP_DEADLINE, all_ended.recv()).await;
    }
}

/// When a connection is closed; clones share it.
#[derive(Clone)]
pub(super) struct ConnectionDeadline {
    at: watch::Sender<Instant>,
}

impl ConnectionDeadline {
    fn after(time: Duration) -> Self {
        let (at, _) = watch::channel(Instant::now() + time);
        Self { at }
    }

    /// Keeps the connection open for at least this time from now on. Only for authenticated requests: others could hold
    /// all connections.
    pub(super) fn extend(&self, time: Duration) {
        let later = Instant::now() + time;
        self.at.send_if_modified(|at| {
            let extended = later > *at;
            *at = later.max(*at);
            extended
        });
    }

    async fn reached(&self) {
        let mut changes = self.at.subscribe();
        loop {
            let at = *changes.borrow_and_update();
            tokio::select! {
                () = tokio::time::sleep_until(at) => return,
                _ = changes.changed() => {}
            }
        }
    }
}

/// The router; adds the connection's receive limit, place and deadline to every request.
struct LimitedRouter {
    router: TowerToHyperService<Router>,
    receive_limit: ReceiveLimit,
    place: PlaceOf,
    deadline: ConnectionDeadline,
}

impl Service<Request<Incoming>> for LimitedRouter {
    type Response = Response;
    type Error = Infallible;
    type Future = <TowerToHyperService<Router> as Service<Request<Incoming>>>::Future;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        request.extensions_mut().insert(self.receive_limit.clone());
        request.extensions_mut().insert(self.place.clone());
        request.extensions_mut().insert(self.deadline.clone());
        self.router.call(request)
    }
}

type Connection = http1::UpgradeableConnection<TokioIo<LimitedStream>, LimitedRouter>;

/// Gives the running request `STOP_DEADLINE` to finish.
async fn finish(mut connection: Pin<&mut Connection>) -> Result<hyper::Result<()>, Elapsed> {
    connection.as_mut().graceful_shutdown();
    tokio::time::timeout(STOP_DEADLINE, connection).await
}

async fn accept(listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    let (stream, peer) = listener.accept().await?;
    stream.set_nodelay(true)?;
    Ok((stream, peer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn extended_deadline_is_reached_at_the_later_time() {
        let seconds = Duration::from_secs;
        let deadline = ConnectionDeadline::after(seconds(20));
        let begun = Instant::now();
        let extending = async {
            tokio::time::sleep(seconds(10)).await;
            deadline.extend(seconds(60));
            // Does not shorten it.
            deadline.extend(seconds(1));
        };
        tokio::join!(deadline.reached(), extending);
        assert_eq!(begun.elapsed().as_secs(), 70);
    }

    #[tokio::test(start_paused = true)]
    async fn deadline_of_an_unextended_connection_is_its_own() {
        let begun = Instant::now();
        let deadline = ConnectionDeadline::after(CONNECTION_DEADLINE);
        deadline.reached().await;
        assert_eq!(begun.elapsed().as_secs(), CONNECTION_DEADLINE.as_secs());
    }
}
