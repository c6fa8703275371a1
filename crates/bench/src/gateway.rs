//! Response time of a gateway client while a crowd of unauthenticated clients connects and stays connected, compared
//! with a gateway without a crowd. The crowd also uses processor time, so a second server without a crowd is measured
//! alternately: its response time shows the machine's share.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::json;
use testkit::{Program, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::{self, Runtime};

use crate::figures::{Effort, Figures};
use crate::process::setup;

/// Requests per measurement: enough that the 99th percentile rests on a few samples.
const REQUESTS: usize = 400;
/// Interval between two requests to alternating servers: below the rate limit of a connection.
const PACE: Duration = Duration::from_millis(6);
const IDLE: usize = 1000;
const BROKEN: usize = 1000;

pub(crate) async fn measure(effort: Effort, figures: &mut Figures) -> Result<()> {
    for _ in 0..effort.of(5, 2) {
        let (crowded, quiet) = (setup()?, setup()?);
        let server = crowded.start().await?;
        let quiet_server = quiet.start().await?;
        let mut both = [
            Program::at(&server).await?,
            Program::at(&quiet_server).await?,
        ];
        measure_requests(&mut both, figures, "quiet").await?;
        let crowd = Crowd::gather(&server)?;
        measure_requests(&mut both, figures, "arriving").await?;
        crowd.wait_until_connected().await;
        measure_requests(&mut both, figures, "standing").await?;
    }
    Ok(())
}

/// Adds the percentiles of the response times, in microseconds.
async fn measure_requests(
    both: &mut [Program; 2],
    figures: &mut Figures,
    what: &str,
) -> Result<()> {
    let mut pace = tokio::time::interval(PACE);
    let mut waited = [vec![], vec![]];
    for _ in 0..REQUESTS {
        for (program, waited) in both.iter_mut().zip(&mut waited) {
            pace.tick().await;
            let asked = Instant::now();
            program.result("health.check", json!({})).await?;
            waited.push(asked.elapsed().as_secs_f64() * 1e6);
        }
    }
    for (whose, waited) in ["", "elsewhere_"].into_iter().zip(waited) {
        figures.add_percentiles(&format!("{whose}{what}"), waited);
    }
    Ok(())
}

/// Unauthenticated clients: half send nothing after the upgrade, half send an invalid upgrade. They disconnect on drop.
struct Crowd {
    arrived: Arc<AtomicUsize>,
    /// A runtime with its own threads, so that the crowd does not delay the measuring client.
    runtime: Option<Runtime>,
}

impl Crowd {
    fn gather(server: &Server) -> Result<Self> {
        let upgrade = format!(
            "GET /gateway HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            server.address
        );
        let broken = upgrade.replace("Version: 13", "Version: 7");
        let runtime = runtime::Builder::new_multi_thread().enable_all().build()?;
        let arrived = Arc::<AtomicUsize>::default();
        for number in 0..IDLE + BROKEN {
            let words = match number % 2 == 0 {
                true => upgrade.clone(),
                false => broken.clone(),
            };
            let (address, arrived) = (server.address, arrived.clone());
            runtime.spawn(async move {
                let connected = TcpStream::connect(address).await;
                if let Ok(mut stream) = connected {
                    let _ = stream.write_all(words.as_bytes()).await;
                    arrived.fetch_add(1, Ordering::Relaxed);
                    // Reads until the server closes the connection.
                    let _ = stream.read_to_end(&mut vec![]).await;
                }
                std::future::pending::<()>().await;
            });
        }
        let runtime = Some(runtime);
        Ok(Self { arrived, runtime })
    }

    /// Waits for as many connections as the system admits; the others stay in the listen queue.
    async fn wait_until_connected(&self) {
        while self.arrived.load(Ordering::Relaxed) < (IDLE + BROKEN) / 2 {
            tokio::time::sleep(PACE).await;
        }
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
