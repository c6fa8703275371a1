//! Tests of the command line: start, start errors, stop, `token`, `doctor`, `--help`.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use testkit::{Scene, ServerSetup};

/// Runs the command and returns its error: one line on stderr, nothing on stdout, exit code 1.
async fn run_expecting_error(setup: &ServerSetup, args: &[&str]) -> Result<String> {
    let output = setup.run(args).await?;
    let stderr = String::from_utf8(output.stderr)?;
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(output.stdout.is_empty());
    assert!(
        stderr.starts_with("error: ") && stderr.trim_end().lines().count() == 1,
        "{stderr}"
    );
    assert!(
        !stderr.contains("panicked") && stderr.ends_with(".\n"),
        "{stderr}"
    );
    Ok(stderr)
}

#[tokio::test]
async fn stdout_has_only_the_ready_line_and_logs_go_to_stderr() -> Result<()> {
    let setup = ServerSetup::new()?.env("LIMINAL_LOG", "debug");
    let server = setup.start().await?;
    server.connect().await?;
    let token = server.token.clone();
    let ended = server.signal("INT").await?;
    assert_eq!(ended.stdout, "");
    assert!(ended.stderr.contains("stopping"), "{}", ended.stderr);
    assert!(
        !ended.stderr.contains(&token),
        "the token must not be logged"
    );
    Ok(())
}

#[tokio::test]
async fn sigint_and_sigterm_end_the_server_cleanly_within_a_second() -> Result<()> {
    for name in ["INT", "TERM"] {
        let setup = ServerSetup::new()?;
        let server = setup.start().await?;
        let _open = server.connect().await?;
        let ended = server.signal(name).await?;
        assert!(ended.status.success(), "{ended:?}");
        assert!(ended.took < Duration::from_secs(1), "{ended:?}");
    }
    Ok(())
}

#[tokio::test]
async fn port_in_use_is_reported_with_the_remedy() -> Result<()> {
    let taken = std::net::TcpListener::bind("127.0.0.1:0")?;
    let port = taken.local_addr()?.port().to_string();
    let error = run_expecting_error(&ServerSetup::new()?, &["--port", &port]).await?;
    assert!(
        error.contains(&format!("Port {port} on 127.0.0.1 is taken.")) && error.contains("--port"),
        "{error}"
    );
    Ok(())
}

#[tokio::test]
async fn foreign_listen_address_is_reported_with_the_remedy() -> Result<()> {
    let error = run_expecting_error(
        &ServerSetup::new()?,
        &["--port", "0", "--host", "192.0.2.1"],
    )
    .await?;
    assert!(
        error.contains("192.0.2.1 is not an address of this machine") && error.contains("--host"),
        "{error}"
    );
    Ok(())
}

#[tokio::test]
async fn data_directory_in_use_error_names_the_running_server() -> Result<()> {
    let setup = ServerSetup::new()?;
    let server = setup.start().await?;
    let error = run_expecting_error(&setup, &["--port", "0"]).await?;
    let holder = format!("(process {}, http://{})", server.id(), server.address);
    assert!(
        error.contains(&holder) && error.contains("--data-dir"),
        "{error}"
    );
    Ok(())
}

#[tokio::test]
async fn unusable_data_directory_is_reported_with_the_remedy() -> Result<()> {
    let setup = ServerSetup::new()?;
    std::fs::write(setup.home().join("file"), "")?;
    std::fs::create_dir(setup.home().join("thesis"))?;
    std::fs::write(setup.home().join("thesis/chapter.tex"), "")?;
    for (dir, expected) in [
        ("file", "not a directory"),
        ("file/below", "ot a directory"),
        ("/proc/liminal", "cannot be used"),
        (
            "thesis",
            "is not empty and not a Liminal Builder data directory",
        ),
    ] {
        let error = run_expecting_error(&setup, &["--port", "0", "--data-dir", dir]).await?;
        assert!(
            error.contains(expected) && error.contains("--data-dir"),
            "{dir}: {error}"
        );
    }
    assert_eq!(std::fs::read_dir(setup.home().join("thesis"))?.count(), 1);
    Ok(())
}

#[tokio::test]
async fn invalid_setting_is_reported_with_its_source() -> Result<()> {
    let setup = ServerSetup::new()?;
    std::fs::create_dir(setup.data_dir())?;
    std::fs::write(
        setup.data_dir().join("config.toml"),
        "# mine\nport = 1\nprot = 2\n",
    )?;
    let error = run_expecting_error(&setup, &[]).await?;
    assert!(
        error.contains("config.toml, line 3: unknown field `prot`"),
        "{error}"
    );
    let setup = ServerSetup::new()?.env("LIMINAL_PERMISSIONS", "sometimes");
    let error = run_expecting_error(&setup, &[]).await?;
    assert!(
        error.contains("LIMINAL_PERMISSIONS is `sometimes`: it must be `allow` or `ask`."),
        "{error}"
    );
    let setup = ServerSetup::new()?.env("LIMINAL_TOKEN", "short");
    let error = run_expecting_error(&setup, &["--port", "0"]).await?;
    assert!(error.contains("LIMINAL_TOKEN must be"), "{error}");
    Ok(())
}

#[tokio::test]
async fn store_of_a_newer_version_stops_the_start_unchanged() -> Result<()> {
    let setup = ServerSetup::new()?;
    std::fs::create_dir(setup.data_dir())?;
    let file = setup.data_dir().join("projects.json");
    std::fs::write(&file, r#"{"version":2,"projects":[],"future":true}"#)?;
    let error = run_expecting_error(&setup, &["--port", "0"]).await?;
    assert!(
        error.contains("is of version 2") && error.contains("install a newer"),
        "{error}"
    );
    assert_eq!(
        std::fs::read_to_string(file)?,
        r#"{"version":2,"projects":[],"future":true}"#
    );
    Ok(())
}

#[tokio::test]
async fn corrupt_store_is_set_aside_and_reported_to_every_window() -> Result<()> {
    let setup = ServerSetup::new()?;
    std::fs::create_dir(setup.data_dir())?;
    std::fs::write(setup.data_dir().join("projects.json"), "{ torn")?;
    let server = setup.start().await?;
    let hello = server.connect_unread().await?.next().await?;
    let notice = hello["notices"][0].as_str().unwrap_or_default().to_owned();
    assert!(
        notice.contains("could not be understood") && notice.contains("It was kept as"),
        "{notice}"
    );
    let kept = notice
        .split("It was kept as ")
        .nth(1)
        .and_then(|rest| rest.split(',').next())
        .unwrap_or_default();
    assert_eq!(std::fs::read_to_string(kept)?, "{ torn");
    Ok(())
}

#[tokio::test]
async fn data_directory_files_are_private_with_umask_000() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let wrapper = folder.path().join("careless");
    let program = testkit::liminal()?;
    std::fs::write(
        &wrapper,
        format!("#!/bin/sh\numask 000\nexec {program} \"$@\"\n"),
    )?;
    std::fs::set_permissions(&wrapper, Permissions::from_mode(0o755))?;
    let setup = ServerSetup::of(wrapper.to_str().context("no path")?)?.with_scripted_agent("")?;
    let mut scene = Scene::of(setup).await?;
    scene.turn("permission t1 Look\nsay done").await?;
    // One turn is finished and one is running.
    scene.send("say more\nhang").await?;
    scene.until_said("assistant: more").await?;
    let mut seen = vec![];
    let mut folders = vec![scene.setup.data_dir()];
    while let Some(folder) = folders.pop() {
        assert_eq!(mode(&folder)?, 0o700, "{}", folder.display());
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            // The temporary file of an atomic replace, which may disappear at any moment.
            if name.ends_with(".tmp") {
                assert!(mode(&path).map_or(true, |mode| mode == 0o600));
                continue;
            }
            assert_eq!(mode(&path)?, 0o600, "{}", path.display());
            // Names of session files start with a random key of 36 characters.
            seen.push(name.get(36..).map_or(name.to_string(), str::to_owned));
        }
    }
    seen.sort();
    let expected = [
        ".jsonl",
        ".live.jsonl",
        "audit.jsonl",
        "lock",
        "projects.json",
        "server-key",
        "sessions.json",
        "token",
    ];
    assert_eq!(seen, expected);
    Ok(())
}

fn mode(path: &Path) -> Result<u32> {
    Ok(path.metadata()?.permissions().mode() & 0o777)
}

#[tokio::test]
async fn token_command_prints_the_token_of_the_server() -> Result<()> {
    let setup = ServerSetup::new()?;
    let printed = String::from_utf8(setup.run(&["token"]).await?.stdout)?;
    let server = setup.start().await?;
    assert_eq!(printed, format!("{}\n", server.token));
    assert_eq!(
        String::from_utf8(setup.run(&["token"]).await?.stdout)?,
        printed,
        "the same token while the server runs"
    );
    Ok(())
}

#[tokio::test]
async fn doctor_shows_what_is_set_found_and_missing_and_changes_nothing() -> Result<()> {
    let setup = ServerSetup::new()?
        .env("PATH", "/nonexistent")
        .env("LIMINAL_PERMISSIONS", "ask");
    let output = setup
        .run(&["doctor", "--port", "0", "--gateway-port", "off"])
        .await?;
    assert!(output.status.success());
    let text =
        String::from_utf8(output.stdout)?.replace(&setup.home().display().to_string(), "[home]");
    let text = text.replace(&testkit::liminal()?, "[liminal]");
    insta::assert_snapshot!(text.replace(env!("CARGO_PKG_VERSION"), "[version]"));
    assert!(
        !setup.data_dir().exists(),
        "doctor must not create anything"
    );
    Ok(())
}

#[tokio::test]
async fn doctor_shows_an_agents_version_or_its_start_error() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let broken = setup.home().join("broken");
    std::fs::write(&broken, "#!/bin/sh\necho no licence >&2\nexit 3\n")?;
    std::fs::set_permissions(&broken, Permissions::from_mode(0o755))?;
    let setup = setup.env("CODEX_ACP_CMD", &broken);
    let text = String::from_utf8(setup.run(&["doctor", "--port", "0"]).await?.stdout)?;
    assert!(text.contains("(Scripted Agent 1.0.0)"), "{text}");
    assert!(
        text.contains("but: Could not connect to Codex. (no licence)"),
        "{text}"
    );
    Ok(())
}

#[tokio::test]
async fn doctor_names_the_running_server() -> Result<()> {
    let setup = ServerSetup::new()?;
    let server = setup.start().await?;
    let port = server.address.port().to_string();
    let text = String::from_utf8(setup.run(&["doctor", "--port", &port]).await?.stdout)?;
    let holder = format!("(process {}, http://{})", server.id(), server.address);
    assert!(
        text.contains(&format!("private, in use by {holder}")),
        "{text}"
    );
    assert!(
        text.contains(&format!("{}  served by {holder}", server.address)),
        "{text}"
    );
    assert!(!text.contains(&server.token));
    Ok(())
}

#[tokio::test]
async fn help_teaches() -> Result<()> {
    let output = ServerSetup::new()?.run(&["--help"]).await?;
    insta::assert_snapshot!(String::from_utf8(output.stdout)?);
    Ok(())
}

#[tokio::test]
async fn closed_stdout_pipe_is_not_an_error() -> Result<()> {
    let setup = ServerSetup::new()?;
    let program = testkit::liminal()?;
    let mut shell = tokio::process::Command::new("sh");
    shell
        .args([
            "-c",
            &format!("{program} doctor | true; {program} token | true"),
        ])
        .env("HOME", setup.home());
    let output = shell.output().await?;
    assert_eq!(String::from_utf8(output.stderr)?, "");
    Ok(())
}

#[tokio::test]
async fn doctor_fails_with_the_reason_when_a_start_would_fail() -> Result<()> {
    let cases = [
        ("projects.json", r#"{"version":9}"#, "is of version 9"),
        ("projects.json", "{ torn", "The next start keeps it aside"),
        ("token", "x", "Delete that file"),
    ];
    for (file, content, expected) in cases {
        let setup = ServerSetup::new()?;
        std::fs::create_dir(setup.data_dir())?;
        std::fs::write(setup.data_dir().join(file), content)?;
        let output = setup.run(&["doctor", "--port", "0"]).await?;
        let text = String::from_utf8(output.stdout)?;
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains(expected), "{text}");
        assert_eq!(
            std::fs::read_to_string(setup.data_dir().join(file))?,
            content
        );
    }
    Ok(())
}

#[tokio::test]
async fn doctor_does_not_wait_for_a_hanging_tool() -> Result<()> {
    let setup = ServerSetup::new()?;
    let bin = setup.folder("bin")?;
    let node = Path::new(&bin).join("node");
    std::fs::write(&node, "#!/bin/sh\nexec sleep 1000\n")?;
    std::fs::set_permissions(&node, std::fs::Permissions::from_mode(0o755))?;
    let setup = setup.env("PATH", format!("{bin}:/usr/bin:/bin"));
    let text = String::from_utf8(setup.run(&["doctor", "--port", "0"]).await?.stdout)?;
    assert!(
        text.contains("node   found, but `node --version` fails"),
        "{text}"
    );
    Ok(())
}

#[tokio::test]
async fn doctor_names_a_configured_command_that_is_missing() -> Result<()> {
    let setup = ServerSetup::new()?.env("CLAUDE_ACP_CMD", "my-claude --flag");
    let text = String::from_utf8(setup.run(&["doctor", "--port", "0"]).await?.stdout)?;
    assert!(
        text.contains("not found: its configured command `my-claude --flag`"),
        "{text}"
    );
    Ok(())
}

#[tokio::test]
async fn environment_variable_that_is_not_utf8_is_rejected() -> Result<()> {
    use std::os::unix::ffi::OsStringExt;

    let odd = std::ffi::OsString::from_vec(vec![b'/', 0xff]);
    let setup = ServerSetup::new()?.env("LIMINAL_DATA_DIR", odd);
    let error = run_expecting_error(&setup, &["--port", "0"]).await?;
    assert!(
        error.contains("LIMINAL_DATA_DIR is not valid UTF-8"),
        "{error}"
    );
    Ok(())
}

#[tokio::test]
async fn full_stdout_device_is_an_error() -> Result<()> {
    let setup = ServerSetup::new()?;
    let mut command = setup.command();
    command
        .arg("token")
        .stdout(std::fs::File::create("/dev/full")?);
    assert_eq!(command.status().await?.code(), Some(1));
    Ok(())
}

#[tokio::test]
async fn blocked_disk_write_does_not_delay_a_stop() -> Result<()> {
    let setup = ServerSetup::new()?;
    let server = setup.start().await?;
    let mut socket = server.connect().await?;
    // Opening a FIFO for writing blocks until a process opens it for reading; none does.
    let fifo = setup.data_dir().join("projects.json.tmp");
    assert!(
        tokio::process::Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .await?
            .success()
    );
    socket
        .send(serde_json::json!({"type": "project:add", "path": setup.folder("app")?}))
        .await?;
    socket
        .ask(serde_json::json!({"type": "project:list"}))
        .await?;
    let ended = server.signal("TERM").await?;
    assert!(ended.status.success(), "{ended:?}");
    Ok(())
}

#[tokio::test]
async fn printed_url_percent_encodes_the_token() -> Result<()> {
    let setup = ServerSetup::new()?.env("LIMINAL_TOKEN", "abc+def/ghi==XYZ");
    let server = setup.start().await?;
    assert_eq!(server.token, "abc%2Bdef%2Fghi%3D%3DXYZ");
    Ok(())
}

#[tokio::test]
async fn closed_stderr_pipe_does_not_stop_the_server() -> Result<()> {
    use tokio::io::{AsyncBufReadExt as _, BufReader};
    let setup = ServerSetup::new()?.env("LIMINAL_LOG", "trace");
    let mut command = setup.command();
    let mut server = command.args(["--port", "0", "--no-open"]).spawn()?;
    let mut ready = String::new();
    let mut stdout = BufReader::new(server.stdout.take().context("no pipe")?);
    stdout.read_line(&mut ready).await?;
    drop(server.stderr.take());
    let (_, address) = ready.split_once("http://").context("no address")?;
    let (address, _) = address.split_once('/').context("no address")?;
    for _ in 0..3 {
        let head = [
            "GET /health HTTP/1.1".to_owned(),
            format!("Host: {address}"),
        ];
        let answer = testkit::http(address.parse()?, &head, "").await?;
        assert_eq!(answer.status, 200);
    }
    let pid = server.id().context("the process has exited")?.to_string();
    std::process::Command::new("kill")
        .args(["-TERM", &pid])
        .status()?;
    let ended = tokio::time::timeout(testkit::HANG_GUARD, server.wait()).await??;
    assert_eq!(ended.code(), Some(0));
    Ok(())
}

#[tokio::test]
async fn full_stderr_pipe_does_not_block_requests() -> Result<()> {
    use tokio::io::AsyncWriteExt as _;
    let server = ServerSetup::new()?
        .env("LIMINAL_LOG", "debug")
        .start()
        .await?;
    // Each connection logs a line, which `testkit` reads only at the end: far more output than a pipe holds.
    for _ in 0..1500 {
        let mut client = tokio::net::TcpStream::connect(server.address).await?;
        client.write_all(b"not a request\r\n\r\n").await?;
    }
    let head = [
        "GET /health HTTP/1.1".to_owned(),
        format!("Host: {}", server.address),
    ];
    for _ in 0..3 {
        let answer = testkit::http(server.address, &head, "").await?;
        assert_eq!(answer.status, 200);
    }
    let ended = server.signal("TERM").await?;
    assert!(
        ended.stderr.len() >= 60 << 10,
        "the pipe was never full: {} bytes",
        ended.stderr.len()
    );
    Ok(())
}
