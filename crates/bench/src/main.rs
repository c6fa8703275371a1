//! Measurements of the server for `cargo xtask bench`, and the baseline programs.
//!
//! `bench PART [quick]` prints one JSON object: lists of numbers by name, from alternating runs of the server and of its
//! baseline. `xtask/src/bench/rows.rs` describes each figure and its promised limit. `bench relay KIND AGENT` and
//! `bench page` are the baseline programs. `liminal` and `scripted-agent` are expected in the same folder.

#![expect(clippy::print_stdout, reason = "the figures are its output")]

mod agent_store;
mod baselines;
mod figures;
mod gateway;
mod growth;
mod guards;
mod plain;
mod process;
mod sessions;
mod start;
mod store;
mod streams;
mod updates;

use anyhow::{Result, bail};

use figures::{Effort, Figures};

#[tokio::main]
async fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let (part, effort) = match words.as_slice() {
        ["guard", "messages", count] => {
            println!("{}", guards::messages(count.parse()?).await?);
            return Ok(());
        }
        ["guard", what] => return guards::run(what),
        ["page"] => return baselines::page::serve().await,
        ["relay", kind, agent] => return baselines::relay::serve(kind, agent).await,
        [part] => (*part, Effort::Whole),
        [part, "quick"] => (*part, Effort::Quick),
        _ => bail!("usage: bench PART [quick] | guard WHAT | relay KIND AGENT | page"),
    };
    let mut figures = Figures::default();
    match part {
        "start" => start::measure(effort, &mut figures).await?,
        "streams" => streams::measure(effort, &mut figures).await?,
        "sessions" => sessions::measure(effort, &mut figures).await?,
        "growth" => growth::measure(effort, &mut figures).await?,
        "updates" => updates::measure(effort, &mut figures).await?,
        "gateway" => gateway::measure(effort, &mut figures).await?,
        "agent-store" => agent_store::measure(&mut figures)?,
        other => bail!("no part {other}"),
    }
    println!("{}", serde_json::to_string(&figures)?);
    Ok(())
}
