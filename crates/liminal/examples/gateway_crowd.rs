//! For `cargo xtask bench`: how long a program inside waits for an answer while a crowd of strangers stands at the
//! door, beside a quiet door. Quiet and crowded phases alternate. Prints one JSON object of lists, in microseconds.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use testkit::{Program, Server, ServerSetup};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

const RUNS: usize = 5;
const QUESTIONS: usize = 150;
/// Below what a connection may ask.
const PACE: Duration = Duration::from_millis(12);
const IDLE: usize = 1000;
const BROKEN: usize = 1000;

#[tokio::main]
#[expect(clippy::print_stdout, reason = "the result")]
async fn main() -> Result<()> {
    let release = std::env::current_exe()?;
    let release = release.ancestors().nth(2).context("target/release")?;
    let program = release.join("liminal");
    let mut measured = json!({});
    for _ in 0..RUNS {
        let setup = ServerSetup::new(program.to_str().context("a path")?)?;
        let server = setup.start().await?;
        let mut inside = Program::at(&server).await?;
        measure(&mut inside, &mut measured, "quiet").await?;
        let crowd = Crowd::gather(&server);
        measure(&mut inside, &mut measured, "arriving").await?;
        crowd.is_there().await;
        measure(&mut inside, &mut measured, "standing").await?;
    }
    println!("{measured}");
    Ok(())
}

async fn measure(inside: &mut Program, measured: &mut Value, what: &str) -> Result<()> {
    let mut pace = tokio::time::interval(PACE);
    let mut waited = vec![];
    for _ in 0..QUESTIONS {
        pace.tick().await;
        let asked = Instant::now();
        inside.result("health.check", json!({})).await?;
        waited.push(asked.elapsed().as_secs_f64() * 1e6);
    }
    waited.sort_by(f64::total_cmp);
    for (name, share) in [("p50", 0.5), ("p99", 0.99)] {
        let value = waited[(waited.len() as f64 * share) as usize];
        match &mut measured[format!("{what}_{name}")] {
            Value::Array(list) => list.push(json!(value)),
            missing => *missing = json!([value]),
        }
    }
    Ok(())
}

/// Strangers who knock and say nothing more, and others who knock wrongly. They leave when this is dropped.
struct Crowd {
    strangers: JoinSet<()>,
    arrived: Arc<AtomicUsize>,
}

impl Crowd {
    fn gather(server: &Server) -> Self {
        let upgrade = format!(
            "GET /gateway HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            server.address
        );
        let broken = upgrade.replace("Version: 13", "Version: 7");
        let mut crowd = Self {
            strangers: JoinSet::new(),
            arrived: Arc::default(),
        };
        for number in 0..IDLE + BROKEN {
            let words = match number % 2 == 0 {
                true => upgrade.clone(),
                false => broken.clone(),
            };
            let (address, arrived) = (server.address, crowd.arrived.clone());
            crowd.strangers.spawn(async move {
                let connected = TcpStream::connect(address).await;
                if let Ok(mut stream) = connected {
                    let _ = stream.write_all(words.as_bytes()).await;
                    arrived.fetch_add(1, Ordering::Relaxed);
                    // Until they are sent away, and longer.
                    let _ = stream.read_to_end(&mut vec![]).await;
                }
                std::future::pending::<()>().await;
            });
        }
        crowd
    }

    /// As many as the system lets stand there: the last ones wait for a place in the line.
    async fn is_there(&self) {
        while self.arrived.load(Ordering::Relaxed) < (IDLE + BROKEN) / 2 {
            tokio::time::sleep(PACE).await;
        }
    }
}
