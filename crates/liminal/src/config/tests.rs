use super::*;
use std::collections::HashMap;

use clap::Parser;

use super::table::table;
use super::values::AGENT_KEYS;
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
        let flags = cli.flags().map_err(|error| error.to_string())?;
        Settings::load(&flags, Some(self.home.path().to_owned()), &env)
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
    assert_eq!(agents[0].words(), ["gemini", "--acp"]);
    assert_eq!(agents[0].env["KEY"], "v");
}

#[test]
fn agent_command_is_a_command_line_or_the_path_of_a_file() {
    let machine = Machine::new();
    let file = machine.home.path().join("my agent's program");
    std::fs::write(&file, "").unwrap();
    let path = file.to_str().unwrap().to_owned();
    let words = |command: &str| {
        let table = format!("[[agents]]\nid = \"a\"\ncommand = {command:?}\nargs = [\"b c\"]");
        let machine = Machine::new().file(&table);
        machine.load(&[]).map(|settings| settings.agents[0].words())
    };
    assert_eq!(words("node x.mjs").unwrap(), ["node", "x.mjs", "b c"]);
    assert_eq!(words("'/a b/c' -v").unwrap(), ["/a b/c", "-v", "b c"]);
    assert_eq!(words(&path).unwrap(), [path.as_str(), "b c"]);
    let error = words("'open").unwrap_err();
    assert!(
        error.contains("line 3: ") && error.contains("unclosed quote"),
        "{error}"
    );
}

#[test]
fn every_key_of_an_agent_table_is_described() {
    let error = Machine::new()
        .file("[[agents]]\nno_such_key = 1")
        .load(&[])
        .unwrap_err();
    let expected = error.split("expected one of ").nth(1).unwrap();
    let keys = AGENT_KEYS.map(|key| format!("`{}`", key.key));
    let expected = expected.split(". Correct").next().unwrap();
    assert_eq!(expected, keys.join(", "));
}

#[test]
fn every_setting_of_the_table_is_accepted_in_the_file_and_in_the_environment() {
    for row in table() {
        let Some(key) = row.key else { continue };
        let value = match row.values {
            values if values.contains("`true`") => "false",
            values if values.contains("`allow`") => "ask",
            values if values.contains("`restart`") => "restart",
            values if values.contains("address") => "127.0.0.2",
            values if values.contains("level") => "debug",
            _ => "7",
        };
        let source = |machine: Machine| {
            let settings = machine.load(&[]).unwrap();
            let rows = settings.rows();
            rows.iter().find(|(name, ..)| *name == key).unwrap().2
        };
        let file = format!("{key} = \"{value}\"");
        assert_eq!(source(Machine::new().file(&file)), Source::File, "{key}");
        let env = Machine::new().env(row.variable, value);
        assert_eq!(source(env), Source::Environment(row.variable));
    }
}

#[test]
fn booleans_and_numbers_need_no_quotes() {
    let settings = Machine::new()
        .file("open = false\nport = 7")
        .load(&[])
        .unwrap();
    assert_eq!((settings.open.value, settings.port.value.0), (false, 7));
}

#[test]
fn server_flag_before_another_command_is_an_error() {
    let error = Machine::new()
        .load(&["--port", "7", "sessions"])
        .unwrap_err();
    assert!(
        error.contains("--port is a flag of `liminal serve`"),
        "{error}"
    );
    assert!(Machine::new().load(&["man", "--port", "7"]).is_err());
    let checked = Machine::new().load(&["doctor", "--port", "7"]).unwrap();
    assert_eq!(checked.port.source, Source::Flag);
}

#[test]
fn agent_settings_come_from_the_environment_then_from_the_file() {
    let machine = Machine::new()
        .file(
            "agent_model = \"a/b\"\nagent_session_max = 5\nagent_log = \"x=loud\"\nport = \"bad\"",
        )
        .env("LIMINAL_AGENT_SESSION_MAX", "6");
    let env = |variable: &str| machine.env.get(variable).map(|value| (*value).to_owned());
    let settings = AgentSettings::load(&machine.home.path().join(".liminal-builder"), &env);
    assert_eq!(settings.get("LIMINAL_AGENT_MODEL").unwrap(), "a/b");
    assert_eq!(settings.get("LIMINAL_AGENT_SESSION_MAX").unwrap(), "6");
    assert_eq!(settings.get("LIMINAL_PORT"), None);
    let invalid = |variable| {
        let error = settings.invalid(variable, "v".to_owned(), "no".to_owned());
        error.to_string()
    };
    assert_eq!(
        invalid("LIMINAL_AGENT_MODEL"),
        "agent_model in config.toml is `v`: no."
    );
    let variable = "LIMINAL_AGENT_SESSION_MAX";
    assert_eq!(invalid(variable), format!("{variable} is `v`: no."));
    let error = settings.log().unwrap_err().to_string();
    assert!(
        error.starts_with("agent_log in config.toml is `x=loud`: "),
        "{error}"
    );
}

#[test]
fn default_log_filter_of_the_agent_is_valid() {
    assert_eq!(
        agent::LOG_DEFAULT.parse::<LogFilter>().unwrap(),
        LogFilter::agent()
    );
}

#[test]
fn help_describes_every_variable() {
    let help = environment_help();
    for row in table() {
        assert!(help.contains(row.variable), "{}", row.variable);
    }
    assert!(help.lines().all(|line| line.chars().count() <= 120));
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
fn rows_do_not_contain_the_token_or_a_key() {
    let settings = Machine::new()
        .env("LIMINAL_TOKEN", "canary-canary")
        .load(&[])
        .unwrap();
    assert_eq!(settings.token.as_deref(), Some("canary-canary"));
    let settings = Machine::new()
        .env("LIMINAL_TOKEN", "canary-canary")
        .env("LIMINAL_AGENT_API_KEY", "canary-key")
        .load(&[])
        .unwrap();
    assert!(
        settings
            .rows()
            .iter()
            .all(|(_, value, _)| !value.contains("canary"))
    );
}
