//! Agents that say more than anybody can hear: those who work with another agent do not notice, and it is not kept.
//!
//! Two servers stand side by side on the same busy machine, and a neighbour at each; only one has the flood in its house.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testkit::{Person, Server, Socket, times};

use crate::fire_faults::agents::Street;

/// How much longer a turn may take than with the flood next door.
const RATIO_MAX: u32 = 3;
/// A neighbour elsewhere may find the machine free for a moment; so little is no difference.
const NOTICEABLE: Duration = Duration::from_millis(3);
/// What one turn may take on a busy machine without anybody standing still.
const STANDSTILL: Duration = Duration::from_millis(100);
const ROUNDS_MAX: usize = 3;
/// A flood may go on for longer than a person waits, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(600);

/// What an agent does that no agent should, and how its turn ends.
struct Flood<'a> {
    name: &'a str,
    /// `%f` is the project's folder.
    script: String,
    ends: &'static str,
    memory_mib_max: u64,
    /// When a person presses Stop, if it does not end by itself.
    stopped_after: Option<Duration>,
}

/// On disk, whatever is said in a turn: what is kept of it, and what a live file may grow to before it is written anew.
const DISK_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// How it went.
struct Borne {
    /// What a turn of the neighbour took, usually, here and elsewhere.
    turns: [Duration; 2],
    slowest: [Duration; 2],
    /// Bytes of the agent's that the server has read.
    read: u64,
    lasted: Duration,
    /// What more was on disk at most.
    kept: u64,
    entry: Value,
}

/// Both houses.
struct Houses {
    here: Street,
    elsewhere: Street,
    bad: Person,
}

impl Houses {
    async fn build() -> Result<Self> {
        Self::build_with("allow").await
    }

    async fn build_with(policy: &str) -> Result<Self> {
        let (here, bad, _) = Street::with_a_bad_one(policy).await?;
        let (elsewhere, ..) = Street::with_a_bad_one(policy).await?;
        Ok(Self {
            here,
            elsewhere,
            bad,
        })
    }

    /// A new session; the agent may be on its way out, and then that is said.
    async fn begin(&mut self) -> Result<String> {
        let end = Instant::now() + PATIENCE;
        loop {
            let created = self.bad.ask_to_create("claude-code").await?;
            if let Some(id) = created["sessionId"].as_str() {
                // Whoever makes a session watches it.
                let folder = self.here.setup.folder("app")?;
                self.bad = Person::at(&self.here.server, &folder).await?;
                return Ok(id.to_owned());
            }
            ensure!(
                created["code"] == "AGENT_UNAVAILABLE" && Instant::now() < end,
                "{created}"
            );
        }
    }

    /// Has the bad one do this in a session of its own, while the neighbours go on working.
    async fn bear(&mut self, flood: &Flood<'_>) -> Result<Borne> {
        let session = self.begin().await?;
        let read = self.read()?;
        let script = flood.script.replace("%f", &self.here.setup.folder("app")?);
        let mut stopped_after = flood.stopped_after;
        let begun = Instant::now();
        send_and_leave(&self.here.server, &session, &script).await?;
        let mut turns = [vec![], vec![]];
        let (before, mut kept) = (size(&self.here.setup.data_dir()), 0);
        loop {
            let now = size(&self.here.setup.data_dir());
            kept = kept.max(now.saturating_sub(before));
            turns[0].push(self.here.turns(1).await?);
            turns[1].push(self.elsewhere.turns(1).await?);
            if !self.is_running(&session).await? {
                break;
            }
            if stopped_after
                .take_if(|after| begun.elapsed() > *after)
                .is_some()
            {
                let stop = json!({"type": "session:cancel", "sessionId": session});
                self.here.server.connect().await?.send(stop).await?;
            }
            ensure!(begun.elapsed() < PATIENCE, "it goes on and on");
        }
        let lasted = begun.elapsed();
        let read = self.read()? - read;
        let mut late = self.here.server.connect().await?;
        let entry = last_entry(&mut late, &session).await?;
        for took in &mut turns {
            took.sort();
        }
        Ok(Borne {
            turns: [0, 1].map(|at: usize| turns[at][turns[at].len() / 2]),
            slowest: [0, 1].map(|at: usize| turns[at][turns[at].len() - 1]),
            read,
            lasted,
            kept,
            entry,
        })
    }

    async fn is_running(&mut self, session: &str) -> Result<bool> {
        let sessions = self.bad.list(false).await?;
        let it = sessions.iter().find(|one| one["id"] == session);
        let state = &it.context("it is in the list")?["state"];
        Ok(state == "running" || state == "waiting")
    }

    /// What the server has read so far, from whomever.
    fn read(&self) -> Result<u64> {
        let io = std::fs::read_to_string(format!("/proc/{}/io", self.here.server.id()))?;
        let line = io.lines().find_map(|line| line.strip_prefix("rchar: "));
        Ok(line.context("a count")?.trim().parse()?)
    }

    /// Again and again for so long; a busy machine may spoil a round, and only we spoil them all.
    async fn hold(&mut self, flood: &Flood<'_>, lasting: Duration) -> Result<()> {
        let Flood { name, ends, .. } = flood;
        let quiet = self.here.turns(20).await?;
        let memory = self.here.memory("VmRSS")?;
        let end = Instant::now() + lasting;
        let (mut rounds, mut held) = (vec![], false);
        let (mut read, mut lasted, mut kept) = (0, Duration::ZERO, 0);
        while Instant::now() < end || (!held && rounds.len() < ROUNDS_MAX) {
            let borne = self.bear(flood).await?;
            let [here, elsewhere] = borne.turns;
            let share = elsewhere.max(quiet).max(NOTICEABLE);
            let [slowest, theirs] = borne.slowest;
            held |= here <= share * RATIO_MAX && slowest <= theirs.max(STANDSTILL) * RATIO_MAX;
            rounds.push(format!(
                "{here:?}, elsewhere {elsewhere:?}, the slowest {slowest:?} and {theirs:?}"
            ));
            read += borne.read;
            lasted += borne.lasted;
            kept = kept.max(borne.kept);
            let said = borne.entry.to_string();
            ensure!(said.contains(ends), "{name}: {said:.300}");
        }
        let more = self.here.memory("VmHWM")?.saturating_sub(memory);
        rounds.dedup();
        rounds.truncate(5);
        eprintln!(
            "{name}: {} MB in {:.1} s, {:.0} MB/s; a turn beside it, {quiet:?} when quiet: {}; at most {} MiB more memory, \
             at most {} MB more on disk",
            read / 1_000_000,
            lasted.as_secs_f64(),
            read as f64 / lasted.as_secs_f64() / 1e6,
            rounds.join("; "),
            more / 1024,
            kept / 1_000_000,
        );
        ensure!(held, "{name}: {rounds:?}");
        ensure!(
            more <= flood.memory_mib_max * 1024,
            "{name}: {} MiB more",
            more / 1024
        );
        ensure!(kept <= DISK_BYTES_MAX, "{name}: {kept} bytes on disk");
        Ok(())
    }
}

/// Bytes of all files in a folder; some come and go.
fn size(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.filter_map(|entry| {
        Some(match entry.file_type().ok()?.is_dir() {
            true => size(&entry.path()),
            false => entry.metadata().ok()?.len(),
        })
    });
    sizes.sum()
}

async fn bear_each(floods: Vec<Flood<'_>>, lasting: Duration) -> Result<()> {
    for flood in floods {
        Houses::build().await?.hold(&flood, lasting).await?;
    }
    Ok(())
}

/// An update of the session, as a line.
fn update(update: Value) -> String {
    let params = json!({"sessionId": "%s", "update": update});
    json!({"jsonrpc": "2.0", "method": "session/update", "params": params}).to_string()
}

const TOO_MUCH: &str = " MiB ";
const ENDED: &str = "\"outcome\":\"ended\"";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_text_is_ended_before_it_fills_the_memory_and_slows_nobody_down() -> Result<()> {
    let floods = [1000, 1_000_000].map(|bytes| Flood {
        name: if bytes == 1000 {
            "text"
        } else {
            "text in long lines"
        },
        script: format!("flood-for 60000 {bytes}"),
        ends: TOO_MUCH,
        memory_mib_max: 256,
        stopped_after: None,
    });
    let lasting = Duration::from_secs(times(0, 60) as u64);
    bear_each(floods.into(), lasting).await
}

/// What has no text of its own, but is kept.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_anything_else_that_is_kept_is_ended_as_well() -> Result<()> {
    let text = |bytes| json!([{"type": "content", "content": {"type": "text", "text": "x".repeat(bytes)}}]);
    let call = |more: Value| {
        let mut call = json!({"sessionUpdate": "tool_call", "toolCallId": "t%n", "title": "Count"});
        for (name, value) in more.as_object().into_iter().flatten() {
            call[name] = value.clone();
        }
        call
    };
    let picture = |bytes: usize| {
        let data = "QUJD".repeat(bytes / 4);
        let content = json!({"type": "image", "mimeType": "image/png", "data": data});
        json!({"sessionUpdate": "agent_message_chunk", "content": content})
    };
    let mut kinds = vec![("large pictures", picture(100_000))];
    // These take a debug build minutes.
    if times(0, 1) == 1 {
        kinds.extend([
            (
                "calls of tools with what they brought",
                call(json!({"rawOutput": vec![1; 10_000]})),
            ),
            (
                "calls of tools with many small things",
                call(json!({
                    "rawInput": vec![json!({"a": 0}); 1000], "locations": vec![json!({"path": ""}); 1000],
                })),
            ),
            (
                "calls of tools with long texts",
                call(json!({"content": text(100_000)})),
            ),
            ("calls of tools", call(json!({"content": text(1000)}))),
            ("empty calls of tools", call(json!({"title": ""}))),
            ("pictures", picture(10_000)),
            (
                "words of many messages",
                json!({
                    "sessionUpdate": "agent_message_chunk", "messageId": "m%n",
                    "content": {"type": "text", "text": "x"},
                }),
            ),
        ]);
    }
    let floods = kinds.into_iter().map(|(name, kind)| Flood {
        name,
        script: format!("flood-lines 600000ms {}", update(kind)),
        ends: TOO_MUCH,
        memory_mib_max: 640,
        stopped_after: None,
    });
    bear_each(floods.collect(), Duration::ZERO).await
}

/// What is not kept, for as long as it likes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_what_is_not_kept_is_borne() -> Result<()> {
    let text = "x".repeat(1000);
    let content = json!([{"type": "content", "content": {"type": "text", "text": text}}]);
    let plan = json!([{"content": text, "priority": "high", "status": "pending"}]);
    let stranger = update(json!({
        "sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text},
    }));
    let kinds = [
        ("lines that are no JSON", text.clone()),
        ("words for nobody", stranger.replace("%s", "nobody")),
        (
            "an unknown update",
            update(json!({"sessionUpdate": "weather", "text": text})),
        ),
        (
            "questions that nobody knows",
            json!({"jsonrpc": "2.0", "id": "q%n", "method": "weather/ask", "params": {"text": text}})
                .to_string(),
        ),
        (
            "answers that nobody waits for",
            json!({"jsonrpc": "2.0", "id": "a%n", "result": {"text": text}}).to_string(),
        ),
        (
            "one call of a tool, changed",
            update(json!({
                "sessionUpdate": "tool_call_update", "toolCallId": "t", "title": "%n", "content": content,
            })),
        ),
        (
            "one plan, changed",
            update(json!({"sessionUpdate": "plan", "entries": plan})),
        ),
        (
            "the modes, changed",
            update(json!({"sessionUpdate": "current_mode_update", "currentModeId": "m%n"})),
        ),
    ];
    let milliseconds = times(500, 60_000);
    let floods = kinds.map(|(name, line)| Flood {
        name,
        script: format!("flood-lines {milliseconds}ms {line}"),
        ends: ENDED,
        memory_mib_max: 64,
        stopped_after: None,
    });
    bear_each(floods.into(), Duration::ZERO).await
}

/// What a command says is shown as it comes, and the end of it is kept.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_from_a_command_is_borne() -> Result<()> {
    let floods = [
        ("lines of a command", "yes"),
        ("bytes of a command, without a line", "cat /dev/zero"),
    ];
    let floods = floods.map(|(name, line)| Flood {
        name,
        script: format!("terminal t timeout {} {line}", times(1, 60)),
        ends: ENDED,
        memory_mib_max: 64,
        stopped_after: None,
    });
    bear_each(floods.into(), Duration::ZERO).await
}

/// A request of the session's, as a line.
fn request(method: &str, params: Value) -> String {
    let mut params = params;
    params["sessionId"] = json!("%s");
    json!({"jsonrpc": "2.0", "id": "q%n", "method": method, "params": params}).to_string()
}

/// What the server does for agents, asked for without end.
fn requests() -> [(&'static str, String); 5] {
    let option = json!({"optionId": "yes", "name": "Yes", "kind": "allow_once"});
    let call = json!({"toolCallId": "t", "title": "%n", "status": "pending"});
    let form = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    [
        (
            "a long file, read",
            request("fs/read_text_file", json!({"path": "%f/long.txt"})),
        ),
        (
            // The protocol's own crate answers them, with the whole line.
            "requests that are none",
            format!(
                r#"{{"jsonrpc":"2.0","id":"q%n","method":"x","params":{}{},"pad":"{}"}}"#,
                "[".repeat(200),
                "]".repeat(200),
                "x".repeat(200_000),
            ),
        ),
        (
            "files, written",
            request(
                "fs/write_text_file",
                json!({"path": "%f/short.txt", "content": "x".repeat(100_000)}),
            ),
        ),
        (
            "questions whether it may",
            request(
                "session/request_permission",
                json!({"toolCall": call, "options": [option]}),
            ),
        ),
        (
            "forms to fill in",
            request(
                "elicitation/create",
                json!({"mode": "form", "message": "Who?", "requestedSchema": form}),
            ),
        ),
    ]
}

/// In a house where agents are allowed what they want, or ask.
async fn bear_requests(policy: &str, name: &str, script: String, ends: &'static str) -> Result<()> {
    let mut houses = Houses::build_with(policy).await?;
    let file = Path::new(&houses.here.setup.folder("app")?).join("long.txt");
    std::fs::write(
        file,
        "a line of a long file\n".repeat(times(5_000, 400_000)),
    )?;
    let seconds = Duration::from_secs(times(1, 20) as u64);
    let flood = Flood {
        name,
        script,
        ends,
        memory_mib_max: 96,
        stopped_after: (ends != ENDED).then_some(seconds),
    };
    houses.hold(&flood, Duration::ZERO).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_requests_is_borne() -> Result<()> {
    let lasting = times(500, 20_000);
    for (name, line) in requests() {
        let script = format!("flood-lines {lasting}ms {line}");
        bear_requests("allow", name, script.clone(), ENDED).await?;
        if line.contains("request_permission") {
            let name = "questions that nobody answers";
            bear_requests("ask", name, script, ENDED).await?;
        }
    }
    Ok(())
}

/// It is not heard on before it has read what it is answered, and Stop ends it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_requests_by_one_that_reads_no_answer_is_borne() -> Result<()> {
    // Each takes as long as it may take not to hear the Stop.
    for (name, line) in requests().into_iter().take(times(2, 5)) {
        let script = format!("stop-reading\nflood-lines 600000ms {line}");
        bear_requests("allow", name, script, "\"outcome\":\"interrupted\"").await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_without_end_and_a_flood_of_errors_cost_no_memory_and_slow_nobody_down() -> Result<()>
{
    let errors = times(200, 10_000) * 1_000_000;
    let endless = times(64, 1024) * 1024 * 1024;
    let floods = vec![
        Flood {
            name: "errors",
            script: format!("flood-stderr {errors}\nsay done"),
            ends: ENDED,
            memory_mib_max: 16,
            stopped_after: None,
        },
        Flood {
            name: "a line without end",
            script: format!("endless {endless}\nsay never"),
            ends: "a line of more than 16 MiB",
            memory_mib_max: 96,
            stopped_after: None,
        },
        Flood {
            name: "a line of millions of values",
            script: format!("wide {}\nsay never", times(3_000_000, 8_000_000)),
            ends: "a line of more than 1000000 values",
            memory_mib_max: 96,
            stopped_after: None,
        },
    ];
    bear_each(floods, Duration::ZERO).await
}

/// One that hears that it should stop is not ended, and those who work with it elsewhere do not notice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_that_is_stopped_leaves_the_other_sessions_of_its_agent_alone() -> Result<()> {
    let setup = crate::fire_faults::setup()?;
    let folder = setup.folder("app")?;
    let server = setup.start().await?;
    let flooded = Person::at(&server, &folder).await?.create().await?;
    let mut person = Person::at(&server, &folder).await?;
    let mut talk = person.begin().await?;
    let go_on = setup.home().join("go-on");
    let waits = format!("say begun\nuntil {}\nsay done", go_on.display());
    person.send(&talk, &waits).await?;
    person.until_said(&mut talk, "assistant: begun").await?;
    // Between one line of the script and the next it hears.
    let script = "flood 1000 1000\n".repeat(100);
    send_and_leave(&server, &flooded, &script).await?;
    let ended = async {
        loop {
            let last = last_entry(&mut server.connect().await?, &flooded).await?;
            if last["type"] == "turn" {
                return Ok::<_, anyhow::Error>(last);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let ended = tokio::time::timeout(PATIENCE, ended).await??;
    ensure!(ended["outcome"] == "failed", "{ended}");
    ensure!(ended.to_string().contains(TOO_MUCH), "{ended}");
    std::fs::write(go_on, "")?;
    person.until_turns(&mut talk, 1).await?;
    let said = talk.said();
    ensure!(
        said[1..] == ["assistant: begundone", "turn ended"],
        "{said:?}"
    );
    let mut returned = Person::at(&server, &folder).await?;
    let mut again = returned.open(&flooded).await?;
    let before = again.entries.len();
    returned.turn(&mut again, "say heard again").await?;
    let said = &again.said()[before..];
    ensure!(
        said.iter().any(|line| line == "assistant: heard again"),
        "{said:?}"
    );
    Ok(())
}

/// What changes again and again is on disk once, and as it was last when the plug is pulled.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_changes_again_and_again_is_kept_once_and_survives_a_kill() -> Result<()> {
    let setup = crate::fire_faults::setup()?;
    let folder = setup.folder("app")?;
    let server = setup.start().await?;
    let session = Person::at(&server, &folder).await?.create().await?;
    let text = "x".repeat(400_000);
    let content = json!([{"type": "content", "content": {"type": "text", "text": text}}]);
    let change = |id: &str| {
        update(json!({
            "sessionUpdate": "tool_call_update", "toolCallId": id, "title": "%n", "content": content,
        }))
    };
    // Three hundred changes of 400 KB, of two calls in turn.
    let script = format!(
        "flood-lines 150 {}%l{}\nsay all\nhang",
        change("a"),
        change("b")
    );
    send_and_leave(&server, &session, &script).await?;
    let end = Instant::now() + PATIENCE;
    while last_entry(&mut server.connect().await?, &session).await?["content"] != "all" {
        ensure!(Instant::now() < end, "it never ends");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let kept = size(&setup.data_dir());
    ensure!(kept < 80_000_000, "{kept} bytes");
    server.signal("KILL").await?;
    let server = setup.start().await?;
    let after = Person::at(&server, &folder).await?.open(&session).await?;
    let said = &after.said()[1..];
    ensure!(
        said == [
            "tool 149 error",
            "tool 149 error",
            "assistant: all",
            "turn interrupted"
        ],
        "{said:?}"
    );
    for call in &after.entries[1..3] {
        ensure!(call["content"][0]["text"] == text.as_str());
    }
    Ok(())
}

/// Nobody watches: whoever does gets all of it, and pays for it. Whoever asked may already be too slow for the answer.
async fn send_and_leave(server: &Server, session: &str, script: &str) -> Result<()> {
    let mut sender = server.connect().await?;
    let send = json!({
        "type": "session:send", "sessionId": session, "content": script, "requestId": "flood",
    });
    sender.send(send).await?;
    while let Ok(message) = sender.next_or_close().await? {
        ensure!(message["type"] != "error", "{message}");
        if message["requestId"] == "flood" {
            break;
        }
    }
    Ok(())
}

async fn last_entry(socket: &mut Socket, session: &str) -> Result<Value> {
    let tail = json!({"type": "session:open", "sessionId": session, "tail": 1});
    let history = socket.ask(tail).await?;
    let entries = history["entries"].as_array().context("entries")?;
    Ok(entries.last().context("an end")?.clone())
}
