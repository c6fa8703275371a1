//! Flow 5 of the feature spec over the browser socket: agents start on demand, report their status, and leave no
//! process behind.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use testkit::{Conversation, Person, Scene, ServerSetup, Socket};

/// The next `count` status changes of Claude Code that a window receives.
async fn states(socket: &mut Socket, count: usize) -> Result<Vec<Value>> {
    let mut states = vec![];
    while states.len() < count {
        let status = socket.next_of("agent:status").await?;
        assert_eq!(status["cliType"], "claude-code");
        states.push(status["status"].clone());
    }
    Ok(states)
}

#[tokio::test]
async fn tc_5_1a_first_session_starts_the_agent_and_tc_5_2a_shows_connected() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let server = setup.start().await?;
    let mut window = server.connect().await?;
    let mut person = Person::at(&server, &setup.folder("app")?).await?;
    assert_eq!(setup.count_asked("initialize"), 0);
    person.create().await?;
    assert_eq!(states(&mut window, 2).await?, ["starting", "connected"]);
    let mut later = server.connect_unread().await?;
    let hello = later.next_of("hello").await?;
    assert_eq!(hello["agents"][0]["status"], "connected");
    assert_eq!(hello["agents"][0]["version"], "1.0.0");
    Ok(())
}

/// The parameters of the first request with this method that the agent received.
fn params_of(setup: &ServerSetup, method: &str) -> Result<Value> {
    let asked = setup.asked();
    let first = asked
        .iter()
        .find_map(|line| line.strip_prefix(method)?.strip_prefix(' '))
        .with_context(|| format!("no {method} in {asked:?}"))?;
    Ok(serde_json::from_str(first)?)
}

#[tokio::test]
async fn initialize_and_session_new_send_what_the_client_supports() -> Result<()> {
    let setup = ServerSetup::scripted("log-params")?;
    let server = setup.start().await?;
    let folder = setup.folder("app")?;
    let mut person = Person::at(&server, &folder).await?;
    person.create().await?;
    let initialize = params_of(&setup, "initialize")?;
    assert_eq!(initialize["protocolVersion"], 1);
    assert_eq!(initialize["clientInfo"]["name"], "liminal-builder");
    let version = initialize["clientInfo"]["version"].as_str().unwrap_or("");
    assert!(version.contains('.'), "{initialize}");
    let capabilities = &initialize["clientCapabilities"];
    let files = json!({"readTextFile": true, "writeTextFile": true});
    assert_eq!(capabilities["fs"], files);
    assert_eq!(capabilities["terminal"], true);
    let session = json!({"notices": {}, "configOptions": {"boolean": {}}});
    assert_eq!(capabilities["session"], session);
    let elicitation = json!({"form": {}, "url": {}});
    assert_eq!(capabilities["elicitation"], elicitation);
    let new = params_of(&setup, "session/new")?;
    assert_eq!(new, json!({"cwd": folder, "mcpServers": []}));
    Ok(())
}

#[tokio::test]
async fn tc_5_1b_second_session_uses_the_same_process() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let server = setup.start().await?;
    let mut person = Person::at(&server, &setup.folder("app")?).await?;
    for _ in 0..3 {
        let mut conversation = person.begin().await?;
        person.turn(&mut conversation, "say hi").await?;
    }
    assert_eq!(setup.count_asked("initialize"), 1);
    Ok(())
}

#[tokio::test]
async fn tc_5_2b_c_lost_agent_shows_disconnected_then_connected() -> Result<()> {
    let mut scene = Scene::new().await?;
    let mut window = scene.server.connect().await?;
    scene.turn("crash 1").await?;
    let seen = states(&mut window, 3).await?;
    assert_eq!(seen, ["disconnected", "reconnecting", "connected"]);
    Ok(())
}

#[tokio::test]
async fn tc_5_2d_user_can_restart_the_agent_at_any_time() -> Result<()> {
    let mut scene = Scene::new().await?;
    scene.send("say stuck\nhang").await?;
    scene.until_said("assistant: stuck").await?;
    let mut window = scene.server.connect().await?;
    let reconnect = json!({"type": "session:reconnect", "cliType": "claude-code"});
    scene.user.socket.send(reconnect).await?;
    let seen = states(&mut window, 3).await?;
    assert_eq!(seen, ["disconnected", "reconnecting", "connected"]);
    scene.until_turns(1).await?;
    assert_eq!(
        scene.session.said()[1..],
        ["assistant: stuck", "turn interrupted"]
    );
    scene.turn("say fine").await?;
    assert_eq!(scene.session.said()[4], "assistant: fine");
    let unknown = json!({"type": "session:reconnect", "cliType": "no-such-agent"});
    assert_eq!(
        scene.user.socket.ask(unknown).await?["code"],
        "AGENT_UNAVAILABLE"
    );
    Ok(())
}

/// Names of the processes whose environment contains this home directory.
fn processes_of(home: &std::path::Path) -> Vec<String> {
    let home = home.to_str().unwrap_or_default();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let ours = |entry: std::fs::DirEntry| {
        let environment = std::fs::read(entry.path().join("environ")).ok()?;
        let ours = String::from_utf8_lossy(&environment).contains(home);
        let name = std::fs::read_to_string(entry.path().join("comm")).ok()?;
        ours.then(|| name.trim().to_owned())
    };
    entries.filter_map(ours).collect()
}

#[tokio::test]
async fn tc_5_3a_stopped_server_leaves_no_process() -> Result<()> {
    for signal in ["TERM", "INT", "KILL"] {
        let setup = ServerSetup::scripted("")?;
        let setup = setup.env("CODEX_ACP_CMD", testkit::scripted_agent()?);
        let mut scene = Scene::of(setup).await?;
        scene.user.ask_to_create("codex").await?;
        scene.turn("linger 60").await?;
        scene.send("terminal t1 sleep 60").await?;
        scene.until_said("tool sleep 60").await?;
        scene
            .until(|seen| seen.entries[3]["content"][0]["terminalId"].is_string())
            .await?;
        assert!(processes_of(scene.setup.home()).len() > 4);
        scene.server.signal(signal).await?;
        let deadline = std::time::Instant::now() + testkit::HANG_GUARD;
        // After SIGKILL of the server, its keepers end all processes themselves.
        while !processes_of(scene.setup.home()).is_empty() {
            assert!(
                std::time::Instant::now() < deadline,
                "{:?}",
                processes_of(scene.setup.home())
            );
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }
    Ok(())
}

#[tokio::test]
async fn tc_5_5a_agent_that_is_not_installed_could_not_be_started() -> Result<()> {
    let setup = ServerSetup::new()?.env("CLAUDE_ACP_CMD", "/not/there");
    let server = setup.start().await?;
    let mut person = Person::at(&server, &setup.folder("app")?).await?;
    let refused = person.ask_to_create("claude-code").await?;
    assert_eq!(refused["code"], "AGENT_UNAVAILABLE");
    let message = refused["message"].as_str().context("no text")?;
    let wanted = "Could not start Claude Code. Check that it's installed.";
    assert!(message.contains(wanted), "{message}");
    assert!(message.contains("/not/there"), "{message}");
    assert!(person.list(false).await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn tc_5_5b_agent_with_a_failed_handshake_could_not_connect() -> Result<()> {
    for script in ["exit-start", "hang-start", "version:7"] {
        let setup = ServerSetup::scripted(script)?.env("ACP_START_TIMEOUT_MS", "700");
        let server = setup.start().await?;
        let mut window = server.connect().await?;
        let mut person = Person::at(&server, &setup.folder("app")?).await?;
        let refused = person.ask_to_create("claude-code").await?;
        let message = refused["message"].as_str().context("no text")?;
        assert!(
            message.contains("Could not connect to Claude Code"),
            "{message}"
        );
        assert_eq!(states(&mut window, 2).await?, ["starting", "disconnected"]);
    }
    Ok(())
}

#[tokio::test]
async fn tc_5_6b_agent_and_turn_survive_a_window_reload() -> Result<()> {
    let mut scene = Scene::new().await?;
    scene.send("say before\nsleep 300\nsay  after").await?;
    scene.user.socket.next_of("session:update").await?;
    drop(scene.user);
    let mut person = Person::at(&scene.server, &scene.setup.folder("app")?).await?;
    let mut again: Conversation = person.open(&scene.session.session_id).await?;
    person.until_turns(&mut again, 1).await?;
    assert_eq!(again.said()[1..], ["assistant: before after", "turn ended"]);
    assert_eq!(scene.setup.count_asked("initialize"), 1);
    assert_eq!(scene.setup.count_asked("session/resume"), 0);
    Ok(())
}

#[tokio::test]
async fn user_signs_in_with_a_method_of_the_agent() -> Result<()> {
    let setup = ServerSetup::scripted("auth")?;
    let server = setup.start().await?;
    let mut person = Person::at(&server, &setup.folder("app")?).await?;
    let refused = person.ask_to_create("claude-code").await?;
    assert_eq!(refused["code"], "SIGN_IN_NEEDED");
    let list = person.socket.ask(json!({"type": "agent:list"})).await?;
    let method = list["agents"][0]["signIn"][0]["id"].clone();
    assert_eq!(method, "login");
    let sign_in =
        json!({"type": "agent:authenticate", "cliType": "claude-code", "methodId": method});
    assert_eq!(
        person.socket.ask(sign_in).await?["type"],
        "agent:authenticated"
    );
    let mut conversation = person.begin().await?;
    person.turn(&mut conversation, "say welcome").await?;
    assert_eq!(conversation.said()[1], "assistant: welcome");
    Ok(())
}

#[tokio::test]
async fn last_used_agent_is_started_when_a_window_connects() -> Result<()> {
    let setup = ServerSetup::scripted("")?.env("LIMINAL_WARM_START", "true");
    let server = setup.start().await?;
    let mut person = Person::at(&server, &setup.folder("app")?).await?;
    assert_eq!(setup.count_asked("initialize"), 0, "no agent was used yet");
    let mut conversation = person.begin().await?;
    person.turn(&mut conversation, "say hi").await?;
    server.signal("KILL").await?;
    let server = setup.start().await?;
    assert_eq!(
        setup.count_asked("initialize"),
        1,
        "no window is connected yet"
    );
    let mut window = server.connect().await?;
    assert_eq!(states(&mut window, 2).await?, ["starting", "connected"]);
    server.connect().await?;
    let mut person = Person::at(&server, &setup.folder("app")?).await?;
    person.create().await?;
    assert_eq!(
        setup.count_asked("initialize"),
        2,
        "the second window starts no second process"
    );
    Ok(())
}

#[tokio::test]
async fn idle_agent_sleeps_and_its_sessions_continue_unchanged() -> Result<()> {
    let setup = ServerSetup::scripted("")?.env("ACP_IDLE_TIMEOUT_MS", "300");
    let mut scene = Scene::of(setup).await?;
    for _ in 0..3 {
        until_asleep(&scene.server).await?;
        let started = scene.setup.count_asked("initialize");
        // Longer than the idle timeout: an agent with a running turn is not idle.
        scene.turn("say one\nsleep 700\nsay two").await?;
        assert_eq!(scene.setup.count_asked("initialize"), started + 1);
    }
    let lines = scene.session.said();
    let ended = lines.iter().filter(|line| *line == "turn ended").count();
    assert_eq!(ended, 3, "{lines:?}");
    assert_eq!(lines.len(), 9, "three entries per turn: {lines:?}");
    Ok(())
}

#[tokio::test]
async fn message_sent_while_the_agent_falls_asleep_is_answered() -> Result<()> {
    let setup = ServerSetup::scripted("")?.env("ACP_IDLE_TIMEOUT_MS", "20");
    let mut scene = Scene::of(setup).await?;
    for turn in 0..40 {
        // Close to the idle timeout of 20 ms.
        let pause = std::time::Duration::from_micros(19_000 + 50 * turn);
        tokio::time::sleep(pause).await;
        scene.turn("say here").await?;
    }
    for turn in scene.session.said().chunks(3) {
        assert_eq!(turn, ["user: say here", "assistant: here", "turn ended"]);
    }
    assert!(
        scene.setup.count_asked("initialize") > 1,
        "the agent was never stopped"
    );
    Ok(())
}

#[tokio::test]
async fn config_choices_are_restored_when_the_agent_restarts() -> Result<()> {
    let setup = ServerSetup::scripted("")?.env("ACP_IDLE_TIMEOUT_MS", "300");
    let mut scene = Scene::of(setup).await?;
    scene.turn("say first").await?;
    until_asleep(&scene.server).await?;
    // The first choice starts the agent again.
    let mode = json!({"type": "session:set-mode", "modeId": "plan"});
    let option = json!({"type": "session:set-option", "optionId": "model", "value": "deep"});
    for choice in [mode, option] {
        let done = scene.ask(choice).await?;
        assert_eq!(done["type"], "session:done", "{done}");
    }
    let config_requests = |setup: &ServerSetup| {
        let methods = ["session/set_mode", "session/set_config_option"];
        methods.map(|method| setup.count_asked(method))
    };
    assert_eq!(config_requests(&scene.setup), [1, 1]);
    until_asleep(&scene.server).await?;
    scene.turn("model").await?;
    scene.server.signal("KILL").await?;
    scene.server = scene.setup.start().await?;
    let mut person = scene.another_window().await?;
    let mut again = person.open(&scene.session.session_id).await?;
    person.turn(&mut again, "crash 1").await?;
    person.turn(&mut again, "model").await?;
    assert_eq!(again.info["modes"]["current"], "plan");
    assert_eq!(again.info["options"][0]["currentValue"], "deep");
    assert_eq!(
        config_requests(&scene.setup),
        [4, 4],
        "sent again after the sleep, the restart and the crash"
    );
    let lines = again.said();
    assert_eq!(
        lines
            .iter()
            .filter(|line| *line == "assistant: deep")
            .count(),
        2,
        "{lines:?}"
    );
    Ok(())
}

async fn until_asleep(server: &testkit::Server) -> Result<()> {
    loop {
        let mut window = server.connect_unread().await?;
        let hello = window.next_of("hello").await?;
        if hello["agents"][0]["status"] == "idle" {
            return Ok(());
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn twelve_sessions_over_two_agents_stream_at_once_and_stay_apart() -> Result<()> {
    let setup = ServerSetup::scripted("")?.env("CODEX_ACP_CMD", testkit::scripted_agent()?);
    let server = setup.start().await?;
    let mut user = Person::at(&server, &setup.folder("app")?).await?;
    let mut sessions = vec![];
    for number in 0..12 {
        let agent = ["claude-code", "codex"][number % 2];
        let created = user.ask_to_create(agent).await?;
        let id = created["sessionId"].as_str().context("no id")?;
        sessions.push(user.open(id).await?);
    }
    for (number, session) in sessions.iter().enumerate() {
        let chunks: Vec<_> = (0..20).map(|n| format!("say {number}.{n},")).collect();
        user.send(session, &chunks.join("\n")).await?;
    }
    // Each window reads its own session only, so the events of all sessions are there in whatever order.
    for (number, session) in sessions.iter().enumerate() {
        let mut window = Person::at(&server, &setup.folder("app")?).await?;
        let mut seen = window.open(&session.session_id).await?;
        window.until_turns(&mut seen, 1).await?;
        let text: String = (0..20).map(|n| format!("{number}.{n},")).collect();
        assert_eq!(
            seen.said()[1..],
            [format!("assistant: {text}"), "turn ended".to_owned()]
        );
    }
    assert_eq!(setup.count_asked("initialize"), 2);
    Ok(())
}
