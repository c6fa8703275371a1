//! Tests of installing agents, over the browser socket and the command line. The installers (npm, uv, curl) are test
//! scripts on the `PATH`.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use testkit::{Person, ServerSetup, Socket};

/// Setup without Claude Code and Codex, with these programs first on the `PATH`.
fn machine(programs: &[(&str, &str)]) -> Result<ServerSetup> {
    let setup = ServerSetup::new()?;
    let bin = setup.home().join("bin");
    std::fs::create_dir(&bin)?;
    for (name, script) in programs {
        program(&bin.join(name), script)?;
    }
    let path = format!("{}:/bin", bin.display());
    let memory = setup.home().join("agent-memory");
    std::fs::create_dir(&memory)?;
    Ok(setup
        .env("PATH", path)
        .env("LIMINAL_WARM_START", "false")
        .env("SCRIPTED_AGENT_MEMORY", memory))
}

fn program(path: &Path, script: &str) -> Result<()> {
    std::fs::write(path, format!("#!/bin/sh\n{script}\n"))?;
    std::fs::set_permissions(path, Permissions::from_mode(0o755))?;
    Ok(())
}

/// Script of an npm that installs the scripted agent under the requested package name.
fn npm() -> Result<String> {
    let agent = testkit::scripted_agent()?;
    let agent = Path::new(&agent).display().to_string();
    Ok(format!(
        r##"while [ "$1" != -- ]; do [ "$1" = --prefix ] && dir="$2"; shift; done
echo "asked for $2" >&2
name="${{2%@*}}"
mkdir -p "$dir/node_modules/.bin" "$dir/node_modules/$name"
echo '{{"version": "9.9.9", "bin": "x.js", "engines": {{"node": ">=30"}}}}' > "$dir/node_modules/$name/package.json"
echo "#!/bin/sh
exec {agent}" > "$dir/node_modules/.bin/${{name##*/}}"
chmod 755 "$dir/node_modules/.bin/${{name##*/}}""##
    ))
}

async fn agent(socket: &mut Socket, cli_type: &str) -> Result<Value> {
    let list = socket.ask(json!({"type": "agent:list"})).await?;
    let agents = list["agents"].as_array().context("no agents")?;
    let found = agents.iter().find(|agent| agent["cliType"] == cli_type);
    Ok(found.context("the agent is not listed")?.clone())
}

/// Output of an installation and its last event.
async fn install_result(socket: &mut Socket, cli_type: &str) -> Result<(String, Value)> {
    let mut output = String::new();
    loop {
        let event = socket.next_of("agent:install").await?;
        assert_eq!(event["cliType"], cli_type);
        output.push_str(event["output"].as_str().unwrap_or_default());
        if event["state"] != "running" {
            return Ok((output, event));
        }
    }
}

#[tokio::test]
async fn listed_agent_is_installed_and_started_without_a_restart() -> Result<()> {
    let setup = machine(&[("npm", &npm()?), ("node", "echo v30.0.0")])?;
    let server = setup.start().await?;
    let mut window = server.connect().await?;
    let mut person = Person::at(&server, &setup.folder("app")?).await?;
    let before = agent(&mut person.socket, "gemini").await?;
    assert_eq!(
        (&before["readiness"], &before["more"]),
        (&json!("not-installed"), &json!(true))
    );
    let command = before["install"].as_str().context("no command")?;
    let folder = setup.data_dir().canonicalize()?.join("agents/gemini");
    assert!(
        command.starts_with(&format!("npm install --prefix {}", folder.display())),
        "{command}"
    );

    let request = json!({"type": "agent:install", "cliType": "gemini"});
    assert_eq!(person.socket.ask(request).await?["state"], "running");
    let (output, event) = install_result(&mut window, "gemini").await?;
    assert_eq!(event["state"], "installed", "{output}");
    assert!(output.contains("asked for @google/gemini-cli@"), "{output}");
    assert_eq!(
        agent(&mut person.socket, "gemini").await?["readiness"],
        "ready"
    );
    let created = person.ask_to_create("gemini").await?;
    assert_eq!(created["type"], "session:created", "{created}");

    // The shown command does the same when the user runs it in a shell.
    let shown = command
        .replace("gemini", "qwen-code")
        .replace("@google/qwen-code-cli@", "@qwen-code/qwen-code@");
    let path = format!("{}:/bin", setup.home().join("bin").display());
    let typed = std::process::Command::new("sh")
        .args(["-c", &shown])
        .env("PATH", path)
        .status()?;
    assert!(typed.success());
    assert_eq!(
        agent(&mut person.socket, "qwen-code").await?["readiness"],
        "ready"
    );
    Ok(())
}

#[tokio::test]
async fn pypi_agent_is_installed_by_uv_into_its_own_folder() -> Result<()> {
    let agent = testkit::scripted_agent()?;
    let agent = Path::new(&agent).display();
    let uv = format!(
        r##"[ "$1 $2 $3 $4" = "tool install --force --" ] || exit 2
mkdir -p "$UV_TOOL_BIN_DIR"
echo "#!/bin/sh
exec {agent}" > "$UV_TOOL_BIN_DIR/${{5%%==*}}"
chmod 755 "$UV_TOOL_BIN_DIR/${{5%%==*}}""##
    );
    let setup = machine(&[("uv", &uv)])?;
    let installed = setup.run(&["agents", "--install", "fast-agent"]).await?;
    assert!(installed.status.success(), "{installed:?}");
    let server = setup.start().await?;
    let mut person = Person::at(&server, &setup.folder("app")?).await?;
    let created = person.ask_to_create("fast-agent").await?;
    assert_eq!(created["type"], "session:created", "{created}");
    Ok(())
}

#[tokio::test]
async fn only_a_listed_agent_id_can_be_installed() -> Result<()> {
    let setup = machine(&[("npm", &format!("touch {}", "\"$HOME/was-run\""))])?;
    let server = setup.start().await?;
    let mut socket = server.connect().await?;
    for (cli_type, code) in [
        ("no-such-agent", "AGENT_UNAVAILABLE"),
        ("../../x", "AGENT_UNAVAILABLE"),
        ("liminal", "AGENT_UNAVAILABLE"),
        ("", "AGENT_UNAVAILABLE"),
    ] {
        let refused = socket
            .ask(json!({"type": "agent:install", "cliType": cli_type}))
            .await?;
        assert_eq!(refused["code"], code, "{cli_type}: {refused}");
    }
    let more = json!({"type": "agent:install", "cliType": "gemini", "command": "touch x", "package": "evil"});
    assert_eq!(socket.ask(more).await?["code"], "INVALID_MESSAGE");
    let from = json!({"type": "agent:refresh", "from": "/etc/passwd"});
    assert_eq!(socket.ask(from).await?["code"], "INVALID_MESSAGE");
    assert!(!setup.home().join("was-run").exists());
    Ok(())
}

#[tokio::test]
async fn installer_environment_has_no_server_settings() -> Result<()> {
    let setup = machine(&[("npm", "env; exit 1")])?
        .env("LIMINAL_TOKEN", "a-token-of-thirty-two-characters-x");
    let server = setup.start().await?;
    let mut socket = server.connect().await?;
    socket
        .ask(json!({"type": "agent:install", "cliType": "cline"}))
        .await?;
    let (output, event) = install_result(&mut socket, "cline").await?;
    assert_eq!(event["state"], "failed");
    assert!(
        output.contains("PATH=") && !output.contains("a-token"),
        "{output}"
    );
    Ok(())
}

#[tokio::test]
async fn installer_output_is_bounded_and_a_cancelled_install_leaves_no_files() -> Result<()> {
    let setup = machine(&[(
        "npm",
        "echo $$ > \"$HOME/pid\"; while :; do echo 'again and again and again'; done",
    )])?;
    let server = setup.start().await?;
    let mut socket = server.connect().await?;
    socket
        .ask(json!({"type": "agent:install", "cliType": "cline"}))
        .await?;
    let mut received = 0;
    while received < 60 * 1024 {
        let event = socket.next_of("agent:install").await?;
        received += event["output"].as_str().unwrap_or_default().len();
    }
    socket
        .send(json!({"type": "agent:install-cancel", "cliType": "cline"}))
        .await?;
    let (rest, event) = install_result(&mut socket, "cline").await?;
    assert_eq!(event["state"], "cancelled");
    assert!(
        received + rest.len() < 100 * 1024,
        "{}",
        received + rest.len()
    );
    assert!(!setup.data_dir().join("agents/cline").exists());
    let pid = std::fs::read_to_string(setup.home().join("pid"))?;
    assert!(!Path::new("/proc").join(pid.trim()).exists());
    Ok(())
}

#[tokio::test]
async fn archive_is_installed_only_if_its_checksum_matches_the_list() -> Result<()> {
    // Replaces the download: copies the archive to the output path.
    let curl = r#"while [ "$1" != --output ]; do shift; done; cp "$HOME/archive.tar.gz" "$2""#;
    let setup = machine(&[("curl", curl)])?;
    let home = setup.home();
    std::fs::create_dir(home.join("inside"))?;
    program(
        &home.join("inside/agent"),
        &format!("exec {}", Path::new(&testkit::scripted_agent()?).display()),
    )?;
    let packed = std::process::Command::new("tar")
        .args(["-czf", "archive.tar.gz", "-C", "inside", "agent"])
        .current_dir(home)
        .status()?;
    assert!(packed.success());
    let sum = std::process::Command::new("sha256sum")
        .arg(home.join("archive.tar.gz"))
        .output()?;
    let sum = String::from_utf8_lossy(&sum.stdout)[..64].to_owned();
    let list = |sum: &str| {
        let target =
            json!({"archive": "https://example.com/a.tar.gz", "cmd": "./agent", "sha256": sum});
        let targets: serde_json::Map<String, Value> = [
            "linux-x86_64",
            "linux-aarch64",
            "darwin-x86_64",
            "darwin-aarch64",
        ]
        .map(|platform| (platform.to_owned(), target.clone()))
        .into_iter()
        .collect();
        json!({"agents": [{"id": "packed", "name": "Packed", "version": "1.0.0", "distribution": {"binary": targets}}]})
    };
    let wrong = sum.chars().rev().collect::<String>();
    for (sum, ends) in [(wrong.as_str(), "failed"), (sum.as_str(), "installed")] {
        std::fs::write(home.join("list.json"), list(sum).to_string())?;
        let refreshed = setup.run(&["agents", "--refresh", "list.json"]).await?;
        assert!(refreshed.status.success(), "{refreshed:?}");
        let server = setup.start().await?;
        let mut person = Person::at(&server, &setup.folder("app")?).await?;
        let mut socket = server.connect().await?;
        socket
            .ask(json!({"type": "agent:install", "cliType": "packed"}))
            .await?;
        let (output, event) = install_result(&mut socket, "packed").await?;
        assert_eq!(event["state"], ends, "{output} {event}");
        if ends == "failed" {
            assert!(
                event["message"]
                    .as_str()
                    .context("no message")?
                    .contains("SHA-256"),
                "{event}"
            );
            assert!(!setup.data_dir().join("agents/packed").exists());
        } else {
            assert_eq!(
                person.ask_to_create("packed").await?["type"],
                "session:created"
            );
        }
        server.signal("TERM").await?;
    }
    Ok(())
}

#[tokio::test]
async fn agents_command_lists_refreshes_and_installs() -> Result<()> {
    let setup = machine(&[("npm", &npm()?), ("node", "echo v18.19.1")])?;
    let text = |output: std::process::Output| {
        (
            String::from_utf8_lossy(&output.stdout).into_owned(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let (listed, _) = text(setup.run(&["agents"]).await?);
    let line = |listed: &str, id: &str| {
        listed
            .lines()
            .find(|line| line.starts_with(id))
            .unwrap_or_default()
            .to_owned()
    };
    assert!(line(&listed, "liminal").contains("ready"), "{listed}");
    assert!(
        line(&listed, "claude-code").contains("not installed"),
        "{listed}"
    );
    assert!(
        line(&listed, "gemini").contains("npm install --prefix"),
        "{listed}"
    );

    let (_, stderr) = text(setup.run(&["agents", "--install", "gemini"]).await?);
    assert!(
        stderr.contains("asked for @google/gemini-cli@") && stderr.contains("gemini is installed"),
        "{stderr}"
    );
    let (listed, _) = text(setup.run(&["agents"]).await?);
    assert!(line(&listed, "gemini").contains("ready"), "{listed}");
    let (_, stderr) = text(setup.run(&["agents", "--install", "no-such-agent"]).await?);
    assert!(stderr.contains("no agent `no-such-agent`"), "{stderr}");

    let npx = |id: &str, package: &str| json!({"id": id, "name": id, "version": "1.0.0", "distribution": {"npx": {"package": package}}});
    let list = json!({"agents": [npx("fresh", "fresh@1.0.0"), npx("evil", "--global")]});
    std::fs::write(setup.home().join("list.json"), list.to_string())?;
    let (listed, stderr) = text(setup.run(&["agents", "--refresh", "list.json"]).await?);
    assert!(line(&listed, "fresh").contains("not installed"), "{listed}");
    assert!(
        stderr.contains("Left out: evil: its package cannot be used"),
        "{stderr}"
    );
    for from in [
        "http://127.0.0.1:1/list",
        "file:///etc/passwd",
        "not-there.json",
    ] {
        let refused = setup.run(&["agents", "--refresh", from]).await?;
        assert!(!refused.status.success(), "{from}");
    }
    let (listed, _) = text(setup.run(&["agents"]).await?);
    assert!(
        line(&listed, "fresh").contains("not installed"),
        "an invalid list must not replace the current one: {listed}"
    );

    let (report, _) = text(setup.run(&["doctor"]).await?);
    assert!(
        report.contains("Claude Code needs Node 22 or newer; this machine has 18.19."),
        "{report}"
    );
    assert!(
        report.contains("Gemini CLI needs Node 30 or newer; this machine has 18.19."),
        "{report}"
    );
    assert!(
        report.contains("more that can be installed: liminal agents"),
        "{report}"
    );
    Ok(())
}

#[tokio::test]
async fn agent_readiness_shows_a_needed_sign_in_or_a_failed_start() -> Result<()> {
    let setup = ServerSetup::scripted("auth")?.env(
        "CODEX_ACP_CMD",
        "/bin/sh -c 'echo its last words >&2; exit 1'",
    );
    let server = setup.start().await?;
    let mut person = Person::at(&server, &setup.folder("app")?).await?;
    assert_eq!(
        agent(&mut person.socket, "claude-code").await?["readiness"],
        "ready"
    );
    person.ask_to_create("claude-code").await?;
    assert_eq!(
        agent(&mut person.socket, "claude-code").await?["readiness"],
        "needs-login"
    );
    let sign_in =
        json!({"type": "agent:authenticate", "cliType": "claude-code", "methodId": "login"});
    let signed_in = person.socket.ask(sign_in).await?;
    assert_eq!(signed_in["type"], "agent:authenticated", "{signed_in}");
    assert_eq!(
        agent(&mut person.socket, "claude-code").await?["readiness"],
        "ready"
    );

    person.ask_to_create("codex").await?;
    let codex = agent(&mut person.socket, "codex").await?;
    assert_eq!(codex["readiness"], "broken");
    assert!(
        codex["problem"]
            .as_str()
            .context("no message")?
            .contains("its last words"),
        "{codex}"
    );
    Ok(())
}

#[tokio::test]
async fn memory_of_an_agent_and_its_children_is_shown_in_window_and_doctor() -> Result<()> {
    let setup = ServerSetup::scripted("")?;
    let server = setup.start().await?;
    let mut person = Person::at(&server, &setup.folder("app")?).await?;
    let none = person.socket.ask(json!({"type": "agent:memory"})).await?;
    assert_eq!(none["agents"], json!([]));
    let mut conversation = person.begin().await?;
    let alone = person.socket.ask(json!({"type": "agent:memory"})).await?["agents"][0].take();
    assert_eq!(alone["processes"], 1);
    assert!(
        alone["bytes"].as_u64().context("bytes")? > 100 * 1024,
        "{alone}"
    );
    // Far more than the agent needs for itself, so that the growth is visible.
    const HELD: u64 = 16 << 20;
    person
        .turn(&mut conversation, &format!("hold {HELD} 60"))
        .await?;
    let held = async {
        loop {
            let with = person.socket.ask(json!({"type": "agent:memory"})).await?;
            let with = &with["agents"][0];
            if with["bytes"].as_u64() > Some(HELD) {
                return anyhow::Ok(with["processes"].as_u64());
            }
        }
    };
    let processes = tokio::time::timeout(testkit::HANG_GUARD, held).await??;
    assert!(processes > Some(1), "{processes:?}");
    let report = setup.run(&["doctor"]).await?;
    let report = String::from_utf8_lossy(&report.stdout).into_owned();
    assert!(report.contains("\nMemory\n  claude-code "), "{report}");
    assert!(report.contains(" MiB in "), "{report}");
    Ok(())
}
