//! Settings of the real binary: their documentation, `config.toml`, and which command has which flag.

use anyhow::{Context, Result, ensure};
use testkit::ServerSetup;

fn setup() -> Result<ServerSetup> {
    ServerSetup::new()
}

fn write_config(setup: &ServerSetup, content: &str) -> Result<()> {
    std::fs::create_dir_all(setup.data_dir())?;
    Ok(std::fs::write(
        setup.data_dir().join("config.toml"),
        content,
    )?)
}

async fn output(setup: &ServerSetup, args: &[&str]) -> Result<String> {
    let output = setup.run(args).await?;
    let text = String::from_utf8(output.stdout)?;
    ensure!(output.status.success(), "{text}");
    Ok(text)
}

#[tokio::test]
async fn configuration_page_matches_the_table_of_settings() -> Result<()> {
    let printed = output(&setup()?, &["config"]).await?;
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &printed)?;
    }
    let written = std::fs::read_to_string(path)
        .context("docs/configuration.md is missing; run this test with UPDATE_DOCS=1")?;
    assert_eq!(
        written, printed,
        "docs/configuration.md is out of date; run this test with UPDATE_DOCS=1"
    );
    ensure!(
        printed
            .lines()
            .all(|line| line.chars().count() <= 120 || line.starts_with('|'))
    );
    Ok(())
}

#[tokio::test]
async fn example_of_the_configuration_page_is_accepted() -> Result<()> {
    let setup = setup()?.env("PATH", "/nonexistent");
    let page = output(&setup, &["config"]).await?;
    let example = page.split("```toml\n").nth(1).context("no example")?;
    write_config(&setup, example.split("```").next().context("no end")?)?;
    let doctor = output(&setup, &["doctor", "--gateway-port", "off"]).await?;
    let setting = |name, value| format!("{name:<24} {:<21} {value}", "config.toml");
    let agent =
        "Example Agent  not found: its configured command `node /opt/example/agent.mjs --acp`";
    for line in [
        &setting("port", "3001"),
        &setting("permissions", "ask"),
        agent,
    ] {
        ensure!(doctor.contains(line), "{line}: {doctor}");
    }
    Ok(())
}

#[tokio::test]
async fn log_filter_in_the_file_applies_to_the_server() -> Result<()> {
    for (filter, logs) in [("info", true), ("off", false)] {
        let setup = setup()?;
        write_config(&setup, &format!("log = {filter:?}"))?;
        let ended = setup.start().await?.signal("TERM").await?;
        let logged = ended.stderr.contains("stopping");
        assert_eq!(logged, logs, "{filter}");
    }
    Ok(())
}

#[tokio::test]
async fn built_in_agent_reads_its_settings_from_the_file() -> Result<()> {
    let setup = setup()?;
    let cases = [
        (
            "agent_model = \"claude\"\nno_such_key = 1",
            "error: agent_model in config.toml is `claude`: ",
        ),
        (
            "agent_session_max = \"many\"",
            "error: agent_session_max in config.toml is `many`: ",
        ),
        (
            "agent_log = \"agent=loud\"",
            "error: agent_log in config.toml is `agent=loud`: ",
        ),
    ];
    for (content, expected) in cases {
        write_config(&setup, content)?;
        let refused = setup.run(&["agent"]).await?;
        let said = String::from_utf8(refused.stderr)?;
        ensure!(said.starts_with(expected), "{content}: {said}");
    }
    // An invalid file does not stop an editor from starting the agent.
    write_config(&setup, "torn = [")?;
    ensure!(setup.run(&["agent"]).await?.status.success());
    Ok(())
}

#[tokio::test]
async fn agent_command_with_arguments_starts_the_agent() -> Result<()> {
    let setup = setup()?;
    let program = testkit::scripted_agent()?;
    let program = program.display();
    write_config(
        &setup,
        &format!("[[agents]]\nid = \"own\"\ncommand = \"env 'A=b c' {program}\"\n"),
    )?;
    let doctor = output(&setup, &["doctor", "--port", "0"]).await?;
    ensure!(doctor.contains("(Scripted Agent 1.0.0)"), "{doctor}");
    Ok(())
}

#[tokio::test]
async fn server_flags_are_in_the_help_of_serve_only() -> Result<()> {
    let setup = setup()?;
    for command in [&[][..], &["serve"]] {
        let help = output(&setup, &[command, &["--help"]].concat()).await?;
        for flag in [
            "--host",
            "--port",
            "--permissions",
            "--stall-action",
            "--no-open",
        ] {
            ensure!(help.contains(flag), "{command:?} {flag}: {help}");
        }
    }
    let commands = [
        "token",
        "config",
        "sessions",
        "show",
        "send",
        "export",
        "agents",
        "clean",
        "gateway",
        "completions",
        "man",
        "agent",
    ];
    for command in commands {
        let help = output(&setup, &[command, "--help"]).await?;
        for flag in [
            "--host",
            "--port ",
            "--permissions",
            "--stall-action",
            "--no-open",
        ] {
            ensure!(!help.contains(flag), "{command} {flag}: {help}");
        }
        ensure!(help.contains("--data-dir"), "{command}: {help}");
    }
    let refused = setup.run(&["--no-open", "sessions"]).await?;
    let said = String::from_utf8(refused.stderr)?;
    ensure!(
        said.contains("--no-open is a flag of `liminal serve`"),
        "{said}"
    );
    Ok(())
}
