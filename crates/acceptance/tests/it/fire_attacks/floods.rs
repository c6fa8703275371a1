//! Floods and crowds of connections: a well-behaved client is still answered quickly, and memory stays bounded.
//!
//! Each test compares two servers on the same busy machine, only one of which is flooded. A slowdown that affects both
//! comes from the machine; a slowdown of the flooded one is a defect.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::json;
use testkit::{HANG_GUARD, Program, Server, ServerSetup, Socket, times};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;
use tokio::task::JoinSet;

use crate::fire_attacks::raw::{CONTINUATION, Caller, Raw, TEXT, frame, head};

const RATIO_MAX: u32 = 3;
const ROUNDS_MAX: usize = 5;
const GROWTH_KIB_MAX: u64 = 32 * 1024;
/// Maximum bytes one unauthenticated connection can send before it is closed; most of them stay in kernel buffers.
const UNAUTHENTICATED_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Number of flooding connections, enough to keep every thread of the server busy.
const POURING: usize = 4;
/// Lower limit for the reference latency, less than a time slice of the scheduler, which a busy process may wait for.
const LATENCY_MIN: Duration = Duration::from_millis(1);

/// Interval between two bytes of a slow sender.
const BYTE_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum delay after a deadline on a busy machine; less than the difference to the next deadline.
const DELAY_MAX: Duration = Duration::from_secs(8);

/// A server that is flooded and one that is not, and a well-behaved client at each.
struct Pair {
    _setups: [ServerSetup; 2],
    flooded: Arc<Server>,
    _reference: Server,
    clients: [Socket; 2],
    memory_before: u64,
}

impl Pair {
    async fn start() -> Result<Self> {
        let setups = [ServerSetup::scripted("")?, ServerSetup::scripted("")?];
        let (flooded, reference) = (setups[0].start().await?, setups[1].start().await?);
        let mut clients = [flooded.connect().await?, reference.connect().await?];
        for client in &mut clients {
            for _ in 0..20 {
                client.ask(json!({"type": "project:list"})).await?;
            }
        }
        let memory_before = resident_kib(flooded.id())?;
        Ok(Self {
            _setups: setups,
            flooded: Arc::new(flooded),
            _reference: reference,
            clients,
            memory_before,
        })
    }

    /// Alternates requests to both servers during the flood and compares the latencies. One good round suffices: other
    /// load on the machine may spoil a round, but a real defect spoils all of them.
    async fn hold(&mut self, what: &str) -> Result<()> {
        let mut memory = self.memory_before;
        let mut rounds = vec![];
        let held = loop {
            let [with, without] = self.round(&mut memory).await?;
            rounds.push(format!("p99 {with:?}, without {without:?}"));
            let held = with <= without.max(LATENCY_MIN) * RATIO_MAX;
            if held || rounds.len() == ROUNDS_MAX {
                break held;
            }
        };
        let grown = memory.saturating_sub(self.memory_before);
        println!("{what}: {}; at most {grown} KiB more", rounds.join("; "));
        assert!(held, "{what}: {rounds:?}");
        assert!(grown <= GROWTH_KIB_MAX, "{what}: {grown} KiB more");
        Ok(())
    }

    /// 99th percentile of the latency, at the flooded server and at the other one.
    async fn round(&mut self, memory: &mut u64) -> Result<[Duration; 2]> {
        let (asks, lasting) = (times(200, 2000), Duration::from_secs(times(1, 20) as u64));
        let mut took = [vec![], vec![]];
        let begun = Instant::now();
        while took[0].len() < asks || begun.elapsed() < lasting {
            for (client, took) in self.clients.iter_mut().zip(&mut took) {
                let begun = Instant::now();
                client.ask(json!({"type": "project:list"})).await?;
                took.push(begun.elapsed());
            }
            if took[0].len() % 10 == 0 {
                *memory = (*memory).max(resident_kib(self.flooded.id())?);
            }
        }
        Ok(took.map(|mut took| {
            took.sort();
            took[took.len() * 99 / 100]
        }))
    }
}

fn resident_kib(process: u32) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    Ok(number.context("expected a number")?.parse()?)
}

/// Counts the text frames that arrive; in these tests the first byte of a text frame occurs nowhere else.
async fn count_answers(mut reader: OwnedReadHalf, answered: Arc<AtomicU64>) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = reader.read(&mut buffer).await {
        let begun = buffer[..count].iter().filter(|byte| **byte == 0x81);
        answered.fetch_add(begun.count() as u64, Ordering::Relaxed);
    }
}

/// Sends the same bytes without end, and reconnects whenever the server closes the connection.
async fn pour(
    server: Arc<Server>,
    caller: Caller,
    bytes: Vec<u8>,
    poured: Arc<AtomicU64>,
    most: Arc<AtomicU64>,
    answered: Arc<AtomicU64>,
) {
    loop {
        let Ok(raw) = Raw::of(caller, &server).await else {
            continue;
        };
        let (reader, mut writer) = raw.stream.into_split();
        // Read the responses, because the server stops reading from a client that does not.
        let reading = tokio::spawn(count_answers(reader, answered.clone()));
        let mut taken = 0;
        while let Ok(count @ 1..) = writer.write(&bytes[taken % bytes.len()..]).await {
            taken += count;
            poured.fetch_add(count as u64, Ordering::Relaxed);
        }
        most.fetch_max(taken as u64, Ordering::Relaxed);
        reading.abort();
    }
}

/// Measures a well-behaved client while `POURING` connections flood the server.
async fn under_a_flood(what: &str, caller: Caller, bytes: Vec<u8>) -> Result<()> {
    let what = &format!("{what} of a {caller:?}");
    let mut pair = Pair::start().await?;
    let [poured, most, answered] = std::array::from_fn(|_| Arc::new(AtomicU64::new(0)));
    let server = pair.flooded.clone();
    let begun = Instant::now();
    let mut flood = JoinSet::new();
    for _ in 0..POURING {
        let (poured, most, answered) = (poured.clone(), most.clone(), answered.clone());
        flood.spawn(pour(
            server.clone(),
            caller,
            bytes.clone(),
            poured,
            most,
            answered,
        ));
    }
    let held = pair.hold(what).await;
    flood.shutdown().await;
    let seconds = begun.elapsed().as_secs_f64();
    let bytes = poured.load(Ordering::Relaxed);
    let most = most.load(Ordering::Relaxed);
    let answered = answered.load(Ordering::Relaxed);
    println!(
        "{what}: {:.1} MB/s sent, at most {:.1} MB on one closed connection, {:.0} responses per second",
        bytes as f64 / seconds / 1e6,
        most as f64 / 1e6,
        answered as f64 / seconds
    );
    // An unauthenticated connection that is being closed is not read without limit.
    assert!(
        caller != Caller::Unauthenticated || most <= UNAUTHENTICATED_BYTES_MAX,
        "{what}: {most} bytes were read from one connection"
    );
    held
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn message_flood_does_not_slow_other_clients() -> Result<()> {
    for (caller, message) in [
        (
            Caller::Browser,
            r#"{"type":"project:list","requestId":"flood"}"#,
        ),
        (Caller::Program, r#"{"id":"flood","method":"health.check"}"#),
        (
            Caller::Unauthenticated,
            r#"{"type":"auth","token":"flood"}"#,
        ),
    ] {
        let message = frame(TEXT, true, message.as_bytes());
        under_a_flood("requests", caller, message.repeat(100)).await?;
    }
    Ok(())
}

/// Messages per second of all reconnecting clients together; each stays below the burst of the rate limit.
const RATE: u64 = 50_000;
/// Messages that a connection may send in one burst before it is rate-limited.
const BURST: u64 = 1000;

/// Repeatedly opens a connection, sends one burst and closes it, at this client's share of the total rate.
async fn send_bursts(server: Arc<Server>, caller: Caller, message: Vec<u8>, all: Arc<AtomicU64>) {
    let bytes = message.repeat(BURST as usize);
    let mut rounds =
        tokio::time::interval(Duration::from_secs(POURING as u64 * BURST) / RATE as u32);
    rounds.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Burst);
    loop {
        rounds.tick().await;
        let Ok(raw) = Raw::of(caller, &server).await else {
            continue;
        };
        let (reader, mut writer) = raw.stream.into_split();
        let answered = Arc::new(AtomicU64::new(0));
        let reading = tokio::spawn(count_answers(reader, answered.clone()));
        let _ = writer.write_all(&bytes).await;
        // Stay connected until every message of the burst was answered.
        let heard = async {
            while answered.load(Ordering::Relaxed) < BURST && !reading.is_finished() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let _ = tokio::time::timeout(HANG_GUARD, heard).await;
        all.fetch_add(answered.load(Ordering::Relaxed), Ordering::Relaxed);
        reading.abort();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reconnecting_clients_do_not_slow_other_clients() -> Result<()> {
    let mut pair = Pair::start().await?;
    let answered = Arc::new(AtomicU64::new(0));
    let message = frame(
        TEXT,
        true,
        br#"{"type":"project:list","requestId":"flood"}"#,
    );
    let begun = Instant::now();
    let mut crowd = JoinSet::new();
    for _ in 0..POURING {
        let (server, message, all) = (pair.flooded.clone(), message.clone(), answered.clone());
        crowd.spawn(send_bursts(server, Caller::Browser, message, all));
    }
    let held = pair.hold("reconnecting clients").await;
    crowd.shutdown().await;
    let answered = answered.load(Ordering::Relaxed);
    let rate = answered as f64 / begun.elapsed().as_secs_f64();
    println!("reconnecting clients: {rate:.0} messages answered per second, of {RATE} offered");
    assert!(answered >= BURST, "only {answered} messages were answered");
    held
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flood_of_invalid_messages_does_not_slow_other_clients() -> Result<()> {
    for caller in Caller::ALL {
        under_a_flood(
            "invalid messages",
            caller,
            frame(TEXT, true, b"{").repeat(100),
        )
        .await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flood_of_empty_fragments_does_not_slow_other_clients() -> Result<()> {
    let pieces = frame(CONTINUATION, false, b"").repeat(1000);
    let bytes = [
        frame(TEXT, false, b"{"),
        pieces,
        frame(CONTINUATION, true, b"}"),
    ]
    .concat();
    for caller in Caller::ALL {
        under_a_flood("empty fragments", caller, bytes.clone()).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flood_of_deeply_nested_json_does_not_slow_other_clients() -> Result<()> {
    let wide: String = (0..40_000)
        .map(|number| format!("\"k{number}\":0,"))
        .collect();
    let wide = format!("{{{wide}\"z\":[{}]}}", "[".repeat(10_000));
    for caller in Caller::ALL {
        let text = frame(TEXT, true, wide.as_bytes());
        under_a_flood("deep and wide", caller, text).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_of_100_mib_are_not_buffered() -> Result<()> {
    // As one frame, and as many fragments of the same total length.
    let megabyte = vec![b' '; 1024 * 1024];
    let mut whole = head(TEXT, true, 100 * 1024 * 1024);
    whole.extend(megabyte.repeat(10));
    let mut pieces = frame(TEXT, false, b"{");
    for _ in 0..10 {
        pieces.extend(frame(CONTINUATION, false, &megabyte[..900_000]));
    }
    for caller in Caller::ALL {
        under_a_flood("100 MiB in one frame", caller, whole.clone()).await?;
        under_a_flood("100 MiB in fragments", caller, pieces.clone()).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_connections_take_little_memory_and_slow_nothing() -> Result<()> {
    let mut pair = Pair::start().await?;
    let crowd = times(200, 1000);
    // Connections that send nothing, an incomplete request head, or an incomplete body.
    let mut silent = vec![];
    let address = pair.flooded.address;
    for number in 0..crowd {
        let mut stream = TcpStream::connect(address).await?;
        let begun = match number % 3 {
            0 => String::new(),
            1 => format!("GET / HTTP/1.1\r\nHost: {address}\r\nX-Slow: "),
            _ => format!(
                "POST /login HTTP/1.1\r\nHost: {address}\r\nOrigin: http://{address}\r\n\
                 Content-Type: application/json\r\nContent-Length: 4000\r\n\r\n{{"
            ),
        };
        let _ = stream.write_all(begun.as_bytes()).await;
        silent.push(stream);
    }
    // New clients must be served before this test's timeout.
    pair.hold("silent connections").await?;
    drop(silent);
    let mut windows = vec![];
    for _ in 0..crowd {
        windows.push(pair.flooded.connect().await?);
    }
    pair.hold("idle windows").await?;
    drop(windows);
    let mut programs = vec![];
    for _ in 0..crowd {
        programs.push(Program::at(&pair.flooded).await?);
    }
    pair.hold("idle gateway clients").await
}

/// A request that is sent byte by byte: how it begins, and the server's deadline for it.
struct SlowRequest {
    begins: Vec<u8>,
    deadline: Duration,
}

/// Sends a byte at a time until the server closes the connection, and returns how long that took.
async fn send_slowly(server: &Server, request: &SlowRequest) -> Result<Duration> {
    let begun = Instant::now();
    let mut stream = TcpStream::connect(server.address).await?;
    stream.write_all(&request.begins).await?;
    let (mut reader, mut writer) = stream.into_split();
    let drops = async {
        loop {
            tokio::time::sleep(BYTE_INTERVAL).await;
            if writer.write_all(b"x").await.is_err() {
                return std::future::pending().await;
            }
        }
    };
    let closed = async {
        let mut heard = [0; 1024];
        while let Ok(1..) = reader.read(&mut heard).await {}
    };
    let ended = async {
        tokio::select! {
            () = drops => {}
            () = closed => {}
        }
    };
    tokio::time::timeout(request.deadline + HANG_GUARD, ended)
        .await
        .context("the server did not close the connection")?;
    Ok(begun.elapsed())
}

/// The senders are not silent: they keep sending one byte at a time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_senders_are_disconnected_at_the_deadline_others_are_served() -> Result<()> {
    let mut pair = Pair::start().await?;
    let server = pair.flooded.clone();
    let (address, token) = (server.address, &server.token);
    let login = "Content-Type: application/json\r\nContent-Length: 4000";
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";
    let frame = head(TEXT, true, 125);
    let mut kinds = vec![
        (
            format!("GET / HTTP/1.1\r\nHost: {address}\r\nX-Slow: "),
            vec![],
            10,
        ),
        ("GET /".to_owned(), vec![], 10),
        (
            format!(
                "POST /login HTTP/1.1\r\nHost: {address}\r\nOrigin: http://{address}\r\n{login}\r\n\r\n{{"
            ),
            vec![],
            5,
        ),
        // The first message of an unauthenticated gateway connection.
        (
            format!("GET /gateway HTTP/1.1\r\nHost: {address}\r\n{upgrade}\r\n\r\n"),
            frame,
            5,
        ),
    ];
    // An authenticated upload has more time than any other request.
    if times(0, 1) == 1 {
        let upload = format!("Authorization: Bearer {token}\r\nContent-Length: 4000");
        let begins = format!("POST /uploads HTTP/1.1\r\nHost: {address}\r\n{upload}\r\n\r\nGIF89a");
        kinds.push((begins, vec![], 60));
    }
    let mut crowd = JoinSet::new();
    for (asks, more, deadline) in kinds {
        let begins = [asks.as_bytes(), &more].concat();
        let deadline = Duration::from_secs(deadline);
        let request = Arc::new(SlowRequest { begins, deadline });
        for _ in 0..times(8, 14) {
            let (server, request) = (server.clone(), request.clone());
            crowd.spawn(async move {
                let took = send_slowly(&server, &request).await?;
                let most = request.deadline + DELAY_MAX;
                let asked = String::from_utf8_lossy(&request.begins[..5]);
                anyhow::ensure!(took >= request.deadline && took < most, "{asked}: {took:?}");
                Ok(took)
            });
        }
    }
    pair.hold("slow senders").await?;
    // A client that connects now is served as well.
    pair.flooded.connect().await?;
    Program::at(&pair.flooded).await?;
    let mut slowest = Duration::ZERO;
    while let Some(ended) = crowd.join_next().await {
        slowest = slowest.max(ended??);
    }
    println!("the last slow sender was disconnected after {slowest:?}");
    Ok(())
}

/// A received byte must not pin a network buffer a thousand times its size.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn body_sent_in_single_bytes_takes_no_extra_memory() -> Result<()> {
    const CALLERS: usize = 8;
    // Less than the deadline of a login request.
    const LASTING: Duration = Duration::from_secs(3);
    let setup = ServerSetup::scripted("")?;
    let server = setup.start().await?;
    let (address, token) = (server.address, &server.token);
    for asks in [
        format!(
            "POST /login HTTP/1.1\r\nOrigin: http://{address}\r\nContent-Type: application/json"
        ),
        format!("POST /uploads HTTP/1.1\r\nAuthorization: Bearer {token}"),
    ] {
        let before = resident_kib(server.id())?;
        let mut callers = vec![];
        for _ in 0..CALLERS {
            let mut stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            let head = format!("{asks}\r\nHost: {address}\r\nContent-Length: 4000\r\n\r\n");
            stream.write_all(head.as_bytes()).await?;
            callers.push(stream);
        }
        let (begun, mut bytes) = (Instant::now(), 0);
        while begun.elapsed() < LASTING {
            bytes += 1;
            for stream in &mut callers {
                stream.write_all(b" ").await?;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let grown = resident_kib(server.id())?.saturating_sub(before);
        println!("{bytes} single bytes from {CALLERS} connections, {asks:.12}: {grown} KiB more");
        assert!(grown < 8 * 1024, "{asks:.12}: {grown} KiB more");
    }
    Ok(())
}
