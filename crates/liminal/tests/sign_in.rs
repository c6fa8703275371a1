//! Signing in with an agent over the real socket: by the agent itself, on a page, in a terminal.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testkit::{Person, Server, ServerSetup};

const AGENT: &str = "claude-code";

fn setup(script: &str) -> Result<ServerSetup> {
    ServerSetup::new(env!("CARGO_BIN_EXE_liminal"))?.with_scripted_agent(script)
}

/// In front of an agent that refuses a new session.
async fn locked_out(setup: &ServerSetup) -> Result<(Server, Person)> {
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

/// Reads on until all that was written holds this.
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

/// The answer to the attempt.
async fn outcome(person: &mut Person, method: &str) -> Result<Value> {
    loop {
        let message = person.socket.next().await?;
        if message["requestId"] == method {
            return Ok(message);
        }
    }
}

/// Running processes that sign somebody in for this server.
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
        // Not the keeper, which names it too.
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
async fn an_agent_tells_its_ways_with_their_kinds() -> Result<()> {
    let setup = setup("auth three-ways more-ways")?;
    let (_server, mut person) = locked_out(&setup).await?;
    let list = person.socket.ask(json!({"type": "agent:list"})).await?;
    let agents = list["agents"].as_array().context("a list")?;
    let agent = agents.iter().find(|agent| agent["cliType"] == AGENT);
    let ways = agent.context("the agent")?["signIn"].clone();
    let command = format!("{} login", testkit::scripted_agent()?.display());
    assert_eq!(
        ways,
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
async fn a_way_in_a_terminal_runs_the_agents_own_command_and_takes_what_is_typed() -> Result<()> {
    let setup = setup("auth three-ways")?;
    let (_server, mut person) = locked_out(&setup).await?;
    begin(&mut person, "terminal").await?;
    let mut seen = String::new();
    until_shown(&mut person, &mut seen, "Code: ").await?;
    // Its own arguments and environment, on a real terminal.
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
    // The agent was never asked to do it itself, and was started anew to see it.
    assert_eq!(setup.count_asked("authenticate"), 0);
    assert_eq!(setup.count_asked("initialize"), 2);
    until_logins(&setup, 0).await?;
    person.create().await?;
    Ok(())
}

#[tokio::test]
async fn a_command_in_the_older_form_runs_as_the_agent_wrote_it() -> Result<()> {
    let setup = setup("auth more-ways")?;
    let (_server, mut person) = locked_out(&setup).await?;
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
async fn nothing_that_is_typed_or_shown_is_written_down() -> Result<()> {
    let setup = setup("auth three-ways")?.env("LIMINAL_LOG", "trace");
    let (server, mut person) = locked_out(&setup).await?;
    begin(&mut person, "terminal").await?;
    let mut seen = String::new();
    until_shown(&mut person, &mut seen, "Code: ").await?;
    type_in(&mut person, "hunter-2-secret\r").await?;
    until_shown(&mut person, &mut seen, "is not it").await?;
    type_in(&mut person, "open sesame\r").await?;
    outcome(&mut person, "terminal").await?;
    let ended = server.signal("TERM").await?;
    let said = ended.stderr;
    assert!(!said.contains("hunter-2-secret"), "{said}");
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
async fn a_command_that_fails_is_said_to_and_may_be_tried_again() -> Result<()> {
    let setup = setup("auth three-ways")?;
    let (_server, mut person) = locked_out(&setup).await?;
    for _ in 0..2 {
        begin(&mut person, "terminal").await?;
        until_shown(&mut person, &mut String::new(), "Code: ").await?;
        type_in(&mut person, "exit 3\r").await?;
        let failed = outcome(&mut person, "terminal").await?;
        let message = failed["message"].as_str().context("a message")?;
        assert!(message.contains("exit code 3"), "{failed}");
    }
    assert_eq!(setup.count_asked("initialize"), 1);
    Ok(())
}

#[tokio::test]
async fn ctrl_c_and_closing_end_it_and_all_it_started() -> Result<()> {
    let setup = setup("auth three-ways")?;
    let (server, mut person) = locked_out(&setup).await?;
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
    let given_up = outcome(&mut person, "terminal").await?;
    assert!(
        given_up["message"]
            .as_str()
            .unwrap_or_default()
            .contains("the sign-in was cancelled"),
        "{given_up}"
    );
    until_logins(&setup, 0).await?;

    // A window that is closed.
    begin(&mut person, "terminal").await?;
    until_shown(&mut person, &mut String::new(), "Code: ").await?;
    drop(person);
    until_logins(&setup, 0).await?;

    // A server that is killed.
    let mut person = Person::at(&server, &setup.folder("app")?).await?;
    begin(&mut person, "terminal").await?;
    until_shown(&mut person, &mut String::new(), "Code: ").await?;
    server.signal("KILL").await?;
    until_logins(&setup, 0).await
}

#[tokio::test]
async fn there_is_one_attempt_at_a_time_and_only_its_window_sees_it() -> Result<()> {
    let setup = setup("auth three-ways")?;
    let (server, mut first) = locked_out(&setup).await?;
    begin(&mut first, "terminal").await?;
    until_shown(&mut first, &mut String::new(), "Code: ").await?;
    let mut second = Person::at(&server, &setup.folder("app")?).await?;
    begin(&mut second, "terminal").await?;
    assert_eq!(outcome(&mut first, "terminal").await?["type"], "error");
    until_shown(&mut second, &mut String::new(), "Code: ").await?;
    until_logins(&setup, 1).await?;
    type_in(&mut second, "open sesame\r").await?;
    outcome(&mut second, "terminal").await?;
    // Whatever was shown meanwhile was not for the first.
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
async fn only_what_the_agent_offers_runs() -> Result<()> {
    let setup = setup("auth three-ways")?;
    let (_server, mut person) = locked_out(&setup).await?;
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
async fn a_command_that_writes_without_end_holds_nobody_up() -> Result<()> {
    let setup = setup("auth three-ways")?;
    let (_server, mut person) = locked_out(&setup).await?;
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
async fn a_command_that_does_not_read_can_be_ended_whatever_is_typed() -> Result<()> {
    let setup = setup("auth three-ways")?;
    let (_server, mut person) = locked_out(&setup).await?;
    begin(&mut person, "terminal").await?;
    let mut seen = String::new();
    until_shown(&mut person, &mut seen, "Code: ").await?;
    type_in(&mut person, "deaf\r").await?;
    until_shown(&mut person, &mut seen, "not listening").await?;
    // More than the terminal takes.
    for _ in 0..8 {
        type_in(&mut person, &"xyz\r".repeat(4000)).await?;
    }
    let stop = json!({"type": "agent:sign-in-stop", "cliType": AGENT});
    person.socket.send(stop).await?;
    let given_up = outcome(&mut person, "terminal").await?;
    assert_eq!(given_up["type"], "error", "{given_up}");
    until_logins(&setup, 0).await
}

#[tokio::test]
async fn an_agent_may_send_the_person_to_a_page_while_it_signs_them_in() -> Result<()> {
    let setup = setup("auth three-ways more-ways")?;
    let (_server, mut person) = locked_out(&setup).await?;
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
async fn a_session_that_is_opened_again_says_that_its_agent_wants_a_sign_in_and_goes_on_after_it()
-> Result<()> {
    let setup = setup("auth")?;
    let (server, mut person) = locked_out(&setup).await?;
    begin(&mut person, "login").await?;
    assert_eq!(
        outcome(&mut person, "login").await?["type"],
        "agent:authenticated"
    );
    let mut talk = person.begin().await?;
    person.turn(&mut talk, "say before").await?;
    // It has forgotten by the next day.
    server.signal("KILL").await?;
    let server = setup.start().await?;
    let mut person = Person::at(&server, &setup.folder("app")?).await?;
    let mut talk = person.open(&talk.session_id).await?;
    let refused = |seen: &testkit::Conversation| seen.info["problem"].is_object();
    person.until(&mut talk, refused).await?;
    let problem = talk.info["problem"].clone();
    assert_eq!(problem["code"], "SIGN_IN_NEEDED", "{problem}");
    assert_eq!(talk.said().len(), 3, "nothing was added to it");
    let attach = json!({"type": "session:attach"});
    // Without it, no better.
    talk.info = Value::Null;
    person.ask(&mut talk, attach.clone()).await?;
    person.until(&mut talk, refused).await?;
    begin(&mut person, "login").await?;
    outcome(&mut person, "login").await?;
    person.ask(&mut talk, attach).await?;
    person
        .until(&mut talk, |seen| seen.info["attachment"] == "attached")
        .await?;
    assert!(talk.info["problem"].is_null());
    person.turn(&mut talk, "say after").await?;
    assert_eq!(talk.said()[4], "assistant: after");
    Ok(())
}
