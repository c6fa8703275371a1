//! Tests of reconnection. A window, the agent or the server can disappear at any moment: shown events are kept, missed
//! events are sent later, and no event is sent twice.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use serde_json::{Value, json};
use testkit::{
    Conversation, HANG_GUARD, Person, Scene, Server, ServerSetup, Socket, count_turns, times,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;

#[tokio::test]
async fn reconnected_window_resumes_at_its_last_event() -> Result<()> {
    let mut scene = Scene::new().await?;
    let mut other = scene.another_window().await?;
    let mut other_conversation = other.open(&scene.session.session_id).await?;
    scene.send("rate 300 10 600\nsay end").await?;
    for _ in 0..5 {
        scene
            .until(|seen| {
                seen.entries
                    .last()
                    .is_some_and(|last| last["type"] == "assistant")
            })
            .await?;
        // The window disconnects without a close frame and reconnects.
        scene.user = scene.another_window().await?;
        let answer = scene.user.resume(&mut scene.session).await?;
        assert_eq!(answer["type"], "session:resumed");
    }
    scene.until_turns(1).await?;
    other.until_turns(&mut other_conversation, 1).await?;
    assert_eq!(scene.session.entries, other_conversation.entries);
    assert_eq!(scene.session.seq, other_conversation.seq);
    let text = scene.session.entries[1]["content"]
        .as_str()
        .context("no text")?;
    assert_eq!(text, format!("{}end", "f".repeat(3000)));
    Ok(())
}

#[tokio::test]
async fn window_that_missed_too_much_or_a_restart_gets_a_full_snapshot() -> Result<()> {
    let mut scene = Scene::new().await?;
    scene.turn("say one").await?;
    let mut old = scene.session.clone();
    scene.turn("huge 400000").await?;
    let answer = scene.user.resume(&mut old).await?;
    assert_eq!(answer["type"], "session:history");
    assert_eq!(old.entries, scene.session.entries);
    let mut ahead = scene.session.clone();
    ahead.seq += 10;
    assert_eq!(
        scene.user.resume(&mut ahead).await?["type"],
        "session:history"
    );
    scene.server.signal("TERM").await?;
    let server = scene.setup.start().await?;
    let mut user = Person::at(&server, &scene.setup.folder("app")?).await?;
    let answer = user.resume(&mut scene.session.clone()).await?;
    assert_eq!(answer["type"], "session:history");
    assert_eq!(answer["entries"], json!(scene.session.entries));
    Ok(())
}

#[tokio::test]
async fn five_windows_receive_identical_conversations() -> Result<()> {
    let mut scene = Scene::new().await?;
    let mut windows = vec![];
    for _ in 0..5 {
        let mut window = scene.another_window().await?;
        let conversation = window.open(&scene.session.session_id).await?;
        windows.push((window, conversation));
    }
    let script = "think hm\nflood 2000 15\ntool t1 read Look\ntool-done t1 ok\nflood 2000 15";
    scene.turn(script).await?;
    for (window, other_conversation) in &mut windows {
        window.until_turns(other_conversation, 1).await?;
        assert_eq!(other_conversation.entries, scene.session.entries);
        assert_eq!(other_conversation.seq, scene.session.seq);
    }
    Ok(())
}

#[tokio::test]
async fn hello_includes_projects_and_sessions_when_lists_are_requested() -> Result<()> {
    let mut scene = Scene::new().await?;
    let second = scene.setup.folder("second")?;
    let add = json!({"type": "project:add", "path": second});
    let second = scene.user.socket.ask(add).await?["project"]["id"].clone();
    let (bearer, host) = (
        format!("Bearer {}", scene.server.token),
        scene.server.address.to_string(),
    );
    let headers = [("host", host.as_str()), ("authorization", &bearer)];
    let mut page = Socket::open(scene.server.address, "/ws?batch=1&lists=1", &headers).await?;
    let greeting = page.next().await?;
    let parts = greeting.as_array().context("not a batch of messages")?;
    let kinds: Vec<_> = parts
        .iter()
        .filter_map(|part| part["type"].as_str())
        .collect();
    let expected = ["hello", "project:list", "session:list", "session:list"];
    assert_eq!(kinds, expected);
    assert_eq!(parts[1]["projects"].as_array().map(Vec::len), Some(2));
    assert_eq!(parts[2]["projectId"], scene.user.project_id.as_str());
    assert_eq!(
        parts[2]["sessions"][0]["id"],
        scene.session.session_id.as_str()
    );
    assert_eq!(parts[3]["projectId"], second);
    assert_eq!(parts[3]["sessions"], json!([]));
    Ok(())
}

#[tokio::test]
async fn pending_messages_share_one_frame_when_batching_is_requested() -> Result<()> {
    let mut scene = Scene::new().await?;
    let (bearer, host) = (
        format!("Bearer {}", scene.server.token),
        scene.server.address.to_string(),
    );
    let headers = [("host", host.as_str()), ("authorization", &bearer)];
    let mut batching = Socket::open(scene.server.address, "/ws?batch=1", &headers).await?;
    batching
        .send(json!({"type": "session:open", "sessionId": scene.session.session_id}))
        .await?;
    let mut other_conversation = Conversation::new(&scene.session.session_id);
    scene
        .turn("flood 5000 10\ntool t1 read A\nflood 5000 10\ntool t2 read B\nsay end")
        .await?;
    let mut several = false;
    while count_turns(&other_conversation) == 0 {
        let frame = batching.next().await?;
        let messages = match frame {
            Value::Array(messages) => {
                several |= messages.len() > 1;
                messages
            }
            message => vec![message],
        };
        for message in &messages {
            other_conversation.apply(message)?;
        }
    }
    assert_eq!(other_conversation.entries, scene.session.entries);
    assert!(several, "no frame had more than one message");
    Ok(())
}

/// TCP proxy between a window and the server. While throttled, it forwards one byte per second to the window.
struct ThrottledProxy {
    throttle: watch::Sender<bool>,
    /// Number of bytes forwarded while throttled.
    throttled_bytes: Arc<AtomicUsize>,
}

impl ThrottledProxy {
    /// Opens a window that connects through the proxy.
    async fn at(server: &Server, project_id: &str) -> Result<(Self, Person)> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let (address, behind) = (listener.local_addr()?, server.address);
        let (throttle, changes) = watch::channel(false);
        let throttled_bytes = Arc::new(AtomicUsize::new(0));
        let count = throttled_bytes.clone();
        tokio::spawn(async move {
            let (front, _) = listener.accept().await?;
            // A small receive buffer, so that the server soon sees backpressure.
            let back = TcpSocket::new_v4()?;
            back.set_recv_buffer_size(4096)?;
            let back = back.connect(behind).await?;
            let ((mut from_window, to_window), (from_server, mut to_server)) =
                (front.into_split(), back.into_split());
            tokio::spawn(async move { tokio::io::copy(&mut from_window, &mut to_server).await });
            forward(from_server, to_window, changes, &count).await
        });
        let (bearer, host) = (format!("Bearer {}", server.token), behind.to_string());
        let headers = [("host", host.as_str()), ("authorization", &bearer)];
        let mut socket = Socket::open(address, "/ws", &headers).await?;
        socket.next_of("hello").await?;
        let project_id = project_id.to_owned();
        Ok((
            Self {
                throttle,
                throttled_bytes,
            },
            Person { socket, project_id },
        ))
    }
}

async fn forward(
    mut from_server: OwnedReadHalf,
    mut to_window: OwnedWriteHalf,
    mut throttle: watch::Receiver<bool>,
    throttled_bytes: &AtomicUsize,
) -> std::io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let throttled = *throttle.borrow_and_update();
        let most = if throttled { 1 } else { buffer.len() };
        let count = from_server.read(&mut buffer[..most]).await?;
        if count == 0 {
            return to_window.shutdown().await;
        }
        to_window.write_all(&buffer[..count]).await?;
        if throttled {
            throttled_bytes.fetch_add(1, Ordering::Relaxed);
            tokio::select! {
                () = tokio::time::sleep(Duration::from_secs(1)) => {}
                _ = throttle.changed() => {}
            }
        }
    }
}

/// Median duration of the turns of a neighbour session while another task runs.
async fn turn_duration_during(
    neighbour: &mut (Person, Conversation),
    task: impl Future<Output = Result<()>>,
) -> Result<Duration> {
    let (person, conversation) = neighbour;
    let (mut took, mut task) = (vec![], std::pin::pin!(task));
    loop {
        let begun = Instant::now();
        let mut turn = std::pin::pin!(person.turn(conversation, "say hello"));
        tokio::select! {
            ended = &mut task => {
                ended?;
                turn.await?;
                break;
            }
            ended = &mut turn => ended?,
        }
        took.push(begun.elapsed());
        // A pause, so that the measured session causes little load itself.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    took.sort();
    took.get(took.len() / 2)
        .copied()
        .context("no turn was measured")
}

/// Runs a turn with 7 MB of output. Two of them exceed a window's backlog and the socket buffers together.
async fn send_large_output(person: &mut Person, conversation: &mut Conversation) -> Result<()> {
    let calls = (0..24).map(|call| format!("huge 300000\ntool t{call} read More\n"));
    person.turn(conversation, &calls.collect::<String>()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn window_reading_one_byte_per_second_delays_no_other_and_loses_nothing() -> Result<()> {
    let mut scene = Scene::new().await?;
    let folder = scene.setup.folder("app")?;
    let mut neighbour = Person::at(&scene.server, &folder).await?;
    let neighbour_conversation = neighbour.begin().await?;
    let mut neighbour = (neighbour, neighbour_conversation);
    let mut other = scene.user.begin().await?;
    let before = turn_duration_during(
        &mut neighbour,
        send_large_output(&mut scene.user, &mut other),
    )
    .await?;

    let (proxy, mut slow) = ThrottledProxy::at(&scene.server, &scene.user.project_id).await?;
    let mut slow_conversation = slow.open(&scene.session.session_id).await?;
    proxy.throttle.send(true)?;
    let begun = Instant::now();
    let during = turn_duration_during(&mut neighbour, async {
        send_large_output(&mut scene.user, &mut scene.session).await?;
        send_large_output(&mut scene.user, &mut scene.session).await
    })
    .await?;
    // The proxy forwarded one byte per second and not more.
    let (took, throttled_bytes) = (
        begun.elapsed(),
        proxy.throttled_bytes.load(Ordering::Relaxed),
    );
    let seconds = took.as_secs() as usize;
    ensure!(
        (1..=seconds + 2).contains(&throttled_bytes),
        "{throttled_bytes} in {took:?}"
    );
    // The close code arrives only if the window reads again within `GIVEN_UP_AFTER`, which depends on the machine.
    let in_time = took < testkit::GIVEN_UP_AFTER;
    proxy.throttle.send(false)?;
    let code = slow.closed_after(&mut slow_conversation).await?;
    ensure!(
        code == Some(4008) || (!in_time && code.is_none()),
        "{code:?}"
    );
    let mut back = Person::at(&scene.server, &folder).await?;
    back.resume(&mut slow_conversation).await?;
    ensure!(
        slow_conversation.entries == scene.session.entries,
        "{:?}",
        slow_conversation.said()
    );
    // At least 20 ms, so that scheduling delays do not fail the test.
    let share = before.max(Duration::from_millis(20));
    ensure!(
        during < share * 5,
        "a turn of the neighbour took {before:?} before and {during:?} during the slow read"
    );
    Ok(())
}

/// One step of a random test: input, a failure or a reconnection.
#[derive(Debug, Clone)]
enum Step {
    Send(u8),
    Stream,
    Cancel,
    AgentCrash,
    ServerKill,
    /// The last write of the killed server is incomplete.
    ServerKillWithTornWrite,
    FirstWindowReconnects,
    SecondWindowReconnects,
    SendAgain,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..20_u8).prop_map(Step::Send),
        3 => Just(Step::Stream),
        2 => Just(Step::Cancel),
        1 => Just(Step::AgentCrash),
        1 => Just(Step::ServerKill),
        1 => Just(Step::ServerKillWithTornWrite),
        3 => Just(Step::FirstWindowReconnects),
        2 => Just(Step::SecondWindowReconnects),
        2 => Just(Step::SendAgain),
    ]
}

struct Environment {
    setup: ServerSetup,
    server: Option<Server>,
    windows: [(Person, Conversation); 2],
    sent: u64,
}

impl Environment {
    async fn new() -> Result<Self> {
        let scene = Scene::new().await?;
        let mut second = scene.another_window().await?;
        let conversation = second.open(&scene.session.session_id).await?;
        Ok(Self {
            setup: scene.setup,
            server: Some(scene.server),
            windows: [(scene.user, scene.session), (second, conversation)],
            sent: 0,
        })
    }

    async fn apply(&mut self, step: &Step) -> Result<()> {
        match step {
            Step::Send(count) => self.send(&format!("flood {count} 7\nsay x")).await?,
            Step::Stream => self.send("rate 30 5 1000").await?,
            Step::Cancel => {
                let (person, conversation) = &mut self.windows[0];
                person
                    .ask(conversation, json!({"type": "session:cancel"}))
                    .await?;
            }
            Step::AgentCrash => self.send("say last words\ncrash 1").await?,
            Step::ServerKill => self.restart(false).await?,
            Step::ServerKillWithTornWrite => self.restart(true).await?,
            Step::FirstWindowReconnects => self.reconnect(0).await?,
            Step::SecondWindowReconnects => self.reconnect(1).await?,
            // No message was sent yet.
            Step::SendAgain if self.sent == 0 => {}
            Step::SendAgain => {
                let (person, conversation) = &mut self.windows[0];
                let id = format!("message-{}", self.sent);
                person.send_as(conversation, "say never twice", &id).await?;
            }
        }
        Ok(())
    }

    async fn send(&mut self, content: &str) -> Result<()> {
        self.sent += 1;
        let (person, conversation) = &mut self.windows[0];
        let id = format!("message-{}", self.sent);
        person.send_as(conversation, content, &id).await?;
        // Until the message is shown or queued.
        person
            .until(conversation, |seen| {
                let here = |message: &Value| message["requestId"] == id.as_str();
                let queue = seen.info["queue"].as_array();
                seen.entries.iter().any(here) || queue.is_some_and(|queue| queue.iter().any(here))
            })
            .await
    }

    async fn reconnect(&mut self, window: usize) -> Result<()> {
        let server = self.server.as_ref().context("no server")?;
        let (person, conversation) = &mut self.windows[window];
        *person = Person::at(server, &self.setup.folder("app")?).await?;
        person.resume(conversation).await?;
        Ok(())
    }

    async fn restart(&mut self, torn: bool) -> Result<()> {
        let server = self.server.take().context("no server")?;
        server.signal("KILL").await?;
        for (person, conversation) in &mut self.windows {
            person.drain(conversation).await?;
        }
        if torn {
            for entry in std::fs::read_dir(self.setup.data_dir().join("sessions"))? {
                let mut file = std::fs::OpenOptions::new()
                    .append(true)
                    .open(entry?.path())?;
                std::io::Write::write_all(&mut file, b"{\"n\":99,\"entry\":{\"type\":\"assis")?;
            }
        }
        let server = self.setup.start().await?;
        for (person, conversation) in &mut self.windows {
            let shown = conversation.clone();
            *person = Person::at(&server, &self.setup.folder("app")?).await?;
            let answer = person.resume(conversation).await?;
            ensure!(answer["type"] == "session:history", "{answer}");
            shown.is_kept_in(conversation)?;
        }
        self.server = Some(server);
        Ok(())
    }

    /// Checks that both windows and the disk have the same entries and that no message ran twice.
    async fn settle(mut self) -> Result<()> {
        self.send("say the end").await?;
        let last = format!("message-{}", self.sent);
        let over = |seen: &Conversation| {
            let mut after = seen.entries.iter();
            let sent = after.any(|entry| entry["requestId"] == last.as_str());
            sent && after.any(|entry| entry["type"] == "turn") && !seen.is_running()
        };
        let held = |seen: &Conversation| seen.info["queueHeld"] == true;
        for (person, conversation) in &mut self.windows {
            while !over(conversation) {
                person
                    .until(conversation, |seen| over(seen) || held(seen))
                    .await?;
                // After a failed or cancelled turn the queue is paused until the user resumes it.
                if held(conversation) {
                    let resume = json!({"type": "session:queue-resume"});
                    person.ask(conversation, resume).await?;
                    person.until(conversation, |seen| !held(seen)).await?;
                }
            }
        }
        let [(_, first), (_, second)] = &self.windows;
        ensure!(
            first.entries == second.entries,
            "{:?}\n{:?}",
            first.said(),
            second.said()
        );
        let sent: Vec<&str> = first
            .entries
            .iter()
            .filter_map(|entry| entry["requestId"].as_str())
            .collect();
        let different: BTreeSet<&&str> = sent.iter().collect();
        ensure!(
            different.len() == sent.len(),
            "a message ran twice: {sent:?}"
        );
        let server = self.server.take().context("no server")?;
        server.signal("KILL").await?;
        let server = self.setup.start().await?;
        let mut person = Person::at(&server, &self.setup.folder("app")?).await?;
        let on_disk = person.open(&first.session_id).await?;
        ensure!(
            on_disk.entries == first.entries,
            "the transcript on disk differs: {:?} {:?}",
            on_disk.entries,
            first.entries
        );
        let prompts: Vec<String> = self
            .setup
            .asked()
            .into_iter()
            .filter(|line| line.starts_with("session/prompt") && line.contains("never twice"))
            .collect();
        ensure!(prompts.is_empty(), "{prompts:?}");
        Ok(())
    }
}

#[test]
fn random_failures_leave_both_windows_and_the_disk_with_one_transcript() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let mut runner = TestRunner::new(Config {
        cases: times(12, 128) as u32,
        max_shrink_iters: 20,
        failure_persistence: None,
        ..Config::default()
    });
    let result = runner.run(&prop::collection::vec(step(), 4..14), |steps| {
        let run = async {
            let mut environment = Environment::new().await?;
            for step in &steps {
                environment
                    .apply(step)
                    .await
                    .with_context(|| format!("{step:?}"))?;
            }
            environment.settle().await
        };
        let ended = runtime.block_on(async { tokio::time::timeout(HANG_GUARD * 4, run).await });
        match ended {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(TestCaseError::fail(format!("{error:?}"))),
            Err(_) => Err(TestCaseError::fail("the run timed out")),
        }
    });
    result.map_err(|failed| anyhow::anyhow!("{failed:?}"))
}
