//! The command line as a person meets it: starting, failing, stopping, asking.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use testkit::{Person, ServerSetup};

fn setup() -> Result<ServerSetup> {
    ServerSetup::new(env!("CARGO_BIN_EXE_liminal"))
}

/// Runs it and expects one sentence on stderr, nothing on stdout, and a failure.
async fn refusal(setup: &ServerSetup, args: &[&str]) -> Result<String> {
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
async fn one_ready_line_on_stdout_and_the_rest_on_stderr() -> Result<()> {
    let setup = setup()?.env("LIMINAL_LOG", "debug");
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
async fn interrupt_and_terminate_end_it_cleanly_within_a_second() -> Result<()> {
    for name in ["INT", "TERM"] {
        let setup = setup()?;
        let server = setup.start().await?;
        let _open = server.connect().await?;
        let ended = server.signal(name).await?;
        assert!(ended.status.success(), "{ended:?}");
        assert!(ended.took < Duration::from_secs(1), "{ended:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_taken_port_is_said_with_the_remedy() -> Result<()> {
    let taken = std::net::TcpListener::bind("127.0.0.1:0")?;
    let port = taken.local_addr()?.port().to_string();
    let said = refusal(&setup()?, &["--port", &port]).await?;
    assert!(
        said.contains(&format!("Port {port} on 127.0.0.1 is taken.")) && said.contains("--port"),
        "{said}"
    );
    Ok(())
}

#[tokio::test]
async fn an_address_that_is_not_ours_is_said_with_the_remedy() -> Result<()> {
    let said = refusal(&setup()?, &["--port", "0", "--host", "192.0.2.1"]).await?;
    assert!(
        said.contains("192.0.2.1 is not an address of this machine") && said.contains("--host"),
        "{said}"
    );
    Ok(())
}

#[tokio::test]
async fn a_data_directory_in_use_names_its_user() -> Result<()> {
    let setup = setup()?;
    let server = setup.start().await?;
    let said = refusal(&setup, &["--port", "0"]).await?;
    let holder = format!("(process {}, http://{})", server.id(), server.address);
    assert!(
        said.contains(&holder) && said.contains("--data-dir"),
        "{said}"
    );
    Ok(())
}

#[tokio::test]
async fn an_unusable_data_directory_is_said_with_the_remedy() -> Result<()> {
    let setup = setup()?;
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
        let said = refusal(&setup, &["--port", "0", "--data-dir", dir]).await?;
        assert!(
            said.contains(expected) && said.contains("--data-dir"),
            "{dir}: {said}"
        );
    }
    assert_eq!(std::fs::read_dir(setup.home().join("thesis"))?.count(), 1);
    Ok(())
}

#[tokio::test]
async fn a_bad_setting_is_said_with_its_place() -> Result<()> {
    let setup = setup()?;
    std::fs::create_dir(setup.data_dir())?;
    std::fs::write(
        setup.data_dir().join("config.toml"),
        "# mine\nport = 1\nprot = 2\n",
    )?;
    let said = refusal(&setup, &[]).await?;
    assert!(
        said.contains("config.toml, line 3: unknown field `prot`"),
        "{said}"
    );
    let setup = self::setup()?.env("LIMINAL_PERMISSIONS", "sometimes");
    let said = refusal(&setup, &[]).await?;
    assert!(
        said.contains("LIMINAL_PERMISSIONS is `sometimes`: it must be `allow` or `ask`."),
        "{said}"
    );
    let setup = self::setup()?.env("LIMINAL_TOKEN", "short");
    let said = refusal(&setup, &["--port", "0"]).await?;
    assert!(said.contains("LIMINAL_TOKEN must be"), "{said}");
    Ok(())
}

#[tokio::test]
async fn a_newer_store_stops_the_start_and_is_left_alone() -> Result<()> {
    let setup = setup()?;
    std::fs::create_dir(setup.data_dir())?;
    let file = setup.data_dir().join("projects.json");
    std::fs::write(&file, r#"{"version":2,"projects":[],"future":true}"#)?;
    let said = refusal(&setup, &["--port", "0"]).await?;
    assert!(
        said.contains("is of version 2") && said.contains("install a newer"),
        "{said}"
    );
    assert_eq!(
        std::fs::read_to_string(file)?,
        r#"{"version":2,"projects":[],"future":true}"#
    );
    Ok(())
}

#[tokio::test]
async fn a_corrupt_store_is_kept_aside_and_every_window_is_told() -> Result<()> {
    let setup = setup()?;
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
async fn everything_it_writes_is_private_whatever_the_umask() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let careless = folder.path().join("careless");
    let program = env!("CARGO_BIN_EXE_liminal");
    std::fs::write(
        &careless,
        format!("#!/bin/sh\numask 000\nexec {program} \"$@\"\n"),
    )?;
    std::fs::set_permissions(&careless, Permissions::from_mode(0o755))?;
    let setup = ServerSetup::new(careless.to_str().context("a path")?)?.with_scripted_agent("")?;
    let server = setup.start().await?;
    let mut person = Person::at(&server, &setup.folder("app")?).await?;
    let mut talk = person.begin().await?;
    person
        .turn(&mut talk, "permission t1 Look\nsay done")
        .await?;
    // One turn is finished and one in flight.
    person.send(&talk, "say more\nhang").await?;
    person.until_said(&mut talk, "assistant: more").await?;
    let mut seen = vec![];
    let mut folders = vec![setup.data_dir()];
    while let Some(folder) = folders.pop() {
        assert_eq!(mode(&folder)?, 0o700, "{}", folder.display());
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            // About to take the place of another file, and gone any moment.
            if name.ends_with(".tmp") {
                assert!(mode(&path).map_or(true, |mode| mode == 0o600));
                continue;
            }
            assert_eq!(mode(&path)?, 0o600, "{}", path.display());
            // Sessions are named by chance.
            seen.push(name.get(36..).map_or(name.to_string(), str::to_owned));
        }
    }
    seen.sort();
    let wanted = [
        ".jsonl",
        ".live.jsonl",
        "audit.jsonl",
        "lock",
        "projects.json",
        "sessions.json",
        "token",
    ];
    assert_eq!(seen, wanted);
    Ok(())
}

fn mode(path: &Path) -> Result<u32> {
    Ok(path.metadata()?.permissions().mode() & 0o777)
}

#[tokio::test]
async fn token_prints_the_token_the_server_uses() -> Result<()> {
    let setup = setup()?;
    let printed = String::from_utf8(setup.run(&["token"]).await?.stdout)?;
    let server = setup.start().await?;
    assert_eq!(printed, format!("{}\n", server.token));
    assert_eq!(
        String::from_utf8(setup.run(&["token"]).await?.stdout)?,
        printed,
        "also while it runs"
    );
    Ok(())
}

#[tokio::test]
async fn doctor_shows_what_is_set_found_and_missing_and_changes_nothing() -> Result<()> {
    let setup = setup()?
        .env("PATH", "/nonexistent")
        .env("LIMINAL_PERMISSIONS", "ask");
    let output = setup
        .run(&["doctor", "--port", "0", "--gateway-port", "off"])
        .await?;
    assert!(output.status.success());
    let text =
        String::from_utf8(output.stdout)?.replace(&setup.home().display().to_string(), "[home]");
    let text = text.replace(env!("CARGO_BIN_EXE_liminal"), "[liminal]");
    insta::assert_snapshot!(text.replace(env!("CARGO_PKG_VERSION"), "[version]"));
    assert!(
        !setup.data_dir().exists(),
        "doctor must not create anything"
    );
    Ok(())
}

#[tokio::test]
async fn doctor_says_who_an_agent_is_or_what_it_said_when_it_did_not_start() -> Result<()> {
    let setup = setup()?.with_scripted_agent("")?;
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
    let setup = setup()?;
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
    let output = setup()?.run(&["--help"]).await?;
    insta::assert_snapshot!(String::from_utf8(output.stdout)?);
    Ok(())
}

#[tokio::test]
async fn a_reader_that_leaves_early_is_no_error() -> Result<()> {
    let setup = setup()?;
    let program = env!("CARGO_BIN_EXE_liminal");
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
async fn doctor_fails_when_a_start_would_and_says_why() -> Result<()> {
    let cases = [
        ("projects.json", r#"{"version":9}"#, "is of version 9"),
        ("projects.json", "{ torn", "The next start keeps it aside"),
        ("token", "x", "Delete that file"),
    ];
    for (file, content, expected) in cases {
        let setup = setup()?;
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
async fn doctor_does_not_wait_for_a_tool_that_hangs() -> Result<()> {
    let setup = setup()?;
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
async fn doctor_names_a_command_that_was_set_and_is_missing() -> Result<()> {
    let setup = setup()?.env("CLAUDE_ACP_CMD", "my-claude --flag");
    let text = String::from_utf8(setup.run(&["doctor", "--port", "0"]).await?.stdout)?;
    assert!(
        text.contains("not found: its configured command `my-claude --flag`"),
        "{text}"
    );
    Ok(())
}

#[tokio::test]
async fn a_variable_that_is_no_text_is_refused_and_not_ignored() -> Result<()> {
    use std::os::unix::ffi::OsStringExt;

    let odd = std::ffi::OsString::from_vec(vec![b'/', 0xff]);
    let setup = setup()?.env("LIMINAL_DATA_DIR", odd);
    let said = refusal(&setup, &["--port", "0"]).await?;
    assert!(
        said.contains("LIMINAL_DATA_DIR is not valid UTF-8"),
        "{said}"
    );
    Ok(())
}

#[tokio::test]
async fn a_full_standard_output_is_an_error() -> Result<()> {
    let setup = setup()?;
    let mut command = setup.command();
    command
        .arg("token")
        .stdout(std::fs::File::create("/dev/full")?);
    assert_eq!(command.status().await?.code(), Some(1));
    Ok(())
}

#[tokio::test]
async fn a_stuck_disk_does_not_keep_a_stopped_server_alive() -> Result<()> {
    let setup = setup()?;
    let server = setup.start().await?;
    let mut socket = server.connect().await?;
    // Opening it for writing waits for a reader that never comes.
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
async fn the_printed_address_carries_any_token() -> Result<()> {
    let setup = setup()?.env("LIMINAL_TOKEN", "abc+def/ghi==XYZ");
    let server = setup.start().await?;
    assert_eq!(server.token, "abc%2Bdef%2Fghi%3D%3DXYZ");
    Ok(())
}

#[tokio::test]
async fn a_log_that_nobody_reads_any_more_is_no_reason_to_stop() -> Result<()> {
    use tokio::io::{AsyncBufReadExt as _, BufReader};
    let setup = setup()?.env("LIMINAL_LOG", "trace");
    let mut command = setup.command();
    let mut server = command.args(["--port", "0", "--no-open"]).spawn()?;
    let mut ready = String::new();
    let mut stdout = BufReader::new(server.stdout.take().context("a pipe")?);
    stdout.read_line(&mut ready).await?;
    drop(server.stderr.take());
    let (_, address) = ready.split_once("http://").context("an address")?;
    let (address, _) = address.split_once('/').context("an address")?;
    for _ in 0..3 {
        let head = [
            "GET /health HTTP/1.1".to_owned(),
            format!("Host: {address}"),
        ];
        let answer = testkit::http(address.parse()?, &head, "").await?;
        assert_eq!(answer.status, 200);
    }
    let pid = server.id().context("it runs")?.to_string();
    std::process::Command::new("kill")
        .args(["-TERM", &pid])
        .status()?;
    let ended = tokio::time::timeout(testkit::HANG_GUARD, server.wait()).await??;
    assert_eq!(ended.code(), Some(0));
    Ok(())
}

#[tokio::test]
async fn a_log_that_is_not_read_keeps_nobody_waiting() -> Result<()> {
    use tokio::io::AsyncWriteExt as _;
    let server = setup()?.env("LIMINAL_LOG", "debug").start().await?;
    // Each is a line of the log, which `testkit` reads at the end: far more than a pipe holds.
    for _ in 0..1500 {
        let mut stranger = tokio::net::TcpStream::connect(server.address).await?;
        stranger.write_all(b"not a request\r\n\r\n").await?;
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
