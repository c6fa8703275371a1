//! A browser, the agent or the server can vanish at any moment: what was shown is kept, what is missed
//! is made up for, nothing comes twice.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use serde_json::{Value, json};
use testkit::{Conversation, HANG_GUARD, Person, Server, ServerSetup, Socket, count_turns};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;

fn setup(script: &str) -> Result<ServerSetup> {
    ServerSetup::new(env!("CARGO_BIN_EXE_liminal"))?.with_scripted_agent(script)
}

async fn one() -> Result<(ServerSetup, Server, Person, Conversation)> {
    let setup = setup("")?;
    let server = setup.start().await?;
    let mut person = Person::at(&server, &setup.folder("app")?).await?;
    let talk = person.begin().await?;
    Ok((setup, server, person, talk))
}

#[tokio::test]
async fn reconnected_window_resumes_at_its_last_event() -> Result<()> {
    let (setup, server, mut person, mut talk) = one().await?;
    let mut other = Person::at(&server, &setup.folder("app")?).await?;
    let mut theirs = other.open(&talk.session_id).await?;
    person.send(&talk, "rate 300 10 600\nsay end").await?;
    for _ in 0..5 {
        person
            .until(&mut talk, |seen| {
                seen.entries
                    .last()
                    .is_some_and(|last| last["type"] == "assistant")
            })
            .await?;
        // Gone without a word, and back.
        person = Person::at(&server, &setup.folder("app")?).await?;
        let answer = person.resume(&mut talk).await?;
        assert_eq!(answer["type"], "session:resumed");
    }
    person.until_turns(&mut talk, 1).await?;
    other.until_turns(&mut theirs, 1).await?;
    assert_eq!(talk.entries, theirs.entries);
    assert_eq!(talk.seq, theirs.seq);
    let text = talk.entries[1]["content"].as_str().context("text")?;
    assert_eq!(text, format!("{}end", "f".repeat(3000)));
    Ok(())
}

#[tokio::test]
async fn window_that_missed_too_much_or_a_restart_gets_a_full_snapshot() -> Result<()> {
    let (setup, server, mut person, mut talk) = one().await?;
    person.turn(&mut talk, "say one").await?;
    let mut old = talk.clone();
    person.turn(&mut talk, "huge 400000").await?;
    let answer = person.resume(&mut old).await?;
    assert_eq!(answer["type"], "session:history");
    assert_eq!(old.entries, talk.entries);
    let mut ahead = talk.clone();
    ahead.seq += 10;
    assert_eq!(person.resume(&mut ahead).await?["type"], "session:history");
    server.signal("TERM").await?;
    let server = setup.start().await?;
    let mut person = Person::at(&server, &setup.folder("app")?).await?;
    let answer = person.resume(&mut talk.clone()).await?;
    assert_eq!(answer["type"], "session:history");
    assert_eq!(answer["entries"], json!(talk.entries));
    Ok(())
}

#[tokio::test]
async fn five_windows_receive_identical_conversations() -> Result<()> {
    let (setup, server, mut person, mut talk) = one().await?;
    let mut windows = vec![];
    for _ in 0..5 {
        let mut window = Person::at(&server, &setup.folder("app")?).await?;
        let talk = window.open(&talk.session_id).await?;
        windows.push((window, talk));
    }
    let script = "think hm\nflood 2000 15\ntool t1 read Look\ntool-done t1 ok\nflood 2000 15";
    person.turn(&mut talk, script).await?;
    for (window, theirs) in &mut windows {
        window.until_turns(theirs, 1).await?;
        assert_eq!(theirs.entries, talk.entries);
        assert_eq!(theirs.seq, talk.seq);
    }
    Ok(())
}

#[tokio::test]
async fn hello_includes_projects_and_sessions_when_lists_are_requested() -> Result<()> {
    let (setup, server, mut person, talk) = one().await?;
    let second = setup.folder("second")?;
    let add = json!({"type": "project:add", "path": second});
    let second = person.socket.ask(add).await?["project"]["id"].clone();
    let (bearer, host) = (
        format!("Bearer {}", server.token),
        server.address.to_string(),
    );
    let headers = [("host", host.as_str()), ("authorization", &bearer)];
    let mut page = Socket::open(server.address, "/ws?batch=1&lists=1", &headers).await?;
    let greeting = page.next().await?;
    let parts = greeting.as_array().context("several in one")?;
    let kinds: Vec<_> = parts
        .iter()
        .filter_map(|part| part["type"].as_str())
        .collect();
    let expected = ["hello", "project:list", "session:list", "session:list"];
    assert_eq!(kinds, expected);
    assert_eq!(parts[1]["projects"].as_array().map(Vec::len), Some(2));
    assert_eq!(parts[2]["projectId"], person.project_id.as_str());
    assert_eq!(parts[2]["sessions"][0]["id"], talk.session_id.as_str());
    assert_eq!(parts[3]["projectId"], second);
    assert_eq!(parts[3]["sessions"], json!([]));
    Ok(())
}

#[tokio::test]
async fn pending_messages_share_one_frame_when_batching_is_requested() -> Result<()> {
    let (_setup, server, mut person, mut talk) = one().await?;
    let (bearer, host) = (
        format!("Bearer {}", server.token),
        server.address.to_string(),
    );
    let headers = [("host", host.as_str()), ("authorization", &bearer)];
    let mut batching = Socket::open(server.address, "/ws?batch=1", &headers).await?;
    batching
        .send(json!({"type": "session:open", "sessionId": talk.session_id}))
        .await?;
    let mut theirs = Conversation::new(&talk.session_id);
    person
        .turn(
            &mut talk,
            "flood 5000 10\ntool t1 read A\nflood 5000 10\ntool t2 read B\nsay end",
        )
        .await?;
    let mut several = false;
    while count_turns(&theirs) == 0 {
        let frame = batching.next().await?;
        let messages = match frame {
            Value::Array(messages) => {
                several |= messages.len() > 1;
                messages
            }
            message => vec![message],
        };
        for message in &messages {
            theirs.apply(message)?;
        }
    }
    assert_eq!(theirs.entries, talk.entries);
    assert!(several, "there was never more than one message in a frame");
    Ok(())
}

/// Stands between a window and the server. What the server says comes through as it is, or a byte a second.
struct Straw {
    narrow: watch::Sender<bool>,
    /// Bytes that came through one by one.
    sipped: Arc<AtomicUsize>,
}

impl Straw {
    /// A window whose words all go through it.
    async fn at(server: &Server, project_id: &str) -> Result<(Self, Person)> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let (address, behind) = (listener.local_addr()?, server.address);
        let (narrow, changes) = watch::channel(false);
        let sipped = Arc::new(AtomicUsize::new(0));
        let count = sipped.clone();
        tokio::spawn(async move {
            let (front, _) = listener.accept().await?;
            // Little fits between the server and us, so that it soon notices.
            let back = TcpSocket::new_v4()?;
            back.set_recv_buffer_size(4096)?;
            let back = back.connect(behind).await?;
            let ((mut asked, told), (said, mut heard)) = (front.into_split(), back.into_split());
            tokio::spawn(async move { tokio::io::copy(&mut asked, &mut heard).await });
            sip(said, told, changes, &count).await
        });
        let (bearer, host) = (format!("Bearer {}", server.token), behind.to_string());
        let headers = [("host", host.as_str()), ("authorization", &bearer)];
        let mut socket = Socket::open(address, "/ws", &headers).await?;
        socket.next_of("hello").await?;
        let project_id = project_id.to_owned();
        Ok((Self { narrow, sipped }, Person { socket, project_id }))
    }
}

async fn sip(
    mut said: OwnedReadHalf,
    mut told: OwnedWriteHalf,
    mut narrow: watch::Receiver<bool>,
    sipped: &AtomicUsize,
) -> std::io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let slowly = *narrow.borrow_and_update();
        let most = if slowly { 1 } else { buffer.len() };
        let count = said.read(&mut buffer[..most]).await?;
        if count == 0 {
            return told.shutdown().await;
        }
        told.write_all(&buffer[..count]).await?;
        if slowly {
            sipped.fetch_add(1, Ordering::Relaxed);
            tokio::select! {
                () = tokio::time::sleep(Duration::from_secs(1)) => {}
                _ = narrow.changed() => {}
            }
        }
    }
}

/// How long turns of a neighbour take, usually, while something else happens.
async fn beside(
    neighbour: &mut (Person, Conversation),
    happens: impl Future<Output = Result<()>>,
) -> Result<Duration> {
    let (person, talk) = neighbour;
    let (mut took, mut happens) = (vec![], std::pin::pin!(happens));
    loop {
        let begun = Instant::now();
        let mut turn = std::pin::pin!(person.turn(talk, "say hello"));
        tokio::select! {
            happened = &mut happens => {
                happened?;
                turn.await?;
                break;
            }
            said = &mut turn => said?,
        }
        took.push(begun.elapsed());
        // It is asked how it is, and is no burden itself.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    took.sort();
    took.get(took.len() / 2).copied().context("not one turn")
}

/// More than what may wait for a window and what the system keeps for it, if it happens twice.
async fn says_much(person: &mut Person, talk: &mut Conversation) -> Result<()> {
    let calls = (0..24).map(|call| format!("huge 300000\ntool t{call} read More\n"));
    person.turn(talk, &calls.collect::<String>()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn window_reading_one_byte_per_second_delays_no_other_and_loses_nothing() -> Result<()> {
    let (setup, server, mut person, mut talk) = one().await?;
    let folder = setup.folder("app")?;
    let mut neighbour = Person::at(&server, &folder).await?;
    let their_own = neighbour.begin().await?;
    let mut neighbour = (neighbour, their_own);
    let mut other = person.begin().await?;
    let before = beside(&mut neighbour, says_much(&mut person, &mut other)).await?;

    let (straw, mut slow) = Straw::at(&server, &person.project_id).await?;
    let mut theirs = slow.open(&talk.session_id).await?;
    straw.narrow.send(true)?;
    let begun = Instant::now();
    let during = beside(&mut neighbour, async {
        says_much(&mut person, &mut talk).await?;
        says_much(&mut person, &mut talk).await
    })
    .await?;
    // As much as it has read by then, and not more.
    let (took, sipped) = (begun.elapsed(), straw.sipped.load(Ordering::Relaxed));
    let seconds = took.as_secs() as usize;
    ensure!((1..=seconds + 2).contains(&sipped), "{sipped} in {took:?}");
    // Told why, if it reads again before it is taken for gone; how long the turns took is the machine's affair.
    let told = took < testkit::GIVEN_UP_AFTER;
    straw.narrow.send(false)?;
    let code = slow.closed_after(&mut theirs).await?;
    ensure!(code == Some(4008) || (!told && code.is_none()), "{code:?}");
    let mut back = Person::at(&server, &folder).await?;
    back.resume(&mut theirs).await?;
    ensure!(theirs.entries == talk.entries, "{:?}", theirs.said());
    // A few turns of the system's scheduler are nobody's fault.
    let share = before.max(Duration::from_millis(20));
    ensure!(
        during < share * 5,
        "a turn beside it {before:?} -> {during:?}"
    );
    Ok(())
}

/// What can happen to a conversation.
#[derive(Debug, Clone)]
enum Happening {
    Say(u8),
    Stream,
    Cancel,
    AgentDies,
    ServerDies,
    /// The last write of a dying server was cut off.
    ServerDiesTorn,
    WindowComesBack,
    OtherWindowComesBack,
    SendAgain,
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        4 => (0..20_u8).prop_map(Happening::Say),
        3 => Just(Happening::Stream),
        2 => Just(Happening::Cancel),
        1 => Just(Happening::AgentDies),
        1 => Just(Happening::ServerDies),
        1 => Just(Happening::ServerDiesTorn),
        3 => Just(Happening::WindowComesBack),
        2 => Just(Happening::OtherWindowComesBack),
        2 => Just(Happening::SendAgain),
    ]
}

struct World {
    setup: ServerSetup,
    server: Option<Server>,
    windows: [(Person, Conversation); 2],
    sent: u64,
}

impl World {
    async fn new() -> Result<Self> {
        let (setup, server, first, talk) = one().await?;
        let mut second = Person::at(&server, &setup.folder("app")?).await?;
        let theirs = second.open(&talk.session_id).await?;
        Ok(Self {
            setup,
            server: Some(server),
            windows: [(first, talk), (second, theirs)],
            sent: 0,
        })
    }

    async fn happens(&mut self, what: &Happening) -> Result<()> {
        match what {
            Happening::Say(count) => self.send(&format!("flood {count} 7\nsay x")).await?,
            Happening::Stream => self.send("rate 30 5 1000").await?,
            Happening::Cancel => {
                let (person, talk) = &mut self.windows[0];
                person.ask(talk, json!({"type": "session:cancel"})).await?;
            }
            Happening::AgentDies => self.send("say last words\ncrash 1").await?,
            Happening::ServerDies => self.restart(false).await?,
            Happening::ServerDiesTorn => self.restart(true).await?,
            Happening::WindowComesBack => self.come_back(0).await?,
            Happening::OtherWindowComesBack => self.come_back(1).await?,
            // Nothing was sent yet.
            Happening::SendAgain if self.sent == 0 => {}
            Happening::SendAgain => {
                let (person, talk) = &mut self.windows[0];
                let id = format!("message-{}", self.sent);
                person.send_as(talk, "say never twice", &id).await?;
            }
        }
        Ok(())
    }

    async fn send(&mut self, content: &str) -> Result<()> {
        self.sent += 1;
        let (person, talk) = &mut self.windows[0];
        let id = format!("message-{}", self.sent);
        person.send_as(talk, content, &id).await?;
        // Until it is shown or waits.
        person
            .until(talk, |seen| {
                let here = |message: &Value| message["requestId"] == id.as_str();
                let queue = seen.info["queue"].as_array();
                seen.entries.iter().any(here) || queue.is_some_and(|queue| queue.iter().any(here))
            })
            .await
    }

    async fn come_back(&mut self, window: usize) -> Result<()> {
        let server = self.server.as_ref().context("a server")?;
        let (person, talk) = &mut self.windows[window];
        *person = Person::at(server, &self.setup.folder("app")?).await?;
        person.resume(talk).await?;
        Ok(())
    }

    async fn restart(&mut self, torn: bool) -> Result<()> {
        let server = self.server.take().context("a server")?;
        server.signal("KILL").await?;
        for (person, talk) in &mut self.windows {
            person.drain(talk).await?;
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
        for (person, talk) in &mut self.windows {
            let shown = talk.clone();
            *person = Person::at(&server, &self.setup.folder("app")?).await?;
            let answer = person.resume(talk).await?;
            ensure!(answer["type"] == "session:history", "{answer}");
            shown.is_kept_in(talk)?;
        }
        self.server = Some(server);
        Ok(())
    }

    /// In the end both windows agree, with each other and with the disk, and nothing ran twice.
    async fn settle(mut self) -> Result<()> {
        self.send("say the end").await?;
        let last = format!("message-{}", self.sent);
        let over = |seen: &Conversation| {
            let mut after = seen.entries.iter();
            let sent = after.any(|entry| entry["requestId"] == last.as_str());
            sent && after.any(|entry| entry["type"] == "turn") && !seen.is_running()
        };
        let held = |seen: &Conversation| seen.info["queueHeld"] == true;
        for (person, talk) in &mut self.windows {
            while !over(talk) {
                person.until(talk, |seen| over(seen) || held(seen)).await?;
                // What waits after a turn that went wrong waits for the person.
                if held(talk) {
                    let resume = json!({"type": "session:queue-resume"});
                    person.ask(talk, resume).await?;
                    person.until(talk, |seen| !held(seen)).await?;
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
            "something ran twice: {sent:?}"
        );
        let server = self.server.take().context("a server")?;
        server.signal("KILL").await?;
        let server = self.setup.start().await?;
        let mut person = Person::at(&server, &self.setup.folder("app")?).await?;
        let on_disk = person.open(&first.session_id).await?;
        ensure!(
            on_disk.entries == first.entries,
            "the disk has another story: {:?} {:?}",
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
fn random_failures_leave_both_windows_and_the_disk_with_one_transcript() -> Result<()>
{
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let mut runner = TestRunner::new(Config {
        cases: 32,
        max_shrink_iters: 20,
        failure_persistence: None,
        ..Config::default()
    });
    let told = runner.run(&prop::collection::vec(happening(), 4..14), |happenings| {
        let story = async {
            let mut world = World::new().await?;
            for what in &happenings {
                world
                    .happens(what)
                    .await
                    .with_context(|| format!("{what:?}"))?;
            }
            world.settle().await
        };
        let ended = runtime.block_on(async { tokio::time::timeout(HANG_GUARD * 4, story).await });
        match ended {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(TestCaseError::fail(format!("{error:?}"))),
            Err(_) => Err(TestCaseError::fail("it hangs")),
        }
    });
    told.map_err(|failed| anyhow::anyhow!("{failed:?}"))
}
