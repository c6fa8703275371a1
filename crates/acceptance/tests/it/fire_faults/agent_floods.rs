//! Agents that send more than can be processed: other sessions are not slowed down, memory and disk stay bounded.
//!
//! Each test compares two servers on the same busy machine, each with a well-behaved agent; only one of them also has
//! the flooding agent.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testkit::{Person, Server, ServerSetup, Socket, times};

use crate::fire_faults::agents::TwoAgents;

/// Maximum ratio between a turn on the flooded server and a turn on the other server.
const RATIO_MAX: u32 = 3;
/// Lower limit for the reference duration: shorter turns are treated as this long, because the difference is noise.
const MEDIAN_MIN: Duration = Duration::from_millis(3);
/// Lower limit for the slowest reference turn, an ordinary delay on a busy machine.
const SLOWEST_MIN: Duration = Duration::from_millis(100);
const ROUNDS_MAX: usize = 3;
/// Maximum duration of a flood, longer than a user would wait, because the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(600);

/// One kind of flood, and how its turn must end.
struct Flood<'a> {
    name: &'a str,
    /// The prompt; `%f` is replaced by the project folder.
    script: String,
    ends: &'static str,
    memory_mib_max: u64,
    /// When the user presses Stop, if the flood does not end by itself.
    stopped_after: Option<Duration>,
}

/// Maximum growth of the data directory: the transcript of one turn and its live log before compaction.
const DISK_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// Measurements of one flood.
struct Measured {
    /// Median turn of the well-behaved agent, on the flooded server and on the other one.
    turns: [Duration; 2],
    slowest: [Duration; 2],
    /// Bytes that the server read.
    read: u64,
    lasted: Duration,
    /// Maximum growth of the data directory in bytes.
    kept: u64,
    entry: Value,
}

/// Both servers, and the user of the flooding agent.
struct Servers {
    here: TwoAgents,
    elsewhere: TwoAgents,
    bad: Person,
}

impl Servers {
    async fn build() -> Result<Self> {
        Self::build_with("allow").await
    }

    async fn build_with(policy: &str) -> Result<Self> {
        let (here, bad, _) = TwoAgents::with_bad_agent(policy).await?;
        let (elsewhere, ..) = TwoAgents::with_bad_agent(policy).await?;
        Ok(Self {
            here,
            elsewhere,
            bad,
        })
    }

    /// Creates a session, and retries while the previous agent process is still exiting.
    async fn begin(&mut self) -> Result<String> {
        let end = Instant::now() + PATIENCE;
        loop {
            let created = self.bad.ask_to_create("claude-code").await?;
            if let Some(id) = created["sessionId"].as_str() {
                // Creating a session subscribes to it; the new connection has no subscription.
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

    /// Runs the flood in a session of its own, while both well-behaved agents run turns.
    async fn run(&mut self, flood: &Flood<'_>) -> Result<Measured> {
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
            ensure!(begun.elapsed() < PATIENCE, "the flood did not end in time");
        }
        let lasted = begun.elapsed();
        let read = self.read()? - read;
        let mut late = self.here.server.connect().await?;
        let entry = last_entry(&mut late, &session).await?;
        for took in &mut turns {
            took.sort();
        }
        Ok(Measured {
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
        let state = &it.context("the session is not in the list")?["state"];
        Ok(state == "running" || state == "waiting")
    }

    /// Total bytes that the server process has read.
    fn read(&self) -> Result<u64> {
        let io = std::fs::read_to_string(format!("/proc/{}/io", self.here.server.id()))?;
        let line = io.lines().find_map(|line| line.strip_prefix("rchar: "));
        Ok(line.context("expected a count")?.trim().parse()?)
    }

    /// Repeats the flood for a duration and checks the limits. One good round suffices for the timing: other
    /// load on the machine may spoil a round, but a real defect spoils all of them.
    async fn hold(&mut self, flood: &Flood<'_>, lasting: Duration) -> Result<()> {
        let Flood { name, ends, .. } = flood;
        let quiet = self.here.turns(20).await?;
        let memory = self.here.memory("VmRSS")?;
        let end = Instant::now() + lasting;
        let (mut rounds, mut held) = (vec![], false);
        let (mut read, mut lasted, mut kept) = (0, Duration::ZERO, 0);
        while Instant::now() < end || (!held && rounds.len() < ROUNDS_MAX) {
            let measured = self.run(flood).await?;
            let [here, elsewhere] = measured.turns;
            let share = elsewhere.max(quiet).max(MEDIAN_MIN);
            let [slowest, theirs] = measured.slowest;
            held |= here <= share * RATIO_MAX && slowest <= theirs.max(SLOWEST_MIN) * RATIO_MAX;
            rounds.push(format!(
                "{here:?}, elsewhere {elsewhere:?}, the slowest {slowest:?} and {theirs:?}"
            ));
            read += measured.read;
            lasted += measured.lasted;
            kept = kept.max(measured.kept);
            let said = measured.entry.to_string();
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

/// Total size of the files in a folder; files may disappear meanwhile.
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

async fn run_each(floods: Vec<Flood<'_>>, lasting: Duration) -> Result<()> {
    for flood in floods {
        Servers::build().await?.hold(&flood, lasting).await?;
    }
    Ok(())
}

/// A `session/update` notification as a line.
fn update(update: Value) -> String {
    let params = json!({"sessionId": "%s", "update": update});
    json!({"jsonrpc": "2.0", "method": "session/update", "params": params}).to_string()
}

const TOO_MUCH: &str = " MiB ";
const ENDED: &str = "\"outcome\":\"ended\"";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn text_flood_is_ended_within_the_memory_limit_without_slowing_others() -> Result<()> {
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
    run_each(floods.into(), lasting).await
}

/// Covers entries without text of their own that are kept in the transcript.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flood_of_other_transcript_entries_is_ended() -> Result<()> {
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
    let mut kinds = vec![("large images", picture(100_000))];
    // A debug build takes minutes for these.
    if times(0, 1) == 1 {
        kinds.extend([
            (
                "tool calls with raw output",
                call(json!({"rawOutput": vec![1; 10_000]})),
            ),
            (
                "tool calls with many small values",
                call(json!({
                    "rawInput": vec![json!({"a": 0}); 1000], "locations": vec![json!({"path": ""}); 1000],
                })),
            ),
            (
                "tool calls with long texts",
                call(json!({"content": text(100_000)})),
            ),
            ("tool calls", call(json!({"content": text(1000)}))),
            ("empty tool calls", call(json!({"title": ""}))),
            ("images", picture(10_000)),
            (
                "one word in each of many messages",
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
    run_each(floods.collect(), Duration::ZERO).await
}

/// Covers messages that do not make the transcript grow, so that the flood may last for any time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flood_of_messages_that_are_not_kept_slows_nothing() -> Result<()> {
    let text = "x".repeat(1000);
    let content = json!([{"type": "content", "content": {"type": "text", "text": text}}]);
    let plan = json!([{"content": text, "priority": "high", "status": "pending"}]);
    let unknown_session = update(json!({
        "sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text},
    }));
    let kinds = [
        ("lines that are not JSON", text.clone()),
        ("text for an unknown session", unknown_session.replace("%s", "unknown")),
        (
            "an unknown update",
            update(json!({"sessionUpdate": "weather", "text": text})),
        ),
        (
            "requests with an unknown method",
            json!({"jsonrpc": "2.0", "id": "q%n", "method": "weather/ask", "params": {"text": text}})
                .to_string(),
        ),
        (
            "responses without a request",
            json!({"jsonrpc": "2.0", "id": "a%n", "result": {"text": text}}).to_string(),
        ),
        (
            "one tool call, changed",
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
    run_each(floods.into(), Duration::ZERO).await
}

/// Terminal output is shown as it arrives, and only the end of it is kept.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flood_of_terminal_output_slows_nothing() -> Result<()> {
    let floods = [
        ("lines of a command", "yes"),
        ("output of a command without a newline", "cat /dev/zero"),
    ];
    let floods = floods.map(|(name, line)| Flood {
        name,
        script: format!("terminal t timeout {} {line}", times(1, 60)),
        ends: ENDED,
        memory_mib_max: 64,
        stopped_after: None,
    });
    run_each(floods.into(), Duration::ZERO).await
}

/// A request of the session as a line.
fn request(method: &str, params: Value) -> String {
    let mut params = params;
    params["sessionId"] = json!("%s");
    json!({"jsonrpc": "2.0", "id": "q%n", "method": method, "params": params}).to_string()
}

/// Client methods of ACP that the server implements, each called without end.
fn requests() -> [(&'static str, String); 5] {
    let option = json!({"optionId": "yes", "name": "Yes", "kind": "allow_once"});
    let call = json!({"toolCallId": "t", "title": "%n", "status": "pending"});
    let form = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    [
        (
            "reads of a long file",
            request("fs/read_text_file", json!({"path": "%f/long.txt"})),
        ),
        (
            // Invalid requests are answered by the ACP crate, which quotes the whole line.
            "invalid requests",
            format!(
                r#"{{"jsonrpc":"2.0","id":"q%n","method":"x","params":{}{},"pad":"{}"}}"#,
                "[".repeat(200),
                "]".repeat(200),
                "x".repeat(200_000),
            ),
        ),
        (
            "writes of a file",
            request(
                "fs/write_text_file",
                json!({"path": "%f/short.txt", "content": "x".repeat(100_000)}),
            ),
        ),
        (
            "permission requests",
            request(
                "session/request_permission",
                json!({"toolCall": call, "options": [option]}),
            ),
        ),
        (
            "elicitation forms",
            request(
                "elicitation/create",
                json!({"mode": "form", "message": "Who?", "requestedSchema": form}),
            ),
        ),
    ]
}

/// Runs a flood of requests under the given approval policy, `allow` or `ask`.
async fn run_request_flood(
    policy: &str,
    name: &str,
    script: String,
    ends: &'static str,
) -> Result<()> {
    let mut servers = Servers::build_with(policy).await?;
    let file = Path::new(&servers.here.setup.folder("app")?).join("long.txt");
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
    servers.hold(&flood, Duration::ZERO).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn request_flood_slows_nothing() -> Result<()> {
    let lasting = times(500, 20_000);
    for (name, line) in requests() {
        let script = format!("flood-lines {lasting}ms {line}");
        run_request_flood("allow", name, script.clone(), ENDED).await?;
        if line.contains("request_permission") {
            let name = "unanswered permission requests";
            run_request_flood("ask", name, script, ENDED).await?;
        }
    }
    Ok(())
}

/// The server stops reading from an agent that does not read its responses; Stop ends the turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn request_flood_by_an_agent_that_reads_no_responses_slows_nothing() -> Result<()> {
    // Each case waits for the full time that an agent has to react to Stop.
    for (name, line) in requests().into_iter().take(times(2, 5)) {
        let script = format!("stop-reading\nflood-lines 600000ms {line}");
        run_request_flood("allow", name, script, "\"outcome\":\"interrupted\"").await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endless_line_and_stderr_flood_take_bounded_memory_and_slow_nothing() -> Result<()> {
    let errors = times(200, 10_000) * 1_000_000;
    let endless = times(64, 1024) * 1024 * 1024;
    let floods = vec![
        Flood {
            name: "standard error",
            script: format!("flood-stderr {errors}\nsay done"),
            ends: ENDED,
            memory_mib_max: 16,
            stopped_after: None,
        },
        Flood {
            name: "an endless line",
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
    run_each(floods, Duration::ZERO).await
}

/// An agent process that obeys the cancel is kept, so that its other sessions continue.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopped_flood_does_not_disturb_other_sessions_of_its_agent() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let folder = setup.folder("app")?;
    let server = setup.start().await?;
    let flooded = Person::at(&server, &folder).await?.create().await?;
    let mut person = Person::at(&server, &folder).await?;
    let mut talk = person.begin().await?;
    let go_on = setup.home().join("go-on");
    let waits = format!("say begun\nuntil {}\nsay done", go_on.display());
    person.send(&talk, &waits).await?;
    person.until_said(&mut talk, "assistant: begun").await?;
    // The agent notices a cancel between two lines of the script.
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

/// A repeatedly changed tool call is on disk once, and in its last state after a kill.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn repeatedly_changed_tool_call_is_kept_once_and_survives_a_kill() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
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
    // 300 changes of 400 KB each, alternating between two tool calls.
    let script = format!(
        "flood-lines 150 {}%l{}\nsay all\nhang",
        change("a"),
        change("b")
    );
    send_and_leave(&server, &session, &script).await?;
    let end = Instant::now() + PATIENCE;
    while last_entry(&mut server.connect().await?, &session).await?["content"] != "all" {
        ensure!(Instant::now() < end, "the turn did not finish in time");
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

/// Sends the prompt without subscribing to the session, because a subscriber has to receive the whole flood. The
/// connection may be closed as too slow before the response arrives.
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
    let entries = history["entries"].as_array().context("expected entries")?;
    Ok(entries.last().context("expected an end")?.clone())
}
