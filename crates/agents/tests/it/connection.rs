//! Tests of the ACP connection to an agent, with real processes: the scripted agent under a real keeper.

use std::ffi::OsString;
use std::sync::atomic::Ordering;
use std::time::Duration;

use agents::{
    AgentError, AgentEvent, Connection, Keepers, Launch, Queued, Response, Start, Ticket, connect,
};
use anyhow::{Context, Result, bail};
use conversation::{SessionChange, Update};
use serde_json::{Value, json};
use testkit::{HANG_GUARD, times};
use tokio::sync::mpsc;

struct Client {
    connection: Connection,
    sender: mpsc::Sender<Queued>,
    events: mpsc::Receiver<Queued>,
}

fn start(script: &str) -> Result<Start> {
    Ok(Start {
        name: "Scripted".to_owned(),
        launch: Launch {
            program: testkit::scripted_agent()?,
            args: vec![],
        },
        keepers: Keepers::new(testkit::liminal()?, "/no/data".as_ref()),
        env: vec![
            ("PATH".into(), std::env::var_os("PATH").unwrap_or_default()),
            ("SCRIPTED_AGENT".into(), script.into()),
        ],
        cwd: "/".into(),
        timeout: HANG_GUARD,
        capabilities: Default::default(),
        tap: Default::default(),
    })
}

async fn start_client(start: Start) -> Result<Client, AgentError> {
    let (sender, events) = mpsc::channel(64);
    let connection = connect(start, sender.clone()).await?;
    Ok(Client {
        connection,
        sender,
        events,
    })
}

async fn client(script: &str) -> Result<Client> {
    Ok(start_client(start(script)?).await?)
}

impl Client {
    async fn next(&mut self) -> Result<AgentEvent<Response>> {
        let next = tokio::time::timeout(HANG_GUARD, self.events.recv());
        next.await
            .context("no event arrived")?
            .context("the event channel is closed")
            .map(|queued| queued.event)
    }

    fn send(&self, method: &str, params: Value) -> Ticket {
        let ticket = self.connection.send(&self.sender, method, params);
        ticket.expect("the agent is awake")
    }

    /// Creates a session. Its first update is left for the caller to read.
    async fn session(&mut self) -> Result<String> {
        let ticket = self.send("session/new", json!({"cwd": "/", "mcpServers": []}));
        match self.next().await? {
            AgentEvent::Response(Response {
                ticket: answered,
                result,
            }) if answered == ticket => Ok(result?["sessionId"]
                .as_str()
                .context("no session id")?
                .to_owned()),
            _ => bail!("another event arrived before the response"),
        }
    }

    fn prompt(&self, session: &str, script: &str) -> Ticket {
        let prompt = json!([{"type": "text", "text": script}]);
        self.send(
            "session/prompt",
            json!({"sessionId": session, "prompt": prompt}),
        )
    }

    /// Summaries of all events up to the exit of the process.
    async fn events_until_exit(&mut self) -> Result<Vec<String>> {
        let mut seen = vec![];
        loop {
            let event = self.next().await?;
            let last = matches!(event, AgentEvent::Exited { .. });
            seen.push(summary(&event));
            if last {
                return Ok(seen);
            }
        }
    }

    /// Summaries of the next `count` events. Requests are answered with the outcome "cancelled".
    async fn next_events(&mut self, count: usize) -> Result<Vec<String>> {
        let mut seen = vec![];
        for _ in 0..count {
            let event = self.next().await?;
            seen.push(summary(&event));
            if let AgentEvent::Request { answer, .. } = event {
                answer.succeed(json!({"outcome": {"outcome": "cancelled"}}));
            }
        }
        Ok(seen)
    }
}

fn summary(event: &AgentEvent<Response>) -> String {
    match event {
        AgentEvent::Update {
            update: Update::Text { text, .. },
            ..
        } => format!("text {text}"),
        AgentEvent::Update {
            update: Update::Session(SessionChange::Commands(_)),
            ..
        } => "commands".to_owned(),
        AgentEvent::Update { update, .. } => format!("{update:?}"),
        AgentEvent::Response(Response {
            result: Ok(value), ..
        }) => format!("answered {}", value["stopReason"]),
        AgentEvent::Response(Response {
            result: Err(error), ..
        }) => format!("failed: {error}"),
        AgentEvent::Request { method, .. } => format!("request {method}"),
        AgentEvent::Visited { elicitation_id } => format!("visited {elicitation_id}"),
        AgentEvent::Asleep => "asleep".to_owned(),
        AgentEvent::Exited { reason } => format!("exited: {reason}"),
    }
}

/// Number of processes with this word in their environment.
fn processes_with(word: &str) -> usize {
    let environments = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let holds = |environment: Vec<u8>| {
        environment
            .windows(word.len())
            .any(|window| window == word.as_bytes())
    };
    environments
        .filter_map(|entry| std::fs::read(entry.path().join("environ")).ok())
        .filter(|e| holds(e.clone()))
        .count()
}

async fn until_none_with(word: &str) -> Result<()> {
    let wait = async {
        while processes_with(word) > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(HANG_GUARD, wait)
        .await
        .with_context(|| format!("a process with {word} in its environment is still running"))
}

#[tokio::test]
async fn handshake_reports_agent_info_and_capabilities() -> Result<()> {
    let client = client("").await?;
    let initialized = serde_json::to_value(client.connection.initialized())?;
    assert_eq!(initialized["agentInfo"]["title"], "Scripted Agent");
    assert_eq!(initialized["agentCapabilities"]["loadSession"], true);
    Ok(())
}

#[tokio::test]
async fn updates_and_responses_keep_wire_order_also_after_the_turn() -> Result<()> {
    let mut client = client("").await?;
    for _ in 0..20 {
        let session = client.session().await?;
        assert_eq!(
            client.next_events(1).await?,
            ["commands"],
            "an update after the response on the wire also arrives after it"
        );
        client.prompt(
            &session,
            "think a\nsay b\npermission t Run it\nsay c\nsay d\nlate e\nlate f",
        );
        let expected = [
            "text a",
            "text b",
            "request session/request_permission",
            "text {\"outcome\":\"cancelled\"}",
            "text c",
            "text d",
            "answered \"end_turn\"",
            "text e",
            "text f",
        ];
        assert_eq!(client.next_events(expected.len()).await?, expected);
    }
    Ok(())
}

#[tokio::test]
async fn flood_of_updates_reaches_a_slow_reader_complete_and_in_order() -> Result<()> {
    let mut client = client("").await?;
    let session = client.session().await?;
    client.next_events(1).await?;
    client.prompt(&session, "say begin\nflood 20000 20\nsay end");
    let seen = client.next_events(20_003).await?;
    assert_eq!(
        (
            seen[0].as_str(),
            seen[20_001].as_str(),
            seen[20_002].as_str()
        ),
        ("text begin", "text end", "answered \"end_turn\"")
    );
    assert!(
        seen[1..20_001]
            .iter()
            .all(|event| event == "text ffffffffffffffffffff")
    );
    Ok(())
}

#[tokio::test]
async fn cancelled_turn_ends_as_cancelled() -> Result<()> {
    let mut client = client("").await?;
    let session = client.session().await?;
    client.next_events(1).await?;
    client.prompt(&session, "say working\nhang");
    assert_eq!(client.next_events(1).await?, ["text working"]);
    client
        .connection
        .notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(client.next_events(1).await?, ["answered \"cancelled\""]);
    Ok(())
}

#[tokio::test]
async fn crash_ends_each_running_turn_once_after_its_last_output() -> Result<()> {
    let mut client = client("").await?;
    let (first, second) = (client.session().await?, {
        client.next_events(1).await?;
        client.session().await?
    });
    client.next_events(1).await?;
    client.prompt(&first, "hang");
    client.prompt(
        &second,
        "say almost\nstderr out of memory\nsleep 50\ncrash 9",
    );
    let lost = "failed: Connection to Scripted lost. (exit code 9: out of memory)";
    assert_eq!(
        client.events_until_exit().await?,
        [
            "text almost",
            lost,
            lost,
            "exited: exit code 9: out of memory"
        ]
    );
    assert!(matches!(
        client.connection.request("session/list", json!({})).await,
        Err(AgentError::Lost { .. })
    ));
    Ok(())
}

#[tokio::test]
async fn malformed_lines_are_counted_and_skipped() -> Result<()> {
    let mut client = client("").await?;
    let session = client.session().await?;
    client.next_events(1).await?;
    let unknown = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"sparkle"}}}"#;
    let mark = r#"{"jsonrpc":"2.0","method":"_liminal/dispatched","params":{"mark":99999}}"#;
    let notification = r#"{"jsonrpc":"2.0","method":"_auth/status_update","params":{}}"#;
    client.prompt(
        &session,
        &format!("garbage\nraw {unknown}\nraw {mark}\nraw {notification}\nsay alive"),
    );
    assert_eq!(
        client.next_events(2).await?,
        ["text alive", "answered \"end_turn\""]
    );
    let oddities = client.connection.oddities();
    assert_eq!(oddities.malformed_lines.load(Ordering::Relaxed), 6);
    assert_eq!(oddities.unknown_updates.load(Ordering::Relaxed), 1);
    assert_eq!(oddities.unknown_notifications.load(Ordering::Relaxed), 1);
    Ok(())
}

#[tokio::test]
async fn line_over_16_mib_ends_the_agent_and_3_mb_is_accepted() -> Result<()> {
    let mut client = client("").await?;
    let session = client.session().await?;
    client.next_events(1).await?;
    client.prompt(&session, "huge 3000000");
    let seen = client.next_events(2).await?;
    assert_eq!(
        (seen[0].len(), seen[1].as_str()),
        (3_000_005, "answered \"end_turn\"")
    );
    client.prompt(&session, "endless 40000000\nhang");
    let reason = "it sent a line of more than 16 MiB";
    assert_eq!(
        client.events_until_exit().await?,
        [
            format!("failed: Connection to Scripted lost. ({reason})"),
            format!("exited: {reason}")
        ]
    );
    Ok(())
}

#[tokio::test]
async fn unsupported_client_method_is_rejected_at_once() -> Result<()> {
    let mut client = client("").await?;
    let session = client.session().await?;
    client.next_events(1).await?;
    client.prompt(&session, "ask dance/now {}\nask session/dance {}");
    let refused = "text error -32601: Method not found";
    assert_eq!(
        client.next_events(3).await?,
        [refused, refused, "answered \"end_turn\""]
    );
    Ok(())
}

#[tokio::test]
async fn agent_errors_keep_their_code_and_sign_in_methods() -> Result<()> {
    let mut client = client("auth").await?;
    let error = client
        .session()
        .await
        .err()
        .and_then(|error| error.downcast::<AgentError>().ok());
    assert_eq!(
        error,
        Some(AgentError::SignInNeeded {
            name: "Scripted".into(),
            methods: vec!["Log in".into()]
        })
    );

    let mut client = self::client("refuse-new").await?;
    let error = client.session().await.err().map(|error| error.to_string());
    assert_eq!(
        error.as_deref(),
        Some("Scripted refused: no new sessions today")
    );
    Ok(())
}

#[tokio::test]
async fn tc_5_5a_missing_agent_fails_with_could_not_start() -> Result<()> {
    let mut missing = start("")?;
    missing.launch.program = "/no/such/agent".into();
    let error = start_client(missing)
        .await
        .err()
        .context("the start succeeded")?;
    assert!(matches!(error, AgentError::NotStarted { .. }), "{error:?}");
    assert!(
        error
            .to_string()
            .starts_with("Could not start Scripted. Check that it's installed."),
        "{error}"
    );
    Ok(())
}

#[tokio::test]
async fn tc_5_5b_failed_handshake_is_reported_and_leaves_no_process() -> Result<()> {
    for (script, expected) in [
        (
            "exit-start",
            "Could not connect to Scripted. (cannot find my configuration)",
        ),
        (
            "version:7",
            "Could not connect to Scripted. (unsupported ACP protocol version 7; this endpoint only supports ACP protocol version 1)",
        ),
        (
            "hang-start",
            "Could not connect to Scripted. (no answer within 0.5 s)",
        ),
    ] {
        let word = format!("CANARY_{}_{}", std::process::id(), script.replace(':', "_"));
        let mut start = start(script)?;
        start.env.push((OsString::from(&word), OsString::new()));
        if script == "hang-start" {
            start.timeout = Duration::from_millis(500);
        }
        let error = start_client(start)
            .await
            .err()
            .context("the start succeeded")?;
        assert_eq!(error.to_string(), expected);
        until_none_with(&word).await?;
    }
    Ok(())
}

#[tokio::test]
async fn tc_5_3a_closing_ends_the_agent_and_its_children() -> Result<()> {
    let word = format!("CANARY_{}_close", std::process::id());
    let mut start = start("")?;
    start.env.push((OsString::from(&word), OsString::new()));
    let mut client = start_client(start).await?;
    let session = client.session().await?;
    client.prompt(&session, "linger 1000\nsay done");
    client.next_events(3).await?;
    let started = async {
        while processes_with(&word) < 3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(HANG_GUARD, started)
        .await
        .context("keeper, agent and its child did not all start")?;
    client.connection.close().await;
    assert_eq!(processes_with(&word), 0);
    Ok(())
}

#[tokio::test]
async fn agent_that_ignores_the_request_to_exit_is_killed() -> Result<()> {
    let word = format!("CANARY_{}_deaf", std::process::id());
    let mut start = start("")?;
    start.env.push((OsString::from(&word), OsString::new()));
    let mut client = start_client(start).await?;
    let session = client.session().await?;
    client.prompt(&session, "deaf soon");
    client.next_events(2).await?;
    client
        .connection
        .notify("session/cancel", json!({"sessionId": session}));
    client.connection.close().await;
    assert_eq!(processes_with(&word), 0);
    Ok(())
}

#[tokio::test]
async fn agent_gets_only_the_environment_it_was_given() -> Result<()> {
    let word = format!("CANARY_{}_env", std::process::id());
    let mut start = start("")?;
    start.env.push((OsString::from(&word), OsString::new()));
    let _client = start_client(start).await?;
    for entry in std::fs::read_dir("/proc")?.flatten() {
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        let names: Vec<String> = environment
            .split(|byte| *byte == 0)
            .filter_map(|pair| {
                String::from_utf8_lossy(pair)
                    .split_once('=')
                    .map(|(name, _)| name.to_owned())
            })
            .collect();
        if names.contains(&word) {
            assert!(
                names
                    .iter()
                    .all(|name| ["PATH", "SCRIPTED_AGENT", &word].contains(&name.as_str())),
                "{names:?}"
            );
        }
    }
    Ok(())
}

#[tokio::test]
async fn kill_at_any_moment_of_a_stream_ends_the_turn_once_and_all_processes() -> Result<()> {
    let word = format!("CANARY_{}_kills", std::process::id());
    // Twice each delay in the short form.
    for round in 0..times(100, 500) as u64 {
        let mut start = start("")?;
        start.env.push((OsString::from(&word), OsString::new()));
        let mut client = start_client(start).await?;
        let session = client.session().await?;
        // The last line on stderr is not the reason for the exit and must not be reported as such.
        client.prompt(
            &session,
            "stderr all is well\nflood 3000 20\nlinger 1000\nflood 3000 20\nhang",
        );
        let agent = agent_below(&word).context("the agent's process")?;
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_micros(round % 50 * 400)).await;
            let _ = tokio::process::Command::new("kill")
                .args(["-9", &agent.to_string()])
                .status()
                .await;
        });
        let seen = client.events_until_exit().await?;
        let ends = seen
            .iter()
            .filter(|event| event.starts_with("failed"))
            .count();
        assert_eq!(ends, 1, "{:?}", &seen[seen.len().saturating_sub(3)..]);
        assert!(
            seen.last()
                .is_some_and(|last| last == "exited: ended by signal 9"),
            "{:?}",
            seen.last()
        );
    }
    until_none_with(&word).await
}

/// Process id of the agent itself, among the processes with the word in their environment.
fn agent_below(word: &str) -> Option<u32> {
    std::fs::read_dir("/proc")
        .ok()?
        .flatten()
        .find_map(|entry| {
            let environment = std::fs::read(entry.path().join("environ")).ok()?;
            let program = std::fs::read_link(entry.path().join("exe")).ok()?;
            let ours = environment
                .windows(word.len())
                .any(|window| window == word.as_bytes());
            let agent = program
                .file_name()
                .is_some_and(|name| name == "scripted-agent");
            (ours && agent)
                .then(|| entry.file_name().to_str()?.parse().ok())
                .flatten()
        })
}
