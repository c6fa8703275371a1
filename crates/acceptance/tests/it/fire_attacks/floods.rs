//! Crowds and floods: a calm client beside them is answered as quickly as one of a server that nobody bothers, and what
//! they send is not kept.
//!
//! Two servers stand side by side on the same busy machine; only one of them is bothered. So what the machine does to
//! both is no finding, and what the flood does to one is.

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
use crate::fire_attacks::setup;

const RATIO_MAX: u32 = 3;
const ROUNDS_MAX: usize = 5;
const GROWTH_KIB_MAX: u64 = 32 * 1024;
/// What may be taken from a stranger before it is out: nearly all of it is what the system keeps for us.
const FAREWELL_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Enough to keep every thread of the server busy.
const POURING: usize = 4;
/// Less than a turn of the system's scheduler, which whoever is busy waits for and whoever sleeps does not.
const NOTICEABLE: Duration = Duration::from_millis(1);

/// From one byte to the next of those who drip.
const DROP: Duration = Duration::from_millis(100);
/// How much later than at the deadline a busy machine may hang up; less than would be the next deadline's doing.
const LATE: Duration = Duration::from_secs(8);

/// A server that is bothered, one that is not, and a calm client at each.
struct Pair {
    _setups: [ServerSetup; 2],
    bothered: Arc<Server>,
    _spared: Server,
    clients: [Socket; 2],
    memory_before: u64,
}

impl Pair {
    async fn start() -> Result<Self> {
        let setups = [setup()?, setup()?];
        let (bothered, spared) = (setups[0].start().await?, setups[1].start().await?);
        let mut clients = [bothered.connect().await?, spared.connect().await?];
        for client in &mut clients {
            for _ in 0..20 {
                client.ask(json!({"type": "project:list"})).await?;
            }
        }
        let memory_before = resident_kib(bothered.id())?;
        Ok(Self {
            _setups: setups,
            bothered: Arc::new(bothered),
            _spared: spared,
            clients,
            memory_before,
        })
    }

    /// Asks both in turn while the other side does its worst, and holds one against the other. A machine that is busy with
    /// something else spoils a round, and only we spoil them all.
    async fn hold(&mut self, what: &str) -> Result<()> {
        let mut memory = self.memory_before;
        let mut rounds = vec![];
        let held = loop {
            let [with, without] = self.round(&mut memory).await?;
            rounds.push(format!("p99 {with:?}, without {without:?}"));
            let held = with <= without.max(NOTICEABLE) * RATIO_MAX;
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

    /// The 99th of a hundred answers, from the one who is bothered and from the other.
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
                *memory = (*memory).max(resident_kib(self.bothered.id())?);
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
    Ok(number.context("a number")?.parse()?)
}

/// Counts the texts that come back; in ours no other byte looks like the beginning of one.
async fn count_answers(mut reader: OwnedReadHalf, answered: Arc<AtomicU64>) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = reader.read(&mut buffer).await {
        let begun = buffer[..count].iter().filter(|byte| **byte == 0x81);
        answered.fetch_add(begun.count() as u64, Ordering::Relaxed);
    }
}

/// Writes these bytes again and again, and comes back when it is thrown out.
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
        // What comes back is read, or the server would wait for us.
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

/// Some pour, and a calm client asks beside them.
async fn under_a_flood(what: &str, caller: Caller, bytes: Vec<u8>) -> Result<()> {
    let what = &format!("{what} of a {caller:?}");
    let mut pair = Pair::start().await?;
    let [poured, most, answered] = std::array::from_fn(|_| Arc::new(AtomicU64::new(0)));
    let server = pair.bothered.clone();
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
        "{what}: {:.1} MB/s sent, at most {:.1} MB by one who was thrown out, {:.0} answers a second",
        bytes as f64 / seconds / 1e6,
        most as f64 / 1e6,
        answered as f64 / seconds
    );
    // Whoever is thrown out is not listened to on the way any faster than others are.
    assert!(
        caller != Caller::Stranger || most <= FAREWELL_BYTES_MAX,
        "{what}: {most} bytes were taken from one"
    );
    held
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_messages_slows_nobody_else() -> Result<()> {
    for (caller, message) in [
        (
            Caller::Window,
            r#"{"type":"project:list","requestId":"flood"}"#,
        ),
        (Caller::Program, r#"{"id":"flood","method":"health.check"}"#),
        (Caller::Stranger, r#"{"type":"auth","token":"flood"}"#),
    ] {
        let message = frame(TEXT, true, message.as_bytes());
        under_a_flood("requests", caller, message.repeat(100)).await?;
    }
    Ok(())
}

/// What is sent in a second by a crowd that stays below what each of them may send at once, and comes back for more.
const A_SECOND: u64 = 50_000;
/// What a connection may send before it is slowed down.
const AT_ONCE: u64 = 1000;

/// Sends as much as is taken at once, again and again over a new connection, and no more than its share of the crowd's.
async fn come_back(server: Arc<Server>, caller: Caller, message: Vec<u8>, all: Arc<AtomicU64>) {
    let bytes = message.repeat(AT_ONCE as usize);
    let mut rounds =
        tokio::time::interval(Duration::from_secs(POURING as u64 * AT_ONCE) / A_SECOND as u32);
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
        // Nobody is gone before it was heard.
        let heard = async {
            while answered.load(Ordering::Relaxed) < AT_ONCE && !reading.is_finished() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let _ = tokio::time::timeout(HANG_GUARD, heard).await;
        all.fetch_add(answered.load(Ordering::Relaxed), Ordering::Relaxed);
        reading.abort();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_that_comes_back_for_more_slows_nobody_else() -> Result<()> {
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
        let (server, message, all) = (pair.bothered.clone(), message.clone(), answered.clone());
        crowd.spawn(come_back(server, Caller::Window, message, all));
    }
    let held = pair.hold("a crowd that comes back").await;
    crowd.shutdown().await;
    let answered = answered.load(Ordering::Relaxed);
    let a_second = answered as f64 / begun.elapsed().as_secs_f64();
    println!(
        "a crowd that comes back: {a_second:.0} messages answered a second, of {A_SECOND} that it would send"
    );
    assert!(answered >= AT_ONCE, "only {answered} were answered");
    held
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_nonsense_slows_nobody_else() -> Result<()> {
    for caller in Caller::ALL {
        under_a_flood("nonsense", caller, frame(TEXT, true, b"{").repeat(100)).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_empty_pieces_slows_nobody_else() -> Result<()> {
    let pieces = frame(CONTINUATION, false, b"").repeat(1000);
    let bytes = [
        frame(TEXT, false, b"{"),
        pieces,
        frame(CONTINUATION, true, b"}"),
    ]
    .concat();
    for caller in Caller::ALL {
        under_a_flood("empty pieces", caller, bytes.clone()).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_deep_and_wide_texts_slows_nobody_else() -> Result<()> {
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
async fn messages_of_a_hundred_megabytes_are_not_kept() -> Result<()> {
    // In one frame, and in many that together are as long.
    let megabyte = vec![b' '; 1024 * 1024];
    let mut whole = head(TEXT, true, 100 * 1024 * 1024);
    whole.extend(megabyte.repeat(10));
    let mut pieces = frame(TEXT, false, b"{");
    for _ in 0..10 {
        pieces.extend(frame(CONTINUATION, false, &megabyte[..900_000]));
    }
    for caller in Caller::ALL {
        under_a_flood("a hundred megabytes", caller, whole.clone()).await?;
        under_a_flood("a hundred megabytes in pieces", caller, pieces.clone()).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_windows_and_silent_callers_slow_nobody_and_cost_little() -> Result<()> {
    let mut pair = Pair::start().await?;
    let crowd = times(200, 1000);
    // Those who say nothing, those who begin a request and those who begin a body.
    let mut silent = vec![];
    let address = pair.bothered.address;
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
    // Whoever comes is let in before the guard of this test.
    pair.hold("silent callers").await?;
    drop(silent);
    let mut windows = vec![];
    for _ in 0..crowd {
        windows.push(pair.bothered.connect().await?);
    }
    pair.hold("idle windows").await?;
    drop(windows);
    let mut programs = vec![];
    for _ in 0..crowd {
        programs.push(Program::at(&pair.bothered).await?);
    }
    pair.hold("idle programs").await
}

/// Somebody who is never done: how it begins, and after what time nobody waits for it any more.
struct Dripping {
    begins: Vec<u8>,
    deadline: Duration,
}

/// Sends a byte at a time until the server hangs up, and says how long that took.
async fn drip(server: &Server, dripping: &Dripping) -> Result<Duration> {
    let begun = Instant::now();
    let mut stream = TcpStream::connect(server.address).await?;
    stream.write_all(&dripping.begins).await?;
    let (mut reader, mut writer) = stream.into_split();
    let drops = async {
        loop {
            tokio::time::sleep(DROP).await;
            if writer.write_all(b"x").await.is_err() {
                return std::future::pending().await;
            }
        }
    };
    let hung_up = async {
        let mut heard = [0; 1024];
        while let Ok(1..) = reader.read(&mut heard).await {}
    };
    let ended = async {
        tokio::select! {
            () = drops => {}
            () = hung_up => {}
        }
    };
    tokio::time::timeout(HANG_GUARD, ended)
        .await
        .context("it is still listened to")?;
    Ok(begun.elapsed())
}

/// Not those who are silent: those who always have one byte more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_who_drip_are_let_go_at_the_deadline_and_others_are_served() -> Result<()> {
    let mut pair = Pair::start().await?;
    let server = pair.bothered.clone();
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
        // A stranger's first words.
        (
            format!("GET /gateway HTTP/1.1\r\nHost: {address}\r\n{upgrade}\r\n\r\n"),
            frame,
            5,
        ),
    ];
    // A picture has more time, up to that of any connection.
    if times(0, 1) == 1 {
        let upload = format!("Authorization: Bearer {token}\r\nContent-Length: 4000");
        let begins = format!("POST /uploads HTTP/1.1\r\nHost: {address}\r\n{upload}\r\n\r\nGIF89a");
        kinds.push((begins, vec![], 20));
    }
    let mut crowd = JoinSet::new();
    for (asks, more, deadline) in kinds {
        let begins = [asks.as_bytes(), &more].concat();
        let deadline = Duration::from_secs(deadline);
        let dripping = Arc::new(Dripping { begins, deadline });
        for _ in 0..times(8, 14) {
            let (server, dripping) = (server.clone(), dripping.clone());
            crowd.spawn(async move {
                let took = drip(&server, &dripping).await?;
                let most = dripping.deadline + LATE;
                let asked = String::from_utf8_lossy(&dripping.begins[..5]);
                anyhow::ensure!(
                    took >= dripping.deadline && took < most,
                    "{asked}: {took:?}"
                );
                Ok(took)
            });
        }
    }
    pair.hold("dripping callers").await?;
    // Also whoever comes only now.
    pair.bothered.connect().await?;
    Program::at(&pair.bothered).await?;
    let mut slowest = Duration::ZERO;
    while let Some(ended) = crowd.join_next().await {
        slowest = slowest.max(ended??);
    }
    println!("the last of those who drip was let go after {slowest:?}");
    Ok(())
}

/// A piece may hold a buffer that is a thousand times as long.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_in_single_bytes_takes_no_more_than_one_in_a_piece() -> Result<()> {
    const CALLERS: usize = 8;
    // A login is not waited for much longer.
    const LASTING: Duration = Duration::from_secs(3);
    let setup = setup()?;
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
        println!("{bytes} single bytes from {CALLERS} callers, {asks:.12}: {grown} KiB more");
        assert!(grown < 8 * 1024, "{asks:.12}: {grown} KiB more");
    }
    Ok(())
}
