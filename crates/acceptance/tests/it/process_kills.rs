//! Tests that kill or stop the server, keepers and agents in every order. No process that ran for an agent survives the
//! end of the server or, if the server was killed, its next start.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use testkit::{Conversation, HANG_GUARD, Person, Server, ServerSetup};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Maximum duration of a stop that the product promises, whichever processes were killed.
const STOP_MAX: Duration = Duration::from_secs(10);
/// Number of sleeping processes: four of the agent, and two each of a terminal command and an installer.
const SLEEPERS: usize = 8;
/// Maximum number of cases that run concurrently.
const MAX_CONCURRENT_CASES: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Server,
    Keepers,
    Agents,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Kill(Target),
    Stop(Target),
}

/// Every ordered subset of the three targets, to be killed in that order.
fn kill_sequences() -> Vec<Vec<Action>> {
    let all = [Target::Server, Target::Keepers, Target::Agents];
    let mut found: Vec<Vec<Action>> = vec![vec![]];
    let mut longer = found.clone();
    while !longer.is_empty() {
        longer = longer
            .iter()
            .flat_map(|actions| all.map(|target| (actions.clone(), Action::Kill(target))))
            .filter(|(actions, next)| !actions.contains(next))
            .map(|(actions, next)| [actions, vec![next]].concat())
            .collect();
        found.extend(longer.clone());
    }
    found
}

/// Sequences in which keepers or agents are stopped with SIGSTOP and cannot react.
fn stop_sequences() -> Vec<Vec<Action>> {
    use Action::{Kill, Stop};
    use Target::{Agents, Keepers, Server};
    vec![
        vec![Stop(Keepers)],
        vec![Stop(Agents)],
        vec![Stop(Keepers), Stop(Agents)],
        vec![Stop(Keepers), Kill(Agents)],
        vec![Stop(Agents), Kill(Keepers)],
        vec![Stop(Keepers), Kill(Server)],
        vec![Stop(Agents), Kill(Server)],
        vec![Stop(Keepers), Stop(Agents), Kill(Server)],
        vec![Stop(Keepers), Kill(Agents), Kill(Server)],
        vec![Stop(Agents), Kill(Keepers), Kill(Server)],
    ]
}

/// A server with every kind of process that runs under a keeper: agent, terminal command, sign-in, installer.
struct Environment {
    setup: ServerSetup,
    server: Server,
    /// Sleep duration that identifies the processes of this server.
    seconds: String,
    person: Person,
    conversation: Conversation,
}

impl Environment {
    async fn new(number: usize) -> Result<Self> {
        let seconds = format!("97{number}.{}", std::process::id());
        let agent = testkit::scripted_agent()?.display().to_string();
        let setup = ServerSetup::scripted("no-resume")?;
        let bin = setup.home().join("bin");
        std::fs::create_dir(&bin)?;
        let escaping = format!("setsid -f env -i sleep {seconds}; sleep {seconds}");
        for (name, script) in [("npm", escaping.as_str()), ("node", "echo v30.0.0")] {
            let path = bin.join(name);
            std::fs::write(&path, format!("#!/bin/sh\n{script}\n"))?;
            std::fs::set_permissions(&path, Permissions::from_mode(0o755))?;
        }
        let signed_out_agent = format!("env 'SCRIPTED_AGENT=auth three-ways' {agent}");
        let setup = setup
            .env("PATH", format!("{}:/usr/bin:/bin", bin.display()))
            .env("CODEX_ACP_CMD", signed_out_agent);
        let server = setup.start().await?;
        let mut person = Person::at(&server, &setup.folder("app")?).await?;

        person.ask_to_create("codex").await?;
        let sign_in =
            json!({"type": "agent:authenticate", "cliType": "codex", "methodId": "terminal"});
        person.socket.send(sign_in).await?;
        let mut shown = String::new();
        while !shown.contains("Code: ") {
            let message = person.socket.next_of("agent:sign-in").await?;
            shown.push_str(message["shown"]["text"].as_str().unwrap_or_default());
        }
        let install = json!({"type": "agent:install", "cliType": "gemini"});
        person.socket.ask(install).await?;
        let conversation = person.begin().await?;
        let script = format!("linger {seconds}\nchildren 3 {seconds}\nterminal t {escaping}");
        person.send(&conversation, &script).await?;

        let environment = Self {
            setup,
            server,
            seconds,
            person,
            conversation,
        };
        let all = async {
            while environment.sleepers() < SLEEPERS {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let waited = tokio::time::timeout(HANG_GUARD, all).await;
        waited.with_context(|| format!("{} sleepers", environment.sleepers()))?;
        Ok(environment)
    }

    fn sleepers(&self) -> usize {
        let line = format!("sleep\0{}\0", self.seconds);
        let all = processes().into_iter();
        all.filter(|pid| read(*pid, "cmdline") == line.as_bytes())
            .count()
    }

    /// Processes with the server's home in their environment, except the server.
    fn below(&self) -> Vec<u32> {
        let home = self.setup.home().to_string_lossy().into_owned();
        let mut found = processes();
        found.retain(|pid| {
            let environment = read(*pid, "environ");
            let mut windows = environment.windows(home.len());
            *pid != self.server.id() && windows.any(|window| window == home.as_bytes())
        });
        found
    }

    fn pids(&self, target: Target) -> Vec<u32> {
        let program = |pid: u32| std::fs::read_link(format!("/proc/{pid}/exe"));
        let is = |pid: u32, name: &str| program(pid).is_ok_and(|path| path.ends_with(name));
        let mut found = self.below();
        match target {
            Target::Server => found = vec![self.server.id()],
            Target::Keepers => found.retain(|pid| is(*pid, "liminal")),
            Target::Agents => found.retain(|pid| is(*pid, "scripted-agent")),
        }
        found
    }

    fn carry_out(&self, actions: &[Action]) -> Result<()> {
        // Look up all targets first: after the first kill, the others may already be ending.
        let targets: Vec<(Action, Vec<u32>)> = actions
            .iter()
            .map(|action| match action {
                Action::Kill(target) | Action::Stop(target) => (*action, self.pids(*target)),
            })
            .collect();
        for (action, pids) in targets {
            ensure!(!pids.is_empty(), "no process for {action:?}");
            let signal = match action {
                Action::Kill(_) => "-KILL",
                Action::Stop(_) => "-STOP",
            };
            let mut kill = std::process::Command::new("kill");
            kill.arg(signal).args(pids.iter().map(u32::to_string));
            // A target may have ended because of an earlier kill.
            kill.stderr(std::process::Stdio::null()).status()?;
        }
        Ok(())
    }

    /// Ends the server, or starts the next one if it was killed, and checks that no process is left.
    async fn end(self, actions: &[Action]) -> Result<()> {
        let below = self.below();
        let Self {
            setup,
            server,
            seconds,
            ..
        } = self;
        let next = if actions.contains(&Action::Kill(Target::Server)) {
            server.ended().await?;
            Some(setup.start().await?)
        } else {
            let ended = server.signal("TERM").await?;
            ensure!(ended.status.success(), "{ended:?}");
            ensure!(ended.took < STOP_MAX, "{:?}: {}", ended.took, ended.stderr);
            None
        };
        ensure_no_process_left(&seconds, &below)?;
        if let Some(next) = next {
            next.signal("TERM").await?;
        }
        Ok(())
    }
}

fn ensure_no_process_left(seconds: &str, below: &[u32]) -> Result<()> {
    let line = format!("sleep\0{seconds}\0");
    let left: Vec<String> = processes()
        .into_iter()
        .filter(|pid| below.contains(pid) || read(*pid, "cmdline") == line.as_bytes())
        .map(|pid| String::from_utf8_lossy(&read(pid, "cmdline")).replace('\0', " "))
        .filter(|command| !command.is_empty())
        .collect();
    ensure!(left.is_empty(), "processes left: {left:?}");
    Ok(())
}

fn processes() -> Vec<u32> {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

fn read(pid: u32, file: &str) -> Vec<u8> {
    std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default()
}

async fn run_cases(cases: Vec<Vec<Action>>, first: usize) -> Result<()> {
    let slots = Arc::new(Semaphore::new(MAX_CONCURRENT_CASES));
    let mut running = JoinSet::new();
    for (number, actions) in cases.into_iter().enumerate() {
        let slots = slots.clone();
        running.spawn(async move {
            let _slot = slots.acquire_owned().await?;
            let case = async {
                let environment = Environment::new(first + number).await?;
                environment.carry_out(&actions)?;
                environment.end(&actions).await
            };
            case.await.with_context(|| format!("{actions:?}"))
        });
    }
    while let Some(case) = running.join_next().await {
        case??;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_of_server_keepers_agents_in_any_order_leave_no_process() -> Result<()> {
    let cases = kill_sequences();
    assert_eq!(cases.len(), 16);
    run_cases(cases, 100).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopped_keepers_and_agents_leave_no_process() -> Result<()> {
    run_cases(stop_sequences(), 200).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agent_whose_keeper_was_killed_is_replaced_and_leaves_no_process() -> Result<()> {
    let mut environment = Environment::new(300).await?;
    environment.carry_out(&[Action::Kill(Target::Keepers)])?;
    let gone = async {
        while environment.sleepers() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let waited = tokio::time::timeout(HANG_GUARD, gone).await;
    waited.with_context(|| format!("{} sleepers", environment.sleepers()))?;
    let (person, conversation) = (&mut environment.person, &mut environment.conversation);
    person.until_turns(conversation, 1).await?;
    person.turn(conversation, "say I am back").await?;
    ensure!(
        conversation
            .said()
            .iter()
            .any(|line| line.contains("I am back"))
    );
    environment.end(&[]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agent_pipe_held_by_another_process_does_not_delay_its_end() -> Result<()> {
    let mut environment = Environment::new(301).await?;
    let agents = environment.pids(Target::Agents);
    let pipes = |agent: &u32| {
        let open = |number: u8| {
            let path = format!("/proc/{agent}/fd/{number}");
            std::fs::OpenOptions::new()
                .write(number > 0)
                .read(number == 0)
                .open(path)
        };
        // A sign-in process has a terminal instead of pipes.
        Some([open(0).ok()?, open(1).ok()?, open(2).ok()?])
    };
    let held: Vec<_> = agents.iter().filter_map(pipes).collect();
    ensure!(!held.is_empty());
    environment.carry_out(&[Action::Kill(Target::Keepers)])?;
    let (person, conversation) = (&mut environment.person, &mut environment.conversation);
    person.until_turns(conversation, 1).await?;
    person.turn(conversation, "say I am back").await?;
    environment.end(&[]).await?;
    drop(held);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn second_signal_ends_the_server_and_stopped_processes_at_once() -> Result<()> {
    let mut environment = Environment::new(302).await?;
    environment.carry_out(&[Action::Stop(Target::Keepers), Action::Stop(Target::Agents)])?;
    let below = environment.below();
    let term = || {
        let mut kill = std::process::Command::new("kill");
        kill.args(["-TERM", &environment.server.id().to_string()])
            .status()
    };
    term()?;
    environment
        .person
        .drain(&mut environment.conversation)
        .await?;
    term()?;
    let ended = environment.server.ended().await?;
    assert_eq!(ended.status.code(), Some(130), "{ended:?}");
    ensure_no_process_left(&environment.seconds, &below)
}
