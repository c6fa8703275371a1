use super::*;
use std::collections::HashMap;

use clap::Parser;

use crate::cli::Cli;

struct Machine {
    home: tempfile::TempDir,
    env: HashMap<&'static str, &'static str>,
}

impl Machine {
    fn new() -> Self {
        Self {
            home: tempfile::tempdir().unwrap(),
            env: HashMap::new(),
        }
    }

    fn file(self, text: &str) -> Self {
        let dir = self.home.path().join(".liminal-builder");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("config.toml"), text).unwrap();
        self
    }

    fn env(mut self, variable: &'static str, value: &'static str) -> Self {
        self.env.insert(variable, value);
        self
    }

    fn load(&self, args: &[&str]) -> Result<Settings, String> {
        let cli = Cli::try_parse_from([&["liminal"], args].concat())
            .map_err(|error| error.to_string())?;
        let env = |variable: &str| self.env.get(variable).map(|value| (*value).to_owned());
        Settings::load(&cli.flags, Some(self.home.path().to_owned()), &env)
            .map_err(|error| error.to_string())
    }
}

#[test]
fn flag_overrides_environment_overrides_file_overrides_default() {
    let port = |machine: Machine, args: &[&str]| {
        let port = machine.load(args).unwrap().port;
        (port.value.0, port.source)
    };
    let env = Source::Environment("LIMINAL_PORT");
    assert_eq!(port(Machine::new(), &[]), (3000, Source::Default));
    assert_eq!(
        port(Machine::new().file("port = 1"), &[]),
        (1, Source::File)
    );
    assert_eq!(
        port(
            Machine::new().file("port = 1").env("LIMINAL_PORT", "2"),
            &[]
        ),
        (2, env)
    );
    assert_eq!(
        port(
            Machine::new().file("port = 1").env("LIMINAL_PORT", "2"),
            &["--port", "3"]
        ),
        (3, Source::Flag)
    );
}

#[test]
fn empty_variable_counts_as_unset() {
    assert_eq!(
        Machine::new()
            .env("LIMINAL_PORT", "")
            .load(&[])
            .unwrap()
            .port
            .source,
        Source::Default
    );
}

#[test]
fn flags_are_accepted_before_and_after_the_command() {
    for args in [["--port", "7", "serve"], ["serve", "--port", "7"]] {
        assert_eq!(Machine::new().load(&args).unwrap().port.value.0, 7);
    }
}

#[test]
fn unexpanded_tilde_in_the_data_directory_means_home() {
    let machine = Machine::new().env("LIMINAL_DATA_DIR", "~/elsewhere");
    assert_eq!(
        machine.load(&[]).unwrap().data_dir.value,
        machine.home.path().join("elsewhere")
    );
}

#[test]
fn error_for_an_invalid_line_has_its_number_and_reason() {
    let cases = [
        (
            "port = 1\nprot = 2\n",
            "line 2: unknown field `prot`, expected one of",
        ),
        (
            "\n\nport = \"x\"",
            "line 3: `x` is not valid, it must be a port from 0 to 65535",
        ),
        (
            "port = 70000",
            "line 1: `70000` is not valid, it must be a port from 0 to 65535",
        ),
        (
            "permissions = \"maybe\"",
            "line 1: `maybe` is not valid, it must be `allow` or `ask`",
        ),
        (
            "host = \"example.org\"",
            "line 1: `example.org` is not valid, it must be an IP address",
        ),
        (
            "gateway_port = \"on\"",
            "line 1: `on` is not valid, it must be a port from 0 to 65535, or `off`",
        ),
        ("acp_start_timeout_ms = 0", "line 1: `0` is not valid"),
        ("host = ", "line 1: "),
        ("port = 1\nport = 2", "line 2: duplicate key"),
    ];
    for (text, expected) in cases {
        let error = Machine::new().file(text).load(&[]).unwrap_err();
        assert!(error.contains(expected), "{text:?} gave {error}");
        assert!(
            error.ends_with("Correct that line, or remove it to use the default."),
            "{error}"
        );
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn error_for_an_invalid_variable_has_its_value() {
    let error = Machine::new()
        .env("LIMINAL_STALL_ACTION", "explode")
        .load(&[])
        .unwrap_err();
    assert_eq!(
        error,
        "LIMINAL_STALL_ACTION is `explode`: it must be `show` or `restart`."
    );
    let error = Machine::new()
        .env("CLAUDE_ACP_CMD", "run 'this")
        .load(&[])
        .unwrap_err();
    assert_eq!(
        error,
        "CLAUDE_ACP_CMD is `run 'this`: it has an unclosed quote."
    );
}

#[test]
fn command_line_is_split_like_in_a_shell() {
    let settings = Machine::new()
        .env("CODEX_ACP_CMD", "'/my tools/codex' --flag")
        .load(&[])
        .unwrap();
    assert_eq!(
        settings.codex_acp_cmd.value.words().unwrap(),
        ["/my tools/codex", "--flag"]
    );
}

#[test]
fn agent_tables_add_agents() {
    let file = "port = 1\n[[agents]]\nid = \"gemini\"\nname = \"Gemini CLI\"\ncommand = \"gemini\"\n\
        args = [\"--acp\"]\nenv = { KEY = \"v\" }\n[[agents]]\nid = \"own\"\nbadge = \"Own!\"\ncommand = \"own\"\n";
    let agents = Machine::new().file(file).load(&[]).unwrap().agents;
    let shown: Vec<_> = agents
        .iter()
        .map(|agent| (agent.name(), agent.badge()))
        .collect();
    assert_eq!(
        shown,
        [
            ("Gemini CLI".into(), "GE".into()),
            ("own".into(), "Own".into())
        ]
    );
    assert_eq!(
        (agents[0].args.as_slice(), agents[0].env["KEY"].as_str()),
        (["--acp".to_owned()].as_slice(), "v")
    );
}

#[test]
fn invalid_or_duplicate_agent_table_is_rejected() {
    for (table, expected) in [
        (
            "id = \"Ge mini\"\ncommand = \"x\"",
            "line 2: `Ge mini` is not valid, it must be 1 to 32 lower-case letters",
        ),
        ("id = \"a\"", "line 1: missing field `command`"),
        (
            "id = \"a\"\ncommand = \"x\"\ncolour = 1",
            "line 4: unknown field `colour`",
        ),
        (
            "id = \"codex\"\ncommand = \"x\"",
            "defines the agent id `codex` twice, or it is the id of a built-in agent",
        ),
        (
            "id = \"a\"\ncommand = \"x\"\n[[agents]]\nid = \"a\"\ncommand = \"y\"",
            "defines the agent id `a` twice",
        ),
    ] {
        let error = Machine::new()
            .file(&format!("[[agents]]\n{table}"))
            .load(&[])
            .unwrap_err();
        assert!(error.contains(expected), "{table}: {error}");
    }
}

#[test]
fn same_port_for_both_listeners_is_rejected() {
    let error = Machine::new()
        .load(&["--port", "5000", "--gateway-port", "5000"])
        .unwrap_err();
    assert!(error.contains("both set to port 5000"), "{error}");
    assert!(
        Machine::new()
            .load(&["--port", "0", "--gateway-port", "0"])
            .is_ok()
    );
}

#[test]
fn rows_do_not_contain_the_token() {
    let settings = Machine::new()
        .env("LIMINAL_TOKEN", "canary-canary")
        .load(&[])
        .unwrap();
    assert_eq!(settings.token.as_deref(), Some("canary-canary"));
    assert!(
        settings
            .rows()
            .iter()
            .all(|(_, value, _)| !value.contains("canary"))
    );
}
