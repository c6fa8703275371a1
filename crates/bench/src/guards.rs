//! Small pieces of frequently run code whose instructions `cargo xtask test` counts. The count does not depend on the
//! machine's load, so an increase by a fifth shows on every machine.

use std::hint::black_box;

use agents::from_acp;
use anyhow::{Context, Result, bail};
use conversation::Entries;
use serde_json::{Value, json};
use testkit::{Person, ServerSetup};
use wire::ServerMessage;

use crate::process::sibling_program;

const TIMES: usize = 500;

pub(crate) fn run(what: &str) -> Result<()> {
    match what {
        // The cost of a process that does nothing.
        "nothing" => {}
        // The unit: parsing and serializing an agent's lines.
        "unit" => {
            for line in lines() {
                let value: Value = serde_json::from_str(&line)?;
                black_box(value.to_string());
            }
        }
        "update" => {
            let mut entries = Entries::after(0);
            for line in lines() {
                let (_, update) = from_acp::read(&line).map_err(anyhow::Error::msg)?;
                black_box(entries.apply(update, "2026-01-01T00:00:00.000Z"));
            }
        }
        "frame" => {
            for number in 0..TIMES {
                let message = ServerMessage::SessionChunk {
                    session_id: "claude-code:some-session".to_owned(),
                    entry_id: "e17".to_owned(),
                    content: "twenty bytes of text".to_owned(),
                    html: None,
                    terminal_id: None,
                    seq: number as u64,
                };
                black_box(serde_json::to_string(&message)?);
            }
        }
        "markdown" => drop(black_box(render::html(&text(20)))),
        "growing" => {
            let mut live = render::Live::new();
            for piece in text(20).as_bytes().chunks(20) {
                live.push(&String::from_utf8_lossy(piece));
                black_box(live.flush());
            }
        }
        other => bail!("no guard {other}"),
    }
    Ok(())
}

/// Counts the server's instructions from start to end, with this number of messages one after the other, each from the
/// window to the agent with its answer back, and everything stored.
pub(crate) async fn messages(count: usize) -> Result<f64> {
    let program = sibling_program("liminal")?;
    let setup = ServerSetup::of(program.to_str().context("a path")?)?
        .env("CLAUDE_ACP_CMD", sibling_program("scripted-agent")?)
        .env("LIMINAL_WARM_START", "false");
    let counter = "valgrind --tool=callgrind --callgrind-out-file=/dev/null --log-file=counted";
    let counter: Vec<_> = counter.split(' ').map(Into::into).collect();
    let server = setup.start_by(&counter).await?;
    let mut person = Person::at(&server, &setup.folder("app")?).await?;
    let mut talk = person.begin().await?;
    for _ in 0..count {
        person.turn(&mut talk, "say one two three").await?;
    }
    server.signal("TERM").await?;
    let said = std::fs::read_to_string(setup.home().join("counted"))?;
    let counted = said
        .lines()
        .find_map(|line| line.split("Collected : ").nth(1));
    Ok(counted.context("no count")?.trim().parse()?)
}

fn lines() -> Vec<String> {
    let line = |number: usize| {
        json!({
            "sessionId": "some-session",
            "update": {
                "sessionUpdate": "agent_message_chunk",
                "content": {"type": "text", "text": format!("piece {number} of a text, ")},
            },
        })
        .to_string()
    };
    (0..TIMES).map(line).collect()
}

fn text(times: usize) -> String {
    "## What was found\n\nThe loop reads **one line** at a time, so `length` does not fit.\n\n- the first\n- the second\n\n\
     ```rust\nfn next(&mut self) -> Option<String> {\n    self.buffer.find('\\n') // not the last\n}\n```\n\n\
     | a | b |\n|---|---|\n| 1 | 2 |\n\n"
        .repeat(times)
}
