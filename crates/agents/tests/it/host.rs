//! Tests of the terminals of an agent (`terminal/*`), with real processes under a real keeper.

#![expect(clippy::unwrap_used, reason = "test helpers outside of test functions")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Stdio;

use agents::{Host, HostSetup, Keepers, Refusal, TerminalOutput};
use serde_json::{Value, json};
use store::Audit;
use testkit::HANG_GUARD;
use tokio::sync::mpsc;

const NOT_FOUND: i32 = -32002;
const NOT_ALLOWED: i32 = -32602;

struct World {
    root: tempfile::TempDir,
    audit: Audit,
    host: Host,
    outputs: mpsc::Receiver<TerminalOutput>,
}

impl World {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let real = root.path().canonicalize().unwrap();
        for folder in ["proj/src", "proj/.ours", "outside"] {
            fs::create_dir_all(real.join(folder)).unwrap();
        }
        let audit = Audit::open(&real.join("audit.jsonl")).unwrap();
        let (output, outputs) = mpsc::channel(1);
        let host = host(real.join("proj"), audit.clone(), output);
        Self {
            root,
            audit,
            host,
            outputs,
        }
    }

    fn path(&self, below: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(below)
    }

    async fn serve(&self, method: &str, params: Value) -> Result<Value, Refusal> {
        let served = self.host.serve(method, params);
        tokio::time::timeout(HANG_GUARD, served).await.unwrap()
    }

    async fn create(&self, mut params: Value) -> Result<String, Refusal> {
        params["sessionId"] = "s".into();
        let answer = self.serve("terminal/create", params).await?;
        Ok(answer["terminalId"].as_str().unwrap().to_owned())
    }

    async fn sh(&self, script: &str) -> String {
        let params = json!({"command": "sh", "args": ["-c", script]});
        self.create(params).await.unwrap()
    }

    async fn ask(&self, what: &str, id: &str) -> Result<Value, Refusal> {
        let params = json!({"sessionId": "s", "terminalId": id});
        self.serve(&format!("terminal/{what}"), params).await
    }

    /// Runs a command to its end and returns its output and exit status.
    async fn run(&self, params: Value) -> (String, Value) {
        let id = self.create(params).await.unwrap();
        let exit = self.ask("wait_for_exit", &id).await.unwrap();
        let output = self.ask("output", &id).await.unwrap();
        assert_eq!(output["exitStatus"], exit);
        (output["output"].as_str().unwrap().to_owned(), exit)
    }

    async fn until_output_contains(&self, id: &str, wanted: &str) {
        let wait = async {
            while !self.ask("output", id).await.unwrap()["output"]
                .as_str()
                .unwrap()
                .contains(wanted)
            {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(HANG_GUARD, wait).await.unwrap();
    }

    async fn next_output(&mut self) -> TerminalOutput {
        let next = tokio::time::timeout(HANG_GUARD, self.outputs.recv());
        next.await.unwrap().unwrap()
    }
}

fn host(project: PathBuf, audit: Audit, output: mpsc::Sender<TerminalOutput>) -> Host {
    Host::open(HostSetup {
        forbidden: vec![project.join(".ours")],
        project,
        session_id: "ours".to_owned(),
        keepers: Keepers::new(testkit::liminal().unwrap(), "/no/data".as_ref()),
        env: vec![
            ("PATH".into(), std::env::var_os("PATH").unwrap()),
            ("LIMINAL_TOKEN".into(), "secret".into()),
            ("BASE".into(), "of the base".into()),
            ("BOTH".into(), "of the base".into()),
            ("PWD".into(), "/of/the/server".into()),
        ],
        audit: crate::auditor(audit),
        output,
    })
    .unwrap()
}

/// Sleep duration that identifies the processes of one test.
fn unique(number: u32) -> String {
    format!("97{number}.{}", std::process::id())
}

/// Number of processes that sleep for this duration.
fn sleepers(seconds: &str) -> usize {
    let wanted = format!("sleep\0{seconds}\0");
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .filter(|line| line == wanted.as_bytes())
        .count()
}

async fn until_sleepers(seconds: &str, count: usize) {
    let wait = async {
        while sleepers(seconds) != count {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(HANG_GUARD, wait).await.unwrap();
}

/// Script that starts a child, a grandchild, a child in its own session, and an orphan, and waits for them.
fn process_family(seconds: &str) -> String {
    format!(
        "sleep {seconds} & (sleep {seconds} & wait) & setsid sleep {seconds} & \
         setsid sh -c 'sleep {seconds} & exit' & echo started; wait"
    )
}

#[tokio::test]
async fn stdout_and_stderr_arrive_in_the_order_written() {
    let world = World::new();
    let script = "for i in 1 2 3; do echo out $i; echo err $i >&2; done";
    let (output, exit) = world
        .run(json!({"command": "sh", "args": ["-c", script]}))
        .await;
    assert_eq!(output, "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n");
    assert_eq!(exit, json!({"exitCode": 0}));
}

#[tokio::test]
async fn exit_code_or_signal_of_a_command_is_reported() {
    let world = World::new();
    for (script, expected) in [
        ("exit 7", json!({"exitCode": 7})),
        ("exit 255", json!({"exitCode": 255})),
        ("kill -9 $$", json!({"signal": "SIGKILL"})),
        ("kill -SEGV $$", json!({"signal": "SIGSEGV"})),
    ] {
        let params = json!({"command": "sh", "args": ["-c", script]});
        assert_eq!(world.run(params).await.1, expected, "{script}");
    }
    let (output, exit) = world.run(json!({"command": "/no/such/program"})).await;
    assert_eq!(exit, json!({"exitCode": 127}));
    assert!(output.starts_with("/no/such/program: No such file"));
}

#[tokio::test]
async fn output_over_the_limit_is_truncated_from_the_start_at_a_character() {
    let world = World::new();
    let script = "i=0; while [ $i -lt 100 ]; do printf 'é€'; i=$((i+1)); done";
    let cases = [
        (0, String::new(), true),
        (2, String::new(), true),
        (4, "€".to_owned(), true),
        (5, "é€".to_owned(), true),
        (7, "é€".to_owned(), true),
        (499, format!("€{}", "é€".repeat(99)), true),
        (500, "é€".repeat(100), false),
        (u64::MAX, "é€".repeat(100), false),
    ];
    for (limit, expected, truncated) in cases {
        let params = json!({"command": "sh", "args": ["-c", script], "outputByteLimit": limit});
        let id = world.create(params).await.unwrap();
        let exit = world.ask("wait_for_exit", &id).await.unwrap();
        let output = world.ask("output", &id).await.unwrap();
        assert_eq!(
            output,
            json!({"output": expected, "truncated": truncated, "exitStatus": exit}),
            "{limit}"
        );
    }
}

#[tokio::test]
async fn character_split_across_two_writes_stays_one() {
    let mut world = World::new();
    let script = r"printf 'a\342'; read line < go; printf '\202\254b\377'";
    fifo(&world.path("proj/go"));
    let id = world.sh(script).await;
    assert_eq!(world.next_output().await.text, "a");
    fs::write(world.path("proj/go"), "\n").unwrap();
    let mut text = String::new();
    loop {
        let next = world.next_output().await;
        text += &next.text;
        if next.exit.is_some() {
            break;
        }
    }
    assert_eq!(text, "€b\u{fffd}");
    let output = world.ask("output", &id).await.unwrap();
    assert_eq!(output["output"], "a€b\u{fffd}");
}

fn fifo(path: &std::path::Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status();
    assert!(made.unwrap().success());
}

#[tokio::test]
async fn killed_command_ends_with_its_children_and_output_stays_readable() {
    let world = World::new();
    let seconds = unique(1);
    let id = world.sh(&process_family(&seconds)).await;
    until_sleepers(&seconds, 4).await;
    world.until_output_contains(&id, "started").await;
    let output = world.ask("output", &id).await.unwrap();
    assert_eq!(output, json!({"output": "started\n", "truncated": false}));
    assert_eq!(world.ask("kill", &id).await.unwrap(), json!({}));
    assert_eq!(sleepers(&seconds), 0);
    let output = world.ask("output", &id).await.unwrap();
    assert_eq!(output["output"], "started\n");
    assert_eq!(output["exitStatus"], json!({"signal": "SIGTERM"}));
    world.ask("kill", &id).await.unwrap();
}

#[tokio::test]
async fn command_that_stops_its_keeper_can_still_be_killed() {
    let world = World::new();
    let seconds = unique(2);
    let script = format!("kill -STOP $PPID; exec sleep {seconds}");
    let id = world.sh(&script).await;
    until_sleepers(&seconds, 1).await;
    world.ask("kill", &id).await.unwrap();
    assert_eq!(sleepers(&seconds), 0);
}

#[tokio::test]
async fn every_wait_for_exit_request_gets_the_exit_status() {
    let world = World::new();
    fifo(&world.path("proj/go"));
    let id = world.sh("echo ready; read line < go; exit 3").await;
    world.until_output_contains(&id, "ready").await;
    let waiters: Vec<_> = (0..3)
        .map(|_| {
            let (host, id) = (world.host.clone(), id.clone());
            tokio::spawn(async move {
                let params = json!({"sessionId": "s", "terminalId": id});
                host.serve("terminal/wait_for_exit", params).await
            })
        })
        .collect();
    tokio::task::yield_now().await;
    assert!(waiters.iter().all(|waiter| !waiter.is_finished()));
    fs::write(world.path("proj/go"), "\n").unwrap();
    for waiter in waiters {
        let exit = tokio::time::timeout(HANG_GUARD, waiter).await.unwrap();
        assert_eq!(exit.unwrap().unwrap(), json!({"exitCode": 3}));
    }
}

#[tokio::test]
async fn released_terminal_ends_its_processes_and_is_unknown() {
    let world = World::new();
    let seconds = unique(3);
    let id = world.sh(&process_family(&seconds)).await;
    until_sleepers(&seconds, 4).await;
    assert_eq!(world.ask("release", &id).await.unwrap(), json!({}));
    assert_eq!(sleepers(&seconds), 0);
    for what in ["output", "wait_for_exit", "kill", "release"] {
        assert_eq!(world.ask(what, &id).await.unwrap_err().code, NOT_FOUND);
    }
    assert!(world.ask("output", "never there").await.is_err());
}

#[tokio::test]
async fn command_gets_the_agents_variables_and_none_of_the_servers() {
    let world = World::new();
    let env = json!([
        {"name": "BOTH", "value": "of the agent"},
        {"name": "LIMINAL_OTHER", "value": "x"},
        {"name": "MORE", "value": "a=b"},
    ]);
    let (output, _) = world.run(json!({"command": "env", "env": env})).await;
    let mut lines: Vec<_> = output
        .lines()
        .filter(|line| !line.starts_with("PATH="))
        .collect();
    lines.sort_unstable();
    assert_eq!(lines, ["BASE=of the base", "BOTH=of the agent", "MORE=a=b"]);
    for name in ["", "A=B", "A\0B"] {
        let env = json!([{"name": name, "value": ""}]);
        let refused = world.create(json!({"command": "env", "env": env})).await;
        assert_eq!(refused.unwrap_err().code, NOT_ALLOWED, "{name:?}");
    }
    for command in ["", "a\0b"] {
        let refused = world.create(json!({"command": command})).await;
        assert_eq!(refused.unwrap_err().code, NOT_ALLOWED, "{command:?}");
    }
}

#[tokio::test]
async fn command_outside_the_project_is_rejected() {
    let world = World::new();
    let project = world.path("proj");
    symlink("src", project.join("inside")).unwrap();
    symlink("../outside", project.join("escape")).unwrap();
    let pwd = |cwd: &str| json!({"command": "pwd", "cwd": world.path(cwd)});
    assert_eq!(
        world.run(json!({"command": "pwd"})).await.0.trim(),
        project.to_str().unwrap()
    );
    for cwd in ["proj/src", "proj/inside", "proj/src/../src"] {
        let output = world.run(pwd(cwd)).await.0;
        assert_eq!(output.trim(), project.join("src").to_str().unwrap());
    }
    for cwd in ["", "outside", "proj/..", "proj/escape", "proj/.ours", "/"] {
        let refused = world.create(pwd(cwd)).await.unwrap_err();
        assert_eq!(refused.code, NOT_ALLOWED, "{cwd}");
    }
    assert_eq!(
        world.create(pwd("proj/none")).await.unwrap_err().code,
        NOT_FOUND
    );
    fs::rename(&project, world.path("moved")).unwrap();
    assert_eq!(
        world.run(json!({"command": "pwd"})).await.0.trim(),
        world.path("moved").to_str().unwrap()
    );
}

#[tokio::test]
async fn command_line_without_args_runs_in_a_shell_unless_it_is_a_program() {
    let world = World::new();
    let (output, exit) = world
        .run(json!({"command": "echo one && echo 'two  three'; exit 4"}))
        .await;
    assert_eq!(output, "one\ntwo  three\n");
    assert_eq!(exit, json!({"exitCode": 4}));
    let tool = world.path("proj/my tool");
    fs::write(&tool, "#!/bin/sh\necho a tool\n").unwrap();
    fs::set_permissions(&tool, PermissionsExt::from_mode(0o755)).unwrap();
    for command in ["./my tool", tool.to_str().unwrap()] {
        let (output, _) = world.run(json!({"command": command})).await;
        assert_eq!(output, "a tool\n");
    }
    let (output, _) = world
        .run(json!({"command": "echo", "args": ["$HOME && x"]}))
        .await;
    assert_eq!(output, "$HOME && x\n");
}

#[tokio::test]
async fn subscriber_gets_all_output_in_order_and_one_exit() {
    let mut world = World::new();
    let id = world
        .sh("for i in $(seq 2000); do echo line $i; done; exit 5")
        .await;
    let mut text = String::new();
    let exit = loop {
        let next = world.next_output().await;
        assert_eq!(next.terminal_id, id);
        text += &next.text;
        if let Some(exit) = next.exit {
            break exit;
        }
    };
    let expected: String = (1..=2000)
        .map(|number| format!("line {number}\n"))
        .collect();
    assert_eq!(text, expected);
    assert_eq!((exit.code, exit.signal), (Some(5), None));
    world.ask("release", &id).await.unwrap();
    world.host.close().await;
    assert!(world.outputs.try_recv().is_err());
}

#[tokio::test]
async fn subscriber_that_does_not_read_does_not_block_the_command() {
    let mut world = World::new();
    let id = world
        .sh("head -c 10000000 /dev/zero | tr '\\0' x; echo the end")
        .await;
    world.ask("wait_for_exit", &id).await.unwrap();
    let output = world.ask("output", &id).await.unwrap();
    assert_eq!(output["truncated"], true);
    let kept = output["output"].as_str().unwrap();
    assert_eq!(kept.len(), 1024 * 1024);
    assert!(kept.ends_with("xthe end\n"));
    let mut received = vec![];
    loop {
        let next = world.next_output().await;
        let last = next.exit.is_some();
        received.push(next.text);
        if last {
            break;
        }
    }
    assert!(received.len() <= 3, "{}", received.len());
    assert!(received.iter().all(|text| text.len() <= 1024 * 1024));
    assert!(
        received.concat().ends_with(kept),
        "the last 1 MiB of the output"
    );
}

#[tokio::test]
async fn sixty_fifth_open_terminal_is_rejected_until_one_is_released() {
    let mut world = World::new();
    let mut ids = vec![];
    for _ in 0..64 {
        ids.push(world.create(json!({"command": "true"})).await.unwrap());
    }
    let refused = world.create(json!({"command": "true"})).await.unwrap_err();
    assert!(refused.message.contains("release some first"), "{refused}");
    for id in &ids {
        world.ask("release", id).await.unwrap();
    }
    // A terminal is released only after its exit was sent to the subscriber.
    for _ in &ids {
        assert!(world.next_output().await.exit.is_some());
    }
    let free = async { while world.create(json!({"command": "true"})).await.is_err() {} };
    tokio::time::timeout(HANG_GUARD, free).await.unwrap();
}

#[tokio::test]
async fn closed_or_dropped_host_leaves_no_process() {
    let seconds = unique(4);
    let world = World::new();
    for _ in 0..2 {
        world.sh(&process_family(&seconds)).await;
    }
    until_sleepers(&seconds, 8).await;
    world.host.close().await;
    assert_eq!(sleepers(&seconds), 0);
    assert!(world.create(json!({"command": "true"})).await.is_err());

    let world = World::new();
    world.sh(&process_family(&seconds)).await;
    until_sleepers(&seconds, 4).await;
    drop(world);
    until_sleepers(&seconds, 0).await;
}

#[test]
fn dropped_runtime_of_the_host_leaves_no_process() {
    let seconds = unique(5);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let world = runtime.block_on(async {
        let world = World::new();
        world.sh(&process_family(&seconds)).await;
        until_sleepers(&seconds, 4).await;
        world
    });
    drop(runtime);
    let other = tokio::runtime::Runtime::new().unwrap();
    other.block_on(until_sleepers(&seconds, 0));
    drop(world);
}

#[tokio::test]
async fn killed_server_leaves_no_process() {
    let seconds = unique(6);
    let temporary = tempfile::tempdir().unwrap();
    let mut server = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "host::server_process_for_the_kill_test",
            "--ignored",
        ])
        .env("SLEEP_SECONDS", &seconds)
        .env("TMPDIR", temporary.path())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    until_sleepers(&seconds, 4).await;
    server.kill().await.unwrap();
    until_sleepers(&seconds, 0).await;
}

#[tokio::test]
#[ignore = "started as a process by killed_server_leaves_no_process"]
async fn server_process_for_the_kill_test() {
    let Ok(seconds) = std::env::var("SLEEP_SECONDS") else {
        return;
    };
    let world = World::new();
    let id = world.sh(&process_family(&seconds)).await;
    let _ = world.ask("wait_for_exit", &id).await;
}

#[tokio::test]
async fn audit_records_each_command_with_its_outcome() {
    let world = World::new();
    world.run(json!({"command": "exit 3 "})).await;
    let refused = json!({"command": "ls", "args": ["-l"], "cwd": world.path("outside")});
    world.create(refused).await.unwrap_err();
    world.host.close().await;
    let mut lines = vec![];
    while lines.len() < 3 {
        world.audit.flush().await;
        lines = crate::audit_lines(&world.path(""));
    }
    let of =
        |what: &str| -> Vec<&Value> { lines.iter().filter(|line| line["what"] == what).collect() };
    let [started, stopped] = of("command")[..] else {
        panic!("{lines:?}");
    };
    assert_eq!(started["argv"], json!(["sh", "-c", "exit 3 "]));
    assert_eq!(started["cwd"], json!(world.path("proj")));
    assert_eq!(started["sessionId"], "ours");
    assert_eq!(stopped["argv"], json!(["ls", "-l"]));
    assert!(stopped["refused"].as_str().unwrap().contains("outside"));
    let [ended] = of("commandEnded")[..] else {
        panic!("{lines:?}");
    };
    assert_eq!(ended["terminalId"], started["terminalId"]);
    assert_eq!(ended["exit"], json!({"code": 3}));
}
