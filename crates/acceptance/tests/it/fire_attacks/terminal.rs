//! Agent output and hostile names in command output and in the log: none contains terminal escape sequences.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use testkit::{HANG_GUARD, Person, ServerSetup};

/// Clears the screen, sets the title, uses one-byte (C1) control codes, erases, and reverses the text direction.
const ODD: &str = "odd\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\u{90}q\u{8}\u{202e}drawkcab\u{2066}";

/// Runs a command of the binary in a pseudo-terminal and returns everything it printed.
async fn at_a_terminal(setup: &ServerSetup, args: &[&str]) -> Result<String> {
    let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    grantpt(&screen)?;
    unlockpt(&screen)?;
    let name = ptsname(&screen, vec![])?;
    let terminal = || {
        File::options()
            .read(true)
            .write(true)
            .open(name.to_str().unwrap_or_default())
    };
    let mut command = setup.command();
    command
        .args(args)
        .env("NO_COLOR", "1")
        .stdout(Stdio::from(terminal()?))
        .stderr(Stdio::from(terminal()?));
    let mut child = command.spawn()?;
    drop(command);
    let shown = tokio::task::spawn_blocking(move || {
        let (mut screen, mut shown, mut buffer) = (File::from(screen), vec![], [0; 4096]);
        // Reading a closed pseudo-terminal fails.
        while let Ok(count @ 1..) = screen.read(&mut buffer) {
            shown.extend(&buffer[..count]);
        }
        shown
    });
    tokio::time::timeout(HANG_GUARD, child.wait()).await??;
    let shown = tokio::time::timeout(HANG_GUARD, shown).await??;
    Ok(String::from_utf8_lossy(&shown).into_owned())
}

/// Whether the character controls a terminal; line ends and tabs are allowed.
fn is_control(character: char) -> bool {
    let turns = matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || (character.is_control() && !matches!(character, '\n' | '\r' | '\t'))
}

fn assert_harmless(what: &str, text: &str) {
    let at = text
        .char_indices()
        .find(|(_, character)| is_control(*character));
    if let Some((at, character)) = at {
        let around: String = text[at..].chars().take(60).collect();
        panic!("{what} has {character:?} in {around:?}");
    }
}

#[tokio::test]
async fn no_command_prints_terminal_escape_sequences() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let _server = setup.start().await?;
    let folder = setup.folder(ODD)?;
    let said = format!("say {ODD}");
    let first = at_a_terminal(
        &setup,
        &["send", "--agent", "claude-code", "--cwd", &folder, &said],
    )
    .await?;
    assert!(first.contains("odd"), "{first:?}");
    assert_harmless("send", &first);
    let listed = setup.run(&["sessions"]).await?;
    let key: String = String::from_utf8(listed.stdout)?.chars().take(8).collect();
    let fails = format!("fail -32000 {ODD}");
    let calls = format!(
        "tool t1 edit {ODD}\ndiff t1 {folder}/{ODD} {ODD}\ntool-done t1 {ODD}\nplan {ODD}|b"
    );
    let denies = format!("permission p1 {ODD}\nthink {ODD}");
    for args in [
        &["sessions"][..],
        &["sessions", "--json"],
        &["send", &key, &calls],
        &["send", "--json", &key, &calls],
        &["send", &key, &denies],
        &["send", &key, &fails],
        &["show", &key],
        &["show", "--json", &key],
        &["export", &key],
        &["export", "--format", "json", &key],
        &["export", "--format", "html", &key],
        &["show", ODD],
        &["send", "--agent", ODD, "x"],
        &["agents"],
        &["agents", "--json"],
        &["agents", "--install", ODD],
        &["agents", "--refresh", &format!("{folder}/{ODD}")],
        &["--data-dir", &format!("{folder}/missing"), "sessions"],
    ] {
        let shown = at_a_terminal(&setup, args).await?;
        assert!(!shown.trim().is_empty(), "{args:?} shows nothing");
        assert_harmless(&format!("{args:?}"), &shown);
    }
    Ok(())
}

/// Covers an agent that prints hostile text instead of starting, and a data directory with a hostile name.
#[tokio::test]
async fn doctor_and_log_print_no_terminal_escape_sequences() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let agent = folder.path().join(ODD);
    std::fs::write(
        &agent,
        format!("#!/bin/sh\nprintf '%s\\n' '{ODD}' >&2\nprintf '%s\\n' '{ODD}'\nexit 3\n"),
    )?;
    std::fs::set_permissions(&agent, PermissionsExt::from_mode(0o755))?;
    let quoted = format!("'{}'", agent.display());
    let data = folder.path().join(format!("data{ODD}"));
    std::fs::create_dir_all(&data)?;
    std::fs::write(data.join("projects.json"), "{ torn")?;
    let setup = ServerSetup::new()?
        .env("CLAUDE_ACP_CMD", &quoted)
        .env("LIMINAL_DATA_DIR", &data)
        .env("LIMINAL_LOG", "debug");
    let shown = at_a_terminal(&setup, &["doctor"]).await?;
    assert!(shown.contains("odd"), "{shown:?}");
    assert_harmless("doctor", &shown);

    let server = setup.start().await?;
    let project = setup.folder(ODD)?;
    let mut person = Person::at(&server, &project).await?;
    let refused = person.ask_to_create("claude-code").await?;
    assert_eq!(refused["type"], "error", "{refused}");
    let ended = server.signal("TERM").await?;
    assert!(
        Path::new(&project).exists() && ended.stderr.contains("odd"),
        "{}",
        ended.stderr
    );
    assert_harmless("the log", &ended.stderr);
    let _ = ended.status.code().context("expected a code")?;
    Ok(())
}
