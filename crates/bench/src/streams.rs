//! Throughput and delay from an agent's pipe to a client's socket, with everything stored on the way, compared with
//! relays that store nothing.

use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Result, ensure};
use serde_json::Value;
use testkit::{Conversation, Person, Server, count_turns};

use crate::figures::{Effort, Figures, ms};
use crate::plain::{Plain, RELAYS};
use crate::process::{Calls, cpu, setup};

const BYTES: usize = 20;
const PER_SECOND: [usize; 2] = [500, 5000];
/// The relay that is the baseline of the delays. Of the other relays only the throughput is measured.
const TIMED: &str = "typed";

/// Size of each measurement.
#[derive(Clone, Copy)]
struct Amount {
    chunks: usize,
    /// Duration of a paced stream, in seconds.
    seconds: usize,
    firsts: usize,
}

pub(crate) async fn measure(effort: Effort, figures: &mut Figures) -> Result<()> {
    let amount = Amount {
        chunks: effort.of(300_000, 100_000),
        seconds: 2,
        firsts: effort.of(30, 10),
    };
    let bridge = std::env::var_os("NODE_BRIDGE").map(PathBuf::from);
    for _ in 0..effort.of(5, 2) {
        ours(amount, figures).await?;
        for kind in RELAYS {
            let name = format!("relay_{kind}");
            let mut relay = Plain::relay(kind).await?;
            flood(&name, &mut relay, amount.chunks, figures).await?;
            if kind == TIMED {
                paced(&name, &mut relay, amount, figures).await?;
            }
        }
        if let Some(script) = &bridge {
            let mut bridge = Plain::node_bridge(script).await?;
            // A tenth of the chunks: the bridge is more than ten times slower.
            flood("node", &mut bridge, amount.chunks / 10, figures).await?;
            paced("node", &mut bridge, amount, figures).await?;
        }
        for sessions in [10, 100] {
            many_sessions(sessions, amount.chunks, figures).await?;
        }
    }
    Ok(())
}

/// Measures the throughput and processor time of a stream.
struct Cost {
    pid: u32,
    cpu: f64,
    begin: Instant,
}

impl Cost {
    fn begin(pid: u32) -> Result<Self> {
        Ok(Self {
            pid,
            cpu: cpu(pid)?,
            begin: Instant::now(),
        })
    }

    fn record_throughput(&self, name: &str, chunks: usize, figures: &mut Figures) {
        let seconds = self.begin.elapsed().as_secs_f64();
        figures.add(format!("{name}_flood"), chunks as f64 / seconds / 1000.0);
    }

    fn record_processor_time(self, name: &str, chunks: usize, figures: &mut Figures) -> Result<()> {
        let per = 100_000.0 / chunks as f64;
        figures.add(format!("{name}_cpu"), (cpu(self.pid)? - self.cpu) * per);
        Ok(())
    }
}

async fn ours(amount: Amount, figures: &mut Figures) -> Result<()> {
    let chunks = amount.chunks;
    let setup = setup()?;
    let server = setup.start().await?;
    let mut person = Person::at(&server, &setup.folder("app")?).await?;
    let mut talk = person.begin().await?;
    let cost = Cost::begin(server.id())?;
    flood_ours(&mut person, &talk, chunks).await?;
    cost.record_throughput("ours", chunks, figures);
    person.socket.next_of("session:complete").await?;
    cost.record_processor_time("ours", chunks, figures)?;
    if let Some(calls) = Calls::begin(server.id()).await? {
        flood_ours(&mut person, &talk, chunks).await?;
        person.socket.next_of("session:complete").await?;
        let per = 100_000.0 / chunks as f64;
        figures.add("ours_calls", calls.end().await? * per);
    }

    for pace in PER_SECOND {
        let count = pace * amount.seconds;
        person.send(&talk, &format!("clock {count} {pace}")).await?;
        let mut late = vec![];
        loop {
            let message = person.socket.next().await?;
            if message["type"] == "session:complete" {
                break;
            }
            late.extend(delays(agent_text(&message))?);
        }
        figures.add_percentiles(&format!("ours_delay_{pace}"), late);
    }
    // The socket has received turns that `talk` does not contain.
    talk = person.open(&talk.session_id).await?;
    for _ in 0..amount.firsts {
        let turns = count_turns(&talk);
        let begin = Instant::now();
        person.send(&talk, "say x").await?;
        loop {
            let message = person.socket.next().await?;
            talk.apply(&message)?;
            if message["entry"]["type"] == "assistant" {
                break;
            }
        }
        figures.add("ours_first", ms(begin));
        person.until_turns(&mut talk, turns + 1).await?;
    }
    Ok(())
}

/// Starts a flood and waits for all of its text.
async fn flood_ours(person: &mut Person, talk: &Conversation, chunks: usize) -> Result<()> {
    person
        .send(talk, &format!("flood {chunks} {BYTES}"))
        .await?;
    let mut bytes = 0;
    while bytes < chunks * BYTES {
        bytes += agent_text(&person.socket.next().await?).len();
    }
    Ok(())
}

/// The agent's text in a message.
fn agent_text(message: &Value) -> &str {
    let text = match message["type"].as_str() {
        Some("session:chunk") => &message["content"],
        Some("session:update") if message["entry"]["type"] == "assistant" => {
            &message["entry"]["content"]
        }
        _ => return "",
    };
    text.as_str().unwrap_or_default()
}

/// Age of each timestamp in a text, in microseconds.
fn delays(text: &str) -> Result<Vec<f64>> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let delay = |sent: &str| -> Result<f64> {
        let sent = Duration::from_nanos(sent.parse()?);
        Ok(now.saturating_sub(sent).as_secs_f64() * 1e6)
    };
    text.split_whitespace().map(delay).collect()
}

async fn flood(name: &str, plain: &mut Plain, chunks: usize, figures: &mut Figures) -> Result<()> {
    let cost = Cost::begin(plain.id()?)?;
    flood_plain(plain, chunks).await?;
    cost.record_throughput(name, chunks, figures);
    cost.record_processor_time(name, chunks, figures)?;
    if let Some(calls) = Calls::begin(plain.id()?).await? {
        flood_plain(plain, chunks).await?;
        let per = 100_000.0 / chunks as f64;
        figures.add(format!("{name}_calls"), calls.end().await? * per);
    }
    Ok(())
}

async fn flood_plain(plain: &mut Plain, chunks: usize) -> Result<()> {
    let socket = &mut plain.socket;
    socket.send_text(&format!("flood {chunks} {BYTES}")).await?;
    while socket.next_text().await? != "done" {}
    Ok(())
}

async fn paced(name: &str, plain: &mut Plain, amount: Amount, figures: &mut Figures) -> Result<()> {
    let socket = &mut plain.socket;
    for pace in PER_SECOND {
        let count = pace * amount.seconds;
        socket.send_text(&format!("clock {count} {pace}")).await?;
        let mut late = vec![];
        loop {
            let text = socket.next_text().await?;
            if text == "done" {
                break;
            }
            for line in text.lines() {
                let message: Value = serde_json::from_str(line)?;
                let update = match &message["params"]["update"] {
                    Value::Null => &message,
                    update => update,
                };
                let words = update["content"]["text"].as_str();
                late.extend(delays(
                    words.or(message["text"].as_str()).unwrap_or_default(),
                )?);
            }
        }
        figures.add_percentiles(&format!("{name}_delay_{pace}"), late);
    }
    for _ in 0..amount.firsts {
        let begin = Instant::now();
        socket.send_text("say x").await?;
        socket.next_text().await?;
        figures.add(format!("{name}_first"), ms(begin));
        while socket.next_text().await? != "done" {}
    }
    Ok(())
}

/// Streams the same number of chunks in total, over this many sessions at once.
async fn many_sessions(sessions: usize, chunks: usize, figures: &mut Figures) -> Result<()> {
    let setup = setup()?;
    let server = setup.start().await?;
    let mut person = Person::at(&server, &setup.folder("app")?).await?;
    let mut talks: Vec<Conversation> = vec![];
    for _ in 0..sessions {
        talks.push(person.begin().await?);
    }
    let each = chunks / sessions;
    let begin = Instant::now();
    for talk in &talks {
        person.send(talk, &format!("flood {each} {BYTES}")).await?;
    }
    let (mut bytes, mut ended) = (0, 0);
    while bytes < each * sessions * BYTES {
        let message = person.socket.next().await?;
        bytes += agent_text(&message).len();
        ended += usize::from(message["type"] == "session:complete");
    }
    let seconds = begin.elapsed().as_secs_f64();
    let rate = (each * sessions) as f64 / seconds / 1000.0;
    figures.add(format!("ours_flood_{sessions}"), rate);
    while ended < sessions {
        person.socket.next_of("session:complete").await?;
        ended += 1;
    }
    expect_all_stored(&server, &talks, each * BYTES).await
}

async fn expect_all_stored(server: &Server, talks: &[Conversation], bytes: usize) -> Result<()> {
    let mut late = server.connect().await?;
    for talk in talks {
        let open = serde_json::json!({"type": "session:open", "sessionId": talk.session_id});
        let history = late.ask(open).await?;
        let kept = history["entries"][1]["content"].as_str().map(str::len);
        ensure!(kept == Some(bytes), "{kept:?} of {bytes} bytes were stored");
    }
    Ok(())
}
