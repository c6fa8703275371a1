//! Tests of signing in to an agent over the browser socket: by the agent itself, on a page, in a terminal.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testkit::{Person, Server, ServerSetup};

const AGENT: &str = "claude-code";

/// Starts a server whose agent rejects new sessions until the user signs in.
async fn start_signed_out(setup: &ServerSetup) -> Result<(Server, Person)> {
    let server = setup.start().await?;
    let mut person = Person::at(&server, &setup.folder("app")?).await?;
    let refused = person.ask_to_create(AGENT).await?;
    ensure!(refused["code"] == "SIGN_IN_NEEDED", "{refused}");
    Ok((server, person))
}

async fn begin(person: &mut Person, method: &str) -> Result<()> {
    let begin = json!({"type": "agent:authenticate", "cliType": AGENT, "methodId": method, "requestId": method});
    person.socket.send(begin).await
}

async fn type_in(person: &mut Person, text: &str) -> Result<()> {
    let typed = json!({"type": "agent:sign-in-type", "cliType": AGENT, "text": text});
    person.socket.send(typed).await
}

/// Reads messages until the shown output contains `wanted`.
async fn until_shown(person: &mut Person, seen: &mut String, wanted: &str) -> Result<()> {
    while !seen.contains(wanted) {
        let message = person.socket.next().await;
        let message = message.with_context(|| format!("{wanted} in {seen:.300}"))?;
        if message["type"] == "agent:sign-in" {
            seen.push_str(message["shown"]["text"].as_str().unwrap_or_default());
        }
        ensure!(message["type"] != "error", "{message} {seen}");
    }
    Ok(())
}

/// Response to the sign-in request.
async fn outcome(person: &mut Person, method: &str) -> Result<Value> {
    loop {
        let message = person.socket.next().await?;
        if message["requestId"] == method {
            return Ok(message);
        }
    }
}

/// Number of running sign-in processes of this server.
fn logins(setup: &ServerSetup) -> usize {
    let memory = format!(
        "SCRIPTED_AGENT_MEMORY={}",
        setup.home().join("agent-memory").display()
    );
    let read = |pid: &str, file: &str| {
        let bytes = std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter(|entry| {
        let pid = entry.file_name().to_string_lossy().into_owned();
        let command = read(&pid, "cmdline");
        let words: Vec<&str> = command.split_terminator('\0').collect();
        // Excludes the keeper, whose command line contains `login` too.
        words.len() == 2 && words[1] == "login" && read(&pid, "environ").contains(&memory)
    })
    .count()
}

async fn until_logins(setup: &ServerSetup, count: usize) -> Result<()> {
    let waited = async {
        while logins(setup) != count {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(testkit::HANG_GUARD, waited).await?;
    Ok(())
}

#[tokio::test]
async fn agent_list_has_the_sign_in_methods_with_their_kinds() -> Result<()> {
    let setup = ServerSetup::scripted("auth three-ways more-ways")?;
    let (_server, mut person) = start_signed_out(&setup).await?;
    let list = person.socket.ask(json!({"type": "agent:list"})).await?;
    let agents = list["agents"].as_array().context("no list")?;
    let agent = agents.iter().find(|agent| agent["cliType"] == AGENT);
    let methods = agent.context("the agent is not listed")?["signIn"].clone();
    let command = format!("{} login", testkit::scripted_agent()?.display());
    assert_eq!(
        methods,
        json!([
            {"id": "login", "name": "Log in", "kind": "agent"},
            {"id": "key", "name": "Use a key", "description": "From your keyring.", "kind": "agent"},
            {"id": "terminal", "name": "In a terminal", "kind": "terminal"},
            {"id": "older", "name": "As before", "kind": "terminal", "command": command},
            {"id": "page", "name": "On a page", "kind": "agent"},
            {"id": "var", "name": "By variable", "kind": "env-var", "variables": ["SCRIPTED_KEY"]},
        ])
    );
    Ok(())
}

#[tokio::test]
async fn terminal_sign_in_runs_the_agents_command_with_typed_input() -> Result<()> {
    let setup = ServerSetup::scripted("auth three-ways")?;
    let (_server, mut person) = start_signed_out(&setup).await?;
    begin(&mut person, "terminal").await?;
    let mut seen = String::new();
    until_shown(&mut person, &mut seen, "Code: ").await?;
    // The command has its own arguments and environment and a real terminal.
    assert!(seen.contains("(terminal, terminal: true)"), "{seen}");
    type_in(&mut person, "wro").await?;
    type_in(&mut person, "ng\r").await?;
    until_shown(&mut person, &mut seen, "\"wrong\" is not it").await?;
    type_in(&mut person, "open sesame\r").await?;
    until_shown(&mut person, &mut seen, "welcome").await?;
    assert_eq!(
        outcome(&mut person, "terminal").await?["type"],
        "agent:authenticated"
    );
    // The agent got no `authenticate` request and was restarted, so that it sees the sign-in.
    assert_eq!(setup.count_asked("authenticate"), 0);
    assert_eq!(setup.count_asked("initialize"), 2);
    until_logins(&setup, 0).await?;
    person.create().await?;
    Ok(())
}

#[tokio::test]
async fn sign_in_command_in_the_older_form_runs_unchanged() -> Result<()> {
    let setup = ServerSetup::scripted("auth more-ways")?;
    let (_server, mut person) = start_signed_out(&setup).await?;
    begin(&mut person, "older").await?;
    let mut seen = String::new();
    until_shown(&mut person, &mut seen, "Code: ").await?;
    assert!(seen.contains("(older, terminal: true)"), "{seen}");
    type_in(&mut person, "open sesame\r").await?;
    assert_eq!(
        outcome(&mut person, "older").await?["type"],
        "agent:authenticated"
    );
    person.create().await?;
    Ok(())
}

#[tokio::test]
async fn sign_in_input_is_neither_logged_nor_stored() -> Result<()> {
    let setup = ServerSetup::scripted("auth three-ways")?.env("LIMINAL_LOG", "trace");
    let (server, mut person) = start_signed_out(&setup).await?;
    begin(&mut person, "terminal").await?;
    let mut seen = String::new();
    until_shown(&mut person, &mut seen, "Code: ").await?;
    type_in(&mut person, "hunter-2-secret\r").await?;
    until_shown(&mut person, &mut seen, "is not it").await?;
    type_in(&mut person, "open sesame\r").await?;
    outcome(&mut person, "terminal").await?;
    let ended = server.signal("TERM").await?;
    let log = ended.stderr;
    assert!(!log.contains("hunter-2-secret"), "{log}");
    let mut folders = vec![setup.data_dir()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)?.flatten() {
            match entry.file_type()?.is_dir() {
                true => folders.push(entry.path()),
                false => {
                    let bytes = std::fs::read(entry.path())?;
                    let text = String::from_utf8_lossy(&bytes);
                    assert!(!text.contains("hunter-2-secret"), "{:?}", entry.path());
                }
            }
        }
    }
    Ok(())
}

#[tokio::test]
async fn failed_sign_in_command_is_reported_and_can_be_retried() -> Result<()> {
    let setup = ServerSetup::scripted("auth three-ways")?;
    let (_server, mut person) = start_signed_out(&setup).await?;
    for _ in 0..2 {
        begin(&mut person, "terminal").await?;
        until_shown(&mut person, &mut String::new(), "Code: ").await?;
        type_in(&mut person, "exit 3\r").await?;
        let failed = outcome(&mut person, "terminal").await?;
        let message = failed["message"].as_str().context("no message")?;
        assert!(message.contains("exit code 3"), "{failed}");
    }
    assert_eq!(setup.count_asked("initialize"), 1);
    Ok(())
}

#[tokio::test]
async fn ctrl_c_stop_close_and_kill_end_the_sign_in_processes() -> Result<()> {
    let setup = ServerSetup::scripted("auth three-ways")?;
    let (server, mut person) = start_signed_out(&setup).await?;
    begin(&mut person, "terminal").await?;
    until_shown(&mut person, &mut String::new(), "Code: ").await?;
    type_in(&mut person, "\u{3}").await?;
    assert_eq!(outcome(&mut person, "terminal").await?["type"], "error");
    until_logins(&setup, 0).await?;

    begin(&mut person, "terminal").await?;
    until_shown(&mut person, &mut String::new(), "Code: ").await?;
    assert_eq!(logins(&setup), 1);
    let stop = json!({"type": "agent:sign-in-stop", "cliType": AGENT});
    person.socket.send(stop).await?;
    let stopped = outcome(&mut person, "terminal").await?;
    assert!(
        stopped["message"]
            .as_str()
            .unwrap_or_default()
            .contains("the sign-in was cancelled"),
        "{stopped}"
    );
    until_logins(&setup, 0).await?;

    // Closing the window ends the sign-in.
    begin(&mut person, "terminal").await?;
    until_shown(&mut person, &mut String::new(), "Code: ").await?;
    drop(person);
    until_logins(&setup, 0).await?;

    // Killing the server ends the sign-in.
    let mut person = Person::at(&server, &setup.folder("app")?).await?;
    begin(&mut person, "terminal").await?;
    until_shown(&mut person, &mut String::new(), "Code: ").await?;
    server.signal("KILL").await?;
    until_logins(&setup, 0).await
}

#[tokio::test]
async fn new_sign_in_replaces_the_old_one_and_only_its_window_sees_it() -> Result<()> {
    let setup = ServerSetup::scripted("auth three-ways")?;
    let (server, mut first) = start_signed_out(&setup).await?;
    begin(&mut first, "terminal").await?;
    until_shown(&mut first, &mut String::new(), "Code: ").await?;
    let mut second = Person::at(&server, &setup.folder("app")?).await?;
    begin(&mut second, "terminal").await?;
    assert_eq!(outcome(&mut first, "terminal").await?["type"], "error");
    until_shown(&mut second, &mut String::new(), "Code: ").await?;
    until_logins(&setup, 1).await?;
    type_in(&mut second, "open sesame\r").await?;
    outcome(&mut second, "terminal").await?;
    // The first window got no output of the second sign-in.
    let list = json!({"type": "agent:list", "requestId": "list"});
    first.socket.send(list).await?;
    loop {
        let message = first.socket.next().await?;
        assert_ne!(message["type"], "agent:sign-in", "{message}");
        if message["requestId"] == "list" {
            return Ok(());
        }
    }
}

#[tokio::test]
async fn sign_in_method_the_agent_does_not_offer_is_rejected() -> Result<()> {
    let setup = ServerSetup::scripted("auth three-ways")?;
    let (_server, mut person) = start_signed_out(&setup).await?;
    for method in ["sh -c id", "", "login --force"] {
        begin(&mut person, method).await?;
        let refused = outcome(&mut person, method).await?;
        let message = refused["message"].as_str().context("a message")?;
        assert!(
            message.contains("offers no such sign-in method"),
            "{refused}"
        );
    }
    let typed = json!({"type": "agent:sign-in-type", "cliType": AGENT, "text": "x"});
    let refused = person.socket.ask(typed).await?;
    assert_eq!(refused["type"], "error");
    assert_eq!(setup.count_asked("authenticate"), 0);
    Ok(())
}

#[tokio::test]
async fn sign_in_command_that_floods_output_still_accepts_input() -> Result<()> {
    let setup = ServerSetup::scripted("auth three-ways")?;
    let (_server, mut person) = start_signed_out(&setup).await?;
    begin(&mut person, "terminal").await?;
    let mut seen = String::new();
    until_shown(&mut person, &mut seen, "Code: ").await?;
    type_in(&mut person, "flood\r").await?;
    until_shown(&mut person, &mut seen, "line 1999").await?;
    type_in(&mut person, "open sesame\r").await?;
    assert_eq!(
        outcome(&mut person, "terminal").await?["type"],
        "agent:authenticated"
    );
    Ok(())
}

#[tokio::test]
async fn sign_in_command_that_does_not_read_input_can_be_stopped() -> Result<()> {
    let setup = ServerSetup::scripted("auth three-ways")?;
    let (_server, mut person) = start_signed_out(&setup).await?;
    begin(&mut person, "terminal").await?;
    let mut seen = String::new();
    until_shown(&mut person, &mut seen, "Code: ").await?;
    type_in(&mut person, "deaf\r").await?;
    until_shown(&mut person, &mut seen, "not listening").await?;
    // More input than the terminal buffers.
    for _ in 0..8 {
        type_in(&mut person, &"xyz\r".repeat(4000)).await?;
    }
    let stop = json!({"type": "agent:sign-in-stop", "cliType": AGENT});
    person.socket.send(stop).await?;
    let stopped = outcome(&mut person, "terminal").await?;
    assert_eq!(stopped["type"], "error", "{stopped}");
    until_logins(&setup, 0).await
}

#[tokio::test]
async fn agent_may_show_a_link_during_sign_in() -> Result<()> {
    let setup = ServerSetup::scripted("auth three-ways more-ways")?;
    let (_server, mut person) = start_signed_out(&setup).await?;
    for (action, ended) in [("decline", "error"), ("accept", "agent:authenticated")] {
        begin(&mut person, "page").await?;
        loop {
            let message = person.socket.next().await?;
            if message["shown"]["type"] == "link" {
                assert_eq!(message["shown"]["url"], "https://login.example.com/device");
                assert_eq!(message["shown"]["message"], "Enter ABC-123 there");
                break;
            }
        }
        let answer = json!({"type": "agent:sign-in-answer", "cliType": AGENT, "action": action});
        person.socket.send(answer).await?;
        assert_eq!(outcome(&mut person, "page").await?["type"], ended);
    }
    person.create().await?;
    Ok(())
}

#[tokio::test]
async fn reopened_session_reports_a_needed_sign_in_and_continues_after_it() -> Result<()> {
    let setup = ServerSetup::scripted("auth")?;
    let (server, mut person) = start_signed_out(&setup).await?;
    begin(&mut person, "login").await?;
    assert_eq!(
        outcome(&mut person, "login").await?["type"],
        "agent:authenticated"
    );
    let mut conversation = person.begin().await?;
    person.turn(&mut conversation, "say before").await?;
    // The agent loses its sign-in when it is restarted.
    server.signal("KILL").await?;
    let server = setup.start().await?;
    let mut person = Person::at(&server, &setup.folder("app")?).await?;
    let mut conversation = person.open(&conversation.session_id).await?;
    let refused = |seen: &testkit::Conversation| seen.info["problem"].is_object();
    person.until(&mut conversation, refused).await?;
    let problem = conversation.info["problem"].clone();
    assert_eq!(problem["code"], "SIGN_IN_NEEDED", "{problem}");
    assert_eq!(
        conversation.said().len(),
        3,
        "the failed attach must not add entries"
    );
    let attach = json!({"type": "session:attach"});
    // A retry without a sign-in fails again.
    conversation.info = Value::Null;
    person.ask(&mut conversation, attach.clone()).await?;
    person.until(&mut conversation, refused).await?;
    begin(&mut person, "login").await?;
    outcome(&mut person, "login").await?;
    person.ask(&mut conversation, attach).await?;
    person
        .until(&mut conversation, |seen| {
            seen.info["attachment"] == "attached"
        })
        .await?;
    assert!(conversation.info["problem"].is_null());
    person.turn(&mut conversation, "say after").await?;
    assert_eq!(conversation.said()[4], "assistant: after");
    Ok(())
}
