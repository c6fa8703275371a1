//! The token: nobody guesses it, and it is nowhere but where it belongs.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::json;
use testkit::{Person, Program, Server, ServerSetup, Socket, http, times};
use tokio::task::JoinSet;

use crate::fire_attacks::setup;

/// How long one wrong token holds up the next.
const PAUSE: Duration = Duration::from_millis(200);
/// How many may wait for that.
const WAITING: usize = 16;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn guesses_at_every_door_open_none_and_few_are_even_judged() -> Result<()> {
    let setup = setup()?.env("LIMINAL_TOKEN", "short-one");
    let server = Arc::new(setup.start().await?);
    let guesses = times(400, 10_000);
    let next = Arc::new(AtomicUsize::new(0));
    let judged = Arc::new(AtomicUsize::new(0));
    let begun = Instant::now();
    let mut crowd = JoinSet::new();
    for _ in 0..24 {
        let (server, next, judged) = (server.clone(), next.clone(), judged.clone());
        crowd.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= guesses {
                    return anyhow::Ok(());
                }
                let told = guess(&server, number).await?;
                anyhow::ensure!(told != Told::In, "guess {number} was let in");
                judged.fetch_add(usize::from(told == Told::Wrong), Ordering::Relaxed);
            }
        });
    }
    while let Some(ended) = crowd.join_next().await {
        ended??;
    }
    let took = begun.elapsed();
    let judged = judged.load(Ordering::Relaxed);
    let most = WAITING + (took.as_millis() / PAUSE.as_millis()) as usize + 1;
    println!("{guesses} guesses in {took:?}, {judged} judged");
    assert!(judged <= most, "{judged} judged in {took:?}");
    Ok(())
}

#[derive(Debug, PartialEq)]
enum Told {
    In,
    Wrong,
    TooMany,
}

/// At each door in turn.
async fn guess(server: &Server, number: usize) -> Result<Told> {
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
            let head = [
                "POST /login HTTP/1.1".to_owned(),
                host,
                format!("Origin: http://{address}"),
                "Content-Type: application/json".to_owned(),
            ];
            http(address, &head, &json!({"token": token}).to_string())
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
                return Ok(Told::TooMany);
            };
            socket.send(json!({"type": "auth", "token": token})).await?;
            let answer = socket.next().await?;
            return Ok(match answer["error"].as_str() {
                None => Told::In,
                Some("invalid token") => Told::Wrong,
                Some(_) => Told::TooMany,
            });
        }
    };
    match status {
        401 => Ok(Told::Wrong),
        429 => Ok(Told::TooMany),
        101 | 200 | 204 => Ok(Told::In),
        other => anyhow::bail!("{other}"),
    }
}

/// A token of ours, a wrong one somebody typed, a prompt and a file: searched for wherever they could have got to.
#[tokio::test]
async fn nothing_secret_is_where_it_does_not_belong() -> Result<()> {
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
        let mut setup = ServerSetup::of(program.to_str().context("a path")?)?
            .with_scripted_agent("")?
            .env("LIMINAL_LOG", "trace");
        if let Some(token) = given {
            setup = setup.env("LIMINAL_TOKEN", token);
        }
        let server = setup.start().await?;
        let token = server.token.clone();
        let folder = setup.folder("app")?;
        std::fs::write(Path::new(&folder).join("private.txt"), CONTENT)?;

        let cookie = server.log_in().await?;
        let mut secrets = vec![token.as_str(), TYPED];
        secrets.push(cookie.split_once('=').context("a value")?.1);
        let wrong = format!("Authorization: Bearer {TYPED}");
        assert_eq!(server.get("/auth", &[&wrong]).await?.status, 401);
        server.get(&format!("/?token={TYPED}"), &[]).await?;
        let mut knocking = server.knock().await?;
        knocking
            .send(json!({"type": "auth", "token": TYPED}))
            .await?;
        knocking.next().await?;
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

        // What runs for it: nobody's arguments, and no agent's environment.
        let family = family(server.id())?;
        assert!(family.len() >= 3, "server, keeper and agent: {family:?}");
        for process in &family {
            let arguments = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
            absent(&secrets, &arguments, "arguments");
            if *process != server.id() {
                let environment =
                    std::fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
                absent(&secrets, &environment, "environment");
                assert!(!String::from_utf8_lossy(&environment).contains("LIMINAL_TOKEN"));
            }
        }
        // What is served.
        let cookie = format!("Cookie: {cookie}");
        for path in [
            "/",
            "/portlet.html",
            "/health",
            "/auth",
            "/nothing",
            "/shell/main.js",
            "/shared/boot.js",
        ] {
            for headers in [&[][..], &[cookie.as_str()]] {
                let answer = server.get(path, headers).await?;
                absent(&secrets, &answer.body, path);
                absent(&secrets, format!("{:?}", answer.headers).as_bytes(), path);
            }
        }
        // What the conversation shows, the agent's and the command's environment among it.
        absent(
            &secrets,
            format!("{:?}", talk.entries).as_bytes(),
            "conversation",
        );
        let ended = server.signal("TERM").await?;
        let log = std::fs::read(&log)?;
        assert!(!log.is_empty(), "nothing was logged at all");
        absent(&secrets, &log, "log");
        absent(&secrets, ended.stdout.as_bytes(), "standard output");
        absent(&[PROMPT, CONTENT], &log, "log");
        // What is kept.
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
                    absent(&secrets, &bytes, &name);
                }
                if name == "audit.jsonl" {
                    absent(&[PROMPT, CONTENT], &bytes, &name);
                }
                kept += 1;
            }
        }
        assert!(kept >= 5, "{kept} files");
    }
    Ok(())
}

fn absent(secrets: &[&str], place: &[u8], name: &str) {
    let place = String::from_utf8_lossy(place);
    for secret in secrets {
        if let Some(at) = place.find(secret) {
            let before = place[..at].lines().next_back().unwrap_or_default();
            panic!("a secret ({}…) is in {name}, after: {before}", &secret[..6]);
        }
    }
}

/// A process and all below it.
fn family(head: u32) -> Result<Vec<u32>> {
    let mut found = vec![head];
    let mut parents = vec![];
    for entry in std::fs::read_dir("/proc")? {
        let Ok(process) = entry?.file_name().to_string_lossy().parse::<u32>() else {
            continue;
        };
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{process}/stat")) else {
            continue;
        };
        let after = stat.rsplit_once(") ").context("a name")?.1;
        parents.push((
            process,
            after
                .split(' ')
                .nth(1)
                .context("a parent")?
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
