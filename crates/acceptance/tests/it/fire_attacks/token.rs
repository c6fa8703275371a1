//! The token: it cannot be guessed, and it does not leak.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::json;
use testkit::{
    Browser, Person, Program, Server, ServerSetup, Socket, http, new_sign_in, post_login, times,
};
use tokio::task::JoinSet;

/// How long one wrong token delays the next attempt.
const PAUSE: Duration = Duration::from_millis(200);
/// Maximum number of attempts that wait for that delay.
const WAITING: usize = 16;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn token_guesses_on_every_api_fail_and_few_are_even_checked() -> Result<()> {
    let setup = ServerSetup::scripted("")?.env("LIMINAL_TOKEN", "short-one");
    let server = Arc::new(setup.start().await?);
    let guesses = times(400, 10_000);
    let next = Arc::new(AtomicUsize::new(0));
    let checked = Arc::new(AtomicUsize::new(0));
    let begun = Instant::now();
    let mut crowd = JoinSet::new();
    for _ in 0..24 {
        let (server, next, checked) = (server.clone(), next.clone(), checked.clone());
        crowd.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= guesses {
                    return anyhow::Ok(());
                }
                let answer = guess(&server, number).await?;
                anyhow::ensure!(answer != Answer::Accepted, "guess {number} was accepted");
                checked.fetch_add(usize::from(answer == Answer::Wrong), Ordering::Relaxed);
            }
        });
    }
    while let Some(ended) = crowd.join_next().await {
        ended??;
    }
    let took = begun.elapsed();
    let checked = checked.load(Ordering::Relaxed);
    let most = WAITING + (took.as_millis() / PAUSE.as_millis()) as usize + 1;
    println!("{guesses} guesses in {took:?}, {checked} checked");
    assert!(checked <= most, "{checked} guesses checked in {took:?}");
    Ok(())
}

#[derive(Debug, PartialEq)]
enum Answer {
    Accepted,
    Wrong,
    TooMany,
}

/// Tries a token, on each API in turn.
async fn guess(server: &Server, number: usize) -> Result<Answer> {
    let address = server.address;
    let token = format!("short-{number:03}");
    let host = format!("Host: {address}");
    let status = match number % 4 {
        0 => {
            let bearer = format!("Authorization: Bearer {token}");
            http(
                address,
                &["GET /auth HTTP/1.1".to_owned(), host, bearer],
                "",
            )
            .await?
            .status
        }
        1 => {
            let body = match number % 8 {
                1 => json!({"token": token}),
                _ => new_sign_in(address, &token).await?,
            };
            post_login(address, &address.to_string(), &body)
                .await?
                .status
        }
        2 => {
            let (host, bearer) = (address.to_string(), format!("Bearer {token}"));
            let headers = [("host", host.as_str()), ("authorization", &bearer)];
            let opened = Socket::open(address, "/ws", &headers).await;
            opened.map_or_else(|refused| refused.status.unwrap_or(0), |_| 101)
        }
        _ => {
            let Ok(mut socket) = server.knock().await else {
                return Ok(Answer::TooMany);
            };
            socket.send(json!({"type": "auth", "token": token})).await?;
            let answer = socket.next().await?;
            return Ok(match answer["error"].as_str() {
                None => Answer::Accepted,
                Some("invalid token") => Answer::Wrong,
                Some(_) => Answer::TooMany,
            });
        }
    };
    match status {
        401 => Ok(Answer::Wrong),
        429 => Ok(Answer::TooMany),
        101 | 200 | 204 => Ok(Answer::Accepted),
        other => anyhow::bail!("{other}"),
    }
}

/// Searches for the token, a mistyped token, a prompt and file content wherever they could leak to.
#[tokio::test]
async fn secrets_do_not_leak() -> Result<()> {
    const TYPED: &str = "typed-by-mistake-0815";
    const PROMPT: &str = "prompt-canary-0815";
    const CONTENT: &str = "content-canary-0815";
    for given in [None, Some("canary-token-0123456789abcdef0123456789")] {
        let folder = tempfile::tempdir()?;
        let (program, log) = (folder.path().join("logged"), folder.path().join("log"));
        let ours = testkit::liminal()?;
        let script = format!("#!/bin/sh\nexec {ours} \"$@\" 2>>{}\n", log.display());
        std::fs::write(&program, script)?;
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755))?;
        let mut setup = ServerSetup::of(program.to_str().context("expected a path")?)?
            .with_scripted_agent("")?
            .env("LIMINAL_LOG", "trace");
        if let Some(token) = given {
            setup = setup.env("LIMINAL_TOKEN", token);
        }
        let server = setup.start().await?;
        let token = server.token.clone();
        let folder = setup.folder("app")?;
        std::fs::write(Path::new(&folder).join("private.txt"), CONTENT)?;

        let browser = Browser::sign_in(&server).await?;
        let (_socket, hello) = browser.connect(&server).await?;
        let pass = hello["pass"].as_str().context("expected a pass")?;
        let secrets = [token.as_str(), TYPED, pass];
        let wrong = format!("Authorization: Bearer {TYPED}");
        assert_eq!(server.get("/auth", &[&wrong]).await?.status, 401);
        server.get(&format!("/?token={TYPED}"), &[]).await?;
        let mut unauthenticated = server.knock().await?;
        unauthenticated
            .send(json!({"type": "auth", "token": TYPED}))
            .await?;
        unauthenticated.next().await?;
        let mut program = Program::at(&server).await?;
        program.result("sessions.list", json!({})).await?;

        let mut person = Person::at(&server, &folder).await?;
        let mut talk = person.begin().await?;
        let read = json!({"path": format!("{folder}/private.txt")});
        let write = json!({"path": format!("{folder}/new.txt"), "content": CONTENT});
        let lines = [
            format!("say {PROMPT}"),
            "environment".to_owned(),
            "permission t1 Look".to_owned(),
            format!("ask fs/read_text_file {read}"),
            format!("ask fs/write_text_file {write}"),
            "terminal t2 env".to_owned(),
        ];
        person.turn(&mut talk, &lines.join("\n")).await?;

        // Processes of the server: no secret in arguments, nor in the environment of agents.
        let process_tree = process_tree(server.id())?;
        assert!(
            process_tree.len() >= 3,
            "server, keeper and agent: {process_tree:?}"
        );
        for process in &process_tree {
            let arguments = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
            assert_absent(&secrets, &arguments, "arguments");
            if *process != server.id() {
                let environment =
                    std::fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
                assert_absent(&secrets, &environment, "environment");
                assert!(!String::from_utf8_lossy(&environment).contains("LIMINAL_TOKEN"));
            }
        }
        // Responses of the server.
        for path in [
            "/",
            "/portlet.html",
            "/health",
            "/auth",
            "/identity?browser=a&nonce=b",
            "/nothing",
            "/shell/main.js",
            "/shared/boot.js",
        ] {
            let answer = server.get(path, &[]).await?;
            assert_absent(&secrets, &answer.body, path);
            assert_absent(&secrets, format!("{:?}", answer.headers).as_bytes(), path);
        }
        // The transcript, which includes the environments of the agent and of its command.
        assert_absent(
            &secrets,
            format!("{:?}", talk.entries).as_bytes(),
            "conversation",
        );
        let ended = server.signal("TERM").await?;
        let log = std::fs::read(&log)?;
        assert!(!log.is_empty(), "the log is empty");
        assert_absent(&secrets, &log, "log");
        assert_absent(&secrets, ended.stdout.as_bytes(), "standard output");
        assert_absent(&[PROMPT, CONTENT], &log, "log");
        // Files in the data directory and the agent's folder.
        let mut kept = 0;
        let mut folders = vec![setup.data_dir(), setup.home().join("agent-memory")];
        while let Some(next) = folders.pop() {
            for entry in std::fs::read_dir(next)? {
                let path = entry?.path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let name = path
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned();
                let bytes = std::fs::read(&path)?;
                if name != "token" {
                    assert_absent(&secrets, &bytes, &name);
                }
                if name.starts_with("audit.") {
                    assert_absent(&[PROMPT, CONTENT], &bytes, &name);
                }
                kept += 1;
            }
        }
        assert!(kept >= 5, "{kept} files");
    }
    Ok(())
}

fn assert_absent(secrets: &[&str], place: &[u8], name: &str) {
    let place = String::from_utf8_lossy(place);
    for secret in secrets {
        if let Some(at) = place.find(secret) {
            let before = place[..at].lines().next_back().unwrap_or_default();
            panic!("a secret ({}…) is in {name}, after: {before}", &secret[..6]);
        }
    }
}

/// A process and all its descendants.
fn process_tree(head: u32) -> Result<Vec<u32>> {
    let mut found = vec![head];
    let mut parents = vec![];
    for entry in std::fs::read_dir("/proc")? {
        let Ok(process) = entry?.file_name().to_string_lossy().parse::<u32>() else {
            continue;
        };
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{process}/stat")) else {
            continue;
        };
        let after = stat.rsplit_once(") ").context("expected a name")?.1;
        parents.push((
            process,
            after
                .split(' ')
                .nth(1)
                .context("expected a parent")?
                .parse::<u32>()?,
        ));
    }
    let mut at = 0;
    while at < found.len() {
        let parent = found[at];
        let children = parents.iter().filter(|(_, of)| *of == parent);
        found.extend(children.map(|(child, _)| *child));
        at += 1;
    }
    Ok(found)
}
