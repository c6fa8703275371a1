//! The accept loop: bounded connections, a deadline for slow callers, and a clean end.

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

use super::allowance::{Allowance, Metered};
use crate::stop::StopSignal;

/// Plain HTTP connections at a time. A WebSocket gives its place back once it is let in.
const CONNECTIONS_MAX: usize = 256;
/// How long a caller may take for a request's headers, or sit idle between two requests.
const HEADERS_DEADLINE: Duration = Duration::from_secs(10);
/// How long a plain connection may live, whatever it does. A browser opens another without anyone
/// noticing; one that stopped reading or writing in the middle must not keep its place.
const CONNECTION_DEADLINE: Duration = Duration::from_secs(20);
/// How long requests under way may take once we are asked to stop.
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
    /// Serves until asked to stop, then lets requests under way finish, briefly.
    pub(crate) async fn serve(self, router: Router, mut stop: StopSignal) {
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(HEADERS_DEADLINE)
            .max_buf_size(64 * 1024);
        loop {
            let accepted = tokio::select! {
                () = stop.received() => break,
                accepted = accept(&self.listener, &places) => accepted,
            };
            let (stream, place) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of file descriptors, most likely: wait for some to come back.
                    tracing::warn!(%error, "could not accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let allowance = Allowance::default();
            let service = Callers {
                router: TowerToHyperService::new(router.clone()),
                allowance: allowance.clone(),
            };
            let stream = TokioIo::new(Metered::new(stream, allowance));
            let connection = builder.serve_connection(stream, service);
            let mut stop = stop.clone();
            tokio::spawn(async move {
                let _place = place;
                let mut connection = pin!(connection.with_upgrades());
                let ended = tokio::select! {
                    ended = connection.as_mut() => Ok(ended),
                    () = stop.received() => finish(connection).await,
                    () = tokio::time::sleep(CONNECTION_DEADLINE) => finish(connection).await,
                };
                match ended {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => tracing::debug!(%error, "connection ended"),
                    Err(_) => tracing::debug!("connection ended in the middle of a request"),
                }
            });
            // A crowd comes in one by one: what those inside are waiting for goes in between.
            tokio::task::yield_now().await;
        }
        drop(self.listener);
        let all_places = places.acquire_many(CONNECTIONS_MAX as u32);
        let _ = tokio::time::timeout(STOP_DEADLINE, all_places).await;
    }
}

/// The router, with the connection's allowance in every request.
struct Callers {
    router: TowerToHyperService<Router>,
    allowance: Allowance,
}

impl Service<Request<Incoming>> for Callers {
    type Response = Response;
    type Error = Infallible;
    type Future = <TowerToHyperService<Router> as Service<Request<Incoming>>>::Future;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        request.extensions_mut().insert(self.allowance.clone());
        self.router.call(request)
    }
}

type Served = http1::UpgradeableConnection<TokioIo<Metered>, Callers>;

/// Lets the request under way finish, briefly.
async fn finish(mut connection: Pin<&mut Served>) -> Result<hyper::Result<()>, Elapsed> {
    connection.as_mut().graceful_shutdown();
    tokio::time::timeout(STOP_DEADLINE, connection).await
}

async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let place = places
        .clone()
        .acquire_owned()
        .await
        .map_err(io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    stream.set_nodelay(true)?;
    Ok((stream, place))
}
