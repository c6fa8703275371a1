//! Tests that a keeper leaves no process behind, with real processes, some of which try to escape.

use std::process::Stdio;

use anyhow::{Context, Result};
use testkit::HANG_GUARD;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

/// Sleep duration that identifies the processes of one test.
fn unique(number: u32) -> String {
    format!("98{number}.{}", std::process::id())
}

#[expect(clippy::unwrap_used, reason = "a helper of tests")]
fn keeper(parent: u32, script: &str) -> Command {
    let mut command = Command::new(testkit::liminal().unwrap());
    command
        .args([
            "keeper",
            "--parent",
            &parent.to_string(),
            "--",
            "sh",
            "-c",
            script,
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// Number of processes that sleep for this duration.
fn sleepers(seconds: &str) -> usize {
    let command_lines = std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    let wanted = format!("sleep\0{seconds}\0");
    command_lines
        .filter(|line| line == wanted.as_bytes())
        .count()
}

async fn until(what: &str, mut holds: impl FnMut() -> bool) -> Result<()> {
    let wait = async {
        while !holds() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(HANG_GUARD, wait)
        .await
        .with_context(|| format!("timed out waiting until {what}"))
}

async fn ended(child: &mut Child) -> Result<Option<i32>> {
    Ok(tokio::time::timeout(HANG_GUARD, child.wait())
        .await??
        .code())
}

async fn signal(pid: u32, name: &str) -> Result<()> {
    anyhow::ensure!(
        Command::new("kill")
            .args([&format!("-{name}"), &pid.to_string()])
            .status()
            .await?
            .success()
    );
    Ok(())
}

/// Script that starts a child, a grandchild, a child in its own session, and an orphan.
fn process_family(seconds: &str) -> String {
    format!(
        "sleep {seconds} & (sleep {seconds} & wait) & setsid sleep {seconds} & \
         setsid sh -c 'sleep {seconds} & exit' & "
    )
}

#[tokio::test]
async fn keeper_passes_stdio_through_and_returns_the_agents_exit_code() -> Result<()> {
    let mut child = keeper(std::process::id(), "cat; echo oops >&2; exit 7").spawn()?;
    let mut stdin = child.stdin.take().context("no pipe")?;
    stdin.write_all(b"hello").await?;
    drop(stdin);
    let output = tokio::time::timeout(HANG_GUARD, child.wait_with_output()).await??;
    assert_eq!(
        (output.stdout.as_slice(), output.stderr.as_slice()),
        (b"hello".as_slice(), b"oops\n".as_slice())
    );
    assert_eq!(output.status.code(), Some(7));
    Ok(())
}

#[tokio::test]
async fn killed_agent_is_reported_as_128_plus_the_signal() -> Result<()> {
    let mut child = keeper(std::process::id(), "kill -9 $$").spawn()?;
    assert_eq!(ended(&mut child).await?, Some(128 + 9));
    Ok(())
}

#[tokio::test]
async fn command_that_cannot_start_fails_with_127_and_the_reason() -> Result<()> {
    let mut command = Command::new(testkit::liminal()?);
    command.args([
        "keeper",
        "--parent",
        &std::process::id().to_string(),
        "--",
        "/no/such/agent",
    ]);
    let output = tokio::time::timeout(HANG_GUARD, command.output()).await??;
    assert_eq!(output.status.code(), Some(127));
    assert!(String::from_utf8(output.stderr)?.starts_with("/no/such/agent: No such file"));
    Ok(())
}

#[tokio::test]
async fn agents_exit_ends_all_its_descendants() -> Result<()> {
    let seconds = unique(1);
    let mut child = keeper(
        std::process::id(),
        &format!("{} read line; exit 3", process_family(&seconds)),
    )
    .spawn()?;
    until("the processes have started", || sleepers(&seconds) == 4).await?;
    child
        .stdin
        .take()
        .context("no pipe")?
        .write_all(b"\n")
        .await?;
    assert_eq!(ended(&mut child).await?, Some(3));
    assert_eq!(sleepers(&seconds), 0);
    Ok(())
}

#[tokio::test]
async fn sigterm_to_the_keeper_ends_all_descendants_first() -> Result<()> {
    let seconds = unique(2);
    let script = format!(
        "trap '' TERM; {} while true; do wait; done",
        process_family(&seconds)
    );
    let mut child = keeper(std::process::id(), &script).spawn()?;
    until("the processes have started", || sleepers(&seconds) == 4).await?;
    signal(child.id().context("no pid")?, "TERM").await?;
    assert_eq!(ended(&mut child).await?, Some(128 + 15));
    assert_eq!(sleepers(&seconds), 0);
    Ok(())
}

#[tokio::test]
async fn killed_server_leaves_no_agent_process() -> Result<()> {
    let seconds = unique(3);
    let program = testkit::liminal()?;
    let family = process_family(&seconds).replace('\'', "'\\''");
    let script = format!(
        "{program} keeper --parent $$ -- sh -c '{family} sleep {seconds}' & echo started; wait"
    );
    let mut server = Command::new("sh");
    server
        .args(["-c", &script])
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    let mut server = server.spawn()?;
    until("the processes have started", || sleepers(&seconds) == 5).await?;
    signal(server.id().context("no pid")?, "KILL").await?;
    server.wait().await?;
    until("all processes have ended", || sleepers(&seconds) == 0).await?;
    let mut rest = String::new();
    let mut stdout = server.stdout.take().context("no pipe")?;
    // The pipe closes only when the last process that holds it, the keeper, has ended.
    tokio::time::timeout(HANG_GUARD, stdout.read_to_string(&mut rest)).await??;
    Ok(())
}

#[tokio::test]
async fn sigterm_ends_500_children_and_a_process_that_keeps_forking() -> Result<()> {
    let seconds = unique(4);
    let script = format!(
        "i=0; while [ $i -lt 500 ]; do sleep {seconds} & i=$((i+1)); done; \
         setsid sh -c 'while true; do setsid sleep {seconds} & sleep 0.01; done' & wait"
    );
    let mut child = keeper(std::process::id(), &script).spawn()?;
    until("more than 500 processes run", || sleepers(&seconds) > 500).await?;
    signal(child.id().context("no pid")?, "TERM").await?;
    ended(&mut child).await?;
    assert_eq!(sleepers(&seconds), 0);
    Ok(())
}
