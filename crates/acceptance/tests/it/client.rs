//! Tests of the commands that use a running server: `send`, `sessions`, `show`, `export`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::{Output, Stdio};

use anyhow::{Context, Result};
use serde_json::Value;
use testkit::ServerSetup;
use tokio::io::AsyncWriteExt;

/// A setup of servers without a gateway.
fn setup_without_gateway() -> Result<ServerSetup> {
    let setup = ServerSetup::scripted("")?;
    // Also applies to servers that a command starts itself.
    Ok(setup.env("LIMINAL_GATEWAY_PORT", "off"))
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Key of the only session, read from `sessions --json`.
async fn key(setup: &ServerSetup) -> Result<String> {
    let list = setup.run(&["sessions", "--json"]).await?;
    let list: Value = serde_json::from_slice(&list.stdout)?;
    Ok(list[0]["key"].as_str().context("no session")?.to_owned())
}

#[tokio::test]
async fn send_prints_only_the_answer_on_stdout() -> Result<()> {
    let setup = setup_without_gateway()?;
    let _server = setup.start().await?;
    let folder = setup.folder("app")?;
    let script = "say Hello \ntool t1 read Look\ntool-done t1 found\nsay there.";
    let sent = setup
        .run(&["send", "--agent", "claude-code", "--cwd", &folder, script])
        .await?;
    assert_eq!(out(&sent), "Hello there.\n", "{}", errors(&sent));
    assert!(sent.status.success());
    assert!(errors(&sent).contains("Look complete"), "{}", errors(&sent));
    let key = key(&setup).await?;
    let prefix = key[..8].to_uppercase();
    let again = setup.run(&["send", &prefix, "say again"]).await?;
    assert_eq!(out(&again), "again\n", "{}", errors(&again));
    let listed = out(&setup.run(&["sessions"]).await?);
    assert!(
        listed.starts_with(&key[..8]) && listed.contains("claude-code"),
        "{listed}"
    );
    let shown = out(&setup.run(&["show", &key]).await?);
    assert!(
        shown.contains("You:\nsay again\n\nAgent:\nagain\n"),
        "{shown}"
    );
    Ok(())
}

#[tokio::test]
async fn send_without_a_server_starts_one_that_ends_with_the_command() -> Result<()> {
    let setup = setup_without_gateway()?;
    let sent = setup
        .run(&["send", "--agent", "assistant", "/help"])
        .await?;
    assert!(sent.status.success(), "{}", errors(&sent));
    for expected in ["model", "I request permission", "automatically"] {
        assert!(out(&sent).contains(expected), "{}", out(&sent));
    }
    let key = key(&setup).await?;
    let doctor = out(&setup.run(&["doctor", "--port", "0"]).await?);
    assert!(!doctor.contains("in use by"), "{doctor}");
    for (format, begins) in [
        ("md", "# /help\n"),
        ("json", "{"),
        ("html", "<!doctype html>"),
    ] {
        let exported = setup.run(&["export", &key, "--format", format]).await?;
        assert!(out(&exported).starts_with(begins), "{}", out(&exported));
        assert!(out(&exported).contains("/help"));
    }
    Ok(())
}

#[tokio::test]
async fn exit_code_of_send_reflects_how_the_turn_ended() -> Result<()> {
    let setup = setup_without_gateway()?;
    let _server = setup.start().await?;
    let folder = setup.folder("app")?;
    let to = ["send", "--agent", "claude-code", "--cwd", &folder];
    for (script, code) in [
        ("say fine", 0),
        ("say half\ncrash 1", 1),
        ("stop refusal", 3),
        ("stop max_tokens", 4),
    ] {
        let ended = setup.run(&[&to[..], &[script]].concat()).await?;
        assert_eq!(
            ended.status.code(),
            Some(code),
            "{script}: {}",
            errors(&ended)
        );
    }
    for wrong in [
        &["send", "no-such-key", "hi"][..],
        &["show", ""],
        &["send", "--agent", "no-such-agent", "hi"],
    ] {
        let refused = setup.run(wrong).await?;
        assert_eq!(refused.status.code(), Some(1), "{wrong:?}");
        assert!(errors(&refused).contains("error: "), "{}", errors(&refused));
    }
    Ok(())
}

#[tokio::test]
async fn send_reads_a_message_from_stdin_and_ctrl_c_cancels_the_turn() -> Result<()> {
    let setup = setup_without_gateway()?;
    let folder = setup.folder("app")?;
    let mut command = setup.command();
    command
        .args(["send", "--agent", "claude-code", "--cwd", &folder])
        .stdin(Stdio::piped())
        .process_group(0);
    let mut running = command.spawn()?;
    let mut stdin = running.stdin.take().context("no pipe")?;
    stdin.write_all(b"say begun\nhang\n").await?;
    drop(stdin);
    let mut stdout = running.stdout.take().context("no pipe")?;
    let mut begun = [0; 5];
    tokio::io::AsyncReadExt::read_exact(&mut stdout, &mut begun).await?;
    assert_eq!(&begun, b"begun");
    let pid = running.id().context("the process has exited")?.to_string();
    // As a terminal does: to the whole process group, which includes the server that this command started.
    let group = format!("-{pid}");
    let sent = std::process::Command::new("kill")
        .args(["-INT", "--", &group])
        .status()?;
    assert!(sent.success());
    let ended = tokio::time::timeout(std::time::Duration::from_secs(60), running.wait()).await??;
    assert_eq!(ended.code(), Some(130));
    // The agent got the cancel, and no turn is running.
    assert_eq!(setup.count_asked("session/cancel"), 1);
    let listed = setup.run(&["sessions", "--json"]).await?;
    let listed: Value = serde_json::from_slice(&listed.stdout)?;
    assert_eq!(listed[0]["state"], "idle");
    let key = key(&setup).await?;
    let shown = setup.run(&["show", &key, "--json"]).await?;
    let messages: Value = serde_json::from_slice(&shown.stdout)?;
    assert_eq!(messages[1]["content"], "begun");
    Ok(())
}

#[tokio::test]
async fn completions_and_man_pages_cover_all_commands() -> Result<()> {
    let setup = setup_without_gateway()?;
    for shell in ["bash", "zsh", "fish"] {
        assert!(out(&setup.run(&["completions", shell]).await?).contains("sessions"));
    }
    // Every page that another page names exists.
    let mut seen = vec![];
    let mut pages = vec![out(&setup.run(&["man"]).await?)];
    while let Some(page) = pages.pop() {
        assert!(page.contains(".SH SYNOPSIS"), "{page}");
        for line in page.lines().filter(|line| line.ends_with("(1)")) {
            let name = line.replace("\\-", "-").replace("(1)", "");
            let command = name.trim().trim_start_matches("liminal-").to_owned();
            pages.push(out(&setup.run(&["man", &command]).await?));
            seen.push(command);
        }
    }
    for command in ["send", "gateway-schema"] {
        assert!(seen.iter().any(|seen| seen == command), "{seen:?}");
    }
    let unknown = setup.run(&["man", "keeper"]).await?;
    assert!(
        errors(&unknown).contains("no command"),
        "{}",
        errors(&unknown)
    );
    Ok(())
}

#[tokio::test]
async fn invalid_message_is_rejected_before_a_server_starts() -> Result<()> {
    let setup = setup_without_gateway()?;
    let long = "x".repeat(32_001);
    for (words, why) in [
        (
            &["send", "--agent", "assistant", " \n"][..],
            "nothing in that message",
        ),
        (
            &["send", "--agent", "assistant", &long],
            "32,000 characters",
        ),
        (&["send", "--agent", "assistant"], "nothing in that message"),
        (
            &["send", "--agent", "assistant", "two", "words"],
            "in quotes",
        ),
        (&["send"], "to which session"),
    ] {
        let refused = setup.run(words).await?;
        assert_eq!(refused.status.code(), Some(1), "{why}");
        assert!(errors(&refused).contains(why), "{}", errors(&refused));
    }
    for (sent, why) in [
        (b"\xff\xfe".to_vec(), "not UTF-8"),
        // The pipe stays open after this message.
        (b"x".repeat(200_000), "32,000 characters"),
    ] {
        let mut command = setup.command();
        command.args(["send", "--agent", "assistant"]);
        let mut running = command.stdin(Stdio::piped()).spawn()?;
        let mut stdin = running.stdin.take().context("no pipe")?;
        // The command may exit before all input is written.
        let _ = stdin.write_all(&sent).await;
        let open = (sent.len() > 100).then_some(stdin);
        let ended = tokio::time::timeout(testkit::HANG_GUARD, running.wait_with_output()).await??;
        assert!(errors(&ended).contains(why), "{}", errors(&ended));
        drop(open);
    }
    assert!(!setup.data_dir().exists());
    Ok(())
}

#[tokio::test]
async fn working_directory_that_is_not_utf8_is_rejected() -> Result<()> {
    let setup = setup_without_gateway()?;
    let folder = setup.home().join(OsStr::from_bytes(b"\xff"));
    std::fs::create_dir(&folder)?;
    let mut command = setup.command();
    command.args(["send", "say hi", "--cwd"]).arg(&folder);
    let refused = tokio::time::timeout(testkit::HANG_GUARD, command.output()).await??;
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        errors(&refused).contains("not UTF-8"),
        "{}",
        errors(&refused)
    );
    Ok(())
}

#[tokio::test]
async fn control_characters_in_a_title_are_replaced_in_the_list() -> Result<()> {
    let setup = setup_without_gateway()?;
    let _server = setup.start().await?;
    let folder = setup.folder("app")?;
    let script = "say \u{1b}[2J\u{202e}x";
    let sent = setup
        .run(&["send", "--agent", "claude-code", "--cwd", &folder, script])
        .await?;
    // The answer is printed to a pipe unchanged.
    assert_eq!(out(&sent), "\u{1b}[2J\u{202e}x\n");
    let listed = out(&setup.run(&["sessions"]).await?);
    assert!(listed.contains("\u{fffd}[2J\u{fffd}x"), "{listed:?}");
    Ok(())
}

#[tokio::test]
async fn server_started_by_send_ends_when_send_is_killed() -> Result<()> {
    let setup = setup_without_gateway()?;
    let folder = setup.folder("app")?;
    let mut command = setup.command();
    command.args(["send", "--agent", "claude-code", "--cwd", &folder]);
    let mut running = command.arg("say begun\nhang").spawn()?;
    let mut stdout = running.stdout.take().context("no pipe")?;
    let mut begun = [0; 5];
    tokio::io::AsyncReadExt::read_exact(&mut stdout, &mut begun).await?;
    let lock = std::fs::read_to_string(setup.data_dir().join("lock"))?;
    let server = serde_json::from_str::<Value>(&lock)?["pid"].to_string();
    let lives = || {
        let asked = std::process::Command::new("kill")
            .args(["-0", &server])
            .output();
        asked.is_ok_and(|asked| asked.status.success())
    };
    assert!(lives());
    running.kill().await?;
    let ended = async {
        while lives() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(testkit::HANG_GUARD, ended).await?;
    // The session is kept, and its turn has failed.
    let listed = setup.run(&["sessions", "--json"]).await?;
    let listed: Value = serde_json::from_slice(&listed.stdout)?;
    assert_eq!(listed[0]["state"], "failed", "{listed}");
    Ok(())
}

#[tokio::test]
async fn concurrent_sends_share_one_server_until_the_last_ends() -> Result<()> {
    let setup = setup_without_gateway()?;
    let folder = setup.folder("app")?;
    let go_on = |number: usize| setup.home().join(format!("go-on-{number}"));
    let send = |message: &str| {
        let mut command = setup.command();
        command.args(["send", "--agent", "claude-code", "--cwd", &folder, message]);
        command.spawn()
    };
    // All commands share the server, whichever of them starts it.
    let long = |number| format!("say long\nuntil {}\nsay answer", go_on(number).display());
    let running = (0..3).map(|number| anyhow::Ok((number, send(&long(number))?)));
    let mut running: Vec<_> = running.collect::<Result<_>>()?;
    for (_, child) in &mut running {
        let stdout = child.stdout.as_mut().context("no pipe")?;
        let mut begun = [0; 4];
        tokio::io::AsyncReadExt::read_exact(stdout, &mut begun).await?;
    }
    let short = send("say short")?.wait_with_output().await?;
    assert_eq!(out(&short), "short\n", "{}", errors(&short));
    // The command that started the server ends first; the others are not affected.
    let lock = std::fs::read_to_string(setup.data_dir().join("lock"))?;
    let server = serde_json::from_str::<Value>(&lock)?["pid"].to_string();
    let parent = std::process::Command::new("ps")
        .args(["-o", "ppid=", "-p", &server])
        .output()?;
    let parent = out(&parent);
    let owns = |child: &tokio::process::Child| {
        child.id().is_some_and(|id| id.to_string() == parent.trim())
    };
    running.sort_by_key(|(_, child)| !owns(child));
    assert!(owns(&running[0].1), "{parent}");
    for (number, child) in running {
        std::fs::write(go_on(number), "")?;
        let ended = child.wait_with_output().await?;
        assert!(ended.status.success(), "{}", errors(&ended));
        assert_eq!(out(&ended), "answer\n", "{}", errors(&ended));
    }
    Ok(())
}

#[tokio::test]
async fn command_fails_when_the_server_does_not_answer() -> Result<()> {
    let setup = setup_without_gateway()?;
    let silent = std::net::TcpListener::bind("127.0.0.1:0")?;
    std::fs::create_dir_all(setup.data_dir())?;
    let holder = format!(r#"{{"pid":1,"url":"http://{}"}}"#, silent.local_addr()?);
    let path = setup.data_dir().join("lock");
    std::fs::write(&path, holder)?;
    let lock = std::fs::File::open(&path)?;
    lock.lock()?;
    let ended = setup.run(&["sessions"]).await?;
    assert_eq!(ended.status.code(), Some(1));
    assert!(
        errors(&ended).contains("does not answer"),
        "{}",
        errors(&ended)
    );
    Ok(())
}
